//! `agent-sim nodes` and `agent-sim flash`: boards by themselves.

use super::print;
use super::rig_args::{RigArgs, Start};
use crate::rig::{Boards, Images, Pace, Payload, Rig, cause};
use crate::table::table;
use agent_core::agent::Mode;
use agent_core::message::{PolicyId, SlotState};
use agent_core::policy::Policy;
use anyhow::bail;
use artifacts::output::tell;
use artifacts::policy_file::PolicyFile;
use clap::Args;
use node_link::{NodeConduct, NodeStatus, SessionError};
use place::conduct::Timing;
use place::neighbours::hearing::Heard;
use place::sight::Doubts;
use std::path::PathBuf;

#[derive(Args)]
pub struct NodesArgs {
    #[command(flatten)]
    rig: RigArgs,
}

#[derive(Args)]
pub struct FlashArgs {
    /// The policy
    policy: PathBuf,
    #[command(flatten)]
    rig: RigArgs,
}

/// Says how boards are.
pub fn nodes(args: &NodesArgs) -> anyhow::Result<()> {
    let rig = start(&args.rig, None)?;
    print(&table(&all_rows(&rig)))
}

/// Gives boards a policy.
pub fn flash(args: &FlashArgs) -> anyhow::Result<()> {
    let file = PolicyFile::read(&args.policy)?;
    // For whatever problem it is; the nodes check the rest.
    let policy = Policy::parse(file.bytes())?;
    let payload = args.rig.payload(&file, &policy)?;
    let id = payload.offer.id;
    let rig = start(&args.rig, Some(payload))?;
    let statuses = rig.statuses();
    print(&format!(
        "{}: {} bytes, SHA-256 {id}, problem {}\n{}",
        file.origin(),
        policy.length(),
        policy.header().problem,
        table(&rows(&rig, &statuses))
    ))?;
    // Read back, not taken from what was said while it was written.
    let has_it = |status: &Option<NodeStatus>| {
        status
            .as_ref()
            .is_some_and(|status| status.runs() == Some(id))
    };
    let without = statuses.iter().filter(|status| !has_it(status)).count();
    match without {
        0 => Ok(()),
        _ => bail!("{without} of {} boards do not run the policy", rig.len()),
    }
}

/// The boards named, and what they are given.
pub(super) fn start(args: &RigArgs, payload: Option<Payload>) -> anyhow::Result<Rig> {
    let boards = args.boards()?;
    if boards.is_empty() {
        bail!("no boards are named; give --link serial=/dev/ttyACM0, --link qemu=1 or the like");
    }
    if args.is_volatile() && boards.iter().all(|b| matches!(b, Boards::Qemu { .. })) {
        tell(
            "note: emulated boards forget everything at the end; --flash-dir DIR keeps their flash",
        );
    }
    let start = Start {
        images: Images::built(),
        payload,
        pace: Pace::lock_step(args.patience()?),
        seed: 0,
        agents: None,
        // Those that stand by themselves; others never look.
        talk: true,
    };
    args.start(&boards, start)
}

/// Tells each board that answers something about its place and shows what it says to that: how many have not
/// done it.
pub(super) fn tell_all(
    rig: &Rig,
    tell: impl Fn(usize) -> anyhow::Result<Result<NodeConduct, SessionError>>,
    is_done: impl Fn(&NodeConduct) -> bool,
) -> anyhow::Result<usize> {
    let mut rows = vec![["node", "at its place"].map(String::from).to_vec()];
    let mut undone = 0;
    for (index, status) in rig.statuses().iter().enumerate() {
        let said = status.as_ref().map(|_| tell(index)).transpose()?;
        undone += usize::from(!matches!(&said, Some(Ok(conduct)) if is_done(conduct)));
        let words = said.map_or("no answer".to_owned(), |said| in_words(&said));
        rows.push(vec![rig.node(index).name.clone(), words]);
    }
    print(&table(&rows))?;
    Ok(undone)
}

/// How boards say they are.
pub fn status_rows(rig: &Rig) -> Vec<Vec<String>> {
    rows(rig, &rig.statuses())
}

/// The same, and how they get on at their places.
fn all_rows(rig: &Rig) -> Vec<Vec<String>> {
    let statuses = rig.statuses();
    let mut rows = rows(rig, &statuses);
    if let Some((head, rows)) = rows.split_first_mut() {
        head.push("at its place".to_owned());
        for ((row, status), conduct) in rows.iter_mut().zip(&statuses).zip(rig.conducts()) {
            if status.is_some() {
                row.push(in_words(&conduct));
            }
        }
    }
    rows
}

