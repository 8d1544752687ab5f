//! Implicit diffusion between two walls, as a matrix.

/// Far below the rounding of f64, far above the smallest f32.
pub const NEGLIGIBLE: f64 = 1e-20;

/// Row-major inverse, [points, points], of the matrix with 1 + 2h on the diagonal and −h beside it;
/// zero on the walls. It is symmetric.
///
/// Entries fall off exponentially from the diagonal; those below any rounding are zero, because
/// sums of them would be subnormal numbers, which take a processor a hundred times as long.
pub fn implicit_inverse(points: usize, h: f64) -> Vec<f64> {
    let n = points;
    let mut inverse = vec![0.0; n * n];
    // Elimination for the unit vector of each interior point.
    for unit in 1..n - 1 {
        let (mut pivot, mut value) = (vec![0.0; n], vec![0.0; n]);
        for j in 1..n - 1 {
            let scale = 1.0 / (1.0 + 2.0 * h - h * pivot[j - 1]);
            pivot[j] = h * scale;
            value[j] = (f64::from(u8::from(j == unit)) + h * value[j - 1]) * scale;
        }
        for j in (1..n - 1).rev() {
            value[j] += pivot[j] * value[j + 1];
            if value[j] > NEGLIGIBLE {
                inverse[unit * n + j] = value[j];
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_the_matrix() {
        let (n, h) = (9, 0.7);
        let inverse = implicit_inverse(n, h);
        for i in 1..n - 1 {
            for j in 0..n {
                let at = |i: usize| inverse[i * n + j];
                let unit = (1.0 + 2.0 * h) * at(i) - h * (at(i - 1) + at(i + 1));
                let wanted = f64::from(u8::from(i == j));
                assert!((unit - wanted).abs() < 1e-14, "({i}, {j}): {unit}");
            }
        }
    }
}
