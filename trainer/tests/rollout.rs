//! The fast rollout against the slow one, against finite differences, and against itself.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use problem::published::{ALL, heat_1d::PROBLEM};
use problem::random_field::episode_rng;
use problem::{Episode, Problem};
use std::sync::Arc;
use trainer::loss::{TERMS, Term};
use trainer::operation::{Batch, rollout};
use trainer::policy::{PolicyConfig, Shape};
use trainer::rollout::ClosedLoop;
use trainer::trial::Trial;
use trainer::{loss, reference};

fn episodes(count: u64) -> Vec<Episode> {
    (0..count)
        .map(|k| (PROBLEM.draw)(&PROBLEM, &mut episode_rng(11, k)))
        .collect()
}

fn trials(problem: &Problem, agents: usize, count: u64) -> Vec<Trial> {
    (0..count)
        .map(|k| (problem.draw)(problem, &mut episode_rng(11, k)))
        .map(|episode| Trial::plain(problem, agents, episode))
        .collect()
}

/// Parameters that make agents act and move within a few steps, but do not saturate them: without
/// a slope there is nothing to compare.
fn lively(shape: &Shape) -> Vec<f32> {
    let mut parameters = Vec::new();
    for [inputs, outputs] in shape.layers() {
        let height = 1.7 / (inputs as f32).sqrt();
        for _ in 0..(inputs + 1) * outputs {
            parameters.push(height * (0.37 * parameters.len() as f32 + 0.1).sin());
        }
    }
    parameters
}

fn closed_loop(agents: usize, horizon: usize, config: &PolicyConfig) -> ClosedLoop {
    ClosedLoop::new(&PROBLEM, agents, horizon, config)
}

/// Largest difference, relative to the largest value.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    a.iter()
        .zip(b)
        .fold(0.0f32, |m, (a, b)| m.max((a - b).abs()))
        / scale
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

#[test]
fn terms_and_gradient_agree_with_plain_tensor_operations() {
    // 30 agents stand closer than the safe distance; 3 episodes do not fill a group.
    for (agents, horizon, count) in [(2, 1, 1), (3, 12, 3), (30, 6, 2)] {
        let device = Device::flex().autodiff();
        let config = PolicyConfig::of(&PROBLEM);
        let policy = config.with_parameters(&lively(&config.shape), &device);
        let episodes = episodes(count);
        let mixed = |terms: Tensor<2>| {
            let weights = [5.0f32, 0.001, 100.0, 1.0, 0.1, 0.5, 0.0, 0.0, 0.2, 0.3];
            (terms * Tensor::<1>::from_floats(weights, &device).reshape([1, TERMS])).sum()
        };

        let batch = Batch {
            closed_loop: Arc::new(closed_loop(agents, horizon, &config)),
            trials: trials(&PROBLEM, agents, count).into(),
        };
        let fast = rollout(policy.flat(), batch);
        let slow = reference::rollout(
            &policy, &config, &PROBLEM, agents, horizon, &episodes, &device,
        );
        for (k, term) in Term::ALL.iter().enumerate() {
            let column = |t: &Tensor<2>| values(t.clone().narrow(1, k, 1));
            let (fast, slow) = (column(&fast), column(&slow));
            if slow.iter().any(|&v| v != 0.0) {
                // Changes of velocity are small differences of large numbers.
                let bound = if *term == Term::Acceleration {
                    2e-4
                } else {
                    1e-5
                };
                assert!(
                    distance(&fast, &slow) < bound,
                    "{}: {fast:?} {slow:?}",
                    term.name()
                );
            } else {
                assert_eq!(fast, slow, "{}", term.name());
            }
        }
        let gradient = |loss: Tensor<1>| {
            let grads = loss.backward();
            let mut flat = Vec::new();
            struct Collect<'a>(&'a burn::tensor::Gradients, &'a mut Vec<f32>);
            impl burn::module::ModuleVisitor for Collect<'_> {
                fn visit_float<const D: usize>(&mut self, p: &burn::module::Param<Tensor<D>>) {
                    self.1.extend(values(p.val().grad(self.0).unwrap()));
                }
            }
            policy.visit(&mut Collect(&grads, &mut flat));
            flat
        };
        let (fast, slow) = (gradient(mixed(fast)), gradient(mixed(slow)));
        let off = distance(&fast, &slow);
        assert!(
            off < 1e-4,
            "{agents} agents, {horizon} steps: gradients differ by {off}"
        );
    }
}

