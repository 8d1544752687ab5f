//! Kuramoto–Sivashinsky equation on a square torus, with a lattice of fixed actuators:
//!
//! ```text
//! u_t = −Δu − Δ²u − ½|∇u|² + Σ_i a_i exp(−|x − ξ_i|² / 2σ²)
//! ```
//!
//! Left alone, u is chaotic in space and time; a swarm is to bring it to rest.

use crate::coefficient::{Coefficient, NOTHING_ELSE, published};
use crate::grid::{Edge, Grid};
use crate::pde::ks_2d::{LARGEST_STABLE_DT, Stages};
use crate::pde::{Ks2d, Stepper};
use crate::{
    Actuation, Cells, Drives, Episode, ErrorSensing, FINAL, LossWeights, Problem, Proportional,
    Sensing, TestSet, Variant,
};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// Length of the torus along each axis (paper), unless it is changed.
pub const LENGTH: f64 = 32.0;
/// Grid points along each axis (paper); on another torus as many as have about the same spacing.
pub const GRID: usize = 64;
/// Time step of the solver (paper).
pub const SUBSTEP: f64 = 0.005;
/// Solver steps per action (paper; the authors' training and first evaluation script). Their later
/// evaluation script takes 10.
pub const SUBSTEPS: usize = 20;
/// The scheme of the solver. The authors' code has [`Stages::AsPublished`]; over an episode the
/// mean square differs by less than 1e-4 of itself.
pub const STAGES: Stages = Stages::Proper;
/// Actions in one episode (paper).
pub const HORIZON: usize = 50;
/// Agents (paper): a lattice of 10 × 10; on another torus as many as stand about as close.
pub const AGENTS: usize = 100;
/// Width σ of an actuator (paper).
pub const WIDTH: f64 = 1.2;
/// Largest force of an agent (paper and the authors' evaluation script; 5 in their training and
/// figure scripts).
pub const FORCE_MAX: f64 = 10.0;
/// Grid points along each side of an agent's window (paper).
pub const WINDOW: usize = 12;

/// Amplitude of the white noise on the waves that an episode grows from (authors' code).
pub const NOISE: f64 = 0.05;
/// Time from those waves to the attractor (authors' code).
pub const SPIN_UP: f64 = 200.0;
/// Time step on that way. The authors' is [`SUBSTEP`]; what counts here is the attractor, whose mean
/// square is the same for both within its scatter (12.9 for steps from 0.02 to 0.5).
pub const SPIN_UP_STEP: f64 = 0.1;

/// What `agent-sim tune ks-2d` finds best.
pub const BASELINE: Proportional = Proportional {
    gain: 20.0,
    sensing: ErrorSensing::Kernel,
};

const TORUS: Grid = Grid::plane([GRID; 2], [LENGTH; 2], Edge::Periodic);

/// The published experiment.
pub static PROBLEM: Problem = Problem {
    name: "ks-2d",
    summary: "calm the chaos of a flame front on a torus with fixed actuators",
    quantity: "height of the flame front u",
    grid: TORUS,
    sensors: TORUS,
    axis_names: ["x", "y"],
    control_interval: SUBSTEPS as f64 * SUBSTEP,
    substeps: SUBSTEPS,
    horizon: HORIZON,
    agents: AGENTS,
    reach: [[0.0; 2], [LENGTH; 2]],
    actuation: Actuation {
        drives: Drives::Source,
        width: WIDTH,
        peak_on_grid: false,
        force_max: FORCE_MAX,
        velocity_max: 0.0,
    },
    sensing: Sensing {
        window: WINDOW,
        spacing: 1,
        cells: Cells::Points,
    },
    integral: None,
    tracking: false,
    scoring: FINAL,
    keep_out: &[],
    loss: LossWeights {
        track: 100.0,
        effort: 1e-4,
        ..LossWeights::NONE
    },
    placement,
    draw,
    test_set: Some(TestSet {
        origin: "testsets/ks2d.npy",
        bytes: include_bytes!("../../testsets/ks2d.npy"),
    }),
    stepper,
    longest_step: |_| LARGEST_STABLE_DT,
    baseline: Some(BASELINE),
    coverage: None,
    policy: Some(include_bytes!("../../policies/ks-2d.policy")),
    kit: None,
    form: None,
    variants: &[Variant {
        name: "as-published",
        summary: "the authors' time stepper, whose stages use coefficients of the whole step",
        apply: NOTHING_ELSE,
    }],
    coefficients: COEFFICIENTS,
    physics: published(COEFFICIENTS),
};

