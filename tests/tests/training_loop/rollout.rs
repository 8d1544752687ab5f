//! The fast rollout against the slow one, against finite differences, and against itself.

use crate::drawn::{episodes, family};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use problem::published::heat_1d::PROBLEM;
use problem::{Drives, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trainer::entry::Entry;
use trainer::host_loop::HostLoop;
use trainer::loss::{TERMS, Term};
use trainer::policy::{PolicyConfig, Shape};
use trainer::published::{ENTRIES, heat_1d};
use trainer::rollout::Rollout;
use trainer::trial::Trial;
use trainer::{loss, reference};

fn trials(problem: &Problem, agents: usize, count: u64) -> Vec<Trial> {
    let episodes = episodes(problem, 11, count).into_iter();
    episodes
        .map(|episode| Trial::plain(problem, agents, episode))
        .collect()
}

/// Four episodes: one plain, one in which an agent dies, one with half the agents, one in which actions
/// come late.
fn hard_trials(problem: &Problem, agents: usize) -> Vec<Trial> {
    let mut trials = trials(problem, agents, 4);
    trials[1].dies_at[2] = 3;
    trials[1].actuator_noise = 0.1;
    trials[2] = Trial::plain(problem, agents / 2, trials[2].episode.clone());
    trials[3].delay = 2;
    trials[3].sensor_noise = 0.01;
    trials
}

/// The forms of a problem with a hand-written step: others are refused by name. (The adjoint of tensor
/// operations is Burn's to test.)
fn forms(entry: &Entry) -> Vec<Problem> {
    let mut forms = entry.problem.forms();
    forms.retain(|form| match entry.physics.step_by_hand::<f64>(form) {
        None => false,
        Some(Ok(_)) => true,
        Some(Err(refused)) => {
            assert!(refused.to_string().contains(&form.described()), "{refused}");
            false
        }
    });
    forms
}

fn double(entry: &Entry, problem: &Problem, horizon: usize) -> HostLoop<f64> {
    let physics = entry.physics;
    let make = move |form: &Problem| physics.step_by_hand(form).unwrap();
    let closed_loop = HostLoop::new(problem, make(problem).unwrap(), horizon, &config(entry));
    closed_loop.unwrap().for_family(Box::new(make))
}

/// The same episodes with the ends of the problem's family, the usual coefficients between them.
fn mixed(problem: &Problem, mut trials: Vec<Trial>) -> (Problem, Vec<Trial>) {
    let family = family(problem);
    let ends = family.ends();
    let forms = [ends.first(), None, ends.last()].into_iter().cycle();
    for (trial, end) in trials.iter_mut().zip(forms) {
        trial.physics = *end.unwrap_or(&family.usual.physics);
    }
    (family.usual, trials)
}

/// The recipe's network with a memory of three numbers; where there is no target, of agents that rest.
fn config(entry: &Entry) -> PolicyConfig {
    let mut config = entry.recipe.full(entry.problem).policy;
    config.shape.memory = 3;
    if !entry.problem.tracking {
        config.shape = config.shape.resting();
    }
    config
}

/// Parameters that make agents act and move within a few steps, but do not saturate them: without
/// a slope there is nothing to compare.
fn lively(shape: &Shape) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut parameters = Vec::new();
    for [inputs, outputs] in shape.layers() {
        let height = 2.0 / (inputs as f32).sqrt();
        let layer = (0..(inputs + 1) * outputs).map(|_| rng.random_range(-height..height));
        parameters.extend(layer);
    }
    parameters
}

fn closed_loop(horizon: usize, config: &PolicyConfig) -> HostLoop {
    let make = |form: &Problem| heat_1d::ENTRY.physics.step_by_hand(form).unwrap();
    let closed_loop = HostLoop::new(&PROBLEM, make(&PROBLEM).unwrap(), horizon, config);
    closed_loop.unwrap().for_family(Box::new(make))
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
    for (agents, horizon, count, memory) in
        [(2, 1, 1, 2), (3, 12, 3, 2), (30, 6, 2, 1), (3, 12, 3, 0)]
    {
        let device = Device::flex().autodiff();
        let mut config = config(&heat_1d::ENTRY);
        config.shape.memory = memory;
        let parameters = lively(&config.shape);
        let policy = config.with_parameters(&parameters, &device);
        let episodes = episodes(&PROBLEM, 11, count);
        let weights = [5.0, 0.001, 100.0, 1.0, 0.1, 0.5, 0.0, 0.0, 0.2, 0.3];

        let trials = trials(&PROBLEM, agents, count);
        let (fast, gradient) = closed_loop(horizon, &config)
            .gradient(&parameters, &trials, &weights)
            .unwrap();
        let slow = reference::rollout(
            &policy, &config, &PROBLEM, agents, horizon, &episodes, &device,
        );
        for (k, term) in Term::ALL.iter().enumerate() {
            let fast: Vec<f32> = fast.iter().map(|terms| terms[k] as f32).collect();
            let slow = values(slow.clone().narrow(1, k, 1));
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
        let weights = weights.map(|w| w as f32);
        let weights = Tensor::<1>::from_floats(weights, &device).reshape([1, TERMS]);
        let grads = ((slow * weights).sum() / count as f64).backward();
        let mut slow = Vec::new();
        struct Collect<'a>(&'a burn::tensor::Gradients, &'a mut Vec<f32>);
        impl burn::module::ModuleVisitor for Collect<'_> {
            fn visit_float<const D: usize>(&mut self, p: &burn::module::Param<Tensor<D>>) {
                self.1.extend(values(p.val().grad(self.0).unwrap()));
            }
        }
        policy.visit(&mut Collect(&grads, &mut slow));
        let off = distance(&gradient, &slow);
        assert!(
            off < 1e-4,
            "{agents} agents, {horizon} steps: gradients differ by {off}"
        );
    }
}

