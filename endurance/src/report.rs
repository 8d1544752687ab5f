//! Long runs over a line, and what they found.

use anyhow::{Result, bail};
use artifacts::say;
use clap::{Args, value_parser};
use endurance::{
    host_node::HostNode,
    observations::Blob,
    soak::{Soaked, soak},
    torture::{DEADLINE, KINDS, Tortured, torture},
};
use indicatif::{ProgressBar, ProgressStyle};
use node_link::{BoardOptions, EmulatedBoard, Session, device_log::Decoder, unreliable::Faults};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::policies;

/// Of each fault, in each direction.
const PROBABILITY: f64 = 0.01;

/// More than a growing buffer here or there, less than a byte a frame over a million of them.
const GROWTH: u64 = 1 << 20;

/// Lines of a node's log that tell what became of it.
const LAST_LINES: usize = 10;

/// Most frames, beyond what anybody would wait for: times of answers are kept.
const MOST_FRAMES: u64 = 1_000_000_000;

/// How long, and with what.
#[derive(Args)]
pub struct Options {
    /// How many frames to send.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=MOST_FRAMES))]
    frames: u64,
    /// The policy that the node runs. Default: policies/heat-1d.policy.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl Options {
    fn blob(&self) -> Result<Blob> {
        let shipped = || policies().join("heat-1d.policy");
        let blob = Blob::read(&self.policy.clone().unwrap_or_else(shipped))?;
        blob.policy()?; // before anything is started
        Ok(blob)
    }

    fn bar(&self) -> ProgressBar {
        let style = "{bar:40} {human_pos}/{human_len} frames, {per_sec}, {eta} left";
        let style = ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar());
        ProgressBar::new(self.frames).with_style(style)
    }
}

/// Frames over a bad line, to the node's code here or, with an image, to an emulated board.
pub fn soak_link(options: &Options, image: Option<&Path>) -> Result<()> {
    let blob = options.blob()?;
    let bar = options.bar();
    let mut progress = |gone| bar.set_position(gone);
    let faults = Faults::each(PROBABILITY);
    let soaked = match image {
        None => {
            let (_node, line) = HostNode::start()?;
            let mut session = Session::new(line);
            session.hello(Duration::from_secs(5))?;
            soak(session, &blob, options.frames, faults, &mut progress)?
        }
        Some(elf) => {
            let (mut board, session) = EmulatedBoard::start(&BoardOptions::new(elf))?;
            let soaked = soak(session, &blob, options.frames, faults, &mut progress);
            explained(soaked, &mut board)?
        }
    };
    bar.finish_and_clear();
    tell_soaked(&soaked)?;
    if soaked.wrong > 0 {
        bail!("{} of {} actions are wrong", soaked.wrong, soaked.actions);
    }
    match soaked.memory {
        Some([warm, end]) if end > warm + GROWTH => {
            bail!("memory grew from {warm} to {end} bytes: a leak")
        }
        _ => Ok(()),
    }
}

/// Adds what the board has to say to what went wrong with it.
fn explained<T>(outcome: Result<T>, board: &mut EmulatedBoard) -> Result<T> {
    outcome.or_else(|error| {
        let lines = Decoder::new(&board.options().image)?.lines(&board.log()?);
        for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
            say!("  {line}")?;
        }
        Err(match board.exit_message() {
            Some(message) => error.context(format!("the emulator ended ({message})")),
            None => error,
        })
    })
}

fn tell_soaked(soaked: &Soaked) -> Result<()> {
    let Soaked {
        actions,
        wrong,
        befallen,
        host,
        node,
        elapsed,
        longest,
        memory,
    } = soaked;
    let seconds = elapsed.as_secs_f64();
    say!(
        "{} frames in {seconds:.1} s: {:.0} a second\n\
         the line: {} dropped, {} corrupted, {} doubled, {} reordered\n\
         the host: {} commands, {} sent again; {} reports, {} late or twice, {} damaged\n\
         the node: {} commands, {} repeated, {} stale, {} damaged; {} steps\n\
         {actions} actions, {wrong} wrong; longest wait for one {longest:.1?}",
        befallen.frames,
        befallen.frames as f64 / seconds,
        befallen.dropped,
        befallen.corrupted,
        befallen.duplicated,
        befallen.reordered,
        host.sent,
        host.resent,
        host.received,
        host.late,
        host.damaged,
        node.commands,
        node.repeated,
        node.stale,
        node.rejected,
        node.steps,
    )?;
    if let Some([warm, end]) = memory {
        say!(
            "memory: {} KiB after the warm-up, {} KiB at the end",
            warm / 1024,
            end / 1024
        )?;
    }
    Ok(())
}

/// Malformed frames into an emulated board.
pub fn torture_node(options: &Options, elf: &Path) -> Result<()> {
    let blob = options.blob()?;
    let (mut board, mut session) = EmulatedBoard::start(&BoardOptions::new(elf))?;
    let bar = options.bar();
    let mut progress = |gone| bar.set_position(gone);
    let tortured = torture(&mut session, &blob, options.frames, &mut progress);
    bar.finish_and_clear();
    let tortured = explained(tortured, &mut board)?;
    tell_tortured(&tortured)
}

fn tell_tortured(tortured: &Tortured) -> Result<()> {
    let Tortured {
        sent,
        answers,
        actions,
        restarts,
        node,
        elapsed,
    } = tortured;
    let frames: u64 = sent.iter().sum();
    let seconds = elapsed.as_secs_f64();
    say!(
        "{frames} frames in {seconds:.1} s: {:.0} a second",
        frames as f64 / seconds
    )?;
    for (kind, count) in KINDS.iter().zip(sent) {
        say!("  {count:>9} {kind:?}")?;
    }
    let quantile = |share: f64| {
        let at = (share * (answers.len() - 1) as f64) as usize;
        answers[at].as_secs_f64() * 1e3
    };
    say!(
        "{} greetings answered, each within {DEADLINE:?}: median {:.1} ms, 99 % {:.1} ms, \
         longest {:.1} ms",
        answers.len(),
        quantile(0.5),
        quantile(0.99),
        quantile(1.0),
    )?;
    say!(
        "{actions} actions, all the host's; {restarts} restarts, all asked for; the node: {:?}",
        node.counters
    )?;
    Ok(())
}
