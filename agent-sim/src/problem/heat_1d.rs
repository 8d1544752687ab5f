//! Heat equation on a line with mobile heaters and coolers:
//!
//! ```text
//! z_t = ν z_xx + Σ_i u_i exp(−(x − ξ_i)² / 2σ²),   ξ_i' = v_i,   z = 0 at both walls
//! ```
//!
//! A swarm steers a random temperature profile to another one and holds it there against diffusion.

use super::{Actuation, Episode, ErrorSensing, LossWeights, Problem, Proportional, Sensing};
use crate::pde::Heat1d;
use crate::random_field::RandomField;
use rand_chacha::ChaCha8Rng;
use std::sync::LazyLock;

/// Diffusivity ν (paper, heat 1D).
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

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "heat-1d",
    summary: "steer a temperature profile on a rod with mobile heaters and coolers",
    grid: GRID,
    domain: [0.0, 1.0],
    // The published scheme divides by 1/N although N points include both ends (true spacing 1/99).
    dx: 1.0 / GRID as f64,
    control_interval: 1e-3,
    horizon: 300,
    agents: 8,
    actuation: Actuation {
        width: 0.1,
        force_max: 40.0,
        velocity_max: 2.0,
    },
    sensing: Sensing { window: 8 },
    loss: LossWeights {
        track: 5.0,
        effort: 0.001,
        velocity_effort: 0.1,
        bound: 100.0,
        margin: 0.02,
        collision: 1.0,
        safe_distance: 0.05,
        acceleration: 0.1,
    },
    placement,
    draw,
    test_set: "heat1d.npy",
    table: || include_bytes!("../../../testsets/heat1d.npy"),
    stepper: |problem| {
        Box::new(Heat1d::<f64>::new(
            problem.grid,
            DIFFUSIVITY,
            problem.dx,
            problem.control_interval,
            1,
        ))
    },
    baseline: BASELINE,
};

/// Evenly from 0.2 to 0.8; a lone agent stands in the middle.
pub fn placement(agents: usize) -> Vec<f64> {
    match agents {
        1 => vec![0.5],
        _ => (0..agents)
            .map(|i| 0.2 + 0.6 * i as f64 / (agents - 1) as f64)
            .collect(),
    }
}

/// Independent Gaussian random fields, pinned to zero at the walls.
fn draw(rng: &mut ChaCha8Rng) -> Episode {
    static INITIAL: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, INITIAL_LENGTH));
    static TARGET: LazyLock<RandomField> =
        LazyLock::new(|| RandomField::pinned_line(GRID, TARGET_LENGTH));
    Episode {
        initial: INITIAL.draw(rng),
        target: TARGET.draw(rng),
    }
}
