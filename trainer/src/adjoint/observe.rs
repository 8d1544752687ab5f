//! What an agent sees: the error to the target in a window around its cell, on a line its slope too, and
//! perhaps a coarse view of the whole domain or the errors of other fields in the same window.

use super::real::Real;
use crate::policy::Sight;
use problem::Problem;
use problem::grid::Edge;

/// Turns error fields into the features of agents.
#[derive(Debug, Clone)]
pub struct Eyes {
    axes: usize,
    points: [usize; 2],
    /// Along which axes there is no beyond.
    wraps: [bool; 2],
    /// Grid points from one cell of a window to the next.
    spacing: usize,
    sight: Sight,
}

/// An error field with all that agents' features are cut from.
#[derive(Debug, Clone)]
pub struct Scene<T> {
    /// The error at every grid point.
    pub error: Vec<T>,
    /// Its slope; empty on a plane.
    slope: Vec<T>,
    /// Its means over the cells of the coarse view.
    pub coarse: Vec<T>,
    /// Those of the target.
    pub aim: Vec<T>,
    /// The errors of other fields that are seen, one after the other.
    pub others: Vec<T>,
}

impl Eyes {
    /// The eyes of a problem's agents.
    ///
    /// # Panics
    /// If the cells of the coarse view do not divide the grid.
    pub fn new(problem: &Problem, sight: &Sight) -> Self {
        let grid = &problem.grid;
        for (cells, points) in sight.wide.into_iter().flatten().zip(grid.points) {
            assert!(points % cells == 0, "{cells} cells do not divide {points}");
        }
        Self {
            axes: grid.axes,
            points: grid.points,
            wraps: grid.edges.map(|edge| edge == Edge::Periodic),
            spacing: problem.sensing.spacing,
            sight: sight.clone(),
        }
    }

    /// Room for a scene.
    pub fn scene<T: Real>(&self) -> Scene<T> {
        let n = self.points[0] * self.points[1];
        Scene {
            error: vec![T::ZERO; n],
            slope: vec![T::ZERO; if self.axes == 1 { n } else { 0 }],
            coarse: vec![T::ZERO; self.sight.coarse()],
            aim: vec![T::ZERO; self.sight.coarse()],
            others: vec![T::ZERO; self.sight.others.len() * n],
        }
    }

    /// Fills the coarse view of a scene from its errors.
    pub fn survey<T: Real>(&self, scene: &mut Scene<T>) {
        self.means(&scene.error, &mut scene.coarse);
    }

    /// Means over the cells of the coarse view; nothing without one.
    pub fn means<T: Real>(&self, values: &[T], means: &mut [T]) {
        let Some(share) = self.share_of_cell() else {
            return;
        };
        means.fill(T::ZERO);
        for (k, run) in values.chunks_exact(self.coarse_run()).enumerate() {
            means[self.coarse_cell(k)] += run.iter().copied().sum::<T>();
        }
        let share = T::of(share);
        means.iter_mut().for_each(|mean| *mean = *mean * share);
    }

    /// Adjoint of [`Self::survey`]: adds to the errors' gradient.
    pub fn survey_adjoint<T: Real>(&self, g: &mut Scene<T>) {
        if let Some(share) = self.share_of_cell() {
            let share = T::of(share);
            for (k, run) in g.error.chunks_exact_mut(self.coarse_run()).enumerate() {
                let pull = g.coarse[self.coarse_cell(k)] * share;
                run.iter_mut().for_each(|error| *error += pull);
            }
        }
    }

    /// Fills the slopes of a scene from its errors.
    pub fn slopes<T: Real>(&self, scene: &mut Scene<T>) {
        if self.axes == 1 {
            slope(&scene.error, &mut scene.slope, self.spacing, self.wraps[0]);
        }
    }

    /// Adjoint of [`Self::slopes`]: adds to the errors' gradient.
    pub fn slopes_adjoint<T: Real>(&self, g: &mut Scene<T>) {
        if self.axes == 1 {
            slope_adjoint(&g.slope, &mut g.error, self.spacing, self.wraps[0]);
        }
    }

    /// 1 / grid points in a cell of the coarse view.
    fn share_of_cell(&self) -> Option<f64> {
        let [a, b] = self.sight.wide?;
        Some((a * b) as f64 / (self.points[0] * self.points[1]) as f64)
    }

