//! Faults of the line that carries observations to an agent.

use super::{Act, Descriptor, Group, Parameter, Presence, Scope, Sort, When, Whom, percent};
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::{Command, FrameError, Observation, decode_frame, encode_frame};
use artifacts::observation::OwnedObservation;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Observations get lost.
pub static LOSS: Descriptor = Descriptor {
    name: "loss",
    group: Group::Line,
    parameters: &[Parameter::P],
    whom: Whom::Anyone,
    when: When::Between,
    help: "observations get lost",
    caption: |fault| {
        format!(
            "lose {} % of their observations",
            percent(fault.what.number("p"))
        )
    },
    act: Act::Link(|link, hit| {
        let p = hit.what.number("p");
        Box::new(Loss::new(link, hit.scope, p, hit.rng.clone()))
    }),
};

/// A line that swallows observations.
pub struct Loss<L> {
    inner: L,
    scope: Scope,
    p: f64,
    rng: ChaCha8Rng,
}

impl<L> Loss<L> {
    /// `inner`, which misses each observation with probability `p` while `scope` holds.
    pub fn new(inner: L, scope: Scope, p: f64, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            p,
            rng,
        }
    }
}

impl<L: Link> Link for Loss<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        match self.scope.covers(observation) && self.rng.random::<f64>() < self.p {
            true => Ok(()),
            false => self.inner.send(observation),
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Observations come late: by some sends, and by up to `jitter` more, drawn for each.
pub static DELAY: Descriptor = Descriptor {
    name: "delay",
    group: Group::Line,
    parameters: &[
        Parameter::new("steps", Sort::Whole, Presence::Needed, "2"),
        Parameter::new("jitter", Sort::Whole, Presence::Default("0"), "1"),
    ],
    whom: Whom::Anyone,
    when: When::Between,
    help: "observations come late; with jitter perhaps out of order",
    caption: |fault| {
        let least = u64::from(fault.what.whole("steps"));
        match u64::from(fault.what.whole("jitter")) {
            0 => format!("see {least} steps late"),
            jitter => format!("see {least} to {} steps late", least + jitter),
        }
    },
    act: Act::Link(|link, hit| {
        let (steps, jitter) = (hit.what.whole("steps"), hit.what.whole("jitter"));
        Box::new(Delay::new(link, hit.scope, steps, jitter, hit.rng.clone()))
    }),
};

/// A line with a transit time.
pub struct Delay<L> {
    inner: L,
    scope: Scope,
    steps: u32,
    jitter: u32,
    rng: ChaCha8Rng,
    /// Number of this send.
    count: u64,
    /// What is under way, in the order in which it was sent.
    under_way: Vec<InTransit>,
}

struct InTransit {
    /// The send with which it arrives.
    due: u64,
    observation: OwnedObservation,
}

impl<L> Delay<L> {
    /// `inner`, which gets what is sent while `scope` holds `steps` sends later and up to `jitter`
    /// more. What is under way when the fault ends still arrives when it is due.
    pub fn new(inner: L, scope: Scope, steps: u32, jitter: u32, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            steps,
            jitter,
            rng,
            count: 0,
            under_way: Vec::new(),
        }
    }
}

impl<L: Link> Link for Delay<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.count += 1;
        let mut due = self.count;
        if self.scope.covers(observation) {
            due += u64::from(self.steps) + u64::from(self.rng.random_range(0..=self.jitter));
        }
        if due == self.count && self.under_way.is_empty() {
            return self.inner.send(observation);
        }
        self.under_way.push(InTransit {
            due,
            observation: observation.into(),
        });
        // Everything due by earlier sends has left, so what is due now arrives in the order in
        // which it was sent, and overtakes what was sent before it and drew a longer way.
        let count = self.count;
        for arrived in self
            .under_way
            .extract_if(.., |message| message.due <= count)
        {
            let arriving = arrived.observation.arriving(observation.now_us);
            self.inner.send(&arriving)?;
        }
        Ok(())
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Observations arrive twice.
pub static DUPLICATE: Descriptor = Descriptor {
    name: "duplicate",
    group: Group::Line,
    parameters: &[Parameter::P],
    whom: Whom::Anyone,
    when: When::Between,
    help: "observations arrive twice",
    caption: |fault| {
        format!(
            "get {} % of observations twice",
            percent(fault.what.number("p"))
        )
    },
    act: Act::Link(|link, hit| {
        let p = hit.what.number("p");
        Box::new(Duplicate::new(link, hit.scope, p, hit.rng.clone()))
    }),
};

/// A line that stutters.
pub struct Duplicate<L> {
    inner: L,
    scope: Scope,
    p: f64,
    rng: ChaCha8Rng,
}

