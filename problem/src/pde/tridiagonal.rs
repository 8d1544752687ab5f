//! Tridiagonal systems, factored once and solved in O(N) per right-hand side.

use num_traits::Float;

/// A tridiagonal matrix after the forward sweep of the Thomas algorithm.
///
/// Implicit diffusion steps solve with the same matrix at every step, so its pivots are inverted
/// once here and a solve is multiplications and additions only. There is no pivoting: the matrices
/// of diffusion schemes are diagonally dominant, for which the sweep is stable.
#[derive(Debug, Clone)]
pub struct Tridiagonal<T> {
    /// The entry before the diagonal of each row; zero in the first, which has none.
    lower: Vec<T>,
    /// 1 / pivot of each row.
    inverse_pivot: Vec<T>,
    /// Entries above the diagonal divided by their row's pivot.
    scaled_upper: Vec<T>,
}

/// Row `row` of a matrix cannot be eliminated without exchanging rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tridiagonal matrix has a zero pivot in row {row}")]
pub struct ZeroPivot {
    /// The row, counted from 0.
    pub row: usize,
}

impl<T: Float> Tridiagonal<T> {
    /// Factors the matrix with these diagonals; `lower` and `upper` are one shorter than `diagonal`.
    ///
    /// # Panics
    /// If the lengths do not fit together.
    pub fn new(lower: &[T], diagonal: &[T], upper: &[T]) -> Result<Self, ZeroPivot> {
        let rows = diagonal.len();
        assert!(lower.len() + 1 == rows.max(1) && upper.len() == lower.len());
        let first = (rows > 0).then(T::zero);
        let lower: Vec<T> = first.into_iter().chain(lower.iter().copied()).collect();
        let mut inverse_pivot = Vec::with_capacity(rows);
        let mut scaled_upper: Vec<T> = Vec::with_capacity(rows);
        for row in 0..rows {
            let eliminated = match row {
                0 => T::zero(),
                _ => lower[row] * scaled_upper[row - 1],
            };
            let inverse = (diagonal[row] - eliminated).recip();
            if !inverse.is_finite() {
                return Err(ZeroPivot { row });
            }
            inverse_pivot.push(inverse);
            scaled_upper.push(upper.get(row).map_or(T::zero(), |&u| u * inverse));
        }
        Ok(Self {
            lower,
            inverse_pivot,
            scaled_upper,
        })
    }

    /// Factors the matrix with `diagonal` on its diagonal and `off` beside it.
    pub fn constant(rows: usize, off: T, diagonal: T) -> Result<Self, ZeroPivot> {
        let side = vec![off; rows.saturating_sub(1)];
        Self::new(&side, &vec![diagonal; rows], &side)
    }

    /// Number of unknowns.
    pub fn rows(&self) -> usize {
        self.inverse_pivot.len()
    }

    /// Replaces the right-hand side by the solution.
    ///
    /// # Panics
    /// If `rhs` does not have one entry per row.
    pub fn solve(&self, rhs: &mut [T]) {
        assert_eq!(rhs.len(), self.rows(), "one right-hand-side entry per row");
        let mut previous = T::zero();
        for (row, value) in rhs.iter_mut().enumerate() {
            previous = self.eliminated(row, *value, previous);
            *value = previous;
        }
        self.substitute(rhs);
    }

    /// What the forward sweep makes of the right-hand side of a row, after what it made of the row before:
    /// the first half of [`solve`](Self::solve), for right-hand sides that come one by one.
    pub fn eliminated(&self, row: usize, value: T, previous: T) -> T {
        (value - self.lower[row] * previous) * self.inverse_pivot[row]
    }

    /// The second half: replaces what [`eliminated`](Self::eliminated) made of all rows by the solution.
    ///
    /// # Panics
    /// If `values` does not have one entry per row.
    pub fn substitute(&self, values: &mut [T]) {
        assert_eq!(values.len(), self.rows(), "one entry per row");
        // The last row's factor is zero, and so is what it is multiplied by.
        let mut next = T::zero();
        for (value, &upper) in values.iter_mut().zip(&self.scaled_upper).rev() {
            next = *value - upper * next;
            *value = next;
        }
    }

