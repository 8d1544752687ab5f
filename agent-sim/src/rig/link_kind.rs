//! What kinds of links lead to boards.

use std::fmt;
use std::str::FromStr;

/// A kind of link to a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// To an emulated board, whose process is ours.
    Qemu,
    /// To a board at a serial port.
    Serial,
    /// To whatever answers at a network address.
    Tcp,
    /// To an agent or a board at a host on a Zenoh network.
    Zenoh,
}

impl LinkKind {
    /// What there is, for error messages.
    pub const NAMES: &str = "qemu, serial, tcp or zenoh";

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Qemu, Self::Serial, Self::Tcp, Self::Zenoh];
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Qemu => "qemu",
            Self::Serial => "serial",
            Self::Tcp => "tcp",
            Self::Zenoh => "zenoh",
        })
    }
}

impl FromStr for LinkKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or(())
    }
}
