//! defmt's global logger: rzCOBS frames out of a UART that carries nothing else.
//!
//! It writes with interrupts off and waits for the line, so a log line is
//! whole even when the next instruction is a reset.

use core::cell::{Cell, RefCell};

use critical_section::{CriticalSection, Mutex, RestoreState};
use defmt::Encoder;

#[cfg(feature = "mps2")]
use super::cmsdk::uart::Registers;
#[cfg(feature = "virt-rv32")]
use super::virt::ns16550::Registers;

static PORT: Mutex<Cell<Option<Registers>>> = Mutex::new(Cell::new(None));
static ENCODER: Mutex<RefCell<Encoder>> = Mutex::new(RefCell::new(Encoder::new()));
static RESTORE: Mutex<Cell<RestoreState>> = Mutex::new(Cell::new(RestoreState::invalid()));

/// Sends all further log lines to `port`; what was logged before is lost.
pub fn to(port: Registers) {
    port.enable_transmitter();
    critical_section::with(|cs| PORT.borrow(cs).set(Some(port)));
}

#[defmt::global_logger]
struct Logger;

/// Runs `encode` on the encoder and a function that puts bytes on the line.
///
/// # Safety
/// Only between `acquire` and `release`, where interrupts are off.
unsafe fn with_encoder(encode: impl FnOnce(&mut Encoder, &mut dyn FnMut(&[u8]))) {
    // SAFETY: `acquire` has entered a critical section, says the caller.
    let cs = unsafe { CriticalSection::new() };
    let port = PORT.borrow(cs).get();
    let mut send = |bytes: &[u8]| {
        if let Some(port) = port {
            bytes.iter().for_each(|&byte| port.write_blocking(byte));
        }
    };
    // A log line from inside a log line (a broken `Format`) is dropped, not fatal.
    if let Ok(mut encoder) = ENCODER.borrow(cs).try_borrow_mut() {
        encode(&mut encoder, &mut send);
    }
}

// SAFETY: `acquire` and `release` bracket every use with a critical section on the only core.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // SAFETY: `release` leaves the section again; defmt calls them in pairs.
        unsafe {
            let restore = critical_section::acquire();
            let cs = CriticalSection::new();
            RESTORE.borrow(cs).set(restore);
            with_encoder(|encoder, send| encoder.start_frame(send));
        }
    }

    unsafe fn flush() {
        // Every byte has been handed to the line when `write` returns.
    }

    unsafe fn release() {
        // SAFETY: defmt calls this once after `acquire`, which set RESTORE.
        unsafe {
            with_encoder(|encoder, send| encoder.end_frame(send));
            let cs = CriticalSection::new();
            critical_section::release(RESTORE.borrow(cs).get());
        }
    }

    unsafe fn write(bytes: &[u8]) {
        // SAFETY: defmt calls this between `acquire` and `release`.
        unsafe { with_encoder(|encoder, send| encoder.write(bytes, send)) }
    }
}
