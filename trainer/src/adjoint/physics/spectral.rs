//! Fields on a torus as sums of waves, in real numbers: transforms are products with small matrices.
//!
//! Along each axis the waves are cosines and sines, scaled to be orthonormal on the grid. The way
//! back is then the transpose of the way there, and the adjoint of either is the other.
//!
//! Half a period further on, a wave of even number repeats itself and one of odd number changes
//! sign. A field is therefore kept as four *tiles*: sums and differences of its halves along both
//! axes ([`fold`]). Waves of one parity fill only the tiles of that parity, which halves all
//! products, and with powers of two everything has whole registers. Tiles stand one after the other,
//! the parity along axis 1 first: tile 2q + p holds waves of parity p along axis 0 and q along axis
//! 1. A product of two fields has in tile s the sum over t of the products of tiles t and t XOR s.

use super::super::matrix;
use super::super::real::Real;
use pulp::Arch;
use std::f64::consts::{SQRT_2, TAU};

/// One of the functions that fields are sums of along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wave {
    number: usize,
    sine: bool,
}

/// The waves of one parity that `points` points can tell apart, half as many as there are points.
///
/// Even numbers fall and odd ones rise, so that after all even waves come all odd ones with the
/// longest of both in the middle: whichever waves are carried, they are neighbours.
fn waves(points: usize, parity: usize) -> Vec<Wave> {
    let mut waves: Vec<Wave> = (0..=points / 2)
        .filter(|number| number % 2 == parity)
        .flat_map(|number| [false, true].map(|sine| Wave { number, sine }))
        // These two have no sine on the grid.
        .filter(|wave| !wave.sine || ![0, points].contains(&(2 * wave.number)))
        .collect();
    if parity == 0 {
        waves.reverse();
    }
    waves
}

/// An axis of the torus and the grid on it that a transform leads to.
#[derive(Debug, Clone, Copy)]
pub struct Circle {
    /// Points of the grid that fields are given on; even.
    pub points: usize,
    /// Circumference.
    pub length: f64,
    /// Points of the grid that the transform leads to; even.
    pub grid: usize,
    /// The largest number of waves around the circle that the transform does not drop.
    pub carried: usize,
}

impl Circle {
    /// All waves, on the grid that fields are given on.
    pub fn whole(points: usize, length: f64) -> Self {
        Self {
            points,
            length,
            grid: points,
            carried: points / 2,
        }
    }

    /// Waves of either parity from the middle on that hold all carried ones; even, for the sake of
    /// whole tiles in the matrix products.
    fn band(&self) -> usize {
        let carried = |parity| {
            let all = waves(self.points, parity);
            all.iter().filter(|w| w.number <= self.carried).count()
        };
        let widest = carried(0).max(carried(1));
        widest.next_multiple_of(2).min(self.points / 2)
    }

    /// The wave at point `j` of the grid, scaled for sums over half the points; zero if it is not carried.
    fn sample(&self, Wave { number, sine }: Wave, what: Of, j: usize) -> f64 {
        if number > self.carried {
            return 0.0;
        }
        // The squares of a constant and of the wave from point to point do not average to a half.
        let lonely = [0, self.points].contains(&(2 * number));
        let height = if lonely { SQRT_2 } else { 2.0 } / (self.points as f64).sqrt();
        let (sin, cos) = (TAU * (number * j % self.grid) as f64 / self.grid as f64).sin_cos();
        // A zero that is only nearly one makes subnormal numbers, which are slow.
        let [sin, cos] = [sin, cos].map(|x| if x.abs() < 1e-14 { 0.0 } else { x });
        let wave_number = TAU / self.length * number as f64;
        height
            * match (what, sine) {
                (Of::Values, false) => cos,
                (Of::Values, true) => sin,
                (Of::Slopes, false) => -wave_number * sin,
                (Of::Slopes, true) => wave_number * cos,
            }
    }
}

/// What a transform gives of the waves along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The waves themselves.
    Values,
    /// Their derivatives.
    Slopes,
}

/// The waves of one parity at the points of half a grid.
#[derive(Debug, Clone)]
struct Samples<T> {
    waves: usize,
    points: usize,
    /// [waves, points]
    by_wave: Vec<T>,
    /// [points, waves]
    by_point: Vec<T>,
}

impl<T: Real> Samples<T> {
    /// Of the `band` waves in the middle.
    fn new(circle: Circle, what: Of, parity: usize, band: usize) -> Self {
        let (mut waves, points) = (waves(circle.points, parity), circle.grid / 2);
        match parity {
            0 => drop(waves.drain(..waves.len() - band)),
            _ => waves.truncate(band),
        }
        let by_wave: Vec<T> = waves
            .iter()
            .flat_map(|&wave| (0..points).map(move |j| circle.sample(wave, what, j)))
            .map(T::of)
            .collect();
        let mut by_point = vec![T::ZERO; by_wave.len()];
        matrix::transpose(&by_wave, band, &mut by_point);
        Self {
            waves: band,
            points,
            by_wave,
            by_point,
        }
    }
}