/// What can be changed about the equation.
const COEFFICIENTS: &[Coefficient] = &[Coefficient {
    name: "length",
    meaning: "length of the torus along each axis",
    published: LENGTH,
    range: [LENGTH / 2.0, 10.0 * LENGTH],
    adapt: on_another_torus,
}];

/// The equation in numbers, and its scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equation {
    /// Length of the torus along each axis.
    pub length: f64,
    /// How the stages of a step are weighted.
    pub stages: Stages,
}

/// The equation of this form of the problem.
pub fn equation(problem: &Problem) -> Equation {
    Equation {
        length: problem.coefficient("length"),
        stages: match problem.form {
            Some("as-published") => Stages::AsPublished,
            _ => STAGES,
        },
    }
}

/// Sensors and agents keep the published spacing, as nearly as a lattice of whole rows can (an even
/// number of sensors), so that a window covers the same stretch of the front, and a policy made for
/// one torus can be used on any.
fn on_another_torus(problem: Problem) -> Problem {
    let Equation { length, .. } = equation(&problem);
    let as_dense = |published: f64| (published * length / LENGTH).round() as usize;
    let sensors = 2 * as_dense(GRID as f64 / 2.0);
    let torus = Grid::plane([sensors; 2], [length; 2], Edge::Periodic);
    Problem {
        grid: torus,
        sensors: torus,
        agents: as_dense((AGENTS as f64).sqrt()).pow(2),
        reach: [torus.low, torus.high],
        ..problem
    }
}

fn stepper(problem: &Problem, parts: usize) -> Box<dyn Stepper<f64>> {
    let (dt, substeps) = problem.solver_steps(parts);
    let Equation { length, stages } = equation(problem);
    let points = problem.grid.points;
    Box::new(Ks2d::<f64>::new(points, length, dt, substeps, stages))
}

/// Cell centres of the smallest square lattice that holds all agents.
pub fn placement(problem: &Problem, agents: usize) -> Vec<[f64; 2]> {
    crate::placement::cell_centres(agents, problem.sensors.extent(0))
}

/// Large waves with random phases and noise, evolved until they are forgotten. The target is rest.
pub fn draw(problem: &Problem, rng: &mut ChaCha8Rng) -> Episode {
    let torus = &problem.sensors;
    let mut field = waves(torus, rng);
    let rest = vec![0.0; field.len()];
    let substeps = 20;
    let length = torus.extent(0);
    let mut stepper = Ks2d::new(torus.points, length, SPIN_UP_STEP, substeps, STAGES);
    let intervals = (SPIN_UP / SPIN_UP_STEP) as usize / substeps;
    (0..intervals).for_each(|_| stepper.step(&mut field, &rest));
    Episode {
        initial: field.iter().map(|&u| u as f32).collect(),
        target: vec![0.0; field.len()],
        ..Episode::default()
    }
}

