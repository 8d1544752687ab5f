//! What an agent sees: the error to the target and its slope, in a window around its cell.

use super::real::Real;
use agent_sim::problem::Problem;

/// Cuts windows out of an error field.
#[derive(Debug, Clone)]
pub struct Window {
    grid: usize,
    /// Grid points in a window.
    pub points: usize,
    /// Constant factors of the two channels, [error, slope].
    pub gains: [f64; 2],
}

impl Window {
    /// The window of a problem's agents; `gains` multiply the error and its slope.
    pub fn new(problem: &Problem, gains: [f64; 2]) -> Self {
        Self {
            grid: problem.grid.len(),
            points: problem.sensing.window,
            gains,
        }
    }

    /// Values in an observation.
    pub fn features(&self) -> usize {
        2 * self.points
    }

    /// Grid indices of the window around `cell`; beyond the walls the wall's own value counts.
    #[inline]
    fn indices(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        let (half, last) = (self.points / 2, self.grid - 1);
        (0..self.points).map(move |k| (cell + k).saturating_sub(half).min(last))
    }

    /// `features` = the window of `error`, then that of `slope`, times the gains.
    pub fn observe<T: Real>(&self, error: &[T], slope: &[T], cell: usize, features: &mut [T]) {
        let (left, right) = features.split_at_mut(self.points);
        let gains = self.gains.map(T::of);
        for ((j, e), s) in self.indices(cell).zip(left).zip(right) {
            *e = gains[0] * error[j];
            *s = gains[1] * slope[j];
        }
    }

    /// Adjoint of [`Self::observe`]: adds to the gradients of both fields.
    pub fn observe_adjoint<T: Real>(
        &self,
        g_features: &[T],
        cell: usize,
        g_error: &mut [T],
        g_slope: &mut [T],
    ) {
        let (left, right) = g_features.split_at(self.points);
        let gains = self.gains.map(T::of);
        for ((j, &e), &s) in self.indices(cell).zip(left).zip(right) {
            g_error[j] += gains[0] * e;
            g_slope[j] += gains[1] * s;
        }
    }
}

/// Unit-spacing central differences, one-sided at the two ends.
pub fn slope<T: Real>(field: &[T], out: &mut [T]) {
    let (last, half) = (field.len() - 1, T::of(0.5));
    out[0] = field[1] - field[0];
    for j in 1..last {
        out[j] = half * (field[j + 1] - field[j - 1]);
    }
    out[last] = field[last] - field[last - 1];
}

/// Adjoint of [`slope`]: adds to `g_field`.
pub fn slope_adjoint<T: Real>(g: &[T], g_field: &mut [T]) {
    let (last, half) = (g.len() - 1, T::of(0.5));
    g_field[1] += g[0];
    g_field[0] -= g[0];
    for j in 1..last {
        g_field[j + 1] += half * g[j];
        g_field[j - 1] -= half * g[j];
    }
    g_field[last] += g[last];
    g_field[last - 1] -= g[last];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use agent_sim::problem::heat_1d::PROBLEM;

    #[test]
    fn a_window_at_the_wall_repeats_the_wall() {
        let window = Window::new(&PROBLEM, [1.0, 10.0]);
        let field: Vec<f64> = (0..100).map(|j| (j * j) as f64).collect();
        let (mut steep, mut seen) = (vec![0.0; 100], vec![0.0; 16]);
        slope(&field, &mut steep);
        window.observe(&field, &steep, 1, &mut seen);
        // Indices −3..=4; the slope of j² is 2j, and 1 at the wall.
        assert_eq!(seen[..8], [0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 9.0, 16.0]);
        assert_eq!(seen[8..], [10.0, 10.0, 10.0, 10.0, 20.0, 40.0, 60.0, 80.0]);
        window.observe(&field, &steep, 99, &mut seen);
        assert_eq!(
            seen[3..8],
            [
                98.0 * 98.0,
                99.0 * 99.0,
                99.0 * 99.0,
                99.0 * 99.0,
                99.0 * 99.0
            ]
        );
    }

    #[test]
    fn observing_has_the_adjoint_it_claims() {
        let window = Window::new(&PROBLEM, [0.7, 10.0]);
        let (field, weight) = (wave(100, 0.2, 1.0), wave(16, 0.9, 1.0));
        for cell in [0, 2, 50, 99] {
            let value = |field: &[f64]| {
                let (mut steep, mut seen) = (vec![0.0; 100], vec![0.0; 16]);
                slope(field, &mut steep);
                window.observe(field, &steep, cell, &mut seen);
                seen.iter().zip(&weight).map(|(s, w)| s * w).sum()
            };
            let (mut g, mut g_slope) = (vec![0.0; 100], vec![0.0; 100]);
            window.observe_adjoint(&weight, cell, &mut g, &mut g_slope);
            slope_adjoint(&g_slope, &mut g);
            assert_gradient(value, &field, &g, 1e-8);
        }
    }
}
