//! The node's loop: answer every command, and fail safe when none come.
//!
//! ```text
//!                     newest good policy in flash
//!  boot ───┬─────────────────────────────────────────► runs it, and stores another beside it
//!          │                                             │            ▲  ▲
//!          └── none ──► waits, and stores one ── good ───│────────────┘  │
//!                           ▲          └───── refused    └─ good, refused ┘
//!                           └───────────────────┘
//! ```
//!
//! What a node answers depends on the commands alone, so a host that simulates slower or faster
//! than real time gets the same bits as from an agent in its own process. The node's clock only
//! decides what its *actuator* does between two commands: there the agent's fail-safe runs on a
//! copy of its state, which the next command discards.
//!
//! The watchdog is fed by completed control steps and nothing else: an observation that was
//! answered or, when none come, one pass of the fail-safe, which takes place at least every
//! [`HEARTBEAT`].
//!
//! A node that has been given a [place](crate::places) and has sensors takes no observations: it makes its
//! own ([`standalone`](crate::standalone)), whatever else it does.

use core::{
    fmt::{self, Write as _},
    pin::{Pin, pin},
};

use ::place::{Conduct, conduct::CONDUCT};
use agent_core::{
    agent::{Action, AgentState, Mode},
    message::{
        Command, Counters, Guard, Hello, History, Mishap, Observation, Report, Status, UNASKED,
    },
    policy::Policy,
};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer};
use embedded_io_async::{Read, Write};

use crate::{
    admit::{Refusal, Terms},
    air::Air,
    hardware::{Actuator, HEARTBEAT, Hardware, PolicyFlash, Sensors, Station, Watchdog},
    journal::Journal,
    link::{Arrival, Proof, REPORT_FRAME, Receiver, Sender},
    places::{Offer, Places},
    sessions::{Sessions, Whose},
    standalone::Standing,
    store::Store,
};

/// Floats of working memory a node has for its policy (16 KiB). A 20 × 20 window with 80 cells of
/// the whole needs 22² for the patch, twice 480 for the features and two layers' outputs: under half.
pub const WORKSPACE: usize = 4096;

/// Most bytes of a board's name in a report.
const BOARD_NAME: usize = 32;

/// Most bytes of a node's last words in a report.
const LAST_WORDS: usize = 96;

/// Runs a node for ever.
///
/// It starts with a [`Report::Hello`] nobody asked for: the host learns that the node listens now,
/// or that it was restarted.
pub async fn run<
    I: Read,
    O: Write,
    S: PolicyFlash,
    D: Watchdog,
    A: Actuator,
    N: Sensors,
    R: PolicyFlash,
>(
    receiver: &mut Receiver<I>,
    sender: &mut Sender<O>,
    hardware: &mut Hardware<S, D, A, N, R>,
    workspace: &mut [f32; WORKSPACE],
) -> ! {
    let started = Instant::now();
    let (mut place_slots, sensors, air) = match &mut hardware.station {
        Some(Station {
            slots,
            sensors,
            air,
        }) => (Some(slots), Some(sensors), *air),
        None => (None, None, None),
    };
    let mut pulse = Pulse {
        watchdog: &mut hardware.watchdog,
        actuator: &mut hardware.actuator,
        sensors,
        air,
        // Nobody steps before the store is open.
        workspace: &mut [],
        standing: None,
        completed: started,
    };
    // What is needed for this alone takes no memory afterwards.
    let mut node = {
        let keys = hardware.keys.clone();
        // Only what has keys has something to remember.
        let speaks = N::BUS && keys.bus.is_some();
        let journal = match keys.link.is_some() || keys.guard_policies() || speaks {
            true => Journal::open(&mut hardware.journal),
            false => None,
        };
        // Without a journal no nonce is known to be new: nobody is let in.
        let starts = journal.as_ref().map(Journal::starts);
        let link_key = keys.link.clone();
        if N::BUS
            && let Some(air) = air
        {
            air.open(keys.bus.as_ref(), starts);
        }
        let terms = Terms {
            keys,
            board: hardware.board,
        };
        let store = {
            let Hardware {
                slots,
                journal: kept,
                ..
            } = hardware;
            let open = pin!(Store::open(slots, kept, terms, journal, workspace));
            pulse.meanwhile(open, None).await
        };
        pulse.workspace = workspace;
        let places = match &place_slots {
            Some(slots) if N::CHANNELS > 0 => Places::open(slots, &store),
            _ => None,
        };
        Node {
            about: About {
                board: cut(hardware.board, BOARD_NAME),
                history: hardware.history,
                last_words: cut(hardware.last_words, LAST_WORDS),
                started,
                stack: hardware.stack,
            },
            sessions: Sessions::new(link_key, starts),
            store,
            places,
            misplaced: None,
            pulse: &mut pulse,
            restart: hardware.restart,
            provoke: hardware.provoke,
            steps: 0,
            frame_ticks: 0,
        }
    };
    {
        let hello = node.hello();
        let sending = pin!(sender.send(UNASKED, &hello, Proof::None));
        node.pulse.meanwhile(sending, None).await;
    }
    loop {
        let (used, spare) = node.store.arrange(&mut hardware.slots);
        let flash = Flash {
            used,
            spare,
            journal: &mut hardware.journal,
            places: place_slots.as_deref_mut(),
        };
        node.serve(receiver, sender, flash).await;
    }
}

