//! The heat equation on a rectangle, zero on all four walls, by alternating directions.

use super::{Stepper, Tridiagonal};
use num_traits::Float;

/// Steps `z_t = ν ∇²z + f` with `z = 0` on the edges; fields are row-major, `[axis 0, axis 1]`.
///
/// Peaceman and Rachford's scheme: half a step implicit along axis 0 and explicit along axis 1, then
/// the other way round. With `D₀`, `D₁` the second differences along the axes and
/// `r_a = ν Δt / Δx_a²`,
///
/// ```text
/// (1 − r₀/2 D₀) z* = (1 + r₁/2 D₁) z  + Δt/2 f
/// (1 − r₁/2 D₁) z⁺ = (1 + r₀/2 D₀) z* + Δt/2 f
/// ```
///
/// on the interior; `z*` and `z⁺` are zero on the edges. Second order in time and space, and stable
/// for any step: each half may amplify a mode, their product never does.
#[derive(Debug, Clone)]
pub struct Heat2d<T> {
    points: [usize; 2],
    /// 1 − r/2 D along each axis.
    implicit: [Tridiagonal<T>; 2],
    half_r: [T; 2],
    half_dt: T,
    substeps: usize,
    /// The field after half a step, edges included.
    half: Vec<T>,
    /// The second half step's interior along axis 1, transposed so that its systems stand side by
    /// side too: `[axis 1 − edges, axis 0]`.
    turned: Vec<T>,
}

impl<T: Float> Heat2d<T> {
    /// A stepper for fields of `points[0]` rows of `points[1]` values, edges included, spaced `dx`
    /// along each axis. A control interval is `substeps` steps of `dt` each.
    ///
    /// # Panics
    /// If a coefficient is not positive and finite, or an axis has fewer than 2 points.
    pub fn new(
        points: [usize; 2],
        diffusivity: f64,
        dx: [f64; 2],
        dt: f64,
        substeps: usize,
    ) -> Self {
        assert!(points.iter().all(|&n| n >= 2), "edges are points");
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        let half_r = dx.map(|dx| 0.5 * diffusivity * dt / (dx * dx));
        assert!(
            half_r.iter().all(|&h| h > 0.0 && h.is_finite()) && dt > 0.0,
            "r = {half_r:?} · 2, dt = {dt}"
        );
        let implicit = [0, 1].map(|axis| {
            let h = half_r[axis];
            Tridiagonal::constant(points[axis] - 2, t(-h), t(1.0 + 2.0 * h))
                .expect("1 + r > r: diagonally dominant")
        });
        Self {
            points,
            implicit,
            half_r: half_r.map(t),
            half_dt: t(0.5 * dt),
            substeps,
            half: vec![T::zero(); points[0] * points[1]],
            turned: vec![T::zero(); (points[1] - 2) * turned_width(points[0])],
        }
    }

    /// Grid points along each axis, edges included.
    pub fn points(&self) -> [usize; 2] {
        self.points
    }

    fn substep(&mut self, field: &mut [T], force: &[T]) {
        self.half_step_along_axis_0(field, force);
        self.half_step_along_axis_1(field, force);
    }

    /// From `field` to `half`, whose edges stay zero.
    fn half_step_along_axis_0(&mut self, field: &[T], force: &[T]) {
        let [n0, n1] = self.points;
        let (h, half_dt) = (self.half_r[1], self.half_dt);
        let inside = n1..(n0 - 1) * n1;
        let rows = (self.half[inside.clone()].chunks_exact_mut(n1))
            .zip(field[inside.clone()].chunks_exact(n1))
            .zip(force[inside.clone()].chunks_exact(n1));
        for ((out, z), f) in rows {
            for (((out, z), f), _) in out[1..]
                .iter_mut()
                .zip(z.windows(3))
                .zip(&f[1..])
                .zip(2..n1)
            {
                *out = z[1] + h * (z[0] - (z[1] + z[1]) + z[2]) + half_dt * *f;
            }
        }
        self.implicit[0].solve_side_by_side(&mut self.half[inside], n1);
    }

