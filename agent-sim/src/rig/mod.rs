//! Boards in the loop: real firmware at the end of real lines, and what is done to it.
//!
//! 1. [`Boards`] says where boards are, as people write it: `qemu=6`, `serial=/dev/ttyACM0`.
//! 2. A [`Rig`] starts them, gives each the run's policy, and hands out a [`BoardLink`] for each: the
//!    first agents of a swarm are on boards, the others in this process.
//! 3. Before each step the rig carries out the faults that are due ([`BoardFault`](crate::fault::BoardFault)): processes are
//!    killed and stopped, cables pulled.
//! 4. Every [`Node`] keeps a [`Diary`], which the report tells.
//!
//! In lock-step the field waits for every node that is thought to live, so that a run with boards is
//! the same, bit for bit, as one without. In real time it waits for nobody.

mod account;
mod address;
mod cable;
mod diary;
mod link;
mod link_kind;
mod mishap;
mod node;
mod recent;
mod rooms;
mod wires;

pub use address::{BAUD, BadLink, Boards};
pub use diary::{Diary, Event, State};
pub use link::BoardLink;
pub use link_kind::LinkKind;
pub use node::{Node, Payload, cause};
pub use rooms::Rooms;

use crate::fault::{Deed, Fault, Who, draw_count};
use crate::standing::Stand;
use cable::Cable;
use link::{Nodes, lock};
use node_link::device_log::{Decoder, Follower};
use node_link::emulated::THERMOMETERS;
use node_link::{
    BoardOptions, Clock, EmulatedBoard, Machine, NodeConduct, NodeStatus, PlaceOffer, Session,
    SessionError, SharedLine, Transport, serial, tcp,
};
use rayon::prelude::*;
use rooms::Seat;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trust::Grant;

/// How the field and the boards keep time together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// How long a node is waited for before it is given up.
    pub patience: Duration,
    /// When the run began and how it goes with the wall clock; `None` in lock-step.
    real_time: Option<RealTime>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct RealTime {
    began: Instant,
    /// The field's microseconds in one of the wall clock's.
    speed: f64,
    interval_us: f64,
}

impl Pace {
    /// The field waits for the nodes.
    pub fn lock_step(patience: Duration) -> Self {
        Self {
            patience,
            real_time: None,
        }
    }

    /// The field goes on with the wall clock, `speed` times as fast, in steps of `interval_us`.
    pub fn real_time(patience: Duration, speed: f64, interval_us: f64) -> Self {
        let began = Instant::now();
        Self {
            patience,
            real_time: Some(RealTime {
                began,
                speed,
                interval_us,
            }),
        }
    }

    fn is_lock_step(&self) -> bool {
        self.real_time.is_none()
    }

    /// The pace of a run that begins now.
    fn beginning_now(mut self) -> Self {
        if let Some(time) = &mut self.real_time {
            time.began = Instant::now();
        }
        self
    }

    /// Until when the answer to an observation of `now_us`, sent at `sent`, counts from a node that
    /// is waited for that long.
    fn deadline(&self, sent: Instant, patience: Duration, now_us: u64) -> Instant {
        match &self.real_time {
            None => sent + patience,
            Some(time) => time.wall(now_us as f64 + time.interval_us),
        }
    }
}

impl RealTime {
    fn wall(&self, us: f64) -> Instant {
        self.began + Duration::from_secs_f64(us * 1e-6 / self.speed)
    }
}

/// Where `cargo xtask firmware build` puts images, seen from the root of the source tree.
pub const BUILT_IMAGES: &str = "target/firmware/images";

/// Where images for emulated boards are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Images {
    /// One for all.
    File(PathBuf),
    /// One for each machine, named after it and, of some, what they can besides.
    Folder {
        /// Where they are.
        folder: PathBuf,
        /// What follows the machine's name.
        suffix: &'static str,
    },
}

impl Images {
    /// Those that were built here.
    pub fn built() -> Self {
        Self::in_folder(BUILT_IMAGES)
    }

    /// Those in a folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self::Folder {
            folder: folder.into(),
            suffix: "",
        }
    }

    /// Those that were built here of boards that sense and act by themselves.
    pub fn built_standalone() -> Self {
        Self::Folder {
            folder: BUILT_IMAGES.into(),
            suffix: "-standalone",
        }
    }

    fn of(&self, machine: Machine) -> PathBuf {
        match self {
            Self::File(file) => file.clone(),
            Self::Folder { folder, suffix } => {
                folder.join(format!("{}{suffix}.elf", machine.name()))
            }
        }
    }
}

