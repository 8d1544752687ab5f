//! Gradients against central differences, for the tests of every piece.

/// A smooth sequence without symmetry.
pub fn wave(n: usize, pitch: f64, height: f64) -> Vec<f64> {
    (0..n)
        .map(|k| height * (pitch * k as f64 + 0.3 * pitch * pitch).sin())
        .collect()
}

/// Every entry of `gradient` is the slope of `value` at `x`, within `tolerance` of the largest.
pub fn assert_gradient(value: impl Fn(&[f64]) -> f64, x: &[f64], gradient: &[f64], tolerance: f64) {
    assert_eq!(x.len(), gradient.len());
    const STEP: f64 = 1e-5;
    let scale = gradient.iter().fold(0.0f64, |m, g| m.max(g.abs()));
    assert!(scale > 0.0, "the gradient is zero everywhere");
    let mut moved = x.to_vec();
    for k in 0..x.len() {
        moved[k] = x[k] + STEP;
        let up = value(&moved);
        moved[k] = x[k] - STEP;
        let down = value(&moved);
        moved[k] = x[k];
        let slope = (up - down) / (2.0 * STEP);
        assert!(
            (slope - gradient[k]).abs() <= tolerance * scale,
            "entry {k}: adjoint {}, difference {slope}, largest entry {scale}",
            gradient[k]
        );
    }
}
