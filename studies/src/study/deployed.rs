//! The policy as boards run it: int8 weights, and an emulated board in the loop.

use super::{Scope, Study};
use crate::cell::{Cell, Figure, Outcomes, Work};
use crate::findings::{Bar, Findings, Table, Verdict, share};
use crate::shelf::Shelf;
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_core::policy::Encoding;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::Snapshot;
use agent_sim::rig::{BUILT_IMAGES, Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use artifacts::policy_file::PolicyFile;
use node_link::Offer;
use problem::published::heat_1d;
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem, input};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// f32 against int8 weights, host against board.
pub struct Deployed;

/// How much more error int8 weights may cost.
const LIMIT: f64 = 1.2;

/// Generous: on a busy machine a board is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names another image than the one that `cargo xtask firmware build` made; `cargo xtask test` sets it.
const IMAGE: &str = "FIRMWARE_ELF";

/// The cell of the board.
const BOARD: &str = "heat-1d on boards";

fn name(problem: &Problem, weights: Encoding) -> String {
    let weights = artifacts::policy_file::name(weights);
    format!("{}, {weights}", problem.name)
}

impl Study for Deployed {
    fn name(&self) -> &'static str {
        "deployed"
    }

    fn title(&self) -> &'static str {
        "As deployed: int8 weights, and an emulated board"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let policy = scope.policy(problem)?;
            let int8 = Arc::new(policy.recoded(Encoding::Int8)?);
            for (weights, file) in [(Encoding::F32, policy), (Encoding::Int8, int8)] {
                let trial = SwarmWork::table(scope, Setting::of(problem), Controls::Policy(file))?;
                cells.push(Cell::new(name(problem, weights), trial));
            }
        }
        if let Some(board) = OnBoards::find(scope)? {
            cells.push(Cell::new(BOARD, board));
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![
                "The shipped policies and the same with their weights rounded to int8 \
                 (`trainer export --weights int8`; nothing is trained anew), on the published test \
                 episodes. Then one episode of `heat-1d` with agents on emulated Cortex-M4F boards \
                 that run the shipped firmware, against the same agents in the simulator's process: \
                 all bits of the field and of the agents' places, after every step."
                    .to_owned(),
            ],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "weights", "bytes"]);
        let mut rows = Vec::new();
        for problem in problem::published::measured() {
            let figure = |weights| -> anyhow::Result<Figure> {
                Ok(outcomes.of(&name(problem, weights))?.figure("headline"))
            };
            let (f32, int8) = (figure(Encoding::F32)?, figure(Encoding::Int8)?);
            let policy = scope.policy(problem)?;
            let small = policy.recoded(Encoding::Int8)?;
            let bytes = [policy.bytes().len(), small.bytes().len()];
            for ((weights, figure), bytes) in [("f32", f32), ("int8", int8)].into_iter().zip(bytes)
            {
                findings.csv_row(&[problem.name, weights, &bytes.to_string()], &figure);
            }
            let ratio = int8.mean / f32.mean;
            rows.push(vec![
                format!("`{}`", problem.name),
                f32.text(),
                int8.text(),
                share(ratio),
                bytes[0].to_string(),
                bytes[1].to_string(),
            ]);
            let what = format!("`{}`, int8 over f32", problem.name);
            findings.bars.push(Bar::at_most_share(what, ratio, LIMIT));
        }
        let head = ["", "f32", "int8", "of f32", "bytes, f32", "bytes, int8"];
        findings.tables.push(Table::new("Weights", &head, rows));
        findings.bars.push(board_bar(scope, outcomes)?);
        Ok(findings)
    }
}

