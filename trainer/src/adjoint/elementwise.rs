//! Loops over single values, compiled for the machine's vector registers.

use super::real::Real;
use pulp::{Arch, Simd, WithSimd};

/// Defines a function whose loops are compiled once per instruction set; the machine's is
/// chosen at each call. (`Arch::dispatch` on a closure would leave inlining to chance.)
macro_rules! vectorised {
    ($(#[$doc:meta])* pub fn $name:ident<$life:lifetime, $real:ident>($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        pub fn $name<$life, $real: Real>(arch: Arch, $($argument: $type),*) {
            struct Kernel<$life, $real: Real> { $($argument: $type),* }
            impl<$life, $real: Real> WithSimd for Kernel<$life, $real> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, _: S) {
                    let Self { $($argument),* } = self;
                    $body
                }
            }
            arch.dispatch(Kernel { $($argument),* });
        }
    };
}
pub(crate) use vectorised;

/// Values handled together; plain loops over so many unroll into vector instructions. (Closures in
/// `array::map` and the like are not always inlined, and then miss the instruction set.)
pub const CHUNK: usize = 16;

vectorised! {
    /// `values = tanh(values)`.
    pub fn squash<'a, T>(values: &'a mut [T]) {
        let (chunks, rest) = values.as_chunks_mut::<CHUNK>();
        for chunk in chunks {
            for value in chunk {
                *value = value.squash();
            }
        }
        for value in rest {
            *value = value.squash();
        }
    }
}

vectorised! {
    /// `out = tanh(values)`.
    pub fn squash_into<'a, T>(values: &'a [T], out: &'a mut [T]) {
        let ((from, rest), (to, out)) = (values.as_chunks::<CHUNK>(), out.as_chunks_mut::<CHUNK>());
        for (from, to) in from.iter().zip(to) {
            for l in 0..CHUNK {
                to[l] = from[l].squash();
            }
        }
        for (from, to) in rest.iter().zip(out) {
            *to = from.squash();
        }
    }
}

vectorised! {
    /// Adjoint of `y = tanh(s)`, given `y`: `g = g · (1 − y²)`.
    pub fn squash_adjoint<'a, T>(y: &'a [T], g: &'a mut [T]) {
        for (g, &y) in g.iter_mut().zip(y) {
            *g = *g * (-y).fused(y, T::ONE);
        }
    }
}

vectorised! {
    /// `sum` = Σ values².
    pub fn sum_of_squares<'a, T>(values: &'a [T], sum: &'a mut T) {
        *sum = dot(values, values);
    }
}

/// `out = a · b`, value by value.
pub fn product_into<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = a * b;
    }
}

/// Adjoint of [`product_into`]: sets the gradient of the first factor, adds to the second's.
pub fn product_adjoint<T: Real>(g: &[T], (a, b): (&[T], &[T]), (g_a, g_b): (&mut [T], &mut [T])) {
    for (((&g, (&a, &b)), g_a), g_b) in g.iter().zip(a.iter().zip(b)).zip(g_a).zip(g_b) {
        *g_a = g * b;
        *g_b += g * a;
    }
}

/// `sum += values`.
pub fn add<T: Real>(values: &[T], sum: &mut [T]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        *sum += value;
    }
}

/// Keeps the norm differentiable at zero.
pub const NORM_FLOOR: f64 = 1e-12;

#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<CHUNK>(), b.as_chunks::<CHUNK>());
    let mut sums = [T::ZERO; CHUNK];
    for (a, b) in a.iter().zip(b) {
        for l in 0..CHUNK {
            sums[l] = a[l].fused(b[l], sums[l]);
        }
    }
    let rest: T = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b).sum();
    sums.into_iter().sum::<T>() + rest
}

vectorised! {
    /// Soft normalisation of rows of `width` values, in place: `h / (‖h‖ + 1)`. `norms` gets ‖h‖.
    pub fn soft_norm<'a, T>(rows: &'a mut [T], norms: &'a mut [T], width: usize) {
        for (row, norm) in rows.chunks_exact_mut(width).zip(norms) {
            *norm = (dot(row, row) + T::of(NORM_FLOOR)).root();
            let factor = T::ONE / (*norm + T::ONE);
            for value in row {
                *value = *value * factor;
            }
        }
    }
}

vectorised! {
    /// Adjoint of [`soft_norm`], given its result `s` and norms: `g` goes from s to h, in place.
    ///
    /// With n = ‖h‖ and s = h/(n+1): dL/dh = g/(n+1) − s (s·g)/n.
    pub fn soft_norm_adjoint<'a, T>(s: &'a [T], norms: &'a [T], g: &'a mut [T], width: usize) {
        for ((s, &norm), g) in s.chunks_exact(width).zip(norms).zip(g.chunks_exact_mut(width)) {
            let factor = T::ONE / (norm + T::ONE);
            let along = dot(s, g) / norm;
            for (g, &s) in g.iter_mut().zip(s) {
                *g = *g * factor - s * along;
            }
        }
    }
}

/// `sums += Σ rows`.
pub fn add_rows<T: Real>(rows: &[T], sums: &mut [T]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::{assert_gradient, wave};

    #[test]
    fn squash_adjoint_is_the_derivative() {
        let (x, weight) = (wave(37, 0.3, 2.0), wave(37, 0.9, 1.0));
        let value = |x: &[f64]| {
            let mut y = x.to_vec();
            squash(Arch::new(), &mut y);
            y.iter().zip(&weight).map(|(y, w)| y * w).sum()
        };
        let (mut y, mut g) = (x.clone(), weight.clone());
        squash_into(Arch::new(), &x, &mut y);
        squash_adjoint(Arch::new(), &y, &mut g);
        assert_gradient(value, &x, &g, 1e-8);
    }

    #[test]
    fn soft_norm_adjoint_is_the_derivative() {
        let (width, rows) = (21, 3);
        let (h, weight) = (wave(width * rows, 0.3, 2.0), wave(width * rows, 0.9, 1.0));
        let value = |h: &[f64]| {
            let (mut s, mut norms) = (h.to_vec(), vec![0.0; rows]);
            soft_norm(Arch::new(), &mut s, &mut norms, width);
            s.iter().zip(&weight).map(|(s, w)| s * w).sum()
        };
        let (mut s, mut norms, mut g) = (h.clone(), vec![0.0; rows], weight.clone());
        soft_norm(Arch::new(), &mut s, &mut norms, width);
        soft_norm_adjoint(Arch::new(), &s, &norms, &mut g, width);
        assert_gradient(value, &h, &g, 1e-8);
    }
}
