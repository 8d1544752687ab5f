//! The line to a room, which all lines to its agents are strands of.
//!
//! What is sent to agents is kept until somebody listens to one of them: then all of it goes out, to
//! all rooms. What comes from a room is handed to its agents by whoever waits first.

use super::batch;
use crate::{OVERDUE, Transport};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// Bytes of a room's messages that may wait to be looked at: so many, and so many for each agent, who
/// answer when they are asked and not more than a few times. A host that sends more is not heard again.
const UNREAD: usize = 1 << 20;
const UNREAD_OF_EACH: usize = 1 << 10;

/// The same of one agent: several of the longest reports.
const UNHEARD: usize = 8 << 10;

/// Messages that wait to be sent to a room that takes none; more are lost.
pub(super) const UNSENT: usize = 256;

/// All rooms of a network, whose messages go out together.
#[derive(Default)]
pub(super) struct Post {
    lines: Mutex<Vec<Weak<Line>>>,
    /// Somebody has been sent something that is still here.
    is_waiting: AtomicBool,
}

impl Post {
    /// Lets everything go.
    fn go(&self) {
        if self.is_waiting.swap(false, Ordering::AcqRel) {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            for line in lines.iter().filter_map(Weak::upgrade) {
                line.state().go();
            }
        }
    }
}

/// The line to one room.
pub(super) struct Line {
    room: String,
    post: Arc<Post>,
    state: Mutex<State>,
    has_come: Condvar,
}

struct State {
    /// Where messages to the room's host go; nobody has it if there is none.
    host: Result<Host, String>,
    /// How often there was another host.
    hosts: u64,
    outgoing: Vec<u8>,
    incoming: VecDeque<Vec<u8>>,
    /// Bytes of it.
    unread: usize,
    /// What came from each agent.
    inboxes: Vec<VecDeque<u8>>,
}

struct Host {
    /// Its number among those that there were.
    number: u64,
    messages: SyncSender<Vec<u8>>,
}

impl State {
    fn go(&mut self) {
        let batch = std::mem::take(&mut self.outgoing);
        if let (Ok(host), false) = (&self.host, batch.is_empty()) {
            // What a host does not take in time is lost, and sent again by who misses the answer.
            let _ = host.messages.try_send(batch);
        }
    }

    /// Hands out the message that came first; false if there is none.
    fn hand_out(&mut self) -> bool {
        let Some(mut message) = self.incoming.pop_front() else {
            return false;
        };
        self.unread -= message.len();
        for (agent, bytes) in batch::records(&mut message) {
            if let Some(inbox) = self.inboxes.get_mut(agent as usize)
                && inbox.len() + bytes.len() <= UNHEARD
            {
                inbox.extend(&*bytes);
            }
        }
        true
    }

    fn detach(&mut self, why: String) {
        self.host = Err(why);
        self.clear();
    }

    fn clear(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
        self.unread = 0;
        self.inboxes.iter_mut().for_each(VecDeque::clear);
    }
}

