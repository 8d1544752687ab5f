//! A density carried by the wind of mobile fans, by the published semi-Lagrangian scheme.

use super::Stepper;
use num_traits::{Float, clamp};

/// What one step of [`Density2d`] does; times are counted in steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transport {
    /// Share of the agents' velocity that the density takes on.
    pub coupling: f64,
    /// Velocity of the density without agents, per axis, in lengths per step.
    pub drift: [f64; 2],
    /// Largest displacement in one step, in cells; at most 1.
    pub displacement_max: f64,
    /// What each of the four neighbours contributes to a cell by diffusion in one step.
    pub mixing: f64,
    /// Densities are cut to the range from zero to this.
    pub density_max: f64,
}

/// Carries a density `z` with the velocity field `coupling · w + drift` and lets it diffuse.
///
/// Fields are row-major, `[axis 0, axis 1]`. The force on this equation is a velocity: `step` takes
/// `w = Σ_i v_i b_i`, the agents' velocities spread by their kernels, as `[component, axis 0,
/// axis 1]`, twice as many values as the field has.
///
/// One step, as the authors' code has it (the paper writes the conservative equation; see
/// [`AdvectionDiffusion2d`](super::AdvectionDiffusion2d)):
///
/// 1. The velocity in cells per step, shortened to at most `displacement_max`, is the way `d` back
///    to where each cell's density comes from: `z*(x) = z(x − d(x))`, interpolated bilinearly and
///    kept inside the grid.
/// 2. One explicit step of diffusion: `1 − 4 mixing` of a cell and `mixing` of each neighbour, with
///    nothing beyond the edges.
/// 3. Walls: the two outermost rows and columns on each side repeat the third.
/// 4. Densities are cut to `0 ..= density_max`.
///
/// Mass is not conserved, neither by interpolation in a velocity that varies nor at the walls.
/// Short displacements make every new value a mean of old ones, so no step is unstable. First order
/// in time; interpolation acts like a diffusivity of `½ d (1 − d)` cells² per step along each axis.
#[derive(Debug, Clone)]
pub struct Density2d<T> {
    points: [usize; 2],
    /// Cells per step per unit of the agents' velocity, along each axis.
    cells_per_velocity: [T; 2],
    /// Drift in cells per step.
    drift: [T; 2],
    displacement_max: T,
    /// Weight of a cell itself in the diffusion, and of each neighbour.
    stay: T,
    mixing: T,
    /// What each neighbour along axis 1 contributes beyond `mixing`.
    more_mixing: T,
    /// The proper length of cells along axis 1 in theirs: the reverse of their aspect, since a product
    /// per cell is a fraction of a division.
    proper: T,
    density_max: T,
    /// Largest coordinate, in cells, that is interpolated at.
    furthest: [T; 2],
    substeps: usize,
    carried: Vec<T>,
}

/// The published interpolation keeps this far (in cells) from the last point, so that there is always
/// a next one.
const EDGE_GAP: f64 = 1e-3;

impl<T: Float> Density2d<T> {
    /// A stepper for densities on `points[0]` rows of `points[1]` values that span `extent`, ends
    /// included; a control interval is `substeps` steps.
    ///
    /// # Panics
    /// If an axis has fewer than 5 points (two walls of two and something between), `extent` is not
    /// positive, `displacement_max` is not between 0 and 1, or `mixing` is not between 0 and 1/4.
    pub fn new(
        points: [usize; 2],
        extent: [f64; 2],
        transport: Transport,
        substeps: usize,
    ) -> Self {
        assert!(
            points.iter().all(|&n| n >= 5),
            "walls take two cells per side"
        );
        assert!(extent.iter().all(|&e| e > 0.0), "extent = {extent:?}");
        let longest = transport.displacement_max;
        assert!((0.0..=1.0).contains(&longest), "{longest} cells per step");
        let mixing = transport.mixing;
        assert!((0.0..=0.25).contains(&mixing), "mixing = {mixing}");
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        let cells_per_length = [0, 1].map(|axis| (points[axis] - 1) as f64 / extent[axis]);
        Self {
            points,
            cells_per_velocity: cells_per_length.map(|c| t(c * transport.coupling)),
            drift: [0, 1].map(|axis| t(cells_per_length[axis] * transport.drift[axis])),
            displacement_max: t(transport.displacement_max),
            stay: t(1.0 - 4.0 * mixing),
            mixing: t(mixing),
            more_mixing: T::zero(),
            proper: T::one(),
            density_max: t(transport.density_max),
            furthest: points.map(|n| t((n - 1) as f64 - EDGE_GAP)),
            substeps,
            carried: vec![T::zero(); points[0] * points[1]],
        }
    }

