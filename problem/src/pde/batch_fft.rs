//! Fourier transforms of several lines at once.
//!
//! Lines are short here (64 to a few hundred points) and many. A transform of one line leaves a
//! vector unit half idle or busy with shuffling; one that does the same to a line per lane has
//! nothing to shuffle. The algorithm is Stockham's: every pass splits off one factor of the length
//! and writes in such an order that the last one leaves the result sorted.

mod one_line;

pub(super) use one_line::LinePlan;

use super::lanes::{Lines, Real, Stored, Wide, WideComplex, arch, lanes, narrow};
use num_complex::Complex;
use pulp::{Simd, WithSimd};
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// A transform of given length, not normalised: X(k) = Σ_j x(j) exp(∓2πi jk/n).
#[derive(Clone)]
pub(super) struct Plan<T> {
    passes: Vec<Pass<T>>,
    length: usize,
    inverse: bool,
    /// Whether the middle third of the modes is left out, see [`Plan::new`].
    blank: bool,
}

/// A complex number that all lanes are multiplied by.
#[derive(Clone, Copy)]
struct Factor<T> {
    re: T,
    im: T,
}

impl<T: Real> Factor<T> {
    #[inline(always)]
    fn times<S: Simd>(self, simd: S, value: WideComplex<T, S>) -> WideComplex<T, S> {
        value * WideComplex::new(Wide::splat(simd, self.re), Wide::splat(simd, self.im))
    }
}

#[derive(Clone)]
struct Pass<T> {
    radix: usize,
    /// Butterflies of each kind.
    stride: usize,
    /// Kinds of butterflies, each with its own twiddle factors.
    kinds: usize,
    /// exp(∓2πi jk / (radix · kinds)) for all k < kinds and j < radix, j running faster.
    twiddles: Vec<Factor<T>>,
    /// exp(∓2πi j / radix).
    roots: Vec<Factor<T>>,
}

/// The factors of `n` to split off, in order: few passes, and the largest first.
fn radices(n: usize) -> Vec<usize> {
    let twos = n.trailing_zeros() as usize;
    let mut rest = n >> twos;
    // Eights, then fours rather than a lone two.
    let mut radices = match (twos / 3, twos % 3) {
        (0, 1) => vec![2],
        (eights, 0) => vec![8; eights],
        (eights, 1) => [vec![8; eights - 1], vec![4; 2]].concat(),
        (eights, _) => [vec![8; eights], vec![4]].concat(),
    };
    let mut factor = 3;
    while rest > 1 {
        while rest.is_multiple_of(factor) {
            radices.push(factor);
            rest /= factor;
        }
        factor += 2;
    }
    radices
}

impl<T: Real> Plan<T> {
    /// Only wave numbers up to `carried` are of interest: an inverse transform takes the modes
    /// beyond as zero, after [`clear_beyond`](Self::clear_beyond), and a forward transform may leave
    /// anything there.
    ///
    /// For padded lengths, whose middle third is empty, that saves a part of one pass: the radix 3
    /// comes first on the way down, with two inputs, and last on the way up, with two outputs.
    pub fn new(length: usize, inverse: bool, carried: usize) -> Self {
        let blank = length.is_multiple_of(3) && carried < length / 3;
        let turn = |share: f64| {
            let angle = if inverse { TAU } else { -TAU } * share;
            let (sine, cosine) = libm::sincos(angle);
            Factor {
                re: narrow(cosine),
                im: narrow(sine),
            }
        };
        let (mut stride, mut rest) = (1, length);
        let mut passes = Vec::new();
        let mut radices = radices(length);
        if blank {
            let three = radices.iter().position(|&r| r == 3).expect("3 is a factor");
            radices.remove(three);
            radices.insert(if inverse { 0 } else { radices.len() }, 3);
        }
        for radix in radices {
            let kinds = rest / radix;
            let share = |jk: usize| jk as f64 / rest as f64;
            passes.push(Pass {
                radix,
                stride,
                kinds,
                twiddles: (0..kinds)
                    .flat_map(|k| (0..radix).map(move |j| j * k))
                    .map(|jk| turn(share(jk)))
                    .collect(),
                roots: (0..radix).map(|j| turn(j as f64 / radix as f64)).collect(),
            });
            stride *= radix;
            rest = kinds;
        }
        Self {
            passes,
            length,
            inverse,
            blank,
        }
    }

    /// Makes those modes beyond `carried` zero that an inverse transform reads.
    #[inline(always)]
    pub fn clear_beyond(&self, carried: usize, lines: &mut Lines<T>) {
        let first = carried + 1;
        let last = (self.length - carried).max(first);
        if self.blank {
            lines.clear(first..self.length / 3);
            lines.clear(2 * self.length / 3..last);
        } else {
            lines.clear(first..last);
        }
    }

