//! A density in a flow, conserved: what the published density problem writes, as finite volumes.

use super::Stepper;
use num_traits::Float;

/// Steps `z_t + ∇·(q z) = ν ∇²z` with no flux through the walls, `q = drift + w`.
///
/// Fields are row-major, `[axis 0, axis 1]`. The force on this equation is a velocity: `step` takes
/// `w`, the agents' velocities spread by their kernels, as `[component, axis 0, axis 1]`, twice as
/// many values as the field has.
///
/// Every grid point is a cell that exchanges mass with its neighbours, along one axis after the
/// other (and in the other order every second substep). Faces stand half-way between points, and walls
/// on the first and the last point, so that the cells there are half as wide: their density changes
/// twice as much for the same flow, and [`Grid::integral`](crate::grid::Grid::integral) is the mass.
/// With `c = q Δt / Δx` the Courant number on the face between cells, what flows through it in a step
/// is
///
/// ```text
/// c (z_up ± ½ (1 − |c|) s_up) − (ν Δt / Δx²) (z_right − z_left)
/// ```
///
/// where `up` is the upwind cell and `s` its slope, the smaller of the differences to its two
/// neighbours if they agree in sign and else zero (minmod). What leaves a cell enters the next, so
/// mass is conserved to rounding; and under [`AdvectionDiffusion2d::largest_stable_dt`] densities
/// stay non-negative. Second order in space where the field is smooth and not extreme; first order
/// in time for diffusion.
#[derive(Debug, Clone)]
pub struct AdvectionDiffusion2d<T> {
    points: [usize; 2],
    /// Δt / Δx.
    courant_per_velocity: [T; 2],
    drift: [T; 2],
    /// ν Δt / Δx².
    exchange: [T; 2],
    substeps: usize,
    /// One line of the grid and the slope in each of its cells.
    line: Vec<T>,
    slope: Vec<T>,
}

impl<T: Float> AdvectionDiffusion2d<T> {
    /// A stepper for densities on `points[0]` rows of `points[1]` points, `dx` apart, walls included.
    /// A control interval is `substeps` steps of `dt` each.
    ///
    /// # Panics
    /// If an axis has no points, or `dx` or `dt` is not positive, or `diffusivity` is negative.
    pub fn new(
        points: [usize; 2],
        dx: [f64; 2],
        diffusivity: f64,
        drift: [f64; 2],
        dt: f64,
        substeps: usize,
    ) -> Self {
        assert!(points.iter().all(|&n| n > 0), "a grid has points");
        assert!(dx.iter().all(|&h| h > 0.0) && dt > 0.0, "{dx:?}, dt = {dt}");
        assert!(diffusivity >= 0.0, "diffusivity = {diffusivity}");
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        let longest = points[0].max(points[1]);
        Self {
            points,
            courant_per_velocity: dx.map(|h| t(dt / h)),
            drift: drift.map(t),
            exchange: dx.map(|h| t(diffusivity * dt / (h * h))),
            substeps,
            line: vec![T::zero(); longest],
            slope: vec![T::zero(); longest],
        }
    }

    /// The longest step in flows whose velocity along either axis stays below `speed`.
    ///
    /// A cell must not lose more than it has. With Courant numbers `a`, `b` out of its two faces
    /// along an axis and diffusive exchange `e` it keeps at least
    /// `(1 − a − b)(1 − ½|a − b|) − 2e` of its own density (a minmod slope is at most that density);
    /// for `a, b ≤ C` this is smallest, `1 − 2C − 2e`, where the flow diverges at full speed. A half
    /// cell at a wall has one face and no slope, and keeps as much: `1 − 2(C + e)`. So
    /// `Δt ≤ 1 / 2(speed/Δx + ν/Δx²)`, for the finer of the two axes.
    pub fn largest_stable_dt(dx: [f64; 2], diffusivity: f64, speed: f64) -> f64 {
        let rate = |h: f64| speed / h + diffusivity / (h * h);
        0.5 / rate(dx[0]).max(rate(dx[1]))
    }

    /// Grid points along each axis.
    pub fn points(&self) -> [usize; 2] {
        self.points
    }

