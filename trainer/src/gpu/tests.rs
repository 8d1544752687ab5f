//! The kernels against the CPU's closed loop.

use super::{Gpu, GpuError, GpuLoop};
use crate::family::Family;
use crate::host_loop::HostLoop;
use crate::kernels::LoopSpec;
use crate::loss::TERMS;
use crate::policy::{PolicyConfig, Sight};
use crate::published::entries;
use crate::rollout::Rollout;
use crate::trial::Trial;
use burn::tensor::Device;
use problem::{Episode, Problem};

/// A GPU, or none on machines without a Vulkan driver, where there is nothing to test. CI has one, if
/// only in software: there, none is a failure.
fn gpu() -> Option<Gpu> {
    match Gpu::open() {
        Ok(gpu) => Some(gpu),
        Err(GpuError::NoAdapter) if std::env::var_os("CI").is_none() => {
            eprintln!("no Vulkan driver: kernels not tested");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Every term counts, with weights that make them of comparable size.
const WEIGHTS: [f64; TERMS] = [5.0, 1e-3, 100.0, 1.0, 0.1, 0.7, 30.0, 3.0, 0.4, 0.2];

/// A network small enough for software, with a head that makes agents act.
fn policy(
    problem: &Problem,
    wide: Option<[usize; 2]>,
    error_gain: f64,
) -> (PolicyConfig, Vec<f32>) {
    let sight = Sight {
        window: if problem.grid.axes == 1 { 6 } else { 4 },
        error_gain,
        slope_gain: 10.0 * error_gain,
        wide,
        wide_gain: 2.0,
        target: false,
        others: vec![],
    };
    let mut config = PolicyConfig::new(problem, sight);
    config.shape.branch = [12, 8];
    config.shape.trunk = [8, 4];
    config.shape.fuse = 8;
    config.shape.memory = 3;
    let parameters = lively(&config);
    (config, parameters)
}

fn lively(config: &PolicyConfig) -> Vec<f32> {
    let mut parameters = config.init(3, &Device::default()).parameters();
    let head = (config.shape.fuse + 1) * config.shape.outputs();
    let start = parameters.len() - head;
    parameters[start..].iter_mut().for_each(|w| *w *= 10.0);
    parameters
}

/// Smooth fields of the problem's size: drawing real ones takes seconds on a torus.
fn episode(problem: &Problem, number: usize) -> Episode {
    let grid = &problem.grid;
    let height = match problem.name {
        "turbulence-2d" => 15.0,
        "ks-2d" => 5.0,
        _ => 1.0,
    };
    let wave = |turns: f64, phase: f64| -> Vec<f32> {
        let value = |j: usize| {
            let at = grid.place(j);
            let unit = [0, 1].map(|a| at[a] / grid.extent(a).max(1e-9));
            let angle = std::f64::consts::TAU * turns;
            let plane = (angle * unit[0] + phase).sin() + (2.0 * angle * unit[1] + phase).cos();
            match problem.name {
                // Densities.
                "fkpp-1d" | "density-2d" => 0.4 + 0.15 * plane,
                // Zero on the edges, as the plate's fields are.
                "heat-2d" | "heat-2d-obstacles" => {
                    let arch = |x: f64| x * (1.0 - x);
                    16.0 * arch(unit[0]) * arch(unit[1]) * plane
                }
                _ => 0.5 * height * plane,
            }
        };
        (0..grid.len()).map(|j| value(j) as f32).collect()
    };
    let target = match problem.tracking {
        true => wave(1.0, 0.3),
        false => vec![0.0; grid.len()],
    };
    Episode {
        initial: wave(2.0, number as f64),
        target,
        ..Episode::default()
    }
}

/// Trials with all that can befall a swarm: an agent that dies, late actions, noise of both kinds.
fn trials(problem: &Problem, agents: usize) -> Vec<Trial> {
    let mut plain = Trial::plain(problem, agents, episode(problem, 0));
    if problem.actuation.velocity_max > 0.0 {
        // One in the margin, two close to each other, off the cells' edges.
        let [low, _] = problem.reach;
        plain.start[0] = low.map(|x| x + 0.0113);
        plain.start[1] = plain.start[2].map(|x| x + 0.0217);
        // One that a zone pushes out.
        if let Some(zone) = problem.keep_out.first() {
            plain.start[3] = zone.centre.map(|x| x + 0.6 * zone.radius);
        }
    }
    let mut hard = Trial {
        delay: 2,
        sensor_noise: 0.03,
        actuator_noise: 0.05 * problem.actuation.force_max,
        noise_seed: 0x1234_5678_9abc_def0,
        episode: episode(problem, 1),
        ..plain.clone()
    };
    hard.dies_at[1] = 4;
    // A smaller swarm between the two.
    let few = Trial::plain(problem, agents / 2, episode(problem, 2));
    vec![plain, few, hard]
}

/// Terms and gradient of both; single precision is good for 1e-6 and what chaos makes of it.
fn compare(name: &str, agents: usize, horizon: usize, wide: Option<[usize; 2]>, error_gain: f64) {
    compare_family(name, &[], agents, horizon, wide, error_gain);
}

/// The same with coefficients of its own for every episode: the least of these, the usual, the most.
fn compare_family(
    name: &str,
    spreads: &[&str],
    agents: usize,
    horizon: usize,
    wide: Option<[usize; 2]>,
    error_gain: f64,
) {
    let Some(gpu) = gpu() else { return };
    let entry = entries().by_name(name).unwrap();
    let problem = entry.problem;
    // A few solver steps are as good as twenty.
    let problem = problem.with_substeps(problem.substeps.min(5)).unwrap();
    let spreads: Vec<_> = spreads.iter().map(|s| s.parse().unwrap()).collect();
    let family = Family::new(&problem, &spreads).unwrap();
    let problem = family.usual;
    let (mut config, mut parameters) = policy(&problem, wide, error_gain);
    if !problem.tracking {
        // Where there is no target, agents that rest.
        config.shape = config.shape.resting();
        parameters = lively(&config);
    }
    let mut trials = trials(&problem, agents);
    for (trial, end) in trials.iter_mut().step_by(2).zip(family.ends()) {
        trial.physics = end;
    }
    let spec = LoopSpec {
        problem,
        corners: family.corners,
        agents,
        horizon,
        batch: 3,
        shape: config.shape.clone(),
        sight: config.sight.clone(),
        threads: 0,
    };
    let mut on_gpu = GpuLoop::new(&gpu, entry, &spec).unwrap_or_else(|e| panic!("{e}"));
    let (terms, gradient) = on_gpu.gradient(&parameters, &trials, &WEIGHTS).unwrap();
    assert_eq!(on_gpu.terms(&parameters, &trials).unwrap(), terms);

    let field = entry.physics.step_by_hand(&problem).unwrap().unwrap();
    let on_cpu = HostLoop::<f32>::new(&problem, field, horizon, &config).unwrap();
    let physics = entry.physics;
    let make = move |form: &Problem| physics.step_by_hand(form).expect("it has one");
    let on_cpu = on_cpu.for_family(Box::new(make));
    let (want, tape) = on_cpu.forward(&parameters, &trials);
    let pulls = vec![WEIGHTS.map(|w| w / trials.len() as f64); trials.len()];
    let want_gradient = on_cpu.backward(tape, &trials, &pulls);

    for (got, want) in terms.iter().flatten().zip(want.iter().flatten()) {
        let close = (got - want).abs() <= 1e-4 * want.abs() + 1e-9;
        assert!(close, "{name}: {terms:?} beside {want:?}");
    }
    if trials.iter().any(|trial| trial.physics != problem.physics) {
        // Coefficients that make no difference would tell nothing.
        let alike = trials.iter().map(|trial| Trial {
            physics: problem.physics,
            ..trial.clone()
        });
        let (usual, tape) = on_cpu.forward(&parameters, &alike.collect::<Vec<_>>());
        on_cpu.recycle(tape);
        let mut both = usual.iter().flatten().zip(want.iter().flatten());
        let differ = both.any(|(usual, want)| (usual - want).abs() > 1e-3 * want.abs());
        assert!(differ, "{name}: {usual:?} beside {want:?}");
    }
    let length = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let gap: Vec<f32> = gradient
        .iter()
        .zip(&want_gradient)
        .map(|(a, b)| a - b)
        .collect();
    let (gap, whole) = (length(&gap), length(&want_gradient));
    assert!(
        whole > 0.0 && gap < 1e-3 * whole,
        "{name}: {gap} of {whole}"
    );
}

#[test]
fn the_line_is_the_cpus() {
    compare("heat-1d", 5, 20, None, 1.0);
    compare("fkpp-1d", 7, 20, None, 1.0);
}

#[test]
fn the_circle_is_the_cpus() {
    compare("ks-1d", 5, 20, None, 1.0);
}

#[test]
fn the_plate_is_the_cpus() {
    compare("heat-2d", 5, 10, None, 1.0);
    compare("heat-2d-obstacles", 9, 10, None, 1.0);
}

#[test]
fn the_room_is_the_cpus() {
    compare("density-2d", 4, 6, Some([8, 10]), 1.0);
    // More agents than a workgroup has, and than it has kernels of.
    compare("density-2d", 17, 6, Some([8, 10]), 1.0);
}

#[test]
fn the_flame_is_the_cpus() {
    compare("ks-2d", 9, 5, None, 0.2);
}

#[test]
fn the_vortices_are_the_cpus() {
    compare("turbulence-2d", 4, 5, None, 0.05);
}

#[test]
fn fields_with_coefficients_of_their_own_are_the_cpus() {
    compare_family("heat-1d", &["nu=0.05..0.8"], 5, 20, None, 1.0);
    let fisher = ["nu=0.001..0.02", "rho=1..9"];
    compare_family("fkpp-1d", &fisher, 7, 20, None, 1.0);
    compare_family("heat-2d", &["nu=0.05..0.8"], 5, 10, None, 1.0);
    let mixed = ["nu=0.00005..0.002"];
    compare_family("density-2d", &mixed, 4, 6, Some([8, 10]), 1.0);
    compare_family("turbulence-2d", &["nu=0.0002..0.01"], 4, 5, None, 0.05);
}

/// A kernel that keeps coefficients among its constants: that of the flame, whose only one is the size of
/// its domain.
#[test]
fn kernels_of_one_form_refuse_a_family_by_name() {
    let Some(gpu) = gpu() else { return };
    let entry = entries().by_name("ks-1d").unwrap();
    let problem = *entry.problem;
    let (config, _) = policy(&problem, None, 1.0);
    let spec = LoopSpec {
        problem,
        corners: vec![problem],
        agents: 4,
        horizon: 5,
        batch: 1,
        shape: config.shape,
        sight: config.sight,
        threads: 0,
    };
    let message = GpuLoop::new(&gpu, entry, &spec).unwrap_err().to_string();
    for word in ["ks-1d", "episodes draw", "--backend flex"] {
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn the_same_inputs_give_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    // An episode in one workgroup, and in several.
    for name in ["heat-1d", "density-2d"] {
        let entry = entries().by_name(name).unwrap();
        let problem = entry.problem;
        let (config, parameters) = policy(problem, None, 1.0);
        let trials = trials(problem, 5);
        let spec = LoopSpec {
            problem: *problem,
            corners: Vec::new(),
            agents: 5,
            horizon: 20,
            batch: 2,
            shape: config.shape,
            sight: config.sight,
            threads: 64,
        };
        let mut gpu_loop = GpuLoop::new(&gpu, entry, &spec).unwrap();
        let first = gpu_loop.gradient(&parameters, &trials, &WEIGHTS).unwrap();
        let second = gpu_loop.gradient(&parameters, &trials, &WEIGHTS).unwrap();
        assert_eq!(first, second, "{name}");
    }
}

#[test]
fn a_loop_that_is_too_large_says_what_to_do() {
    let Some(gpu) = gpu() else { return };
    let entry = entries().by_name("heat-1d").unwrap();
    let problem = entry.problem;
    let (config, _) = policy(problem, None, 1.0);
    let spec = LoopSpec {
        problem: *problem,
        corners: Vec::new(),
        agents: 100_000,
        horizon: 20,
        batch: 2,
        shape: config.shape,
        sight: config.sight,
        threads: 0,
    };
    let message = GpuLoop::new(&gpu, entry, &spec).unwrap_err().to_string();
    assert!(message.contains("fewer --agents"), "{message}");
}

/// Gradients of portions, added up, are those of the whole batch.
#[test]
fn a_batch_that_does_not_fit_at_once_is_run_in_portions() {
    let Some(gpu) = gpu() else { return };
    let entry = entries().by_name("heat-1d").unwrap();
    let problem = entry.problem;
    let (config, parameters) = policy(problem, None, 1.0);
    let mut batch = trials(problem, 5);
    batch.extend(trials(problem, 5));
    batch.pop();
    let run = |together: usize| {
        let spec = LoopSpec {
            problem: *problem,
            corners: Vec::new(),
            agents: 5,
            horizon: 20,
            batch: together,
            shape: config.shape.clone(),
            sight: config.sight.clone(),
            threads: 64,
        };
        let mut on_gpu = GpuLoop::new(&gpu, entry, &spec).unwrap();
        assert_eq!(on_gpu.together(), together);
        on_gpu.gradient(&parameters, &batch, &WEIGHTS).unwrap()
    };
    let (whole, parts) = (run(5), run(2));
    assert_eq!(whole.0, parts.0);
    let largest = whole.1.iter().fold(0.0f32, |m, g| m.max(g.abs()));
    for (a, b) in whole.1.iter().zip(&parts.1) {
        assert!((a - b).abs() <= 1e-5 * largest, "{a} {b}");
    }
}

/// What one side does not implement is refused by name.
#[test]
fn forms_without_kernels_are_refused_by_name() {
    let Some(gpu) = gpu() else { return };
    let refused = |name: &str, form: &dyn Fn(&Problem) -> Problem| {
        let entry = entries().by_name(name).unwrap();
        let (config, _) = policy(entry.problem, None, 1.0);
        let spec = LoopSpec {
            problem: form(entry.problem),
            corners: Vec::new(),
            agents: 4,
            horizon: 5,
            batch: 1,
            shape: config.shape,
            sight: config.sight,
            threads: 0,
        };
        GpuLoop::new(&gpu, entry, &spec).unwrap_err().to_string()
    };
    let conservative = refused("density-2d", &|p| p.with_variant("conservative").unwrap());
    assert!(conservative.contains("'conservative'"), "{conservative}");
    let finer = refused("heat-1d", &|p| p.with_substeps(3).unwrap());
    assert!(finer.contains("3 solver steps"), "{finer}");
}