/// Two long waves (those of the published torus are its longest), half as much of one half as long, and
/// noise, standardised.
fn waves(torus: &Grid, rng: &mut impl Rng) -> Vec<f64> {
    let [a, b, c] = std::array::from_fn(|_| rng.random_range(0.0..TAU));
    let [rows, columns] = torus.points;
    // As long as on the published torus, as nearly as whole numbers of them fit.
    let round = TAU * (torus.extent(0) / LENGTH).round().max(1.0);
    let mut field: Vec<f64> = (0..torus.len())
        .map(|j| {
            let x = round * (j / columns) as f64 / rows as f64;
            let y = round * (j % columns) as f64 / columns as f64;
            let noise: f64 = StandardNormal.sample(rng);
            let long = libm::sin(x + a) * libm::cos(y + b);
            long + 0.5 * libm::sin(2.0 * x + c) + NOISE * noise
        })
        .collect();
    let points = field.len() as f64;
    let mean = field.iter().sum::<f64>() / points;
    field.iter_mut().for_each(|u| *u -= mean);
    let variance = field.iter().map(|u| u * u).sum::<f64>() / points;
    field.iter_mut().for_each(|u| *u /= variance.sqrt());
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_field::episode_rng;
    use rayon::prelude::*;

    #[test]
    fn agents_stand_on_cell_centres() {
        let all = placement(&PROBLEM, AGENTS);
        assert_eq!(all.len(), 100);
        assert!((all[0][0] - 1.6).abs() < 1e-12 && (all[0][1] - 1.6).abs() < 1e-12);
        // Axis 1 runs faster: the second agent is one tenth of the length further along it.
        assert!((all[1][0] - 1.6).abs() < 1e-12 && (all[1][1] - 4.8).abs() < 1e-12);
        assert!((all[99][0] - 30.4).abs() < 1e-12);
        assert_eq!(placement(&PROBLEM, 5).len(), 5); // of a lattice of 3 × 3
        assert!(placement(&PROBLEM, 0).is_empty());
    }

    /// Test sets' README: mean u² is 12.62, sd 2.30, over 20 episodes, whose mean scatters by
    /// 2.30/√20 = 0.51; that of 60 by 0.30. Three standard deviations of the difference are 1.8.
    #[test]
    fn fresh_episodes_lie_on_the_attractor() {
        let energies: Vec<f64> = (0..60)
            .into_par_iter()
            .map(|k| {
                let field = draw(&PROBLEM, &mut episode_rng(5, k)).initial;
                field.iter().map(|&u| f64::from(u).powi(2)).sum::<f64>() / field.len() as f64
            })
            .collect();
        let mean = energies.iter().sum::<f64>() / 60.0;
        let spread = (energies.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 60.0).sqrt();
        println!("mean u² {mean:.2}, sd {spread:.2}");
        assert!((mean - 12.62).abs() < 1.8, "{mean}");
        assert!((1.3..3.3).contains(&spread), "{spread}");
    }

    #[test]
    fn the_variant_has_the_authors_stages() {
        let published = PROBLEM.with_variant("as-published").unwrap();
        assert_eq!(
            [&PROBLEM, &published].map(|form| equation(form).stages),
            [Stages::Proper, Stages::AsPublished]
        );
    }

    /// 48 · 64 / 32 = 96 sensors and 48 · 10 / 32 = 15 agents to a side.
    #[test]
    fn another_torus_keeps_the_spacing_of_sensors_and_agents() {
        let wide = PROBLEM.with_physics([("length", 48.0)]).unwrap();
        assert_eq!((wide.sensors.points, wide.agents), ([96, 96], 225));
        assert_eq!(wide.sensors.spacing(1), PROBLEM.sensors.spacing(1));
        assert_eq!(wide.reach, [[0.0; 2], [48.0; 2]]);
        let all = placement(&wide, wide.agents);
        assert!((all[1][1] - 4.8).abs() < 1e-12 && (all[224][0] - 46.4).abs() < 1e-12);
        // Neither half a sensor nor an odd number of them: 33 · 2 = 66.
        let odd = PROBLEM.with_physics([("length", 32.6)]).unwrap();
        assert_eq!(odd.sensors.points, [66, 66]);
    }

    #[test]
    fn waves_are_standardised_and_follow_the_seed() {
        let field = waves(&TORUS, &mut episode_rng(1, 0));
        let moment = |power: i32| field.iter().map(|u| u.powi(power)).sum::<f64>() / 4096.0;
        assert!(moment(1).abs() < 1e-12 && (moment(2) - 1.0).abs() < 1e-12);
        assert_eq!(field, waves(&TORUS, &mut episode_rng(1, 0)));
        assert_ne!(field, waves(&TORUS, &mut episode_rng(1, 1)));
    }
}
