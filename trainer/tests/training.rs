//! Trainings that are stopped, killed and resumed, commands that must refuse, and blobs as people read them.

use agent_core::policy::Policy;
use artifacts::observation::OwnedObservation;
use artifacts::policy_file::PolicyFile;
use burn::tensor::Device;
use problem::npy;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use trainer::checkpoint::Checkpoint;
use trainer::engine::Engine;
use trainer::inspect;
use trainer::learn::{TrainConfig, Trainer};
use trainer::policy::{PolicyConfig, Sight};
use trainer::published::entries;
use trainer::published::heat_1d::ENTRY;
use trainer::recipe::{Preset, Recipe};
use trainer::run::{Existing, Outcome, TrainingRun};
use trainer::swarm::Size;

/// A training small enough for a test.
fn small(config: &mut TrainConfig) {
    config.batch = 3;
    config.hardening.agents = vec![Size::of(2), Size::between(3, 5)];
    config.hardening.physics = vec!["nu=0.1..0.4".parse().unwrap()];
    config.horizon = 5;
    config.validate_every = 4;
    config.validation_episodes = 6;
}

fn open(folder: &Path, existing: Existing) -> anyhow::Result<TrainingRun> {
    open_of(ENTRY.recipe.full(ENTRY.problem), folder, existing)
}

fn open_of(recipe: Recipe, folder: &Path, existing: Existing) -> anyhow::Result<TrainingRun> {
    let seats = recipe.policy.shape.seats;
    let change = |config: &mut TrainConfig| {
        small(config);
        if let Some(agents) = seats {
            config.hardening.agents = vec![Size::of(agents)];
        }
    };
    let engine = Engine::Host(Device::flex());
    TrainingRun::open(&ENTRY, folder, existing, recipe, change, &engine)
}

/// A checkpoint without what may differ: how long it took, and the order in which Burn writes the
/// optimiser's moments. (Their values show in the weights of the steps that follow.)
fn latest(folder: &Path) -> Checkpoint {
    latest_in(&folder.join("heat-1d"))
}

fn latest_in(folder: &Path) -> Checkpoint {
    let mut checkpoint = Checkpoint::load(&folder.join("latest")).unwrap();
    checkpoint.seconds = 0.0;
    checkpoint.optimiser.clear();
    checkpoint
}

/// `assert_eq!` without printing megabytes.
fn assert_same(a: &Checkpoint, b: &Checkpoint) {
    assert_eq!(a.step, b.step);
    assert_eq!(a.history, b.history);
    assert!(a == b, "weights or settings differ");
}