/// The node's flash, by what it is used for now.
struct Flash<'h, S, R> {
    used: &'h mut S,
    spare: &'h mut S,
    journal: &'h mut R,
    places: Option<&'h mut [R; 2]>,
}

/// What a node says of itself.
struct About {
    board: &'static str,
    history: History,
    last_words: &'static str,
    started: Instant,
    stack: fn() -> [u32; 2],
}

/// Everything but the line and the flash.
struct Node<'n, 'h, D, A, N> {
    about: About,
    sessions: Sessions,
    store: Store,
    /// Of a node that has sensors.
    places: Option<Places>,
    /// Why it does not take the place that it has.
    misplaced: Option<Refusal>,
    pulse: &'n mut Pulse<'h, D, A, N>,
    restart: fn() -> !,
    provoke: Option<fn(Mishap)>,
    steps: u32,
    /// Of the last observation and its answer.
    frame_ticks: u32,
}

impl<D: Watchdog, A: Actuator, N: Sensors> Node<'_, '_, D, A, N> {
    /// Answers commands with the policy in `used`, if it holds one that runs, until another slot is
    /// the active one.
    async fn serve<I: Read, O: Write, S: PolicyFlash, R: PolicyFlash>(
        &mut self,
        receiver: &mut Receiver<I>,
        sender: &mut Sender<O>,
        flash: Flash<'_, S, R>,
    ) {
        let Flash {
            used,
            spare,
            journal,
            mut places,
        } = flash;
        let slot = self.store.active();
        let mut policy = self.store.load(used);
        self.stand(&policy, places.as_deref());
        let most = policy
            .as_ref()
            .and_then(|policy| policy.header().limits.force);
        self.pulse.actuator.limit(most.unwrap_or(0.0));
        let mut state = AgentState::new();
        let mut blind: Option<Blind> = None;
        self.pulse.actuator.apply(&Action::none(state.mode()));
        while self.store.active() == slot {
            if self.pulse.standing().is_some() && self.store.is_untried() {
                self.store.begin_trial(used);
                policy = self.store.load(used);
            }
            let deadline = self.pulse.next_pass(alone(&policy, &mut blind));
            let arrival = receiver.command(deadline, &mut self.sessions).await;
            self.pulse.pass_if_due(alone(&policy, &mut blind));
            if N::CHANNELS > 0
                && let Some(policy) = &policy
            {
                self.pulse.step_if_due(policy).await;
            }
            if self.pulse.has_acted() && self.store.is_on_trial() {
                self.store.prove(used);
                policy = self.store.load(used);
            }
            self.store.drop_stalled();
            let (number, command, whose) = match arrival {
                Some(Arrival::New(number, command, whose)) => (number, command, whose),
                Some(Arrival::Again) => {
                    let sending = pin!(sender.again());
                    self.pulse
                        .meanwhile(sending, alone(&policy, &mut blind))
                        .await;
                    continue;
                }
                None => continue,
            };
            let mut sentence = Sentence::new();
            let mut said = [0; CONDUCT];
            let mut challenged = false;
            let report = match (command, &policy) {
                (command, _) if !whose.may(&command) => match whose {
                    Whose::Hosts(_) => NO_RIGHT,
                    _ => NO_KEY,
                },
                (Command::Hello, _) => self.hello(),
                (Command::Status, _) => self.status(receiver.counters()),
                (Command::Open { rights, nonce }, _) => {
                    match self.sessions.challenge(rights, &nonce) {
                        Some(nonce) => {
                            challenged = true;
                            Report::Challenge { nonce }
                        }
                        None => KEYLESS,
                    }
                }
                (Command::Reset, _) => {
                    state = AgentState::new();
                    blind = None;
                    if let Some(standing) = self.pulse.standing() {
                        standing.reset();
                    }
                    self.pulse.actuator.apply(&Action::none(state.mode()));
                    self.hello()
                }
                (Command::Observe(_), _) if N::CHANNELS > 0 && self.has_place() => STANDS,
                (Command::Observe(_), None) => NO_POLICY,
                (Command::Observe(observation), Some(_)) => {
                    let arrived = Instant::now();
                    if self.store.is_untried() {
                        self.store.begin_trial(used);
                        policy = self.store.load(used);
                    }
                    match &policy {
                        None => NO_POLICY,
                        Some(policy) => {
                            let (action, ticks) = self.step(policy, &mut state, &observation);
                            blind = Some(Blind::new(state, observation.now_us, arrived));
                            Report::Action { action, ticks }
                        }
                    }
                }
                (
                    Command::PolicyBegin {
                        manifest,
                        signature,
                    },
                    _,
                ) => {
                    self.brace(&policy, S::STALL);
                    let begun = self.store.begin(used, spare, manifest, signature);
                    begun.unwrap_or_else(|refusal| refused(&mut sentence, refusal))
                }
                (Command::PolicyChunk { offset, bytes }, _) => {
                    if self.store.will_erase(bytes.len()) {
                        self.brace(&policy, S::STALL);
                    }
                    self.store.chunk(spare, offset, bytes)
                }
                (Command::PolicyCommit, _) => {
                    let checked = {
                        let check = pin!(self.store.check_whole(spare));
                        let alone = alone(&policy, &mut blind);
                        self.pulse.meanwhile(check, alone).await
                    };
                    let workspace = &mut *self.pulse.workspace;
                    let committed = match checked {
                        Ok(()) => self.store.commit(spare, journal, workspace),
                        Err(refusal) => Err(refusal),
                    };
                    match committed {
                        Ok(()) => self.hello(),
                        Err(refusal) => refused(&mut sentence, refusal),
                    }
                }
                (
                    Command::Configure {
                        place,
                        manifest,
                        signature,
                    },
                    _,
                ) => {
                    let offer = Offer {
                        place,
                        manifest,
                        signature,
                    };
                    self.brace(&policy, R::STALL);
                    let taken = self.configure(offer, &policy, places.as_deref_mut());
                    if taken.is_ok() {
                        state = AgentState::new();
                        blind = None;
                        self.pulse.actuator.apply(&Action::none(state.mode()));
                    }
                    self.conduct(taken, &mut sentence, &mut said)
                }
                (Command::Aim(told), _) => {
                    let taken = self.aim_at(told);
                    self.conduct(taken, &mut sentence, &mut said)
                }
                (Command::Conduct, _) => self.conduct(Ok(()), &mut sentence, &mut said),
                (Command::Restart, _) => {
                    self.pulse.actuator.apply(&Action::none(Mode::FailedSafe));
                    (self.restart)()
                }
                (Command::Provoke(mishap), _) => match self.provoke {
                    None => UNPROVOKED,
                    Some(provoke) => {
                        // A mishap stands for a control step that ends in one.
                        if self.store.is_untried() {
                            self.store.begin_trial(used);
                            policy = self.store.load(used);
                        }
                        provoke(mishap);
                        UNHARMED
                    }
                },
            };
            let proof = match (whose, self.sessions.current(), self.sessions.awaited()) {
                (Whose::Anybodys, ..) => Proof::None,
                (Whose::Hosts(_), Some(key), _) => Proof::Sealed(key),
                (_, _, Some(key)) if challenged => Proof::SealedAside(key),
                _ => Proof::Aside,
            };
            // A challenge belongs to no command of the session that it begins.
            let number = if challenged { UNASKED } else { number };
            {
                // A host that is slow to read does not keep the agent from failing safe.
                let sending = pin!(sender.send(number, &report, proof));
                let alone = alone(&policy, &mut blind);
                self.pulse.meanwhile(sending, alone).await;
            }
            if let Report::Action { action, .. } = report {
                self.frame_ticks = receiver.ticks().saturating_add(sender.ticks());
                self.pulse.complete();
                // An observation that is not valid has not run the network.
                if action.mode == Mode::Active && self.store.is_on_trial() {
                    self.store.prove(used);
                    policy = self.store.load(used);
                }
            }
        }
    }

