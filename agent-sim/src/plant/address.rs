//! Where a plant is.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A program to be started, or one that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A command for the shell; the plant is at its standard input and output.
    Command(String),
    /// `host:port`.
    Tcp(String),
}

const TCP: &str = "tcp=";

/// Why a text is no address of a plant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no plant; give --plant 'python my_solver.py' or --plant tcp=host:port")]
pub struct BadAddress(String);

/// `tcp=host:port`; anything else is a command.
impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.escape_debug().to_string());
        match text.trim().strip_prefix(TCP) {
            None if text.trim().is_empty() || text.contains('\0') => Err(bad()),
            None => Ok(Self::Command(text.trim().to_owned())),
            Some(address) => {
                let port = address
                    .rsplit_once(':')
                    .filter(|(host, _)| !host.is_empty());
                match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
                    Some(_) => Ok(Self::Tcp(address.to_owned())),
                    None => Err(bad()),
                }
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Tcp(address) => write!(f, "{TCP}{address}"),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (text, address) in [
            ("tcp=10.0.0.7:99", Address::Tcp("10.0.0.7:99".into())),
            ("tcp=[::1]:99", Address::Tcp("[::1]:99".into())),
            ("python a.py", Address::Command("python a.py".into())),
        ] {
            assert_eq!(text.parse(), Ok(address.clone()));
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "  ", "tcp=", "tcp=:99", "tcp=host", "tcp=host:99999"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("tcp=host:port"), "{error}");
        }
    }
}