fn trainer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command that must fail; its message.
fn refusal(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = trainer(arguments).output().unwrap();
    let message = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{arguments:?} succeeded: {message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn a_resumed_training_is_the_uninterrupted_one_bit_for_bit() {
    is_resumed_to_the_same_bits(|| ENTRY.recipe.full(ENTRY.problem));
    is_resumed_to_the_same_bits(|| ENTRY.recipe.centralised(ENTRY.problem, Preset::Full, 3));
}

fn is_resumed_to_the_same_bits(recipe: impl Fn() -> Recipe) {
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let go = AtomicBool::new(false);
    let mut run = open_of(recipe(), whole.path(), Existing::Keep).unwrap();
    assert_eq!(run.train(30, &go, |_, _| ()).unwrap(), Outcome::Finished);

    // 7 is neither the end of a stretch nor a validation.
    for (existing, steps) in [
        (Existing::Keep, 7),
        (Existing::Resume, 23),
        (Existing::Resume, 30),
    ] {
        let mut run = open_of(recipe(), cut.path(), existing).unwrap();
        run.train(steps, &go, |_, _| ()).unwrap();
    }
    let name = run.folder().file_name().unwrap().to_owned();
    let at = |folder: &Path| latest_in(&folder.join(&name));
    let (whole, mut cut) = (at(whole.path()), at(cut.path()));
    // The last step of every session is validated; only steps 7 and 23 came in addition.
    cut.history
        .validations
        .retain(|v| v.step.is_multiple_of(4) || v.step == 30);
    assert_same(&whole, &cut);
}

#[test]
fn a_stop_request_leaves_a_checkpoint_to_go_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = open(folder.path(), Existing::Keep).unwrap();
    let outcome = run.train(10, &AtomicBool::new(true), |_, _| ()).unwrap();
    assert_eq!(outcome, Outcome::Interrupted);
    assert_eq!(latest(folder.path()).step, 0);
}

/// kill −9 between any two instructions: what is on disk resumes, and ends where an undisturbed
/// run ends.
#[cfg(unix)]
#[test]
fn a_killed_training_resumes_to_the_same_end() {
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let arguments = |folder: &Path, more: &[&str]| {
        let mut all = vec!["train".to_owned(), "heat-1d".to_owned()];
        for word in [
            "--batch",
            "1",
            "--agents",
            "1",
            "--steps",
            "250",
            "--threads",
            "1",
            "--out",
        ] {
            all.push(word.to_owned());
        }
        all.push(folder.display().to_string());
        all.extend(more.iter().map(|&word| word.to_owned()));
        all
    };
    let run = |folder: &Path, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
        command.args(arguments(folder, more));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    assert!(run(whole.path(), &[]).status().unwrap().success());

    let mut child = run(cut.path(), &[]).spawn().unwrap();
    // As soon as the checkpoint of step 100 is there, somewhere in the steps after it.
    let patience = Instant::now() + Duration::from_secs(120);
    let file = cut.path().join("heat-1d/latest");
    while Checkpoint::load(&file).map_or(0, |c| c.step) < 100 {
        assert!(Instant::now() < patience, "no checkpoint after two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(run(cut.path(), &["--resume"]).status().unwrap().success());
    assert_same(&latest(whole.path()), &latest(cut.path()));
    let best = |folder: &Path| {
        Checkpoint::load(&folder.join("heat-1d/best"))
            .unwrap()
            .model
    };
    assert!(best(whole.path()) == best(cut.path()));
}

#[test]
fn a_second_training_does_not_touch_the_first() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), Existing::Keep).unwrap());
    let before = latest(folder.path());
    let out = folder.path().to_str().unwrap();
    let message = refusal(&["train", "heat-1d", "--out", out]);
    for word in [out, "--resume", "--overwrite"] {
        assert!(message.contains(word), "{message}");
    }
    assert_same(&latest(folder.path()), &before);

    let message = refusal(&["train", "heat-1d", "--resume", "--batch", "9", "--out", out]);
    assert!(message.contains("batch 3, not 9"), "{message}");
    assert!(open(folder.path(), Existing::Overwrite).is_ok());
}

