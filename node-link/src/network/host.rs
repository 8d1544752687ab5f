//! The end of a room that has the agents.

use super::{Greeting, Network, NetworkError, broken, check_key, line};
use std::collections::VecDeque;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::qos::CongestionControl;
use zenoh::query::Queryable;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

/// Drivers that are known at a time; more are not heard.
const MOST_DRIVERS: usize = 16;

/// Bytes of messages that wait to be looked at, besides room for one of the longest commands to each
/// agent; more are lost.
const UNREAD: usize = 8 << 20;

/// How long others on the network are asked whether they offer the same.
const ASK: Duration = Duration::from_millis(500);

/// A message to the room's agents.
pub struct Arrival {
    /// Whose it is: a number that is another for each driver.
    pub driver: u64,
    /// The records of many agents, see [`batch`](super::batch).
    pub batch: Vec<u8>,
}

/// A room that is offered, until this is dropped.
pub struct Offered {
    desk: Arc<Desk>,
    _token: LivelinessToken,
    _greeter: Queryable<()>,
    _drivers: Subscriber<()>,
    _messages: Subscriber<()>,
}

/// What the network's threads leave for the one who looks after the agents.
struct Desk {
    session: Session,
    /// Before the drivers' names.
    key: String,
    /// Bytes of messages that may wait.
    room: usize,
    state: Mutex<State>,
    has_come: Condvar,
}

#[derive(Default)]
struct State {
    /// Who would drive, as far as is known.
    present: Vec<String>,
    driver: Option<Driver>,
    /// How many there were.
    drivers: u64,
    messages: VecDeque<Vec<u8>>,
    unread: usize,
}

struct Driver {
    name: String,
    number: u64,
    answers: SyncSender<Vec<u8>>,
}

impl State {
    fn clear(&mut self) {
        self.messages.clear();
        self.unread = 0;
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A driver has come to the network.
    fn come(&self, name: &str) {
        let mut state = self.state();
        if state.present.len() < MOST_DRIVERS && !state.present.iter().any(|one| one == name) {
            state.present.push(name.to_owned());
        }
    }

    /// A driver has gone.
    fn go(&self, name: &str) {
        let mut state = self.state();
        state.present.retain(|one| one != name);
        if state
            .driver
            .as_ref()
            .is_some_and(|driver| driver.name == name)
        {
            state.driver = None;
            state.clear();
        }
    }

    /// Somebody asks for the agents; whether they are theirs from now on.
    fn claim(&self, name: &str) -> bool {
        let mut state = self.state();
        if let Some(driver) = &state.driver {
            return driver.name == name;
        }
        if !state.present.iter().any(|one| one == name) {
            return false;
        }
        state.clear();
        state.drivers += 1;
        state.driver = Some(Driver {
            name: name.to_owned(),
            number: state.drivers,
            answers: send_on(&self.session, format!("{}/run/{name}/from", self.key)),
        });
        true
    }

    /// A message to the agents.
    fn take_in(&self, name: &str, message: &[u8]) {
        let mut state = self.state();
        let is_heard = state
            .driver
            .as_ref()
            .is_some_and(|driver| driver.name == name);
        if is_heard && state.unread + message.len() <= self.room {
            state.unread += message.len();
            state.messages.push_back(message.to_vec());
            self.has_come.notify_one();
        }
    }
}

/// Sends what comes through the channel to a key, on a thread that ends with the channel: who does
/// not take it keeps nobody else waiting.
pub(super) fn send_on(session: &Session, key: String) -> SyncSender<Vec<u8>> {
    let (sender, messages) = mpsc::sync_channel::<Vec<u8>>(line::UNSENT);
    let session = session.clone();
    thread::spawn(move || {
        for message in messages {
            let sent = session
                .put(&key, message)
                .congestion_control(CongestionControl::Block)
                .express(true);
            // A message that is lost is asked for again.
            let _ = sent.wait();
        }
    });
    sender
}

impl Network {
    /// Offers agents under a key. `patience` is for the network; that nobody is on it yet is no error.
    pub fn offer(&self, key: &str, greeting: Greeting) -> Result<Offered, NetworkError> {
        check_key(key, false)?;
        let me = self.name();
        if let Some(other) = self.others(key)?.into_iter().find(|other| *other != me) {
            return Err(NetworkError::Twice {
                room: key.to_owned(),
                hosts: [other, me],
            });
        }
        let base = format!("{key}/host/{me}");
        let room = UNREAD + greeting.agents() * agent_core::message::COMMAND_FRAME;
        let desk = Arc::new(Desk {
            session: self.session.clone(),
            key: base.clone(),
            room,
            state: Mutex::default(),
            has_come: Condvar::new(),
        });
        let runs = format!("{base}/run/");
        let driver = {
            let runs = runs.clone();
            move |key: &str| key.strip_prefix(&runs).map(str::to_owned)
        };
        let (hears, named) = (desk.clone(), driver.clone());
        let messages = self.session.declare_subscriber(format!("{runs}*/to"));
        let messages = messages.callback(move |sample| {
            let name = named(sample.key_expr());
            if let Some(name) = name.as_deref().and_then(|name| name.strip_suffix("/to")) {
                hears.take_in(name, &sample.payload().to_bytes());
            }
        });
        let hears = desk.clone();
        let drivers = self
            .session
            .liveliness()
            .declare_subscriber(format!("{runs}*"));
        let drivers = drivers.history(true).callback(move |sample| {
            if let Some(name) = driver(sample.key_expr()) {
                match sample.kind() {
                    SampleKind::Put => hears.come(&name),
                    SampleKind::Delete => hears.go(&name),
                }
            }
        });
        let (asked, own) = (desk.clone(), base.clone());
        let greeter = self
            .session
            .declare_queryable(&base)
            .callback(move |query| {
                let name = query.payload().map(|name| name.to_bytes().into_owned());
                let name = name.and_then(|name| String::from_utf8(name).ok());
                let is_theirs = name.is_some_and(|name| asked.claim(&name));
                // Who asks and does not wait for the answer asks again.
                let _ = query.reply(&own, greeting.encode(is_theirs)).wait();
            });
        Ok(Offered {
            _messages: messages.wait().map_err(broken)?,
            _drivers: drivers.wait().map_err(broken)?,
            _greeter: greeter.wait().map_err(broken)?,
            // Last: who sees it finds everything else.
            _token: (self.session.liveliness().declare_token(&base))
                .wait()
                .map_err(broken)?,
            desk,
        })
    }