    /// One control step, carried out, and the time it took to compute.
    fn step(
        &mut self,
        policy: &Policy,
        state: &mut AgentState,
        observation: &Observation<'_>,
    ) -> (Action, u32) {
        let (action, ticks) = timed_step(policy, self.pulse.workspace, state, observation);
        self.pulse.actuator.apply(&action);
        self.steps = self.steps.saturating_add(1);
        (action, ticks)
    }

    /// Takes the place that the node has, if there is one for this policy.
    fn stand<R: PolicyFlash>(&mut self, policy: &Option<Policy>, slots: Option<&[R; 2]>) {
        self.pulse.standing = None;
        self.misplaced = None;
        if N::CHANNELS == 0 {
            return;
        }
        let (Some(places), Some(slots), Some(policy)) = (&self.places, slots, policy) else {
            return;
        };
        match places.load(slots, policy, N::EQUIPMENT, &mut self.pulse.standing) {
            Ok(()) => log!(
                info,
                "acts by itself: {=bool}",
                self.pulse.standing.is_some()
            ),
            Err(refusal) => {
                log!(error, "the node's place is refused: {}", refusal);
                self.misplaced = Some(refusal);
            }
        }
    }

    /// Whether the node has a place, be it one that it cannot take.
    fn has_place(&self) -> bool {
        self.pulse.standing.is_some() || self.misplaced.is_some()
    }

