//! What the emulated board acts by itself with: thermometers on its I2C, and UART2, the line on which boards
//! hear each other.

use cortex_m::peripheral::NVIC;
use embassy_executor::{SendSpawner, task};
use firmware::{
    air::{Air, attend},
    bus::Serial,
    hardware::{Station, WithBus},
    tmp105::Tmp105s,
};

use super::{
    Interrupt, Vector,
    image::{BUS_RECEIVE, BUS_TRANSMIT, BUS_UART, TWO_WIRE},
};
use crate::board::{
    cmsdk::{two_wire::TwoWire, uart::BufferedUart},
    played_flash::PlayedFlash,
};

pub type Thermometers = WithBus<Tmp105s<TwoWire>>;

/// How fast the line is, in bits a second. The emulator does not model that; turns are taken by it.
const BAUD: u32 = 1_000_000;

// SAFETY: the board's address map.
static BUS: BufferedUart<BUS_UART, 256> = unsafe { BufferedUart::new() };

/// All zeros before anybody is heard, so the image has nothing of it.
static AIR: Air = Air::new();

#[task]
async fn listen() {
    attend(&mut Serial::new(&BUS, &BUS, BAUD), &AIR).await
}

extern "C" fn on_bus_receive() {
    BUS.on_receive();
}

extern "C" fn on_bus_transmit() {
    BUS.on_transmit();
}

/// The vectors with those of the line.
pub const fn with_bus(mut vectors: [Vector; 64]) -> [Vector; 64] {
    vectors[BUS_RECEIVE as usize] = on_bus_receive;
    vectors[BUS_TRANSMIT as usize] = on_bus_transmit;
    vectors
}

/// Listens from now on, beside what else runs. To be called once.
///
/// # Safety
/// As of [`PlayedFlash::slots`].
pub unsafe fn station(spawner: SendSpawner) -> Option<Station<PlayedFlash, Thermometers>> {
    BUS.enable();
    // SAFETY: nothing relies on masking by priority; the handlers exist and are ready.
    unsafe {
        NVIC::unmask(Interrupt(BUS_RECEIVE));
        NVIC::unmask(Interrupt(BUS_TRANSMIT));
    }
    match listen() {
        Ok(task) => spawner.spawn(task),
        Err(_) => defmt::error!("no room for the bus's task"),
    }
    Some(Station {
        // SAFETY: as the caller says.
        slots: unsafe { PlayedFlash::places() },
        // SAFETY: the board's address map, and nothing else uses the bus.
        sensors: WithBus(Tmp105s::on(unsafe { TwoWire::at(TWO_WIRE) })),
        air: Some(&AIR),
    })
}
