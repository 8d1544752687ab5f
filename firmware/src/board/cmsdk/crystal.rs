//! A crystal that is off by as much as [somebody outside](outside) says. The emulator's never is.

use core::cell::Cell;

use critical_section::{CriticalSection, Mutex};

use crate::board::outside;

/// What the board's clock shows.
pub struct Crystal(Mutex<Cell<Since>>);

/// From when on it has been off by so much.
#[derive(Clone, Copy)]
struct Since {
    ticks: u64,
    /// What it showed then.
    shown: u64,
    /// By how many millionths it gains.
    gain: i32,
}

impl Since {
    fn shown(self, ticks: u64) -> u64 {
        let passed = ticks.saturating_sub(self.ticks);
        self.shown.wrapping_add(scaled(passed, self.gain))
    }
}

impl Crystal {
    /// The board's.
    pub const fn new() -> Self {
        Self(Mutex::new(Cell::new(Since {
            ticks: 0,
            shown: 0,
            gain: 0,
        })))
    }

    /// What it shows after so many ticks. It goes on from there when somebody changes it: it never jumps.
    #[inline(never)]
    pub fn shown(&self, cs: CriticalSection<'_>, ticks: u64) -> u64 {
        let (cell, gain) = (self.0.borrow(cs), outside::gain());
        let since = cell.get();
        let shown = since.shown(ticks);
        if gain != since.gain {
            cell.set(Since { ticks, shown, gain });
        }
        shown
    }

    /// In how many ticks it shows so many more, or a little before: by the square of what it is off.
    pub fn takes(&self, cs: CriticalSection<'_>, shown: u64) -> u64 {
        scaled(shown, self.0.borrow(cs).get().gain.wrapping_neg())
    }
}

/// A time with so many millionths more.
#[inline(never)]
fn scaled(time: u64, millionths: i32) -> u64 {
    if millionths == 0 {
        return time; // most boards never divide for it
    }
    let part = time.wrapping_mul(millionths.unsigned_abs().into()) / 1_000_000;
    match millionths > 0 {
        true => time.wrapping_add(part),
        false => time.wrapping_sub(part),
    }
}
