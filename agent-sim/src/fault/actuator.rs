//! Faults between an agent's command and what its actuator makes of it. The agent goes on seeing
//! and deciding, and nobody tells it.

use super::{
    Act, Descriptor, Fault, Group, Hit, Parameter, Presence, Range, Scope, Sort, When, Whom,
};
use crate::link::{Link, LinkError};
use agent_core::agent::{Action, Mode};
use agent_core::message::Observation;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The actuator does what it did last, or applies this force, whatever it is told.
pub static STUCK: Descriptor = Descriptor {
    name: "stuck",
    group: Group::Actuator,
    parameters: &[
        Parameter::new(
            "value",
            Sort::Number(Range::FINITE),
            Presence::Optional,
            "5",
        ),
        Parameter::new(
            "speed",
            Sort::Number(Range::NOT_NEGATIVE),
            Presence::Optional,
            "2",
        ),
    ],
    whom: Whom::Anyone,
    when: When::Between,
    help: "goes on doing what it did, or pushes with value, or moves on at speed",
    caption: |fault| {
        let at = [("force", "value"), ("speed", "speed")].into_iter();
        let at = at.filter_map(|(said, name)| Some((said, fault.what.optional(name)?)));
        let at: Vec<String> = at.map(|(said, value)| format!("{said} {value}")).collect();
        match at.is_empty() {
            true => "are stuck".to_owned(),
            false => format!("are stuck at {}", at.join(" and ")),
        }
    },
    act: Act::Link(|link, hit| {
        let force = hit.what.optional("value").map(|force| force as f32);
        let speed = hit.what.optional("speed").map(|speed| speed as f32);
        Box::new(Stuck::new(link, hit.scope, force, speed))
    }),
};

/// An actuator that no longer follows commands.
pub struct Stuck<L> {
    inner: L,
    scope: Scope,
    /// The force it is stuck at; `None` for that of its last command.
    force: Option<f32>,
    /// How fast it moves on; `None` for as fast as it did.
    speed: Option<f32>,
    /// What it did last: rest, where nobody commanded it.
    last: Action,
}

impl<L> Stuck<L> {
    /// `inner`, whose actuator keeps its last force, or `force`, and its last velocity, or goes on
    /// in its direction at `speed`, while `scope` holds, even if the agent falls silent.
    pub fn new(inner: L, scope: Scope, force: Option<f32>, speed: Option<f32>) -> Self {
        Self {
            inner,
            scope,
            force,
            speed,
            last: Action::none(Mode::Waiting),
        }
    }

    /// The last velocity at the speed that it is stuck at; what did not move stays.
    fn velocity(&self) -> [f32; 2] {
        let [x, y] = self.last.velocity;
        match (self.speed, libm::hypotf(x, y)) {
            (Some(speed), before) if before > 0.0 => [x, y].map(|v| v / before * speed),
            _ => [x, y],
        }
    }
}

impl<L: Link> Link for Stuck<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.scope.covers(observation);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let command = self.inner.receive(now_us)?;
        if self.scope.holds(now_us) {
            return Ok(Some(Action {
                force: self.force.unwrap_or(self.last.force),
                velocity: self.velocity(),
                ..self.last
            }));
        }
        self.last = command.unwrap_or(Action::none(Mode::Waiting));
        Ok(command)
    }
}

/// Whether a fault creeps in, over its whole time.
const DRIFT: Parameter = Parameter::new("drift", Sort::Truth, Presence::Default("false"), "true");

/// How a fault that can creep in reaches its full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onset {
    /// At once.
    Sudden,
    /// Steadily from the fault's beginning to `end_us`.
    Drift {
        /// When it is there in full.
        end_us: u64,
    },
}

impl Onset {
    /// Of a fault that takes a drift.
    fn of(hit: &Hit<'_>) -> Self {
        match hit.what.truth("drift") {
            true => Self::Drift { end_us: hit.end_us },
            false => Self::Sudden,
        }
    }

    /// The share of the full size reached at `now_us`.
    fn share(self, scope: &Scope, now_us: u64) -> f32 {
        match self {
            Self::Sudden => 1.0,
            Self::Drift { end_us } => scope.progress(now_us, end_us) as f32,
        }
    }
}

