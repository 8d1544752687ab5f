//! Instructions per control step, counted by the emulator's clock.

use agent_core::{
    agent::Mode,
    message::{Command, Report},
    policy::Encoding,
};
use anyhow::{Context, Result, bail};
use artifacts::say;
use clap::Args;
use node_link::{
    BoardOptions, Clock, EmulatedBoard,
    keys::{PolicyKey, parse_link_key},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use trust::Manifest;

use crate::{by_itself, peer, policies};
use endurance::observations::{Blob, Scene};

/// Each instruction takes 2^10 ns of emulated time, so that the node's clock, which ticks every
/// microsecond, resolves single ones.
pub const SHIFT: u8 = 10;
pub const INSTRUCTIONS_PER_TICK: f64 = 1000.0 / (1 << SHIFT) as f64;

pub const STEPS: u32 = 64;

/// Longest wait for one step: an emulated core that counts its instructions is slow.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The cycle model. On a Cortex-M4F arithmetic on floats takes 1 cycle and a load 2, a taken branch
/// 2 to 4 (Technical Reference Manual, sections 3.3 and 7.2); code and weights come from flash
/// behind an accelerator without wait states. 2 is above what that mix gives.
const CYCLES_PER_INSTRUCTION: f64 = 2.0;
const CLOCK_HZ: f64 = 168e6;

/// What to count, and beside what.
#[derive(Args)]
pub struct Options {
    /// The node's image.
    #[arg(long, value_name = "ELF")]
    image: PathBuf,
    /// The image that runs heat-1d's network in TensorFlow Lite Micro.
    #[arg(long, value_name = "ELF")]
    peer: Option<PathBuf>,
    /// The node's image with keys: what a sealed frame costs is counted too.
    #[arg(long, value_name = "ELF", requires = "keys")]
    keyed: Option<PathBuf>,
    /// The image that senses and acts by itself: what its step takes is counted too.
    #[arg(long, value_name = "ELF")]
    standalone: Option<PathBuf>,
    /// The folder of those keys.
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// A policy blob; can be given several times. Default: all of policies/.
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
}

/// Measures the policies given, or all that are shipped.
pub fn run(options: &Options) -> Result<()> {
    let policies = match &options.policy[..] {
        [] => shipped()?,
        given => given.to_vec(),
    };
    say!(
        "{:<22} {:<7} {:>8} {:>8} {:>13} {:>10} {:>16}",
        "policy",
        "weights",
        "bytes",
        "MACs",
        "instructions",
        "instr/MAC",
        "rate at 168 MHz"
    )?;
    let mut comparable = None;
    let mut frames = Vec::new();
    let mut alone = Vec::new();
    for path in policies {
        let as_it_is = Blob::read(&path)?;
        let quantised = match as_it_is.policy()?.header().network.encoding {
            Encoding::F32 => as_it_is.recoded(Encoding::Int8),
            Encoding::Int8 => None,
        };
        for blob in [Some(as_it_is), quantised].into_iter().flatten() {
            let policy = blob.policy()?;
            let macs = policy.macs();
            let Measured {
                step: instructions,
                frames: plain,
            } = measure(&options.image, &blob, None)?;
            if let (Some(image), Some(keys)) = (&options.keyed, &options.keys)
                && policy.header().network.encoding == Encoding::F32
            {
                let sealed = measure(image, &blob, Some(keys))?.frames;
                frames.push((path.clone(), instructions, plain, sealed));
            }
            if let Some(image) = &options.standalone
                && policy.header().network.encoding == Encoding::F32
                && let Some(by_itself) = by_itself::measure(image, &blob)?
            {
                alone.push((path.clone(), instructions + plain, by_itself));
            }
            let encoding = policy.header().network.encoding;
            say!(
                "{:<22} {:<7} {:>8} {macs:>8} {instructions:>13.0} {:>10.2} {:>13.0} Hz",
                path.file_stem()
                    .unwrap_or(path.as_os_str())
                    .to_string_lossy(),
                format!("{encoding:?}").to_lowercase(),
                blob.bytes().len(),
                instructions / macs as f64,
                CLOCK_HZ / (CYCLES_PER_INSTRUCTION * instructions),
            )?;
            if policy.header().problem.as_str() == peer::PROBLEM && encoding == Encoding::F32 {
                comparable.get_or_insert((path.clone(), instructions));
            }
        }
    }
    say!(
        "\nWhole control step (observe, network, limits), median of {STEPS}, on the emulated \
         Cortex-M4F with `-icount shift={SHIFT}`.\nRate: {CYCLES_PER_INSTRUCTION} cycles per \
         instruction, no flash wait states; a model, not a measurement on silicon."
    )?;
    if !frames.is_empty() {
        tell_frames(&frames)?;
    }
    if !alone.is_empty() {
        by_itself::tell(&alone)?;
    }
    match (&options.peer, comparable) {
        (Some(peer), Some((policy, ours))) => compare(peer, &policy, ours),
        _ => Ok(()),
    }
}

/// Measures the policy's network in a library that others use.
fn compare(elf: &Path, policy: &Path, ours: f64) -> Result<()> {
    let theirs = peer::instructions(elf, policy, SHIFT)?;
    say!(
        "\n{} network, f32, in {}: {theirs:.0} instructions, our whole control step {ours:.0}: \
         {:.1}x fewer",
        peer::PROBLEM,
        peer::NAME,
        theirs / ours
    )?;
    Ok(())
}

/// What the frames of an observation and its answer take, with a checksum and with a tag.
fn tell_frames(frames: &[(PathBuf, f64, f64, f64)]) -> Result<()> {
    say!(
        "\n{:<22} {:>13} {:>13} {:>13} {:>13} {:>15}",
        "frames of a step",
        "instructions",
        "with CRC-32",
        "sealed",
        "difference",
        "share of a step"
    )?;
    for (path, step, plain, sealed) in frames {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        say!(
            "{:<22} {step:>13.0} {plain:>13.0} {sealed:>13.0} {:>13.0} {:>13.1} %",
            name.to_string_lossy(),
            sealed - plain,
            100.0 * (sealed - plain) / step,
        )?;
    }
    say!(
        "\nTaking an observation's frame apart and making its answer's, beside the step itself; a sealed \
         frame ends in a tag where another has a checksum."
    )?;
    Ok(())
}

/// Medians of what a control step takes, and what its frames do beside.
struct Measured {
    step: f64,
    frames: f64,
}

/// Counts the instructions of steps, sealed where keys are given.
fn measure(elf: &Path, blob: &Blob, keys: Option<&PathBuf>) -> Result<Measured> {
    let policy = blob.policy()?;
    let (_board, node) = EmulatedBoard::start(&BoardOptions {
        clock: Clock::Instructions { shift: SHIFT },
        ..BoardOptions::new(elf)
    })?;
    let (mut node, offer) = match keys {
        None => (node, blob.offer()),
        Some(folder) => {
            let mut node = node.with_key(parse_link_key(&fs::read_to_string(
                folder.join("link.key"),
            )?)?);
            node.hello(PATIENCE)?;
            let fleet = node.status(PATIENCE)?.fleet;
            let manifest = Manifest {
                fleet: &fleet,
                counter: 1,
                ..Manifest::unsigned(blob.bytes(), policy.header().problem.as_str())
            };
            let key = PolicyKey::parse(&fs::read_to_string(folder.join("policy.key"))?)?;
            (node, key.sign(&manifest)?.offer(blob.bytes())?)
        }
    };
    node.upload(&offer, &mut |_| ())?;
    let mut counts = Vec::new();
    let mut frames = Vec::new();
    for step in 0..STEPS {
        let scene = Scene::new(&policy, step, STEPS);
        match node.ask(&Command::Observe(scene.observation()), PATIENCE)? {
            Report::Action { action, ticks, .. } if action.mode == Mode::Active => {
                counts.push(f64::from(ticks) * INSTRUCTIONS_PER_TICK);
                let counters = node.status(PATIENCE)?.counters;
                frames.push(f64::from(counters.frame_ticks) * INSTRUCTIONS_PER_TICK);
            }
            Report::Action { .. } => {} // a step on a broken sensor ends early
            report => bail!("observation {step} was answered by {report:?}"),
        }
    }
    Ok(Measured {
        step: median(counts)?,
        frames: median(frames)?,
    })
}

/// That of counts of steps.
pub fn median(mut counts: Vec<f64>) -> Result<f64> {
    counts.sort_by(f64::total_cmp);
    let middle = counts.get(counts.len() / 2).copied();
    middle.context("no observation was acted on")
}

fn shipped() -> Result<Vec<PathBuf>> {
    let folder = policies();
    let mut policies: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "policy"))
        .collect();
    policies.sort();
    if policies.is_empty() {
        bail!(
            "no *.policy in {}: name one with --policy",
            folder.display()
        );
    }
    Ok(policies)
}
