//! A node at a serial port: a real board, through its USB cable or a UART adapter.

use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

use serialport::{ErrorKind, SerialPort, TTYPort};

use crate::{
    Transport,
    stream::{SEND_PATIENCE, is_timeout, write_all},
};

/// Why a serial port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SerialError {
    /// There is no such port.
    #[error(
        "there is no serial port {0}: is the board plugged in? `ls /dev/serial/by-id` lists those \
         that are"
    )]
    Missing(String),
    /// Somebody else has it.
    #[error(
        "the serial port {0} is in use: end the other program that has it open (a terminal, a \
         logger, another run); `fuser {0}` tells which"
    )]
    Busy(String),
    /// This user may not open it.
    #[error(
        "no permission to open the serial port {0}: join the group that owns it, on Debian with \
         `sudo usermod -aG dialout $USER`, and log in again"
    )]
    Permission(String),
    /// Anything else.
    #[error("cannot open {path} as a serial port: {reason}")]
    Other {
        /// The port.
        path: String,
        /// What the system says.
        reason: String,
    },
}

impl From<SerialError> for io::Error {
    fn from(error: SerialError) -> Self {
        let kind = match error {
            SerialError::Missing(_) => io::ErrorKind::NotFound,
            SerialError::Busy(_) => io::ErrorKind::ResourceBusy,
            SerialError::Permission(_) => io::ErrorKind::PermissionDenied,
            SerialError::Other { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Opens a port for this program alone, with 8 data bits, no parity and one stop bit.
pub fn open(path: &str, baud: u32) -> Result<Box<dyn Transport>, SerialError> {
    Ok(Box::new(Serial {
        port: Some(open_port(path, baud)?),
        path: path.to_owned(),
        baud,
    }))
}

fn open_port(path: &str, baud: u32) -> Result<TTYPort, SerialError> {
    let opened = serialport::new(path, baud).open_native();
    opened.map_err(|error| match error.kind {
        ErrorKind::Io(io::ErrorKind::NotFound) => SerialError::Missing(path.to_owned()),
        ErrorKind::Io(io::ErrorKind::PermissionDenied) => SerialError::Permission(path.to_owned()),
        // How the library tells that somebody else has locked it.
        ErrorKind::NoDevice => SerialError::Busy(path.to_owned()),
        _ => SerialError::Other {
            path: path.to_owned(),
            reason: error.description,
        },
    })
}

struct Serial {
    /// None once it has vanished.
    port: Option<TTYPort>,
    path: String,
    baud: u32,
}

impl Serial {
    fn vanished(&mut self, error: &io::Error) -> io::Error {
        self.port = None;
        io::Error::new(
            io::ErrorKind::NotConnected,
            format!(
                "the serial port {} has vanished ({error}): plug the board in again",
                self.path
            ),
        )
    }

    /// The port, which waits for `limit` at most from now on.
    fn port(&mut self, limit: Duration) -> io::Result<&mut TTYPort> {
        let port = self.port.as_mut().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotConnected,
                format!("the serial port {} is not open", self.path),
            )
        })?;
        port.set_timeout(limit)?;
        Ok(port)
    }
}

impl Transport for Serial {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Ten bits a byte, twice over, for what is still in the driver's buffer.
        let line_time = bytes.len() as f64 * 20.0 / f64::from(self.baud.max(1));
        let limit = SEND_PATIENCE + Duration::from_secs_f64(line_time);
        let sent = write_all(self.port(limit)?, bytes, Instant::now() + limit);
        sent.map_err(|error| match is_timeout(&error) {
            true => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the serial port {} takes nothing any more", self.path),
            ),
            false => self.vanished(&error),
        })
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.port(left)?.read(buffer) {
            Ok(0) => Err(self.vanished(&io::ErrorKind::UnexpectedEof.into())),
            Ok(length) => Ok(length),
            Err(error) if is_timeout(&error) => Ok(0),
            Err(error) => Err(self.vanished(&error)),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.port = None; // or it would be in use: by us
        self.port = Some(open_port(&self.path, self.baud)?);
        Ok(())
    }
}