/// From modes to tiles of a grid and back, each way the transpose of the other.
///
/// Modes stand as [parity along axis 1, waves along axis 0, waves along axis 1 of that parity]; along
/// axis 0 only the [`band`](Self::band) that holds the carried ones.
#[derive(Debug, Clone)]
pub struct Transform<T> {
    arch: Arch,
    rows: [Samples<T>; 2],
    columns: [Samples<T>; 2],
}

impl<T: Real> Transform<T> {
    /// Gives `what` along each axis.
    pub fn new(torus: [Circle; 2], what: [Of; 2]) -> Self {
        let [down, across] = torus;
        let rows = |parity| Samples::new(down, what[0], parity, down.band());
        let columns = |parity| Samples::new(across, what[1], parity, across.points / 2);
        Self {
            arch: Arch::new(),
            rows: [0, 1].map(rows),
            columns: [0, 1].map(columns),
        }
    }

    /// Values of all tiles.
    pub fn grid_len(&self) -> usize {
        4 * self.rows[0].points * self.columns[0].points
    }

    /// Modes that it takes and gives.
    pub fn modes_len(&self) -> usize {
        4 * self.rows[0].waves * self.columns[0].waves
    }

    /// Values between the two axes' turns.
    pub fn halfway_len(&self) -> usize {
        4 * self.rows[0].waves * self.columns[0].points
    }

    /// The tiles of the modes; `halfway` is room.
    pub fn to_grid(&self, modes: &[T], halfway: &mut [T], grid: &mut [T]) {
        let halfway = &mut halfway[..self.halfway_len()];
        let blocks = halves(modes).into_iter().zip(halves_mut(halfway));
        for ((modes, halfway), columns) in blocks.zip(&self.columns) {
            matrix::multiply_into(self.arch, modes, &columns.by_wave, halfway, columns.waves);
        }
        let tiles = tiles(halfway).into_iter().zip(tiles_mut(grid));
        for ((halfway, grid), rows) in tiles.zip(self.rows.iter().cycle()) {
            matrix::multiply_into(self.arch, &rows.by_point, halfway, grid, rows.waves);
        }
    }

    /// Adds the modes of the tiles to `modes`; `halfway` is room.
    pub fn to_modes(&self, grid: &[T], halfway: &mut [T], modes: &mut [T]) {
        let halfway = &mut halfway[..self.halfway_len()];
        let tiles = tiles(grid).into_iter().zip(tiles_mut(halfway));
        for ((grid, halfway), rows) in tiles.zip(self.rows.iter().cycle()) {
            matrix::multiply_into(self.arch, &rows.by_wave, grid, halfway, rows.points);
        }
        let blocks = halves(halfway).into_iter().zip(halves_mut(modes));
        for ((halfway, modes), columns) in blocks.zip(&self.columns) {
            matrix::multiply(self.arch, halfway, &columns.by_point, modes, columns.points);
        }
    }
}

/// The waves along axis 0 that a transform of carried modes works on, among all.
#[derive(Debug, Clone, Copy)]
pub struct Band {
    /// Modes before it in each half of all modes.
    skipped: usize,
    /// Modes in each half of it.
    len: usize,
}

impl Band {
    /// The band of transforms over this torus.
    pub fn new([down, across]: [Circle; 2]) -> Self {
        let (band, columns) = (down.band(), across.points / 2);
        Self {
            skipped: (down.points / 2 - band) * columns,
            len: 2 * band * columns,
        }
    }

    /// Copies it from all modes.
    pub fn pick<T: Real>(&self, modes: &[T], band: &mut [T]) {
        for (modes, band) in halves(modes).into_iter().zip(halves_mut(band)) {
            band.copy_from_slice(&modes[self.skipped..][..self.len]);
        }
    }

    /// Copies it to where it stands among all modes, the others of which become zero.
    pub fn put<T: Real>(&self, band: &[T], modes: &mut [T]) {
        modes.fill(T::ZERO);
        for (modes, band) in halves_mut(modes).into_iter().zip(halves(band)) {
            modes[self.skipped..][..self.len].copy_from_slice(band);
        }
    }
}