/// Every term has a gradient where it can have one: every problem, with deaths, delays and noise.
#[test]
fn every_term_of_a_problem_has_a_gradient() {
    let by_hand = ENTRIES.iter().filter(|entry| !forms(entry).is_empty());
    for entry in by_hand {
        let problem = entry.problem;
        let closed_loop = double(entry, problem, 6);
        let trials = hard_trials(problem, 4);
        let parameters = lively(&closed_loop.shape);
        for (k, term) in Term::ALL.iter().enumerate() {
            let mut weights = [0.0; TERMS];
            weights[k] = 1.0;
            let (_, tape) = closed_loop.forward(&parameters, &trials);
            let gradient = closed_loop.backward(tape, &trials, &vec![weights; trials.len()]);
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            if norm == 0.0 {
                // Nobody comes near a wall, another agent or a zone in so few steps; these terms
                // have tests of their own.
                let rare = [Term::Bound, Term::Collision, Term::Obstacle];
                let absent = match term {
                    Term::Centroid => problem.actuation.drives != Drives::Flow,
                    Term::Acceleration => problem.actuation.velocity_max == 0.0,
                    other => rare.contains(other),
                };
                assert!(absent, "{}: {} has no gradient", problem.name, term.name());
                continue;
            }
            let slope = slope(
                &closed_loop,
                &trials,
                &weights,
                &parameters,
                &gradient,
                norm,
            );
            assert!(
                (slope / norm - 1.0).abs() < 2e-3,
                "{}: {}: {slope} against {norm}",
                problem.name,
                term.name()
            );
        }
    }
}

/// The slope of the weighted terms' sum along a direction of length `norm`, by central differences in
/// f64, so that rounding does not hide an error.
fn slope(
    closed_loop: &HostLoop<f64>,
    trials: &[Trial],
    weights: &[f64; TERMS],
    parameters: &[f32],
    direction: &[f64],
    norm: f64,
) -> f64 {
    const STEP: f64 = 1e-4;
    let value = |h: f64| {
        // Parameters are f32: the step that rounding really made counts.
        let moved: Vec<f32> = (parameters.iter().zip(direction))
            .map(|(&p, d)| (f64::from(p) + h * d / norm) as f32)
            .collect();
        let along: f64 = (moved.iter().zip(parameters).zip(direction))
            .map(|((&m, &p), d)| (f64::from(m) - f64::from(p)) * d / norm)
            .sum();
        let (terms, tape) = closed_loop.forward(&moved, trials);
        closed_loop.recycle(tape);
        let sum: f64 = (terms.iter().flatten())
            .zip(weights.iter().cycle())
            .map(|(term, weight)| term * weight)
            .sum();
        (sum, along)
    };
    let ((up, above), (down, below)) = (value(STEP), value(-STEP));
    (up - down) / (above - below)
}

/// Along random directions, a block of parameters at a time (each layer's weights, each layer's
/// biases), in every form of every problem, and with coefficients of its own for every episode: a block
/// whose gradient is zero or wrong cannot hide behind the others.
#[test]
fn the_gradient_is_the_slope_along_random_directions_in_every_block() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for entry in ENTRIES {
        let mut cases: Vec<(Problem, Vec<Trial>)> = (forms(entry).into_iter())
            .map(|problem| (problem, hard_trials(&problem, 4)))
            .collect();
        if !cases.is_empty() {
            cases.push(mixed(entry.problem, hard_trials(entry.problem, 4)));
        }
        for (problem, trials) in cases {
            let closed_loop = double(entry, &problem, 4);
            assert_slopes(&closed_loop, &trials, &mut rng);
        }
    }
}

/// One network that decides for all agents: the same, in every problem, when agents die, act late or are moved by
/// noise.
#[test]
fn a_network_for_all_agents_has_the_gradient_it_claims() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for entry in ENTRIES {
        let problem = entry.problem;
        let Some(step) = entry.physics.step_by_hand(problem) else {
            continue;
        };
        // Some of the finest picture, some of coarser ones.
        let picture = match problem.grid.axes {
            1 => problem.grid.points,
            _ => [8, 8],
        };
        let mut config = PolicyConfig::centralised(problem, 4, picture, 0.5);
        config.shape.branch = [7, 6];
        config.shape.trunk = [5, 4];
        config.shape.fuse = 8;
        let closed_loop = HostLoop::new(problem, step.unwrap(), 4, &config).unwrap();
        let mut trials = hard_trials(problem, 4);
        trials[2] = Trial::plain(problem, 4, trials[2].episode.clone());
        assert_slopes(&closed_loop, &trials, &mut rng);
    }
}

