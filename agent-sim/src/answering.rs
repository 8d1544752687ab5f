//! Agents of this process that are talked to as nodes are, in frames, many at a time.
//!
//! Each obeys the rules of a node's line: commands are numbered, one that comes twice is answered twice
//! and obeyed once, an old one is not heard, a greeting begins a new count. What a node keeps beyond its
//! agent they have not: no flash, so they run the policy that they were made with, and no key.

use crate::agents::Agents;
use agent_core::message::{
    Command, Counters, Guard, Hello, History, Observation, PolicyId, Report, ResetCause, Slot,
    SlotState, Status, UNASKED, decode_frame, encode_frame,
};
use agent_core::policy::Policy;
use agent_core::value::PACK;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Longest report of such an agent.
const REPORT: usize = 320;

/// Agents of one policy, each at the end of a line of its own.
pub struct Answering<'p> {
    host: Host<'p>,
    groups: Vec<Group>,
}

/// What all of them run.
#[derive(Clone, Copy)]
struct Host<'p> {
    policy: &'p Policy<'p>,
    id: PolicyId,
}

/// [`PACK`] of them, or the rest: as many as are stepped side by side, and worth waking a thread for.
struct Group {
    agents: Agents,
    lines: Vec<Line>,
}

/// What agents of a group answer.
#[derive(Default)]
struct Said {
    /// Whose, and how long it is.
    frames: Vec<(usize, usize)>,
    /// One after the other.
    bytes: Vec<u8>,
}

impl Said {
    fn push(&mut self, agent: usize, frame: &[u8]) {
        self.frames.push((agent, frame.len()));
        self.bytes.extend(frame);
    }
}

/// What an agent's line has carried.
#[derive(Default, Clone)]
struct Line {
    /// The number of the last command.
    last: Option<u32>,
    /// The frame that answered it.
    answer: Vec<u8>,
    counters: Counters,
}

/// Where a command stands among those before it.
enum Place {
    Next,
    Again,
    Stale,
}

impl Line {
    fn place(&mut self, number: u32, command: &Command<'_>) -> Place {
        if number == UNASKED {
            return Place::Stale;
        }
        let before = self.last.filter(|_| *command != Command::Hello);
        // Numbers may wrap; older is what lies in the half behind.
        match before.map(|before| number.wrapping_sub(before).cast_signed()) {
            Some(0) => Place::Again,
            Some(..0) => Place::Stale,
            _ => {
                self.last = Some(number);
                Place::Next
            }
        }
    }

    fn answer(&mut self, report: &Report<'_>) {
        let number = self.last.unwrap_or(UNASKED);
        self.answer.resize(REPORT, 0);
        let length = encode_frame(number, report, &mut self.answer).map_or(0, |frame| frame.len());
        self.answer.truncate(length);
    }
}

