//! The trainer and the simulator are written apart; here they are held together.

use crate::drawn::{episodes, family};
use agent_core::agent::{AgentState, Mode};
use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::policy::Encoding;
use agent_sim::controller::{Controller, Experiment};
use artifacts::observation::OwnedObservation;
use artifacts::policy_file::PolicyFile;
use burn::tensor::{Device, Tensor, TensorData};
use problem::actuate::Kernel;
use problem::{Problem, Records};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trainer::adjoint::actuate::{Actuators, Kernels};
use trainer::adjoint::physics::{Batch, FieldStep, Gradients, Interval};
use trainer::adjoint::real::Real;
use trainer::dpc::Dpc;
use trainer::entry::Entries;
use trainer::export::{Training, blob};
use trainer::host_loop::HostLoop;
use trainer::loss::Term;
use trainer::policy::{PolicyConfig, PolicyModule};
use trainer::published::{ENTRIES, fkpp_1d, heat_1d, heat_2d, ks_1d};
use trainer::recipe::Preset;
use trainer::trial::Trial;

/// Of one and of two episodes, at their beginning.
const ONE: Batch = Batch {
    episodes: 1,
    step: 0,
};
const TWO: Batch = Batch {
    episodes: 2,
    step: 0,
};

/// Largest difference after ten intervals under the same random forces, relative to the largest
/// value of the simulator's field.
fn drift<T: Real>(physics: &dyn FieldStep<T>, problem: &Problem) -> f64 {
    let (n, components) = (problem.grid.len(), problem.components());
    let actuators = Actuators::<T>::new(problem);
    let mut stepper = (problem.stepper)(problem, 1);
    let mut kernel = Kernel::new(problem);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let initial = episodes(problem, 4, 1).remove(0).initial;
    let mut trained: Vec<T> = initial.iter().map(|&z| T::of(f64::from(z))).collect();
    let mut simulated: Vec<f64> = initial.iter().map(|&z| f64::from(z)).collect();
    let places = (problem.placement)(problem, problem.agents);
    let flat: Vec<T> = (places.iter())
        .flat_map(|p| p[..problem.grid.axes].iter().map(|&x| T::of(x)))
        .collect();
    let mut kernels = Kernels::default();
    actuators.fit(&mut kernels, places.len());
    actuators.place(&flat, &mut kernels);
    let (mut forcing, mut next) = (vec![T::ZERO; components * n], vec![T::ZERO; n]);
    let mut tape = vec![T::ZERO; physics.tape_len()];
    let mut scratch = vec![T::ZERO; physics.scratch_len()];
    let most = (problem.actuation.force_max).max(problem.actuation.velocity_max);
    for _ in 0..10 {
        let amplitudes: Vec<f64> = (0..places.len() * components)
            .map(|_| rng.random_range(-most..most))
            .collect();
        let same: Vec<T> = amplitudes.iter().map(|&a| T::of(a)).collect();
        actuators.spread(&same, &mut kernels, &mut forcing);
        physics.advance(ONE, &trained, &forcing, &mut next, &mut tape, &mut scratch);
        std::mem::swap(&mut trained, &mut next);

        let mut force = vec![0.0; components * n];
        for (place, amplitude) in places.iter().zip(amplitudes.chunks_exact(components)) {
            kernel.add(&mut force, *place, amplitude);
        }
        stepper.step(&mut simulated, &force);
    }
    let scale = simulated.iter().fold(0.0f64, |m, z| m.max(z.abs()));
    let off = trained
        .iter()
        .zip(&simulated)
        .map(|(a, b)| (a.wide() - b).abs());
    off.fold(0.0, f64::max) / scale
}

#[test]
fn the_same_forces_lead_both_solvers_to_the_same_state() {
    for entry in ENTRIES {
        for problem in entry.problem.forms() {
            let name = problem.described();
            let single = match entry.physics.step(&problem, &Device::flex()) {
                Ok(single) => single,
                Err(refused) => {
                    assert!(refused.to_string().contains(&name), "{refused}");
                    continue;
                }
            };
            let off = drift(&*single, &problem);
            assert!(off <= 1e-5, "{name}: {off:e} in f32");
            if let Some(double) = entry.physics.step_by_hand::<f64>(&problem) {
                let off = drift(&*double.unwrap(), &problem);
                assert!(off <= 1e-9, "{name}: {off:e} in f64");
            }
        }
    }
}