/// The gradient of all terms is the slope along random directions, a block of parameters at a time.
fn assert_slopes(closed_loop: &HostLoop<f64>, trials: &[Trial], rng: &mut ChaCha8Rng) {
    let named = closed_loop.problem.described();
    let parameters = lively(&closed_loop.shape);
    // Terms of comparable size.
    let (terms, tape) = closed_loop.forward(&parameters, trials);
    let weights: [f64; TERMS] = std::array::from_fn(|k| {
        let size = terms.iter().map(|t| t[k].abs()).sum::<f64>();
        if size > 0.0 { 1.0 / size } else { 0.0 }
    });
    let gradient = closed_loop.backward(tape, trials, &vec![weights; trials.len()]);
    let mut start = 0;
    for [inputs, outputs] in closed_loop.shape.layers() {
        for size in [inputs * outputs, outputs] {
            let block = start..start + size;
            start += size;
            let mut direction = vec![0.0; parameters.len()];
            for (d, g) in direction[block.clone()]
                .iter_mut()
                .zip(&gradient[block.clone()])
            {
                // Half at random, half downhill, so that the slope is not lost in rounding.
                *d = rng.random_range(-1.0..1.0) * g.abs() + 0.5 * g;
            }
            let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
            assert!(norm > 0.0, "{named}: block {block:?} is dead");
            let expected: f64 = (direction.iter().zip(&gradient))
                .map(|(d, g)| d * g / norm)
                .sum();
            let found = slope(closed_loop, trials, &weights, &parameters, &direction, norm);
            assert!(
                (found - expected).abs() <= 5e-3 * expected.abs(),
                "{named}, block {block:?}: {found} against {expected}"
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
    let config = config(&heat_1d::ENTRY);
    let run = |threads| {
        in_pool(threads, || {
            let closed_loop = closed_loop(8, &config);
            let sizes = [5, 3, 40, 9, 1, 17, 5];
            let mut trials = trials(&PROBLEM, 5, 21);
            for (trial, agents) in trials.iter_mut().zip(sizes.into_iter().cycle()) {
                *trial = Trial::plain(&PROBLEM, agents, trial.episode.clone());
            }
            let (_, trials) = mixed(&PROBLEM, trials);
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
    let config = config(&heat_1d::ENTRY);
    let closed_loop = closed_loop(10, &config);
    let mut trials = trials(&PROBLEM, 8, 7);
    trials[4] = Trial::plain(&PROBLEM, 3, trials[4].episode.clone());
    let (together, _) = closed_loop.forward(&lively(&config.shape), &trials);
    let (alone, _) = closed_loop.forward(&lively(&config.shape), &trials[5..6]);
    assert_eq!(together[5], alone[0]);
}

/// Every form of a problem's family beside each other in one loop, and each in a loop that was built for
/// it alone: the same terms and the same gradient, to the bit.
#[test]
fn an_episode_of_a_family_is_that_of_a_loop_with_its_coefficients() {
    for entry in ENTRIES {
        if forms(entry).is_empty() || entry.problem.coefficients.is_empty() {
            continue;
        }
        let (problem, trials) = mixed(entry.problem, hard_trials(entry.problem, 4));
        let together = double(entry, &problem, 4);
        let parameters = lively(&together.shape);
        let run = |closed_loop: &HostLoop<f64>, trials: &[Trial]| {
            let (terms, tape) = closed_loop.forward(&parameters, trials);
            let pulls = vec![[1.0; TERMS]; trials.len()];
            (terms, closed_loop.backward(tape, trials, &pulls))
        };
        let (all, _) = run(&together, &trials);
        for (trial, terms) in trials.iter().zip(all) {
            let mut form = problem.with_coefficients(trial.physics).unwrap();
            form.substeps = problem.substeps;
            let one = std::slice::from_ref(trial);
            let alone = run(&double(entry, &form, 4), one);
            assert_eq!(alone.0, [terms], "{}", form.described());
            assert!(run(&together, one) == alone, "{}", form.described());
        }
        // What would be the same anyway tells nothing.
        let own = family(entry.problem).ends().len();
        let plain = Trial {
            physics: problem.physics,
            ..trials[0].clone()
        };
        let same = run(&together, &[plain]) == run(&together, &trials[..1]);
        assert_eq!(same, own == 0, "{}", problem.name);
    }
}

/// Agents that push nothing: the terms of the uncontrolled field alone.
#[test]
fn idle_agents_cost_nothing() {
    let config = config(&heat_1d::ENTRY);
    let problem: &Problem = &PROBLEM;
    let (terms, _) = closed_loop(problem.horizon, &config).forward(
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
