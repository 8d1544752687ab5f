//! The trainer and the simulator are written apart; here they are held together.

use agent_core::agent::{AgentState, Mode};
use agent_core::message::{Observation, Patch, Span};
use agent_sim::actuate::Kernel;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::policy_file::PolicyFile;
use agent_sim::problem::{Episode, Problem, by_name};
use agent_sim::random_field::episode_rng;
use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trainer::adjoint::physics::Heat;
use trainer::export::{Training, blob};
use trainer::loss::{TERMS, Term};
use trainer::policy::{Policy, PolicyConfig};
use trainer::rollout::ClosedLoop;

fn problem() -> &'static Problem {
    by_name("heat-1d").unwrap()
}

fn episodes(seed: u64, count: u64) -> Vec<Episode> {
    (0..count)
        .map(|k| (problem().draw)(&mut episode_rng(seed, k)))
        .collect()
}

#[test]
fn the_same_forces_lead_both_solvers_to_the_same_state() {
    let p = problem();
    let heat = Heat::<f32>::new(p);
    let mut stepper = (p.stepper)(p, 1);
    let mut kernel = Kernel::new(p);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for episode in episodes(4, 3) {
        let mut trained = episode.initial.clone();
        let mut simulated: Vec<f64> = trained.iter().map(|&z| f64::from(z)).collect();
        let mut positions: Vec<f32> = (p.placement)(8).iter().map(|x| x[0] as f32).collect();
        let mut places: Vec<f64> = (p.placement)(8).iter().map(|x| x[0]).collect();
        let mut forcing = vec![0.0; heat.padded];
        let (mut explicit, mut next) = (vec![0.0; p.grid.len()], vec![0.0; p.grid.len()]);
        for _ in 0..300 {
            let forces: Vec<f32> = (0..8).map(|_| rng.random_range(-40.0..40.0)).collect();
            let velocities: Vec<f32> = (0..8).map(|_| rng.random_range(-2.0..2.0)).collect();

            heat.actuate(&positions, &forces, &mut forcing);
            heat.diffuse(&trained, &forcing, &mut explicit, &mut next);
            std::mem::swap(&mut trained, &mut next);
            let before = positions.clone();
            heat.travel(&before, velocities.iter().copied(), &mut positions);

            let mut force = vec![0.0; p.grid.len()];
            for (place, &u) in places.iter().zip(&forces) {
                kernel.add(&mut force, [*place, 0.0], &[f64::from(u)]);
            }
            stepper.step(&mut simulated, &force);
            for (place, &v) in places.iter_mut().zip(&velocities) {
                *place = (*place + p.control_interval * f64::from(v)).clamp(0.0, 1.0);
            }
        }
        let worst = trained
            .iter()
            .zip(&simulated)
            .map(|(a, b)| (f64::from(*a) - b).abs())
            .fold(0.0, f64::max);
        assert!(worst <= 1e-5, "{worst:e}");
    }
}

