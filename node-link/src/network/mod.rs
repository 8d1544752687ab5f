//! Agents on a Zenoh network.
//!
//! A *room* is what one process, its *host*, offers under a key such as `lab/plate/room-1`: agents of its
//! own, and boards at its links. Whoever *drives* it talks to each agent in the frames of any other
//! link; frames for many agents are one message ([`batch`]). For a host `h` and a driver `d`, which are
//! processes by the names that Zenoh gives them:
//!
//! | key | |
//! | --- | --- |
//! | `lab/plate/room-1/host/h` | a token that is there as long as the host; asked, it answers with its [`Greeting`] |
//! | `lab/plate/room-1/host/h/run/d` | a token that is there as long as the driver, whose alone the agents are meanwhile |
//! | `…/run/d/to`, `…/run/d/from` | messages to the agents, and from them |
//!
//! So a host is known by its process, not by its key alone: one that dies is missed at once, one that
//! returns is another, and two under one key are told apart. No key, token or message says how many
//! agents there are in all; a greeting says what one host has, to whoever asks for that.

pub mod batch;

mod driver;
mod error;
mod greeting;
mod host;
mod line;
mod settings;

pub use driver::Room;
pub use error::NetworkError;
pub use greeting::Greeting;
pub use host::{Arrival, Offered};
pub use settings::Settings;

use line::Post;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use zenoh::{Session, Wait};

/// Longest key that is taken.
const LONGEST_KEY: usize = 200;

/// A network that was joined; it is left when nothing of it is in use.
pub struct Network {
    session: Session,
    post: Arc<Post>,
    settings: Settings,
}

impl Network {
    /// Joins a network, or gives up after `patience`.
    pub fn join(settings: &Settings, patience: Duration) -> Result<Self, NetworkError> {
        let configuration = settings.configuration()?;
        Ok(Self {
            session: open(configuration, patience)?,
            post: Arc::default(),
            settings: settings.clone(),
        })
    }

    /// What Zenoh calls this process.
    fn name(&self) -> String {
        self.session.zid().to_string()
    }

    /// Whether anybody else is on the network.
    fn is_alone(&self) -> bool {
        let info = self.session.info();
        info.peers_zid().wait().next().is_none() && info.routers_zid().wait().next().is_none()
    }

    /// Why nobody was reached, if there is somebody who should have been.
    fn unreached(&self, waited: Duration) -> Option<NetworkError> {
        if !self.is_alone() || self.settings.connect.is_empty() {
            return None;
        }
        // Asked once more by itself: what goes wrong in the background is not told.
        let once = self.settings.once().ok()?;
        let why = match open(once, waited.max(Duration::from_secs(1))) {
            Ok(_) => String::new(),
            Err(error) => format!(" ({error})"),
        };
        Some(NetworkError::Unreached {
            endpoints: self.settings.connect.join(", "),
            waited,
            why,
        })
    }
}

/// Opens a session on a thread that nobody waits for longer than `patience`.
fn open(configuration: zenoh::Config, patience: Duration) -> Result<Session, NetworkError> {
    let (done, opened) = mpsc::channel();
    thread::spawn(move || {
        // Too late, and it is closed again.
        let _ = done.send(zenoh::open(configuration).wait());
    });
    match opened.recv_timeout(patience) {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(error)) => Err(NetworkError::Join(plain(&error))),
        Err(_) => Err(NetworkError::Join(format!(
            "it is not done after {patience:?}"
        ))),
    }
}

/// What Zenoh says, fit to be shown: it may quote the other side.
fn plain(error: &zenoh::Error) -> String {
    crate::plain(&error.to_string(), 300)
}

fn broken(error: zenoh::Error) -> NetworkError {
    NetworkError::Broken(plain(&error))
}

/// Checks a key, with or without wildcards.
fn check_key(key: &str, wildcards: bool) -> Result<(), NetworkError> {
    let bad = |why: String| NetworkError::Key {
        key: crate::plain(key, LONGEST_KEY),
        why,
        example: match wildcards {
            true => "lab/plate/*",
            false => "lab/plate/room-1",
        },
    };
    if key.len() > LONGEST_KEY {
        return Err(bad(format!("it is longer than {LONGEST_KEY} bytes")));
    }
    let parsed = zenoh::key_expr::keyexpr::new(key).map_err(|error| bad(plain(&error)))?;
    if parsed.is_wild() && !wildcards {
        return Err(bad("it stands for many, and a host is one".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::message::PROTOCOL;
    use std::net::TcpListener;

    /// Why a host is not taken that says this of itself.
    fn refusal(greeting: &'static [u8]) -> String {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp/{}", free.local_addr().unwrap());
        drop(free);
        let patience = Duration::from_secs(30);
        let join = |settings: Settings| Network::join(&settings, patience).unwrap();
        let run = join(Settings {
            listen: vec![at.clone()],
            ..Settings::default()
        });
        let host = join(Settings {
            connect: vec![at],
            ..Settings::default()
        });
        let key = format!("lab/room-1/host/{}", host.name());
        let answers = host.session.declare_queryable(key.clone());
        let answers = answers.callback(move |query| {
            let key = query.key_expr().clone();
            query.reply(key, greeting).wait().unwrap();
        });
        let _answers = answers.wait().unwrap();
        let _token = host.session.liveliness().declare_token(key).wait().unwrap();
        let found = run.find("lab/*", 4, None, patience);
        found.err().unwrap().to_string()
    }

    #[test]
    fn a_host_of_another_version_is_refused_by_name_before_anything_is_sent_to_it() {
        let said = refusal(&[9, PROTOCOL, 1, 2, 3]);
        assert!(
            said.contains("lab/room-1 speaks version 9 with frames"),
            "{said}"
        );
        let said = refusal(&[1, PROTOCOL + 1]);
        assert!(
            said.contains(&format!("frames of protocol {}", PROTOCOL + 1)),
            "{said}"
        );
        let said = refusal(&[]);
        assert!(said.contains("nothing that can be read"), "{said}");
    }
}