    /// Replaces `width` right-hand sides by their solutions. They stand side by side in
    /// `rhs`, which is row-major with `width` entries per row of the matrix.
    ///
    /// Along one right-hand side every value waits for its neighbour's; across them none do, so
    /// the inner loops here become vector instructions.
    ///
    /// # Panics
    /// If `rhs` does not have `width` entries per row.
    pub fn solve_side_by_side(&self, rhs: &mut [T], width: usize) {
        let rows = self.rows();
        assert_eq!(rhs.len(), rows * width, "{width} entries per row");
        for row in 0..rows {
            let (done, rest) = rhs.split_at_mut(row * width);
            let inverse = self.inverse_pivot[row];
            if row == 0 {
                rest[..width].iter_mut().for_each(|v| *v = *v * inverse);
                continue;
            }
            let lower = self.lower[row];
            let previous = &done[(row - 1) * width..];
            for (value, &previous) in rest[..width].iter_mut().zip(previous) {
                *value = (*value - lower * previous) * inverse;
            }
        }
        for row in (1..rows).rev() {
            let (rest, done) = rhs.split_at_mut(row * width);
            let upper = self.scaled_upper[row - 1];
            for (value, &next) in rest[(row - 1) * width..].iter_mut().zip(&done[..width]) {
                *value = *value - upper * next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_zero_pivot_names_its_row() {
        let result = Tridiagonal::new(&[1.0, 1.0], &[1.0, 1.0, 1.0], &[1.0, 1.0]);
        assert_eq!(result.unwrap_err(), ZeroPivot { row: 1 });
    }

    #[test]
    fn an_empty_system_and_a_single_row_are_fine() {
        Tridiagonal::<f64>::constant(0, 1.0, 2.0)
            .unwrap()
            .solve(&mut []);
        let mut rhs = [6.0];
        Tridiagonal::constant(1, 1.0, 2.0).unwrap().solve(&mut rhs);
        assert_eq!(rhs, [3.0]);
    }

    #[test]
    fn systems_side_by_side_are_solved_as_one_by_one() {
        let (rows, width) = (17, 5);
        let matrix = Tridiagonal::constant(rows, -0.7, 2.4).unwrap();
        let start: Vec<f64> = (0..rows * width).map(|i| (i as f64 * 1.3).sin()).collect();
        let mut together = start.clone();
        matrix.solve_side_by_side(&mut together, width);
        for system in 0..width {
            let mut alone: Vec<f64> = (0..rows).map(|r| start[r * width + system]).collect();
            matrix.solve(&mut alone);
            for (row, value) in alone.iter().enumerate() {
                assert_eq!(together[row * width + system], *value, "{row}, {system}");
            }
        }
        matrix.solve_side_by_side(&mut [], 0);
    }

    proptest! {
        /// Multiplying the solution by the matrix gives the right-hand side back.
        #[test]
        fn solutions_satisfy_the_system(
            rows in prop::collection::vec((-1.0..1.0f64, 0.1..2.0f64, -1.0..1.0f64, -10.0..10.0f64), 1..60)
        ) {
            let n = rows.len();
            let lower: Vec<f64> = rows[1..].iter().map(|r| r.0).collect();
            let upper: Vec<f64> = rows[..n - 1].iter().map(|r| r.2).collect();
            // Strictly dominant: excess of at least 0.1 over the neighbours' sum.
            let diagonal: Vec<f64> = (0..n)
                .map(|i| {
                    let left = if i > 0 { lower[i - 1].abs() } else { 0.0 };
                    let right = if i + 1 < n { upper[i].abs() } else { 0.0 };
                    left + right + rows[i].1
                })
                .collect();
            let rhs: Vec<f64> = rows.iter().map(|r| r.3).collect();
            let mut x = rhs.clone();
            Tridiagonal::new(&lower, &diagonal, &upper).unwrap().solve(&mut x);
            for i in 0..n {
                let left = if i > 0 { lower[i - 1] * x[i - 1] } else { 0.0 };
                let right = if i + 1 < n { upper[i] * x[i + 1] } else { 0.0 };
                let product = left + diagonal[i] * x[i] + right;
                prop_assert!((product - rhs[i]).abs() < 1e-9, "row {i}: {product} vs {}", rhs[i]);
            }
        }
    }
}