    /// Neighbours in a row of the grid that lie in the same cell of the coarse view.
    fn coarse_run(&self) -> usize {
        self.points[1] / self.sight.wide.map_or(1, |[_, b]| b)
    }

    /// The cell of the coarse view that the `k`-th such run lies in.
    fn coarse_cell(&self, k: usize) -> usize {
        let [a, b] = self.sight.wide.unwrap_or([1, 1]);
        (k / b * a / self.points[0]) * b + k % b
    }

    /// Grid index of cell `k` of a window around `cell` along an axis: beyond a wall the last cell before it
    /// counts, on a ring there is no beyond.
    #[inline]
    fn index(&self, axis: usize, cell: usize, k: usize) -> usize {
        let (half, n, s) = (self.sight.window / 2, self.points[axis], self.spacing);
        if self.wraps[axis] {
            return (cell + s * k + (n - 1) * s * half) % n;
        }
        // Cells that there are before this one, and behind it.
        let (before, behind) = (cell / s, (n - 1 - cell) / s);
        let from_first = (before + k).saturating_sub(half).min(before + behind);
        cell % s + s * from_first
    }

    /// The first column of a window around column `cell` that lies within the grid as it is.
    fn unbroken(&self, cell: usize) -> Option<usize> {
        if self.spacing > 1 {
            return None;
        }
        let first = cell.checked_sub(self.sight.window / 2)?;
        (first + self.sight.window <= self.points[1]).then_some(first)
    }

    /// The features of an agent in `cell`.
    pub fn observe<T: Real>(&self, scene: &Scene<T>, cell: [usize; 2], features: &mut [T]) {
        let sight = &self.sight;
        let gain = T::of(sight.error_gain);
        let (local, rest) = features.split_at_mut(sight.local(self.axes));
        let (coarse, rest) = rest.split_at_mut(sight.coarse());
        let (aims, others) = rest.split_at_mut(sight.aims());
        if self.axes == 1 {
            let (errors, slopes) = local.split_at_mut(sight.window);
            let slope_gain = T::of(sight.slope_gain);
            for (k, (e, s)) in errors.iter_mut().zip(slopes).enumerate() {
                let j = self.index(0, cell[0], k);
                *e = gain * scene.error[j];
                *s = slope_gain * scene.slope[j];
            }
        } else if !local.is_empty() {
            self.window_on(&scene.error, cell, gain, local);
        }
        let gain = T::of(sight.wide_gain);
        for (outs, means) in [(coarse, &scene.coarse), (aims, &scene.aim)] {
            for (out, &mean) in outs.iter_mut().zip(means) {
                *out = gain * mean;
            }
        }
        if others.is_empty() {
            return;
        }
        let fields = scene.others.chunks_exact(self.points[0] * self.points[1]);
        let windows = others.chunks_exact_mut(sight.cells(self.axes));
        for ((field, window), &gain) in fields.zip(windows).zip(&sight.others) {
            self.window_on(field, cell, T::of(gain), window);
        }
    }

    /// The values of a field in the window around `cell`, times `gain`.
    fn window_on<T: Real>(&self, field: &[T], cell: [usize; 2], gain: T, out: &mut [T]) {
        if self.axes == 1 {
            for (k, e) in out.iter_mut().enumerate() {
                *e = gain * field[self.index(0, cell[0], k)];
            }
            return;
        }
        let whole = self.unbroken(cell[1]);
        for (k, line) in out.chunks_exact_mut(self.sight.window).enumerate() {
            let row = &field[self.index(0, cell[0], k) * self.points[1]..];
            match whole {
                Some(first) => {
                    for (e, &error) in line.iter_mut().zip(&row[first..]) {
                        *e = gain * error;
                    }
                }
                None => {
                    for (l, e) in line.iter_mut().enumerate() {
                        *e = gain * row[self.index(1, cell[1], l)];
                    }
                }
            }
        }
    }

