//! The same for one line.

use super::{Plan, eight};
use crate::pde::lanes::{Lines, Real, WideComplex, arch, lanes, width, with_lanes};
use num_complex::Complex;
use pulp::{Scalar, Simd, WithSimd};

/// What a [`Plan`] does to each of many lines, done to one, to the last bit.
///
/// Values of the line that stand together are spread over the lanes: the n-th is in lane n modulo the
/// number of lanes L. The first pass reads values that are n/8 apart, L of its kinds side by side. It
/// leaves eight results of a kind together, so that from then on L butterflies of one kind are side by
/// side: that is a pass over several lines again, L times as short. Lines whose length does not divide
/// in this way have one lane to themselves.
#[derive(Clone)]
pub(in crate::pde) struct LinePlan<T> {
    /// Its passes after the first are those over the lanes, if values are spread.
    plan: Plan<T>,
    /// If so, the first pass's twiddle factors where its results are.
    spread: Option<Lines<T>>,
    line: Lines<T>,
    spare: Lines<T>,
}

impl<T: Real> LinePlan<T> {
    pub fn new(length: usize, inverse: bool) -> Self {
        let (mut plan, lanes) = (Plan::new(length, inverse, length), lanes::<T>());
        let spread = plan.passes.first().and_then(|pass| {
            let divides = lanes > 1 && 8 % lanes == 0 && pass.kinds.is_multiple_of(lanes);
            (pass.radix == 8 && divides).then(|| {
                let mut twiddles = Lines::zeros(length / lanes);
                for (at, factor) in pass.twiddles.iter().enumerate() {
                    let (k, j) = (at / 8, at % 8);
                    let value = Complex::new(factor.re, factor.im);
                    twiddles.set(k / lanes * 8 + j, k % lanes, value);
                }
                twiddles
            })
        });
        if spread.is_some() {
            plan.length /= lanes;
            for pass in &mut plan.passes[1..] {
                pass.stride /= lanes;
            }
        }
        let line = || match spread {
            Some(_) => Lines::zeros(length / lanes),
            None => Lines::single(length),
        };
        Self {
            line: line(),
            spare: line(),
            plan,
            spread,
        }
    }

    /// Replaces the values of a line by their transform.
    pub fn run(&mut self, values: &mut [Complex<T>]) {
        arch().dispatch(RunLine { line: self, values });
    }

    #[inline(always)]
    fn load<const L: usize>(&mut self, values: &[Complex<T>]) {
        let (values, _) = values.as_chunks::<L>();
        for (at, values) in self.line.numbers_mut::<L>().iter_mut().zip(values) {
            for lane in 0..L {
                at[0][lane] = values[lane].re;
                at[1][lane] = values[lane].im;
            }
        }
    }

    #[inline(always)]
    fn store<const L: usize>(&self, values: &mut [Complex<T>]) {
        let (values, _) = values.as_chunks_mut::<L>();
        for (at, values) in self.line.numbers::<L>().iter().zip(values) {
            for lane in 0..L {
                values[lane] = Complex::new(at[0][lane], at[1][lane]);
            }
        }
    }

    /// From `line` to `spare`: result j of kind k to position j of eight, lane k.
    #[inline(always)]
    fn first_pass<S: Simd, const INVERSE: bool>(&mut self, simd: S) {
        let twiddles = self
            .spread
            .as_ref()
            .map_or(&[][..], |lines| lines.wide::<S>());
        let (twiddles, _) = twiddles.as_chunks::<8>();
        let (outputs, _) = self.spare.wide_mut::<S>().as_chunks_mut::<8>();
        let inputs = self.line.wide::<S>();
        let kinds = twiddles.len();
        for (k, (output, twiddles)) in outputs.iter_mut().zip(twiddles).enumerate() {
            let mut values = [WideComplex::load(simd, inputs[k]); 8];
            for j in 1..8 {
                values[j] = WideComplex::load(simd, inputs[j * kinds + k]);
            }
            let results = eight::<T, S, INVERSE>(simd, values);
            output[0] = results[0].stored();
            for j in 1..8 {
                output[j] = (results[j] * WideComplex::load(simd, twiddles[j])).stored();
            }
        }
    }

    /// Back to `line`, in order: the eight results of a kind together.
    #[inline(always)]
    fn sort<const L: usize>(&mut self) {
        let (sorted, _) = self.line.numbers_mut::<L>().as_chunks_mut::<8>();
        let (results, _) = self.spare.numbers::<L>().as_chunks::<8>();
        for (to, from) in sorted.iter_mut().zip(results) {
            for part in 0..2 {
                for k in 0..L {
                    for j in 0..8 {
                        to[(8 * k + j) / L][part][(8 * k + j) % L] = from[j][part][k];
                    }
                }
            }
        }
    }
}

struct RunLine<'a, T> {
    line: &'a mut LinePlan<T>,
    values: &'a mut [Complex<T>],
}

impl<T: Real> WithSimd for RunLine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { line, values } = self;
        if line.spread.is_none() {
            line.load::<1>(values);
            line.plan
                .passes_from(0, Scalar, &mut line.line, &mut line.spare);
            return line.store::<1>(values);
        }
        with_lanes!(T, S, line.load(values));
        match line.plan.inverse {
            true => line.first_pass::<S, true>(simd),
            false => line.first_pass::<S, false>(simd),
        }
        with_lanes!(T, S, line.sort());
        line.plan
            .passes_from(1, simd, &mut line.line, &mut line.spare);
        with_lanes!(T, S, line.store(values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pde::lanes::tests::with_all_vectors;
    use crate::pde::transform_lines;

    #[test]
    fn one_line_gets_the_bits_that_it_gets_among_many() {
        for n in (1..=40).chain([64, 96, 97, 128, 192, 512]) {
            for inverse in [false, true] {
                let noise = |seed: usize| (seed as f64 * 12.9898).sin();
                let values: Vec<_> = (0..n)
                    .map(|j| Complex::new(noise(2 * j), noise(2 * j + 1)))
                    .collect();
                let mut expected = values.clone();
                transform_lines(&mut expected, n, inverse);
                for found in with_all_vectors(|| {
                    let mut line = values.clone();
                    LinePlan::new(n, inverse).run(&mut line);
                    line
                }) {
                    assert!(found == expected, "{n} values");
                }
            }
        }
    }
}