    /// For cells of another shape than those that the scheme was made for: `aspect` of them along axis 1
    /// in the place of one. What counts cells, mixing and the longest displacement, is meant for axis 0
    /// and does the same along axis 1, in lengths.
    ///
    /// # Panics
    /// If densities would then move by more than a cell, or cells give away more than they have.
    pub fn stretched(mut self, aspect: f64) -> Self {
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        self.proper = t(aspect.recip());
        self.more_mixing = self.mixing * t(aspect * aspect - 1.0);
        let given = self.mixing + self.mixing + self.more_mixing;
        let most = t(1.0 + 1e-6); // rounding is no reason to give up
        assert!(
            self.displacement_max * t(aspect) <= most && given + given <= most,
            "{aspect} cells in place of one"
        );
        self
    }

    /// Grid points along each axis.
    pub fn points(&self) -> [usize; 2] {
        self.points
    }

    /// From `field` to `carried`.
    fn advect(&mut self, field: &[T], wind: &[T]) {
        let [_, n1] = self.points;
        let (wind0, wind1) = wind.split_at(field.len());
        let rows = (self.carried.chunks_exact_mut(n1))
            .zip(wind0.chunks_exact(n1))
            .zip(wind1.chunks_exact(n1));
        let longest = self.displacement_max;
        for (i, ((carried, wind0), wind1)) in rows.enumerate() {
            for (j, ((out, &w0), &w1)) in carried.iter_mut().zip(wind0).zip(wind1).enumerate() {
                let mut d0 = self.cells_per_velocity[0] * w0 + self.drift[0];
                let mut d1 = self.cells_per_velocity[1] * w1 + self.drift[1];
                let across = d1 * self.proper;
                let square = d0 * d0 + across * across;
                if square > longest * longest {
                    let shorten = longest / square.sqrt();
                    (d0, d1) = (d0 * shorten, d1 * shorten);
                }
                let (row, below) = between(i, d0, self.furthest[0], self.points[0]);
                let (column, right) = between(j, d1, self.furthest[1], n1);
                let corner = row * n1 + column;
                let mix = |a: T, b: T, share: T| (T::one() - share) * a + share * b;
                let upper = mix(field[corner], field[corner + 1], right);
                let lower = mix(field[corner + n1], field[corner + n1 + 1], right);
                *out = mix(upper, lower, below);
            }
        }
    }

    /// From `carried` to the part of `field` that the walls leave.
    fn diffuse(&self, field: &mut [T]) {
        let [n0, n1] = self.points;
        for i in 2..n0 - 2 {
            let row = |i: usize| &self.carried[i * n1..(i + 1) * n1];
            let (above, here, below) = (row(i - 1), row(i), row(i + 1));
            let out = &mut field[i * n1..(i + 1) * n1];
            for j in 2..n1 - 2 {
                let around = above[j] + below[j] + here[j - 1] + here[j + 1];
                let curvature = here[j - 1] - (here[j] + here[j]) + here[j + 1];
                let mixed =
                    self.stay * here[j] + self.mixing * around + self.more_mixing * curvature;
                out[j] = clamp(mixed, T::zero(), self.density_max);
            }
        }
    }

