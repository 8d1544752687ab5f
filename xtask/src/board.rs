//! The boards that there are images for.

use anyhow::Result;
use clap::ValueEnum;
use std::process::Command;

use crate::{
    setup::{TARGET, TARGET_M33, TARGET_RV32},
    throwaway,
};

/// A board, by the name of its feature in `firmware`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Board {
    /// Arm MPS2+ with a Cortex-M4F, emulated
    #[value(name = "mps2-an386")]
    An386,
    /// Arm MPS2+ with a Cortex-M7, emulated
    #[value(name = "mps2-an500")]
    An500,
    /// Arm MPS2+ with a Cortex-M33, emulated
    #[value(name = "mps2-an505")]
    An505,
    /// QEMU's virtual machine with an RV32IMAC, emulated
    #[value(name = "virt-rv32")]
    VirtRv32,
    /// ST Nucleo with an STM32F446RE
    #[value(name = "nucleo-f446re")]
    NucleoF446re,
    /// Nordic's nRF52840-DK
    #[value(name = "nrf52840-dk")]
    Nrf52840Dk,
    /// Raspberry Pi Pico 2, with an RP2350
    #[value(name = "pico2")]
    Pico2,
}

impl Board {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::An386,
        Self::An500,
        Self::An505,
        Self::VirtRv32,
        Self::NucleoF446re,
        Self::Nrf52840Dk,
        Self::Pico2,
    ];

    /// Those that tests can run.
    pub const EMULATED: [Self; 4] = [Self::An386, Self::An500, Self::An505, Self::VirtRv32];

    /// Those whose nodes can sense and act by themselves.
    pub const STANDALONE: [Self; 4] = [
        Self::An386,
        Self::NucleoF446re,
        Self::Nrf52840Dk,
        Self::Pico2,
    ];

    /// One of each kind: Arm's emulated ones differ in a table of addresses. All of them are built.
    pub const KINDS: [Self; 5] = [
        Self::An386,
        Self::VirtRv32,
        Self::NucleoF446re,
        Self::Nrf52840Dk,
        Self::Pico2,
    ];

    /// Its name, everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Self::An386 => "mps2-an386",
            Self::An500 => "mps2-an500",
            Self::An505 => "mps2-an505",
            Self::VirtRv32 => "virt-rv32",
            Self::NucleoF446re => "nucleo-f446re",
            Self::Nrf52840Dk => "nrf52840-dk",
            Self::Pico2 => "pico2",
        }
    }

    /// Its core, as rustc calls it.
    pub fn target(self) -> &'static str {
        match self {
            Self::An386 | Self::An500 | Self::NucleoF446re | Self::Nrf52840Dk => TARGET,
            Self::An505 | Self::Pico2 => TARGET_M33,
            Self::VirtRv32 => TARGET_RV32,
        }
    }

    /// Its chip, as probe-rs calls it; none if it is emulated.
    pub fn chip(self) -> Option<&'static str> {
        match self {
            Self::An386 | Self::An500 | Self::An505 | Self::VirtRv32 => None,
            Self::NucleoF446re => Some("STM32F446RETx"),
            Self::Nrf52840Dk => Some("nRF52840_xxAA"),
            Self::Pico2 => Some("RP235x"),
        }
    }
}

/// An image of the firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// What it runs on.
    pub board: Board,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Keyed,
    Provoked,
    Standalone,
    Smallest,
}

impl Image {
    /// The one to flash.
    pub fn of(board: Board) -> Self {
        let kind = Kind::Plain;
        Self { board, kind }
    }

    /// The one with everything on, which is what is measured and what tests attack: it checks
    /// signatures and seals, with keys that are made here and worth nothing.
    pub fn keyed(board: Board) -> Self {
        let kind = Kind::Keyed;
        Self { board, kind }
    }

    /// The one for tests of what becomes of a node that comes to grief.
    pub fn provoked(board: Board) -> Self {
        let kind = Kind::Provoked;
        Self { board, kind }
    }