    /// Replaces the first `length` positions of `lines` by their transform; `spare` is as long.
    #[inline(always)]
    pub fn run<S: Simd>(&self, simd: S, lines: &mut Lines<T>, spare: &mut Lines<T>) {
        // A function of its own, compiled for these vectors once and not wherever it is used.
        simd.vectorize(Run {
            plan: self,
            lines,
            spare,
        });
    }

    /// The passes from that number on.
    #[inline(always)]
    fn passes_from<S: Simd>(
        &self,
        first: usize,
        simd: S,
        lines: &mut Lines<T>,
        spare: &mut Lines<T>,
    ) {
        for (number, pass) in self.passes.iter().enumerate().skip(first) {
            let from = &lines.wide::<S>()[..self.length];
            let to = &mut spare.wide_mut::<S>()[..self.length];
            match (self.inverse, self.blank) {
                (true, true) if number == 0 => pass.spread_outer_thirds(simd, from, to),
                (false, true) if number + 1 == self.passes.len() => {
                    pass.keep_outer_thirds(simd, from, to);
                }
                (true, _) => pass.run::<S, true>(simd, from, to),
                (false, _) => pass.run::<S, false>(simd, from, to),
            }
            std::mem::swap(lines, spare);
        }
    }
}

/// Replaces complex lines of `length` values, which stand one after the other, by their transforms, not
/// normalised.
pub(crate) fn transform_lines(values: &mut [Complex<f64>], length: usize, inverse: bool) {
    let plan = Plan::new(length, inverse, length);
    let (mut lines, mut spare) = (Lines::zeros(length), Lines::zeros(length));
    for group in values.chunks_mut(length * lanes::<f64>()) {
        for (lane, line) in group.chunks_exact(length).enumerate() {
            for (j, value) in line.iter().enumerate() {
                lines.set(j, lane, *value);
            }
        }
        arch().dispatch(Run {
            plan: &plan,
            lines: &mut lines,
            spare: &mut spare,
        });
        for (lane, line) in group.chunks_exact_mut(length).enumerate() {
            for (j, value) in line.iter_mut().enumerate() {
                *value = lines.get(j, lane);
            }
        }
    }
}

struct Run<'a, T> {
    plan: &'a Plan<T>,
    lines: &'a mut Lines<T>,
    spare: &'a mut Lines<T>,
}

impl<T: Real> WithSimd for Run<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.plan.passes_from(0, simd, self.lines, self.spare);
    }
}

impl<T: Real> Pass<T> {
    #[inline(always)]
    fn run<S: Simd, const INVERSE: bool>(
        &self,
        simd: S,
        from: &[Stored<T, S>],
        to: &mut [Stored<T, S>],
    ) {
        match self.radix {
            2 => self.butterflies(
                simd,
                from,
                to,
                #[inline(always)]
                |[a, b]| [a + b, a - b],
            ),
            3 => self.butterflies(
                simd,
                from,
                to,
                #[inline(always)]
                |x| three::<T, S, INVERSE>(simd, x),
            ),
            4 => self.butterflies(simd, from, to, four::<T, S, INVERSE>),
            8 => self.butterflies(
                simd,
                from,
                to,
                #[inline(always)]
                |x| eight::<T, S, INVERSE>(simd, x),
            ),
            _ => self.any_radix(simd, from, to),
        }
    }

    #[inline(always)]
    fn butterflies<S: Simd, const R: usize>(
        &self,
        simd: S,
        from: &[Stored<T, S>],
        to: &mut [Stored<T, S>],
        butterfly: impl Fn([WideComplex<T, S>; R]) -> [WideComplex<T, S>; R],
    ) {
        let Self { stride, kinds, .. } = *self;
        let inputs: [&[Stored<T, S>]; R] =
            std::array::from_fn(|j| &from[j * kinds * stride..][..kinds * stride]);
        let outputs = to.chunks_exact_mut(R * stride);
        let (twiddles, _) = self.twiddles.as_chunks::<R>();
        for (k, (output, twiddles)) in outputs.zip(twiddles).enumerate() {
            for q in 0..stride {
                // Loops rather than `map` or `from_fn`: those are compiled without the vector
                // instructions and would not be merged into this function.
                let zero = Wide::splat(simd, T::zero());
                let mut values = [WideComplex::new(zero, zero); R];
                for j in 0..R {
                    values[j] = WideComplex::load(simd, inputs[j][k * stride + q]);
                }
                let results = butterfly(values);
                output[q] = results[0].stored();
                for j in 1..R {
                    // The last pass has one kind, whose twiddle factors are 1.
                    let result = if kinds == 1 {
                        results[j]
                    } else {
                        twiddles[j].times(simd, results[j])
                    };
                    output[j * stride + q] = result.stored();
                }
            }
        }
    }

