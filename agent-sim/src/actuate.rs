//! What agents do to the field: Gaussian bumps of force, summed.

use crate::problem::Problem;

/// The actuation kernel on a problem's grid: adds `u exp(−(x_j − ξ)² / 2σ²)` to a force field.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    low: f64,
    spacing: f64,
    last: usize,
    /// 1 / 2σ².
    falloff: f64,
    /// How the ratio of neighbouring values changes from cell to cell: exp(−h²/σ²).
    ratio_of_ratios: f64,
}

impl Kernel {
    /// The kernel of a problem's agents.
    pub fn new(problem: &Problem) -> Self {
        let last = problem.grid - 1;
        let spacing = (problem.domain[1] - problem.domain[0]) / last as f64;
        let falloff = 0.5 / problem.actuation.width.powi(2);
        Self {
            low: problem.domain[0],
            spacing,
            last,
            falloff,
            ratio_of_ratios: (-2.0 * falloff * spacing * spacing).exp(),
        }
    }

    /// Value at distance `d` from the agent.
    pub fn at(&self, d: f64) -> f64 {
        (-self.falloff * d * d).exp()
    }

    /// Adds an agent's force to the field of forces.
    ///
    /// Starting at the nearest grid point and walking outwards, each value of a Gaussian on an even
    /// grid is its neighbour's times a ratio that itself shrinks by a constant factor: three
    /// exponentials per agent in place of one per grid point, exact to about 1e-13 of the peak.
    pub fn add(&self, force: &mut [f64], position: f64, u: f64) {
        let nearest = ((position - self.low) / self.spacing).round();
        let nearest = (nearest.max(0.0) as usize).min(self.last);
        let d = self.low + self.spacing * nearest as f64 - position;
        let peak = u * self.at(d);
        let ratio =
            |toward: f64| (-self.falloff * self.spacing * (2.0 * d * toward + self.spacing)).exp();
        let (left, right) = force.split_at_mut(nearest);
        right[0] += peak;
        self.walk(right[1..].iter_mut(), peak, ratio(1.0));
        self.walk(left.iter_mut().rev(), peak, ratio(-1.0));
    }

    fn walk<'a>(&self, cells: impl Iterator<Item = &'a mut f64>, mut value: f64, mut ratio: f64) {
        for cell in cells {
            value *= ratio;
            ratio *= self.ratio_of_ratios;
            *cell += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::heat_1d::PROBLEM;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_recurrence_is_the_gaussian(position in 0.0..=1.0f64, u in -40.0..40.0f64) {
            let kernel = Kernel::new(&PROBLEM);
            let mut force = vec![0.0; PROBLEM.grid];
            kernel.add(&mut force, position, u);
            for (j, f) in force.iter().enumerate() {
                let exact = u * (-(PROBLEM.coordinate(j) - position).powi(2) / 0.02).exp();
                prop_assert!((f - exact).abs() <= 1e-12 * u.abs(), "cell {j}: {f} vs {exact}");
            }
        }
    }
}
