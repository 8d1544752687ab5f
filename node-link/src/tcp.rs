//! A node behind a network: a board with a network interface, or a serial server.

use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use crate::{
    Transport,
    stream::{REOPEN_PATIENCE, Stream},
};

/// Longest wait for the first connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Connects to `host:port`.
pub fn connect(address: &str) -> io::Result<Box<dyn Transport>> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{address} is no address of a node ({error}): give host:port"),
            )
        })?
        .collect();
    let mut transport = Tcp {
        stream: Stream::new(format!("the node at {address}")),
        addresses,
    };
    transport.open(CONNECT_PATIENCE)?;
    Ok(Box::new(transport))
}

struct Tcp {
    stream: Stream<TcpStream>,
    addresses: Vec<SocketAddr>,
}

impl Tcp {
    fn open(&mut self, patience: Duration) -> io::Result<()> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            let share = patience / self.addresses.len() as u32;
            match TcpStream::connect_timeout(address, share) {
                Ok(socket) => {
                    // A frame is a question whose answer is waited for.
                    socket.set_nodelay(true)?;
                    return self.stream.connect(socket);
                }
                Err(error) => last = error,
            }
        }
        Err(io::Error::new(
            last.kind(),
            format!(
                "cannot reach {} ({last}): is it switched on, and is the port right?",
                self.stream.peer()
            ),
        ))
    }
}

impl Transport for Tcp {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.send(bytes)
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.stream.receive(buffer, deadline)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.open(REOPEN_PATIENCE)
    }
}