/// How agents come to do what a fault that takes a drift makes them do.
fn verb(verb: &str, fault: &Fault) -> String {
    match fault.what.truth("drift") {
        true => format!("come to {verb}"),
        false => verb.to_owned(),
    }
}

/// Forces come out multiplied.
pub static GAIN: Descriptor = Descriptor {
    name: "gain",
    group: Group::Actuator,
    parameters: &[
        Parameter::new(
            "factor",
            Sort::Number(Range::FINITE),
            Presence::Needed,
            "0.5",
        )
        .harmless_at(1.0),
        DRIFT,
    ],
    whom: Whom::Anyone,
    when: When::Between,
    help: "forces come out multiplied, at once or more and more",
    caption: |fault| {
        let factor = fault.what.number("factor");
        format!("{} {factor} times their force", verb("apply", fault))
    },
    act: Act::Link(|link, hit| {
        let factor = hit.what.number("factor") as f32;
        Box::new(Gain::new(link, hit.scope, factor, Onset::of(hit)))
    }),
};

/// An actuator that is stronger or weaker than it should be.
pub struct Gain<L> {
    inner: L,
    scope: Scope,
    factor: f32,
    onset: Onset,
}

impl<L> Gain<L> {
    /// `inner`, with forces times `factor` while `scope` holds.
    pub fn new(inner: L, scope: Scope, factor: f32, onset: Onset) -> Self {
        Self {
            inner,
            scope,
            factor,
            onset,
        }
    }
}

impl<L: Link> Link for Gain<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.scope.covers(observation);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let mut command = self.inner.receive(now_us)?;
        if let Some(action) = &mut command
            && self.scope.holds(now_us)
        {
            let share = self.onset.share(&self.scope, now_us);
            action.force *= 1.0 + (self.factor - 1.0) * share;
        }
        Ok(command)
    }
}

/// Forces come out shifted.
pub static BIAS: Descriptor = Descriptor {
    name: "bias",
    group: Group::Actuator,
    parameters: &[
        Parameter::new("value", Sort::Number(Range::FINITE), Presence::Needed, "5"),
        DRIFT,
    ],
    whom: Whom::Anyone,
    when: When::Between,
    help: "forces come out shifted",
    caption: |fault| {
        let value = fault.what.number("value");
        format!("{} {value:+} of force", verb("add", fault))
    },
    act: Act::Link(|link, hit| {
        let force = hit.what.number("value") as f32;
        Box::new(Bias::new(link, hit.scope, force, Onset::of(hit)))
    }),
};

/// An actuator whose zero has moved. One that nobody commands is switched off and applies nothing.
pub struct Bias<L> {
    inner: L,
    scope: Scope,
    force: f32,
    onset: Onset,
}

impl<L> Bias<L> {
    /// `inner`, with `force` added to its commands while `scope` holds.
    pub fn new(inner: L, scope: Scope, force: f32, onset: Onset) -> Self {
        Self {
            inner,
            scope,
            force,
            onset,
        }
    }
}

impl<L: Link> Link for Bias<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.scope.covers(observation);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let mut command = self.inner.receive(now_us)?;
        if let Some(action) = &mut command
            && self.scope.holds(now_us)
        {
            action.force += self.force * self.onset.share(&self.scope, now_us);
        }
        Ok(command)
    }
}

/// Force and velocity come out with the wrong sign.
pub static INVERT: Descriptor = Descriptor {
    name: "invert",
    group: Group::Actuator,
    parameters: &[],
    whom: Whom::Anyone,
    when: When::Between,
    help: "force and velocity come out with the wrong sign",
    caption: |_| "act with the wrong sign".to_owned(),
    act: Act::Link(|link, hit| Box::new(Invert::new(link, hit.scope))),
};

/// An actuator that was wired the wrong way round.
pub struct Invert<L> {
    inner: L,
    scope: Scope,
}

impl<L> Invert<L> {
    /// `inner`, with force and velocity of the other sign while `scope` holds.
    pub fn new(inner: L, scope: Scope) -> Self {
        Self { inner, scope }
    }
}