    /// The one that senses and acts by itself, on one of [`Board::STANDALONE`].
    pub fn standalone(board: Board) -> Self {
        let kind = Kind::Standalone;
        Self { board, kind }
    }

    /// The same, compiled as the smallest that is shipped is, for tests: what those boards run, no other test does.
    pub fn smallest(board: Board) -> Self {
        let kind = Kind::Smallest;
        Self { board, kind }
    }

    /// Whether it senses and acts by itself.
    pub fn is_standalone(self) -> bool {
        matches!(self.kind, Kind::Standalone | Kind::Smallest)
    }

    /// What it is called where images are measured, keys or not.
    pub fn name(self) -> String {
        let suffix = match self.kind {
            Kind::Plain | Kind::Keyed | Kind::Provoked => "",
            Kind::Standalone | Kind::Smallest => "-standalone",
        };
        format!("{}{suffix}", self.board.name())
    }

    /// What its file is called.
    pub fn file_name(self) -> String {
        let suffix = match self.kind {
            Kind::Plain => "",
            Kind::Keyed => "-throwaway-keys",
            Kind::Provoked => "-provoke",
            Kind::Standalone => "-standalone",
            Kind::Smallest => "-standalone-smallest",
        };
        format!("{}{suffix}.elf", self.board.name())
    }

    /// What it is compiled by: how small it must be.
    pub fn profile(self) -> &'static str {
        match (self.kind, self.board) {
            (Kind::Standalone, Board::NucleoF446re) | (Kind::Smallest, _) => "firmware-smallest",
            (Kind::Standalone, Board::Nrf52840Dk | Board::Pico2) => "firmware-small",
            _ => "firmware",
        }
    }

    /// The environment variable by which tests find it, if they run it.
    pub fn variable(self) -> Option<&'static str> {
        match (self.board, self.kind) {
            (Board::An386, Kind::Plain) => Some("FIRMWARE_ELF"),
            (Board::An386, Kind::Keyed) => Some("FIRMWARE_ELF_KEYED"),
            (Board::An386, Kind::Provoked) => Some("FIRMWARE_ELF_PROVOKE"),
            (Board::An386, Kind::Standalone) => Some("FIRMWARE_ELF_STANDALONE"),
            (Board::An386, Kind::Smallest) => Some("FIRMWARE_ELF_SMALLEST"),
            (Board::An500, Kind::Plain) => Some("FIRMWARE_ELF_AN500"),
            (Board::An500, Kind::Provoked) => Some("FIRMWARE_ELF_AN500_PROVOKE"),
            (Board::An505, Kind::Plain) => Some("FIRMWARE_ELF_AN505"),
            (Board::An505, Kind::Provoked) => Some("FIRMWARE_ELF_AN505_PROVOKE"),
            (Board::VirtRv32, Kind::Plain) => Some("FIRMWARE_ELF_RV32"),
            (Board::VirtRv32, Kind::Provoked) => Some("FIRMWARE_ELF_RV32_PROVOKE"),
            _ => None,
        }
    }

    /// Tells cargo what to build, but for the profile.
    pub fn select(self, cargo: &mut Command) -> Result<()> {
        let mut features = self.board.name().to_owned();
        match self.kind {
            Kind::Plain => {}
            Kind::Keyed => {
                cargo.envs(throwaway::keys()?);
            }
            Kind::Provoked => features.push_str(",provoke"),
            Kind::Standalone | Kind::Smallest => features.push_str(",standalone"),
        }
        cargo
            .args(["--package", "firmware", "--bin", "firmware"])
            .args(["--features", &features]);
        Ok(())
    }
}

/// The images that are measured: those that have everything on, and those that sense by themselves.
pub fn complete() -> impl Iterator<Item = Image> {
    let keyed = Board::ALL.into_iter().map(Image::keyed);
    keyed.chain(Board::STANDALONE.map(Image::standalone))
}