fn board_bar(scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Bar> {
    let what = "`heat-1d`, boards against the host";
    let bar = "identical bits";
    let Some(board) = OnBoards::find(scope)? else {
        let why =
            "no emulator or no image; install qemu-system-arm and run `cargo xtask firmware build`";
        return Ok(Bar::holds(what, bar, "–", Verdict::LeftOut(why.to_owned())));
    };
    let outcome = outcomes.of(BOARD)?;
    let only = |name| outcome.figure(name).mean;
    if only("absent") > 0.0 {
        let why = format!("{} boards did not start", only("absent"));
        return Ok(Bar::holds(what, bar, "–", Verdict::LeftOut(why)));
    }
    let measured = format!(
        "{} of {} steps differ, {} boards",
        only("differing"),
        board.steps,
        board.boards
    );
    let verdict = match only("differing") == 0.0 {
        true => Verdict::Met,
        false => Verdict::Missed("missed: bits differ".to_owned()),
    };
    Ok(Bar::holds(what, bar, measured, verdict))
}

/// One episode of heat-1d with its first agents on emulated boards, against the same without.
struct OnBoards {
    policy: Arc<PolicyFile>,
    image: PathBuf,
    image_hash: String,
    boards: usize,
    steps: usize,
    seed: u64,
}

impl OnBoards {
    /// Where there is an image and an emulator.
    fn find(scope: &Scope) -> anyhow::Result<Option<Self>> {
        let image = std::env::var_os(IMAGE).map_or_else(
            || Path::new(BUILT_IMAGES).join("mps2-an386.elf"),
            PathBuf::from,
        );
        let path = std::env::var_os("PATH").unwrap_or_default();
        let emulator = std::env::split_paths(&path).any(|p| p.join("qemu-system-arm").is_file());
        let (true, Ok(bytes)) = (emulator, input::read(&image, input::IMAGE)) else {
            return Ok(None);
        };
        let digest = Sha256::digest(&bytes);
        Ok(Some(Self {
            policy: scope.policy(&heat_1d::PROBLEM)?,
            image,
            image_hash: digest.iter().map(|b| format!("{b:02x}")).collect(),
            boards: scope.pick(1, heat_1d::PROBLEM.agents),
            steps: scope.pick(10, heat_1d::PROBLEM.horizon),
            seed: scope.seed,
        }))
    }

    /// The bits of every state of the episode.
    fn bits(&self, rig: Option<&Rig>, episode: &Episode) -> anyhow::Result<Vec<Vec<u8>>> {
        let problem = &heat_1d::PROBLEM;
        let policy = self.policy.policy(problem)?;
        let experiment = Experiment {
            problem,
            controller: Controller::Policy(&policy),
            agents: problem.agents,
            steps: self.steps,
            faults: &[],
            seed: self.seed,
            plant: None,
        };
        let mut states = Vec::new();
        experiment.run_on(rig, episode, &mut |state: &Snapshot<'_>| {
            let mut digest = Sha256::new();
            digest.update(bytemuck::cast_slice::<f64, u8>(state.field));
            for place in state.positions {
                digest.update(bytemuck::bytes_of(place));
            }
            states.push(digest.finalize().to_vec());
        })?;
        Ok(states)
    }
}

impl Work for OnBoards {
    fn key(&self) -> serde_json::Value {
        json!({
            "problem": heat_1d::PROBLEM.name,
            "policy": self.policy.hash(),
            "image": self.image_hash,
            "boards": self.boards,
            "steps": self.steps,
            "seed": self.seed,
        })
    }

    fn pieces(&self) -> usize {
        1
    }

    fn cost(&self) -> u64 {
        // An emulated board needs about a hundredth of a second a step.
        (self.steps * self.boards) as u64 * 10_000_000
    }

    fn figures(&self) -> Vec<String> {
        ["absent", "differing"].map(str::to_owned).to_vec()
    }

    fn run(&self, _: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let problem = &heat_1d::PROBLEM;
        let policy = self.policy.policy(problem)?;
        let setup = Setup {
            images: Images::File(self.image.clone()),
            flash: None,
            rooms: Rooms::default(),
            link_key: None,
            payload: Some(Payload::new(Offer::unsigned(self.policy.bytes()), &policy)),
            pace: Pace::lock_step(PATIENCE),
            bus: None,
            log: false,
            seed: self.seed,
        };
        let boards: Boards = format!("qemu={}", self.boards).parse()?;
        let (rig, absent) = Rig::start(&[boards], &setup, &|| ());
        if !absent.is_empty() {
            return Ok(Some(vec![absent.len() as f64, 0.0]));
        }
        let episode = EpisodeSet::Table.episode(problem, self.seed, 0)?;
        let (there, here) = (self.bits(Some(&rig), &episode)?, self.bits(None, &episode)?);
        let differing = there.iter().zip(&here).filter(|(a, b)| a != b).count();
        Ok(Some(vec![0.0, differing as f64]))
    }
}
