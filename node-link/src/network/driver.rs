//! The end of a room that drives the agents.

use super::host::send_on;
use super::line::Line;
use super::{Greeting, Network, NetworkError, broken, check_key};
use crate::Transport;
use agent_core::message::PolicyId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

/// Rooms of a search; more are not taken.
const MOST_ROOMS: usize = 1024;

/// Hosts of one room that are told apart; two are one too many.
const MOST_HOSTS: usize = 4;

/// Comings and goings that wait to be looked at; more are lost.
const MOST_EVENTS: usize = 4096;

/// When there are agents enough, how long a second host of the same room is looked for.
const SETTLE: Duration = Duration::from_millis(100);

/// How long one question to a host takes before it is asked again.
const ASK: Duration = Duration::from_millis(500);

/// How long between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// A room whose agents this process drives.
pub struct Room {
    /// Its key.
    pub name: String,
    /// What its host said of it when it was found.
    pub greeting: Greeting,
    /// How many of its agents there are lines to.
    pub agents: usize,
    line: Arc<Line>,
}

impl Room {
    /// The line to an agent of the room. It breaks when the host goes, and can be opened again when one
    /// is back.
    pub fn line(&self, agent: usize) -> Box<dyn Transport> {
        Box::new(self.line.strand(agent))
    }
}

/// Somebody has begun or ceased to offer a room.
struct Event {
    room: String,
    host: String,
    is_there: bool,
}

/// What there is while a host is attached.
struct Attached {
    host: String,
    _token: LivelinessToken,
    _messages: Subscriber<()>,
}

/// A room as it is watched.
struct Watched {
    /// None until somebody has said what is offered.
    line: Option<Arc<Line>>,
    hosts: BTreeSet<String>,
    attached: Option<Attached>,
}

/// The rooms that match a key, and their hosts.
struct Watch {
    session: Session,
    me: String,
    events: Receiver<Event>,
    _subscriber: Subscriber<()>,
    rooms: BTreeMap<String, Watched>,
}

impl Network {
    /// Finds and takes rooms that match a key until they have `wanted` agents, or `patience` has
    /// passed. Agents that run another policy than `policy` are refused, and so is whatever would make
    /// it doubtful who is meant. Whose host goes is taken again when one is back.
    pub fn find(
        &self,
        key: &str,
        wanted: usize,
        policy: Option<PolicyId>,
        patience: Duration,
    ) -> Result<Vec<Room>, NetworkError> {
        check_key(key, true)?;
        let mut watch = Watch::begin(self, key)?;
        let given_up = Instant::now() + patience;
        let mut found: BTreeMap<String, Room> = BTreeMap::new();
        let mut enough = None;
        loop {
            let until = enough.unwrap_or(given_up).min(given_up);
            let Some(event) = watch.next(until) else {
                break;
            };
            let is_new = watch.note(&event);
            if let Some(hosts) = watch.doubt(&event.room) {
                return Err(NetworkError::Twice {
                    room: event.room,
                    hosts,
                });
            }
            if !event.is_there {
                found.remove(&event.room);
                continue;
            }
            if !is_new || enough.is_some() {
                continue;
            }
            let agents: usize = found.values().map(|room| room.agents).sum();
            let room = watch.take(self, &event, wanted - agents, policy, given_up)?;
            let is_enough = agents + room.agents >= wanted;
            found.insert(event.room, room);
            if is_enough {
                enough = Some(Instant::now() + SETTLE);
            }
        }
        if found.is_empty() {
            return Err(self.unreached(patience).unwrap_or(NetworkError::Nobody {
                key: key.to_owned(),
                waited: patience,
            }));
        }
        watch.rooms.retain(|name, _| found.contains_key(name));
        thread::spawn(move || watch.go_on(patience));
        Ok(found.into_values().collect())
    }
}

impl Watch {
    fn begin(network: &Network, key: &str) -> Result<Self, NetworkError> {
        let (sender, events) = mpsc::sync_channel(MOST_EVENTS);
        let tokens = network.session.liveliness();
        let subscriber = tokens.declare_subscriber(format!("{key}/host/*"));
        let subscriber = subscriber.history(true).callback(move |sample| {
            if let Some((room, host)) = sample.key_expr().rsplit_once("/host/") {
                // From whoever makes more of them than can be looked at some are lost.
                let _ = sender.try_send(Event {
                    room: room.to_owned(),
                    host: host.to_owned(),
                    is_there: sample.kind() == SampleKind::Put,
                });
            }
        });
        Ok(Self {
            session: network.session.clone(),
            me: network.name(),
            events,
            _subscriber: subscriber.wait().map_err(broken)?,
            rooms: BTreeMap::new(),
        })
    }

    fn next(&self, deadline: Instant) -> Option<Event> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    /// Keeps who is there; whether that is a host of which nothing was known.
    fn note(&mut self, event: &Event) -> bool {
        if !event.is_there {
            if let Some(room) = self.rooms.get_mut(&event.room) {
                room.hosts.remove(&event.host);
                if room
                    .attached
                    .as_ref()
                    .is_some_and(|one| one.host == event.host)
                {
                    room.attached = None;
                    if let Some(line) = &room.line {
                        line.detach(format!("the host of {} has gone", event.room));
                    }
                }
            }
            return false;
        }
        if self.rooms.len() >= MOST_ROOMS && !self.rooms.contains_key(&event.room) {
            return false;
        }
        let room = self.rooms.entry(event.room.clone()).or_insert(Watched {
            line: None,
            hosts: BTreeSet::new(),
            attached: None,
        });
        room.hosts.len() < MOST_HOSTS && room.hosts.insert(event.host.clone())
    }