impl<'p> Answering<'p> {
    /// So many that wait for their first patch; `id` names the policy.
    pub fn new(policy: &'p Policy<'p>, id: PolicyId, agents: usize) -> Self {
        let groups = (0..agents).step_by(PACK).map(|first| {
            let count = PACK.min(agents - first);
            Group {
                agents: Agents::new(count),
                lines: vec![Line::default(); count],
            }
        });
        Self {
            host: Host { policy, id },
            groups: groups.collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.lines.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Takes what came for each of several agents, whole frames, and tells `say` what they answer. What
    /// is for none of them, or is no frame, is dropped.
    pub fn hear<'b>(
        &mut self,
        heard: impl IntoIterator<Item = (usize, &'b mut [u8])>,
        mut say: impl FnMut(usize, &[u8]),
    ) {
        let mut told: BTreeMap<usize, Vec<(usize, &mut [u8])>> = BTreeMap::new();
        for (agent, bytes) in heard {
            told.entry(agent / PACK)
                .or_default()
                .push((agent % PACK, bytes));
        }
        // Those that are told something, without a look at the others: most messages are for one agent, or
        // for all.
        let (mut groups, mut first) = (&mut self.groups[..], 0);
        let mut hearing = Vec::with_capacity(told.len());
        for (index, told) in told {
            let Some((group, rest)) = (groups.split_at_mut_checked(index - first))
                .and_then(|(_, from)| from.split_first_mut())
            else {
                break;
            };
            hearing.push((index, group, told));
            (groups, first) = (rest, index + 1);
        }
        let host = self.host;
        let hear = |(index, group, told): (usize, &mut Group, _)| (index, group.hear(host, told));
        let said: Vec<(usize, Said)> = match hearing.len() {
            // No thread has to be woken.
            0 | 1 => hearing.into_iter().map(hear).collect(),
            _ => hearing.into_par_iter().map(hear).collect(),
        };
        for (group, said) in said {
            let mut bytes = &said.bytes[..];
            for (agent, length) in said.frames {
                let (frame, rest) = bytes.split_at(length);
                say(group * PACK + agent, frame);
                bytes = rest;
            }
        }
    }
}

impl Group {
    /// The same for agents of the group, by their number in it.
    fn hear(&mut self, host: Host<'_>, told: Vec<(usize, &mut [u8])>) -> Said {
        let mut said = Said::default();
        let mut shown: Vec<(usize, Observation<'_>)> = Vec::new();
        for (agent, bytes) in told {
            for frame in bytes.split_mut(|byte| *byte == 0) {
                if agent >= self.lines.len() || frame.is_empty() {
                    continue;
                }
                // Agents are stepped side by side, each once.
                if shown.last().is_some_and(|(last, _)| *last >= agent) {
                    self.step(host, &mut shown, &mut said);
                }
                let line = &mut self.lines[agent];
                let Ok((number, command)) = decode_frame::<Command>(frame) else {
                    line.counters.rejected = line.counters.rejected.saturating_add(1);
                    continue;
                };
                line.counters.commands = line.counters.commands.saturating_add(1);
                match line.place(number, &command) {
                    Place::Next => {}
                    Place::Again => {
                        line.counters.repeated = line.counters.repeated.saturating_add(1);
                        said.push(agent, &line.answer);
                        continue;
                    }
                    Place::Stale => {
                        line.counters.stale = line.counters.stale.saturating_add(1);
                        continue;
                    }
                }
                match command {
                    Command::Observe(observation) => shown.push((agent, observation)),
                    other => {
                        self.obey(host, agent, &other);
                        said.push(agent, &self.lines[agent].answer);
                    }
                }
            }
        }
        self.step(host, &mut shown, &mut said);
        said
    }

    /// A control step of all that were shown something.
    fn step(&mut self, host: Host<'_>, shown: &mut Vec<(usize, Observation<'_>)>, said: &mut Said) {
        self.agents.step_some(host.policy, shown);
        for (agent, _) in shown.drain(..) {
            let action = self.agents.actions()[agent];
            let line = &mut self.lines[agent];
            line.counters.steps = line.counters.steps.saturating_add(1);
            line.answer(&Report::Action { action, ticks: 0 });
            said.push(agent, &line.answer);
        }
    }

    fn obey(&mut self, host: Host<'_>, agent: usize, command: &Command<'_>) {
        let hello = Report::Hello(Hello {
            policy: Some(host.id),
            reset: ResetCause::PowerOn,
            boots: 1,
            guard: Guard::default(),
        });
        let line = &mut self.lines[agent];
        match command {
            Command::Hello => line.answer(&hello),
            Command::Reset => {
                self.agents.reset(agent);
                line.answer(&hello);
            }
            Command::Status => {
                let counters = line.counters;
                line.answer(&Report::Status(status(host.id, counters)));
            }
            Command::PolicyBegin { .. } | Command::PolicyChunk { .. } | Command::PolicyCommit => {
                let reason =
                    "it runs in its host's process, with the policy that the host was given";
                line.answer(&Report::PolicyRefused { reason });
            }
            Command::Configure { .. } | Command::Conduct | Command::Aim(_) => {
                let reason = "it runs in its host's process, and acts on what it is shown";
                line.answer(&Report::Rejected { reason });
            }
            Command::Open { .. } => {
                let reason = "it runs in its host's process, which has no key";
                line.answer(&Report::Rejected { reason });
            }
            Command::Observe(_) | Command::Restart | Command::Provoke(_) => {
                let reason = "it runs in its host's process";
                line.answer(&Report::Rejected { reason });
            }
        }
    }
}

fn status(policy: PolicyId, counters: Counters) -> Status<'static> {
    let empty = Slot {
        policy: None,
        state: SlotState::Empty,
    };
    Status {
        board: "none",
        firmware: env!("CARGO_PKG_VERSION"),
        fleet: "",
        active: Some(0),
        slots: [
            Slot {
                policy: Some(policy),
                state: SlotState::Proven,
            },
            empty,
        ],
        counter: 0,
        history: History {
            reset: ResetCause::PowerOn,
            boots: 1,
            watchdog_bites: 0,
            panics: 0,
            faults: 0,
        },
        last_words: "",
        counters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{InProcess, Link};
    use agent_core::message::COMMAND_FRAME;
    use artifacts::observation::OwnedObservation;
    use artifacts::policy_file::PolicyFile;
    use problem::published;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const ID: PolicyId = PolicyId([7; 32]);

    fn frame(number: u32, command: &Command<'_>) -> Vec<u8> {
        encode_frame(number, command, &mut [0; COMMAND_FRAME])
            .unwrap()
            .to_vec()
    }

    /// What the agents answer, in the order in which they do: agent, number, report in words.
    fn answers(
        agents: &mut Answering<'_>,
        mut heard: Vec<(usize, Vec<u8>)>,
    ) -> Vec<(usize, u32, String)> {
        let mut said = Vec::new();
        let heard = heard
            .iter_mut()
            .map(|(agent, bytes)| (*agent, &mut bytes[..]));
        agents.hear(heard, |agent, frame| {
            let mut frame = frame.to_vec();
            let (number, report) = decode_frame::<Report>(&mut frame).unwrap();
            said.push((agent, number, format!("{report:?}")));
        });
        said
    }

    #[test]
    fn frames_lead_to_what_agents_of_a_run_do_bit_for_bit() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for problem in published::measured() {
            let file = PolicyFile::shipped(problem).unwrap();
            let policy = file.policy(problem).unwrap();
            let mut agents = Answering::new(&policy, ID, 37);
            let mut links = vec![InProcess::new(&policy); agents.len()];
            for step in 1..=4 {
                let now_us = u64::from(step) * u64::from(policy.header().timing.period_us);
                let mut heard = Vec::new();
                let mut expected = Vec::new();
                for (agent, link) in links.iter_mut().enumerate() {
                    let mut seen = OwnedObservation::blank(&policy);
                    for value in [&mut seen.field, &mut seen.target].into_iter().flatten() {
                        *value = rng.random_range(-2.0..2.0);
                    }
                    seen.position = [rng.random_range(0.1..0.9), rng.random_range(0.1..0.9)];
                    let observation = seen.arriving(now_us);
                    heard.push((agent, frame(step, &Command::Observe(observation))));
                    link.send(&observation).unwrap();
                    let action = link.receive(now_us).unwrap().unwrap();
                    let report = Report::Action { action, ticks: 0 };
                    expected.push((agent, step, format!("{report:?}")));
                }
                assert_eq!(answers(&mut agents, heard), expected, "{}", problem.name);
            }
        }
    }

    #[test]
    fn a_command_that_comes_twice_is_answered_twice_and_obeyed_once() {
        let problem = published::by_name("heat-1d").unwrap();
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let mut agents = Answering::new(&policy, ID, 2);
        let seen = OwnedObservation::blank(&policy);
        let observe = |number| frame(number, &Command::Observe(seen.arriving(1000)));
        let hello = frame(9, &Command::Hello);
        // Cut, noise, for nobody; and two commands for one agent in one message.
        let cut = observe(10)[..20].to_vec();
        let heard = vec![
            (0, [&[0, 3, 4, 0][..], &hello].concat()),
            (0, cut),
            (7, observe(10)),
            (0, observe(10)),
            (0, observe(10)),
            (1, observe(4)),
            (1, observe(3)),
        ];
        let said = answers(&mut agents, heard);
        let whose: Vec<(usize, u32)> = said.iter().map(|(a, number, _)| (*a, *number)).collect();
        assert_eq!(whose, [(0, 9), (0, 10), (0, 10), (1, 4)]);
        assert_eq!(said[1].2, said[2].2);
        let said = answers(&mut agents, vec![(0, frame(11, &Command::Status))]);
        assert!(said[0].2.contains("steps: 1,"), "{said:?}");
        assert!(said[0].2.contains("repeated: 1,"), "{said:?}");
        assert!(said[0].2.contains("rejected: 2,"), "{said:?}");
    }

    #[test]
    fn they_take_no_policy_and_no_key_and_say_why() {
        let problem = published::by_name("heat-1d").unwrap();
        let file = PolicyFile::shipped(problem).unwrap();
        let policy = file.policy(problem).unwrap();
        let mut agents = Answering::new(&policy, ID, 1);
        let commands = [
            Command::PolicyCommit,
            Command::Open {
                rights: 1,
                nonce: [0; 16],
            },
            Command::Restart,
            Command::Conduct,
            Command::Aim(None),
        ];
        for (number, command) in (1..).zip(commands) {
            let said = answers(&mut agents, vec![(0, frame(number, &command))]);
            assert!(said[0].2.contains("host's process"), "{said:?}");
        }
    }
}