#[test]
fn refusals_say_what_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("file"), "no folder").unwrap();
    std::fs::write(at("noise.policy"), [7u8; 100]).unwrap();
    let shipped = at("shipped.policy");
    std::fs::write(&shipped, ENTRY.problem.policy.unwrap()).unwrap();
    for (name, cells) in [("short.npy", 21), ("patch.npy", 22)] {
        std::fs::write(at(name), npy::encode(&[cells], &vec![0.0; cells])).unwrap();
    }
    let cases: &[(&[&str], &[&str])] = &[
        (&["train", "cold-1d"], &["cold-1d", "heat-1d"]),
        (
            &["train", "heat-1d", "--out", &at("file")],
            &["file", "--out"],
        ),
        (
            &["train", "heat-1d", "--resume", "--out", &at("none")],
            &["latest", "train first"],
        ),
        (&["train", "heat-1d", "--batch", "0"], &["--batch"]),
        (&["train", "heat-1d", "--lr", "-1"], &["--lr"]),
        (&["train", "heat-1d", "--agents", "0"], &["--agents"]),
        // A policy that nobody could export after hours.
        (
            &["train", "heat-2d", "--window", "64", "--memory", "2"],
            &["4098 values", "4096", "--window"],
        ),
        (
            &["train", "heat-1d", "--physics", "nu=0.4..0.1"],
            &["--physics", "nu=0.4..0.1", "nu=0.0025..0.01"],
        ),
        (
            &[
                "train",
                "fkpp-1d",
                "--physics",
                "mu=0.1..0.4",
                "--out",
                &at("none"),
            ],
            &["--physics", "'mu'", "nu (diffusivity"],
        ),
        (
            &["export", &at("none"), "-o", &at("p")],
            &["none", "train first"],
        ),
        (
            &["export", &at("file"), "-o", &at("p")],
            &["file", "not a training checkpoint"],
        ),
        (
            &["export", &at("file"), "-o", &at("p"), "--governor", "3"],
            &["--governor", "1 to 2", "0 to 1", "off"],
        ),
        (
            &[
                "export",
                &at("file"),
                "-o",
                &at("p"),
                "--governor",
                "1.01,2",
            ],
            &["--governor", "1 to 2", "0 to 1", "off"],
        ),
        (
            &["oracle", "heat-1d", "--crash", "1.5"],
            &["--crash", "1.5", "0 to 1"],
        ),
        (&["oracle", "heat-1d", "--unforeseen"], &["--crash"]),
        (&["oracle", "heat-1d", "--runs", "0"], &["--runs"]),
        (
            &["oracle", "heat-1d", "--policy", &at("none")],
            &["none", "--policy"],
        ),
        (
            &["oracle", "ks-1d", "--policy", &shipped],
            &["heat-1d", "ks-1d", "--policy"],
        ),
        (&["inspect", &at("none")], &["none", "cannot read"]),
        (
            &["inspect", &at("noise.policy")],
            &["noise.policy", "export it again"],
        ),
        (
            &[
                "step",
                &shipped,
                "--patch",
                &at("short.npy"),
                "--position",
                "0.4",
            ],
            &["--patch", "short.npy", "21", "22"],
        ),
        (
            &["step", &shipped, "--patch", &at("patch.npy")],
            &["--position"],
        ),
        (
            &[
                "step",
                &shipped,
                "--patch",
                &at("patch.npy"),
                "--position",
                "0.4,0.1",
            ],
            &["--position", "1 coordinates", "2"],
        ),
        (
            &[
                "step",
                &shipped,
                "--patch",
                &at("patch.npy"),
                "--position",
                "0.4",
                "--wide",
                &at("patch.npy"),
            ],
            &["--wide", "window alone"],
        ),
        (
            &[
                "step",
                &shipped,
                "--patch",
                &at("patch.npy"),
                "--position",
                "0.4",
                "--inside",
                "3..22",
            ],
            &["--inside"],
        ),
    ];
    for (arguments, words) in cases {
        let message = refusal(arguments);
        for word in *words {
            assert!(
                message.contains(word),
                "{arguments:?}: no '{word}' in: {message}"
            );
        }
    }
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "file",
            "noise.policy",
            "patch.npy",
            "shipped.policy",
            "short.npy"
        ]
    );
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_backend_that_is_not_built_in_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let message = refusal(&["train", "heat-1d", "--backend", "gpu", "--out", out]);
    assert!(message.contains("--features gpu"), "{message}");
}

/// The same few steps from the same seed: the two add up in different orders, and Adam's first steps
/// turn a rounding error in a tiny gradient into part of a step, but losses hardly differ.
#[cfg(feature = "gpu")]
#[test]
fn a_short_training_on_a_gpu_is_that_of_the_cpu() {
    use trainer::gpu::{Gpu, GpuError};
    if let (Err(GpuError::NoAdapter), None) = (Gpu::open(), std::env::var_os("CI")) {
        eprintln!("no Vulkan driver: nothing trained");
        return;
    }
    let losses = |backend: &str| -> Vec<f64> {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        let words = "train ks-1d --preset quick --batch 2 --steps 20 --weight final=0 --threads 2";
        let mut arguments: Vec<&str> = words.split(' ').collect();
        arguments.extend(["--backend", backend, "--out", out]);
        let Output { status, stderr, .. } = trainer(&arguments).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        let checkpoint = Checkpoint::load(&folder.path().join("ks-1d/latest")).unwrap();
        checkpoint
            .history
            .stretches
            .iter()
            .map(|s| s.loss)
            .collect()
    };
    let (cpu, gpu) = (losses("flex"), losses("gpu"));
    assert_eq!((cpu.len(), gpu.len()), (1, 1));
    assert!((gpu[0] / cpu[0] - 1.0).abs() < 1e-3, "{gpu:?} {cpu:?}");
}

