//! CAN controllers on one bus: of all that wait the lowest identifier goes first.

use std::{cell::RefCell, collections::VecDeque, convert::Infallible, rc::Rc};

use embassy_time::{Duration, Instant};
use embedded_can::{ExtendedId, Frame, Id, nb::Can};
use place::neighbours::bandwidth::Line;

use crate::chip::next;

/// Frames that a controller keeps until they are looked at.
const KEPT: usize = 32;

/// A frame of up to so many bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fd<const N: usize> {
    id: ExtendedId,
    data: Vec<u8>,
}

impl<const N: usize> Frame for Fd<N> {
    fn new(id: impl Into<Id>, data: &[u8]) -> Option<Self> {
        let Id::Extended(id) = id.into() else {
            return None;
        };
        (data.len() <= N).then(|| Self {
            id,
            data: data.to_vec(),
        })
    }

    fn new_remote(_: impl Into<Id>, _: usize) -> Option<Self> {
        None
    }

    fn is_extended(&self) -> bool {
        true
    }

    fn is_remote_frame(&self) -> bool {
        false
    }

    fn id(&self) -> Id {
        Id::Extended(self.id)
    }

    fn dlc(&self) -> usize {
        self.data.len()
    }

    fn data(&self) -> &[u8] {
        &self.data
    }
}

struct State {
    /// What each would send, and since when.
    waits: Vec<Option<(Fd<64>, Instant)>>,
    heard: Vec<VecDeque<Fd<64>>>,
    free: Instant,
    seed: u64,
    /// Of 2^32 bits so many are wrong, and pass for right.
    wrong: u64,
    frames: u64,
    busy: Duration,
}

#[derive(Clone)]
pub struct CanBus {
    state: Rc<RefCell<State>>,
}

pub struct Controller {
    bus: CanBus,
    by: usize,
}

const LINE: Line = Line::CanFd {
    arbitration: 500_000,
    data: 2_000_000,
};

impl CanBus {
    pub fn new(wrong: f64, seed: u64) -> Self {
        Self {
            state: Rc::new(RefCell::new(State {
                waits: Vec::new(),
                heard: Vec::new(),
                free: Instant::MIN,
                seed,
                wrong: (wrong * 2f64.powi(32)) as u64,
                frames: 0,
                busy: Duration::MIN,
            })),
        }
    }

    pub fn controller(&self) -> Controller {
        let mut state = self.state.borrow_mut();
        state.waits.push(None);
        state.heard.push(VecDeque::new());
        Controller {
            bus: self.clone(),
            by: state.waits.len() - 1,
        }
    }

    /// Frames that were sent, and for how long the bus was taken.
    pub fn traffic(&self) -> (u64, Duration) {
        let state = self.state.borrow();
        (state.frames, state.busy)
    }

    /// What has happened by now.
    fn go_on(&self) {
        let state = &mut *self.state.borrow_mut();
        let now = Instant::now();
        loop {
            let since = state.waits.iter().flatten().map(|(_, since)| *since).min();
            let Some(begin) = since.map(|since| since.max(state.free)) else {
                return;
            };
            let waiting = state.waits.iter().enumerate();
            let first = waiting.filter_map(|(k, wait)| {
                let (frame, since) = wait.as_ref()?;
                (*since <= begin).then_some((frame.id.as_raw(), k))
            });
            let (_, by) = first.min().unwrap();
            let proven = state.waits[by].as_ref().unwrap().0.data.len() > 32;
            let takes = Duration::from_micros(LINE.occupied_ns(proven).div_ceil(1_000));
            let end = begin + takes;
            if end > now {
                return;
            }
            state.free = end;
            state.frames += 1;
            state.busy += takes;
            let (mut frame, _) = state.waits[by].take().unwrap();
            for byte in &mut frame.data {
                for bit in 0..8 {
                    *byte ^= u8::from(next(&mut state.seed) >> 32 < state.wrong) << bit;
                }
            }
            for (k, heard) in state.heard.iter_mut().enumerate() {
                if k != by && heard.len() < KEPT {
                    heard.push_back(frame.clone());
                }
            }
        }
    }
}

impl Can for Controller {
    type Frame = Fd<64>;
    type Error = Infallible;

    fn transmit(&mut self, frame: &Fd<64>) -> nb::Result<Option<Fd<64>>, Infallible> {
        self.bus.go_on();
        let wait = &mut self.bus.state.borrow_mut().waits[self.by];
        match wait {
            Some(_) => Err(nb::Error::WouldBlock),
            None => {
                *wait = Some((frame.clone(), Instant::now()));
                Ok(None)
            }
        }
    }

    fn receive(&mut self) -> nb::Result<Fd<64>, Infallible> {
        self.bus.go_on();
        let heard = &mut self.bus.state.borrow_mut().heard[self.by];
        heard.pop_front().ok_or(nb::Error::WouldBlock)
    }
}

/// A controller of classic CAN.
pub struct Classic;

impl Can for Classic {
    type Frame = Fd<8>;
    type Error = Infallible;

    fn transmit(&mut self, _: &Fd<8>) -> nb::Result<Option<Fd<8>>, Infallible> {
        Err(nb::Error::WouldBlock)
    }

    fn receive(&mut self) -> nb::Result<Fd<8>, Infallible> {
        Err(nb::Error::WouldBlock)
    }
}
