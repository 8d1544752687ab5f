//! What nodes say to each other, between a bus and the step of a node by itself.
//!
//! The bus has a task of its own, [`attend`]: it takes what is heard when it comes, and says what is to be said
//! when it may. A step only looks at what has been heard by then and leaves what it measured to be said, so no
//! bus, however full or broken, keeps it waiting.

use agent_core::policy::Header;
use core::{cell::RefCell, future::pending};
use embassy_futures::{
    select::{Either3, select3},
    yield_now,
};
use embassy_sync::{
    blocking_mutex::{Mutex, raw::CriticalSectionRawMutex},
    signal::Signal,
};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use place::{
    Place,
    neighbours::{
        Bulletin, Hearing,
        bulletin::{Field, SEALED},
        hearing::Heard,
    },
};
use trust::BusKey;

use crate::{
    hardware::{Bus, Busy, MTU},
    keys::HAS_BUS_SEAL,
};

/// A bus that does not take a frame for so long does not get it.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is heard, and what is to be said.
pub struct Air {
    state: Mutex<CriticalSectionRawMutex, RefCell<State>>,
    /// The newest replaces what was not said in time.
    to_say: Signal<CriticalSectionRawMutex, Outgoing>,
}

struct State {
    key: Option<BusKey>,
    /// How often the node was started, where that is known: with a key it is part of what is said.
    start: Option<u32>,
    number: u64,
    hearing: Hearing,
}

/// A bulletin's frame.
#[derive(Clone, Copy)]
struct Outgoing {
    frame: [u8; SEALED],
    length: usize,
}

impl Default for Air {
    fn default() -> Self {
        Self::new()
    }
}

impl Air {
    /// Nobody is heard yet.
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(RefCell::new(State {
                key: None,
                start: None,
                number: 0,
                hearing: Hearing::new(),
            })),
            to_say: Signal::new(),
        }
    }

    /// Of a node that has this key and was started so often. With a key and without that, nothing is said: a
    /// number that comes twice would give the key's proofs away.
    pub(crate) fn open(&self, key: Option<&BusKey>, starts: Option<u64>) {
        let start = match key {
            Some(_) => starts.and_then(|starts| starts.try_into().ok()),
            None => Some(0),
        };
        self.with(|state| {
            state.key = key.cloned();
            state.start = start;
        });
    }

    /// Hears those whom this place says.
    pub(crate) fn stand(&self, place: &Place, policy: &Header) {
        self.with(|state| {
            let proven = state.key.is_some();
            state.hearing.stand(place, policy, proven);
        });
    }

    /// Looks at what was heard.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Hearing) -> T) -> T {
        self.with(|state| look(&state.hearing))
    }

    /// What became of what was heard.
    pub(crate) fn heard(&self) -> Heard {
        let now_us = Instant::now().as_micros();
        self.with(|state| state.hearing.heard(now_us))
    }

    /// Leaves what was measured at a position, then, to be said.
    pub(crate) fn say(&self, problem: &str, position: [f32; 2], value: f32, measured: Instant) {
        let said = self.with(|state| {
            let start = state.start?;
            state.number = state.number.checked_add(1)?;
            let key = state.key.clone().filter(|_| HAS_BUS_SEAL);
            Some((start, state.number, key))
        });
        let Some((start, number, key)) = said else {
            return;
        };
        let bulletin = Bulletin {
            field: Field::of(problem),
            start,
            number,
            stamp_us: measured.as_micros() as u32,
            position,
            value,
        };
        let mut frame = [0; SEALED];
        let length = bulletin.encode(key.as_ref(), &mut frame).len();
        self.to_say.signal(Outgoing { frame, length });
    }

    /// Takes a frame that was heard just now.
    fn hear(&self, frame: &[u8]) {
        let now_us = Instant::now().as_micros();
        let key = self.with(|state| state.key.clone());
        // Proven before the others are kept waiting.
        let bulletin = match key.filter(|_| HAS_BUS_SEAL) {
            Some(key) => Bulletin::read(frame, Some(&key)),
            None => Bulletin::read(frame, None),
        };
        self.with(|state| match bulletin {
            Ok(bulletin) => {
                let _ = state.hearing.hear(&bulletin, now_us);
            }
            Err(_) => state.hearing.damaged(),
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        self.state.lock(|state| look(&mut state.borrow_mut()))
    }
}

/// Listens and speaks for ever, beside the node.
pub async fn attend(bus: &mut impl Bus, air: &Air) -> ! {
    let mut heard = [0; MTU];
    let mut waits: Option<(Outgoing, Instant)> = None;
    loop {
        let turn = async {
            match waits {
                Some((_, until)) => Timer::at(until).await,
                None => pending().await,
            }
        };
        match select3(bus.receive(&mut heard), air.to_say.wait(), turn).await {
            Either3::First(length) => air.hear(heard.get(..length).unwrap_or_default()),
            Either3::Second(outgoing) => waits = Some((outgoing, Instant::MIN)),
            Either3::Third(()) => {}
        }
        if let Some((outgoing, until)) = &mut waits
            && *until <= Instant::now()
        {
            let frame = outgoing.frame.get(..outgoing.length).unwrap_or_default();
            match with_timeout(PATIENCE, bus.send(frame)).await {
                Ok(Err(Busy { until: turn })) => *until = turn,
                _ => waits = None,
            }
        }
        // A bus that always has something does not keep the node from its steps.
        yield_now().await;
    }
}
