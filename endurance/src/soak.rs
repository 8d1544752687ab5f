//! A link put through a line that loses, damages, repeats and reorders frames, for as long as asked.
//!
//! Whatever the line does, an action that is taken is the one that the agent on the host takes, bit
//! for bit; the conversation never comes to a stand; and memory does not grow.

use std::{
    fs,
    time::{Duration, Instant},
};

use agent_core::{
    agent::{Action, AgentState},
    message::{Command, Counters, Observation, Report},
};
use anyhow::{Context, Result, bail};
use node_link::{
    LinkCounters, Session,
    unreliable::{Befallen, Faults, Unreliable},
};

use crate::observations::{Blob, Scene};

/// A conversation that makes no progress for this long is at a stand. With one frame in fifty lost
/// each way, the twenty repetitions for which there is time all fail once in 10^28.
const STAND: Duration = Duration::from_secs(10);

/// Between two repetitions of a question.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Different observations; a prime, so that they fall on all others of the run's rhythms.
const SCENES: u32 = 499;

/// The first part of the run, in which buffers grow to their size.
const WARM_UP: f64 = 0.1;

/// What a run found.
#[derive(Debug)]
pub struct Soaked {
    /// Observations answered by an action.
    pub actions: u64,
    /// Actions of which a bit differed from the host's.
    pub wrong: u64,
    /// What the line did.
    pub befallen: Befallen,
    /// What the host noticed of it,
    pub host: LinkCounters,
    /// and the node.
    pub node: Counters,
    /// How long it took.
    pub elapsed: Duration,
    /// The longest time from a question to its answer.
    pub longest: Duration,
    /// Bytes of memory of this process after the warm-up and at the end, where that can be told.
    pub memory: Option<[u64; 2]>,
}

/// Puts `frames` frames, both directions together, through the line of a session that is in step.
/// `progress` is told how many have gone.
pub fn soak(
    session: Session,
    blob: &Blob,
    frames: u64,
    faults: Faults,
    progress: &mut dyn FnMut(u64),
) -> Result<Soaked> {
    let mut tally = None;
    let mut session = session.through(|line| {
        let line = Unreliable::new(line, faults, 1);
        tally = Some(line.tally());
        Box::new(line)
    });
    let tally = tally.context("the line is wrapped")?;
    let start = Instant::now();
    let policy = blob.policy()?;
    let hello = session.upload(&blob.offer(), &mut |_| ())?;
    if hello.policy != Some(blob.offer().id) {
        bail!("the node runs another policy than it was given: {hello:?}");
    }
    let scenes: Vec<Scene> = (0..SCENES)
        .map(|step| Scene::new(&policy, step, SCENES))
        .collect();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut host = AgentState::new();
    let period_us = u64::from(policy.header().timing.period_us);
    let (mut actions, mut wrong) = (0, 0);
    let mut warm = None;
    let mut pace = Pace::default();
    for (step, scene) in scenes.iter().cycle().enumerate() {
        let gone = tally.befallen().frames;
        if gone >= frames {
            break;
        }
        progress(gone);
        if warm.is_none() && gone as f64 > WARM_UP * frames as f64 {
            warm = resident_bytes();
        }
        let observation = Observation {
            now_us: step as u64 * period_us,
            ..scene.observation()
        };
        let expected = host.step(&policy, &mut workspace, &observation);
        let action = pace
            .ask(&mut session, &observation)
            .with_context(|| format!("after {gone} frames"))?;
        actions += 1;
        wrong += u64::from(bits(&action) != bits(&expected));
    }
    let elapsed = start.elapsed();
    let memory = warm.zip(resident_bytes()).map(<[u64; 2]>::from);
    let befallen = tally.befallen();
    let host = *session.counters();
    let node = session.status(STAND)?.counters;
    Ok(Soaked {
        actions,
        wrong,
        befallen,
        host,
        node,
        elapsed,
        longest: pace.longest,
        memory,
    })
}

/// How long answers take on this line, so that a lost one is missed soon: as TCP reckons it, from
/// the smoothed round trip and its deviation (RFC 6298).
struct Pace {
    round_trip: Duration,
    deviation: Duration,
    /// The longest time from a question to its answer.
    longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            round_trip: Duration::from_millis(1),
            deviation: Duration::from_millis(1),
            longest: Duration::ZERO,
        }
    }
}

impl Pace {
    /// Asks until an answer comes.
    fn ask(&mut self, session: &mut Session, observation: &Observation) -> Result<Action> {
        let number = session.send(&Command::Observe(*observation))?;
        let sent = Instant::now();
        let mut wait = (self.round_trip + 4 * self.deviation).max(SHORTEST_WAIT);
        let mut missed = sent + wait;
        let mut repeated = false;
        loop {
            match session.receive(missed)? {
                Some((answered, Report::Action { action, .. })) if answered == number => {
                    let took = sent.elapsed();
                    self.longest = self.longest.max(took);
                    // It cannot be told which of several it answers.
                    if !repeated {
                        let off = took.abs_diff(self.round_trip);
                        self.deviation = (3 * self.deviation + off) / 4;
                        self.round_trip = (7 * self.round_trip + took) / 8;
                    }
                    return Ok(action);
                }
                Some((answered, report)) if answered == number => {
                    bail!("an observation was answered by {report:?}")
                }
                // The answer to another question.
                Some(_) => {}
                None if sent.elapsed() > STAND => bail!("no answer for {STAND:?}: a dead-lock"),
                None => {
                    session.resend()?;
                    repeated = true;
                    // Longer each time: a node that is slow must not be buried.
                    wait = (2 * wait).min(LONGEST_WAIT);
                    missed = Instant::now() + wait;
                }
            }
        }
    }
}

/// An action as what must be equal: every bit.
pub(crate) fn bits(action: &Action) -> ([u32; 3], u8) {
    let [x, y] = action.velocity;
    ([action.force, x, y].map(f32::to_bits), action.mode as u8)
}

/// Memory that this process has in use.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