    fn sweep(&mut self, field: &mut [T], wind: &[T], axis: usize) {
        let [_, n1] = self.points;
        let length = self.points[axis];
        let (stride, across) = [(n1, 1), (1, n1)][axis];
        // Cells at the walls are half as wide.
        let per_width = |i: usize, flux: T| match i == 0 || i == length - 1 {
            true => flux + flux,
            false => flux,
        };
        for first in (0..self.points[1 - axis]).map(|line| line * across) {
            let cells = || (0..length).map(|i| first + i * stride);
            for (z, at) in self.line.iter_mut().zip(cells()) {
                *z = field[at];
            }
            for i in 1..length.saturating_sub(1) {
                let z = &self.line;
                self.slope[i] = minmod(z[i] - z[i - 1], z[i + 1] - z[i]);
            }
            // Walls have no neighbour to take a slope from.
            self.slope[0] = T::zero();
            self.slope[length - 1] = T::zero();
            for (i, (left, right)) in cells().zip(cells().skip(1)).enumerate() {
                let velocity = half::<T>() * (wind[left] + wind[right]) + self.drift[axis];
                let flux = self.flux(i, velocity * self.courant_per_velocity[axis], axis);
                field[left] = field[left] - per_width(i, flux);
                field[right] = field[right] + per_width(i + 1, flux);
            }
        }
    }

    /// What flows from cell `i` of the line to the next at Courant number `c`.
    fn flux(&self, i: usize, c: T, axis: usize) -> T {
        let (z, s) = (&self.line, &self.slope);
        let reach = half::<T>() * (T::one() - c.abs());
        let face = if c > T::zero() {
            z[i] + reach * s[i]
        } else {
            z[i + 1] - reach * s[i + 1]
        };
        c * face - self.exchange[axis] * (z[i + 1] - z[i])
    }
}

fn half<T: Float>() -> T {
    (T::one() + T::one()).recip()
}

/// The smaller of two slopes if they agree in sign, else zero.
fn minmod<T: Float>(a: T, b: T) -> T {
    if a * b <= T::zero() {
        T::zero()
    } else if a.abs() < b.abs() {
        a
    } else {
        b
    }
}