#[test]
fn damaged_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), Existing::Keep).unwrap());
    let good = std::fs::read(folder.path().join("heat-1d/latest")).unwrap();
    let path = folder.path().join("damaged");
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::load(&path).unwrap_err().to_string()
    };
    assert!(message(&good[..good.len() / 2]).contains("truncated or damaged"));
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    assert!(message(&flipped).contains("truncated or damaged"));
    let mut newer = good.clone();
    newer[8] = 200;
    assert!(message(&newer).contains("format 200"));
    assert!(message(b"").contains("not a training checkpoint"));
}

#[test]
fn a_policy_is_exported_whole_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), Existing::Keep).unwrap());
    let checkpoint = folder.path().join("heat-1d/latest");
    let blob = folder.path().join("my.policy");
    let export = |to: &Path| {
        trainer(&[
            "export",
            checkpoint.to_str().unwrap(),
            "-o",
            to.to_str().unwrap(),
        ])
        .output()
        .unwrap()
    };
    assert!(export(&blob).status.success());
    assert!(
        !export(&folder.path().join("missing/my.policy"))
            .status
            .success()
    );
    let output = trainer(&["inspect", blob.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // 42·64 + 64·64 + 8·32 + 32·32 + 96·32 + 32·6 products; as many weights and 230 biases.
    for word in [
        "heat-1d",
        "11328 multiply",
        "11558",
        "±40",
        "±2",
        "every 1000 µs",
        "seed 0",
        "back by 1.01 a step",
    ] {
        assert!(text.contains(word), "no '{word}' in:\n{text}");
    }
    let file = PolicyFile::read(&blob).unwrap();
    assert!(text.contains(&file.hash()), "{text}");
    // One step on a patch of its own: the outputs are the agent's, to the bit.
    let policy = file.policy(ENTRY.problem).unwrap();
    let mut shown = OwnedObservation::blank(&policy);
    shown.field = (0..shown.field.len()).map(|k| 0.1 * k as f32).collect();
    shown.position[0] = 0.4;
    let made = inspect::step(&policy, &shown.as_observation()).unwrap();
    let patch = folder.path().join("patch.npy");
    std::fs::write(&patch, npy::encode(&[shown.field.len()], &shown.field)).unwrap();
    let step = [
        "step",
        blob.to_str().unwrap(),
        "--patch",
        patch.to_str().unwrap(),
        "--position",
        "0.4",
    ];
    let output = trainer(&step).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, made.text(&policy));
    let output = trainer(&[&step[..], &["--json"]].concat())
        .output()
        .unwrap();
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let features = object["features"].as_array().unwrap();
    assert_eq!(features.len(), made.features.len());
    let bits = format!("{:08x}", made.outputs[0].to_bits());
    assert_eq!(object["output_bits"][0], bits);
    // Written anew it keeps its governor, unless another is asked for.
    let again = folder.path().join("again.policy");
    for (flags, expected) in [
        (&["--weights", "int8"][..], Some("back by 1.01 a step")),
        (
            &["--governor", "1.5"],
            Some("eases what overshoots, to 1/1024 at least; back by 1.5 a step"),
        ),
        (
            &["--governor", "1.005,0.2"],
            Some("eases what overshoots beyond 0.2, to 1/1024 at least; back by 1.005 a step"),
        ),
        (&["--governor", "off"], None),
    ] {
        let from_to = [
            "export",
            blob.to_str().unwrap(),
            "-o",
            again.to_str().unwrap(),
        ];
        assert!(
            trainer(&[&from_to, flags].concat())
                .status()
                .unwrap()
                .success()
        );
        let inspect = trainer(&["inspect", again.to_str().unwrap()]).output();
        let text = String::from_utf8(inspect.unwrap().stdout).unwrap();
        assert_eq!(text.contains("governor"), expected.is_some(), "{text}");
        assert!(text.contains(expected.unwrap_or("heat-1d")), "{text}");
    }
    // Bars of the small board.
    let size = std::fs::metadata(&blob).unwrap().len();
    assert!(size <= 64 * 1024, "{size} bytes");
}

