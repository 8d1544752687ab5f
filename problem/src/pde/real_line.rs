//! Fourier transforms of one real line.

use super::batch_fft::LinePlan;
use super::lanes::{Real, narrow};
use num_complex::Complex;
use std::f64::consts::TAU;

/// Real values to and from the first half of their modes, not normalised:
/// X(k) = Σ_j x(j) exp(−2πi jk/n), 0 ≤ k ≤ n/2.
///
/// Neighbours travel as one complex value, x(2j) + i x(2j+1), so that the transform is half as long.
/// With Z its modes, h = n/2 and W = exp(−2πi/n), the modes of the even values and of the odd ones are
/// E and O, and with them come two of the line's:
///
/// ```text
/// E(k) = ½ (Z(k) + conj Z(h−k))        X(k) = E(k) + Wᵏ O(k)
/// O(k) = −½i (Z(k) − conj Z(h−k))      conj X(h−k) = E(k) − Wᵏ O(k)
/// ```
///
/// The values of lines of odd length travel alone.
#[derive(Clone)]
pub(super) struct RealLine<T> {
    points: usize,
    forward: LinePlan<T>,
    inverse: LinePlan<T>,
    /// Wᵏ for k ≤ h/2.
    turns: Vec<Complex<T>>,
    line: Vec<Complex<T>>,
}

impl<T: Real> RealLine<T> {
    pub fn new(points: usize) -> Self {
        let length = match points.is_multiple_of(2) {
            true => points / 2,
            false => points,
        };
        let turn = |k: usize| {
            let (sine, cosine) = libm::sincos(-TAU * k as f64 / points as f64);
            Complex::new(narrow(cosine), narrow(sine))
        };
        Self {
            points,
            forward: LinePlan::new(length, false),
            inverse: LinePlan::new(length, true),
            turns: (0..=points / 4).map(turn).collect(),
            line: vec![Complex::new(T::zero(), T::zero()); length],
        }
    }

    /// How many modes the first half has.
    pub fn modes(&self) -> usize {
        self.points / 2 + 1
    }

    /// Makes `modes` those of `values`.
    pub fn analyse(&mut self, values: &[T], modes: &mut [Complex<T>]) {
        let line = &mut self.line;
        if !self.points.is_multiple_of(2) {
            for (at, &x) in line.iter_mut().zip(values) {
                *at = x.into();
            }
            self.forward.run(line);
            return modes.copy_from_slice(&line[..modes.len()]);
        }
        for (at, &[even, odd]) in line.iter_mut().zip(values.as_chunks().0) {
            *at = Complex::new(even, odd);
        }
        self.forward.run(line);
        let (h, first) = (line.len(), line[0]);
        modes[0] = (first.re + first.im).into();
        modes[h] = (first.re - first.im).into();
        let half = narrow::<T>(0.5);
        for k in 1..=h / 2 {
            let (mode, other) = (line[k], line[h - k].conj());
            let (sum, difference) = ((mode + other).scale(half), (mode - other).scale(half));
            let odd = Complex::new(difference.im, -difference.re) * self.turns[k];
            modes[k] = sum + odd;
            modes[h - k] = (sum - odd).conj();
        }
    }

    /// Makes `values` those of `modes`. The first mode, and the last one of an even number of points,
    /// have no imaginary part: what stands there is not read.
    pub fn synthesise(&mut self, modes: &[Complex<T>], values: &mut [T]) {
        let line = &mut self.line;
        if !self.points.is_multiple_of(2) {
            line[0] = modes[0].re.into();
            for (k, mode) in modes.iter().enumerate().skip(1) {
                line[k] = *mode;
                line[self.points - k] = mode.conj();
            }
            self.inverse.run(line);
            for (x, z) in values.iter_mut().zip(line) {
                *x = z.re;
            }
            return;
        }
        // 2 E + 2i O: the transform of half the length leaves out that 2.
        let h = line.len();
        let (first, last) = (modes[0].re, modes[h].re);
        line[0] = Complex::new(first + last, first - last);
        for k in 1..=h / 2 {
            let (mode, other) = (modes[k], modes[h - k].conj());
            let (even, odd) = (mode + other, (mode - other) * self.turns[k].conj());
            line[k] = Complex::new(even.re - odd.im, even.im + odd.re);
            line[h - k] = Complex::new(even.re + odd.im, odd.re - even.im);
        }
        self.inverse.run(line);
        let (pairs, _) = values.as_chunks_mut();
        for (pair, z) in pairs.iter_mut().zip(line) {
            *pair = [z.re, z.im];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_agrees_with_the_definition_and_comes_back() {
        for n in (1..=40).chain([97, 128]) {
            let values: Vec<f64> = (0..n).map(|j| 10.0 * (12.9898 * j as f64).sin()).collect();
            let mut line = RealLine::new(n);
            let mut modes = vec![Complex::ZERO; line.modes()];
            line.analyse(&values, &mut modes);
            for (k, mode) in modes.iter().enumerate() {
                let turn = |j: usize| Complex::cis(-TAU * (j * k % n) as f64 / n as f64);
                let defined: Complex<f64> = (0..n).map(|j| turn(j) * values[j]).sum();
                assert!((mode - defined).norm() < 1e-12, "mode {k} of {n}");
            }
            // What is not to be read.
            modes[0].im = 7.0;
            if n % 2 == 0 {
                modes[n / 2].im = 7.0;
            }
            let mut back = vec![0.0; n];
            line.synthesise(&modes, &mut back);
            for (x, back) in values.iter().zip(back) {
                assert!((x - back / n as f64).abs() < 1e-13, "{n} points");
            }
        }
    }
}