    /// Who offers a room now, as far as is known.
    fn others(&self, key: &str) -> Result<Vec<String>, NetworkError> {
        let tokens = self.session.liveliness().get(format!("{key}/host/*"));
        let tokens = tokens.timeout(ASK).wait().map_err(broken)?;
        let mut others = Vec::new();
        while let Ok(Some(reply)) = tokens.recv_timeout(ASK) {
            if let Ok(sample) = reply.result()
                && let Some((_, host)) = sample.key_expr().rsplit_once('/')
            {
                others.push(host.to_owned());
            }
        }
        Ok(others)
    }

    /// Why nobody could drive what is offered here, if there is a reason that is known: nobody was
    /// reached in `waited`.
    pub fn trouble(&self, waited: Duration) -> Option<NetworkError> {
        self.unreached(waited)
    }
}

impl Offered {
    /// The next message, or none by `deadline`.
    pub fn next(&self, deadline: Instant) -> Option<Arrival> {
        let mut state = self.desk.state();
        loop {
            if let Some(driver) = state.driver.as_ref().map(|driver| driver.number)
                && let Some(batch) = state.messages.pop_front()
            {
                state.unread -= batch.len();
                return Some(Arrival { driver, batch });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.desk.has_come.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends what agents say to their driver, if it is still the one with this number.
    pub fn answer(&self, driver: u64, batch: Vec<u8>) {
        let state = self.desk.state();
        if let Some(there) = state.driver.as_ref().filter(|there| there.number == driver)
            && !batch.is_empty()
        {
            // What a driver does not take in time it asks for again.
            let _ = there.answers.try_send(batch);
        }
    }

    /// The driver that there is now.
    pub fn driver(&self) -> Option<u64> {
        self.desk
            .state()
            .driver
            .as_ref()
            .map(|driver| driver.number)
    }
}
