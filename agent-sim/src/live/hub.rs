//! Between the loop and its viewers.

use super::{Command, Frame};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// Commands that wait for the loop, at most.
const QUEUE: usize = 256;
/// Answers that wait for a viewer, at most: one that does not read them misses some.
pub const ANSWERS: usize = 64;

/// A command, and where its answer goes.
pub struct Order {
    /// What is wanted.
    pub command: Command,
    /// The viewer who wants it.
    pub answer: mpsc::Sender<String>,
}

/// The loop's end of the queue.
pub type Orders = Receiver<Order>;

/// How the loop waits for commands.
pub trait Ear {
    /// The next command, if one comes in that time.
    fn hear(&self, wait: Duration) -> impl Future<Output = Result<Order, RecvTimeoutError>>;
}

/// Waits in the call: its future is always ready.
impl Ear for Orders {
    fn hear(&self, wait: Duration) -> impl Future<Output = Result<Order, RecvTimeoutError>> {
        ready(self.recv_timeout(wait))
    }
}

/// The newest of everything that viewers are shown. Nothing here waits for anybody.
pub struct Hub {
    /// What does not change from step to step: the problem, the colours.
    hello: watch::Sender<Arc<str>>,
    /// Where the run stands.
    state: watch::Sender<Arc<str>>,
    /// What the selected agent sees.
    agent: watch::Sender<Arc<str>>,
    frame: watch::Sender<Option<Arc<Frame>>>,
    orders: SyncSender<Order>,
    /// Rings with every command.
    bell: Notify,
    viewers: AtomicUsize,
}

/// A viewer's ends.
pub struct Seat {
    /// The problem, the colours.
    pub hello: watch::Receiver<Arc<str>>,
    /// Where the run stands.
    pub state: watch::Receiver<Arc<str>>,
    /// What the selected agent sees.
    pub agent: watch::Receiver<Arc<str>>,
    /// The newest frame.
    pub frame: watch::Receiver<Option<Arc<Frame>>>,
    hub: Arc<Hub>,
}

impl Hub {
    /// A hub, and the loop's end of its queue.
    pub fn new() -> (Arc<Self>, Orders) {
        let (orders, queue) = sync_channel(QUEUE);
        let nothing = || watch::Sender::new(Arc::from(""));
        let hub = Self {
            hello: nothing(),
            state: nothing(),
            agent: nothing(),
            frame: watch::Sender::new(None),
            orders,
            bell: Notify::new(),
            viewers: AtomicUsize::new(0),
        };
        (Arc::new(hub), queue)
    }

    /// Whether anybody looks.
    pub fn is_watched(&self) -> bool {
        self.viewers.load(Ordering::Relaxed) > 0
    }

    /// Another run begins.
    pub fn set_hello(&self, text: String) {
        self.hello.send_replace(text.into());
    }

    /// The run stands elsewhere.
    pub fn set_state(&self, text: String) {
        self.state.send_replace(text.into());
    }

    /// The selected agent has seen something.
    pub fn set_agent(&self, text: String) {
        self.agent.send_replace(text.into());
    }

    /// There is another frame.
    pub fn show(&self, frame: Arc<Frame>) {
        self.frame.send_replace(Some(frame));
    }

    /// Takes a seat; none if there are as many viewers already.
    pub fn sit_down(self: &Arc<Self>, most: usize) -> Option<Seat> {
        let seated = |viewers| (viewers < most).then_some(viewers + 1);
        self.viewers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, seated)
            .ok()?;
        Some(Seat {
            hello: self.hello.subscribe(),
            state: self.state.subscribe(),
            agent: self.agent.subscribe(),
            frame: self.frame.subscribe(),
            hub: Arc::clone(self),
        })
    }

    /// Hands a command to the loop; says why not if it cannot be.
    pub fn order(&self, order: Order) -> Result<(), &'static str> {
        let handed = self.orders.try_send(order);
        self.bell.notify_one();
        handed.map_err(|error| match error {
            TrySendError::Full(_) => "too many commands at once; this one was dropped",
            TrySendError::Disconnected(_) => "the run is over",
        })
    }

    /// Until a command comes, or at once if one came since this was last waited for: for a loop that
    /// cannot wait on its queue.
    pub async fn ordered(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}