impl<L> Duplicate<L> {
    /// `inner`, which gets each observation twice with probability `p` while `scope` holds.
    pub fn new(inner: L, scope: Scope, p: f64, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            p,
            rng,
        }
    }
}

impl<L: Link> Link for Duplicate<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if self.scope.covers(observation) && self.rng.random::<f64>() < self.p {
            self.inner.send(observation)?;
        }
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Observations change places with the next one.
pub static REORDER: Descriptor = Descriptor {
    name: "reorder",
    group: Group::Line,
    parameters: &[Parameter::P],
    whom: Whom::Anyone,
    when: When::Between,
    help: "observations change places with the next one",
    caption: |fault| {
        format!(
            "get {} % of observations swapped",
            percent(fault.what.number("p"))
        )
    },
    act: Act::Link(|link, hit| {
        let p = hit.what.number("p");
        Box::new(Reorder::new(link, hit.scope, p, hit.rng.clone()))
    }),
};

/// A line on which observations change places.
pub struct Reorder<L> {
    inner: L,
    scope: Scope,
    p: f64,
    rng: ChaCha8Rng,
    /// Waits for the next one to go first.
    overtaken: Option<OwnedObservation>,
}

impl<L> Reorder<L> {
    /// `inner`, which gets each observation after the next one with probability `p` while `scope`
    /// holds.
    pub fn new(inner: L, scope: Scope, p: f64, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            p,
            rng,
            overtaken: None,
        }
    }
}

impl<L: Link> Link for Reorder<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let holds = self.scope.covers(observation);
        if let Some(late) = self.overtaken.take() {
            self.inner.send(observation)?;
            return self.inner.send(&late.arriving(observation.now_us));
        }
        if holds && self.rng.random::<f64>() < self.p {
            self.overtaken = Some(observation.into());
            return Ok(());
        }
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Most bytes of a frame that get damaged at once.
const MOST_DAMAGE: usize = 3;

/// Bytes of an observation's frame are changed on the way.
pub static CORRUPT: Descriptor = Descriptor {
    name: "corrupt",
    group: Group::Line,
    parameters: &[Parameter::P],
    whom: Whom::Anyone,
    when: When::Between,
    help: "bytes of the frame change on the way; the checksum catches them",
    caption: |fault| {
        format!(
            "get {} % of frames damaged",
            percent(fault.what.number("p"))
        )
    },
    act: Act::Link(|link, hit| {
        let p = hit.what.number("p");
        Box::new(Corrupt::new(link, hit.scope, p, hit.rng.clone()))
    }),
};

/// A line that damages frames. The real wire code decides what is still worth delivering.
pub struct Corrupt<L> {
    inner: L,
    scope: Scope,
    p: f64,
    rng: ChaCha8Rng,
    number: u32,
    frame: Vec<u8>,
    refused: u64,
}

