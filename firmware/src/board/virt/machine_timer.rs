//! embassy-time on the machine timer of RISC-V: 64 bits that count and 64 that ring.

use core::{cell::RefCell, task::Waker};

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;

use super::Register;

/// Where the first hart's alarm and the clock of all are.
const ALARM: usize = 0x0200_4000;
const CLOCK: usize = 0x0200_bff8;
const CLOCK_HZ: u64 = 10_000_000;

/// Cycles of the clock in one tick of embassy-time.
const CYCLES_PER_TICK: u64 = CLOCK_HZ / TICK_HZ;

/// The clock and the alarm of embassy-time.
pub struct MachineTimer {
    queue: Mutex<RefCell<Queue>>,
}

/// Half of one of the two.
fn half(address: usize) -> Register<u32> {
    // SAFETY: the machine's address map.
    unsafe { Register::at(address) }
}

impl MachineTimer {
    pub const fn new() -> Self {
        Self {
            queue: Mutex::new(RefCell::new(Queue::new())),
        }
    }

    /// To be called by the timer's interrupt.
    pub fn on_interrupt(&self) {
        critical_section::with(|cs| self.ring(cs));
    }

    /// Wakes what is due and sets the alarm for what comes next.
    fn ring(&self, cs: CriticalSection<'_>) {
        let mut queue = self.queue.borrow(cs).borrow_mut();
        let next = queue.next_expiration(self.now());
        let at = next.saturating_mul(CYCLES_PER_TICK);
        // Never a time between the old and the new one that is over already.
        half(ALARM + 4).write(u32::MAX);
        half(ALARM).write(at as u32);
        half(ALARM + 4).write((at >> 32) as u32);
    }
}

impl Driver for MachineTimer {
    fn now(&self) -> u64 {
        loop {
            let high = half(CLOCK + 4).read();
            let low = half(CLOCK).read();
            if high == half(CLOCK + 4).read() {
                return (u64::from(high) << 32 | u64::from(low)) / CYCLES_PER_TICK;
            }
        }
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let changed = self.queue.borrow(cs).borrow_mut().schedule_wake(at, waker);
            if changed {
                self.ring(cs);
            }
        });
    }
}
