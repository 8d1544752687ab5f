//! What became of a node, step by step.

use agent_core::agent::Mode;
use std::time::Duration;

/// A node in one control step, as its host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It answered, and said that it was so.
    Answered(Mode),
    /// Nothing came in time, but it is thought to live.
    Late,
    /// It has not answered for so long that nobody waits for it.
    Silent,
}

impl State {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered(Mode::Waiting) => "waiting",
            Self::Answered(Mode::Active) => "active",
            Self::Answered(Mode::Holding) => "holding",
            Self::Answered(Mode::FailedSafe) => "failed safe",
            Self::Late => "late",
            Self::Silent => "silent",
        }
    }
}

/// Something that happened to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// In which step, counted from 0.
    pub step: usize,
    /// What, for people.
    pub what: String,
}

/// Most events that are kept of a node.
const MOST_EVENTS: usize = 1000;

/// A node's run.
#[derive(Debug, Clone, Default)]
pub struct Diary {
    /// Its state in each step.
    pub states: Vec<State>,
    /// What happened.
    pub events: Vec<Event>,
    /// How often it has started since.
    pub restarts: usize,
    /// How often it started without the policy that it was given, when power came on included.
    pub lost_policies: usize,
    /// The time from each observation to its answer.
    latencies: Vec<Duration>,
}

impl Diary {
    pub(super) fn heard(&mut self, mode: Mode, latency: Duration) {
        self.states.push(State::Answered(mode));
        self.latencies.push(latency);
    }

    /// Keeps an event, unless there are too many: a node can make one in every step.
    pub(super) fn event(&mut self, step: usize, what: impl Into<String>) {
        let what = match self.events.len() {
            0..MOST_EVENTS => what.into(),
            MOST_EVENTS => "more happened that is not kept".to_owned(),
            _ => return,
        };
        self.events.push(Event { step, what });
    }

    /// Steps in which it answered in time.
    pub fn answered(&self) -> usize {
        let answered = |state: &&State| matches!(state, State::Answered(_));
        self.states.iter().filter(answered).count()
    }

    /// The latencies' 50th, 90th and 99th percentile and maximum; none if there never was an answer.
    pub fn percentiles(&self) -> Option<[Duration; 4]> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        // The nearest rank.
        let rank = |percent: usize| sorted[(percent * sorted.len()).div_ceil(100).max(1) - 1];
        Some([rank(50), rank(90), rank(99), sorted[last]])
    }

    /// First and last step of each stretch in one state, in order.
    pub fn stretches(&self) -> Vec<(State, usize, usize)> {
        let mut stretches: Vec<(State, usize, usize)> = Vec::new();
        for (step, &state) in self.states.iter().enumerate() {
            match stretches.last_mut() {
                Some((same, _, last)) if *same == state => *last = step,
                _ => stretches.push((state, step, step)),
            }
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let mut diary = Diary::default();
        assert_eq!(diary.percentiles(), None);
        for k in (1..=200).rev() {
            diary.heard(Mode::Active, Duration::from_micros(k));
        }
        let expected = [100, 180, 198, 200].map(Duration::from_micros);
        assert_eq!(diary.percentiles(), Some(expected));
    }

    #[test]
    fn a_node_cannot_fill_its_diary_without_end() {
        let mut diary = Diary::default();
        (0..5 * MOST_EVENTS).for_each(|step| diary.event(step, "something"));
        assert_eq!(diary.events.len(), MOST_EVENTS + 1);
        assert!(diary.events[MOST_EVENTS].what.contains("not kept"));
    }

    #[test]
    fn a_node_that_comes_back_has_three_stretches() {
        let mut diary = Diary::default();
        let active = State::Answered(Mode::Active);
        diary.states = vec![
            active,
            active,
            State::Late,
            State::Silent,
            State::Silent,
            active,
        ];
        assert_eq!(
            diary.stretches(),
            [
                (active, 0, 1),
                (State::Late, 2, 2),
                (State::Silent, 3, 4),
                (active, 5, 5)
            ]
        );
        assert_eq!(diary.answered(), 3);
    }
}