/// A network for all agents is kept in a folder of its own, run by its name, replayed to the bit, and refused by name
/// where it does not belong.
#[test]
fn a_network_for_all_agents_is_trained_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let train = |folder: &Path, steps: &str, more: &[&str]| {
        let out = folder.to_str().unwrap();
        let usual = ["train", "heat-1d", "--centralised", "--agents", "3"];
        let sizes = ["--preset", "quick", "--batch", "3", "--out", out, "--steps"];
        let trained = trainer(&[&usual[..], &sizes, &[steps], more].concat()).output();
        assert!(trained.unwrap().status.success());
        folder.join("heat-1d-centralised/latest")
    };
    train(folder.path(), "3", &[]);
    let network = train(folder.path(), "6", &["--resume"]);
    let network = network.to_str().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let dpc = ["--controller", "dpc", "--network", network];
    let run = ["run", "heat-1d", "--agents", "3", "--steps", "4", "--out"];
    let ran = trainer(&[&run[..], &[&at("run")], &dpc].concat()).output();
    assert!(ran.unwrap().status.success());
    // The record has the network in it.
    std::fs::remove_file(network).unwrap();
    let replayed = trainer(&["replay", &at("run")]).output().unwrap();
    assert!(replayed.status.success(), "{replayed:?}");

    train(folder.path(), "1", &["--overwrite"]);
    let shipped = at("shipped.policy");
    std::fs::write(&shipped, ENTRY.problem.policy.unwrap()).unwrap();
    let with = |command: &[&str]| [command, &dpc].concat().join(" ");
    let out = format!("--out {}", at("none"));
    for (command, words) in [
        (
            format!("export {network} -o {}", at("p")),
            "3 agents|no agent can carry it|--controller dpc",
        ),
        (
            with(&["eval", "heat-1d"]),
            "3 agents|no other number|--agents 3|--agents 8",
        ),
        (
            with(&["eval", "ks-1d", "--agents", "3"]),
            "heat-1d|train ks-1d --centralised",
        ),
        (
            with(&["eval", "heat-1d", "--agents", "3", "--grid", "50"]),
            "grid",
        ),
        (
            "eval heat-1d --controller dpc".to_owned(),
            "--network runs/heat-1d-centralised/best",
        ),
        (
            format!("eval heat-1d --controller dpc --network {shipped}"),
            "not a training checkpoint",
        ),
        (
            format!("eval heat-1d --network {network}"),
            "--network belongs to --controller dpc",
        ),
        (
            format!("train heat-1d --centralised --memory 2 {out}"),
            "--memory|leave it out",
        ),
        (
            format!("train heat-1d --centralised --window 8 {out}"),
            "--window|leave it out",
        ),
        (
            format!("train heat-1d --centralised --rests {out}"),
            "--rests|leave it out",
        ),
        (
            format!("train heat-1d --centralised --from {shipped} {out}"),
            "--from|leave it out",
        ),
        (
            format!("train heat-1d --centralised --agents 3..8 {out}"),
            "one number of agents|--agents 8",
        ),
        (
            format!("train heat-1d --centralised --backend gpu {out}"),
            "--backend gpu|--centralised",
        ),
    ] {
        let message = refusal(&command.split(' ').collect::<Vec<_>>());
        for word in words.split('|') {
            assert!(
                message.contains(word),
                "{command}: no '{word}' in: {message}"
            );
        }
    }
}

/// A training so small that its checkpoint can be kept: two steps of two agents on a tiny network.
fn tiny() -> Recipe {
    let mut recipe = ENTRY.recipe.full(ENTRY.problem);
    recipe.policy = PolicyConfig::new(
        ENTRY.problem,
        Sight {
            window: 2,
            ..recipe.policy.sight
        },
    );
    recipe.policy.shape.branch = [3, 2];
    recipe.policy.shape.trunk = [2, 2];
    recipe.policy.shape.fuse = 2;
    recipe.policy.shape.memory = 1;
    small(&mut recipe.train);
    recipe.train.hardening.agents = vec![Size::of(2)];
    recipe
}