    /// The two outermost rows and columns repeat the third.
    fn copy_to_walls(&self, field: &mut [T]) {
        let [n0, n1] = self.points;
        for (wall, inner) in [(0, 2), (1, 2), (n0 - 2, n0 - 3), (n0 - 1, n0 - 3)] {
            field.copy_within(inner * n1..(inner + 1) * n1, wall * n1);
        }
        for row in field.chunks_exact_mut(n1) {
            for (wall, inner) in [(0, 2), (1, 2), (n1 - 2, n1 - 3), (n1 - 1, n1 - 3)] {
                row[wall] = row[inner];
            }
        }
    }
}

/// The cell before the point a `displacement` of at most one cell back from cell `i`, and the next
/// one's share in the point's value.
fn between<T: Float>(i: usize, displacement: T, furthest: T, points: usize) -> (usize, T) {
    let index = |n: usize| T::from(n).expect("grids are small");
    let from = clamp(index(i) - displacement, T::zero(), furthest);
    // No need to round down, which is slow: it is this cell or the one before.
    let back = usize::from(displacement > T::zero());
    let cell = i.saturating_sub(back).min(points - 2);
    (cell, from - index(cell))
}

impl<T: Float + Send> Stepper<T> for Density2d<T> {
    /// `force` is the agents' velocity field: two components.
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.carried.len();
        assert!(
            field.len() == n && force.len() == 2 * n,
            "{n} grid points and a velocity of two components"
        );
        for _ in 0..self.substeps {
            self.advect(field, force);
            self.diffuse(field);
            self.copy_to_walls(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STILL: Transport = Transport {
        coupling: 1.0,
        drift: [0.0, 0.0],
        displacement_max: 0.5,
        mixing: 0.0,
        density_max: 5.0,
    };

    /// A grid with cells of size 1, so that velocities are displacements in cells.
    fn unit_cells(points: [usize; 2], transport: Transport) -> Density2d<f64> {
        Density2d::new(points, points.map(|n| (n - 1) as f64), transport, 1)
    }

    fn blob([n0, n1]: [usize; 2], centre: [f64; 2], width: f64) -> Vec<f64> {
        (0..n0 * n1)
            .map(|at| {
                let d0 = (at / n1) as f64 - centre[0];
                let d1 = (at % n1) as f64 - centre[1];
                (-0.5 * (d0 * d0 + d1 * d1) / (width * width)).exp()
            })
            .collect()
    }

    /// Mass, centre of mass and variance along each axis, in cells.
    fn moments(n1: usize, field: &[f64]) -> (f64, [f64; 2], [f64; 2]) {
        let mass: f64 = field.iter().sum();
        let mean = |of: &dyn Fn(usize) -> f64| -> f64 {
            let sum: f64 = field.iter().enumerate().map(|(at, z)| z * of(at)).sum();
            sum / mass
        };
        let centre = [mean(&|at| (at / n1) as f64), mean(&|at| (at % n1) as f64)];
        let variance = [
            mean(&|at| ((at / n1) as f64 - centre[0]).powi(2)),
            mean(&|at| ((at % n1) as f64 - centre[1]).powi(2)),
        ];
        (mass, centre, variance)
    }

    /// Linear interpolation at distance d between two cells keeps mass and centre and widens a blob
    /// by d (1 − d) cells² per step; mixing widens it by 2 · mixing along each axis. All exact
    /// where the blob does not touch the walls (8 widths away here: 1e-14).
    #[test]
    fn a_uniform_wind_moves_a_blob_and_widens_it_by_the_discrete_amount() {
        let points = [64, 80];
        let transport = Transport {
            drift: [0.1, 0.0],
            mixing: 0.01,
            ..STILL
        };
        let mut field = blob(points, [28.0, 36.0], 3.0);
        let n = field.len();
        let (mass, centre, variance) = moments(80, &field);
        let wind: Vec<f64> = (0..2 * n)
            .map(|at| if at < n { 0.1 } else { 0.4 })
            .collect();
        let mut density = unit_cells(points, transport);
        (0..20).for_each(|_| density.step(&mut field, &wind));
        let (mass_now, centre_now, variance_now) = moments(80, &field);
        assert!((mass_now / mass - 1.0).abs() < 1e-9);
        for (axis, d) in [0.2, 0.4].into_iter().enumerate() {
            assert!((centre_now[axis] - centre[axis] - 20.0 * d).abs() < 1e-6);
            let widened = 20.0 * (d * (1.0 - d) + 0.02);
            assert!((variance_now[axis] - variance[axis] - widened).abs() < 1e-5);
        }
    }

    /// Bilinear interpolation is exact on a plane, z = 2 + 0.1 i + 0.03 j, so each cell shows the
    /// displacement that arrives there: the wind's own components, times the coupling, each on its
    /// own axis.
    #[test]
    fn every_cell_follows_its_own_wind() {
        let points = [9, 12];
        let mut field: Vec<f64> = (0..108)
            .map(|at| 2.0 + 0.1 * (at / 12) as f64 + 0.03 * (at % 12) as f64)
            .collect();
        let start = field.clone();
        let wind: Vec<f64> = (0..216).map(|at| (at as f64 * 0.7).sin()).collect();
        let coupled = Transport {
            coupling: 0.3,
            ..STILL
        };
        unit_cells(points, coupled).step(&mut field, &wind);
        for (i, j) in (2..7).flat_map(|i| (2..10).map(move |j| (i, j))) {
            let at = i * 12 + j;
            let expected = start[at] - 0.1 * 0.3 * wind[at] - 0.03 * 0.3 * wind[108 + at];
            assert!((field[at] - expected).abs() < 1e-12, "at {i}, {j}");
        }
    }

    /// At a fixed displacement in cells, the step shrinks with the cells, and a distance takes
    /// proportionally more interpolations, each of which smears by dx²: first order.
    #[test]
    fn first_order_in_cells_at_a_fixed_displacement() {
        let error = |n: usize| {
            let profile = |x: f64| (-0.5 * ((x - 0.3) / 0.1f64).powi(2)).exp();
            let dx = 1.0 / (n - 1) as f64;
            let steps = n - 1; // 0.25 cells each: a quarter of the domain
            let mut field: Vec<f64> = (0..n * 5).map(|at| profile((at / 5) as f64 * dx)).collect();
            let mut density = unit_cells(
                [n, 5],
                Transport {
                    drift: [0.25, 0.0],
                    ..STILL
                },
            );
            let wind = vec![0.0; 2 * field.len()];
            (0..steps).for_each(|_| density.step(&mut field, &wind));
            (field.iter().enumerate())
                .map(|(at, z)| (z - profile((at / 5) as f64 * dx - 0.25)).abs())
                .fold(0.0, f64::max)
        };
        let order = (error(401) / error(801)).log2();
        assert!((order - 1.0).abs() < 0.1, "observed order {order}");
    }

    /// [0, 1] × [0, 1.25] on 64 × 80 points, published drift: 0.003 · 79 / 1.25 = 0.1896 cells.
    #[test]
    fn drift_is_a_velocity_in_lengths() {
        let transport = Transport {
            drift: [0.0, 0.003],
            ..STILL
        };
        let mut field = blob([64, 80], [30.0, 36.0], 3.0);
        let (_, before, _) = moments(80, &field);
        Density2d::new([64, 80], [1.0, 1.25], transport, 1).step(&mut field, &[0.0; 10240]);
        let (_, after, _) = moments(80, &field);
        assert!((after[0] - before[0]).abs() < 1e-9);
        assert!((after[1] - before[1] - 0.1896).abs() < 1e-9);
    }

    /// A storm along the diagonal of a 3-4-5 triangle moves the blob by 0.3 and 0.4 cells.
    #[test]
    fn displacements_are_shortened_along_their_direction() {
        let mut field = blob([40, 40], [20.0, 20.0], 2.0);
        let wind: Vec<f64> = (0..3200)
            .map(|at| if at < 1600 { 300.0 } else { -400.0 })
            .collect();
        let (_, before, _) = moments(40, &field);
        unit_cells([40, 40], STILL).step(&mut field, &wind);
        let (_, after, _) = moments(40, &field);
        assert!((after[0] - before[0] - 0.3).abs() < 1e-9);
        assert!((after[1] - before[1] + 0.4).abs() < 1e-9);
    }

    #[test]
    fn densities_are_cut_and_walls_repeat_the_third_cell() {
        let mut field: Vec<f64> = (0..48).map(|at| at as f64 - 10.0).collect();
        unit_cells([6, 8], STILL).step(&mut field, &[0.0; 96]);
        assert!(field.iter().all(|z| (0.0..=5.0).contains(z)));
        let mut field: Vec<f64> = (0..48).map(|at| at as f64 * 0.1).collect();
        unit_cells([6, 8], STILL).step(&mut field, &[0.0; 96]);
        let rows: Vec<&[f64]> = field.chunks(8).collect();
        assert_eq!((rows[0], rows[1]), (rows[2], rows[2]));
        assert_eq!((rows[4], rows[5]), (rows[3], rows[3]));
        for row in rows {
            assert_eq!(
                [row[0], row[1], row[6], row[7]],
                [row[2], row[2], row[5], row[5]]
            );
        }
    }

    #[test]
    fn single_precision_follows_double() {
        let published = Transport {
            coupling: 0.3,
            drift: [0.0, 0.003],
            mixing: 0.01,
            ..STILL
        };
        let mut wide = blob([64, 80], [30.0, 30.0], 6.0);
        let mut narrow: Vec<f32> = wide.iter().map(|&z| z as f32).collect();
        let wind: Vec<f64> = (0..10240)
            .map(|at| 0.02 * (at as f64 * 0.01).sin())
            .collect();
        let wind32: Vec<f32> = wind.iter().map(|&w| w as f32).collect();
        let mut density64 = Density2d::<f64>::new([64, 80], [1.0, 1.25], published, 1);
        let mut density32 = Density2d::<f32>::new([64, 80], [1.0, 1.25], published, 1);
        for _ in 0..100 {
            density64.step(&mut wide, &wind);
            density32.step(&mut narrow, &wind32);
        }
        for (a, b) in wide.iter().zip(&narrow) {
            assert!((a - f64::from(*b)).abs() < 1e-4);
        }
    }

    #[test]
    fn a_velocity_that_is_not_a_number_reaches_the_field() {
        let mut field = vec![1.0; 49];
        let mut wind = vec![0.0; 98];
        wind[24] = f64::NAN;
        unit_cells([7, 7], STILL).step(&mut field, &wind);
        assert!(field[24].is_nan());
    }

    #[test]
    fn the_smallest_grid_is_its_middle_cell() {
        let mut field: Vec<f64> = (0..25).map(|at| at as f64 * 0.1).collect();
        unit_cells([5, 5], STILL).step(&mut field, &[0.0; 50]);
        assert_eq!(field, [1.2000000000000002; 25]);
    }

    fn flows() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        let (n0, n1) = (9, 11);
        (
            prop::collection::vec(0.0..2.0f64, n0 * n1),
            prop::collection::vec(-2.0..2.0f64, 2 * n0 * n1),
        )
    }

    proptest! {
        #[test]
        fn no_new_extremes_appear((start, wind) in flows()) {
            let low = start.iter().copied().fold(f64::MAX, f64::min);
            let high = start.iter().copied().fold(0.0, f64::max);
            let mut field = start;
            unit_cells([9, 11], Transport { mixing: 0.1, ..STILL }).step(&mut field, &wind);
            prop_assert!(field.iter().all(|z| (low - 1e-12..=high + 1e-12).contains(z)));
        }

        /// Reversing a row-major field mirrors both axes; the wind turns round too.
        #[test]
        fn a_mirrored_start_gives_the_mirrored_field((start, wind) in flows()) {
            let mut density = unit_cells([9, 11], Transport { mixing: 0.1, ..STILL });
            let mut back: Vec<f64> = start.iter().rev().copied().collect();
            let opposite: Vec<f64> = (wind.chunks(99))
                .flat_map(|component| component.iter().rev().map(|w| -w))
                .collect();
            let mut field = start;
            density.step(&mut field, &wind);
            density.step(&mut back, &opposite);
            for (a, b) in field.iter().zip(back.iter().rev()) {
                prop_assert!((a - b).abs() < 1e-12);
            }
        }
    }
}