/// Along the gradient itself, in f64, so that rounding does not hide an error. Every problem, every
/// term that it has, with deaths, delays and noise: three episodes, one plain, one in which an agent
/// dies and one in which actions come late.
#[test]
fn the_gradient_is_the_slope_of_the_terms() {
    for problem in ALL {
        let config = PolicyConfig::of(problem);
        let (agents, horizon) = (4, 6);
        let closed_loop = ClosedLoop::<f64>::new(problem, agents, horizon, &config);
        let mut trials = trials(problem, agents, 3);
        trials[1].dies_at[2] = 3;
        trials[1].actuator_noise = 0.1;
        trials[2].delay = 2;
        trials[2].sensor_noise = 0.01;
        let parameters = lively(&config.shape);
        for (k, term) in Term::ALL.iter().enumerate() {
            let mut weights = [0.0; TERMS];
            weights[k] = 1.0;
            let value = |parameters: &[f32]| {
                let (terms, tape) = closed_loop.forward(parameters, &trials);
                (terms.iter().map(|t| t[k]).sum::<f64>(), tape)
            };
            let (_, tape) = value(&parameters);
            let gradient = closed_loop.backward(tape, &trials, &vec![weights; trials.len()]);
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            if norm == 0.0 {
                // Nobody comes near a wall, another agent or a zone in so few steps; these terms
                // have tests of their own.
                let rare = [Term::Bound, Term::Collision, Term::Obstacle];
                let absent = match term {
                    Term::Centroid => problem.name != "density-2d",
                    Term::Acceleration => problem.actuation.velocity_max == 0.0,
                    other => rare.contains(other),
                };
                assert!(absent, "{}: {} has no gradient", problem.name, term.name());
                continue;
            }
            let moved = |h: f64| -> Vec<f32> {
                (parameters.iter().zip(&gradient))
                    .map(|(&p, g)| (f64::from(p) + h * g / norm) as f32)
                    .collect()
            };
            // Parameters are f32: use the step that rounding really made.
            let (up, down) = (moved(1e-4), moved(-1e-4));
            let expected: f64 = (up.iter().zip(&down).zip(&gradient))
                .map(|((&u, &d), g)| (f64::from(u) - f64::from(d)) * g)
                .sum();
            let slope = value(&up).0 - value(&down).0;
            assert!(
                (slope / expected - 1.0).abs() < 2e-3,
                "{}: {}: {slope} against {expected}",
                problem.name,
                term.name()
            );
        }
    }
}

fn in_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
        .install(work)
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let config = PolicyConfig::of(&PROBLEM);
    let run = |threads| {
        in_pool(threads, || {
            let closed_loop = closed_loop(5, 8, &config);
            let trials = trials(&PROBLEM, 5, 21);
            // Twice: recycled buffers must not show either.
            let mut results = Vec::new();
            for _ in 0..2 {
                let (terms, tape) = closed_loop.forward(&lively(&config.shape), &trials);
                let weights = loss::weights(&PROBLEM.loss);
                results.push((
                    terms,
                    closed_loop.backward(tape, &trials, &vec![weights; trials.len()]),
                ));
            }
            results
        })
    };
    let one = run(1);
    assert_eq!(one[0], one[1]);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

#[test]
fn an_episode_does_not_depend_on_its_company() {
    let config = PolicyConfig::of(&PROBLEM);
    let closed_loop = closed_loop(8, 10, &config);
    let trials = trials(&PROBLEM, 8, 7);
    let (together, _) = closed_loop.forward(&lively(&config.shape), &trials);
    let (alone, _) = closed_loop.forward(&lively(&config.shape), &trials[5..6]);
    assert_eq!(together[5], alone[0]);
}

/// Agents that push nothing: the terms of the uncontrolled field alone.
#[test]
fn idle_agents_cost_nothing() {
    let config = PolicyConfig::of(&PROBLEM);
    let problem: &Problem = &PROBLEM;
    let (terms, _) = closed_loop(8, problem.horizon, &config).forward(
        &vec![0.0; config.shape.parameters()],
        &trials(problem, 8, 3),
    );
    for terms in terms {
        assert!(terms[Term::Final as usize] > 1e-3);
        for term in [
            Term::Effort,
            Term::Bound,
            Term::Collision,
            Term::Acceleration,
        ] {
            assert_eq!(terms[term as usize], 0.0);
        }
    }
}