    /// Adjoint of [`Self::window_on`]: adds to the field's gradient.
    fn window_adjoint<T: Real>(&self, g_out: &[T], cell: [usize; 2], gain: T, g_field: &mut [T]) {
        if self.axes == 1 {
            for (k, &e) in g_out.iter().enumerate() {
                g_field[self.index(0, cell[0], k)] += gain * e;
            }
            return;
        }
        let whole = self.unbroken(cell[1]);
        for (k, line) in g_out.chunks_exact(self.sight.window).enumerate() {
            let row = &mut g_field[self.index(0, cell[0], k) * self.points[1]..];
            match whole {
                Some(first) => {
                    for (&e, error) in line.iter().zip(&mut row[first..]) {
                        *error += gain * e;
                    }
                }
                None => {
                    for (l, &e) in line.iter().enumerate() {
                        row[self.index(1, cell[1], l)] += gain * e;
                    }
                }
            }
        }
    }

    /// Adjoint of [`Self::observe`]: adds to the scene's gradients.
    pub fn observe_adjoint<T: Real>(&self, g_features: &[T], cell: [usize; 2], g: &mut Scene<T>) {
        let sight = &self.sight;
        let gain = T::of(sight.error_gain);
        let (local, rest) = g_features.split_at(sight.local(self.axes));
        let (coarse, rest) = rest.split_at(sight.coarse());
        let (_, others) = rest.split_at(sight.aims());
        if self.axes == 1 {
            let (errors, slopes) = local.split_at(sight.window);
            let slope_gain = T::of(sight.slope_gain);
            for (k, (&e, &s)) in errors.iter().zip(slopes).enumerate() {
                let j = self.index(0, cell[0], k);
                g.error[j] += gain * e;
                g.slope[j] += slope_gain * s;
            }
        } else if !local.is_empty() {
            self.window_adjoint(local, cell, gain, &mut g.error);
        }
        let gain = T::of(sight.wide_gain);
        for (mean, &out) in g.coarse.iter_mut().zip(coarse) {
            *mean += gain * out;
        }
        if others.is_empty() {
            return;
        }
        let fields = (g.others).chunks_exact_mut(self.points[0] * self.points[1]);
        let windows = others.chunks_exact(sight.cells(self.axes));
        for ((field, window), &gain) in fields.zip(windows).zip(&sight.others) {
            self.window_adjoint(window, cell, T::of(gain), field);
        }
    }
}

impl<T: Real> Scene<T> {
    /// Makes everything zero.
    pub fn clear(&mut self) {
        for part in [
            &mut self.error,
            &mut self.slope,
            &mut self.coarse,
            &mut self.aim,
            &mut self.others,
        ] {
            part.fill(T::ZERO);
        }
    }
}

/// Half the difference of the cells before and behind, so many points away; at the ends one-sided, or on a
/// ring around it.
fn slope<T: Real>(field: &[T], out: &mut [T], spacing: usize, wraps: bool) {
    let (n, half) = (field.len(), T::of(0.5));
    for j in spacing..n - spacing {
        out[j] = half * (field[j + spacing] - field[j - spacing]);
    }
    for j in (0..spacing).chain(n - spacing..n) {
        let [before, after] = at_an_end(n, j, spacing, wraps);
        let rise = field[after] - field[before];
        out[j] = if wraps { half * rise } else { rise };
    }
}

/// Adjoint of [`slope`]: adds to `g_field`.
fn slope_adjoint<T: Real>(g: &[T], g_field: &mut [T], spacing: usize, wraps: bool) {
    let (n, half) = (g.len(), T::of(0.5));
    for j in spacing..n - spacing {
        g_field[j + spacing] += half * g[j];
        g_field[j - spacing] -= half * g[j];
    }
    let share = if wraps { half } else { T::ONE };
    for j in (0..spacing).chain(n - spacing..n) {
        let [before, after] = at_an_end(n, j, spacing, wraps);
        g_field[after] += share * g[j];
        g_field[before] -= share * g[j];
    }
}

