//! A node that senses and acts by itself: by its own timer, at the policy's period, from its own sensors to
//! its own actuator. The link is there for its host to ask how it gets on, to flash it and to move it.
//!
//! What is not seen for a moment is made up ([`place::sight`]); when too little can be seen the agent holds
//! and fails safe as it would at a link that is silent, and goes on when its sensors are back. A step that is
//! not over when the next one is due leaves that one out.
//!
//! Where the place says whom it hears, their readings stand beside its own, and it says what it measures after
//! it has acted.

use agent_core::{
    agent::{Action, AgentState, Mode},
    message::{Observation, Overview, Patch, Samples, Span},
    policy::Policy,
};
use embassy_time::{Duration, Instant, with_deadline};
use place::{
    Fault, Place, Sight,
    aim::Aim,
    conduct::{Alone, Timing},
    neighbours::{grid::Grid, window},
    record::{CELLS, SENSORS},
};

use crate::{
    air::Air,
    hardware::{Actuator, Sensors},
};

/// Cells of the largest patch that a node assembles by itself: a window of [`CELLS`], eight by eight, with its
/// halo.
const PATCH: usize = 10 * 10;

const _: () = assert!(CELLS == 8 * 8 && PATCH >= CELLS + 2);

/// A node at its place.
pub(crate) struct Standing {
    place: Place,
    counter: u64,
    /// How the cells of its window lie.
    grid: Grid,
    /// When it took the place: its schedule counts from here.
    since: Instant,
    /// What it was told that the field should be, whatever the place says.
    told: Option<f32>,
    sight: Sight,
    state: AgentState,
    action: Action,
    /// When the next step is due, how many were due before it, and how many of those were made: what
    /// [`Timing`] counts ends after some weeks.
    due: Instant,
    turn: u64,
    made: u64,
    timing: Timing,
    /// Whether what it hears is what its place says.
    listens: bool,
}

impl Standing {
    /// Puts the node at this place, which fits the policy, taken with a manifest of this counter. Its first
    /// step is due now.
    #[inline(never)]
    pub fn put(standing: &mut Option<Self>, place: &Place, counter: u64, policy: &Policy) {
        let (state, now) = (AgentState::new(), Instant::now());
        *standing = Some(Self {
            place: place.clone(),
            counter,
            grid: Grid::of(&policy.header().sensing),
            since: now,
            told: None,
            sight: Sight::new(),
            action: Action::none(state.mode()),
            state,
            due: now,
            turn: 0,
            made: 0,
            timing: Timing {
                period_us: place.period_us(policy.header()).unwrap_or(u32::MAX),
                ..Timing::default()
            },
            listens: false,
        });
    }

    /// When the next step is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Forgets what was seen and done, but not the place.
    pub fn reset(&mut self) {
        self.sight = Sight::new();
        self.state = AgentState::new();
        self.action = Action::none(self.state.mode());
    }

    /// Holds the whole window at this from now on, or at what the place says.
    #[inline(never)]
    pub fn aim_at(&mut self, told: Option<f32>) -> Result<(), Fault> {
        if let Some(value) = told {
            self.place.may_aim(value)?;
        }
        self.told = told;
        Ok(())
    }

