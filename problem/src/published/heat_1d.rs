//! Heat equation on a line with mobile heaters and coolers:
//!
//! ```text
//! z_t = ν z_xx + Σ_i u_i exp(−(x − ξ_i)² / 2σ²),   ξ_i' = v_i,   z = 0 at both walls
//! ```
//!
//! A swarm steers a random temperature profile to another one and holds it there against diffusion.

use crate::coefficient::{Coefficient, NOTHING_ELSE, published};
use crate::grid::{Edge, Grid};
use crate::pde::Heat1d;
use crate::placement::evenly;
use crate::random_field::RandomField;
use crate::{
    Actuation, Cells, Drives, Episode, ErrorSensing, FINAL, LossWeights, Problem, Proportional,
    Sensing, TestSet, Variant,
};
use rand_chacha::ChaCha8Rng;
use std::sync::LazyLock;

/// Diffusivity ν (paper, heat 1D), unless it is changed.
pub const DIFFUSIVITY: f64 = 0.2;
/// Grid points, ends included (paper).
pub const GRID: usize = 100;
/// Correlation length of initial fields (paper, data table).
pub const INITIAL_LENGTH: f64 = 0.2;
/// Correlation length of targets (paper, data table).
pub const TARGET_LENGTH: f64 = 0.4;

/// The best of the gains that `agent-sim tune heat-1d` tries (200 fresh episodes, seed 1): final
/// error 7.7e-5. From 800 on the loop is unstable, which no policy is allowed to be: a yardstick
/// for control quality in a perfect world, not for robustness.
pub const BASELINE: Proportional = Proportional {
    gain: 700.0,
    sensing: ErrorSensing::Kernel,
};

/// The same for agents that spread over the errors (agent-sim tune heat-1d --controller coverage).
pub const COVERAGE: Proportional = Proportional {
    gain: 700.0,
    sensing: ErrorSensing::Point,
};

/// Terms of the tracking loss (authors' code, heat 1D and Fisher–KPP).
pub const LOSS: LossWeights = LossWeights {
    track: 5.0,
    effort: 0.001,
    velocity_effort: 0.1,
    bound: 100.0,
    margin: 0.02,
    collision: 1.0,
    safe_distance: 0.05,
    acceleration: 0.1,
    ..LossWeights::NONE
};

/// Temperature along the rod.
const ROD: Grid = Grid::line(GRID, 1.0, Edge::Wall);

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "heat-1d",
    summary: "steer a temperature profile on a rod with mobile heaters and coolers",
    quantity: "temperature z",
    grid: ROD,
    sensors: ROD,
    axis_names: ["x", ""],
    control_interval: 1e-3,
    substeps: 1,
    horizon: 300,
    agents: 8,
    reach: [[0.0, 0.0], [1.0, 0.0]],
    actuation: Actuation {
        drives: Drives::Source,
        width: 0.1,
        peak_on_grid: false,
        force_max: 40.0,
        velocity_max: 2.0,
    },
    sensing: Sensing {
        window: 8,
        spacing: 1,
        cells: Cells::Intervals,
    },
    integral: None,
    tracking: true,
    scoring: FINAL,
    keep_out: &[],
    loss: LOSS,
    placement,
    draw,
    test_set: Some(TestSet {
        origin: "testsets/heat1d.npy",
        bytes: include_bytes!("../../testsets/heat1d.npy"),
    }),
    stepper: |problem, parts| {
        let (dt, substeps) = problem.solver_steps(parts);
        let Equation {
            diffusivity,
            spacing,
        } = equation(problem);
        let points = problem.grid.points[0];
        Box::new(Heat1d::<f64>::new(
            points,
            diffusivity,
            spacing,
            dt,
            substeps,
        ))
    },
    longest_step: |_| f64::INFINITY,
    baseline: Some(BASELINE),
    coverage: Some(COVERAGE),
    policy: Some(include_bytes!("../../policies/heat-1d.policy")),
    kit: None,
    form: None,
    variants: &[TRUE_SPACING],
    coefficients: COEFFICIENTS,
    physics: published(COEFFICIENTS),
};

/// What can be changed about the equation.
const COEFFICIENTS: &[Coefficient] = &[Coefficient {
    name: "nu",
    meaning: "diffusivity ν",
    published: DIFFUSIVITY,
    range: [1e-6, 10.0],
    adapt: NOTHING_ELSE,
}];