    /// The first pass of an inverse transform whose middle third of modes is zero.
    #[inline(always)]
    fn spread_outer_thirds<S: Simd>(
        &self,
        simd: S,
        from: &[Stored<T, S>],
        to: &mut [Stored<T, S>],
    ) {
        let cosine = Wide::splat(simd, narrow(-0.5));
        let sine = Wide::splat(simd, narrow(0.75f64.sqrt()));
        let (positive, negative) = (&from[..self.kinds], &from[2 * self.kinds..]);
        let (twiddles, _) = self.twiddles.as_chunks::<3>();
        let (outputs, _) = to.as_chunks_mut::<3>();
        for (k, (output, twiddles)) in outputs.iter_mut().zip(twiddles).enumerate() {
            let a = WideComplex::load(simd, positive[k]);
            let c = WideComplex::load(simd, negative[k]);
            let [y, x] = (a + c * cosine).plus_minus_i(c * sine);
            output[0] = (a + c).stored();
            output[1] = twiddles[1].times(simd, x).stored();
            output[2] = twiddles[2].times(simd, y).stored();
        }
    }

    /// The last pass of a forward transform whose middle third of modes is of no interest.
    #[inline(always)]
    fn keep_outer_thirds<S: Simd>(&self, simd: S, from: &[Stored<T, S>], to: &mut [Stored<T, S>]) {
        let (a, rest) = from.split_at(self.stride);
        let (b, c) = rest.split_at(self.stride);
        let (positive, rest) = to.split_at_mut(self.stride);
        let (_, negative) = rest.split_at_mut(self.stride);
        for q in 0..self.stride {
            let [x, _, y] = three::<T, S, false>(
                simd,
                [
                    WideComplex::load(simd, a[q]),
                    WideComplex::load(simd, b[q]),
                    WideComplex::load(simd, c[q]),
                ],
            );
            positive[q] = x.stored();
            negative[q] = y.stored();
        }
    }

    /// For the odd lengths out: as many operations as the square of the radix.
    #[inline(never)]
    fn any_radix<S: Simd>(&self, simd: S, from: &[Stored<T, S>], to: &mut [Stored<T, S>]) {
        let Self {
            radix,
            stride,
            kinds,
            ..
        } = *self;
        for k in 0..kinds {
            for q in 0..stride {
                let input = |j: usize| WideComplex::load(simd, from[(j * kinds + k) * stride + q]);
                for j in 0..radix {
                    let sum = (1..radix).fold(input(0), |sum, i| {
                        sum + self.roots[i * j % radix].times(simd, input(i))
                    });
                    let result = self.twiddles[k * radix + j].times(simd, sum);
                    to[(k * radix + j) * stride + q] = result.stored();
                }
            }
        }
    }
}

/// `a ∓ i b` and `a ± i b`: the upper sign forwards, the lower one in inverse transforms.
#[inline(always)]
fn turned<T: Real, S: Simd, const INVERSE: bool>(
    a: WideComplex<T, S>,
    b: WideComplex<T, S>,
) -> [WideComplex<T, S>; 2] {
    let [plus, minus] = a.plus_minus_i(b);
    if INVERSE {
        [plus, minus]
    } else {
        [minus, plus]
    }
}

#[inline(always)]
fn three<T: Real, S: Simd, const INVERSE: bool>(
    simd: S,
    [a, b, c]: [WideComplex<T, S>; 3],
) -> [WideComplex<T, S>; 3] {
    let cosine = Wide::splat(simd, narrow(-0.5));
    let sine = Wide::splat(simd, narrow(0.75f64.sqrt()));
    let sum = b + c;
    let [x, y] = turned::<T, S, INVERSE>(a + sum * cosine, (b - c) * sine);
    [a + sum, x, y]
}

#[inline(always)]
fn four<T: Real, S: Simd, const INVERSE: bool>(
    [a, b, c, d]: [WideComplex<T, S>; 4],
) -> [WideComplex<T, S>; 4] {
    let (even, odd) = (a + c, b + d);
    let [x, y] = turned::<T, S, INVERSE>(a - c, b - d);
    [even + odd, x, even - odd, y]
}