    /// From `half` to `field`.
    fn half_step_along_axis_1(&mut self, field: &mut [T], force: &[T]) {
        let [n0, n1] = self.points;
        let width = turned_width(n0);
        let (h, half_dt) = (self.half_r[0], self.half_dt);
        for i in 1..n0 - 1 {
            let above = &self.half[(i - 1) * n1..i * n1];
            let here = &self.half[i * n1..(i + 1) * n1];
            let below = &self.half[(i + 1) * n1..(i + 2) * n1];
            let f = &force[i * n1..(i + 1) * n1];
            for j in 1..n1 - 1 {
                let curvature = above[j] - (here[j] + here[j]) + below[j];
                self.turned[(j - 1) * width + i] = here[j] + h * curvature + half_dt * f[j];
            }
        }
        self.implicit[1].solve_side_by_side(&mut self.turned, width);
        field[..n1].fill(T::zero());
        field[(n0 - 1) * n1..].fill(T::zero());
        for (i, row) in field.chunks_exact_mut(n1).enumerate().take(n0 - 1).skip(1) {
            row[0] = T::zero();
            row[n1 - 1] = T::zero();
            for (j, z) in row[1..n1 - 1].iter_mut().enumerate() {
                *z = self.turned[j * width + i];
            }
        }
    }
}

/// Values per row of the turned copy: an odd number of cache lines, because rows a power of two apart
/// would push each other out of the cache. The filling is zero and stays so.
fn turned_width(points: usize) -> usize {
    8 * (points.div_ceil(8) | 1)
}