/// The file that this version writes is the one it has always written under this number: whoever
/// changes the layout, or the version of Burn whose records stand in it, must change the number, and
/// add a file of the new one. `WRITE_GOLDEN=1 cargo test -p trainer` writes it.
#[test]
fn checkpoints_of_this_format_are_read_for_ever() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-9.training");
    let engine = Engine::Host(Device::flex());
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = TrainingRun::open(
            &ENTRY,
            folder.path(),
            Existing::Keep,
            tiny(),
            |_| (),
            &engine,
        )
        .unwrap();
        run.train(2, &AtomicBool::new(false), |_, _| ()).unwrap();
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::copy(folder.path().join("heat-1d/latest"), &golden).unwrap();
    }
    let checkpoint = Checkpoint::load(&golden).unwrap();
    assert_eq!(
        (checkpoint.problem.as_str(), checkpoint.step),
        ("heat-1d", 2)
    );
    assert_eq!(checkpoint.config, tiny().train);
    assert_eq!(checkpoint.policy, tiny().policy);
    assert_eq!(checkpoint.history.current.count, 2);
    let mut resumed = Trainer::resume(checkpoint, &entries(), &engine).unwrap();
    // It goes on from what is in the file, weights and moments alike: the third step of this very
    // training, to the bit.
    let folder = tempfile::tempdir().unwrap();
    let mut again = TrainingRun::open(
        &ENTRY,
        folder.path(),
        Existing::Keep,
        tiny(),
        |_| (),
        &engine,
    )
    .unwrap();
    again.train(3, &AtomicBool::new(false), |_, _| ()).unwrap();
    resumed.step().unwrap();
    assert_eq!(
        resumed.policy().parameters(),
        again.trainer().policy().parameters()
    );
}

/// Hunted scenarios are part of a training: they are drawn as often as was asked for, and a resumed one has
/// them still.
#[test]
fn hunted_scenarios_are_trained_with() {
    let engine = Engine::Host(Device::flex());
    let folder = tempfile::tempdir().unwrap();
    let text =
        "problem = \"heat-1d\"\nagents = 5\n[[fault]]\nkind = \"crash\"\nids = \"2\"\nat = 0.1";
    let hard = |config: &mut TrainConfig| {
        config.hardening.hunted = vec![text.to_owned()];
        config.hardening.hunted_share = 1.0;
    };
    let open = |existing, change: &dyn Fn(&mut TrainConfig)| {
        TrainingRun::open(&ENTRY, folder.path(), existing, tiny(), change, &engine)
    };
    let mut run = open(Existing::Keep, &hard).unwrap();
    run.train(2, &AtomicBool::new(false), |_, _| ()).unwrap();
    let drawn = run.trainer().draw().trials;
    assert!(drawn.iter().all(|trial| trial.agents() == 5));
    assert!(
        drawn
            .iter()
            .all(|trial| trial.dies_at[2] == 30 && trial.dies_at[0] > 1000)
    );
    drop(run);
    let resumed = open(Existing::Resume, &|_| ()).unwrap();
    assert_eq!(resumed.trainer().draw().trials, drawn);
    drop(resumed);
    let other = open(Existing::Overwrite, &|config| {
        config.hardening.hunted = vec!["problem = \"ks-1d\"".to_owned()];
    });
    let said = format!("{:#}", other.err().unwrap());
    assert!(said.contains("--hard") && said.contains("ks-1d"), "{said}");
}

/// Formats of earlier versions are named, not called damaged.
#[test]
fn checkpoints_of_older_formats_are_named_by_their_number() {
    for format in [2, 3, 4, 5, 6, 7, 8] {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/golden/format-{format}.training"));
        let message = Checkpoint::load(&golden).unwrap_err().to_string();
        let expected = format!("format {format}, this trainer reads 9");
        assert!(message.contains(&expected), "{message}");
        assert!(message.contains("--from"), "{message}");
    }
}

