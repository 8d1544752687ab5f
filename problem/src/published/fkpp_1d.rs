//! Fisher's equation on a line with mobile sources and sinks:
//!
//! ```text
//! z_t = ν z_xx + ρ z (1 − z) + Σ_i u_i exp(−(x − ξ_i)² / 2σ²),   ξ_i' = v_i,   z = 0 at both walls
//! ```
//!
//! A swarm shapes a population that spreads and grows by itself. Densities are cut to [0, 1] after
//! every step, as in the authors' code.

use super::heat_1d::{LOSS, TRUE_SPACING, scheme_spacing};
use crate::coefficient::{Coefficient, NOTHING_ELSE, published};
use crate::grid::{Edge, Grid};
use crate::pde::Fkpp1d;
use crate::placement::evenly;
use crate::random_field::RandomField;
use crate::{
    Actuation, Cells, Drives, Episode, ErrorSensing, FINAL, Problem, Proportional, Sensing, TestSet,
};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;
use std::sync::LazyLock;

/// Diffusivity ν (paper, Fisher–KPP), unless it is changed.
pub const DIFFUSIVITY: f64 = 0.005;
/// Growth rate ρ (paper), unless it is changed.
pub const GROWTH: f64 = 3.0;
/// Grid points, ends included (paper).
pub const GRID: usize = 100;
/// Time between two actions, one step of the scheme (paper).
pub const CONTROL_INTERVAL: f64 = 1e-3;
/// Actions in one episode (paper).
pub const HORIZON: usize = 300;
/// Agents in the published experiment (paper).
pub const AGENTS: usize = 20;
/// Standard deviation σ of the actuation kernel (paper); its peak is 1 in the authors' code, while
/// the paper normalises its integral.
pub const KERNEL_WIDTH: f64 = 0.05;
/// Largest |u| (authors' code).
pub const FORCE_MAX: f64 = 40.0;
/// Largest |v| (authors' code and its published policies; an early version has 1).
pub const VELOCITY_MAX: f64 = 2.0;
/// Agents stand in this range at the start (authors' code).
pub const PLACEMENT: [f64; 2] = [0.2, 0.8];
/// Correlation length of the field that initial densities are made from (paper, data table).
pub const INITIAL_LENGTH: f64 = 0.2;
/// Correlation length of the field that targets are made from (paper, data table).
pub const TARGET_LENGTH: f64 = 0.4;
/// Standard deviation of those fields (authors' code; the paper gives none).
pub const LATENT_DEVIATION: f64 = 2.0;

/// Cells that an agent sees (authors' code).
pub const WINDOW: usize = 8;

/// What `agent-sim tune fkpp-1d` finds best: 2.4e-3. From 600 on the loop is unstable.
pub const BASELINE: Proportional = Proportional {
    gain: 500.0,
    sensing: ErrorSensing::Kernel,
};

/// The same for agents that spread over the errors (agent-sim tune fkpp-1d --controller coverage).
pub const COVERAGE: Proportional = Proportional {
    gain: 500.0,
    sensing: ErrorSensing::Point,
};

const LINE: Grid = Grid::line(GRID, 1.0, Edge::Wall);

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "fkpp-1d",
    summary: "shape a population that spreads and grows by itself, with mobile sources and sinks",
    quantity: "population density z",
    grid: LINE,
    sensors: LINE,
    axis_names: ["x", ""],
    control_interval: CONTROL_INTERVAL,
    substeps: 1,
    horizon: HORIZON,
    agents: AGENTS,
    reach: [[0.0, 0.0], [1.0, 0.0]],
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
        origin: "testsets/fkpp1d.npy",
        bytes: include_bytes!("../../testsets/fkpp1d.npy"),
    }),
    stepper: |problem, parts| {
        let (dt, substeps) = problem.solver_steps(parts);
        let Equation {
            diffusivity,
            growth,
            spacing,
        } = equation(problem);
        Box::new(Fkpp1d::<f64>::new(
            problem.grid.points[0],
            diffusivity,
            growth,
            spacing,
            dt,
            substeps,
        ))
    },
    longest_step: |problem| Fkpp1d::<f64>::largest_stable_dt(equation(problem).growth),
    baseline: Some(BASELINE),
    coverage: Some(COVERAGE),
    policy: Some(include_bytes!("../../policies/fkpp-1d.policy")),
    kit: None,
    form: None,
    variants: &[TRUE_SPACING],
    coefficients: COEFFICIENTS,
    physics: published(COEFFICIENTS),
};