    /// Takes another place, or none.
    fn configure<R: PolicyFlash>(
        &mut self,
        offer: Offer<'_>,
        policy: &Option<Policy>,
        slots: Option<&mut [R; 2]>,
    ) -> Result<(), Refusal> {
        if N::CHANNELS == 0 {
            return Err(Refusal::NoStation);
        }
        let (Some(places), Some(slots)) = (&mut self.places, slots) else {
            return Err(Refusal::NoStation);
        };
        let running = policy.as_ref().ok_or(Refusal::NoPolicy)?;
        places.take(slots, &self.store, offer, running, N::EQUIPMENT)?;
        self.stand(policy, Some(slots));
        Ok(())
    }

    /// Holds the whole window at this from now on, or at what the node's place says.
    fn aim_at(&mut self, told: Option<f32>) -> Result<(), Refusal> {
        match (self.pulse.standing(), self.misplaced) {
            (Some(standing), _) => standing.aim_at(told).map_err(Refusal::Place),
            (None, misplaced) => Err(misplaced.unwrap_or(Refusal::NoPlace)),
        }
    }

    /// How the node gets on at its place, if it has done what it was told.
    fn conduct<'r>(
        &self,
        done: Result<(), Refusal>,
        sentence: &'r mut Sentence,
        said: &'r mut [u8; CONDUCT],
    ) -> Report<'r> {
        let done = match N::CHANNELS {
            0 => Err(Refusal::NoStation),
            _ => done,
        };
        if let Err(refusal) = done {
            log!(warn, "not done: {}", refusal);
            return Report::Rejected {
                reason: sentence.of(refusal),
            };
        }
        let conduct = match (&self.pulse.standing, self.misplaced) {
            (Some(standing), _) => {
                Conduct::Alone(standing.conduct(self.pulse.air.filter(|_| N::BUS)))
            }
            (None, Some(refusal)) => Conduct::Refused {
                reason: sentence.of(refusal),
            },
            (None, None) => Conduct::Fed,
        };
        Report::Conduct {
            said: conduct.encode(said),
        }
    }

    /// Makes ready for a time in which nothing can be done: an actuator that could not be stopped in
    /// time is stopped before.
    fn brace(&mut self, policy: &Option<Policy>, stall: Duration) {
        let may_be_blind = |policy: &Policy| policy.header().timing.fail_safe_us;
        if let Some(fail_safe_us) = policy.as_ref().map(may_be_blind)
            && stall >= Duration::from_micros(fail_safe_us.into())
        {
            self.pulse.actuator.apply(&Action::none(Mode::FailedSafe));
        }
    }

    fn hello(&self) -> Report<'static> {
        Report::Hello(Hello {
            policy: self.store.policy(),
            reset: self.about.history.reset,
            boots: self.about.history.boots,
            guard: Guard {
                link: self.sessions.are_needed(),
                policies: self.store.wants_signatures(),
            },
        })
    }

    fn status(&self, line: Counters) -> Report<'static> {
        let About {
            board,
            history,
            last_words,
            started,
            stack,
        } = self.about;
        let [stack_used, stack_size] = stack();
        Report::Status(Status {
            board,
            firmware: env!("CARGO_PKG_VERSION"),
            fleet: self.store.fleet(),
            active: self.store.active(),
            slots: self.store.slots(),
            counter: self.store.counter(),
            history,
            last_words,
            counters: Counters {
                uptime_us: started.elapsed().as_micros(),
                steps: self.steps,
                frame_ticks: self.frame_ticks,
                stack_used,
                stack_size,
                ..line
            },
        })
    }
}

