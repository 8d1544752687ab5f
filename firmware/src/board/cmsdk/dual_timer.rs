//! embassy-time on the CMSDK dual timer: one half counts, the other rings.
//!
//! No periodic tick: between two events the core sleeps, which on a host that
//! emulates dozens of boards is the difference between idle and busy.

use core::{
    cell::{Cell, RefCell},
    task::Waker,
};

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;

use super::{Register, crystal::Crystal};

const CONTROL_ONE_SHOT: u32 = 1 << 0;
const CONTROL_32_BIT: u32 = 1 << 1;
const CONTROL_INTERRUPT: u32 = 1 << 5;
const CONTROL_PERIODIC: u32 = 1 << 6;
const CONTROL_ENABLE: u32 = 1 << 7;

/// One half of the dual timer: a 32-bit counter that counts down.
struct Half {
    base: usize,
}

impl Half {
    fn register(&self, offset: usize) -> Register {
        // SAFETY: `DualTimer::new` was promised a dual timer; every offset below is one of its registers.
        unsafe { Register::at(self.base + offset) }
    }

    fn start(&self, count: u32, mode: u32) {
        // The width must be set before the count, which would be cut to 16 bits otherwise.
        self.control().write(CONTROL_32_BIT);
        self.register(0x00).write(count);
        self.control()
            .write(CONTROL_32_BIT | CONTROL_INTERRUPT | CONTROL_ENABLE | mode);
    }

    fn stop(&self) {
        self.control().write(CONTROL_32_BIT);
    }

    fn count(&self) -> u32 {
        self.register(0x04).read()
    }

    fn control(&self) -> Register {
        self.register(0x08)
    }

    fn is_pending(&self) -> bool {
        self.register(0x10).read() & 1 != 0
    }

    fn clear(&self) {
        self.register(0x0c).write(1);
    }
}

/// The clock and the alarm of embassy-time.
pub struct DualTimer {
    clock: Half,
    alarm: Half,
    /// Clock cycles in one tick of embassy-time.
    cycles_per_tick: u64,
    /// How often the clock has wrapped around.
    wraps: Mutex<Cell<u32>>,
    running: Mutex<Cell<bool>>,
    crystal: Crystal,
    queue: Mutex<RefCell<Queue>>,
}

impl DualTimer {
    /// A stopped timer, clocked with `clock_hz`.
    ///
    /// # Safety
    /// `base` must be the address of a CMSDK dual timer that nothing else uses.
    pub const unsafe fn new(base: usize, clock_hz: u64) -> Self {
        Self {
            clock: Half { base },
            alarm: Half { base: base + 0x20 },
            cycles_per_tick: clock_hz / TICK_HZ,
            wraps: Mutex::new(Cell::new(0)),
            running: Mutex::new(Cell::new(false)),
            crystal: Crystal::new(),
            queue: Mutex::new(RefCell::new(Queue::new())),
        }
    }

    /// Starts the clock. The timer's interrupt must be routed to [`Self::on_interrupt`].
    pub fn start(&self) {
        critical_section::with(|cs| {
            self.clock.start(u32::MAX, CONTROL_PERIODIC);
            self.running.borrow(cs).set(true);
        });
    }

    /// To be called by the timer's interrupt.
    pub fn on_interrupt(&self) {
        critical_section::with(|cs| {
            if self.clock.is_pending() {
                self.clock.clear();
                let wraps = self.wraps.borrow(cs);
                wraps.set(wraps.get().wrapping_add(1));
            }
            self.alarm.clear();
            self.ring(cs);
        });
    }

    fn cycles(&self, cs: CriticalSection<'_>) -> u64 {
        if !self.running.borrow(cs).get() {
            return 0;
        }
        let mut elapsed = !self.clock.count();
        let mut wraps = self.wraps.borrow(cs).get();
        if self.clock.is_pending() {
            // It wrapped, before or after the count was read: read again, on this side.
            elapsed = !self.clock.count();
            wraps = wraps.wrapping_add(1);
        }
        (u64::from(wraps) << 32) | u64::from(elapsed)
    }

    /// Wakes what is due and sets the alarm for what comes next.
    fn ring(&self, cs: CriticalSection<'_>) {
        let mut queue = self.queue.borrow(cs).borrow_mut();
        let cycles = self.cycles(cs);
        let now = self.crystal.shown(cs, cycles / self.cycles_per_tick);
        let next = queue.next_expiration(now);
        if next == u64::MAX {
            self.alarm.stop();
            return;
        }
        // Too far away for 32 bits: ring early and look again.
        let wait = (self.crystal)
            .takes(cs, next.saturating_sub(now))
            .saturating_mul(self.cycles_per_tick)
            .saturating_sub(cycles % self.cycles_per_tick)
            .clamp(1, u32::MAX.into());
        self.alarm
            .start(wait as u32, CONTROL_ONE_SHOT | CONTROL_PERIODIC);
    }
}

impl Driver for DualTimer {
    fn now(&self) -> u64 {
        critical_section::with(|cs| {
            let ticks = self.cycles(cs) / self.cycles_per_tick;
            self.crystal.shown(cs, ticks)
        })
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