/// What can be changed about the equation.
const COEFFICIENTS: &[Coefficient] = &[
    Coefficient {
        name: "nu",
        meaning: "diffusivity ν",
        published: DIFFUSIVITY,
        range: [1e-9, 1.0],
        adapt: NOTHING_ELSE,
    },
    Coefficient {
        name: "rho",
        meaning: "growth rate ρ",
        published: GROWTH,
        range: [1e-3, 100.0],
        adapt: NOTHING_ELSE,
    },
];

/// The equation in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equation {
    /// ν
    pub diffusivity: f64,
    /// ρ
    pub growth: f64,
    /// Δx in the scheme, see [`scheme_spacing`].
    pub spacing: f64,
}

/// The equation of this form of the problem.
pub fn equation(problem: &Problem) -> Equation {
    Equation {
        diffusivity: problem.coefficient("nu"),
        growth: problem.coefficient("rho"),
        spacing: scheme_spacing(problem, 0),
    }
}

/// Evenly from 0.2 to 0.8; a lone agent stands in the middle.
pub fn placement(_: &Problem, agents: usize) -> Vec<[f64; 2]> {
    evenly(agents, PLACEMENT).map(|x| [x, 0.0]).collect()
}

/// Independent densities: exp(g) sin²(πx) over its maximum, g a Gaussian random field pinned to zero
/// at the walls. (The paper writes "proportional to"; the maximum is the authors' code's.)
///
/// Test episodes are drawn like this; the authors' training pairs share their random numbers
/// between initial field and target, which these do not.
pub fn draw(_: &Problem, rng: &mut ChaCha8Rng) -> Episode {
    static INITIAL: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, INITIAL_LENGTH));
    static TARGET: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, TARGET_LENGTH));
    Episode {
        initial: density(&INITIAL.draw(rng)),
        target: density(&TARGET.draw(rng)),
        ..Episode::default()
    }
}

/// The density that a field of unit variance stands for.
fn density(field: &[f32]) -> Vec<f32> {
    let last = field.len() - 1;
    let bump = |(j, &g): (usize, &f32)| match j {
        0 => 0.0,
        j if j == last => 0.0,
        _ => {
            let sine = libm::sin(PI * j as f64 / last as f64);
            libm::exp(LATENT_DEVIATION * f64::from(g)) * sine * sine
        }
    };
    let bumps: Vec<f64> = field.iter().enumerate().map(bump).collect();
    // The authors' guard against fields that are zero everywhere.
    let scale = bumps.iter().copied().fold(0.0, f64::max) + 1e-6;
    bumps.iter().map(|b| (b / scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_field::episode_rng;

    /// Test sets' README, "Sets at a glance": mean squares 0.2081 (sd 0.0912) and 0.3040 (0.0761),
    /// error 0.1288 (0.0719), each over 50 episodes. The difference to the mean over 2,000 has a
    /// standard error of sd · √(1/50 + 1/2000) = 0.143 sd, three times which is allowed.
    #[test]
    fn draws_are_like_the_test_set() {
        let mut sums = [0.0; 3];
        for index in 0..2000 {
            let Episode {
                initial, target, ..
            } = draw(&PROBLEM, &mut episode_rng(11, index));
            for j in 0..GRID {
                let (z, t) = (f64::from(initial[j]), f64::from(target[j]));
                for (sum, square) in sums.iter_mut().zip([z * z, t * t, (z - t) * (z - t)]) {
                    *sum += square / GRID as f64 / 2000.0;
                }
            }
            for field in [initial, target] {
                assert_eq!((field[0], field[GRID - 1]), (0.0, 0.0));
                let top = field.iter().copied().fold(0.0, f32::max);
                assert!((top - 1.0).abs() < 1e-4 && field.iter().all(|z| *z >= 0.0));
            }
        }
        let published = [(0.2081, 0.0912), (0.3040, 0.0761), (0.1288, 0.0719)];
        for (found, (mean, deviation)) in sums.into_iter().zip(published) {
            let error = 0.143 * deviation;
            assert!((found - mean).abs() < 3.0 * error, "{found} vs {mean}");
        }
    }

    #[test]
    fn agents_start_between_the_walls() {
        assert_eq!(placement(&PROBLEM, 4)[0], [0.2, 0.0]);
        assert!((placement(&PROBLEM, 4)[3][0] - 0.8).abs() < 1e-15);
    }
}