impl<T: Float + Send> Stepper<T> for Heat2d<T> {
    fn step(&mut self, field: &mut [T], force: &[T]) {
        let n = self.half.len();
        assert!(field.len() == n && force.len() == n, "{n} grid points");
        for _ in 0..self.substeps {
            self.substep(field, force);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    /// sin(k₀πx₀) sin(k₁πx₁), exactly zero on the edges.
    fn mode([n0, n1]: [usize; 2], k: [usize; 2]) -> Vec<f64> {
        let sine = |n: usize, k: usize, j: usize| match j {
            0 => 0.0,
            j if j == n - 1 => 0.0,
            j => (k as f64 * PI * j as f64 / (n - 1) as f64).sin(),
        };
        (0..n0 * n1)
            .map(|at| sine(n0, k[0], at / n1) * sine(n1, k[1], at % n1))
            .collect()
    }

    /// A product of sines is an eigenvector of both second differences, with eigenvalues −4 s_a,
    /// s_a = sin²(k_a π / 2(N_a − 1)); one step multiplies it by the product over both axes of
    /// (1 − 2 r_a s_a) / (1 + 2 r_a s_a).
    #[test]
    fn sine_products_decay_by_the_discrete_factor() {
        let (points, dx, steps) = ([32, 20], [1.0 / 32.0, 0.03], 100);
        for k in [[1, 1], [2, 1], [5, 9], [30, 18]] {
            let factor: f64 = (0..2)
                .map(|axis| {
                    let s = (k[axis] as f64 * PI / (2.0 * (points[axis] - 1) as f64)).sin();
                    let twice_rs = 2.0 * 0.2 * 1e-3 / (dx[axis] * dx[axis]) * s * s;
                    ((1.0 - twice_rs) / (1.0 + twice_rs)).powi(steps)
                })
                .product();
            let start = mode(points, k);
            let mut field = start.clone();
            let mut heat = Heat2d::new(points, 0.2, dx, 1e-3, steps as usize);
            heat.step(&mut field, &vec![0.0; start.len()]);
            for (now, before) in field.iter().zip(&start) {
                assert!((now - factor * before).abs() < 1e-12, "mode {k:?}");
            }
        }
    }

    /// Largest error at t = 0.1 against exp(−ν(k₀² + k₁²)π²t) sin sin for two modes together.
    fn error_against_analytic(n: usize, steps: usize) -> f64 {
        let (diffusivity, time) = (0.2, 0.1);
        let (points, dx) = ([n, n], [1.0 / (n - 1) as f64; 2]);
        let modes = [[1, 2], [3, 1]].map(|k| (k, mode(points, k)));
        let decay = |k: [usize; 2]| {
            let squares = (k[0] * k[0] + k[1] * k[1]) as f64;
            (-squares * PI * PI * diffusivity * time).exp()
        };
        let sum = |weight: &dyn Fn([usize; 2]) -> f64| -> Vec<f64> {
            let [(k, a), (l, b)] = &modes;
            (a.iter().zip(b))
                .map(|(a, b)| weight(*k) * a + weight(*l) * b)
                .collect()
        };
        let mut field = sum(&|_| 1.0);
        let mut heat = Heat2d::new(points, diffusivity, dx, time / steps as f64, steps);
        heat.step(&mut field, &vec![0.0; n * n]);
        (field.iter().zip(sum(&decay))).fold(0.0, |worst, (a, b)| worst.max((a - b).abs()))
    }

    #[test]
    fn second_order_in_time() {
        // The grid's error, 1e-5, is 2 % of what the finer step leaves.
        let order = (error_against_analytic(301, 5) / error_against_analytic(301, 10)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    #[test]
    fn second_order_in_space() {
        let order = (error_against_analytic(17, 1000) / error_against_analytic(33, 1000)).log2();
        assert!((order - 2.0).abs() < 0.1, "observed order {order}");
    }

    /// A steady force balances diffusion: z = f / (ν (λ₀ + λ₁)) for a sine product, λ_a the discrete
    /// eigenvalues. With the force in both halves the splitting leaves no error: for
    /// h_a = Δt ν λ_a / 2, the fixed point of (1 + h₀) z* = (1 − h₁) z + ½Δt f and
    /// (1 + h₁) z = (1 − h₀) z* + ½Δt f is z = ½Δt f / (h₀ + h₁).
    /// It is approached like exp(−2π²νt), 2e-14 at t = 8.
    #[test]
    fn a_steady_force_holds_a_steady_field() {
        let (n, dx) = (33, 1.0 / 32.0);
        let lambda = 4.0 * (PI * dx / 2.0).sin().powi(2) / (dx * dx);
        let steady = mode([n, n], [1, 1]);
        let force: Vec<f64> = steady.iter().map(|z| 0.2 * 2.0 * lambda * z).collect();
        let mut field = vec![0.0; n * n];
        Heat2d::new([n, n], 0.2, [dx; 2], 2e-3, 4000).step(&mut field, &force);
        for (z, expected) in field.iter().zip(&steady) {
            assert!((z - expected).abs() < 1e-10, "{z} vs {expected}");
        }
    }

    #[test]
    fn single_precision_follows_double() {
        let points = [32, 24];
        let mut wide = mode(points, [3, 2]);
        let mut narrow: Vec<f32> = wide.iter().map(|&v| v as f32).collect();
        let dx = [1.0 / 32.0; 2];
        Heat2d::<f64>::new(points, 0.2, dx, 1e-3, 300).step(&mut wide, &[1.0; 768]);
        Heat2d::<f32>::new(points, 0.2, dx, 1e-3, 300).step(&mut narrow, &[1.0; 768]);
        for (a, b) in wide.iter().zip(&narrow) {
            assert!((a - f64::from(*b)).abs() < 1e-5);
        }
    }

    #[test]
    fn substeps_are_steps_under_the_same_force() {
        let start = mode([9, 7], [1, 2]);
        let (mut once, mut often) = (start.clone(), start);
        Heat2d::new([9, 7], 0.2, [0.1; 2], 1e-3, 3).step(&mut once, &[1.0; 63]);
        let mut single = Heat2d::new([9, 7], 0.2, [0.1; 2], 1e-3, 1);
        (0..3).for_each(|_| single.step(&mut often, &[1.0; 63]));
        assert_eq!(once, often);
    }

    #[test]
    fn the_smallest_grids_are_fine() {
        for points in [[2, 2], [2, 5], [5, 2], [3, 3], [3, 2]] {
            let n = points[0] * points[1];
            let mut field = vec![1.0; n];
            Heat2d::new(points, 0.2, [0.1; 2], 1e-3, 1).step(&mut field, &vec![1.0; n]);
            let inside = (points[0] - 2) * (points[1] - 2);
            assert_eq!(field.iter().filter(|z| **z != 0.0).count(), inside);
        }
    }

    fn transposed([n0, n1]: [usize; 2], field: &[f64]) -> Vec<f64> {
        (0..n0 * n1)
            .map(|at| field[(at % n0) * n1 + at / n0])
            .collect()
    }

    fn emptied_edges([n0, n1]: [usize; 2], mut field: Vec<f64>) -> Vec<f64> {
        for (at, z) in field.iter_mut().enumerate() {
            let (i, j) = (at / n1, at % n1);
            if i == 0 || i == n0 - 1 || j == 0 || j == n1 - 1 {
                *z = 0.0;
            }
        }
        field
    }

    const GRID: [usize; 2] = [9, 12];

    proptest! {
        /// Without force the factors of the two halves commute, so it does not matter which axis
        /// comes first.
        #[test]
        fn the_axes_are_interchangeable(start in prop::collection::vec(-5.0..5.0f64, 108), r in 0.01..50.0f64) {
            let start = emptied_edges(GRID, start);
            let mut turned = transposed(GRID, &start);
            let mut field = start;
            Heat2d::new(GRID, r, [1.0, 1.5], 1.0, 2).step(&mut field, &[0.0; 108]);
            Heat2d::new([12, 9], r, [1.5, 1.0], 1.0, 2).step(&mut turned, &[0.0; 108]);
            for (a, b) in transposed(GRID, &field).iter().zip(&turned) {
                prop_assert!((a - b).abs() < 1e-11, "{a} vs {b}");
            }
        }

        #[test]
        fn a_mirrored_start_gives_the_mirrored_field(start in prop::collection::vec(-5.0..5.0f64, 108)) {
            let step = |field: &[f64]| {
                let mut field = field.to_vec();
                Heat2d::new(GRID, 0.2, [0.1, 0.2], 0.01, 3).step(&mut field, &start);
                field
            };
            // Reversing a row-major field mirrors both axes; the force must be mirrored with it.
            let ahead = step(&start);
            let reversed: Vec<f64> = start.iter().rev().copied().collect();
            let mut back = reversed.clone();
            Heat2d::new(GRID, 0.2, [0.1, 0.2], 0.01, 3).step(&mut back, &reversed);
            for (a, b) in ahead.iter().zip(back.iter().rev()) {
                prop_assert!((a - b).abs() < 1e-12);
            }
        }

        #[test]
        fn steps_are_linear(
            a in prop::collection::vec(-5.0..5.0f64, 108),
            b in prop::collection::vec(-5.0..5.0f64, 108),
            weight in -3.0..3.0f64,
        ) {
            let step = |field: &[f64]| {
                let mut stepped = field.to_vec();
                Heat2d::new(GRID, 0.2, [0.1, 0.2], 0.01, 2).step(&mut stepped, field);
                stepped
            };
            let mixed: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + weight * y).collect();
            let apart = step(&a).into_iter().zip(step(&b)).map(|(x, y)| x + weight * y);
            for (x, y) in step(&mixed).into_iter().zip(apart) {
                prop_assert!((x - y).abs() < 1e-11);
            }
        }

        /// Every mode's factor lies in (−1, 1): without forcing the mean square cannot grow.
        #[test]
        fn energy_decays_without_forcing(start in prop::collection::vec(-5.0..5.0f64, 108), r in 0.01..50.0f64) {
            let mut field = emptied_edges(GRID, start);
            let mut heat = Heat2d::new(GRID, r, [1.0, 0.7], 1.0, 1);
            let energy = |f: &[f64]| f.iter().map(|z| z * z).sum::<f64>();
            for _ in 0..5 {
                let before = energy(&field);
                heat.step(&mut field, &[0.0; 108]);
                prop_assert!(energy(&field) <= before * (1.0 + 1e-12));
            }
        }
    }
}