#[inline(always)]
fn eight<T: Real, S: Simd, const INVERSE: bool>(
    simd: S,
    [a, b, c, d, e, f, g, h]: [WideComplex<T, S>; 8],
) -> [WideComplex<T, S>; 8] {
    let diagonal = Wide::splat(simd, narrow(FRAC_1_SQRT_2));
    let even = four::<T, S, INVERSE>([a, c, e, g]);
    let odd = four::<T, S, INVERSE>([b, d, f, h]);
    let first = turned::<T, S, INVERSE>(odd[1], odd[1])[0] * diagonal;
    let [second, sixth] = turned::<T, S, INVERSE>(even[2], odd[2]);
    let third = turned::<T, S, INVERSE>(odd[3], odd[3])[1] * diagonal;
    [
        even[0] + odd[0],
        even[1] + first,
        second,
        even[3] - third,
        even[0] - odd[0],
        even[1] - first,
        sixth,
        even[3] + third,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition.
    fn defined(line: &[Complex<f64>], inverse: bool) -> Vec<Complex<f64>> {
        let n = line.len();
        let turn = if inverse { TAU } else { -TAU } / n as f64;
        let roots: Vec<_> = (0..n).map(|j| Complex::cis(turn * j as f64)).collect();
        let mode = |k: usize| (0..n).map(|j| line[j] * roots[j * k % n]).sum();
        (0..n).map(mode).collect()
    }

    fn noise(seed: usize) -> f64 {
        (seed as f64 * 12.9898).sin() * 10.0
    }

    fn widened<T: Real>(z: Complex<T>) -> Complex<f64> {
        let [re, im] = [z.re, z.im].map(|part| part.to_f64().unwrap());
        Complex::new(re, im)
    }

    /// Largest difference to the definition, as a share of the largest value, over what is of
    /// interest.
    fn error<T: Real>(n: usize, inverse: bool, carried: usize) -> f64 {
        let beyond = |j: usize| carried < j && j + carried < n;
        let value = |j: usize, lane: usize| {
            if inverse && beyond(j) {
                return Complex::new(T::zero(), T::zero());
            }
            let seed = 2 * (j * 31 + lane * 17);
            Complex::new(narrow::<T>(noise(seed)), narrow(noise(seed + 1)))
        };
        let mut lines = Lines::<T>::zeros(n);
        for lane in 0..lanes::<T>() {
            (0..n).for_each(|j| lines.set(j, lane, value(j, lane)));
        }
        let plan = Plan::new(n, inverse, carried);
        if inverse {
            for j in (0..n).filter(|&j| beyond(j)) {
                lines.set(j, 0, Complex::new(T::one(), T::one()));
            }
            plan.clear_beyond(carried, &mut lines);
        }
        arch().dispatch(Run {
            plan: &plan,
            lines: &mut lines,
            spare: &mut Lines::zeros(n),
        });
        let (mut worst, mut largest) = (0.0, 0.0);
        for lane in 0..lanes::<T>() {
            let line: Vec<_> = (0..n).map(|j| widened(value(j, lane))).collect();
            for (j, expected) in defined(&line, inverse).into_iter().enumerate() {
                if !inverse && beyond(j) {
                    continue;
                }
                let off = (widened(lines.get(j, lane)) - expected).norm();
                worst = f64::max(worst, off);
                largest = f64::max(largest, expected.norm());
            }
        }
        worst / largest
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        for n in (1..=66).chain([96, 97, 100, 128, 192, 384]) {
            for inverse in [false, true] {
                for carried in [n / 2, (n - 1) / 3, n / 5] {
                    assert!(error::<f64>(n, inverse, carried) < 1e-14, "{n}, {carried}");
                    assert!(error::<f32>(n, inverse, carried) < 1e-5, "{n}, {carried}");
                }
            }
        }
    }

    /// However many there are for the lanes of a vector.
    #[test]
    fn lines_are_transformed_each_by_itself() {
        for (length, count) in [(1, 5), (12, 1), (7, 3), (16, 19)] {
            for inverse in [false, true] {
                let values: Vec<_> = (0..length * count)
                    .map(|j| Complex::new(noise(2 * j), noise(2 * j + 1)))
                    .collect();
                let mut found = values.clone();
                transform_lines(&mut found, length, inverse);
                let lines = values.chunks(length).zip(found.chunks(length));
                for (line, found) in lines {
                    for (found, expected) in found.iter().zip(defined(line, inverse)) {
                        assert!((found - expected).norm() < 1e-12, "{count} of {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn lengths_are_split_into_few_factors() {
        assert_eq!(radices(64), [8, 8]);
        assert_eq!(radices(96), [8, 4, 3]);
        assert_eq!(radices(128), [8, 4, 4]);
        assert_eq!(radices(2), [2]);
        assert_eq!(radices(16), [4, 4]);
        assert_eq!(radices(90), [2, 3, 3, 5]);
        assert_eq!(radices(1), [0; 0]);
    }
}