/// A few hundred ways in which bytes come to grief: bits that flip, ends and middles that are lost, bytes
/// that change places, lengths that are blown up.
fn mutants(good: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 1u64;
    let mut below = move |end: usize| {
        // Knuth's MMIX generator, upper half.
        state = state.wrapping_mul(6364136223846793005);
        state = state.wrapping_add(1442695040888963407);
        (state >> 32) as usize % end
    };
    let good = good.to_vec();
    (0..500).map(move |round| {
        let mut bytes = good.clone();
        let at = below(bytes.len());
        match round % 5 {
            0 => bytes[at] ^= 1 << below(8),
            1 => bytes.truncate(at),
            2 => {
                let other = below(bytes.len());
                bytes.swap(at, other);
            }
            3 => {
                let end = (at + 1 + below(9)).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
            _ => {
                let end = (at + below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
        bytes
    })
}

fn small_checkpoint() -> (tempfile::TempDir, std::path::PathBuf) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-9.training");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latest");
    std::fs::copy(golden, &path).unwrap();
    (folder, path)
}

#[test]
fn mutated_checkpoints_are_refused_with_a_sentence() {
    let (_folder, path) = small_checkpoint();
    let good = std::fs::read(&path).unwrap();
    for bytes in mutants(&good).filter(|bytes| *bytes != good) {
        std::fs::write(&path, bytes).unwrap();
        let said = Checkpoint::load(&path).unwrap_err().to_string();
        let known = [
            "truncated or damaged",
            "not a training checkpoint",
            "checkpoint format",
        ];
        assert!(known.iter().any(|words| said.contains(words)), "{said}");
    }
}

/// A network that somebody has changed and given the right checksum is read or refused too. (Of the
/// optimiser's state Burn has no way to refuse all that does not fit.)
#[test]
fn networks_of_other_shapes_are_refused() {
    let (_folder, path) = small_checkpoint();
    let good = Checkpoint::load(&path).unwrap();
    let engine = Engine::Host(Device::flex());
    let resume = |checkpoint: Checkpoint| Trainer::resume(checkpoint, &entries(), &engine);
    let (mut refused, mut read) = (0, 0);
    let models = mutants(&good.model).map(|model| Checkpoint {
        model,
        ..good.clone()
    });
    for checkpoint in models {
        match resume(checkpoint) {
            // Other values in the right places.
            Ok(mut trainer) => {
                trainer.step().ok();
                read += 1;
            }
            Err(error) => {
                let said = format!("{error:#}");
                assert!(said.contains("network or optimiser state"), "{said}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && read > 0, "{refused} refused, {read} read");
}

#[test]
fn sizes_have_an_end_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let huge = "1000000000000";
    for (words, limit) in [
        ("train heat-1d --steps", "100000000"),
        ("train heat-1d --batch", "65536"),
        ("train heat-1d --agents", "4096"),
        ("train heat-1d --delay", "1000000"),
        ("train heat-1d --window", "64"),
        ("train heat-1d --threads", "1024"),
        ("oracle heat-1d --episodes", "1000000"),
        ("oracle heat-1d --agents", "4096"),
        ("oracle heat-1d --runs", "1000000"),
        ("oracle heat-1d --threads", "1024"),
        ("bench heat-1d --rounds", "10000"),
        ("bench heat-1d --reps", "10000"),
        ("check heat-1d --threads", "1024"),
    ] {
        let mut arguments: Vec<&str> = words.split(' ').collect();
        arguments.push(huge);
        if words.starts_with("train") {
            arguments.extend(["--out", out]);
        }
        let said = refusal(&arguments);
        assert!(said.contains(huge) && said.contains(limit), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Whatever is given for a file and is none is named, and neither read nor waited for.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pipe, long) = (at("pipe"), at("long"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let sparse = std::fs::File::create(&long).unwrap();
    sparse.set_len(1 << 42).unwrap();
    let shipped = at("shipped.policy");
    let bytes = problem::published::heat_1d::PROBLEM.policy.unwrap();
    std::fs::write(&shipped, bytes).unwrap();
    let out = at("runs");
    std::fs::create_dir_all(folder.path().join("runs/heat-1d")).unwrap();
    std::os::unix::fs::symlink(&pipe, folder.path().join("runs/heat-1d/latest")).unwrap();
    for (file, fact) in [
        (pipe.as_str(), "it is a pipe, not a file"),
        ("/dev/zero", "it is a device, not a file"),
        (out.as_str(), "it is a folder, not a file"),
        (long.as_str(), "it has 4398046511104 bytes"),
    ] {
        for arguments in [
            vec!["export", file, "-o", "/nowhere/x.policy"],
            vec!["inspect", file],
            vec!["step", file],
            vec!["step", &shipped, "--patch", file, "--position", "0.4"],
            vec!["oracle", "heat-1d", "--policy", file],
            vec!["oracle", "heat-1d", "--set", file],
            vec!["train", "heat-1d", "--from", file, "--out", "/nowhere"],
        ] {
            let said = refusal(&arguments);
            assert!(said.contains(file) && said.contains(fact), "{said}");
        }
    }
    let said = refusal(&["train", "heat-1d", "--resume", "--out", &out]);
    assert!(said.contains("it is a pipe, not a file"), "{said}");
}

/// Each of them would train for itself, into one folder.
#[cfg(not(feature = "mpi"))]
#[test]
fn processes_that_cannot_hear_each_other_do_not_train() {
    for size in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"] {
        let mut alone = trainer(&["train", "heat-1d", "--preset", "quick"]);
        let output = alone.env(size, "4").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("one of 4 processes"),
            "{said}"
        );
        assert!(said.contains("--features mpi"), "{said}");
    }
}

#[test]
fn two_trainings_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), Existing::Keep).unwrap();
    let out = folder.path().to_str().unwrap();
    let holder = format!("process {} (", std::process::id());
    for existing in ["--resume", "--overwrite"] {
        let said = refusal(&["train", "heat-1d", "--steps", "3", existing, "--out", out]);
        for fact in [
            holder.as_str(),
            "heat-1d is being written to by",
            "s ago",
            "--out",
        ] {
            assert!(said.contains(fact), "{said}");
        }
    }
    drop(first);
    open(folder.path(), Existing::Resume).unwrap();
}

/// Readers that have seen enough end nothing.
#[test]
fn a_closed_pipe_is_no_error() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/heat-1d.policy");
    let shipped = shipped.to_str().unwrap();
    for arguments in [
        vec!["inspect", shipped],
        vec!["step", shipped],
        vec!["step", shipped, "--json"],
        vec!["check", "heat-1d", "--threads", "1"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = trainer(&arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

fn golden_policy(bytes: &[u8]) -> PolicyFile {
    PolicyFile::new(bytes, "golden".to_owned())
}

/// Two convolutions on a window of 6, 3→4 and 4→5 channels, a layer of 16 on what is left of them, a
/// trunk of 8 and a head of 3.
#[test]
fn convolutions_count_and_are_shown() {
    let file = golden_policy(include_bytes!(
        "../../agent-core/tests/golden/format-3-convolutions.policy"
    ));
    let text = inspect::describe(&file, &entries()).unwrap();
    let policy = Policy::parse(file.bytes()).unwrap();
    let network = &policy.header().network;
    let convolutions: usize = (network.convolutions.iter())
        .map(|c| (9 * usize::from(c.inputs) + 1) * usize::from(c.outputs))
        .sum();
    let dense: usize = (network
        .branch
        .iter()
        .chain(&network.trunk)
        .chain(&network.head))
    .map(|l| (usize::from(l.inputs) + 1) * usize::from(l.outputs))
    .sum();
    for words in [
        format!("parameters      {}", convolutions + dense),
        "format          3".to_owned(),
        "flattening      soft-norm".to_owned(),
        "padding 1, relu".to_owned(),
        "→3 identity".to_owned(),
        format!("SHA-256         {}", file.hash()),
    ] {
        assert!(text.contains(&words), "no '{words}' in:\n{text}");
    }
}

#[test]
fn a_step_on_the_probe_gives_what_the_blob_expects() {
    for bytes in [
        &include_bytes!("../../agent-core/tests/golden/format-3-convolutions.policy")[..],
        include_bytes!("../../agent-core/tests/golden/format-3-int8-plane.policy"),
        include_bytes!("../../agent-core/tests/golden/format-4-force.policy"),
    ] {
        let file = golden_policy(bytes);
        let policy = Policy::parse(file.bytes()).unwrap();
        let (observation, probe) = policy.probe().unwrap();
        let made = inspect::step(&policy, &observation).unwrap();
        for (output, expected) in made.outputs.iter().zip(probe.expected) {
            assert_eq!(output.to_le_bytes(), expected);
        }
        assert_eq!(made.features.len(), policy.features_len());
        let text = made.text(&policy);
        let bits = format!("{:08x}", made.outputs[0].to_bits());
        assert!(text.contains(&bits) && text.contains("Active"), "{text}");
    }
}