/// What goes on whatever else the node does: the steps of a node by itself, the fail-safe of one that is fed,
/// and the watchdog's food.
struct Pulse<'h, D, A, N> {
    watchdog: &'h mut D,
    actuator: &'h mut A,
    sensors: Option<&'h mut N>,
    /// What its neighbours say.
    air: Option<&'static Air>,
    workspace: &'h mut [f32],
    /// Of a node that senses and acts by itself.
    standing: Option<Standing>,
    /// When a control step was last complete.
    completed: Instant,
}

impl<D: Watchdog, A: Actuator, N: Sensors> Pulse<'_, D, A, N> {
    /// A control step is complete.
    fn complete(&mut self) {
        self.watchdog.feed();
        self.completed = Instant::now();
    }

    /// The node at its place, on a board that can have one: what would be done there is no part of other
    /// images.
    fn standing(&mut self) -> Option<&mut Standing> {
        match N::CHANNELS {
            0 => None,
            _ => self.standing.as_mut(),
        }
    }

    /// Whether the node, by itself, has just done what its policy says.
    fn has_acted(&mut self) -> bool {
        self.standing().is_some_and(|standing| standing.has_acted())
    }

    /// When there is something to do again.
    fn next_pass(&mut self, alone: Option<Alone<'_, '_>>) -> Instant {
        let heartbeat = self.completed + HEARTBEAT;
        let look = alone.and_then(|alone| alone.blind.as_ref()?.next_look(alone.policy));
        let pass = look.map_or(heartbeat, |look| look.min(heartbeat));
        match self.standing() {
            Some(standing) => pass.min(standing.due()),
            None => pass,
        }
    }

    /// One pass of the fail-safe, if it is time: however busy the line, none is left out.
    fn pass_if_due(&mut self, alone: Option<Alone<'_, '_>>) {
        let now = Instant::now();
        if let Some(Alone { policy, blind }) = alone
            && let Some(blind) = blind
            && blind.next_look(policy).is_some_and(|look| look <= now)
        {
            blind.look(policy, self.actuator);
            self.complete();
        }
        if self.completed + HEARTBEAT <= now {
            self.complete();
        }
    }

    /// One step of a node by itself, if it is time.
    async fn step_if_due(&mut self, policy: &Policy<'_>) {
        if let (Some(standing), Some(sensors)) = (&mut self.standing, &mut self.sensors)
            && standing.due() <= Instant::now()
        {
            let (workspace, actuator) = (&mut *self.workspace, &mut *self.actuator);
            let step = standing.step(policy, workspace, *sensors, self.air, actuator);
            step.await;
            self.complete();
        }
    }

    /// Gives all that its passes while something takes its time.
    async fn meanwhile<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
        mut alone: Option<Alone<'_, '_>>,
    ) -> T {
        loop {
            let pass = Timer::at(self.next_pass(again(&mut alone)));
            match select(work.as_mut(), pass).await {
                Either::First(done) => return done,
                Either::Second(()) => self.pass_if_due(again(&mut alone)),
            }
            if N::CHANNELS > 0
                && let Some(Alone { policy, .. }) = &alone
            {
                self.step_if_due(policy).await;
            }
        }
    }
}

/// The time of a control step alone. Apart from the loop so that nothing but the step is between
/// the two looks at the clock.
#[inline(never)]
fn timed_step(
    policy: &Policy,
    workspace: &mut [f32],
    state: &mut AgentState,
    observation: &Observation<'_>,
) -> (Action, u32) {
    let start = Instant::now();
    let action = state.step(policy, workspace, observation);
    let ticks = start.elapsed().as_ticks();
    (action, ticks.try_into().unwrap_or(u32::MAX))
}

