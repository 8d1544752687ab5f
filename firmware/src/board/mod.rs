//! What a board brings: a link, a clock, a log, flash for policies, a watchdog, an executor.
//!
//! One file per board with its addresses, pins and interrupts; what several boards share lies beside
//! it. Each has the same names, which `main` builds the image from: `start`, and the types of what
//! it returns.

mod mishap;

#[cfg(all(
    feature = "standalone",
    not(any(feature = "mps2-an386", feature = "silicon"))
))]
compile_error!(
    "no sensors are known of this board: `standalone` goes with `mps2-an386` and the real boards"
);

#[cfg(feature = "emulated")]
mod log;
#[cfg(all(feature = "mps2-an386", feature = "standalone"))]
mod outside;
#[cfg(feature = "emulated")]
mod played_flash;
#[cfg(feature = "emulated")]
mod register;
#[cfg(feature = "emulated")]
mod reported;

#[cfg(feature = "mps2")]
mod cmsdk;
#[cfg(feature = "mps2")]
mod mps2;
#[cfg(feature = "mps2")]
pub use mps2::{Input, NodeHardware, Output, start};

#[cfg(feature = "virt-rv32")]
mod virt;
#[cfg(feature = "virt-rv32")]
mod virt_rv32;
#[cfg(feature = "virt-rv32")]
pub use virt_rv32::{Input, NodeHardware, Output, start};

#[cfg(all(feature = "silicon", feature = "standalone"))]
mod alone;
#[cfg(feature = "silicon")]
mod lamp;
#[cfg(feature = "silicon")]
mod mapped_flash;

#[cfg(feature = "nrf52840-dk")]
mod nrf52840_dk;
#[cfg(all(feature = "nrf52840-dk", feature = "standalone"))]
use nrf52840_dk::TwoWire;
#[cfg(feature = "nrf52840-dk")]
pub use nrf52840_dk::{Input, NodeHardware, Output, start};

#[cfg(feature = "nucleo-f446re")]
mod nucleo_f446re;
#[cfg(all(feature = "nucleo-f446re", feature = "standalone"))]
use nucleo_f446re::TwoWire;
#[cfg(feature = "nucleo-f446re")]
pub use nucleo_f446re::{Input, NodeHardware, Output, start};

#[cfg(feature = "pico2")]
mod pico2;
#[cfg(all(feature = "pico2", feature = "standalone"))]
use pico2::TwoWire;
#[cfg(feature = "pico2")]
pub use pico2::{Input, NodeHardware, Output, start};

/// What the node's task is started with.
pub struct Board {
    /// The link from the host,
    pub input: Input,
    /// and to it.
    pub output: Output,
    /// Everything else.
    pub hardware: NodeHardware,
}

/// The speed of real boards' lines: what all their clocks divide to without a rest, and their
/// debuggers' serial ports can do.
#[cfg(any(
    feature = "nucleo-f446re",
    feature = "pico2",
    all(feature = "silicon", feature = "standalone")
))]
const BAUD: u32 = 1_000_000;

/// Bytes that a real line may bring while the node computes: half of its longest frame.
#[cfg(feature = "silicon")]
const RECEIVE_BUFFER: usize = 2048;
/// A whole report.
#[cfg(feature = "silicon")]
const TRANSMIT_BUFFER: usize = firmware::link::REPORT_FRAME;

/// How long an emulated board's watchdog waits. Emulated time runs with the host's, which may have
/// better things to do than emulating us, or makes this a core of a million instructions a second in
/// order to count them: a real board's watchdog need not be so patient.
#[cfg(feature = "emulated")]
const WATCHDOG_SECONDS: u32 = 8;

/// How long a real board's watchdog waits: an STM32F4 takes up to 2 s to erase a sector, during
/// which nothing else happens, and its watchdog's clock may be half as fast again as it should.
#[cfg(feature = "silicon")]
const WATCHDOG_SECONDS: u32 = 5;

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());