/// What boards are started with.
#[derive(Clone)]
pub struct Setup {
    /// The images of emulated boards.
    pub images: Images,
    /// Folder for the flash of emulated boards, where it outlives the run.
    pub flash: Option<PathBuf>,
    /// The rooms on networks that boards name.
    pub rooms: Rooms,
    /// The key of the boards' link, for boards that ask for one.
    pub link_key: Option<Grant>,
    /// What every node is to run; `None` to leave them as they are.
    pub payload: Option<Payload>,
    /// How the boards and the field keep time.
    pub pace: Pace,
    /// The line on which emulated boards hear each other, for images that do.
    pub bus: Option<Arc<SharedLine>>,
    /// Whether the nodes' logs are decoded.
    pub log: bool,
    /// Decides which boards the faults hit.
    pub seed: u64,
}

/// The boards of a run.
pub struct Rig {
    nodes: Nodes,
    faults: Vec<Planned>,
    pace: Mutex<Pace>,
    /// Policies that boards can be given on the way, by the names that faults call them.
    shelf: Mutex<BTreeMap<String, Payload>>,
    /// Is there as long as they are.
    _bus: Option<Arc<SharedLine>>,
}

/// A fault with everything settled.
struct Planned {
    fault: Fault,
    begins: usize,
    ends: Option<usize>,
    victims: Vec<usize>,
}

/// A board that is not there, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The board.
    pub name: String,
    /// The reason, with what to do.
    pub why: String,
}

impl Rig {
    /// Starts all boards at the same time, and says which could not be reached. `progress` hears how
    /// many are ready.
    pub fn start(
        boards: &[Boards],
        setup: &Setup,
        progress: &(dyn Fn() + Sync),
    ) -> (Self, Vec<Absent>) {
        let places: Vec<(String, Place)> = boards
            .iter()
            .flat_map(|boards| places(boards, &setup.rooms))
            .collect();
        let started = waiting(&places, |index, (name, place)| {
            let mut node = Node::new(
                name.clone(),
                place.kind(),
                setup.payload.clone(),
                setup.pace,
            );
            let connected = open(&mut node, place, setup, index);
            progress();
            (node, connected.err())
        });
        let mut absent = Vec::new();
        let nodes = started.into_iter().map(|(mut node, error)| {
            if let Some(why) = error {
                node.note(format!("not there: {why}"));
                absent.push(Absent {
                    name: node.name.clone(),
                    why,
                });
            }
            Mutex::new(node)
        });
        let rig = Self {
            nodes: nodes.collect(),
            faults: Vec::new(),
            pace: Mutex::new(setup.pace),
            shelf: Mutex::default(),
            _bus: setup.bus.clone(),
        };
        (rig, absent)
    }

    /// The rig, with the faults of boards among `faults` for a run of `steps` steps.
    pub fn with_faults(mut self, faults: &[Fault], steps: usize, seed: u64) -> Self {
        let step = |share: f64| (share * steps as f64).round() as usize;
        let mut hit = Vec::new();
        for (index, fault) in faults.iter().enumerate() {
            if fault.on_board().is_none() {
                continue;
            }
            let victims = self.victims(&fault.who, &hit, seed, index);
            hit.extend(&victims);
            self.faults.push(Planned {
                fault: fault.clone(),
                begins: step(fault.at),
                ends: fault.until.map(step),
                victims,
            });
        }
        self
    }

    /// The rig at the pace of the wall clock, beginning with the first step.
    pub fn in_real_time(self, speed: f64, interval_us: f64) -> Self {
        let pace = Pace::real_time(self.pace().patience, speed, interval_us);
        self.set_pace(pace);
        self
    }

    /// The rig with another time after which a node counts as silent.
    pub fn with_patience(self, patience: Duration) -> Self {
        let pace = Pace {
            patience,
            ..self.pace()
        };
        self.set_pace(pace);
        self
    }

    fn pace(&self) -> Pace {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_pace(&self, pace: Pace) {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = pace;
        for index in 0..self.nodes.len() {
            self.node(index).set_pace(pace);
        }
    }

    /// Boards are drawn from those that were not `hit` before, as long as there are enough.
    fn victims(&self, who: &Who, hit: &[usize], seed: u64, index: usize) -> Vec<usize> {
        match who {
            Who::Boards { link, count } => {
                let of_kind = |node: &usize| link.is_none_or(|kind| self.node(*node).kind == kind);
                let all: Vec<usize> = (0..self.nodes.len()).filter(of_kind).collect();
                match count {
                    None => all,
                    Some(count) => {
                        let fresh = all.iter().copied().filter(|node| !hit.contains(node));
                        let fresh: Vec<usize> = fresh.collect();
                        let from = if fresh.len() < *count { all } else { fresh };
                        let drawn = draw_count(*count, from.len(), seed, index);
                        drawn.into_iter().map(|k| from[k]).collect()
                    }
                }
            }
            Who::Ids(ids) => ids.within(self.nodes.len()),
            _ => (0..self.nodes.len()).collect(),
        }
    }

    /// The boards' number.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no boards.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The link to an agent that is on a board; the agent begins anew.
    pub fn link(&self, agent: usize) -> Option<BoardLink> {
        let exists = agent < self.nodes.len();
        exists.then(|| BoardLink::new(self.nodes.clone(), agent))
    }

    /// A board.
    pub fn node(&self, index: usize) -> MutexGuard<'_, Node> {
        lock(&self.nodes[index])
    }