/// How boards get on at their places, figures in columns.
pub fn conduct_rows(rig: &Rig) -> Vec<Vec<String>> {
    let head = [
        "node",
        "at",
        "mode",
        "steps",
        "period ms",
        "late by ms at most",
        "longest ms",
        "left out",
        "blind",
        "missing",
        "out of range",
        "implausible",
        "frozen",
        "neighbours silent",
        "heard",
        "heard in vain",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (index, conduct) in rig.conducts().into_iter().enumerate() {
        let mut row = vec![rig.node(index).name.clone()];
        match conduct {
            Ok(NodeConduct::Alone(alone)) => {
                let milli = |us: u32| format!("{:.2}", f64::from(us) / 1e3);
                let (timing, doubts) = (alone.timing, alone.doubts);
                row.extend([
                    in_position(alone.position),
                    mode(alone.mode).to_owned(),
                    timing.steps.to_string(),
                    milli(timing.period_us),
                    milli(timing.jitter_us),
                    milli(timing.longest_us),
                    timing.overruns.to_string(),
                    alone.blind.count_ones().to_string(),
                    doubts.missing.to_string(),
                    doubts.out_of_range.to_string(),
                    doubts.implausible.to_string(),
                    doubts.frozen.to_string(),
                ]);
                row.extend(match alone.heard {
                    None => [(); 3].map(|()| "–".to_owned()),
                    Some(heard) => {
                        let in_vain = u64::from(heard.damaged)
                            + u64::from(heard.elsewhere)
                            + u64::from(heard.again)
                            + u64::from(heard.late)
                            + u64::from(heard.implausible)
                            + u64::from(heard.rivals);
                        let silent = heard.deaf.count_ones();
                        [
                            silent.to_string(),
                            heard.taken.to_string(),
                            in_vain.to_string(),
                        ]
                    }
                });
            }
            Ok(other) => row.extend(["–".to_owned(), in_words(&Ok(other))]),
            Err(_) => row.extend(["–".to_owned(), "no answer".to_owned()]),
        }
        rows.push(row);
    }
    rows
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Waiting => "waiting",
        Mode::Active => "active",
        Mode::Holding => "holding",
        Mode::FailedSafe => "FAILED SAFE",
    }
}

/// Where a node is: on a line, or in the plane.
fn in_position([x, y]: [f32; 2]) -> String {
    match y {
        0.0 => x.to_string(),
        _ => format!("({x}, {y})"),
    }
}

/// How a node gets on at its place.
pub(super) fn in_words(conduct: &Result<NodeConduct, SessionError>) -> String {
    let alone = match conduct {
        Ok(NodeConduct::Fed) => return "fed by its host".to_owned(),
        Ok(NodeConduct::Refused(reason)) => return format!("REFUSED: {reason}"),
        Err(error) => return error.to_string(),
        Ok(NodeConduct::Alone(alone)) => alone,
    };
    let Timing {
        period_us,
        steps,
        jitter_us,
        longest_us,
        overruns,
        ..
    } = alone.timing;
    let Doubts {
        missing,
        out_of_range,
        implausible,
        frozen,
    } = alone.doubts;
    let at = in_position(alone.position);
    let told = if alone.told { " set over the link" } else { "" };
    let heard = alone.heard.map_or(String::new(), |heard| {
        let Heard {
            deaf,
            taken,
            damaged,
            elsewhere,
            again,
            late,
            implausible,
            rivals,
            introduced,
        } = heard;
        format!(
            ", {} neighbours silent now, heard {taken}, introduced {introduced}, damaged {damaged}, \
             elsewhere {elsewhere}, again {again}, late {late}, implausible {implausible}, of rivals \
             {rivals}",
            deaf.count_ones()
        )
    });
    format!(
        "node {} at {at}, {}, force {}, target {}{told}, {steps} steps of {period_us} µs up to {jitter_us} late and \
         {longest_us} long, {overruns} left out, {} blind now, readings missing {missing}, out of range \
         {out_of_range}, implausible {implausible}, frozen {frozen}{heard}",
        alone.node,
        mode(alone.mode),
        alone.force,
        alone.target,
        alone.blind.count_ones(),
    )
}

fn rows(rig: &Rig, statuses: &[Option<NodeStatus>]) -> Vec<Vec<String>> {
    let head = [
        "node",
        "board",
        "firmware",
        "obeys",
        "runs policies of",
        "fleet",
        "newest",
        "runs",
        "slot 0",
        "slot 1",
        "last start",
        "starts",
        "watchdog bites",
        "panics",
        "faults",
        "steps",
        "rejected frames",
        "stack",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (index, status) in statuses.iter().enumerate() {
        let mut row = vec![rig.node(index).name.clone()];
        let Some(status) = status else {
            row.push("no answer".to_owned());
            rows.push(row);
            continue;
        };
        let guard = rig.node(index).guard;
        let obeys = match guard.link {
            true => "who has its key",
            false => "ANYBODY",
        };
        let signers = match guard.policies {
            true => "who signs them",
            false => "ANYBODY",
        };
        let slot = |k: usize| {
            let slot = &status.slots[k];
            format!(
                "{}{}",
                slot.policy.map_or(String::new(), |id| hash(id) + " "),
                state(slot.state)
            )
        };
        row.extend([
            status.board.clone(),
            status.firmware.clone(),
            obeys.to_owned(),
            signers.to_owned(),
            status.fleet.clone(),
            status.counter.to_string(),
            status
                .active
                .map_or("nothing".to_owned(), |slot| format!("slot {slot}")),
            slot(0),
            slot(1),
            match status.last_words.is_empty() {
                true => cause(status.history.reset).to_owned(),
                false => format!("{} ({})", cause(status.history.reset), status.last_words),
            },
            status.history.boots.to_string(),
            status.history.watchdog_bites.to_string(),
            status.history.panics.to_string(),
            status.history.faults.to_string(),
            status.counters.steps.to_string(),
            status.counters.rejected.to_string(),
            format!(
                "{} of {}",
                status.counters.stack_used, status.counters.stack_size
            ),
        ]);
        rows.push(row);
    }
    rows
}

fn hash(id: PolicyId) -> String {
    format!("{id:.16}")
}

fn state(state: SlotState) -> &'static str {
    match state {
        SlotState::Empty => "empty",
        SlotState::Refused => "refused",
        SlotState::OnTrial => "on trial",
        SlotState::Proven => "proven",
        SlotState::GivenUp => "given up",
    }
}
