//! The two matrix products of a small network, on row-major slices: rows are agents.
//!
//! The products of a training step are a few dozen rows high: a blocking library spends its time
//! packing them. These loops keep a tile of the result in registers and stream the rest from L1,
//! with the instruction set chosen at run time.

use super::real::Real;
use pulp::{Arch, Simd, WithSimd};

/// Rows of the result held in registers.
const TILE_ROWS: usize = 4;
/// Registers per row of the tile; 4 × 2 cover the latency of a fused multiply-add.
const TILE_VECTORS: usize = 2;

/// `y += x · w` with `x` [rows, inputs], `w` [inputs, outputs], `y` [rows, outputs].
pub fn multiply<T: Real>(arch: Arch, x: &[T], w: &[T], y: &mut [T], inputs: usize) {
    let outputs = w.len() / inputs;
    debug_assert_eq!(x.len() / inputs, y.len() / outputs);
    arch.dispatch(Product {
        left: Strided {
            data: x,
            row: inputs,
            column: 1,
        },
        right: w,
        sum: y,
        inner: inputs,
        outputs,
    });
}

/// `dw += xᵀ · dy` with `x` [rows, inputs], `dy` [rows, outputs], `dw` [inputs, outputs].
pub fn multiply_transposed<T: Real>(arch: Arch, x: &[T], dy: &[T], dw: &mut [T], inputs: usize) {
    let outputs = dw.len() / inputs;
    debug_assert_eq!(x.len() / inputs, dy.len() / outputs);
    arch.dispatch(Product {
        left: Strided {
            data: x,
            row: 1,
            column: inputs,
        },
        right: dy,
        sum: dw,
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

/// A matrix view whose element (r, c) is `data[r · row + c · column]`.
#[derive(Clone, Copy)]
struct Strided<'a, T> {
    data: &'a [T],
    row: usize,
    column: usize,
}

/// `sum += left · right`, `right` and `sum` row-major with `outputs` columns.
struct Product<'a, T> {
    left: Strided<'a, T>,
    right: &'a [T],
    sum: &'a mut [T],
    inner: usize,
    outputs: usize,
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let rows = self.sum.len() / self.outputs;
        let mut row = 0;
        while row + TILE_ROWS <= rows {
            self.stripe::<S, TILE_ROWS>(simd, row);
            row += TILE_ROWS;
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
        while column + TILE_VECTORS * lanes <= self.outputs {
            self.tile::<S, R, TILE_VECTORS>(simd, row, column);
            column += TILE_VECTORS * lanes;
        }
        while column < self.outputs {
            self.tile::<S, R, 1>(simd, row, column);
            column += lanes;
        }
    }

    /// `R` rows × `V` registers of the result; the last register may stick out on the right.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let lanes = T::lanes::<S>();
        let end = (column + V * lanes).min(self.outputs);
        let mut sum = [[T::splat(simd, T::ZERO); V]; R];
        for (r, sum) in sum.iter_mut().enumerate() {
            let from = &self.sum[(row + r) * self.outputs..][column..end];
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = T::load(simd, &from[v * lanes..]);
            }
        }
        let left = &self.left.data[row * self.left.row..];
        for (k, right) in self
            .right
            .chunks_exact(self.outputs)
            .take(self.inner)
            .enumerate()
        {
            let right = &right[column..end];
            let mut vectors = [T::splat(simd, T::ZERO); V];
            for (v, vector) in vectors.iter_mut().enumerate() {
                *vector = T::load(simd, &right[v * lanes..]);
            }
            let left = &left[k * self.left.column..];
            for (r, sum) in sum.iter_mut().enumerate() {
                let factor = T::splat(simd, left[r * self.left.row]);
                for (sum, vector) in sum.iter_mut().zip(vectors) {
                    *sum = T::fused_vector(simd, factor, vector, *sum);
                }
            }
        }
        for (r, sum) in sum.into_iter().enumerate() {
            let to = &mut self.sum[(row + r) * self.outputs..][column..end];
            for (v, sum) in sum.into_iter().enumerate() {
                T::store(simd, &mut to[v * lanes..], sum);
            }
        }
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