/// A number for every mode of the torus, from its wave numbers along the axes.
pub fn table<T: Real>(torus: [Circle; 2], of: impl Fn(f64, f64) -> f64) -> Vec<T> {
    let [down, across] = torus.map(|circle| {
        [0, 1].map(|parity| -> Vec<f64> {
            let numbers = waves(circle.points, parity).into_iter();
            numbers
                .map(|wave| TAU / circle.length * wave.number as f64)
                .collect()
        })
    });
    let of = &of;
    let rows = || down.iter().flatten();
    across
        .iter()
        .flat_map(|across| rows().flat_map(move |&k| across.iter().map(move |&l| T::of(of(k, l)))))
        .collect()
}

/// Where the mean stands among all modes.
pub fn mean_index(torus: [Circle; 2]) -> usize {
    torus[0].points / 2 * (torus[1].points / 2) - 1
}

/// Tiles of a field of `columns` columns.
pub fn fold<T: Real>(field: &[T], columns: usize, tiles: &mut [T]) {
    let half = T::of(0.5);
    let (top, bottom) = halves(field).into();
    let [even, odd_rows, odd_columns, odd] = tiles_mut(tiles);
    let rows = top.chunks_exact(columns).zip(bottom.chunks_exact(columns));
    let width = columns / 2;
    for (row, (top, bottom)) in rows.enumerate() {
        let at = row * width;
        for j in 0..width {
            let (above, below) = (top[j] + top[j + width], bottom[j] + bottom[j + width]);
            even[at + j] = half * (above + below);
            odd_rows[at + j] = half * (above - below);
            let (above, below) = (top[j] - top[j + width], bottom[j] - bottom[j + width]);
            odd_columns[at + j] = half * (above + below);
            odd[at + j] = half * (above - below);
        }
    }
}

/// The field of `columns` columns from its tiles: inverse of [`fold`], and its transpose.
pub fn unfold<T: Real>(tiles: &[T], columns: usize, field: &mut [T]) {
    let half = T::of(0.5);
    let [even, odd_rows, odd_columns, odd] = self::tiles(tiles);
    let [top, bottom] = halves_mut(field);
    let rows = top
        .chunks_exact_mut(columns)
        .zip(bottom.chunks_exact_mut(columns));
    let width = columns / 2;
    for (row, (top, bottom)) in rows.enumerate() {
        let at = row * width;
        for j in 0..width {
            let (same, other) = (
                even[at + j] + odd_rows[at + j],
                odd_columns[at + j] + odd[at + j],
            );
            top[j] = half * (same + other);
            top[j + width] = half * (same - other);
            let (same, other) = (
                even[at + j] - odd_rows[at + j],
                odd_columns[at + j] - odd[at + j],
            );
            bottom[j] = half * (same + other);
            bottom[j + width] = half * (same - other);
        }
    }
}

/// The parts of different parity along axis 1.
fn halves<T>(all: &[T]) -> [&[T]; 2] {
    all.split_at(all.len() / 2).into()
}

fn halves_mut<T>(all: &mut [T]) -> [&mut [T]; 2] {
    all.split_at_mut(all.len() / 2).into()
}

/// The four tiles of a field.
#[inline(always)]
pub fn tiles<T>(all: &[T]) -> [&[T]; 4] {
    let tile = all.len() / 4;
    let (low, high) = all.split_at(2 * tile);
    let ((a, b), (c, d)) = (low.split_at(tile), high[..2 * tile].split_at(tile));
    [a, b, c, d]
}

/// The four tiles of a field.
#[inline(always)]
pub fn tiles_mut<T>(all: &mut [T]) -> [&mut [T]; 4] {
    let tile = all.len() / 4;
    let (low, high) = all.split_at_mut(2 * tile);
    let ((a, b), (c, d)) = (low.split_at_mut(tile), high[..2 * tile].split_at_mut(tile));
    [a, b, c, d]
}

