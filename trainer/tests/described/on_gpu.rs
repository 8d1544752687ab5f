//! The kernels of described fields against the CPU's closed loop, on the GPU at hand; CI has one in software.

use super::{
    DRAWN, Family, HostLoop, PolicyConfig, Problem, TERMS, Trial, described, lively, trials,
};
use std::path::Path;
use trainer::entry::Entry;
use trainer::gpu::{Gpu, GpuError, GpuLoop};
use trainer::kernels::LoopSpec;
use trainer::policy::Sight;
use trainer::rollout::Rollout;

/// Random files that are compared.
const FILES: usize = 12;

/// A GPU, or none on machines without a Vulkan driver.
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

/// A network small enough for software.
fn config(entry: &Entry) -> PolicyConfig {
    let problem = entry.problem;
    let sight = Sight {
        window: if problem.grid.axes == 1 { 6 } else { 4 },
        ..entry.recipe.full(problem).policy.sight
    };
    let mut config = PolicyConfig::new(problem, sight);
    config.shape.branch = [12, 8];
    config.shape.trunk = [8, 4];
    config.shape.fuse = 8;
    config.shape.memory = 2;
    if !problem.tracking {
        config.shape = config.shape.resting();
    }
    config
}

/// Terms and gradient of both, as for the published problems.
fn compare(gpu: &Gpu, problem: &'static Problem, horizon: usize) {
    let spreads: Vec<_> = (problem.coefficients.iter())
        .map(|c| {
            // Some way around the usual.
            let [low, high] =
                [0.7, 1.4].map(|x: f64| (x * c.published).clamp(c.range[0], c.range[1]));
            format!("{}={low}..{high}", c.name).parse().unwrap()
        })
        .collect();
    let family = Family::new(problem, &spreads).unwrap();
    let entry = described::entry(problem);
    let config = config(entry);
    let other = *family.ends().last().unwrap_or(&family.usual.physics);
    let trials = trials(&family.usual, other);
    let parameters = lively(&config.shape);
    let spec = LoopSpec {
        problem: family.usual,
        corners: family.corners,
        agents: trials.iter().map(Trial::agents).max().unwrap(),
        horizon,
        batch: trials.len(),
        shape: config.shape.clone(),
        sight: config.sight.clone(),
        threads: 0,
    };
    let name = problem.name;
    let field = entry.physics.step_by_hand(&spec.problem).unwrap().unwrap();
    let on_cpu = HostLoop::<f32>::new(&spec.problem, field, horizon, &config).unwrap();
    let make = |form: &Problem| entry.physics.step_by_hand(form).expect("it has one");
    let on_cpu = on_cpu.for_family(Box::new(make));
    let (want, tape) = on_cpu.forward(&parameters, &trials);
    // Terms of comparable size.
    let weights: [f64; TERMS] = std::array::from_fn(|k| {
        let size = want.iter().map(|t| t[k].abs()).sum::<f64>();
        if size > 0.0 { 1.0 / size } else { 0.0 }
    });
    let pulls = vec![weights.map(|w| w / trials.len() as f64); trials.len()];
    let want_gradient = on_cpu.backward(tape, &trials, &pulls);

    let mut on_gpu = GpuLoop::new(gpu, entry, &spec).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (terms, gradient) = on_gpu.gradient(&parameters, &trials, &weights).unwrap();
    for (got, want) in terms.iter().flatten().zip(want.iter().flatten()) {
        let close = (got - want).abs() <= 1e-4 * want.abs() + 1e-9;
        assert!(close, "{name}: {got} for {want} of {terms:?}");
    }
    let length =
        |v: &mut dyn Iterator<Item = f32>| v.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let gap = length(&mut gradient.iter().zip(&want_gradient).map(|(a, b)| a - b));
    let whole = length(&mut want_gradient.iter().copied());
    assert!(
        whole > 0.0 && gap < 1e-3 * whole,
        "{name}: {gap} of {whole}"
    );
}

#[test]
fn random_files_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    let has_kernels =
        |problem: &&'static Problem| described::entry(problem).kernels.unwrap().0(problem).is_ok();
    let problems: Vec<&'static Problem> =
        DRAWN.problems.iter().copied().filter(has_kernels).collect();
    assert!(problems.len() >= FILES, "{}", problems.len());
    for problem in problems.iter().step_by(problems.len() / FILES) {
        compare(&gpu, problem, problem.horizon);
    }
}

/// Among them fields that fit into a workgroup's memory and, on Mesa's software driver, one that does not.
#[test]
fn examples_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields");
    for name in [
        "board-cooling",
        "excitable-tissue",
        "channel",
        "published/heat-1d",
        "published/fkpp-1d",
        "published/heat-2d",
        "published/heat-2d-obstacles",
    ] {
        let path = folder.join(format!("{name}.toml"));
        let problem = problem::kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
        compare(&gpu, problem, 12.min(problem.horizon));
    }
}

/// Lines whose inverse would not fit in memory.
#[test]
fn lines_that_are_too_long_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.toml");
    let text = "name = \"long\"\n[domain]\nunit = \"m\"\nsize = [1]\ngrid = [3001]
[time]\nunit = \"s\"\ninterval = 0.01\nsteps = 4\nsubsteps = 1
[fields.u]\nunit = \"1\"\nrange = [-1, 1]\ndiffusion = 0.01
[actuators]\nwidth = 0.1\nforce = 1\nplaces = { lattice = [3] }\n[sensors]\nwindow = 4\n";
    std::fs::write(&path, text).unwrap();
    let problem = problem::kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let refused = described::entry(problem).kernels.unwrap().0(problem).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("long on a grid of 3001") && message.contains("--backend flex"),
        "{message}"
    );
}