impl<L: Link> Link for Invert<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.scope.covers(observation);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let command = self.inner.receive(now_us)?;
        if !self.scope.holds(now_us) {
            return Ok(command);
        }
        Ok(command.map(|action| Action {
            force: -action.force,
            velocity: action.velocity.map(|v| -v),
            ..action
        }))
    }
}

/// Gaussian noise on every force.
pub static ACTUATOR_NOISE: Descriptor = Descriptor {
    name: "actuator-noise",
    group: Group::Actuator,
    parameters: &[Parameter::new(
        "std",
        Sort::Number(Range::NOT_NEGATIVE),
        Presence::Needed,
        "0.1",
    )],
    whom: Whom::Anyone,
    when: When::Between,
    help: "Gaussian noise on every force",
    caption: |fault| format!("act with noise of {}", fault.what.number("std")),
    act: Act::Link(|link, hit| {
        let std = hit.what.number("std") as f32;
        Box::new(ActuatorNoise::new(link, hit.scope, std, hit.rng.clone()))
    }),
};

/// An actuator that never does quite what it is told. One that nobody commands is switched off and
/// applies nothing.
pub struct ActuatorNoise<L> {
    inner: L,
    scope: Scope,
    std: f32,
    rng: ChaCha8Rng,
}

impl<L> ActuatorNoise<L> {
    /// `inner`, with noise of standard deviation `std` on its forces while `scope` holds.
    pub fn new(inner: L, scope: Scope, std: f32, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            std,
            rng,
        }
    }
}