/// Central differences in f64 along random directions. Within 12 steps no agent crosses a cell,
/// where the observation jumps; what is left is the differences' own error, O(h²) ≈ 1e-8.
#[test]
fn the_gradient_of_a_short_rollout_is_that_of_finite_differences() {
    let config = PolicyConfig::of(problem());
    let count = config.shape.parameters();
    let closed_loop = ClosedLoop::<f64>::new(problem(), 4, 12, config.shape.clone(), config.gains);
    let episodes = episodes(9, 2);
    let weights = [5.0, 0.001, 100.0, 1.0, 0.1, 2.0];
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let parameters: Vec<f32> = (0..count).map(|_| rng.random_range(-0.3..0.3)).collect();
    let loss = |parameters: &[f32]| -> f64 {
        let (terms, tape) = closed_loop.forward(parameters, &episodes);
        closed_loop.recycle(tape);
        terms
            .iter()
            .flat_map(|terms| terms.iter().zip(weights))
            .map(|(t, w)| t * w)
            .sum()
    };
    let (_, tape) = closed_loop.forward(&parameters, &episodes);
    let gradient = closed_loop.backward(tape, &vec![weights; episodes.len()]);
    for _ in 0..5 {
        let direction: Vec<f32> = (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        // Parameters are f32: use the step that really came about.
        let moved = |h: f32| -> Vec<f32> {
            parameters
                .iter()
                .zip(&direction)
                .map(|(p, d)| p + h * d)
                .collect()
        };
        let (up, down) = (moved(1e-3), moved(-1e-3));
        let expected: f64 = gradient
            .iter()
            .zip(up.iter().zip(&down))
            .map(|(g, (u, d))| g * (f64::from(*u) - f64::from(*d)))
            .sum();
        let found = loss(&up) - loss(&down);
        assert!(
            (found / expected - 1.0).abs() <= 1e-4,
            "{found:e} {expected:e}"
        );
    }
}

fn exported(config: &PolicyConfig, module: &Policy) -> PolicyFile {
    let training = Training { seed: 0, steps: 0 };
    let bytes = blob(problem(), config, &module.parameters(), training).unwrap();
    PolicyFile::new(&bytes, "test".into())
}

/// Force and velocity in −1..1 from the Burn module.
fn decide(module: &Policy, config: &PolicyConfig, features: &[f32], x: f32) -> [f32; 2] {
    let row = |values: Vec<f32>| {
        let shape = [1, values.len()];
        Tensor::<2>::from_data(TensorData::new(values, shape), &Device::flex())
    };
    let gains = config.gains.map(|g| g as f32);
    let half = features.len() / 2;
    let scaled = features
        .iter()
        .enumerate()
        .map(|(k, f)| f * gains[k / half]);
    let output = module.forward(&config.shape, row(scaled.collect()), row(vec![x]));
    output.into_data().try_into_vec::<f32>().unwrap()[..]
        .try_into()
        .unwrap()
}

#[test]
fn an_exported_blob_acts_as_the_module_it_came_from() {
    let config = PolicyConfig::of(problem());
    for seed in 0..5 {
        let module = config.init(seed, &Device::flex());
        let file = exported(&config, &module);
        let policy = file.policy(problem()).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut rng = ChaCha8Rng::seed_from_u64(100 + seed);
        let window = problem().sensing.window;
        for _ in 0..100 {
            let field: Vec<f32> = (0..window + 2)
                .map(|_| rng.random_range(-3.0..3.0))
                .collect();
            let target = vec![0.0; window + 2];
            let x: f32 = rng.random_range(0.01..0.99);
            let whole = Span {
                first: 0,
                last: window as u16 + 1,
            };
            let action = AgentState::new().step(
                &policy,
                &mut workspace,
                &Observation::of_patch(0, [x, 0.0], Patch::line(&field, &target, whole)),
            );
            assert_eq!(action.mode, Mode::Active);
            let errors = &field[1..=window];
            let slopes = (1..=window).map(|k| (field[k + 1] - field[k - 1]) / 2.0);
            let features: Vec<f32> = errors.iter().copied().chain(slopes).collect();
            let [force, velocity] = decide(&module, &config, &features, x);
            let actuation = problem().actuation;
            let (force, velocity) = (
                f64::from(force) * actuation.force_max,
                f64::from(velocity) * actuation.velocity_max,
            );
            let close = |a: f32, b: f64, limit: f64| (f64::from(a) - b).abs() <= 1e-5 * limit;
            assert!(
                close(action.force, force, actuation.force_max),
                "{action:?} {force}"
            );
            assert!(close(action.velocity[0], velocity, actuation.velocity_max));
        }
    }
}

/// Same policy, same episodes, both closed loops to the end: a tenth of a per cent leaves room for
/// agents that cross a cell one step earlier in one precision than in the other.
#[test]
fn both_closed_loops_end_with_the_same_error() {
    let config = PolicyConfig::of(problem());
    let module = config.init(3, &Device::flex());
    let parameters = module.parameters();
    let file = exported(&config, &module);
    let policy = file.policy(problem()).unwrap();
    let experiment = Experiment {
        problem: problem(),
        controller: Controller::Policy(&policy),
        agents: 8,
        steps: problem().horizon,
        faults: &[],
        seed: 0,
    };
    let horizon = problem().horizon;
    let closed_loop: ClosedLoop =
        ClosedLoop::new(problem(), 8, horizon, config.shape.clone(), config.gains);
    let episodes = episodes(6, 8);
    let (terms, tape) = closed_loop.forward(&parameters, &episodes);
    closed_loop.recycle(tape);
    let track = Term::ALL.iter().position(|t| t.name() == "track").unwrap();
    for (episode, terms) in episodes.iter().zip(&terms) {
        let terms: &[f64; TERMS] = terms;
        let simulated = experiment
            .run(episode, &mut |_| {})
            .unwrap()
            .time_mean_error;
        assert!(
            (terms[track] / simulated - 1.0).abs() <= 1e-3,
            "{} {simulated}",
            terms[track]
        );
    }
}
