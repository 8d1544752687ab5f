//! The problem, and the solver that is its truth.

use problem::coefficient::{Coefficient, NOTHING_ELSE, published};
use problem::grid::{Edge, Grid};
use problem::pde::Stepper;
use problem::{Actuation, Cells, Drives, Episode, FINAL, LossWeights, Problem, Sensing};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

/// Length of the ring.
pub const LENGTH: f64 = TAU;
/// Grid points, end excluded.
pub const POINTS: usize = 64;
/// Viscosity ν, unless it is changed.
pub const VISCOSITY: f64 = 0.05;
/// Speeds that the solver's step is short enough for.
pub const SPEED_MAX: f64 = 3.0;

const RING: Grid = Grid::line(POINTS, LENGTH, Edge::Periodic);

const COEFFICIENTS: &[Coefficient] = &[Coefficient {
    name: "nu",
    meaning: "viscosity ν",
    published: VISCOSITY,
    range: [0.02, 1.0],
    adapt: NOTHING_ELSE,
}];

/// Everything about the problem that is a fact.
pub static PROBLEM: Problem = Problem {
    name: "burgers-1d",
    summary: "turn one wave on a ring into another with fixed actuators",
    quantity: "velocity u",
    grid: RING,
    sensors: RING,
    axis_names: ["x", ""],
    control_interval: 0.01,
    substeps: 1,
    horizon: 200,
    agents: 12,
    reach: [[0.0, 0.0], [LENGTH, 0.0]],
    actuation: Actuation {
        drives: Drives::Source,
        width: 0.35,
        peak_on_grid: false,
        force_max: 5.0,
        velocity_max: 0.0,
    },
    sensing: Sensing {
        window: 8,
        spacing: 1,
        cells: Cells::Points,
    },
    tracking: true,
    scoring: FINAL,
    keep_out: &[],
    loss: LossWeights {
        track: 5.0,
        effort: 1e-4,
        ..LossWeights::NONE
    },
    placement: |problem, agents| {
        let share = problem.grid.extent(0) / agents as f64;
        (0..agents)
            .map(|i| [(i as f64 + 0.5) * share, 0.0])
            .collect()
    },
    draw,
    test_set: None,
    stepper: |problem, parts| {
        let (dt, substeps) = problem.solver_steps(parts);
        Box::new(Truth::new(&Equation::of(problem), dt, substeps))
    },
    longest_step: |problem| Equation::of(problem).longest_step(),
    baseline: None,
    coverage: None,
    integral: None,
    policy: None,
    kit: None,
    form: None,
    variants: &[],
    coefficients: COEFFICIENTS,
    physics: published(COEFFICIENTS),
};

/// The same under another name, for the entry whose adjoint is Burn's.
pub static EASY: Problem = Problem {
    name: "burgers-1d-easy",
    ..PROBLEM
};

/// The equation in numbers: what every solver of it reads.
#[derive(Debug, Clone, Copy)]
pub struct Equation {
    /// ν
    pub viscosity: f64,
    /// Δx
    pub spacing: f64,
    /// Grid points.
    pub points: usize,
}

impl Equation {
    /// Of a form of the problem.
    pub fn of(problem: &Problem) -> Self {
        Self {
            viscosity: problem.coefficient("nu"),
            spacing: problem.grid.spacing(0),
            points: problem.grid.points[0],
        }
    }

    /// Euler's steps of central differences are stable where viscosity is stronger than they are.
    fn longest_step(&self) -> f64 {
        (2.0 * self.viscosity / SPEED_MAX.powi(2)).min(self.spacing / SPEED_MAX)
    }
}

/// Three waves of random phase and height, and three others as the target.
fn draw(problem: &Problem, rng: &mut ChaCha8Rng) -> Episode {
    let points = problem.sensors.len();
    let mut waves = || -> Vec<f32> {
        let all: Vec<[f64; 2]> = (0..3)
            .map(|_| [rng.random_range(-0.5..0.5), rng.random_range(0.0..TAU)])
            .collect();
        let value = |j: usize| {
            let x = TAU * j as f64 / points as f64;
            let wave = |(k, [height, phase]): (usize, &[f64; 2])| {
                height * ((k + 1) as f64 * x + phase).sin()
            };
            all.iter().enumerate().map(wave).sum::<f64>() as f32
        };
        (0..points).map(value).collect()
    };
    Episode {
        initial: waves(),
        target: waves(),
        ..Episode::default()
    }
}

/// One step: growth and forcing by Euler, diffusion implicit,
///
/// ```text
/// e_j = u_j − Δt (u²_{j+1} − u²_{j−1}) / 4Δx + Δt f_j
/// (1 + 2r) u⁺_j − r (u⁺_{j−1} + u⁺_{j+1}) = e_j,   r = ν Δt / Δx²
/// ```
///
/// The ring's system is solved by sweeps round it until nothing changes any more: slow and obvious,
/// and not what the trainer does.
#[derive(Debug)]
struct Truth {
    dt: f64,
    substeps: usize,
    ratio: f64,
    flux: f64,
    explicit: Vec<f64>,
}

impl Truth {
    fn new(equation: &Equation, dt: f64, substeps: usize) -> Self {
        Self {
            dt,
            substeps,
            ratio: equation.viscosity * dt / equation.spacing.powi(2),
            flux: dt / (4.0 * equation.spacing),
            explicit: vec![0.0; equation.points],
        }
    }

    fn substep(&mut self, u: &mut [f64], force: &[f64]) {
        let n = u.len();
        let (left, right) = (|j: usize| (j + n - 1) % n, |j: usize| (j + 1) % n);
        for j in 0..n {
            let steepening = u[right(j)].powi(2) - u[left(j)].powi(2);
            self.explicit[j] = u[j] - self.flux * steepening + self.dt * force[j];
        }
        // Gauss and Seidel's: the error falls by 2r/(1 + 2r) a sweep or faster.
        for _ in 0..10_000 {
            let mut change = 0.0f64;
            for j in 0..n {
                let next = (self.explicit[j] + self.ratio * (u[left(j)] + u[right(j)]))
                    / (1.0 + 2.0 * self.ratio);
                change = change.max((next - u[j]).abs());
                u[j] = next;
            }
            if change < 1e-14 {
                break;
            }
        }
    }
}

impl Stepper<f64> for Truth {
    fn step(&mut self, field: &mut [f64], force: &[f64]) {
        for _ in 0..self.substeps {
            self.substep(field, force);
        }
    }
}

/// What a unit in cell 0 becomes in every cell when the system above is solved: the first column of its
/// inverse, by Fourier series. For the trainer's solvers.
pub fn response(equation: &Equation, dt: f64) -> Vec<f64> {
    let n = equation.points;
    let ratio = equation.viscosity * dt / equation.spacing.powi(2);
    let turn = |m: usize, j: usize| (TAU * (m * j % n) as f64 / n as f64).cos();
    let value = |j: usize| {
        let wave = |m: usize| turn(m, j) / (1.0 + 2.0 * ratio * (1.0 - turn(m, 1)));
        (0..n).map(wave).sum::<f64>() / n as f64
    };
    (0..n).map(value).collect()
}