    /// Breaks and mends what is due before `step`, counted from 0.
    pub fn before(&self, step: usize) {
        if step == 0 {
            // Not before: a node that was slow to make ready would have made all others late.
            self.set_pace(self.pace().beginning_now());
        }
        for index in 0..self.nodes.len() {
            self.node(index).begin_step(step);
        }
        for planned in &self.faults {
            for &victim in &planned.victims {
                let name = planned.fault.what.kind.name;
                if planned.begins == step {
                    self.begin(&planned.fault, victim, format!("fault: {name}"));
                }
                if planned.ends == Some(step) {
                    self.end(&planned.fault, victim, format!("end of fault: {name}"));
                }
            }
        }
    }

    /// Does to a board what a fault does, and notes it in those words.
    pub fn begin(&self, fault: &Fault, board: usize, words: String) {
        let Some(done) = fault.on_board() else {
            return;
        };
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let deed = Deed {
            ends: fault.until.is_some(),
            policy: fault.what.file().and_then(|name| shelf.get(name)),
        };
        let mut node = self.node(board);
        node.note(words);
        (done.begin)(&mut node, &deed);
    }

    /// Undoes it.
    pub fn end(&self, fault: &Fault, board: usize, words: String) {
        if let Some(done) = fault.on_board() {
            let mut node = self.node(board);
            node.note(words);
            (done.end)(&mut node);
        }
    }

    /// Keeps a policy that boards can be given on the way, by the name that faults call it.
    pub fn shelve(&self, name: &str, policy: Payload) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.insert(name.to_owned(), policy);
    }

    /// In real time: waits for the end of `step`, counted from 0.
    pub fn after(&self, step: usize) {
        if let Some(time) = &self.pace().real_time {
            let end = time.wall((step + 1) as f64 * time.interval_us);
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
        }
    }

    /// How the nodes that answer say they are, by board.
    pub fn statuses(&self) -> Vec<Option<NodeStatus>> {
        waiting(&self.nodes, |_, node| lock(node).status())
    }

    /// How the nodes say they get on at their places, by board; why not, where they do not.
    pub fn conducts(&self) -> Vec<Result<NodeConduct, SessionError>> {
        waiting(&self.nodes, |_, node| lock(node).conduct())
    }

    /// Puts a board, which has been [given](Self::configure) that place, there: its sensors and its actuator are
    /// the plant's from now on, and nobody shows it anything. Its clock goes so many times as fast as the wall's.
    pub fn stand_at(&self, index: usize, stand: Stand, rate: f64) {
        self.node(index).stand_at(stand, rate);
    }

    /// Gives a board a place, or none.
    pub fn configure(&self, index: usize, offer: &PlaceOffer) -> Result<NodeConduct, SessionError> {
        self.node(index).configure(offer)
    }

    /// Has a board hold its window at this, or at what its place says.
    pub fn aim_at(&self, index: usize, target: Option<f32>) -> Result<NodeConduct, SessionError> {
        self.node(index).aim_at(target)
    }

    /// The largest share of its stack that each board which answers has used.
    pub fn stack_shares(&self) -> Vec<f64> {
        let shares = self.statuses().into_iter().flatten().map(|status| {
            let counters = status.counters;
            f64::from(counters.stack_used) / f64::from(counters.stack_size.max(1))
        });
        shares.collect()
    }

    /// The lines that nodes have logged since last asked, each with its node's name.
    pub fn new_log_lines(&self) -> Vec<(String, String)> {
        let lines = (0..self.nodes.len()).flat_map(|index| {
            let mut node = self.node(index);
            let name = node.name.clone();
            let lines = node.new_log_lines();
            lines.into_iter().map(move |line| (name.clone(), line))
        });
        lines.collect()
    }
}

/// Does something with all of `what` that is mostly waiting: more at a time than there are cores.
fn waiting<T: Sync, R: Send>(what: &[T], act: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(what.len().clamp(1, 16))
        .build();
    let all = || {
        let acts = what.par_iter().enumerate();
        acts.map(|(index, one)| act(index, one)).collect()
    };
    match pool {
        Ok(pool) => pool.install(all),
        Err(_) => all(),
    }
}