impl Line {
    /// To a room of so many agents that has no host yet.
    pub fn new(post: &Arc<Post>, room: &str, agents: usize) -> Arc<Self> {
        let line = Arc::new(Self {
            room: room.to_owned(),
            post: post.clone(),
            state: Mutex::new(State {
                host: Err("it has not been reached yet".to_owned()),
                hosts: 0,
                outgoing: Vec::new(),
                incoming: VecDeque::new(),
                unread: 0,
                inboxes: vec![VecDeque::new(); agents],
            }),
            has_come: Condvar::new(),
        });
        let mut lines = post.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(Arc::downgrade(&line));
        line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room has a host, which messages reach through `messages`. Returns the number by which what
    /// comes from it is taken in.
    pub fn attach(&self, messages: SyncSender<Vec<u8>>) -> u64 {
        let mut state = self.state();
        state.clear();
        state.hosts += 1;
        let number = state.hosts;
        state.host = Ok(Host { number, messages });
        number
    }

    /// The room has none any more.
    pub fn detach(&self, why: String) {
        self.state().detach(why);
        self.has_come.notify_all();
    }

    /// A message came from the host with this number.
    pub fn take_in(&self, number: u64, message: &[u8]) {
        let mut state = self.state();
        if !state.host.as_ref().is_ok_and(|host| host.number == number) {
            return;
        }
        state.unread += message.len();
        if state.unread > UNREAD + UNREAD_OF_EACH * state.inboxes.len() {
            let room = crate::plain(&self.room, 200);
            state.detach(format!("the host of {room} floods its line"));
        } else {
            state.incoming.push_back(message.to_vec());
        }
        self.has_come.notify_all();
    }

    /// The line to one of the room's agents.
    pub fn strand(self: &Arc<Self>, agent: usize) -> Strand {
        let hosts = self.state().hosts;
        Strand {
            line: self.clone(),
            agent,
            host: hosts,
        }
    }
}

/// The line to one agent of a room.
pub(super) struct Strand {
    line: Arc<Line>,
    agent: usize,
    /// The host that it leads to.
    host: u64,
}

impl Strand {
    /// Whether the room's host is still the one that this line led to.
    fn check(&self, state: &State) -> io::Result<()> {
        let why = match &state.host {
            Ok(host) if host.number == self.host => return Ok(()),
            Ok(_) => "another host has come",
            Err(why) => why,
        };
        Err(io::Error::new(io::ErrorKind::NotConnected, why))
    }
}

impl Transport for Strand {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.line.state();
        self.check(&state)?;
        batch::push(&mut state.outgoing, self.agent as u32, bytes);
        if state.outgoing.len() >= batch::FULL {
            state.go();
        } else {
            self.line.post.is_waiting.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.line.post.go();
        let mut state = self.line.state();
        let mut overdue = 0;
        loop {
            self.check(&state)?;
            let inbox = &mut state.inboxes[self.agent];
            if !inbox.is_empty() {
                return io::Read::read(inbox, buffer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                overdue += 1;
            }
            if overdue > OVERDUE {
                return Ok(0);
            }
            if state.hand_out() {
                continue;
            }
            if left.is_zero() {
                return Ok(0);
            }
            let waited = self.line.has_come.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        let state = self.line.state();
        match &state.host {
            Ok(host) => {
                self.host = host.number;
                Ok(())
            }
            Err(why) => Err(io::Error::new(io::ErrorKind::NotConnected, why.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::time::Duration;

    fn attached(line: &Line) -> (u64, Receiver<Vec<u8>>) {
        let (sender, messages) = sync_channel(UNSENT);
        (line.attach(sender), messages)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn batch_of(records: &[(u32, &[u8])]) -> Vec<u8> {
        let mut batch = Vec::new();
        for (agent, bytes) in records {
            batch::push(&mut batch, *agent, bytes);
        }
        batch
    }

    #[test]
    fn what_is_sent_to_all_goes_out_as_one_message_to_each_room_when_one_is_listened_to() {
        let post = Arc::default();
        let rooms = [Line::new(&post, "lab", 2), Line::new(&post, "lab", 2)];
        let hosts: Vec<_> = rooms.iter().map(|line| attached(line)).collect();
        let mut strands: Vec<Strand> = rooms
            .iter()
            .flat_map(|room| [room.strand(0), room.strand(1)])
            .collect();
        for (strand, byte) in strands.iter_mut().zip(1..) {
            strand.send(&[byte, 0]).unwrap();
        }
        assert!(
            hosts
                .iter()
                .all(|(_, messages)| messages.try_recv().is_err())
        );
        assert_eq!(strands[3].receive(&mut [0; 8], Instant::now()).unwrap(), 0);
        let sent: Vec<Vec<u8>> = hosts
            .iter()
            .map(|host| host.1.try_recv().unwrap())
            .collect();
        let expected = [
            batch_of(&[(0, &[1, 0]), (1, &[2, 0])]),
            batch_of(&[(0, &[3, 0]), (1, &[4, 0])]),
        ];
        assert_eq!(sent, expected);
        assert!(
            hosts
                .iter()
                .all(|(_, messages)| messages.try_recv().is_err())
        );
    }

    #[test]
    fn what_comes_is_handed_to_whom_it_is_for_and_too_much_of_it_is_lost() {
        let line = Line::new(&Arc::default(), "lab", 2);
        let (host, _messages) = attached(&line);
        let mut strands = [line.strand(0), line.strand(1)];
        line.take_in(
            host,
            &batch_of(&[(1, b"to one"), (0, b"to none"), (7, b"nobody")]),
        );
        let mut buffer = [0; 16];
        assert_eq!(strands[0].receive(&mut buffer, soon()).unwrap(), 7);
        assert_eq!(strands[1].receive(&mut buffer, soon()).unwrap(), 6);
        assert_eq!(&buffer[..6], b"to one");
        // What is too much for one agent is lost, and takes nothing from the other.
        for _ in 0..100 {
            line.take_in(host, &batch_of(&[(0, &[1; 1000])]));
        }
        line.take_in(host, &batch_of(&[(1, b"still")]));
        while strands[1].receive(&mut buffer, soon()).unwrap() == 0 {}
        assert_eq!(&buffer[..5], b"still");
        assert!(line.state().inboxes[0].len() <= UNHEARD);
    }

    #[test]
    fn a_host_that_floods_is_not_heard_again() {
        let line = Line::new(&Arc::default(), "lab", 1);
        let (host, _messages) = attached(&line);
        let mut strand = line.strand(0);
        for _ in 0..100 {
            line.take_in(host, &[0xff; 1 << 17]);
        }
        let error = strand.receive(&mut [0; 8], soon()).unwrap_err();
        assert_eq!(error.to_string(), "the host of lab floods its line");
        assert_eq!(line.state().unread, 0);
        assert!(strand.reopen().is_err());
    }

    #[test]
    fn a_line_whose_host_has_gone_is_broken_until_it_is_opened_again() {
        let line = Line::new(&Arc::default(), "lab", 1);
        let (old, messages) = attached(&line);
        let mut strand = line.strand(0);
        line.detach("the host has gone".to_owned());
        assert!(messages.recv().is_err(), "nothing is sent to it any more");
        let error = strand.send(&[1]).unwrap_err().to_string();
        assert_eq!(error, "the host has gone");
        assert!(strand.reopen().is_err());
        let (_, messages) = attached(&line);
        // What the old one said late is not the new one's.
        line.take_in(old, &batch_of(&[(0, b"late")]));
        assert!(strand.receive(&mut [0; 8], soon()).is_err());
        strand.reopen().unwrap();
        strand.send(&[1]).unwrap();
        assert_eq!(strand.receive(&mut [0; 8], soon()).unwrap(), 0);
        assert!(messages.try_recv().is_ok());
    }

    #[test]
    fn who_waits_is_woken_by_a_message_and_by_the_hosts_end() {
        let line = Line::new(&Arc::default(), "lab", 1);
        let (host, _messages) = attached(&line);
        let mut strand = line.strand(0);
        let long = Instant::now() + Duration::from_secs(60);
        let other = line.clone();
        let speaker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            other.take_in(host, &batch_of(&[(0, b"x")]));
            std::thread::sleep(Duration::from_millis(20));
            other.detach("gone".to_owned());
        });
        assert_eq!(strand.receive(&mut [0; 8], long).unwrap(), 1);
        assert!(strand.receive(&mut [0; 8], long).is_err());
        speaker.join().unwrap();
    }
}
