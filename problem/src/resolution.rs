//! Whether a grid is fine enough for the field on it.
//!
//! A spectral solver carries waves up to a cut-off, and is right as long as hardly anything stands
//! there. Where the equation sends energy to shorter waves than the grid has, it piles up at the
//! cut-off, and the field is no longer that of the equation, blow-up or not.

use crate::Problem;
use crate::grid::Grid;
use crate::pde::transform_lines;
use num_complex::Complex;

/// The largest share of a field's energy that may stand in the finest third of its waves, see
/// [`fine_share`]. The flow of `turbulence-2d` has 2e-4 there, the fronts less; with 1/50 of its
/// viscosity it has 0.14, and equal shares for all waves would be a third on a line and 5/9 in the
/// plane.
pub const FINE_SHARE_MAX: f64 = 0.01;

/// Fields whose values stay below this are at rest: what is left of them is rounding, which is in all
/// waves alike.
const AT_REST: f64 = 1e-6;

/// A grid that is too coarse for the field on it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "a grid of {grid} is too coarse for this field: {:.0} % of its energy stands in the finest third \
     of the waves that the grid has; give --grid {finer} or more",
    100.0 * share
)]
pub struct TooCoarse {
    /// The grid.
    pub grid: String,
    /// What [`fine_share`] says of the field.
    pub share: f64,
    /// Points along the first axis of a grid twice as fine.
    pub finer: usize,
}

/// The share of a periodic field's energy, less its mean's, in waves that the finest third of wave
/// numbers along an axis belongs to; `None` between walls.
pub fn fine_share(grid: &Grid, field: &[f64]) -> Option<f64> {
    if !grid.is_closed() {
        return None;
    }
    let [rows, columns] = grid.points;
    let mean = field.iter().sum::<f64>() / field.len() as f64;
    let mut modes: Vec<Complex<f64>> = field.iter().map(|z| (z - mean).into()).collect();
    transform_lines(&mut modes, columns, false);
    let mut modes: Vec<Complex<f64>> = (0..modes.len())
        .map(|at| modes[at % rows * columns + at / rows])
        .collect();
    transform_lines(&mut modes, rows, false);
    // Beyond two thirds of n/2 waves.
    let fine = |j: usize, n: usize| 3 * j.min(n - j) > n;
    let (mut all, mut high) = (0.0, 0.0);
    for (at, mode) in modes.iter().enumerate() {
        all += mode.norm_sqr();
        if fine(at / rows, columns) || fine(at % rows, rows) {
            high += mode.norm_sqr();
        }
    }
    Some(if all > 0.0 { high / all } else { 0.0 })
}

impl Problem {
    /// Says so if the truth's grid is too coarse for a field on it. Between walls there is nothing to
    /// say: schemes of second order lose accuracy gently.
    pub fn too_coarse(&self, field: &[f64]) -> Option<TooCoarse> {
        if field.iter().all(|z| z.abs() < AT_REST) {
            return None;
        }
        let share = fine_share(&self.grid, field)?;
        (share > FINE_SHARE_MAX).then(|| TooCoarse {
            grid: self.grid.to_string(),
            share,
            finer: 2 * self.grid.points[0],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Edge;
    use crate::published::{heat_1d, ks_1d, turbulence_2d};
    use std::f64::consts::TAU;

    #[test]
    fn waves_beyond_two_thirds_are_fine() {
        let line = Grid::line(24, 5.0, Edge::Periodic);
        let wave = |n: usize, size: f64| {
            (0..24).map(move |j| size * (TAU * (n * j) as f64 / 24.0 + 0.3).cos())
        };
        let share = |n| {
            let field: Vec<f64> = wave(2, 3.0)
                .zip(wave(n, 1.0))
                .map(|(a, b)| a + b + 7.0)
                .collect();
            fine_share(&line, &field).unwrap()
        };
        assert!(share(8) < 1e-28, "{}", share(8));
        assert!((share(9) - 0.1).abs() < 1e-12, "{}", share(9));
        let plane = Grid::plane([24, 10], [5.0; 2], Edge::Periodic);
        for (along, n, expected) in [(0, 8, 0.0), (0, 9, 1.0), (1, 3, 0.0), (1, 4, 1.0)] {
            let field: Vec<f64> = (0..240)
                .map(|at| [at / 10, at % 10][along] as f64 / [24.0, 10.0][along])
                .map(|x| (TAU * n as f64 * x).sin())
                .collect();
            let found = fine_share(&plane, &field).unwrap();
            assert!((found - expected).abs() < 1e-12, "{along} {n}: {found}");
        }
        assert_eq!(fine_share(&heat_1d::PROBLEM.grid, &[1.0; 100]), None);
    }

    #[test]
    fn a_coarse_grid_is_told_with_what_to_do_and_rest_is_not() {
        let rough: Vec<f64> = (0..128).map(|j| f64::from(1 - j % 2 * 2)).collect();
        let text = ks_1d::PROBLEM.too_coarse(&rough).unwrap().to_string();
        assert!(
            text.contains("100 %") && text.contains("--grid 256"),
            "{text}"
        );
        let faint: Vec<f64> = rough.iter().map(|z| 1e-9 * z).collect();
        assert_eq!(ks_1d::PROBLEM.too_coarse(&faint), None);
    }

    /// The published problems are resolved on their grids, and a flow of 1/50 of the viscosity is not.
    #[test]
    fn thin_flows_need_finer_grids() {
        let torus = &turbulence_2d::PROBLEM;
        let table = crate::test_set::EpisodeSet::Table;
        let start = table.episode(torus, 0, 0).unwrap().initial;
        let share = |viscosity: f64| {
            let torus = torus.with_physics([("nu", viscosity)]).unwrap();
            let mut field: Vec<f64> = start.iter().map(|&w| f64::from(w)).collect();
            let mut stepper = (torus.stepper)(&torus, 1);
            (0..150).for_each(|_| stepper.step(&mut field, &vec![0.0; 4096]));
            fine_share(&torus.grid, &field).unwrap()
        };
        let (published, thin) = (share(turbulence_2d::VISCOSITY), share(1e-5));
        println!("{published:e} {thin:e}");
        assert!(published < 0.1 * FINE_SHARE_MAX, "{published}");
        assert!(thin > 2.0 * FINE_SHARE_MAX, "{thin}");
    }
}