fn exported(problem: &Problem, config: &PolicyConfig, module: &PolicyModule) -> PolicyFile {
    let training = Training { seed: 0, steps: 0 };
    let bytes = blob(problem, config, &module.parameters(), training).unwrap();
    PolicyFile::new(&bytes, "test".into())
}

/// Outputs in −1..1 from the Burn module, for features without gains and scaled positions.
fn decide(
    module: &PolicyModule,
    config: &PolicyConfig,
    features: &[f32],
    place: Vec<f32>,
) -> Vec<f32> {
    let row = |values: Vec<f32>| {
        let shape = [1, values.len()];
        Tensor::<2>::from_data(TensorData::new(values, shape), &Device::flex())
    };
    let gains = config.sight.gains(config.shape.axes);
    let scaled = features.iter().zip(gains).map(|(f, g)| f * g as f32);
    let output = module.forward(&config.shape, row(scaled.collect()), row(place));
    output.into_data().try_into_vec::<f32>().unwrap()
}

#[test]
fn an_exported_blob_acts_as_the_module_it_came_from() {
    for entry in ENTRIES {
        let problem = entry.problem;
        let mut config = entry.recipe.full(problem).policy;
        // One step alone: what is remembered is compared in closed loops.
        config.shape.memory = 0;
        let axes = problem.grid.axes;
        for seed in 0..3 {
            let module = config.init(seed, &Device::flex());
            let file = exported(problem, &config, &module);
            let policy = file.policy(problem).unwrap();
            let mut workspace = vec![0.0; policy.workspace_len()];
            let mut rng = ChaCha8Rng::seed_from_u64(100 + seed);
            let window = config.sight.window;
            let side = window + 2;
            let mut values = |count: usize| -> Vec<f32> {
                let most = 0.5 / config.sight.error_gain as f32;
                (0..count).map(|_| rng.random_range(-most..most)).collect()
            };
            for k in 0..30 {
                let cells = if axes == 1 { side } else { side * side };
                let (field, wide) = (values(cells), values(config.sight.coarse()));
                let zeros = vec![0.0; cells.max(wide.len())];
                let target =
                    |count: usize| Samples::new(&zeros[..if problem.tracking { count } else { 0 }]);
                let whole = Span {
                    first: 0,
                    last: side as u16 - 1,
                };
                let share = [0.2 + 0.02 * k as f32, 0.9 - 0.02 * k as f32];
                let [low, high] = problem.reach.map(|corner| corner.map(|x| x as f32));
                let position: Vec<f32> = (0..axes)
                    .map(|a| low[a] + share[a] * (high[a] - low[a]))
                    .collect();
                let observation = Observation {
                    now_us: 0,
                    position: [position[0], position.get(1).copied().unwrap_or(0.0)],
                    patch: Patch {
                        field: Samples::new(&field),
                        target: target(cells),
                        inside: [whole; 2],
                        wide: Overview {
                            field: Samples::new(&wide),
                            target: target(wide.len()),
                        },
                    },
                };
                let action = AgentState::new().step(&policy, &mut workspace, &observation);
                assert_eq!(action.mode, Mode::Active, "{}", problem.name);
                let mut features: Vec<f32> = match axes {
                    1 => {
                        let slopes = (1..=window).map(|k| (field[k + 1] - field[k - 1]) / 2.0);
                        field[1..=window].iter().copied().chain(slopes).collect()
                    }
                    _ => (0..window * window)
                        .map(|k| field[(k / window + 1) * side + k % window + 1])
                        .collect(),
                };
                features.extend(&wide);
                let scaled = share[..axes].to_vec();
                let outputs = decide(&module, &config, &features, scaled);
                let mut outputs = outputs.iter().map(|&o| f64::from(o));
                let actuation = problem.actuation;
                let close = |a: f32, b: f64, limit: f64| (f64::from(a) - b).abs() <= 2e-5 * limit;
                if actuation.force_max > 0.0 {
                    let force = outputs.next().unwrap() * actuation.force_max;
                    assert!(
                        close(action.force, force, actuation.force_max),
                        "{action:?} {force}"
                    );
                }
                if actuation.velocity_max > 0.0 && problem.keep_out.is_empty() {
                    for (v, output) in action.velocity.iter().zip(outputs) {
                        let velocity = output * actuation.velocity_max;
                        assert!(close(*v, velocity, actuation.velocity_max), "{action:?}");
                    }
                }
            }
        }
    }
}

