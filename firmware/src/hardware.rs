//! What a board brings to the node.

use core::future::{Future, ready};

use agent_core::{
    agent::Action,
    message::{History, Mishap},
};
use embassy_time::{Duration, Instant};
use embedded_storage::nor_flash::NorFlash;
use place::Equipment;

use crate::{air::Air, keys::Keys};

/// A node that has nothing to do completes a pass of its fail-safe at least this often, in every
/// state.
pub const HEARTBEAT: Duration = Duration::from_millis(250);

/// Everything that the node works with but its line. What holds records may be other flash than what holds
/// policies: on some chips that has smaller sectors.
pub struct Hardware<S, W, A, N = NoSensors, R = S> {
    /// Name of the board, for reports.
    pub board: &'static str,
    /// Whom it obeys and whose policies it runs.
    pub keys: Keys,
    /// Two places for a policy. While the node runs what lies in one, it writes the other.
    pub slots: [S; 2],
    /// A place for what a node with keys must not forget: two sectors, or one.
    pub journal: R,
    /// Restarts a node that has stopped working.
    pub watchdog: W,
    /// Carries out actions.
    pub actuator: A,
    /// What it takes to act by itself, if the board has that.
    pub station: Option<Station<R, N>>,
    /// How the node has fared since its power came on.
    pub history: History,
    /// What it said at its last panic or fault.
    pub last_words: &'static str,
    /// Bytes of stack that were ever used, and those that there are; both 0 where nobody can tell.
    pub stack: fn() -> [u32; 2],
    /// Starts the node afresh.
    pub restart: fn() -> !,
    /// Brings the node to grief, in images for tests.
    pub provoke: Option<fn(Mishap)>,
}

/// What a node works with that senses and acts by itself.
pub struct Station<R, N> {
    /// Two places for what it knows of its place, a sector each. While one holds it, the other is written.
    pub slots: [R; 2],
    /// What it reads.
    pub sensors: N,
    /// What its neighbours say, if it has a bus: [`air::attend`](crate::air) runs beside the node.
    pub air: Option<&'static Air>,
}

/// Flash for one policy, from offset 0, that the core can read like any other memory.
pub trait PolicyFlash: NorFlash {
    /// The longest that the core is kept from running anything else while a sector is erased. An
    /// agent that may not be blind for so long fails safe first; so does every agent on a board that
    /// does not say.
    const STALL: Duration = Duration::MAX;

    /// All of it, as it reads now. Starts on a multiple of 16 bytes.
    fn bytes(&self) -> &[u8];
}

/// A clock that restarts the node unless it is fed in time: at least four times [`HEARTBEAT`], and
/// longer than the board's flash takes to erase a sector or the node to check a policy.
pub trait Watchdog {
    /// Gives the node its full time again. Called when a control step is complete, and nowhere else.
    fn feed(&mut self);
}

/// What carries out an agent's actions: the board's actuator, or a host that is only told.
pub trait Actuator {
    /// From now on actions are of a policy that asks for at most so much force either way; 0 if it asks for
    /// none.
    fn limit(&mut self, _force: f32) {}

    /// Does `action` from now on. Called after each control step, and between two observations
    /// when the agent holds or fails safe on its own.
    fn apply(&mut self, action: &Action);
}

/// Two of which each does its part.
impl<A: Actuator, B: Actuator> Actuator for (A, B) {
    fn limit(&mut self, force: f32) {
        self.0.limit(force);
        self.1.limit(force);
    }

    fn apply(&mut self, action: &Action) {
        self.0.apply(action);
        self.1.apply(action);
    }
}

/// What reads the field where the node is.
pub trait Sensors {
    /// How many channels there are, from 0.
    const CHANNELS: u8;
    /// Whether the board also has a bus, on which neighbours say what theirs read: an image for one without it
    /// carries next to nothing of that.
    const BUS: bool = false;
    /// Both.
    const EQUIPMENT: Equipment = Equipment {
        channels: Self::CHANNELS,
        bus: Self::BUS,
    };

    /// Reads a channel, in its own units; none if it gives nothing. A node waits for it no longer than until
    /// its next step is due: what is given up must leave the bus fit to be used again.
    fn read(&mut self, channel: u8) -> impl Future<Output = Option<f32>>;
}

/// Sensors of a board that has a bus besides, on which neighbours say what theirs read.
pub struct WithBus<N>(pub N);

impl<N: Sensors> Sensors for WithBus<N> {
    const CHANNELS: u8 = N::CHANNELS;
    const BUS: bool = true;

    fn read(&mut self, channel: u8) -> impl Future<Output = Option<f32>> {
        self.0.read(channel)
    }
}

/// Most bytes of a bus's frame: those of CAN FD.
pub const MTU: usize = 64;

/// What all nodes speak and listen on: what one says all others hear. Whoever hears itself hears nobody new.
pub trait Bus {
    /// Says a frame if it may now; else it is to be tried again then.
    fn send(&mut self, frame: &[u8]) -> impl Future<Output = Result<(), Busy>>;

    /// The next frame that is heard, whole or not, and how long it is. Whoever gives it up loses nothing.
    fn receive(&mut self, frame: &mut [u8; MTU]) -> impl Future<Output = usize>;
}

/// Somebody else speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// When it may be this one's turn.
    pub until: Instant,
}

/// The sensors of a board that has none: an image for it carries nothing of what would use them.
pub enum NoSensors {}

impl Sensors for NoSensors {
    const CHANNELS: u8 = 0;

    fn read(&mut self, _: u8) -> impl Future<Output = Option<f32>> {
        ready(None)
    }
}