impl<T: Float + Send> Stepper<T> for AdvectionDiffusion2d<T> {
    /// `force` is the agents' velocity field: two components.
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.points[0] * self.points[1];
        assert!(
            field.len() == n && force.len() == 2 * n,
            "{n} grid points and a velocity of two components"
        );
        for substep in 0..self.substeps {
            for axis in [substep % 2, 1 - substep % 2] {
                self.sweep(field, &force[axis * n..(axis + 1) * n], axis);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Edge, Grid};
    use proptest::prelude::*;
    use std::f64::consts::PI;

    /// A flow along axis 0 only, on a grid `n` points long and one wide over [0, 1].
    fn channel(
        n: usize,
        diffusivity: f64,
        drift: f64,
        dt: f64,
        substeps: usize,
    ) -> AdvectionDiffusion2d<f64> {
        let dx = 1.0 / (n - 1) as f64;
        AdvectionDiffusion2d::new([n, 1], [dx, 1.0], diffusivity, [drift, 0.0], dt, substeps)
    }

    /// cos(kπx) at the grid points is an eigenvector of diffusion between walls: each step multiplies
    /// it by 1 − 4 e sin²(kπ / 2(N − 1)), e = ν Δt / Δx².
    #[test]
    fn cosines_decay_by_the_discrete_factor() {
        let (n0, n1, k) = (20, 30, [3, 4]);
        let cosine =
            |n: usize, k: usize, j: usize| (k as f64 * PI * j as f64 / (n - 1) as f64).cos();
        let start: Vec<f64> = (0..n0 * n1)
            .map(|at| cosine(n0, k[0], at / n1) * cosine(n1, k[1], at % n1))
            .collect();
        let exchange = [0.1, 0.15]; // 1e-3 · 1e-2 / dx²
        let dx = exchange.map(|e: f64| (1e-5 / e).sqrt());
        let factor: f64 = ([n0, n1].into_iter().zip(k).zip(exchange))
            .map(|((n, k), e)| {
                let s = (k as f64 * PI / (2 * (n - 1)) as f64).sin().powi(2);
                (1.0 - 4.0 * e * s).powi(50)
            })
            .product();
        let mut field = start.clone();
        AdvectionDiffusion2d::new([n0, n1], dx, 1e-3, [0.0; 2], 1e-2, 50)
            .step(&mut field, &vec![0.0; 2 * n0 * n1]);
        for (now, before) in field.iter().zip(&start) {
            assert!((now - factor * before).abs() < 1e-12);
        }
    }

    /// cos(2πx) cos(πy/1.25) in the room of 1 × 1.25 at rest: walls stand on its first and last
    /// points, so the mode decays by exp(−ν(4 + 0.64)π²t), to second order in the spacing (Δt ∝ Δx²,
    /// so that the error in time falls as fast). The mass, which is zero, stays.
    #[test]
    fn modes_of_the_room_decay_to_second_order() {
        let error = |n: usize| {
            let room = Grid::plane([8 * n + 1, 10 * n + 1], [1.0, 1.25], Edge::Wall);
            let (time, substeps) = (0.5, 20 * n * n);
            let start: Vec<f64> = (0..room.len())
                .map(|at| room.place(at))
                .map(|[x, y]| (2.0 * PI * x).cos() * (PI * y / 1.25).cos())
                .collect();
            let dx = [0, 1].map(|axis| room.spacing(axis));
            let mut field = start.clone();
            let dt = time / substeps as f64;
            AdvectionDiffusion2d::new(room.points, dx, 0.01, [0.0; 2], dt, substeps)
                .step(&mut field, &vec![0.0; 2 * room.len()]);
            assert!(room.integral(&field).abs() < 1e-14);
            let decay = (-0.01 * 4.64 * PI * PI * time).exp();
            (field.iter().zip(&start))
                .map(|(z, z0)| (z - decay * z0).abs())
                .fold(0.0, f64::max)
        };
        let errors = [1, 2, 4].map(error);
        for pair in errors.windows(2) {
            assert!(((pair[0] / pair[1]).log2() - 2.0).abs() < 0.1, "{errors:?}");
        }
    }

    /// Error of cos 2πx at time 1 if it should have decayed by exp(−`rate`).
    fn diffusion_error(n: usize, steps: usize, rate: f64) -> f64 {
        let wave = |j: usize| (2.0 * PI * j as f64 / (n - 1) as f64).cos();
        let mut field: Vec<f64> = (0..n).map(wave).collect();
        channel(n, 0.01, 0.0, 1.0 / steps as f64, steps).step(&mut field, &vec![0.0; 2 * n]);
        (field.iter().enumerate())
            .map(|(j, z)| (z - (-rate).exp() * wave(j)).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn diffusion_is_first_order_in_time_and_second_in_space() {
        // In time, against the rate on the grid, 4 ν/Δx² sin²(π/(N − 1)); in space, against ν (2π)².
        let on_grid = 0.01 * 4.0 * 50f64.powi(2) * (PI / 50.0).sin().powi(2);
        let error = |steps| diffusion_error(51, steps, on_grid);
        let order = (error(100) / error(200)).log2();
        assert!((order - 1.0).abs() < 0.05, "observed order in time {order}");
        let error = |n| diffusion_error(n, 20_000, 0.01 * (2.0 * PI).powi(2));
        let order = (error(21) / error(41)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order in space {order}");
    }

    /// Mean error of a blob carried over 0.4, with nothing at the walls, at Courant number 0.4, time and space refined together.
    /// The slopes of extremes are zero, which costs first order at one point, so the mean error is
    /// of order 2 less a little.
    #[test]
    fn advection_is_second_order_in_the_mean() {
        let error = |n: usize| {
            let profile = |x: f64| (-0.5 * ((x - 0.3) / 0.06f64).powi(2)).exp();
            let place = |j: usize| j as f64 / n as f64;
            let mut field: Vec<f64> = (0..=n).map(|j| profile(place(j))).collect();
            channel(n + 1, 0.0, 1.0, 0.4 / n as f64, n).step(&mut field, &vec![0.0; 2 * n + 2]);
            (field.iter().enumerate())
                .map(|(j, z)| (z - profile(place(j) - 0.4)).abs())
                .sum::<f64>()
                / n as f64
        };
        let order = (error(200) / error(400)).log2();
        assert!((1.7..2.2).contains(&order), "observed order {order}");
    }

    /// At the bound an isolated cell in a diverging flow is emptied exactly; 10 % beyond, it owes.
    #[test]
    fn the_longest_step_just_empties_a_cell() {
        let lowest = |share: f64| {
            let dx = [0.1, 0.1];
            let dt = share * AdvectionDiffusion2d::<f64>::largest_stable_dt(dx, 0.05, 1.0);
            let mut field = vec![0.0, 0.0, 1.0, 0.0, 0.0];
            // Faces see the mean of their cells: −1 to the left of the middle and 1 to the right.
            let wind = [-1.0, -2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
            AdvectionDiffusion2d::new([5, 1], dx, 0.05, [0.0; 2], dt, 1).step(&mut field, &wind);
            field[2]
        };
        assert!(lowest(1.0).abs() < 1e-12);
        assert!(lowest(1.1) < -0.05);
    }

    #[test]
    fn single_precision_follows_double() {
        let mut wide: Vec<f64> = (0..600)
            .map(|at| (at as f64 * 0.01).sin().powi(2))
            .collect();
        let mut narrow: Vec<f32> = wide.iter().map(|&z| z as f32).collect();
        let build = ([20, 30], [0.05, 0.04], 0.01, [0.0, 0.1], 5e-3, 100);
        let (points, dx, diffusivity, drift, dt, substeps) = build;
        AdvectionDiffusion2d::<f64>::new(points, dx, diffusivity, drift, dt, substeps)
            .step(&mut wide, &[0.3; 1200]);
        AdvectionDiffusion2d::<f32>::new(points, dx, diffusivity, drift, dt, substeps)
            .step(&mut narrow, &[0.3; 1200]);
        for (a, b) in wide.iter().zip(&narrow) {
            // Densities pile up at the walls to about 20.
            assert!((a - f64::from(*b)).abs() < 1e-4, "{a} vs {b}");
        }
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for points in [[1, 1], [1, 2], [2, 1], [2, 2]] {
            let n = points[0] * points[1];
            let mut field = vec![1.0; n];
            AdvectionDiffusion2d::new(points, [0.1; 2], 0.01, [0.0; 2], 1e-3, 1)
                .step(&mut field, &vec![0.0; 2 * n]);
            assert_eq!(field, vec![1.0; n]);
        }
    }

    fn flows() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        (
            prop::collection::vec(0.0..2.0f64, 63),
            prop::collection::vec(-1.0..1.0f64, 126),
        )
    }

    fn stepped(start: &[f64], wind: &[f64], substeps: usize) -> Vec<f64> {
        let (dx, drift) = ([0.1, 0.2], [0.0, 0.2]);
        let dt = AdvectionDiffusion2d::<f64>::largest_stable_dt(dx, 0.02, 1.2);
        let mut field = start.to_vec();
        AdvectionDiffusion2d::new([9, 7], dx, 0.02, drift, dt, substeps).step(&mut field, wind);
        field
    }

    proptest! {
        #[test]
        fn mass_is_conserved_and_densities_stay_positive((start, wind) in flows()) {
            let field = stepped(&start, &wind, 50);
            let mass = |f: &[f64]| Grid::plane([9, 7], [0.8, 1.2], Edge::Wall).integral(f);
            prop_assert!((mass(&field) / mass(&start) - 1.0).abs() < 1e-13);
            prop_assert!(field.iter().all(|z| *z >= -1e-12));
        }

        /// Mirrored along axis 0, along which there is no drift, with the wind turned round there.
        #[test]
        fn a_mirrored_start_gives_the_mirrored_field((start, wind) in flows()) {
            let mirrored = |f: &[f64]| f.chunks(7).rev().flatten().copied().collect::<Vec<f64>>();
            let opposite: Vec<f64> = (mirrored(&wind[..63]).iter().map(|w| -w))
                .chain(mirrored(&wind[63..]))
                .collect();
            let back = stepped(&mirrored(&start), &opposite, 5);
            for (a, b) in mirrored(&stepped(&start, &wind, 5)).iter().zip(&back) {
                prop_assert!((a - b).abs() < 1e-12);
            }
        }
    }
}