    /// Two hosts of a room, if there are two.
    fn doubt(&self, room: &str) -> Option<[String; 2]> {
        let hosts = &self.rooms.get(room)?.hosts;
        let mut hosts = hosts.iter().cloned();
        Some([hosts.next()?, hosts.next()?])
    }

    /// Takes a room that was found, with so many agents at most.
    fn take(
        &mut self,
        network: &Network,
        event: &Event,
        wanted: usize,
        policy: Option<PolicyId>,
        deadline: Instant,
    ) -> Result<Room, NetworkError> {
        let claim = Claim::make(&self.session, &self.me, event)?;
        let greeting = claim.greeting(&self.session, &self.me, event, deadline)?;
        if let (Some(ours), Some(theirs)) = (policy, greeting.policy)
            && ours != theirs
        {
            return Err(NetworkError::Policy {
                room: event.room.clone(),
                theirs,
                ours,
            });
        }
        let agents = greeting.agents().min(wanted);
        let line = Line::new(&network.post, &event.room, agents);
        let attached = claim.attach(&self.session, &line, event)?;
        if let Some(room) = self.rooms.get_mut(&event.room) {
            room.line = Some(line.clone());
            room.attached = Some(attached);
        }
        Ok(Room {
            name: event.room.clone(),
            greeting,
            agents,
            line,
        })
    }

    /// Takes rooms again whose host has come back, as long as anybody has lines to them.
    fn go_on(mut self, patience: Duration) {
        const LOOK: Duration = Duration::from_secs(1);
        loop {
            let event = self.events.recv_timeout(LOOK);
            let lines = self.rooms.values().filter_map(|room| room.line.as_ref());
            // One count is ours.
            if lines.map(Arc::strong_count).all(|count| count <= 1) {
                return;
            }
            match event {
                Ok(event) if self.rooms.contains_key(&event.room) => {
                    self.note(&event);
                    self.attach_again(&event.room, patience);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes a room that has a host, one alone, which is not the one that it had.
    fn attach_again(&mut self, name: &str, patience: Duration) {
        let Some(room) = self.rooms.get_mut(name) else {
            return;
        };
        let (Some(line), None) = (room.line.clone(), &room.attached) else {
            return;
        };
        let mut hosts = room.hosts.iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return;
        };
        let event = Event {
            room: name.to_owned(),
            host: host.clone(),
            is_there: true,
        };
        let attached = Claim::make(&self.session, &self.me, &event).and_then(|claim| {
            claim.greeting(&self.session, &self.me, &event, Instant::now() + patience)?;
            claim.attach(&self.session, &line, &event)
        });
        match attached {
            Ok(attached) => room.attached = Some(attached),
            Err(error) => line.detach(error.to_string()),
        }
    }
}

/// A host that was asked to hear nobody else.
struct Claim {
    /// What belongs to this driver there.
    key: String,
    token: LivelinessToken,
}

impl Claim {
    fn make(session: &Session, me: &str, event: &Event) -> Result<Self, NetworkError> {
        let key = format!("{}/host/{}/run/{me}", event.room, event.host);
        let token = session.liveliness().declare_token(&key);
        Ok(Self {
            token: token.wait().map_err(broken)?,
            key,
        })
    }

    /// What the host offers, when it hears us alone.
    fn greeting(
        &self,
        session: &Session,
        me: &str,
        event: &Event,
        deadline: Instant,
    ) -> Result<Greeting, NetworkError> {
        let asked = Instant::now();
        let host = format!("{}/host/{}", event.room, event.host);
        let mut is_driven = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let question = session.get(&host).payload(me).timeout(ASK.min(left));
            let answers = question.wait().map_err(broken)?;
            if let Ok(Some(reply)) = answers.recv_timeout(ASK.min(left))
                && let Ok(sample) = reply.result()
            {
                let bytes = sample.payload().to_bytes();
                let (greeting, is_ours) = Greeting::decode(&event.room, &bytes)?;
                if is_ours {
                    return Ok(greeting);
                }
                is_driven = true;
            }
            if Instant::now() + PAUSE >= deadline {
                let room = event.room.clone();
                return Err(match is_driven {
                    true => NetworkError::Driven { room },
                    false => NetworkError::Mute {
                        room,
                        waited: asked.elapsed(),
                    },
                });
            }
            thread::sleep(PAUSE);
        }
    }

    /// Leads the room's line to the host.
    fn attach(
        self,
        session: &Session,
        line: &Arc<Line>,
        event: &Event,
    ) -> Result<Attached, NetworkError> {
        let number = line.attach(send_on(session, format!("{}/to", self.key)));
        // It does not keep the line alive by itself.
        let hears = Arc::downgrade(line);
        let messages = session.declare_subscriber(format!("{}/from", self.key));
        let messages = messages.callback(move |sample| {
            if let Some(line) = hears.upgrade() {
                line.take_in(number, &sample.payload().to_bytes());
            }
        });
        Ok(Attached {
            host: event.host.clone(),
            _token: self.token,
            _messages: messages.wait().map_err(broken)?,
        })
    }
}