/// Same policy, same episodes, both closed loops: a tenth of a per cent leaves room for agents that
/// cross a cell one step earlier in one precision than in the other. Agents that remember have a memory
/// that moves, and fields whose coefficients are not the published ones.
#[test]
fn both_closed_loops_make_the_same_error() {
    for (entry, memory) in ENTRIES.iter().flat_map(|entry| [(entry, 0), (entry, 3)]) {
        let problem = entry.problem;
        let mut config = entry.recipe.full(problem).policy;
        config.shape.memory = memory;
        let mut parameters = config.init(3, &Device::flex()).parameters();
        let head = (config.shape.fuse + 1) * config.shape.outputs();
        for weights in parameters.rchunks_mut(head).take(1) {
            for row in weights.chunks_exact_mut(config.shape.outputs()) {
                row[..memory].iter_mut().for_each(|w| *w *= 10.0);
            }
        }
        let module = config.with_parameters(&parameters, &Device::flex());
        let file = exported(problem, &config, &module);
        let policy = file.policy(problem).unwrap();
        let horizon = 20;
        // Where states are scored before each action, the last record is one step earlier.
        let scored = match problem.scoring.records {
            Records::AfterAction => horizon,
            Records::BeforeAction => horizon - 1,
        };
        let make = |form: &Problem| entry.physics.step(form, &Device::flex());
        let field = make(problem).unwrap();
        let closed_loop: HostLoop = HostLoop::new(problem, field, scored, &config).unwrap();
        let closed_loop = closed_loop.for_family(Box::new(make));
        let mut trials: Vec<Trial> = (episodes(problem, 6, 2).into_iter())
            .map(|episode| Trial::plain(problem, problem.agents, episode))
            .collect();
        if memory > 0 {
            for (trial, end) in trials.iter_mut().zip(family(problem).ends()) {
                trial.physics = end;
            }
        }
        let (terms, tape) = closed_loop.forward(&module.parameters(), &trials);
        closed_loop.recycle(tape);
        for (trial, terms) in trials.iter().zip(&terms) {
            let form = problem.with_coefficients(trial.physics).unwrap();
            let experiment = Experiment {
                problem: &form,
                controller: Controller::Policy(&policy),
                agents: problem.agents,
                steps: horizon,
                faults: &[],
                seed: 0,
                plant: None,
            };
            let simulated = experiment.run(&trial.episode, &mut |_| {}).unwrap();
            let mut pairs = vec![(terms[Term::Final as usize], simulated.final_error)];
            // The initial state counts in the simulator's mean of records before each action.
            if problem.scoring.records == Records::AfterAction {
                pairs.push((terms[Term::Track as usize], simulated.time_mean_error));
            }
            for (trained, simulated) in pairs {
                assert!(
                    (trained / simulated - 1.0).abs() <= 1e-3,
                    "{}: {trained} {simulated}",
                    form.title(),
                );
            }
        }
    }
}

/// A network that decides for all agents is shown the same, and obeyed alike, in both closed loops.
#[test]
fn both_closed_loops_make_the_same_error_under_a_network_for_all_agents() {
    for entry in ENTRIES {
        let problem = entry.problem;
        let recipe = (entry.recipe).centralised(problem, Preset::Full, problem.agents);
        let config = recipe.policy;
        let parameters = config.init(3, &Device::flex()).parameters();
        let horizon = 12;
        let scored = match problem.scoring.records {
            Records::AfterAction => horizon,
            Records::BeforeAction => horizon - 1,
        };
        let field = entry.physics.step(problem, &Device::flex()).unwrap();
        let closed_loop: HostLoop = HostLoop::new(problem, field, scored, &config).unwrap();
        let episode = episodes(problem, 6, 1).remove(0);
        let trial = [Trial::plain(problem, problem.agents, episode)];
        let (terms, tape) = closed_loop.forward(&parameters, &trial);
        closed_loop.recycle(tape);
        let dpc = Dpc::new(entry, problem, &config, &parameters).unwrap();
        let experiment = Experiment {
            problem,
            controller: Controller::Guided(&dpc),
            agents: problem.agents,
            steps: horizon,
            faults: &[],
            seed: 0,
            plant: None,
        };
        let mut did = 0.0f32;
        let simulated = experiment.run(&trial[0].episode, &mut |snapshot| {
            let deeds = snapshot.deeds.iter();
            let most = deeds.map(|deed| deed.force.abs().max(deed.velocity[0].abs()));
            did = most.fold(did, f32::max);
        });
        let (trained, simulated) = (
            terms[0][Term::Final as usize],
            simulated.unwrap().final_error,
        );
        assert!(did > 0.0, "{}: it does nothing", problem.name);
        assert!(
            (trained / simulated - 1.0).abs() <= 1e-3,
            "{}: {trained} {simulated}",
            problem.name
        );
    }
}