impl<L: Link> Link for ActuatorNoise<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.scope.covers(observation);
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let mut command = self.inner.receive(now_us)?;
        if let Some(action) = &mut command
            && self.scope.holds(now_us)
        {
            let noise: f32 = StandardNormal.sample(&mut self.rng);
            action.force += self.std * noise;
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::life::{Crash, Reset};
    use crate::fault::probe::{INTERVAL_US, Log, drive, forces};
    use rand::SeedableRng;

    fn steps(from: u64, until: u64) -> Scope {
        Scope::new(from * INTERVAL_US, Some(until * INTERVAL_US), None)
    }

    /// The probe commands the number of the step and is shown everything.
    #[test]
    fn a_stuck_actuator_repeats_its_last_command() {
        let log = Log::default();
        let mut link = Stuck::new(log.probe(), steps(2, 4), None, None);
        let actions = drive(&mut link, 6);
        let told: Vec<[f32; 2]> = actions
            .iter()
            .map(|a| a.map(|a| [a.force, a.velocity[0]]).unwrap())
            .collect();
        assert_eq!(
            told,
            [
                [0.0, 1.0],
                [1.0, 2.0],
                [1.0, 2.0],
                [1.0, 2.0],
                [4.0, 5.0],
                [5.0, 6.0]
            ]
        );
        assert_eq!(log.arrivals().len(), 6);
    }

    #[test]
    fn an_actuator_stuck_at_a_force_keeps_it_when_the_agent_dies() {
        let log = Log::default();
        let dead = Crash::within(log.probe(), steps(1, 9), Reset::default());
        let mut link = Stuck::new(dead, steps(2, 4), Some(-7.0), None);
        assert_eq!(
            forces(&mut link, 5),
            [Some(0.0), None, Some(-7.0), Some(-7.0), None]
        );
    }

    #[test]
    fn an_actuator_that_sticks_as_its_agent_dies_keeps_pushing() {
        let log = Log::default();
        let dead = Crash::within(log.probe(), steps(3, 9), Reset::default());
        let mut link = Stuck::new(dead, steps(3, 9), None, None);
        assert_eq!(forces(&mut link, 6)[3..], [Some(2.0); 3]);

        // One that sticks later is stuck at rest: by then nobody commands it.
        let dead = Crash::within(log.probe(), steps(3, 9), Reset::default());
        let mut link = Stuck::new(dead, steps(5, 9), None, None);
        assert_eq!(forces(&mut link, 6)[3..], [None, None, Some(0.0)]);
    }

    #[test]
    fn gain_and_bias_change_forces_within_their_time_only() {
        let log = Log::default();
        let mut gain = Gain::new(log.probe(), steps(2, 4), 0.5, Onset::Sudden);
        assert_eq!(forces(&mut gain, 5), [0.0, 1.0, 1.0, 1.5, 4.0].map(Some));
        let mut bias = Bias::new(log.probe(), steps(2, 4), 10.0, Onset::Sudden);
        assert_eq!(forces(&mut bias, 5), [0.0, 1.0, 12.0, 13.0, 4.0].map(Some));
    }

    /// Over four steps, a factor of 3 is reached as 1, 1.5, 2, 2.5, 3 and a bias of 8 as 0, 2, … 8;
    /// the commands are 1 to 6.
    #[test]
    fn drifts_begin_at_nothing_and_end_in_full() {
        let log = Log::default();
        let scope = Scope::new(INTERVAL_US, None, None);
        let onset = Onset::Drift {
            end_us: 5 * INTERVAL_US,
        };
        let mut gain = Gain::new(log.probe(), scope, 3.0, onset);
        assert_eq!(
            forces(&mut gain, 7)[1..],
            [1.0, 3.0, 6.0, 10.0, 15.0, 18.0].map(Some)
        );
        let mut bias = Bias::new(log.probe(), scope, 8.0, onset);
        assert_eq!(
            forces(&mut bias, 7)[1..],
            [1.0, 4.0, 7.0, 10.0, 13.0, 14.0].map(Some)
        );
    }

    #[test]
    fn an_actuator_stuck_at_a_speed_keeps_its_direction() {
        let log = Log::default();
        // The probe's velocity along x counts what it was shown, 1 at first.
        let mut link = Stuck::new(log.probe(), steps(2, 4), None, Some(7.5));
        let told: Vec<f32> = drive(&mut link, 5)
            .iter()
            .map(|a| a.unwrap().velocity[0])
            .collect();
        assert_eq!(told, [1.0, 2.0, 7.5, 7.5, 5.0]);
    }

    /// Of 4,000 standard normal numbers the mean is within 0.08 of 0 and the variance within 0.12 of
    /// 1, five standard errors each.
    #[test]
    fn noise_on_forces_has_the_spread_asked_for_and_none_outside_its_time() {
        let log = Log::default();
        let rng = ChaCha8Rng::seed_from_u64(1);
        let mut link = ActuatorNoise::new(log.probe(), steps(2, 4002), 3.0, rng);
        let told = forces(&mut link, 4003);
        assert_eq!((told[1], told[4002]), (Some(1.0), Some(4002.0)));
        let off = |step: usize| f64::from((told[step].unwrap() - step as f32) / 3.0);
        let mean = (2..4002).map(off).sum::<f64>() / 4000.0;
        let variance = (2..4002).map(|step| off(step).powi(2)).sum::<f64>() / 4000.0;
        assert!(
            mean.abs() < 0.08 && (variance - 1.0).abs() < 0.12,
            "{mean} {variance}"
        );
    }

    #[test]
    fn inversion_turns_force_and_velocity_round() {
        let log = Log::default();
        let mut link = Invert::new(log.probe(), steps(1, 2));
        let told: Vec<[f32; 2]> = drive(&mut link, 3)
            .iter()
            .map(|a| a.map(|a| [a.force, a.velocity[0]]).unwrap())
            .collect();
        assert_eq!(told, [[0.0, 1.0], [-1.0, -2.0], [2.0, 3.0]]);
    }

    #[test]
    fn what_is_silent_stays_silent() {
        let log = Log::default();
        let scope = steps(0, 9);
        let dead = || Crash::new(log.probe(), Some(0));
        assert_eq!(
            forces(&mut Bias::new(dead(), scope, 5.0, Onset::Sudden), 1),
            [None]
        );
        assert_eq!(forces(&mut Invert::new(dead(), scope), 1), [None]);
        let rng = ChaCha8Rng::seed_from_u64(1);
        let mut noisy = ActuatorNoise::new(dead(), scope, 1.0, rng);
        assert_eq!(forces(&mut noisy, 1), [None]);
    }
}
