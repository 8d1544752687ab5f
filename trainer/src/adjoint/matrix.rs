//! The two matrix products of a small network, on row-major slices: rows are agents.
//!
//! The products of a training step are a few dozen rows high: a blocking library spends its time
//! packing them. These loops keep a tile of the result in registers and stream the rest from L1,
//! with the instruction set chosen at run time.

use super::real::Real;
use pulp::{Arch, Simd, WithSimd};

/// Rows of the result held in registers: with three registers to a row, as many as AVX-512 has
/// room for …
const TALL: usize = 8;
/// … and AVX2.
const SHORT: usize = 4;

/// `y += x · w` with `x` [rows, inputs], `w` [inputs, outputs], `y` [rows, outputs].
pub fn multiply<T: Real>(arch: Arch, x: &[T], w: &[T], y: &mut [T], inputs: usize) {
    let outputs = w.len() / inputs;
    debug_assert_eq!(x.len() / inputs, y.len() / outputs);
    arch.dispatch(Product {
        left: Left::Rows(x),
        right: w,
        result: y,
        adds: true,
        inner: inputs,
        outputs,
    });
}

/// `y = x · w`: [`multiply`] into what need not have been cleared.
pub fn multiply_into<T: Real>(arch: Arch, x: &[T], w: &[T], y: &mut [T], inputs: usize) {
    let outputs = w.len() / inputs;
    debug_assert_eq!(x.len() / inputs, y.len() / outputs);
    arch.dispatch(Product {
        left: Left::Rows(x),
        right: w,
        result: y,
        adds: false,
        inner: inputs,
        outputs,
    });
}

/// `dw += xᵀ · dy` with `x` [rows, inputs], `dy` [rows, outputs], `dw` [inputs, outputs].
pub fn multiply_transposed<T: Real>(arch: Arch, x: &[T], dy: &[T], dw: &mut [T], inputs: usize) {
    let outputs = dw.len() / inputs;
    debug_assert_eq!(x.len() / inputs, dy.len() / outputs);
    arch.dispatch(Product {
        left: Left::Columns(x),
        right: dy,
        result: dw,
        adds: true,
        inner: x.len() / inputs,
        outputs,
    });
}

/// `out[outputs][inputs] = w[inputs][outputs]ᵀ`.
pub fn transpose<T: Real>(w: &[T], inputs: usize, out: &mut [T]) {
    let outputs = w.len() / inputs;
    for (i, row) in w.chunks_exact(outputs).enumerate() {
        for (o, &value) in row.iter().enumerate() {
            out[o * inputs + i] = value;
        }
    }
}

/// The left factor.
#[derive(Clone, Copy)]
enum Left<'a, T> {
    /// As it is.
    Rows(&'a [T]),
    /// Transposed: a row of the product needs a column of it.
    Columns(&'a [T]),
}

/// `result (+)= left · right`, `right` and `result` row-major with `outputs` columns.
struct Product<'a, T> {
    left: Left<'a, T>,
    right: &'a [T],
    result: &'a mut [T],
    /// Whether to what the result holds.
    adds: bool,
    inner: usize,
    outputs: usize,
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let rows = self.result.len() / self.outputs;
        let mut row = 0;
        // Only registers of 64 bytes come in a number that holds the tall tile.
        if size_of::<T::Vector<S>>() == 64 {
            while row + TALL <= rows {
                self.stripe::<S, TALL>(simd, row);
                row += TALL;
            }
        }
        while row + SHORT <= rows {
            self.stripe::<S, SHORT>(simd, row);
            row += SHORT;
        }
        while row < rows {
            self.stripe::<S, 1>(simd, row);
            row += 1;
        }
    }
}