/// The examples that files describe, with their own policies: fields that react, flow and are disturbed,
/// masks, weights, agents that move, in both closed loops for whole episodes. Waves that are stopped or
/// not, and boats that turn one way or the other, magnify what single precision loses: a per cent.
#[test]
fn both_closed_loops_make_the_same_error_of_described_fields() {
    for name in ["board-cooling", "excitable-tissue", "channel"] {
        let path = format!(
            "{}/../examples/fields/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let entry = Entries::new(ENTRIES).unwrap().by_name(&path).unwrap();
        let problem = entry.problem;
        let config = entry.recipe.full(problem).policy;
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let parameters = trainer::export::thaw(&policy, problem, &config).unwrap();
        let steps = problem.horizon;
        let field = entry.physics.step(problem, &Device::default()).unwrap();
        let closed_loop: HostLoop = HostLoop::new(problem, field, steps, &config).unwrap();
        let trials: Vec<Trial> = (episodes(problem, 6, 2).into_iter())
            .map(|episode| Trial::plain(problem, problem.agents, episode))
            .collect();
        let (terms, _) = closed_loop.forward(&parameters, &trials);
        for (trial, terms) in trials.iter().zip(&terms) {
            let experiment = Experiment {
                problem,
                controller: Controller::Policy(&policy),
                agents: problem.agents,
                steps,
                faults: &[],
                seed: 0,
                plant: None,
            };
            let simulated = experiment.run(&trial.episode, &mut |_| {}).unwrap();
            let (trained, simulated) = (terms[Term::Track as usize], simulated.time_mean_error);
            assert!(
                (trained / simulated - 1.0).abs() <= 1e-2,
                "{name}: {trained} {simulated}",
            );
        }
    }
}

/// Two plates, a line and a ring, with what sensors and goals can be.
const SEEN: [(&str, &str, Option<[usize; 2]>); 6] = [
    (
        "[domain]\nunit = \"m\"\nsize = [1, 2]\ngrid = [12, 24]\n",
        "places = { lattice = [2, 3] }\nspeed = 0.5\n[sensors]\nwindow = 4\nspacing = 2\n",
        None,
    ),
    // A coarse view of readings in steps.
    (
        "[domain]\nunit = \"m\"\nsize = [1, 2]\ngrid = [12, 24]\n",
        "places = { lattice = [2, 3] }\n[sensors]\nwindow = 2\nquantisation = 0.4\nrange = [-0.9, 0.9]\n",
        Some([3, 6]),
    ),
    (
        "[domain]\nunit = \"m\"\nsize = [2]\ngrid = [40]\n",
        "places = { lattice = [4] }\nspeed = 0.5\n[sensors]\nwindow = 6\nspacing = 3\n",
        None,
    ),
    (
        "[domain]\nunit = \"m\"\nsize = [2]\ngrid = [40]\n",
        "places = { lattice = [4] }\n[sensors]\nwindow = 7\nspacing = 4\n[fields.u.edges]\nall = \"periodic\"\n",
        None,
    ),
    // Several fields, each with a sensor of its own; not in the order of the file.
    (
        "[domain]\nunit = \"m\"\nsize = [1, 2]\ngrid = [12, 24]\n",
        "field = \"u\"\nplaces = { lattice = [2, 3] }\nspeed = 0.5
[sensors]\nfield = [\"w\", \"u\", \"v\"]\nwindow = 4\nspacing = 2\nquantisation = [0.02, 0.1, 0.3]\nrange = [[-0.2, 1], [-0.5, 0.5], [-1, 1]]
[fields.v]\nunit = \"1\"\nrange = [-2, 2]\ninitial = \"sin(3*x)\"\nreaction = \"5*(u - v)\"
[fields.w]\nunit = \"1\"\nrange = [-2, 2]\ndiffusion = 0.01\nreaction = \"5*(u*v - w)\"\ntarget = \"0.3*y\"\n",
        None,
    ),
    (
        "[domain]\nunit = \"m\"\nsize = [2]\ngrid = [40]\n",
        "places = { lattice = [4] }\n[sensors]\nfield = [\"u\", \"v\"]\nwindow = 7
[fields.v]\nunit = \"1\"\nrange = [-2, 2]\nreaction = \"5*(u - v)\"\ntarget = \"0.2*x\"\n",
        None,
    ),
];

/// The same where files say what agents see and what targets become, with networks that nothing was taught:
/// windows with cells apart, at walls and around rings, a coarse view, several fields, goals one after the
/// other.
#[test]
fn both_closed_loops_show_agents_the_same_of_described_fields() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (domain, seen, wide)) in SEEN.into_iter().enumerate() {
        let text = format!(
            "name = \"seen-{number}\"\n{domain}[time]\nunit = \"s\"\ninterval = 0.02\nsteps = 40
[fields.u]\nunit = \"1\"\nrange = [-1, 1]\ndiffusion = 0.02
initial = {{ random = {{ length = 0.4, amplitude = 0.5 }} }}
goal = [{{ field = 0.4, at = 0.1, over = 0.2 }}, {{ field = \"-0.4*x\", at = [0.4, 0.6] }}]
[score]\nerror = \"mean\"\n[actuators]\nwidth = 0.2\nforce = 4\n{seen}"
        );
        let path = folder.path().join(format!("{number}.toml"));
        std::fs::write(&path, &text).unwrap();
        let entries = Entries::new(ENTRIES).unwrap();
        let entry = entries.by_name(path.to_str().unwrap()).unwrap();
        let problem = entry.problem;
        let mut config = entry.recipe.full(problem).policy;
        config.sight.wide = wide;
        config.sight.wide_gain = 4.0;
        config.shape.features = config.sight.features(problem.grid.axes);
        let mut parameters = config.init(3, &Device::flex()).parameters();
        let head = (config.shape.fuse + 1) * config.shape.outputs();
        // Agents that do something.
        let last = parameters.len() - head;
        parameters[last..].iter_mut().for_each(|w| *w *= 5.0);
        let module = config.with_parameters(&parameters, &Device::flex());
        let file = exported(problem, &config, &module);
        let policy = file.policy(problem).unwrap();
        let field = entry.physics.step(problem, &Device::default()).unwrap();
        let closed_loop: HostLoop =
            HostLoop::new(problem, field, problem.horizon, &config).unwrap();
        for episode in episodes(problem, 6, 3) {
            let trial = Trial::plain(problem, problem.agents, episode);
            let (terms, _) = closed_loop.forward(&parameters, std::slice::from_ref(&trial));
            let error = |controller| {
                let experiment = Experiment {
                    problem,
                    controller,
                    agents: problem.agents,
                    steps: problem.horizon,
                    faults: &[],
                    seed: 0,
                    plant: None,
                };
                let score = experiment.run(&trial.episode, &mut |_| {}).unwrap();
                score.time_mean_error
            };
            let trained = terms[0][Term::Track as usize];
            let simulated = error(Controller::Policy(&policy));
            let idle = error(Controller::None);
            assert!(
                (trained - simulated).abs() <= 1e-3 * (simulated - idle).abs(),
                "{number}: {trained} {simulated}, {idle} without agents",
            );
        }
        // A blob has no other place for it than its problem's name.
        let near = text.replace("spacing = ", "# spacing = ");
        let near = near.replace("[\"u\", \"v\"]", "\"u\"");
        if near != text {
            std::fs::write(&path, near).unwrap();
            let near = problem::kit::load(&path).unwrap();
            let said = file.policy(near).unwrap_err().to_string();
            assert!(
                said.contains(problem.seen_as()) && said.contains("[sensors]"),
                "{said}"
            );
        }
    }
}

/// The short ones in tensor operations, whose adjoint is Burn's, against those written by hand: in
/// every form, next fields and both gradients within 1e-5 of the largest value.
#[test]
fn steps_in_tensor_operations_are_those_written_by_hand() {
    for entry in [
        &heat_1d::ENTRY,
        &fkpp_1d::ENTRY,
        &heat_2d::ENTRY,
        &ks_1d::ENTRY,
    ] {
        for problem in entry.problem.forms() {
            let by_hand = entry.physics.step_by_hand::<f32>(&problem).unwrap();
            let in_tensors = entry.physics.step_in_tensors(&problem, &Device::flex());
            let steps: [Box<dyn FieldStep<f32>>; 2] =
                [by_hand.unwrap(), Box::new(in_tensors.unwrap().unwrap())];
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let n = problem.grid.len();
            let most = problem.actuation.force_max as f32;
            let mut random = |most: f32| -> Vec<f32> {
                (0..2 * n).map(|_| rng.random_range(-most..most)).collect()
            };
            let fields: Vec<f32> = (episodes(&problem, 8, 2).into_iter())
                .flat_map(|episode| episode.initial)
                .collect();
            let (forcing, pull) = (random(most), random(1.0));
            let [hand, tensors] = steps.map(|step| {
                let (mut next, mut g_fields, mut g_forcing) =
                    (vec![0.0; 2 * n], vec![0.0; 2 * n], vec![0.0; 2 * n]);
                let mut tape = vec![0.0; 2 * step.tape_len()];
                let mut scratch = vec![0.0; 2 * step.scratch_len()];
                step.advance(TWO, &fields, &forcing, &mut next, &mut tape, &mut scratch);
                let at = Interval {
                    fields: &fields,
                    forcing: &forcing,
                    next: &next,
                    tape: &tape,
                };
                let g = Gradients {
                    next: &pull,
                    fields: &mut g_fields,
                    forcing: &mut g_forcing,
                };
                step.adjoint(TWO, at, g, &mut scratch);
                [next, g_fields, g_forcing]
            });
            let whats = ["next", "fields", "forcing"].iter();
            for (what, (hand, tensors)) in whats.zip(hand.iter().zip(&tensors)) {
                let scale = hand.iter().fold(0.0f32, |m, v| m.max(v.abs()));
                let off = hand.iter().zip(tensors).map(|(a, b)| (a - b).abs());
                let off = off.fold(0.0, f32::max) / scale;
                assert!(off <= 1e-5, "{}, {what}: {off:e}", problem.described());
            }
        }
    }
}

/// Agents that rest: whatever was learnt, in single precision and in int8, at any place, as long as one
/// likes, no error gives exactly no action, and nothing is remembered.
#[test]
fn agents_that_rest_do_nothing_where_there_is_nothing_to_do() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for entry in ENTRIES {
        let problem = entry.problem;
        let mut config = entry.recipe.full(problem).policy;
        config.shape.memory = 3;
        config.shape = config.shape.resting();
        let mut learnt = config.init(3, &Device::flex()).parameters();
        for weight in &mut learnt {
            *weight = 3.0 * *weight + rng.random_range(-0.5..0.5);
        }
        let mut held = learnt.clone();
        for range in config.shape.held() {
            held[range].fill(0.0);
        }
        let acts = |parameters: &[f32], encoding: Encoding| {
            let module = config.with_parameters(parameters, &Device::flex());
            let file = exported(problem, &config, &module)
                .recoded(encoding)
                .unwrap();
            let policy = file.policy(problem).unwrap();
            let mut workspace = vec![0.0; policy.workspace_len()];
            let mut state = AgentState::new();
            let mut blank = OwnedObservation::blank(&policy);
            let period = u64::from(policy.header().timing.period_us);
            let places = (problem.placement)(problem, 16);
            (0..200u64).any(|step| {
                blank.position = places[step as usize % 16].map(|x| x as f32);
                let observation = blank.arriving(step * period);
                let action = state.step(&policy, &mut workspace, &observation);
                assert_eq!(action.mode, Mode::Active, "{}", problem.name);
                action.force != 0.0 || action.velocity != [0.0; 2]
            })
        };
        for encoding in [Encoding::F32, Encoding::Int8] {
            assert!(!acts(&held, encoding), "{}: {encoding:?}", problem.name);
            assert!(acts(&learnt, encoding), "{}: {encoding:?}", problem.name);
        }
    }
}