/// The agent between two observations, on the node's own clock.
struct Blind {
    state: AgentState,
    /// The agent's time of the last observation, and when that came by the node's clock.
    observed_us: u64,
    arrived: Instant,
    /// When the agent was last looked at.
    looked: Option<Instant>,
}

impl Blind {
    fn new(state: AgentState, observed_us: u64, arrived: Instant) -> Self {
        Self {
            state,
            observed_us,
            arrived,
            looked: None,
        }
    }

    /// When the agent must be looked at again; never once it does nothing anyway.
    fn next_look(&self, policy: &Policy) -> Option<Instant> {
        let timing = policy.header().timing;
        let (from, after_us) = match (self.state.mode(), self.looked) {
            (Mode::Waiting | Mode::FailedSafe, _) => return None,
            (_, None) => (self.arrived, timing.late_us.saturating_add(1)),
            (_, Some(looked)) => (looked, timing.period_us),
        };
        from.checked_add(Duration::from_micros(after_us.into()))
    }

    /// Lets the agent act on the time that has passed, if it is late.
    fn look(&mut self, policy: &Policy, actuator: &mut impl Actuator) {
        self.looked = Some(Instant::now());
        let now_us = self
            .observed_us
            .saturating_add(self.arrived.elapsed().as_micros());
        if self.state.is_late(policy, now_us) {
            actuator.apply(&self.state.idle(policy, now_us));
        }
    }
}

/// What a node runs while it waits, and its agent between two observations, if it has had one.
struct Alone<'a, 'p> {
    policy: &'a Policy<'p>,
    blind: &'a mut Option<Blind>,
}

fn alone<'a, 'p>(
    policy: &'a Option<Policy<'p>>,
    blind: &'a mut Option<Blind>,
) -> Option<Alone<'a, 'p>> {
    let policy = policy.as_ref()?;
    Some(Alone { policy, blind })
}

/// The same once more.
fn again<'a, 'p>(alone: &'a mut Option<Alone<'_, 'p>>) -> Option<Alone<'a, 'p>> {
    let Alone { policy, blind } = alone.as_mut()?;
    Some(Alone { policy, blind })
}

fn refused(sentence: &mut Sentence, refusal: Refusal) -> Report<'_> {
    log!(warn, "policy refused: {}", refusal);
    Report::PolicyRefused {
        reason: sentence.of(refusal),
    }
}

const NO_KEY: Report<'static> = Report::Rejected {
    reason: "this node obeys hosts that have a key of its link: open a session with one",
};
const NO_RIGHT: Report<'static> = Report::Rejected {
    reason: "the key that this session was opened with does not carry that right",
};
const KEYLESS: Report<'static> = Report::Rejected {
    reason: "this node opens no session: it was built without a key, or its journal failed",
};
const NO_POLICY: Report<'static> = Report::Rejected {
    reason: "the node has no policy: upload one first",
};
const STANDS: Report<'static> = Report::Rejected {
    reason: "the node has a place, and acts on nothing but what its own sensors read: to show it the \
             field, configure it without one (agent-sim configure --fed)",
};
const UNPROVOKED: Report<'static> = Report::Rejected {
    reason: "this image comes to no grief on command: build one with the feature `provoke`",
};
const UNHARMED: Report<'static> = Report::Rejected {
    reason: "the mishap did the node no harm",
};

/// As much of a text as fits so many bytes.
fn cut(text: &'static str, room: usize) -> &'static str {
    text.get(..text.floor_char_boundary(room))
        .unwrap_or_default()
}

/// Room for one sentence in a report; what does not fit is cut off.
struct Sentence {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl Sentence {
    /// A report's frame less its variant, length prefix, checksum and framing.
    const ROOM: usize = REPORT_FRAME - 16;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::ROOM],
            length: 0,
        }
    }

    fn of(&mut self, text: impl fmt::Display) -> &str {
        let _ = write!(self, "{text}");
        let written = self.bytes.get(..self.length).unwrap_or_default();
        match str::from_utf8(written) {
            Ok(text) => text,
            // Cut inside a character.
            Err(error) => written
                .get(..error.valid_up_to())
                .and_then(|valid| str::from_utf8(valid).ok())
                .unwrap_or_default(),
        }
    }
}

impl fmt::Write for Sentence {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let length = text.len().min(room.len());
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.length += length;
        Ok(())
    }
}
