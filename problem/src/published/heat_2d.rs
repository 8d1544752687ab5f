//! Heat equation on a square plate with mobile heaters and coolers:
//!
//! ```text
//! z_t = ν ∇²z + Σ_i u_i exp(−|x − ξ_i|² / 2σ²),   ξ_i' = v_i,   z = 0 on the edges
//! ```
//!
//! Fields are row-major, `[x, y]`. The same dynamics and episodes serve the problem with obstacles.

use super::heat_1d::{TRUE_SPACING, scheme_spacing};
use crate::coefficient::{Coefficient, NOTHING_ELSE, published};
use crate::grid::{Edge, Grid};
use crate::pde::Heat2d;
use crate::placement::lattice;
use crate::random_field::RandomField2d;
use crate::{
    Actuation, Cells, Drives, Episode, ErrorSensing, FINAL, LossWeights, Problem, Proportional,
    Sensing, TestSet,
};
use rand_chacha::ChaCha8Rng;
use std::sync::LazyLock;

/// Diffusivity ν (paper, heat 2D), unless it is changed.
pub const DIFFUSIVITY: f64 = 0.2;
/// Grid points along each axis, edges included (paper).
pub const GRID: [usize; 2] = [32, 32];
/// Time between two actions, one step of the scheme (paper).
pub const CONTROL_INTERVAL: f64 = 1e-3;
/// Actions in one episode of the results table (authors' evaluation).
pub const HORIZON: usize = 100;
/// Actions in one episode of the training (paper).
pub const TRAINING_HORIZON: usize = 300;
/// Agents in the published experiment (paper).
pub const AGENTS: usize = 16;
/// Standard deviation σ of the actuation kernel (paper); its peak is 1 in the authors' code, while
/// the paper normalises its integral.
pub const KERNEL_WIDTH: f64 = 0.15;
/// Largest |u| (authors' code).
pub const FORCE_MAX: f64 = 40.0;
/// Largest |v| (authors' published policy; another version of the code has 2).
pub const VELOCITY_MAX: f64 = 5.0;
/// Range of the lattice that agents start on in the results table (authors' evaluation).
pub const PLACEMENT: [f64; 2] = [0.2, 0.8];
/// The same in the authors' training.
pub const TRAINING_PLACEMENT: [f64; 2] = [0.26, 0.74];
/// Correlation length of initial fields (paper, data table).
pub const INITIAL_LENGTH: f64 = 0.25;
/// Correlation length of targets (paper, data table).
pub const TARGET_LENGTH: f64 = 0.4;

/// Cells along each side of what an agent sees (paper).
pub const WINDOW: usize = 12;
/// Terms of the tracking loss (authors' code; the paper has 20 for collisions).
pub const LOSS: LossWeights = LossWeights {
    track: 5.0,
    effort: 0.001,
    velocity_effort: 0.1,
    bound: 100.0,
    margin: 0.02,
    collision: 1.0,
    safe_distance: 0.08,
    acceleration: 0.1,
    ..LossWeights::NONE
};

/// What `agent-sim tune heat-2d` finds best: 5.1e-5 (5.2e-5 with kernel-averaged sensing and gain
/// 700). From 700 on the loop is unstable.
pub const BASELINE: Proportional = Proportional {
    gain: 600.0,
    sensing: ErrorSensing::Point,
};

/// The same for agents that spread over the errors (agent-sim tune heat-2d --controller coverage).
pub const COVERAGE: Proportional = Proportional {
    gain: 700.0,
    sensing: ErrorSensing::Point,
};

