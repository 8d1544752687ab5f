//! The commands that README.md and docs/*.md name, each run in a form that takes seconds: what a
//! reader types must work, also where no test looks.
//!
//! They run with the programs that the tests were run with, one after the other, in a folder of their
//! own: later ones use what earlier ones leave there. A test holds the table against the documents.

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    Cli,
    board::{Board, Image},
    command::{succeed, succeed_in},
    firmware::{root, target, target_folder},
    programs::Build,
    setup,
    stages::{checking_cargo, features},
};

/// How a documented command is run.
enum Smoke {
    /// As it stands, with these arguments besides.
    With(&'static str),
    /// In this form, with the folder of examples as `EXAMPLES` and the tests' features as `FEATURES`.
    As(&'static str),
    /// In this form, with the emulated board's image as `IMAGE`.
    OnBoard(&'static str),
    /// In this form, where there is a Vulkan driver.
    OnGpu(&'static str),
    /// By this stage of `cargo xtask test`.
    Stage(&'static str),
    /// Not at all, because it needs this.
    Needs(&'static str),
}
use Smoke::{As, Needs, OnBoard, OnGpu, Stage, With};

/// The example's commands, which its own tests run.
const OWN: Smoke = Stage("a problem in a user's crate");

/// Runs in the browser, which the page's own tests start.
const LIVE: Smoke = Stage("page in a browser");

/// Needs several programs at a time, which the tests start.
const NETWORK: Smoke = Stage("tests");

/// What is documented, in the order in which it is run.
const COMMANDS: &[(&str, Smoke)] = &[
    // README.md
    ("cargo run --release", With("")),
    ("cargo xtask test", Stage("all of them")),
    (
        "cargo run --release -p trainer -- train heat-1d --preset quick",
        With("--steps 2"),
    ),
    (
        "cargo run --release -p trainer -- export runs/heat-1d/best -o my.policy",
        With(""),
    ),
    (
        "cargo run --release -p trainer -- inspect my.policy",
        With(""),
    ),
    (
        "cargo run --release -p agent-sim -- run heat-1d --policy my.policy --agents 16 --seed 7",
        With("--steps 20"),
    ),
    (
        "cargo run --release -p agent-sim -- eval heat-1d --policy my.policy --set table",
        With("--episodes 2"),
    ),
    (
        "cargo xtask firmware run --policy my.policy",
        OnBoard("cargo xtask firmware run --policy policies/heat-1d.policy --observations 4"),
    ),
    ("cargo xtask firmware size", Stage("firmware size")),
    ("cargo xtask firmware c", OnBoard("cargo xtask firmware c")),
    (
        "cargo run --release -p trainer -- export my.policy --weights int8 -o small.policy",
        With(""),
    ),
    ("cargo xtask fuzz", Stage("fuzz")),
    ("cargo xtask soak", With("--frames 2000")),
    (
        "cargo xtask torture",
        OnBoard("cargo xtask torture --frames 2000"),
    ),
    (
        "cargo bench -p agent-core",
        // With all packages and features of the tests, whose dependencies are then the same files.
        As("cargo bench --profile dev --workspace --features FEATURES --bench host -- --smoke"),
    ),
    ("cargo run --release -p agent-sim -- problems", With("")),
    (
        "cargo run --release -p agent-sim -- run turbulence-2d --agents 256 \
         --fault crash,fraction=0.3,at=0.5 --fault delay,steps=2",
        With("--steps 4"),
    ),
    (
        "cargo run --release -p agent-sim -- replay out/run-turbulence-2d",
        With(""),
    ),
    (
        "cargo run --release -p agent-sim -- sweep fkpp-1d --agents 5..320 --episodes 50",
        As("agent-sim sweep fkpp-1d --agents 5..10 --episodes 1 --steps 4"),
    ),
    (
        "cargo run --release -p agent-sim -- sweep heat-1d --fault-fraction 0,0.1,0.3,0.5",
        With("--episodes 1 --steps 4"),
    ),
    (
        "cargo run --release -p agent-sim -- run heat-1d --agents 1000000 --steps 100 --alone",
        As("agent-sim run heat-1d --agents 1000 --steps 4 --alone"),
    ),
    ("cargo xtask firmware build", Stage("firmware for tests")),
    (
        "cargo run --release -p agent-sim -- run heat-1d --link qemu=8 --fault kill,count=2,at=0.5 \
         --fault hang,count=1,at=0.5 --fault restart,count=1,at=0.5,until=0.6",
        OnBoard(
            "agent-sim run heat-1d --link qemu=4 --fault kill,count=2,at=0.5 \
             --fault hang,count=1,at=0.5 --fault restart,count=1,at=0.5,until=0.6 --steps 40 \
             --image IMAGE",
        ),
    ),
    (
        "cargo run --release -p agent-sim -- run heat-2d --agents 64 --link qemu=6 \
         --link serial=/dev/ttyACM0",
        OnBoard("agent-sim run heat-2d --agents 64 --link qemu=2 --steps 4 --image IMAGE"),
    ),
    (
        "cargo run --release -p agent-sim -- flash my.policy --link serial=/dev/ttyACM0",
        OnBoard("agent-sim flash my.policy --link qemu=1 --image IMAGE"),
    ),
    // docs/from-sb3-to-cortex-m.md
    (
        "cargo run --release -p agent-sim -- run heat-1d --policy ppo.policy --link qemu=1",
        OnBoard("agent-sim run heat-1d --policy my.policy --link qemu=1 --steps 4 --image IMAGE"),
    ),
    // docs/boards.md
    (
        "cargo xtask firmware build --board pico2",
        Stage("firmware for every board"),
    ),
    ("cargo xtask firmware flash --board pico2", Needs("a board")),
    (
        "cargo xtask firmware run --board virt-rv32 --policy FILE",
        OnBoard(
            "cargo xtask firmware run --board virt-rv32 --policy policies/heat-1d.policy \
             --observations 4",
        ),
    ),
    (
        "cargo xtask firmware run --policy FILE --log",
        OnBoard("cargo xtask firmware run --policy policies/ks-1d.policy --observations 4 --log"),
    ),
    (
        "cargo xtask firmware bench",
        // The peer is left out: its compiler alone is half a gigabyte.
        OnBoard("cargo xtask firmware bench --policy policies/heat-1d.policy --alone"),
    ),
    (
        "cargo install probe-rs-tools --locked",
        Needs("a board to be of use"),
    ),
    (
        "cargo xtask firmware flash --board nucleo-f446re",
        Needs("a board"),
    ),
    // docs/c-api.md
    (
        "cargo rustc -p agent-core-c --crate-type staticlib --profile c-small \
         --target thumbv7em-none-eabihf -- -Cllvm-args=-inline-threshold=25",
        Stage("agent-core for C, without panics"),
    ),
    ("cargo xtask package-c", Stage("packages for C teams")),
    // docs/releasing.md
    (
        "cargo xtask package",
        Needs("minutes; the stage `crates as published` is its quick form"),
    ),
    (
        "cargo xtask package --no-verify",
        Stage("crates as published"),
    ),
    // docs/hardware-in-the-loop.md
    (
        "agent-sim run heat-1d --link qemu=8",
        Stage("tests: hardware_in_the_loop"),
    ),
    (
        "agent-sim run heat-2d --agents 64 --link qemu=6 --link serial=/dev/ttyACM0",
        Stage("this one, for README.md"),
    ),
    (
        "agent-sim run heat-1d --link qemu=8 --fault kill,count=2,at=0.5 --fault hang,count=1,at=0.5",
        Stage("this one, for README.md"),
    ),
    (
        "agent-sim nodes --link serial=/dev/ttyACM0",
        OnBoard("agent-sim nodes --link qemu=1 --image IMAGE"),
    ),
    (
        "agent-sim flash my.policy --link serial=/dev/ttyACM0",
        Stage("this one, for README.md"),
    ),
    ("agent-sim key secret.key", With("")),
    (
        "POLICY_KEY=<public key> cargo xtask firmware build",
        Stage("firmware for every board"),
    ),
    (
        "agent-sim flash my.policy --link serial=/dev/ttyACM0 --key secret.key",
        OnBoard("agent-sim flash my.policy --link qemu=1 --key secret.key --image IMAGE"),
    ),
    // docs/security.md
    ("agent-sim key link.key --link", With("")),
    (
        "POLICY_KEY=<public key> LINK_KEY=$(cat link.key) NODE_FLEET=plant-7 cargo xtask firmware build --board pico2",
        Stage("firmware for every board"),
    ),
    (
        "agent-sim key operator.key --grant observe --from link.key",
        With(""),
    ),
    (
        "agent-sim sign my.policy --key secret.key --fleet plant-7 -o my.manifest",
        With(""),
    ),
    (
        "agent-sim flash my.policy --manifest my.manifest --link-key link.key --link serial=/dev/ttyACM0",
        Stage("tests: boards"),
    ),
    (
        "agent-sim run heat-1d --link serial=/dev/ttyACM0 --link-key operator.key",
        Stage("tests: boards"),
    ),
    // docs/deploy.md
    (
        "cargo xtask firmware build --standalone --board pico2",
        Stage("firmware for every board"),
    ),
    (
        "cargo xtask firmware build --standalone",
        Stage("firmware for every board"),
    ),
    (
        "agent-sim configure node.toml --link serial=/dev/ttyACM0",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim target 0.7 --link serial=/dev/ttyACM0",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim target --as-placed --link serial=/dev/ttyACM0",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim configure --fed --link serial=/dev/ttyACM0",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim run heat-1d --plant-io qemu=8 --standalone --set table",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim run heat-1d --plant-io qemu=8 --standalone --fault kill,count=2,at=0.5",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim run heat-1d --plant-io qemu=8 --standalone --fault bus-stuck,ids=1+6,at=0.3,until=0.6",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim run heat-1d --plant-io qemu=8 --standalone --fault clock,rate=0.01",
        Stage("tests: by_itself"),
    ),
    (
        "cargo run --release -p agent-sim -- run heat-1d --plant-io qemu=8 --standalone",
        Stage("tests: by_itself"),
    ),
    // docs/neighbours.md
    (
        "agent-sim run examples/standalone/plate.toml --plant-io qemu=16 --standalone",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim run examples/standalone/plate.toml --plant-io qemu=16 --standalone --fault flood,ids=5,at=0.5",
        Stage("tests: by_itself"),
    ),
    (
        "agent-sim eval examples/standalone/plate.toml --standalone --set fresh",
        As(
            "agent-sim eval EXAMPLES/standalone/plate.toml --standalone --set fresh --episodes 1 --steps 4",
        ),
    ),
    (
        "agent-sim eval heat-1d --standalone",
        With("--episodes 1 --steps 4"),
    ),
    // docs/policy-format.md
    ("trainer step my.policy", With("")),
    (
        "trainer step my.policy --patch patch.npy --position 0.4",
        Stage("tests: training"),
    ),
    // docs/import.md
    (
        "trainer import net.onnx --problem heat-1d -o my.policy",
        As(
            "trainer import EXAMPLES/fields/published/../../../artifacts/tests/networks/line.onnx --problem heat-1d \
            --window 8 -o imported.policy",
        ),
    ),
    (
        "trainer import net.safetensors --problem heat-1d --window 12 --activation relu -o my.policy",
        As(
            "trainer import EXAMPLES/fields/published/../../../artifacts/tests/networks/line.safetensors --problem heat-1d \
            --window 8 --activation relu -o imported.policy",
        ),
    ),
    // docs/baselines.md
    (
        "agent-sim eval heat-1d --controller coverage",
        With("--episodes 2 --steps 20"),
    ),
    (
        "agent-sim eval heat-1d --controller coverage --fault crash,fraction=0.3,at=0.5",
        With("--episodes 2 --steps 20"),
    ),
    (
        "agent-sim tune heat-1d --controller coverage",
        With("--episodes 1"),
    ),
    (
        "trainer eval heat-1d --controller nmpc --plan 30 --replan 5",
        As("trainer eval heat-1d --controller nmpc --plan 4 --replan 2 --episodes 1 --steps 6"),
    ),
    (
        "trainer eval ks-1d --controller nmpc --plan 20 --replan 1 --steps 400 --from 350 --set fresh --episodes 10",
        As(
            "trainer eval ks-1d --controller nmpc --plan 4 --replan 1 --steps 4 --from 2 --set fresh --episodes 1",
        ),
    ),
    (
        "trainer run ks-1d --controller nmpc --plan 20 --replan 1 --fault crash,fraction=0.3,at=0.5",
        As(
            "trainer run ks-1d --controller nmpc --plan 4 --replan 1 --steps 6 --fault crash,fraction=0.3,at=0.5",
        ),
    ),
    ("trainer replay out/run-ks-1d", With("")),
    (
        "trainer train heat-1d --centralised",
        With("--preset quick --steps 2 --batch 2"),
    ),
    (
        "trainer eval heat-1d --controller dpc --network runs/heat-1d-centralised/best",
        With("--episodes 2 --steps 10"),
    ),
    (
        "trainer run heat-1d --controller dpc --network runs/heat-1d-centralised/best --fault crash,fraction=0.3,at=0.5",
        With("--steps 10"),
    ),
    ("trainer replay out/run-heat-1d", With("")),
    (
        "cargo xtask baselines train mappo heat-1d --budget 10m --seed 1",
        Needs("gigabytes of PyTorch"),
    ),
    (
        "cargo xtask baselines --quick",
        Needs("gigabytes of PyTorch"),
    ),
    // docs/simulator.md
    (
        "agent-sim run fkpp-1d --physics nu=0.001,rho=5",
        With("--steps 4"),
    ),
    (
        "agent-sim run ks-1d --physics length=200 --grid 512 --agents 80 --steps 400",
        As("agent-sim run ks-1d --physics length=200 --grid 512 --agents 80 --steps 4"),
    ),
    (
        "agent-sim sweep turbulence-2d --physics nu=2e-4 --agents 64,256,1024",
        As(
            "agent-sim sweep turbulence-2d --physics nu=2e-4 --agents 64,256 --episodes 1 --steps 2",
        ),
    ),
    (
        "agent-sim run turbulence-2d --agents 256 --fault crash,fraction=0.3,at=0.5 \
         --fault delay,steps=2",
        Stage("this one, for README.md"),
    ),
    // docs/campaigns.md
    ("cargo run --release -p agent-sim -- requirements", With("")),
    (
        "cargo run --release -p agent-sim -- run heat-1d --fault crash,fraction=0.5,at=0.5 --require 'error,below=0.01,when=at the end'",
        As(
            "agent-sim run heat-1d --steps 4 --fault crash,fraction=0.5,at=0.5 --require error,below=9",
        ),
    ),
    (
        "cargo run --release -p agent-sim -- campaign examples/campaigns/heat-1d.toml",
        As("agent-sim campaign EXAMPLES/campaigns/heat-1d.toml --runs 2"),
    ),
    (
        "cargo run --release -p agent-sim -- hunt examples/campaigns/heat-1d.toml --budget 10m",
        Stage("tests: what it finds is a failure"),
    ),
    (
        "cargo run --release -p agent-sim -- run --scenario out/hunt-heat-1d/found.toml",
        Stage("tests: likewise"),
    ),
    (
        "cargo run --release -p trainer -- train heat-1d --from policies/heat-1d.policy --lr 1e-4 --steps 1500 --hard out/hunt-heat-1d/found.toml",
        Stage("tests: hunted scenarios are trained with"),
    ),
    (
        "cargo run --release -p agent-sim -- campaign examples/campaigns/boards.toml",
        OnBoard("agent-sim campaign EXAMPLES/campaigns/boards.toml --runs 3 --image IMAGE"),
    ),
    // docs/scale.md
    (
        "agent-sim campaign examples/campaigns/heat-1d.toml --shard 3/16",
        As(
            "agent-sim campaign EXAMPLES/campaigns/heat-1d.toml --runs 4 --shard 2/2 --out out/shards-of-runs",
        ),
    ),
    (
        "agent-sim sweep fkpp-1d --agents 5..320 --episodes 50 --shard 3/16",
        As(
            "agent-sim sweep fkpp-1d --agents 5..10 --episodes 1 --steps 4 --shard 1/2 --out out/shards-of-points",
        ),
    ),
    (
        "cargo xtask reproduce --full --shard 3/16",
        As(
            "cargo xtask reproduce --problem examples/fields/board-cooling.toml failure --shard 1/2",
        ),
    ),
    (
        "cargo xtask cluster slurm examples/campaigns/heat-1d.toml --shards 16",
        With("-o target/smoke/slurm"),
    ),
    (
        "cargo xtask cluster kubernetes examples/campaigns/heat-1d.toml --shards 16 --image registry.example/fieldswarm",
        With("-o target/smoke/kubernetes"),
    ),
    ("cargo xtask cluster try", Stage("jobs for clusters")),
    (
        "trainer bench fkpp-1d --threads 2 --rounds 5",
        As("trainer bench heat-1d --threads 2 --rounds 1 --reps 1"),
    ),
    (
        "cargo build --release -p trainer --features mpi",
        Stage("lints, tests compiled"),
    ),
    // docs/training.md
    (
        "trainer train heat-1d --preset quick",
        Stage("this one, for README.md"),
    ),
    (
        "trainer train heat-1d",
        With("--steps 1 --batch 2 --out whole"),
    ),
    (
        "trainer train --all --resume",
        As("trainer train --all --preset quick --resume --steps 1 --batch 1 --out all"),
    ),
    (
        "trainer train heat-1d --from my.policy --lr 2e-4",
        With("--steps 1 --batch 2 --out further"),
    ),
    (
        "trainer export runs/heat-1d/best -o my.policy",
        Stage("this one, for README.md"),
    ),
    (
        "trainer export runs/heat-1d/best --weights int8 -o my-int8.policy",
        With(""),
    ),
    (
        "trainer export my.policy --governor off -o bare.policy",
        With(""),
    ),
    (
        "agent-sim eval heat-1d --policy my.policy --weights int8",
        With("--episodes 2"),
    ),
    (
        "cargo run --release -p trainer --features gpu -- train density-2d --backend gpu",
        // A software driver takes minutes for an episode on a plane.
        OnGpu(
            "trainer train heat-1d --preset quick --backend gpu --steps 1 --batch 1 --out on-gpu",
        ),
    ),
    (
        "cargo run --release -p trainer -- bench --against-files examples/fields/published",
        As("trainer bench heat-1d --against-files EXAMPLES/fields/published --rounds 1 --reps 1"),
    ),
    (
        "cargo run --release -p trainer --features gpu -- bench --against-files examples/fields/published --backend gpu",
        // A software driver takes minutes for a batch.
        Needs("a GPU"),
    ),
    // docs/plants.md
    (
        "cargo run --release -p agent-sim -- run heat-2d --plant 'python -m \
         fieldswarm.plants.py_pde_plate'",
        Stage("Python tests"),
    ),
    (
        "cargo run --release -p agent-sim -- eval ks-1d --plant 'python -m \
         fieldswarm.plants.exponax_ks'",
        Stage("Python tests"),
    ),
    (
        "cargo run --release -p agent-sim -- run my-plate.toml --plant tcp=10.0.0.7:4242",
        Needs("a program that listens"),
    ),
    // docs/own-field.md
    ("cargo run --release -p agent-sim -- new my-plate", With("")),
    (
        "cargo run --release -p agent-sim -- check my-plate.toml",
        With(""),
    ),
    (
        "cargo run --release -p agent-sim -- tune my-plate.toml --episodes 16",
        As("agent-sim tune my-plate.toml --episodes 1"),
    ),
    (
        "cargo run --release -p trainer -- check my-plate.toml",
        With(""),
    ),
    (
        "cargo run --release -p trainer -- train my-plate.toml --preset quick",
        With("--steps 2 --batch 2"),
    ),
    (
        "cargo run --release -p trainer --features gpu -- train my-plate.toml --backend gpu",
        OnGpu(
            "trainer train EXAMPLES/fields/published/heat-1d.toml --preset quick --backend gpu --steps 1 --batch 1 --out plate-on-gpu",
        ),
    ),
    (
        "cargo run --release -p trainer -- export runs/my-plate/best -o my-plate.policy",
        With(""),
    ),
    (
        "cargo run --release -p agent-sim -- eval my-plate.toml --set fresh --episodes 20 --seed 1",
        As("agent-sim eval my-plate.toml --set fresh --episodes 2 --seed 1"),
    ),
    (
        "cargo run --release -p agent-sim -- run my-plate.toml --fault crash,fraction=0.3,at=0.5",
        With("--steps 10"),
    ),
    (
        "cargo run --release -p agent-sim -- sweep my-plate.toml --agents 8,16,32 --episodes 8",
        As("agent-sim sweep my-plate.toml --agents 8,16 --episodes 1 --steps 4"),
    ),
    (
        "cargo xtask reproduce --problem my-plate.toml",
        As("cargo xtask reproduce --problem examples/fields/board-cooling.toml failure"),
    ),
    (
        "cargo run --release -p agent-sim -- run my-plate.toml --link qemu=16",
        OnBoard("agent-sim run my-plate.toml --link qemu=2 --steps 4 --image IMAGE"),
    ),
    (
        "cargo run --release -p agent-sim -- flash my-plate.policy --link serial=/dev/ttyACM0",
        OnBoard("agent-sim flash my-plate.policy --link qemu=1 --image IMAGE"),
    ),
    // docs/new-problem.md
    ("cargo run --release -- problems", OWN),
    (
        "cargo run --release -- run burgers-1d --controller none",
        OWN,
    ),
    (
        "cargo run --release -- train burgers-1d --preset quick",
        OWN,
    ),
    (
        "cargo run --release -- export runs/burgers-1d/best -o my.policy",
        OWN,
    ),
    (
        "cargo run --release -- eval burgers-1d --policy my.policy --set fresh",
        OWN,
    ),
    (
        "cargo run --release -- run burgers-1d --policy my.policy --fault crash,fraction=0.3,at=0.5",
        OWN,
    ),
    (
        "cargo run --release -- sweep burgers-1d --policy my.policy --agents 6..48",
        OWN,
    ),
    (
        "cargo run --release -- run burgers-1d --policy my.policy --link qemu=1 --image \
         ../../target/firmware/images/mps2-an386.elf",
        OWN,
    ),
    // Named in the text.
    ("trainer oracle heat-1d", With("--episodes 1 --runs 2")),
    ("trainer bench heat-1d", With("--rounds 1 --reps 1")),
    // docs/live.md; none of them ends by itself.
    ("agent-sim live heat-2d", LIVE),
    (
        "agent-sim live turbulence-2d --agents 256 --fault crash,fraction=0.3,at=0.5",
        LIVE,
    ),
    ("agent-sim live my-plate.toml", LIVE),
    (
        "agent-sim live --scenario out/hunt-heat-1d/found.toml",
        LIVE,
    ),
    ("agent-sim live --replay out/run-heat-1d", LIVE),
    ("agent-sim live heat-1d --link qemu=4", Needs("a person")),
    (
        "agent-sim run heat-1d --link qemu=4 --live",
        OnBoard("agent-sim run heat-1d --link qemu=2 --steps 4 --live --no-open --image IMAGE"),
    ),
    ("cargo run --release -p agent-sim -- live heat-2d", LIVE),
    ("cargo xtask web", Stage("page without a server")),
    // docs/scale-zenoh.md
    (
        "cargo build --release -p agent-sim --features zenoh",
        NETWORK,
    ),
    (
        "agent-sim agents heat-2d --agents 16 --zenoh lab/plate/room-1 --zenoh-connect tcp/10.0.0.7:7447",
        NETWORK,
    ),
    (
        "agent-sim agents --link serial=/dev/ttyACM0 --link qemu=2 --zenoh lab/plate/room-2 \
         --zenoh-connect tcp/10.0.0.7:7447",
        NETWORK,
    ),
    (
        "agent-sim run heat-2d --agents 19 --link 'zenoh=lab/plate/*' --zenoh-listen tcp/10.0.0.7:7447",
        NETWORK,
    ),
    (
        "agent-sim run heat-2d --link 'zenoh=lab/plate/*' --zenoh-config run.json5",
        NETWORK,
    ),
    (
        "cargo bench -p agent-sim --features zenoh --bench zenoh",
        Needs("ten minutes, and compiles Zenoh with full optimisation"),
    ),
    (
        "cargo bench -p agent-sim --features zenoh --bench zenoh -- --agents 1000000",
        Needs("17 GB of memory, and compiles Zenoh with full optimisation"),
    ),
    (
        "cargo bench -p node-link --features zenoh --bench network",
        Needs("Zenoh compiled with full optimisation"),
    ),
    (
        "cargo bench -p agent-sim --bench pde_step_time",
        Needs("a quiet machine to be of use"),
    ),
];

/// What this machine can run.
pub struct Here {
    /// The emulated board's image, the example in C, and the emulator are there.
    pub boards: bool,
    /// A Vulkan driver is.
    pub gpu: bool,
}

impl Here {
    /// What is there already; nothing is built or installed.
    pub fn found() -> Self {
        Self {
            boards: image().is_file(),
            gpu: setup::has_vulkan(),
        }
    }
}

/// Runs all that this machine can. An error names every one that failed.
pub fn run(here: &Here) -> Result<()> {
    let folder = target().join("smoke");
    // Left by the last run, and in this one's way.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut failed = Vec::new();
    for (documented, smoke) in COMMANDS {
        let command = match smoke {
            With(more) => format!("{} {more}", plain(documented)),
            As(command) => plain(command),
            OnBoard(command) if here.boards => plain(command),
            OnGpu(command) if here.gpu => plain(command),
            OnBoard(_) | OnGpu(_) => {
                println!("\n== {documented}\n   is not run: this machine cannot");
                continue;
            }
            Stage(stage) => {
                println!("\n== {documented}\n   is run by: {stage}");
                continue;
            }
            Needs(what) => {
                println!("\n== {documented}\n   is not run: it needs {what}");
                continue;
            }
        };
        println!("\n== {documented}\n   as {command}");
        let start = Instant::now();
        if let Err(error) = perform(&command, &folder) {
            println!("{error:#}");
            failed.push(format!("{command}: {error:#}"));
        }
        println!("   {:.1} s", start.elapsed().as_secs_f64());
    }
    ensure!(
        failed.is_empty(),
        "{} documented commands do not work:\n{}",
        failed.len(),
        failed.join("\n")
    );
    Ok(())
}

/// A command with its program's name first, where cargo would build that program.
fn plain(command: &str) -> String {
    match command.strip_prefix("cargo run --release") {
        None => command.to_owned(),
        Some("") => "agent-sim".to_owned(),
        Some(rest) => {
            let rest = rest.trim_start().trim_start_matches("-p ");
            // "trainer --features gpu -- train …": tests build it with that feature.
            let (package, arguments) = rest.split_once(" -- ").unwrap_or((rest, ""));
            let program = package.split(' ').next().unwrap_or(package);
            format!("{program} {arguments}")
        }
    }
}

/// The emulated board's image.
fn image() -> PathBuf {
    let images = target_folder().join("images");
    images.join(Image::of(Board::An386).file_name())
}

/// Runs a command in `folder`, or where cargo must be: in the workspace's.
fn perform(command: &str, folder: &Path) -> Result<()> {
    let examples = root().join("examples");
    let command = command
        .replace("IMAGE", &image().to_string_lossy())
        .replace("EXAMPLES", &examples.to_string_lossy())
        .replace("FEATURES", &features());
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["cargo", "xtask", ..] => crate::perform(Cli::try_parse_from(&words[1..])?, Build::Tested),
        ["cargo", command, ref arguments @ ..] => succeed(checking_cargo(command).args(arguments)),
        [program @ ("agent-sim" | "trainer"), ref arguments @ ..] => {
            let mut command = Build::Tested.program(program, program)?;
            succeed_in(folder, command.args(arguments))
        }
        _ => bail!("no program of this workspace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands in a document's blocks of code, without comments and padding.
    fn documented(text: &str) -> Vec<String> {
        let blocks = text.split("```").skip(1).step_by(2);
        let lines = blocks.flat_map(str::lines);
        let commands = lines.map(|line| line.split('#').next().unwrap_or_default());
        let commands = commands.map(|c| c.split_whitespace().collect::<Vec<_>>().join(" "));
        let starts = ["cargo ", "agent-sim ", "trainer ", "POLICY_KEY="];
        commands
            .filter(|command| starts.iter().any(|start| command.starts_with(start)))
            .collect()
    }

    #[test]
    fn every_documented_command_is_run_by_ci_or_says_why_not() {
        let docs = fs::read_dir(root().join("docs")).unwrap();
        let docs = docs.map(|entry| entry.unwrap().path());
        let docs = docs.filter(|path| path.extension().is_some_and(|e| e == "md"));
        let mut commands = 0;
        for file in docs.chain([root().join("README.md")]) {
            for command in documented(&fs::read_to_string(&file).unwrap()) {
                commands += 1;
                assert!(
                    COMMANDS.iter().any(|(known, _)| *known == command),
                    "{} names `{command}`: say in xtask/src/smoke.rs how CI runs it",
                    file.display()
                );
            }
        }
        assert!(commands > 30, "{commands}");
    }

    #[test]
    fn commands_of_xtask_are_understood() {
        for (documented, smoke) in COMMANDS {
            let command = match smoke {
                With(more) => format!("{documented} {more}"),
                As(command) | OnBoard(command) | OnGpu(command) => (*command).to_owned(),
                Stage(_) | Needs(_) => continue,
            };
            if let Some(arguments) = command.strip_prefix("cargo xtask") {
                let words = ["xtask"].into_iter().chain(arguments.split_whitespace());
                assert!(Cli::try_parse_from(words).is_ok(), "{command}");
            }
        }
    }

    #[test]
    fn programs_are_found_in_what_cargo_would_run() {
        assert_eq!(plain("cargo run --release"), "agent-sim");
        assert_eq!(plain("cargo run --release -p a -- b c"), "a b c");
        assert_eq!(plain("cargo run --release -p a --features f -- b"), "a b");
        assert_eq!(plain("cargo xtask soak"), "cargo xtask soak");
    }
}
