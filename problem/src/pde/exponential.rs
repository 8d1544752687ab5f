//! What exponential time differencing weighs the rest of an equation with, once the linear part is
//! solved exactly.

/// φ₁, φ₂ and φ₃ at `c`: φ_n(c) = Σ_j c^j / (j + n)!.
///
/// The closed forms cancel for small |c|, so the series is summed there; at |c| < 1 its terms fall
/// below 1e-18 before the twentieth.
pub(super) fn phi(c: f64) -> [f64; 3] {
    if c.abs() < 1.0 {
        [1, 2, 3].map(|n| {
            let mut term = 1.0 / [1.0, 2.0, 6.0][n - 1];
            let mut sum = 0.0;
            for j in 1..=20 {
                sum += term;
                term *= c / (j + n) as f64;
            }
            sum
        })
    } else {
        let first = libm::expm1(c) / c;
        let second = (first - 1.0) / c;
        [first, second, (second - 0.5) / c]
    }
}

/// Weights of ETDRK4 (Cox and Matthews 2002) for a mode that grows by exp c in a step of `dt`:
///
/// ```text
/// a = E₂ v + h N(v)            E = exp c,  E₂ = exp(c/2),  h = Δt/2 φ₁(c/2)
/// b = E₂ v + h N(a)
/// d = E₂ a + h (2 N(b) − N(v))
/// v⁺ = E v + w₀ N(v) + w₁ (N(a) + N(b)) + w₂ N(d)
/// ```
///
/// with w = Δt (φ₁ − 3φ₂ + 4φ₃, 2φ₂ − 4φ₃, 4φ₃ − φ₂).
#[derive(Debug, Clone, Copy)]
pub(super) struct Etdrk4 {
    /// E
    pub whole: f64,
    /// E₂
    pub half: f64,
    /// h
    pub h: f64,
    /// w
    pub weights: [f64; 3],
}

impl Etdrk4 {
    pub fn new(c: f64, dt: f64) -> Self {
        let [p1, p2, p3] = phi(c);
        Self {
            whole: libm::exp(c),
            half: libm::exp(0.5 * c),
            h: 0.5 * dt * phi(0.5 * c)[0],
            weights: [[1.0, -3.0, 4.0], [0.0, 2.0, -4.0], [0.0, -1.0, 4.0]]
                .map(|[x, y, z]| dt * (x * p1 + y * p2 + z * p3)),
        }
    }
}