/// The equation in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equation {
    /// ν
    pub diffusivity: f64,
    /// Δx in the scheme, see [`scheme_spacing`].
    pub spacing: f64,
}

/// The equation of this form of the problem.
pub fn equation(problem: &Problem) -> Equation {
    Equation {
        diffusivity: problem.coefficient("nu"),
        spacing: scheme_spacing(problem, 0),
    }
}

/// The form of the heat and Fisher–KPP equations with the true spacing on the published grid too.
pub const TRUE_SPACING: Variant = Variant {
    name: "true-spacing",
    summary: "divides by the grid's true spacing where the authors' code takes 1/N for N points",
    apply: NOTHING_ELSE,
};

/// Grid spacing along an axis in the schemes of the heat and Fisher–KPP equations: on the published
/// grid the authors' code divides by 1/N although N points include both ends, so that ν is 2 % (6 % on
/// the plate) too large. Any other grid has its true spacing, 1/(N − 1), and so has [`TRUE_SPACING`].
pub fn scheme_spacing(problem: &Problem, axis: usize) -> f64 {
    let points = problem.grid.points[axis];
    let published = problem.grid.points == problem.sensors.points;
    match problem.form == Some(TRUE_SPACING.name) || !published {
        true => problem.grid.spacing(axis),
        false => problem.grid.extent(axis) / points as f64,
    }
}

/// Evenly from 0.2 to 0.8.
pub fn placement(_: &Problem, agents: usize) -> Vec<[f64; 2]> {
    evenly(agents, [0.2, 0.8]).map(|x| [x, 0.0]).collect()
}

/// Independent Gaussian random fields, pinned to zero at the walls.
fn draw(_: &Problem, rng: &mut ChaCha8Rng) -> Episode {
    static INITIAL: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, INITIAL_LENGTH));
    static TARGET: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, TARGET_LENGTH));
    Episode {
        initial: INITIAL.draw(rng),
        target: TARGET.draw(rng),
        ..Episode::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// sin(3πx) after 50 steps on that grid, over what it was: at the second quarter of the rod.
    fn decay(problem: &Problem) -> f64 {
        let problem = problem.with_substeps(8).unwrap(); // the error in time is 1e-6
        let last = problem.grid.len() - 1;
        let mut field: Vec<f64> = (0..=last)
            .map(|j| (3.0 * PI * j as f64 / last as f64).sin())
            .collect();
        let (at, rest) = (last / 2, vec![0.0; last + 1]);
        let before = field[at];
        let mut stepper = (problem.stepper)(&problem, 1);
        (0..50).for_each(|_| stepper.step(&mut field, &rest));
        field[at] / before
    }

    fn exact(diffusivity: f64) -> f64 {
        (-diffusivity * (3.0 * PI).powi(2) * 0.05).exp()
    }

    #[test]
    fn refined_grids_converge_to_second_order() {
        let error =
            |points| (decay(&PROBLEM.with_grid(points).unwrap()) - exact(DIFFUSIVITY)).abs();
        let errors = [26, 51, 101, 201].map(error);
        for pair in errors.windows(2) {
            assert!((pair[0] / pair[1] - 4.0).abs() < 0.1, "{errors:?}");
        }
        let thick = PROBLEM.with_physics([("nu", 0.4)]).unwrap();
        let thick = decay(&thick.with_grid(201).unwrap());
        assert!((thick - exact(0.4)).abs() < 1e-4, "{thick}");
    }

    /// On 100 points 1/N is 99/100 of the spacing, so ν comes out as (100/99)² of what it is called.
    #[test]
    fn the_published_grid_has_the_published_spacing_and_the_variant_the_true_one() {
        let published = decay(&PROBLEM);
        let true_spacing = decay(&PROBLEM.with_variant(TRUE_SPACING.name).unwrap());
        let rates = [published, true_spacing].map(|decay| -decay.ln());
        assert!((rates[0] / rates[1] - (100.0f64 / 99.0).powi(2)).abs() < 1e-4);
        // What is left is the grid's own error, (3π/99)²/12 of the rate.
        assert!((rates[1] / -exact(DIFFUSIVITY).ln() - 1.0).abs() < 1e-3);
    }
}