impl<L> Corrupt<L> {
    /// `inner`, which gets what is left of each observation when, with probability `p` and while
    /// `scope` holds, one to three bytes of its frame have changed.
    pub fn new(inner: L, scope: Scope, p: f64, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            p,
            rng,
            number: 0,
            frame: Vec::new(),
            refused: 0,
        }
    }

    /// Damaged frames that were told from good ones, and dropped.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl<L: Link> Link for Corrupt<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.number = self.number.wrapping_add(1);
        if !self.scope.covers(observation) || self.rng.random::<f64>() >= self.p {
            return self.inner.send(observation);
        }
        let command = Command::Observe(*observation);
        self.frame.clear();
        self.frame.resize(observation.frame_room(), 0);
        let frame = encode_frame(self.number, &command, &mut self.frame)?;
        damage(frame, &mut self.rng);
        match decode_frame(frame) {
            Ok((_, Command::Observe(observation))) => self.inner.send(&observation),
            Ok(_)
            | Err(
                FrameError::Damaged
                | FrameError::TooLong
                | FrameError::Protocol { .. }
                | FrameError::Sealed,
            ) => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Gives one to three bytes of `frame` another value.
fn damage(frame: &mut [u8], rng: &mut ChaCha8Rng) {
    let count = rng.random_range(1..=MOST_DAMAGE).min(frame.len());
    for place in rand::seq::index::sample(rng, frame.len(), count) {
        frame[place] ^= rng.random_range(1..=u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::probe::{INTERVAL_US, Log, drive, observe};
    use rand::SeedableRng;

    fn steps(from: u64, until: u64) -> Scope {
        Scope::new(from * INTERVAL_US, Some(until * INTERVAL_US), None)
    }

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// Of 10,000 observations 7,000 ± 46 (one standard deviation) arrive.
    #[test]
    fn lost_observations_are_drawn_by_the_seed() {
        let arrivals = |seed| {
            let log = Log::default();
            drive(
                &mut Loss::new(log.probe(), steps(0, 20_000), 0.3, rng(seed)),
                10_000,
            );
            log.arrivals()
        };
        let one = arrivals(1);
        assert!((6800..7200).contains(&one.len()), "{}", one.len());
        assert_eq!(one, arrivals(1));
        assert_ne!(one, arrivals(2));
    }

    #[test]
    fn a_total_loss_begins_and_ends_on_its_steps_and_silences_nobody() {
        let log = Log::default();
        let mut link = Loss::new(log.probe(), steps(1, 3), 1.0, rng(1));
        assert!(drive(&mut link, 4).iter().all(Option::is_some));
        assert_eq!(log.arrivals(), [(0, 0.0), (3, 3.0)]);
    }

    #[test]
    fn a_delay_of_two_shows_the_patch_of_two_steps_ago_at_the_present_time() {
        let log = Log::default();
        let mut link = Delay::new(log.probe(), steps(0, 99), 2, 0, rng(1));
        for step in 0..5 {
            let x = 0.1 * step as f32;
            link.send(&observe(step, x, &[step as f32])).unwrap();
        }
        assert_eq!(log.arrivals(), [(2, 0.0), (3, 1.0), (4, 2.0)]);
        assert_eq!(log.all()[2].position[0], 0.2, "where it was then");
    }

    #[test]
    fn what_is_under_way_when_a_delay_ends_still_arrives() {
        let log = Log::default();
        drive(&mut Delay::new(log.probe(), steps(1, 3), 2, 0, rng(1)), 6);
        assert_eq!(
            log.arrivals(),
            [(0, 0.0), (3, 1.0), (3, 3.0), (4, 2.0), (4, 4.0), (5, 5.0)]
        );
    }

    #[test]
    fn jitter_reorders_and_loses_nothing() {
        let log = Log::default();
        drive(
            &mut Delay::new(log.probe(), steps(0, 990), 1, 3, rng(1)),
            1000,
        );
        let arrivals = log.arrivals();
        let mut sent: Vec<f32> = arrivals.iter().map(|(_, sent)| *sent).collect();
        assert!(!sent.is_sorted());
        sent.sort_by(f32::total_cmp);
        assert_eq!(sent, (0..1000).map(|k| k as f32).collect::<Vec<_>>());
        let late: Vec<u64> = arrivals[..980]
            .iter()
            .map(|(step, sent)| step - *sent as u64)
            .collect();
        assert!((1..=4).all(|steps| late.contains(&steps)));
        assert!(late.iter().all(|steps| (1..=4).contains(steps)));
    }

    #[test]
    fn a_duplicate_arrives_twice_in_the_same_step() {
        let log = Log::default();
        drive(
            &mut Duplicate::new(log.probe(), steps(1, 2), 1.0, rng(1)),
            3,
        );
        assert_eq!(log.arrivals(), [(0, 0.0), (1, 1.0), (1, 1.0), (2, 2.0)]);
    }

    #[test]
    fn reordered_observations_change_places_in_pairs() {
        let log = Log::default();
        drive(&mut Reorder::new(log.probe(), steps(1, 5), 1.0, rng(1)), 7);
        // 1 waits for 2 and 3 for 4; from 5 on all is well.
        assert_eq!(
            log.arrivals(),
            [
                (0, 0.0),
                (2, 2.0),
                (2, 1.0),
                (4, 4.0),
                (4, 3.0),
                (5, 5.0),
                (6, 6.0)
            ]
        );
    }

    /// CRC-32 misses one damaged frame in 2³²; the seed is one of those that meet none.
    #[test]
    fn damaged_frames_are_told_from_good_ones() {
        let log = Log::default();
        let mut link = Corrupt::new(log.probe(), steps(0, 9_999), 0.5, rng(1));
        drive(&mut link, 5_000);
        let arrived = log.arrivals();
        // 2,500 ± 35 (one standard deviation) are damaged.
        assert!((2350..2650).contains(&link.refused()), "{}", link.refused());
        assert_eq!(arrived.len() as u64 + link.refused(), 5_000);
        assert!(arrived.iter().all(|(step, sent)| *sent == *step as f32));
    }

    #[test]
    fn damage_changes_one_to_three_bytes() {
        let mut rng = rng(1);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            let mut frame = [7; 40];
            damage(&mut frame, &mut rng);
            seen[frame.iter().filter(|byte| **byte != 7).count()] += 1;
        }
        assert_eq!((seen[0], seen[4]), (0, 0));
        // A third each: 333 ± 15.
        assert!(
            seen[1..4].iter().all(|count| (270..400).contains(count)),
            "{seen:?}"
        );
        damage(&mut [], &mut rng);
    }
}