const PLATE: Grid = Grid::plane(GRID, [1.0, 1.0], Edge::Wall);

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "heat-2d",
    summary: "steer the temperature of a plate with mobile heaters and coolers",
    quantity: "temperature z",
    grid: PLATE,
    sensors: PLATE,
    axis_names: ["x", "y"],
    control_interval: CONTROL_INTERVAL,
    substeps: 1,
    horizon: HORIZON,
    agents: AGENTS,
    reach: [[0.0; 2], [1.0; 2]],
    actuation: Actuation {
        drives: Drives::Source,
        width: KERNEL_WIDTH,
        peak_on_grid: false,
        force_max: FORCE_MAX,
        velocity_max: VELOCITY_MAX,
    },
    sensing: Sensing {
        window: WINDOW,
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
        origin: "testsets/heat2d.npy",
        bytes: include_bytes!("../../testsets/heat2d.npy"),
    }),
    stepper: |problem, parts| {
        let (dt, substeps) = problem.solver_steps(parts);
        let Equation {
            diffusivity,
            spacing,
        } = equation(problem);
        let points = problem.grid.points;
        Box::new(Heat2d::<f64>::new(
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
    policy: Some(include_bytes!("../../policies/heat-2d.policy")),
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
    /// Δx along each axis in the scheme, see [`scheme_spacing`].
    pub spacing: [f64; 2],
}

/// The equation of this form of the problem.
pub fn equation(problem: &Problem) -> Equation {
    Equation {
        diffusivity: problem.coefficient("nu"),
        spacing: [0, 1].map(|axis| scheme_spacing(problem, axis)),
    }
}

/// The smallest lattice from 0.2 to 0.8 along both axes that holds the agents.
pub fn placement(_: &Problem, agents: usize) -> Vec<[f64; 2]> {
    lattice(agents, [PLACEMENT; 2])
}

/// Independent Gaussian random fields, pinned to zero on the edges.
pub fn draw(_: &Problem, rng: &mut ChaCha8Rng) -> Episode {
    static INITIAL: LazyLock<RandomField2d> =
        LazyLock::new(|| RandomField2d::pinned_square(GRID, INITIAL_LENGTH));
    static TARGET: LazyLock<RandomField2d> =
        LazyLock::new(|| RandomField2d::pinned_square(GRID, TARGET_LENGTH));
    Episode {
        initial: INITIAL.draw(rng),
        target: TARGET.draw(rng),
        ..Episode::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_field::episode_rng;
    use std::f64::consts::PI;

    /// Test sets' README, "Sets at a glance": mean squares 0.4772 (sd 0.3796) and 0.0871 (0.1160),
    /// error 0.5375 (0.4986), each over 50 episodes. The difference to the mean over 1,000 has a
    /// standard error of sd · √(1/50 + 1/1000) = 0.145 sd, three times which is allowed.
    #[test]
    fn draws_are_like_the_test_set() {
        let mut sums = [0.0; 3];
        for index in 0..1000 {
            let Episode {
                initial, target, ..
            } = draw(&PROBLEM, &mut episode_rng(12, index));
            for (z, t) in initial.into_iter().zip(target) {
                let (z, t) = (f64::from(z), f64::from(t));
                for (sum, square) in sums.iter_mut().zip([z * z, t * t, (z - t) * (z - t)]) {
                    *sum += square / 1024.0 / 1000.0;
                }
            }
        }
        let published = [(0.4772, 0.3796), (0.0871, 0.1160), (0.5375, 0.4986)];
        for (found, (mean, deviation)) in sums.into_iter().zip(published) {
            let error = 0.145 * deviation;
            assert!((found - mean).abs() < 3.0 * error, "{found} vs {mean}");
        }
    }

    /// sin(πx) sin(2πy) after 20 steps, in the middle of the second quarter along y, against
    /// exp(−5π²νt).
    #[test]
    fn refined_grids_converge_to_second_order() {
        let error = |points: usize| {
            let plate = PROBLEM.with_grid(points).unwrap().with_substeps(8).unwrap();
            let sine = |waves: f64, j: usize| (waves * PI * j as f64 / (points - 1) as f64).sin();
            let mut field: Vec<f64> = (0..points * points)
                .map(|at| sine(1.0, at / points) * sine(2.0, at % points))
                .collect();
            let at = points / 2 * points + points / 4;
            let (before, rest) = (field[at], vec![0.0; points * points]);
            let mut stepper = (plate.stepper)(&plate, 1);
            (0..20).for_each(|_| stepper.step(&mut field, &rest));
            let exact = (-5.0 * PI * PI * DIFFUSIVITY * 20.0 * CONTROL_INTERVAL).exp();
            (field[at] / before - exact).abs()
        };
        let errors = [17, 33, 65].map(error);
        for pair in errors.windows(2) {
            assert!((pair[0] / pair[1] - 4.0).abs() < 0.1, "{errors:?}");
        }
    }

    #[test]
    fn sixteen_agents_start_on_the_published_lattice() {
        let steps = [0.2, 0.4, 0.6, 0.8];
        let expected = steps.iter().flat_map(|&x| steps.map(|y| [x, y]));
        for (found, expected) in placement(&PROBLEM, AGENTS).into_iter().zip(expected) {
            let off = (found[0] - expected[0]).abs() + (found[1] - expected[1]).abs();
            assert!(off < 1e-15, "{found:?} vs {expected:?}");
        }
    }
}