    /// What the field should be at this time.
    fn aim(&self, now: Instant) -> Aim<'_> {
        match self.told {
            Some(value) => Aim::Same(value),
            None => {
                let passed = now.saturating_duration_since(self.since);
                self.place.aim(passed.as_micros())
            }
        }
    }

    /// Whether the last action was the policy's own.
    pub fn has_acted(&self) -> bool {
        self.action.mode == Mode::Active
    }

    /// One step: reads, looks, acts.
    pub async fn step<N: Sensors>(
        &mut self,
        policy: &Policy<'_>,
        workspace: &mut [f32],
        sensors: &mut N,
        air: Option<&Air>,
        actuator: &mut impl Actuator,
    ) {
        let air = air.filter(|_| N::BUS);
        if let (Some(air), false) = (air, self.listens) {
            air.stand(&self.place, policy.header());
            self.listens = true;
        }
        let began = Instant::now();
        let period = Duration::from_micros(self.timing.period_us.into());
        let readings = self.read(sensors, began + period).await;
        let action = self.decide(policy, workspace, began, &readings, air);
        self.action = self.place.narrowed(action);
        actuator.apply(&self.action);
        self.keep_time(began, Instant::now());
        if let Some(air) = air {
            self.say(policy, began, air);
        }
    }

    /// Says what was measured in the node's own cell, if that was taken in this step and it is one to say
    /// something in.
    #[inline(never)]
    fn say(&self, policy: &Policy, began: Instant, air: &Air) -> Option<()> {
        let every = u64::from(self.place.neighbours?.every);
        if self.made.checked_rem(every)? != 0 {
            return None;
        }
        let header = policy.header();
        let own = self.grid.own();
        let sensor = (self.place.sensors.iter()).position(|sensor| sensor.cell == own)?;
        let (value, at_us) = self.sight.last(sensor)?;
        if at_us == began.as_micros() {
            air.say(header.problem.as_str(), self.place.position, value, began);
        }
        Some(())
    }

    /// What the channels give by `deadline`, in the order of the place's sensors.
    async fn read<N: Sensors>(&self, sensors: &mut N, deadline: Instant) -> [Option<f32>; SENSORS] {
        let mut readings = [None; SENSORS];
        for (sensor, reading) in self.place.sensors.iter().zip(&mut readings) {
            let read = with_deadline(deadline, sensors.read(sensor.channel)).await;
            *reading = read.ok().flatten();
        }
        readings
    }

    /// The agent's action on these readings.
    #[inline(never)]
    fn decide(
        &mut self,
        policy: &Policy,
        workspace: &mut [f32],
        began: Instant,
        readings: &[Option<f32>; SENSORS],
        air: Option<&Air>,
    ) -> Action {
        let now_us = self.policy_us(policy);
        let sensing = &policy.header().sensing;
        let side = usize::from(sensing.window) + 2;
        let cells = if sensing.axes == 1 { side } else { side * side };
        let (mut field, mut target) = ([0.0; PATCH], [0.0; PATCH]);
        let (Some(field), Some(target)) = (field.get_mut(..cells), target.get_mut(..cells)) else {
            return self.state.idle(policy, now_us);
        };
        let here_us = began.as_micros();
        let (place, grid, sight) = (&self.place, self.grid, &mut self.sight);
        let seen = match (place.neighbours, air) {
            (None, _) => {
                let span = sight.look(place, here_us, readings, field);
                span.map(|span| [span, Span::default()])
            }
            (Some(_), Some(air)) => {
                air.look(|heard| window::look(sight, heard, place, grid, here_us, readings, field))
            }
            // Whom it is to hear, it never does.
            (Some(_), None) => None,
        };
        let Some(inside) = seen else {
            return self.state.idle(policy, now_us);
        };
        let shown: &[f32] = match sensing.target {
            true => {
                self.aim(began).fill(grid, target);
                target
            }
            false => &[],
        };
        let observation = Observation {
            now_us,
            position: self.place.position,
            patch: Patch {
                field: Samples::new(field),
                target: Samples::new(shown),
                inside,
                wide: Overview::default(),
            },
        };
        self.state.step(policy, workspace, &observation)
    }

    /// The time by the policy's clock, which goes on by its period from one step that is due to the next.
    fn policy_us(&self, policy: &Policy) -> u64 {
        (self.turn + 1).saturating_mul(policy.header().timing.period_us.into())
    }

    /// Takes note of a step that was due, began and ended then, and of when the next one is due.
    fn keep_time(&mut self, began: Instant, ended: Instant) {
        let Timing {
            period_us,
            steps,
            jitter_us,
            latency_us,
            longest_us,
            overruns,
        } = &mut self.timing;
        let micros = |from: Instant, to: Instant| {
            let passed = to.saturating_duration_since(from).as_micros();
            u32::try_from(passed).unwrap_or(u32::MAX)
        };
        self.made += 1;
        *steps = u32::try_from(self.made).unwrap_or(u32::MAX);
        *jitter_us = (*jitter_us).max(micros(self.due, began));
        *latency_us = micros(began, ended);
        *longest_us = (*longest_us).max(*latency_us);
        let passed = micros(self.due, ended) / (*period_us).max(1);
        *overruns = overruns.saturating_add(passed);
        let turns = u64::from(passed) + 1;
        self.turn += turns;
        self.due += Duration::from_micros(turns * u64::from(*period_us));
    }

    /// How the node gets on.
    pub fn conduct(&self, air: Option<&Air>) -> Alone {
        let aim = self.aim(Instant::now());
        Alone {
            node: self.place.node,
            position: self.place.position,
            counter: self.counter,
            mode: self.action.mode,
            force: self.action.force,
            target: aim.cell(self.grid.own()),
            told: self.told.is_some(),
            blind: self.sight.blind(),
            doubts: self.sight.doubts(),
            timing: self.timing,
            heard: self.place.neighbours.and_then(|_| Some(air?.heard())),
        }
    }
}