impl<T: Real> Product<'_, T> {
    #[inline(always)]
    fn stripe<S: Simd, const R: usize>(&mut self, simd: S, row: usize) {
        let lanes = T::lanes::<S>();
        let mut column = 0;
        while column < self.outputs {
            let vectors = (self.outputs - column).div_ceil(lanes);
            column += lanes
                * match vectors {
                    1 => self.tile::<S, R, 1>(simd, row, column),
                    3 => self.tile::<S, R, 3>(simd, row, column),
                    // Sums that wait for each other's latency are best had in greater number.
                    8.. if R == 1 => self.tile::<S, R, 8>(simd, row, column),
                    4.. if R == 1 => self.tile::<S, R, 4>(simd, row, column),
                    _ => self.tile::<S, R, 2>(simd, row, column),
                };
        }
    }

    /// `R` rows × `V` registers of the result; the last register may stick out on the right.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) -> usize {
        let (lanes, outputs) = (T::lanes::<S>(), self.outputs);
        let width = (V * lanes).min(outputs - column);
        let mut sum = [[T::splat(simd, T::ZERO); V]; R];
        if self.adds {
            for (r, sum) in sum.iter_mut().enumerate() {
                let from = &self.result[(row + r) * outputs + column..][..width];
                *sum = vectors(simd, from);
            }
        }
        let right = self.right[column..].chunks(outputs);
        match self.left {
            Left::Rows(left) => {
                let mut lines = [left; R];
                for (r, line) in lines.iter_mut().enumerate() {
                    *line = &left[(row + r) * self.inner..][..self.inner];
                }
                for (k, right) in (0..self.inner).zip(right) {
                    let right: [_; V] = vectors(simd, &right[..width]);
                    for (line, sum) in lines.iter().zip(&mut sum) {
                        accumulate(simd, line[k], &right, sum);
                    }
                }
            }
            Left::Columns(left) => {
                let rows = self.result.len() / outputs;
                for (left, right) in left[row..].chunks(rows).zip(right) {
                    let right: [_; V] = vectors(simd, &right[..width]);
                    for (&factor, sum) in left[..R].iter().zip(&mut sum) {
                        accumulate(simd, factor, &right, sum);
                    }
                }
            }
        }
        for (r, sum) in sum.into_iter().enumerate() {
            let to = &mut self.result[(row + r) * outputs + column..][..width];
            for (v, sum) in sum.into_iter().enumerate() {
                T::store(simd, &mut to[v * lanes..], sum);
            }
        }
        V
    }
}

#[inline(always)]
fn vectors<T: Real, S: Simd, const V: usize>(simd: S, from: &[T]) -> [T::Vector<S>; V] {
    let mut vectors = [T::splat(simd, T::ZERO); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        *vector = T::load(simd, &from[v * T::lanes::<S>()..]);
    }
    vectors
}

/// `sum += factor · row`
#[inline(always)]
fn accumulate<T: Real, S: Simd, const V: usize>(
    simd: S,
    factor: T,
    row: &[T::Vector<S>; V],
    sum: &mut [T::Vector<S>; V],
) {
    let factor = T::splat(simd, factor);
    for (sum, &vector) in sum.iter_mut().zip(row) {
        *sum = T::fused_vector(simd, factor, vector, *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, pitch: f64) -> Vec<f64> {
        (0..n).map(|k| (k as f64 * pitch).sin()).collect()
    }

    /// Every tile shape: full tiles, a partial register, single rows.
    #[test]
    fn products_equal_the_triple_loop() {
        for (rows, inputs, outputs) in [
            (1, 1, 1),
            (4, 16, 64),
            (7, 5, 3),
            (9, 100, 100),
            (21, 5, 48),
            (32, 64, 2),
        ] {
            let (x, w) = (wave(rows * inputs, 0.7), wave(inputs * outputs, 1.3));
            let mut y = wave(rows * outputs, 0.1);
            let mut want = y.clone();
            for r in 0..rows {
                for i in 0..inputs {
                    for o in 0..outputs {
                        want[r * outputs + o] += x[r * inputs + i] * w[i * outputs + o];
                    }
                }
            }
            multiply(Arch::new(), &x, &w, &mut y, inputs);
            for (y, want) in y.iter().zip(&want) {
                assert!((y - want).abs() < 1e-12, "{rows}×{inputs}×{outputs}");
            }
            let mut fresh = vec![7.0; y.len()];
            multiply_into(Arch::new(), &x, &w, &mut fresh, inputs);
            for ((fresh, y), before) in fresh.iter().zip(&y).zip(wave(rows * outputs, 0.1)) {
                assert!(
                    (fresh + before - y).abs() < 1e-12,
                    "{rows}×{inputs}×{outputs}"
                );
            }
            let mut xt = vec![0.0; x.len()];
            transpose(&x, rows, &mut xt);
            let mut y = wave(rows * outputs, 0.1);
            multiply_transposed(Arch::new(), &xt, &w, &mut y, rows);
            for (y, want) in y.iter().zip(&want) {
                assert!(
                    (y - want).abs() < 1e-12,
                    "transposed {rows}×{inputs}×{outputs}"
                );
            }
        }
    }
}