/// What a board is called in reports.
fn short(machine: Machine) -> &'static str {
    let name = machine.name();
    name.strip_prefix("mps2-").unwrap_or(name)
}

/// Where one board is.
enum Place {
    Qemu { machine: Machine },
    Serial { port: String, baud: u32 },
    Tcp { address: String },
    Zenoh { seat: Seat },
}

impl Place {
    fn kind(&self) -> LinkKind {
        match self {
            Self::Qemu { .. } => LinkKind::Qemu,
            Self::Serial { .. } => LinkKind::Serial,
            Self::Tcp { .. } => LinkKind::Tcp,
            Self::Zenoh { .. } => LinkKind::Zenoh,
        }
    }
}

fn places(boards: &Boards, rooms: &Rooms) -> Vec<(String, Place)> {
    match boards {
        Boards::Qemu { count, machine } => {
            let place = |_| Place::Qemu { machine: *machine };
            (0..*count)
                .map(|k| (format!("{} {k}", short(*machine)), place(k)))
                .collect()
        }
        Boards::Serial { port, baud } => vec![(
            port.clone(),
            Place::Serial {
                port: port.clone(),
                baud: *baud,
            },
        )],
        Boards::Tcp { address } => vec![(
            address.clone(),
            Place::Tcp {
                address: address.clone(),
            },
        )],
        Boards::Zenoh { key } => {
            let agents = rooms.agents(key);
            agents
                .map(|(name, seat)| (name, Place::Zenoh { seat }))
                .collect()
        }
    }
}

/// What leads to a board.
struct Reached {
    session: Session,
    /// Its process, if that is ours.
    board: Option<EmulatedBoard>,
}

fn reach(place: &Place, setup: &Setup, index: usize) -> Result<Reached, String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    let line = match place {
        Place::Qemu { machine } => {
            let flash = setup
                .flash
                .as_ref()
                .map(|folder| folder.join(format!("{}-{index}.flash", machine.name())));
            let (board, session) = EmulatedBoard::start(&BoardOptions {
                machine: *machine,
                image: setup.images.of(*machine),
                clock: Clock::Wall,
                flash,
                // For images that sense by themselves; others never look.
                thermometers: match machine {
                    Machine::An386 => THERMOMETERS,
                    Machine::An500 | Machine::An505 | Machine::VirtRv32 => 0,
                },
                bus: (setup.bus.as_ref()).map(|line| line.socket().to_owned()),
            })
            .map_err(|error| said(&error))?;
            let board = Some(board);
            return Ok(Reached { session, board });
        }
        Place::Serial { port, baud } => serial::open(port, *baud).map_err(|error| said(&error))?,
        Place::Tcp { address } => tcp::connect(address).map_err(|error| said(&error))?,
        Place::Zenoh { seat } => setup.rooms.line(seat),
    };
    Ok(Reached {
        session: Session::new(line),
        board: None,
    })
}

fn open(node: &mut Node, place: &Place, setup: &Setup, index: usize) -> Result<(), String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    let Reached { session, board } = reach(place, setup, index)?;
    if let Place::Qemu { machine } = place
        && setup.log
    {
        let decoder = Decoder::new(&setup.images.of(*machine)).map_err(|error| said(&error))?;
        node.log = Some(Follower::new(Arc::new(decoder)));
    }
    node.board = board;
    let session = match &setup.link_key {
        Some(grant) => session.with_key(grant.clone()),
        None => session,
    };
    let plug = node.plug.clone();
    let session =
        session.through(|line| Box::new(Cable::new(line, plug, setup.seed ^ index as u64)));
    node.connect(session).map_err(|error| said(&error))
}

/// A board that somebody else talks to through this process.
pub struct Wire {
    /// What people call it.
    pub name: String,
    /// What it says and is told passes here.
    pub line: Box<dyn Transport>,
    /// Ends with this, if it is a process of ours.
    _board: Option<EmulatedBoard>,
}

/// Starts boards, or reaches them, and leaves what they are told to others.
pub fn wires(boards: &[Boards], setup: &Setup) -> Result<Vec<Wire>, Absent> {
    let places: Vec<(String, Place)> = boards
        .iter()
        .flat_map(|boards| places(boards, &setup.rooms))
        .collect();
    let reached = waiting(&places, |index, (name, place)| {
        let name = name.clone();
        match reach(place, setup, index) {
            Ok(Reached { session, board }) => Ok(Wire {
                name,
                line: session.into_transport(),
                _board: board,
            }),
            Err(why) => Err(Absent { name, why }),
        }
    });
    reached.into_iter().collect()
}