/// The cells before and behind one near an end of `n`: around the ring, or itself for one beyond a wall.
fn at_an_end(n: usize, j: usize, spacing: usize, wraps: bool) -> [usize; 2] {
    match wraps {
        true => [(j + n - spacing) % n, (j + spacing) % n],
        false => [
            j.checked_sub(spacing).unwrap_or(j),
            Some(j + spacing).filter(|&k| k < n).unwrap_or(j),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};
    use problem::published::{density_2d, heat_1d, ks_1d, ks_2d};

    fn sight(window: usize, wide: Option<[usize; 2]>) -> Sight {
        Sight {
            window,
            error_gain: 0.7,
            slope_gain: 10.0,
            wide,
            wide_gain: 3.0,
            target: false,
            others: vec![],
        }
    }

    fn see(eyes: &Eyes, error: &[f64], cell: [usize; 2], features: usize) -> Vec<f64> {
        let mut scene = eyes.scene();
        scene.error.copy_from_slice(error);
        eyes.survey(&mut scene);
        eyes.slopes(&mut scene);
        let mut seen = vec![0.0; features];
        eyes.observe(&scene, cell, &mut seen);
        seen
    }

    #[test]
    fn a_window_at_the_wall_repeats_the_wall() {
        let sight = Sight {
            error_gain: 1.0,
            ..sight(8, None)
        };
        let eyes = Eyes::new(&heat_1d::PROBLEM, &sight);
        let field: Vec<f64> = (0..100).map(|j| (j * j) as f64).collect();
        let seen = see(&eyes, &field, [1, 0], 16);
        // Indices −3..=4; the slope of j² is 2j, and 1 at the wall.
        assert_eq!(seen[..8], [0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 9.0, 16.0]);
        assert_eq!(seen[8..], [10.0, 10.0, 10.0, 10.0, 20.0, 40.0, 60.0, 80.0]);
        let seen = see(&eyes, &field, [99, 0], 16);
        let last = 99.0 * 99.0;
        assert_eq!(seen[3..8], [98.0 * 98.0, last, last, last, last]);
    }

    #[test]
    fn a_window_on_a_ring_goes_around_it() {
        let sight = Sight {
            error_gain: 1.0,
            ..sight(4, None)
        };
        let eyes = Eyes::new(&ks_1d::PROBLEM, &sight);
        let field: Vec<f64> = (0..128).map(|j| j as f64).collect();
        let seen = see(&eyes, &field, [1, 0], 8);
        assert_eq!(seen[..4], [127.0, 0.0, 1.0, 2.0]);
        // (0 − 126)/2, (1 − 127)/2, 1, 1
        assert_eq!(seen[4..], [-630.0, -630.0, 10.0, 10.0]);
    }

    /// As the simulator's: every third cell, beyond the wall the last before it, slopes from cell to cell.
    #[test]
    fn cells_of_a_window_may_be_apart() {
        let sight = Sight {
            error_gain: 1.0,
            ..sight(8, None)
        };
        let mut problem = heat_1d::PROBLEM;
        problem.sensing.spacing = 3;
        let eyes = Eyes::new(&problem, &sight);
        let field: Vec<f64> = (0..100).map(|j| (j * j) as f64).collect();
        let square = |j: usize| (j * j) as f64;
        let seen = see(&eyes, &field, [7, 0], 16);
        // 7 − 12 and 7 − 9 lie beyond the wall, 1 is the last before it.
        assert_eq!(seen[..8], [1, 1, 1, 4, 7, 10, 13, 16].map(square));
        // ((j + 3)² − (j − 3)²)/2 = 6 j, at the wall 4² − 1²; gain 10.
        assert_eq!(
            seen[8..],
            [150.0, 150.0, 150.0, 240.0, 420.0, 600.0, 780.0, 960.0]
        );
        let seen = see(&eyes, &field, [93, 0], 16);
        assert_eq!(seen[..8], [81, 84, 87, 90, 93, 96, 99, 99].map(square));
        assert_eq!(seen[14..], [10.0 * (square(99) - square(96)); 2]);
        let mut problem = ks_1d::PROBLEM;
        problem.sensing.spacing = 3;
        let eyes = Eyes::new(&problem, &sight);
        let field: Vec<f64> = (0..128).map(|j| j as f64).collect();
        let seen = see(&eyes, &field, [1, 0], 16);
        assert_eq!(seen[..8], [117.0, 120.0, 123.0, 126.0, 1.0, 4.0, 7.0, 10.0]);
        assert_eq!(
            seen[11..13],
            [10.0 * (1.0 - 123.0) / 2.0, 10.0 * (4.0 - 126.0) / 2.0]
        );
    }

    #[test]
    fn the_coarse_view_is_the_mean_of_its_cells() {
        let eyes = Eyes::new(&density_2d::PROBLEM, &sight(2, Some([8, 10])));
        let field: Vec<f64> = (0..64 * 80).map(|k| (k / 80 + k % 80) as f64).collect();
        let seen = see(&eyes, &field, [30, 40], 4 + 80);
        // Cell (a, b) spans rows 8a..8a+8 and columns 8b..8b+8: mean 8a + 8b + 7; gain 3.
        assert_eq!(seen[4..7], [21.0, 45.0, 69.0]);
        assert_eq!(seen[83], 3.0 * (56.0 + 72.0 + 7.0));
    }

    #[test]
    fn a_coarse_view_as_fine_as_the_grid_is_the_field_and_the_target() {
        let sight = Sight {
            target: true,
            ..sight(0, Some([100, 1]))
        };
        let eyes = Eyes::new(&heat_1d::PROBLEM, &sight);
        let mut scene = eyes.scene();
        let (error, target) = (wave(100, 0.3, 1.0), wave(100, 0.7, 2.0));
        scene.error.copy_from_slice(&error);
        eyes.survey(&mut scene);
        eyes.means(&target, &mut scene.aim);
        let mut seen = vec![0.0; sight.features(1)];
        eyes.observe(&scene, [0, 0], &mut seen);
        let shown = error.iter().chain(&target).map(|value| 3.0 * value);
        assert_eq!(seen, shown.collect::<Vec<f64>>());
    }

    #[test]
    fn observing_has_the_adjoint_it_claims() {
        let apart = |problem: &Problem, spacing: usize| {
            let mut apart = *problem;
            apart.sensing.spacing = spacing;
            apart
        };
        let (line, ring) = (apart(&heat_1d::PROBLEM, 3), apart(&ks_1d::PROBLEM, 2));
        let torus = apart(&ks_2d::PROBLEM, 3);
        let box_with_walls = apart(&density_2d::PROBLEM, 2);
        let everything = |picture| Sight {
            target: true,
            ..sight(0, Some(picture))
        };
        let cases: [(&Problem, Sight, &[[usize; 2]]); 10] = [
            (&line, sight(8, None), &[[0, 0], [7, 0], [50, 0], [93, 0]]),
            (&ring, sight(6, None), &[[0, 0], [127, 0]]),
            (&torus, sight(5, None), &[[1, 62]]),
            (&box_with_walls, sight(3, Some([4, 5])), &[[1, 79], [62, 0]]),
            (
                &heat_1d::PROBLEM,
                sight(8, None),
                &[[0, 0], [50, 0], [99, 0]],
            ),
            (&ks_1d::PROBLEM, sight(6, None), &[[0, 0], [127, 0]]),
            (&ks_2d::PROBLEM, sight(5, None), &[[1, 62]]),
            (&density_2d::PROBLEM, sight(3, Some([4, 5])), &[[0, 79]]),
            (&heat_1d::PROBLEM, everything([100, 1]), &[[0, 0]]),
            (&density_2d::PROBLEM, everything([64, 80]), &[[0, 0]]),
        ];
        for (problem, sight, cells) in cases {
            let eyes = Eyes::new(problem, &sight);
            let features = sight.features(problem.grid.axes);
            let field = wave(problem.grid.len(), 0.2, 1.0);
            let weight = wave(features, 0.9, 1.0);
            for &cell in cells {
                let mut g = eyes.scene();
                eyes.observe_adjoint(&weight, cell, &mut g);
                eyes.slopes_adjoint(&mut g);
                eyes.survey_adjoint(&mut g);
                // It is linear: its value is the product with its gradient.
                let seen = see(&eyes, &field, cell, features);
                let value: f64 = seen.iter().zip(&weight).map(|(s, w)| s * w).sum();
                let product: f64 = field.iter().zip(&g.error).map(|(f, g)| f * g).sum();
                assert!((value - product).abs() < 1e-10 * value.abs().max(1.0));
                if problem.grid.axes == 1 {
                    let value = |field: &[f64]| {
                        let seen = see(&eyes, field, cell, features);
                        seen.iter().zip(&weight).map(|(s, w)| s * w).sum()
                    };
                    assert_gradient(value, &field, &g.error, 1e-8);
                }
            }
        }
    }
}
