//! Inverses of diffusion matrices, cut to the band that counts.

/// What of an inverse's row is dropped beyond its band, relative to its diagonal: below what single
/// precision can tell.
pub const NEGLIGIBLE: f64 = 1e-9;

/// How far from its diagonal the inverse of the matrix with `1 + 2p` on the diagonal and `−p` beside it
/// counts, on the interior of a line of `n` points.
///
/// Its entries fall off by λ per cell, λ + 1/λ = (1 + 2p)/p.
pub fn band_of_inverse(n: usize, p: f64) -> usize {
    let half = (1.0 + 2.0 * p) / (2.0 * p);
    let falloff = half - (half * half - 1.0).sqrt();
    ((NEGLIGIBLE.ln() / falloff.ln()).ceil() as usize).min(n - 1)
}

/// That inverse, [offset + band, cell], zero on the line's ends.
pub fn banded_inverse(n: usize, p: f64, band: usize) -> Vec<f64> {
    let mut table = vec![0.0; (2 * band + 1) * n];
    for unit in 1..n - 1 {
        for (j, value) in inverse_column(n, p, unit).into_iter().enumerate() {
            if j.abs_diff(unit) <= band {
                // Row j, column unit: the offset is unit − j.
                table[(unit + band - j) * n + j] = value;
            }
        }
    }
    table
}

/// Elimination for the unit vector of an interior point.
fn inverse_column(n: usize, p: f64, unit: usize) -> Vec<f64> {
    let (mut pivot, mut value) = (vec![0.0; n], vec![0.0; n]);
    for j in 1..n - 1 {
        let scale = 1.0 / (1.0 + 2.0 * p - p * pivot[j - 1]);
        pivot[j] = p * scale;
        value[j] = (f64::from(u8::from(j == unit)) + p * value[j - 1]) * scale;
    }
    for j in (1..n - 1).rev() {
        value[j] += pivot[j] * value[j + 1];
    }
    value[n - 1] = 0.0;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A A⁻¹ = 1 on the interior, for the two published ratios (heat: r/2 = 1, Fisher: 0.05).
    #[test]
    fn the_banded_inverse_inverts() {
        for p in [1.0, 0.05] {
            let (n, band) = (100, band_of_inverse(100, p));
            let table = banded_inverse(n, p, band);
            let entry = |j: usize, k: usize| match j.abs_diff(k) <= band {
                true => table[(k + band - j) * n + j],
                false => 0.0,
            };
            for j in 1..n - 1 {
                for k in 1..n - 1 {
                    let product =
                        (1.0 + 2.0 * p) * entry(j, k) - p * (entry(j - 1, k) + entry(j + 1, k));
                    let unit = f64::from(u8::from(j == k));
                    assert!((product - unit).abs() < 4.0 * NEGLIGIBLE, "{p} {j} {k}");
                }
            }
            assert!((0..n).all(|k| entry(0, k) == 0.0 && entry(n - 1, k) == 0.0));
            assert!(band < n / 4, "{band}");
        }
    }
}
