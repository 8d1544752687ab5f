//! Where boards are: `qemu=6`, `serial=/dev/ttyACM0`, `tcp=host:port`, `zenoh=lab/plate/*`.

use super::LinkKind;
use node_link::Machine;
use problem::limit::BOARDS;
use std::fmt;
use std::str::FromStr;

/// Boards at the end of links of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boards {
    /// Emulated ones.
    Qemu {
        /// How many.
        count: usize,
        /// Which board is emulated.
        machine: Machine,
    },
    /// One at a serial port.
    Serial {
        /// The port's device.
        port: String,
        /// Bits per second.
        baud: u32,
    },
    /// One at a network address.
    Tcp {
        /// Host and port.
        address: String,
    },
    /// Those that hosts on a Zenoh network have, be they boards or agents of their own.
    Zenoh {
        /// Matches the keys that the hosts offer them under.
        key: String,
    },
}

/// The speed of a serial link unless another is given; all our images for real boards have it.
pub const BAUD: u32 = 1_000_000;

impl Boards {
    /// The kind of their links.
    pub fn kind(&self) -> LinkKind {
        match self {
            Self::Qemu { .. } => LinkKind::Qemu,
            Self::Serial { .. } => LinkKind::Serial,
            Self::Tcp { .. } => LinkKind::Tcp,
            Self::Zenoh { .. } => LinkKind::Zenoh,
        }
    }

    /// How many they are; at least, where they are [still to be found](Self::are_found).
    pub fn count(&self) -> usize {
        match self {
            Self::Qemu { count, .. } => *count,
            Self::Serial { .. } | Self::Tcp { .. } | Self::Zenoh { .. } => 1,
        }
    }

    /// Whether a simulated field can reach their sensors and their actuators.
    pub fn can_be_wired(&self) -> bool {
        let machine = Machine::An386;
        matches!(self, Self::Qemu { machine: of, .. } if *of == machine)
    }

    /// Whether nobody knows how many they are before they are looked for.
    pub fn are_found(&self) -> bool {
        matches!(self, Self::Zenoh { .. })
    }
}

/// Why a text names no boards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no link; write qemu=6 or qemu=6:mps2-an500 (up to {most} emulated boards), serial=/dev/ttyACM0 or \
     serial=/dev/ttyACM0@115200, tcp=host:port, or zenoh=lab/plate/*",
    most = BOARDS.most
)]
pub struct BadLink(String);

impl FromStr for Boards {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        let read = || -> Option<Self> {
            let (kind, rest) = text.split_once('=')?;
            Some(match kind.parse().ok()? {
                LinkKind::Qemu => {
                    let (count, machine) = match rest.split_once(':') {
                        Some((count, machine)) => (count, machine.parse().ok()?),
                        None => (rest, Machine::An386),
                    };
                    let count = count
                        .parse()
                        .ok()
                        .filter(|n| (1..=BOARDS.most).contains(n))?;
                    Self::Qemu { count, machine }
                }
                LinkKind::Serial => {
                    let (port, baud) = match rest.rsplit_once('@') {
                        Some((port, baud)) => (port, baud.parse().ok().filter(|b| *b > 0)?),
                        None => (rest, BAUD),
                    };
                    let port = Some(port).filter(|port| !port.is_empty())?.to_owned();
                    Self::Serial { port, baud }
                }
                LinkKind::Tcp => {
                    let (host, port) = rest.rsplit_once(':')?;
                    port.parse::<u16>().ok().filter(|_| !host.is_empty())?;
                    let address = rest.to_owned();
                    Self::Tcp { address }
                }
                LinkKind::Zenoh => {
                    // What else a key may be, Zenoh says.
                    let key = Some(rest).filter(|key| !key.is_empty())?.to_owned();
                    Self::Zenoh { key }
                }
            })
        };
        read().ok_or_else(|| BadLink(text.to_owned()))
    }
}

impl fmt::Display for Boards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.kind())?;
        match self {
            Self::Qemu { count, machine } if *machine == Machine::An386 => write!(f, "{count}"),
            Self::Qemu { count, machine } => write!(f, "{count}:{}", machine.name()),
            Self::Serial { port, baud } if *baud == BAUD => f.write_str(port),
            Self::Serial { port, baud } => write!(f, "{port}@{baud}"),
            Self::Tcp { address } => f.write_str(address),
            Self::Zenoh { key } => f.write_str(key),
        }
    }
}

impl serde::Serialize for Boards {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Boards {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written_as_they_are_read() {
        for text in [
            "qemu=6",
            "qemu=1024",
            "qemu=2:mps2-an505",
            "qemu=2:virt-rv32",
            "serial=/dev/ttyACM0",
            "serial=/dev/ttyACM0@115200",
            "tcp=localhost:4000",
            "tcp=[::1]:4000",
            "zenoh=lab/plate/*",
        ] {
            let boards: Boards = text.parse().unwrap();
            assert_eq!(boards.to_string(), text);
        }
        for text in [
            "",
            "qemu",
            "qemu=",
            "qemu=0",
            "qemu=1025",
            "qemu=x",
            "qemu=2:pdp-11",
            "serial=",
            "serial=@9600",
            "serial=/dev/x@0",
            "tcp=localhost",
            "tcp=:80",
            "tcp=h:99999",
            "zenoh=",
            "usb=1",
        ] {
            assert!(text.parse::<Boards>().is_err(), "{text}");
        }
    }
}
