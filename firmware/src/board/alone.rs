//! What a real board acts by itself with: thermometers on a bus, read in a task of their own, an output for what
//! moves the field, and a second serial port, on the line where boards hear each other.

use embassy_executor::{SendSpawner, task};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use firmware::{
    air::{Air, attend},
    aside::{Aside, Desk},
    bus::Serial,
    hardware::{Station, WithBus},
    tmp105::Tmp105s,
};

use super::{BAUD, Input, Output, TwoWire};

/// How often a second the output is on: what coils smooth, and nobody hears.
pub const OUTPUT_HZ: u32 = 20_000;

/// Bytes that the line may bring while the node computes.
pub const HEARD_BUFFER: usize = 256;
/// A whole bulletin.
pub const SAID_BUFFER: usize = 64;

type Thermometers = Tmp105s<TwoWire>;

/// The board's sensors as the node asks them, beside the line.
pub type Senses = WithBus<Aside<'static, CriticalSectionRawMutex, Thermometers>>;

static DESK: Desk<CriticalSectionRawMutex> = Desk::new();

/// All zeros before anybody is heard, so the image has nothing of it.
static AIR: Air = Air::new();

#[task]
async fn serve(thermometers: Thermometers) -> ! {
    DESK.serve(thermometers).await
}

#[task]
async fn listen(input: Input, output: Output) -> ! {
    attend(&mut Serial::new(input, output, BAUD), &AIR).await
}

/// Reads and listens from now on, beside what else runs. To be called once.
pub fn station<R>(
    spawner: SendSpawner,
    slots: [R; 2],
    two_wire: TwoWire,
    (input, output): (Input, Output),
) -> Station<R, Senses> {
    match (serve(Tmp105s::on(two_wire)), listen(input, output)) {
        (Ok(serve), Ok(listen)) => {
            spawner.spawn(serve);
            spawner.spawn(listen);
        }
        _ => defmt::error!("no room for the station's tasks"),
    }
    Station {
        slots,
        sensors: WithBus(Aside::at(&DESK)),
        air: Some(&AIR),
    }
}
