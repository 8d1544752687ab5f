//! What agents of this process say to each other: each hears in a step what the others said in those before.
//!
//! Agents step side by side, in whatever order; that nobody hears what is said in the same step makes runs the
//! same, bit for bit, and is what a bus does to boards whose steps have no common beginning.

use crate::centre::{Centre, Order, Whole};
use agent_core::policy::Header;
use place::neighbours::bulletin::Field;
use place::neighbours::hearing::Hearing;
use place::{Place, neighbours::Bulletin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The step in which something was said, and what.
type Said = (u64, Bulletin);

/// Where agents hear each other.
#[derive(Debug)]
pub struct Hall {
    step: AtomicU64,
    /// The last two of each agent, the newest first.
    said: Vec<Mutex<[Option<Said>; 2]>>,
}

impl Hall {
    /// For so many agents, none of which has said anything.
    pub fn new(agents: usize) -> Arc<Self> {
        Arc::new(Self {
            step: AtomicU64::new(0),
            said: (0..agents).map(|_| Mutex::default()).collect(),
        })
    }

    fn say(&self, agent: usize, bulletin: Bulletin) {
        let step = self.step.load(Ordering::Relaxed);
        let mut said = (self.said[agent].lock()).unwrap_or_else(PoisonError::into_inner);
        *said = [Some((step, bulletin)), said[0]];
    }

    /// The last that an agent said before this step.
    fn last(&self, agent: usize) -> Option<Bulletin> {
        let step = self.step.load(Ordering::Relaxed);
        let said = *(self.said[agent].lock()).unwrap_or_else(PoisonError::into_inner);
        let mut before = said.into_iter().flatten().filter(|(when, _)| *when < step);
        before.next().map(|(_, bulletin)| bulletin)
    }
}

/// Tells a hall that another step has begun, and nobody what to do.
pub struct Bell(pub Arc<Hall>);

impl Centre for Bell {
    fn decide(&mut self, _: &Whole<'_>, _: &mut [Order]) {
        self.0.step.fetch_add(1, Ordering::Relaxed);
    }
}

/// What an agent hears in a hall, and says.
pub struct Ear {
    hall: Arc<Hall>,
    agent: usize,
    /// Those whom it hears, and the number of the last that it heard of each.
    others: Vec<(usize, u64)>,
    pub hearing: Box<Hearing>,
    field: Field,
    number: u64,
}

impl Ear {
    /// Of an agent at a place, with a policy.
    pub fn new(
        hall: Arc<Hall>,
        agent: usize,
        others: Vec<usize>,
        place: &Place,
        policy: &Header,
    ) -> Self {
        let mut hearing = Box::new(Hearing::new());
        hearing.stand(place, policy, false);
        Self {
            hall,
            agent,
            others: others.into_iter().map(|other| (other, 0)).collect(),
            hearing,
            field: Field::of(policy.problem.as_str()),
            number: 0,
        }
    }

    /// Hears what was said.
    pub fn listen(&mut self, now_us: u64) {
        for (other, heard) in &mut self.others {
            // Nothing is heard twice, as on a bus: whoever has fallen silent is not introduced by what it once
            // said.
            if let Some(bulletin) = self.hall.last(*other)
                && bulletin.number > *heard
            {
                *heard = bulletin.number;
                let _ = self.hearing.hear(&bulletin, now_us);
            }
        }
    }

    /// Says what was measured just now.
    pub fn say(&mut self, position: [f32; 2], value: f32, now_us: u64) {
        self.number += 1;
        let bulletin = Bulletin {
            field: self.field,
            start: 0,
            number: self.number,
            stamp_us: now_us as u32,
            position,
            value,
        };
        self.hall.say(self.agent, bulletin);
    }
}