/// Equal parts of a buffer, to be used apart.
pub fn parts<T, const N: usize>(room: &mut [T], length: usize) -> ([&mut [T]; N], &mut [T]) {
    let (used, rest) = room.split_at_mut(N * length);
    let mut parts = used.chunks_exact_mut(length);
    (
        std::array::from_fn(|_| parts.next().expect("N parts")),
        rest,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::wave;

    fn transformed(transform: &Transform<f64>, modes: &[f64]) -> Vec<f64> {
        let (mut halfway, mut grid) = (
            vec![7.0; transform.halfway_len()],
            vec![0.0; transform.grid_len()],
        );
        transform.to_grid(modes, &mut halfway, &mut grid);
        grid
    }

    fn modes_of(transform: &Transform<f64>, grid: &[f64]) -> Vec<f64> {
        let (mut halfway, mut modes) = (
            vec![7.0; transform.halfway_len()],
            vec![0.0; transform.modes_len()],
        );
        transform.to_modes(grid, &mut halfway, &mut modes);
        modes
    }

    fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).fold(0.0, |m, (a, b)| m.max((a - b).abs()))
    }

    #[test]
    fn the_longest_waves_stand_in_the_middle() {
        let numbers = |parity| -> Vec<usize> {
            let all = waves(12, parity);
            all.iter().map(|w| w.number).collect()
        };
        assert_eq!(numbers(0), [6, 4, 4, 2, 2, 0]);
        assert_eq!(numbers(1), [1, 1, 3, 3, 5, 5]);
        let third = Circle {
            carried: 21,
            ..Circle::whole(64, 1.0)
        };
        // Even: the mean and 2 · 10 waves up to 20; odd: 2 · 11 up to 21.
        assert_eq!(third.band(), 22);
        assert_eq!(Circle::whole(64, 1.0).band(), 32);
    }

    #[test]
    fn folding_and_all_waves_together_turn_fields_and_keep_their_length() {
        let torus = [Circle::whole(12, 3.0), Circle::whole(8, 1.0)];
        let whole = Transform::new(torus, [Of::Values; 2]);
        let field = wave(96, 1.3, 2.0);
        let (mut tiles, mut back) = (vec![0.0; 96], vec![0.0; 96]);
        fold(&field, 8, &mut tiles);
        let modes = modes_of(&whole, &tiles);
        let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        assert!((square(&modes) - square(&field)).abs() < 1e-11);
        // The mean's wave is 1/√96 everywhere.
        let mean = field.iter().sum::<f64>() / 96f64.sqrt();
        assert!((modes[mean_index(torus)] - mean).abs() < 1e-13);
        unfold(&transformed(&whole, &modes), 8, &mut back);
        assert!(largest_gap(&field, &back) < 1e-13);
    }

    /// 3 waves along axis 0 (length 2: k = 3π) and 2 along axis 1 (length 1: l = 4π).
    #[test]
    fn slopes_on_a_finer_grid_are_those_of_the_wave() {
        let (k, l) = (1.5 * TAU, 2.0 * TAU);
        let of = |n: [usize; 2], f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            let at = |j: usize| {
                f(
                    2.0 * (j / n[1]) as f64 / n[0] as f64,
                    (j % n[1]) as f64 / n[1] as f64,
                )
            };
            (0..n[0] * n[1]).map(at).collect()
        };
        let field = of([12, 8], &|x, y| (k * x + 0.4).sin() * (l * y - 0.2).cos());
        let mut tiles = vec![0.0; 96];
        fold(&field, 8, &mut tiles);
        let whole = Transform::new(
            [Circle::whole(12, 2.0), Circle::whole(8, 1.0)],
            [Of::Values; 2],
        );
        let modes = modes_of(&whole, &tiles);
        let fine =
            [(12, 2.0, 18, 5), (8, 1.0, 12, 3)].map(|(points, length, grid, carried)| Circle {
                points,
                length,
                grid,
                carried,
            });
        for (what, want) in [
            (
                [Of::Slopes, Of::Values],
                of([18, 12], &|x, y| {
                    k * (k * x + 0.4).cos() * (l * y - 0.2).cos()
                }),
            ),
            (
                [Of::Values, Of::Slopes],
                of([18, 12], &|x, y| {
                    -l * (k * x + 0.4).sin() * (l * y - 0.2).sin()
                }),
            ),
        ] {
            let mut found = vec![0.0; 18 * 12];
            unfold(
                &transformed(&Transform::new(fine, what), &modes),
                12,
                &mut found,
            );
            assert!(largest_gap(&found, &want) < 1e-12, "{what:?}");
        }
    }

    #[test]
    fn only_carried_waves_reach_the_grid_and_each_way_is_the_others_transpose() {
        let torus = [Circle {
            carried: 5,
            ..Circle::whole(16, 2.0)
        }; 2];
        let (all, band) = (wave(256, 0.7, 1.0), Band::new(torus));
        let slopes = Transform::new(torus, [Of::Slopes, Of::Values]);
        let mut modes = vec![0.0; slopes.modes_len()];
        assert_eq!(modes.len(), 4 * 6 * 8); // numbers 1, 3 and 5 make six odd waves
        band.pick(&all, &mut modes);
        let (grid, weight) = (transformed(&slopes, &modes), wave(256, 0.9, 1.0));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let back = modes_of(&slopes, &weight);
        assert!((dot(&grid, &weight) - dot(&modes, &back)).abs() < 1e-11);
        let mut spread = vec![7.0; 256];
        band.put(&back, &mut spread);
        assert!((dot(&all, &spread) - dot(&modes, &back)).abs() < 1e-11);
        let limit = TAU / 2.0 * 5.5;
        let carried: Vec<f64> = table(torus, |k, l| f64::from(u8::from(k < limit && l < limit)));
        for (spread, carried) in spread.iter().zip(carried) {
            assert!(carried == 1.0 || *spread == 0.0);
        }
    }
}
