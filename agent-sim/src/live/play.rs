//! The loop: a run that goes, stands still, goes back, and changes under people's hands.

mod cast;
mod hands;

use super::frame::{Raster, figures};
use super::history::History;
use super::lens::Lens;
use super::scene;
use super::{Command, Ear, Frame, Hub, Order, Orders};
use crate::episode::Snapshot;
use crate::plant::Shared;
use crate::proportional::Law;
use crate::recording::fingerprint;
use crate::report::Scale;
use crate::rig::{Payload, Rig};
use crate::scenario::Scenario;
use crate::touch::Added;
use anyhow::bail;
use artifacts::policy_file::PolicyFile;
use cast::{Cast, Runs};
use problem::{Episode, Problems};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use web_time::Instant;

/// Frames a second that are shown at most: screens show no more.
const FRAMES: f64 = 60.0;
/// How long a run takes at the speed that it begins with.
const AT_FIRST: f64 = 20.0;
/// Steps a second that can be asked for.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;
/// Most points of a curve that are sent.
const POINTS: usize = 2000;
/// How long the loop sleeps at most while it stands still.
const NAP: Duration = Duration::from_millis(200);

/// What is played, and where what is saved goes.
pub struct Show<'s> {
    /// The run to begin with.
    pub scenario: Scenario,
    /// The episode of a run that was recorded, in place of one that the scenario says.
    pub recorded: Option<Episode>,
    /// The problems that it can name.
    pub problems: &'s Problems,
    /// The boards, if it has any.
    pub rig: Option<&'s Rig>,
    /// Makes of a policy what boards are given.
    pub payload: &'s dyn Fn(&PolicyFile) -> anyhow::Result<Payload>,
    /// What computes the field; the problem's own solver if there is none.
    pub plant: Option<&'s Shared>,
    /// Whether to begin at once.
    pub playing: bool,
    /// Writes a scenario down, and says where.
    pub save: &'s dyn Fn(&Scenario) -> anyhow::Result<String>,
}

/// Plays until nobody can ask for anything any more; waits in this thread.
pub fn play(show: Show<'_>, hub: &Hub, orders: &Orders) -> anyhow::Result<()> {
    let playing = pin!(play_by(show, hub, orders));
    match playing.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("this queue is waited for within the call"),
    }
}

/// The same where a thread cannot wait, because it has a browser's events to see to: they have their turn
/// whenever `ear` says so.
pub async fn play_by(show: Show<'_>, hub: &Hub, ear: &impl Ear) -> anyhow::Result<()> {
    let mut player = Player::new(show, hub)?;
    loop {
        let scenario = player.scenario.clone();
        let team = scenario.team(player.show.problems)?;
        let episode = match &player.show.recorded {
            Some(episode) => scenario.touched(&team, episode.clone()),
            None => scenario.episode(&team)?,
        };
        let policy = team.parsed_policy();
        let tuned = team.problem.baseline_for(team.agents);
        let law = team.law(tuned).map(|law| Law::new(&team.problem, law));
        let cast = Cast {
            team: &team,
            episode: &episode,
            policy: policy.as_ref(),
            law: law.as_ref(),
        };
        if player.take(&cast, ear).await? == Next::Quit {
            return Ok(());
        }
    }
}

/// What comes after a take.
#[derive(PartialEq, Eq)]
enum Next {
    /// The same run with another past.
    Again,
    /// Nothing.
    Quit,
}

/// The loop's own state, which outlives a take.
struct Player<'s> {
    show: Show<'s>,
    hub: &'s Hub,
    lens: Lens,
    /// What is run now.
    scenario: Scenario,
    /// What was run before hands changed it, with the step in which they did.
    before: Vec<(usize, Scenario)>,
    history: History,
    take: u32,
    /// The step that is looked at.
    shown: usize,
    /// The step to make again up to, where the past was changed.
    again: usize,
    playing: bool,
    /// Steps a second; none for as fast as it goes.
    speed: Option<f64>,
    /// When the next step is due.
    due: Instant,
    /// When a frame was last shown.
    shown_at: Instant,
    selected: Option<usize>,
    /// Why the run ended before its time.
    ended: Option<String>,
    /// What happened, by step, for people.
    events: Vec<(usize, String)>,
    fingerprint: String,
}

impl<'s> Player<'s> {
    fn new(show: Show<'s>, hub: &'s Hub) -> anyhow::Result<Self> {
        let now = Instant::now();
        let steps = show.scenario.team(show.problems)?.steps;
        Ok(Self {
            scenario: show.scenario.clone(),
            playing: show.playing,
            show,
            hub,
            lens: Lens::default(),
            before: Vec::new(),
            history: History::default(),
            take: 0,
            shown: 0,
            again: 0,
            speed: Some((steps as f64 / AT_FIRST).clamp(*SPEEDS.start(), 60.0)),
            due: now,
            shown_at: now,
            selected: None,
            ended: None,
            events: Vec::new(),
            fingerprint: String::new(),
        })
    }

    /// Makes the run again as far as it was, and goes on with it until its past is changed.
    async fn take(&mut self, cast: &Cast<'_>, ear: &impl Ear) -> anyhow::Result<Next> {
        // What is borrowed by links must outlive them, and a lens is turned while they look.
        let lens = std::mem::take(&mut self.lens);
        lens.turn_to(self.selected);
        let next = self.go(cast, &lens, ear).await;
        self.lens = lens;
        self.take += 1;
        next
    }

    async fn go(&mut self, cast: &Cast<'_>, lens: &Lens, ear: &impl Ear) -> anyhow::Result<Next> {
        let (team, rig) = (cast.team, self.show.rig);
        let problem = &team.problem;
        let scale = Scale::of_field(problem, cast.episode, &[]);
        let raster = Raster::new(&problem.grid);
        let boards = rig.map_or(0, Rig::len);
        let names = cast.names();
        let hello = scene::hello(team, &raster, &scale, &names, boards, true);
        self.hub.set_hello(hello.to_string());
        let mut runs = cast.begin(lens, rig, self.show.plant)?;
        self.ended = None;
        let frame = |runs: &Runs<'_>, take| {
            let snapshot = runs.main.snapshot();
            let mut frame = Frame::new(problem, &raster, scale.high(), take, &snapshot);
            let others = runs.others.iter();
            (frame.figures).extend(others.map(|other| figures(&other.run.snapshot())));
            Arc::new(frame)
        };
        self.history.begin(frame(&runs, self.take), team.steps);
        let stage = Stage { cast, lens };
        self.shown = 0;
        self.due = Instant::now();
        self.present(&stage, &runs.main.snapshot());
        loop {
            if self.shown < self.again {
                while self.history.head() < self.again && self.ended.is_none() {
                    self.step(&stage, &mut runs, &frame);
                }
                self.shown = self.again.min(self.history.head());
                self.present(&stage, &runs.main.snapshot());
            }
            self.again = 0;
            if let Some(next) = self.listen(&stage, &runs, ear).await? {
                return Ok(next);
            }
            if !self.playing || Instant::now() < self.due {
                continue;
            }
            if self.shown == self.history.head() {
                if self.shown == team.steps || self.ended.is_some() {
                    self.playing = false;
                    self.present(&stage, &runs.main.snapshot());
                    continue;
                }
                self.step(&stage, &mut runs, &frame);
            }
            self.shown = (self.shown + 1).min(self.history.head());
            self.plan_next();
            if self.shown_at.elapsed().as_secs_f64() >= 1.0 / FRAMES {
                self.present(&stage, &runs.main.snapshot());
            }
        }
    }

    /// When the next step is due; one that comes late makes up for nothing.
    fn plan_next(&mut self) {
        let now = Instant::now();
        self.due = match self.speed {
            None => now,
            Some(speed) => (self.due + Duration::from_secs_f64(1.0 / speed)).max(now),
        };
    }

    /// Computes a step.
    fn step<'c>(
        &mut self,
        stage: &Stage<'_, 'c>,
        runs: &mut Runs<'c>,
        frame: &impl Fn(&Runs<'c>, u32) -> Arc<Frame>,
    ) {
        match runs.advance(self.show.rig) {
            Ok(()) => {
                self.history.push(frame(runs, self.take));
                if runs.main.snapshot().step == stage.cast.team.steps {
                    self.fingerprint = fingerprint(&runs.main.snapshot());
                }
            }
            Err(error) => self.ended = Some(error.to_string()),
        }
    }

    /// Shows where the run stands.
    fn present(&mut self, stage: &Stage<'_, '_>, newest: &Snapshot<'_>) {
        self.shown_at = Instant::now();
        if !self.hub.is_watched() && self.playing {
            return;
        }
        if let Some(frame) = self.history.at(self.shown) {
            self.hub.show(frame);
        }
        self.hub.set_state(self.state(stage, newest).to_string());
        // What an agent sees is known of the newest step alone.
        if let (Some(sight), Some(policy)) = (stage.lens.sight(), stage.cast.policy)
            && self.shown == newest.step
        {
            self.hub.set_agent(scene::agent(&sight, policy).to_string());
        }
    }

    fn state(&self, stage: &Stage<'_, '_>, newest: &Snapshot<'_>) -> Value {
        let team = stage.cast.team;
        let at_end = newest.step == team.steps;
        json!({
            "is": "state",
            "take": self.take,
            "playing": self.playing,
            "speed": self.speed,
            "step": self.shown,
            "head": self.history.head(),
            "steps": team.steps,
            "seed": self.scenario.seed,
            "agents": team.agents,
            "selected": self.selected,
            "faults": scene::faults(team),
            "events": self.events.iter().map(|(step, what)| json!([step, what])).collect::<Vec<Value>>(),
            "undoable": self.before.len(),
            "ended": self.ended,
            "fingerprint": at_end.then_some(&self.fingerprint),
            "boards": scene::boards(self.show.rig),
        })
    }

    /// Carries out what viewers ask for; waits for it until the next step is due.
    async fn listen(
        &mut self,
        stage: &Stage<'_, '_>,
        runs: &Runs<'_>,
        ear: &impl Ear,
    ) -> anyhow::Result<Option<Next>> {
        let wait = match self.playing {
            true => self.due.saturating_duration_since(Instant::now()),
            false => NAP,
        };
        let order = match ear.hear(wait).await {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(Next::Quit)),
        };
        let Order { command, answer } = order;
        let done = self.carry_out(&command, stage);
        let (next, said) = match done {
            Ok(Done { next, said }) => (next, said),
            Err(error) => (
                None,
                Some(json!({ "is": "refused", "why": error.to_string() })),
            ),
        };
        if let Some(said) = said {
            // A viewer that does not read its answers goes without them.
            let _ = answer.try_send(said.to_string());
        }
        // Whoever comes while it stands still has not been shown anything yet.
        let only_asked = self.playing && command == (Command::Curves {});
        if next.is_none() && !only_asked {
            self.present(stage, &runs.main.snapshot());
        }
        Ok(next)
    }

    fn carry_out(&mut self, command: &Command, stage: &Stage<'_, '_>) -> anyhow::Result<Done> {
        let team = stage.cast.team;
        match command {
            Command::Play {} => {
                if self.shown == team.steps {
                    self.shown = 0;
                }
                self.playing = true;
                self.due = Instant::now();
            }
            Command::Pause {} => self.playing = false,
            Command::Step {} => {
                self.playing = false;
                let next = (self.shown + 1).min(team.steps);
                return Ok(self.look_at(next));
            }
            Command::Speed { steps } => match steps {
                Some(speed) if !SPEEDS.contains(speed) => bail!(
                    "{speed} steps a second cannot be kept; give {} to {}, or as fast as it goes",
                    SPEEDS.start(),
                    SPEEDS.end()
                ),
                speed => {
                    self.speed = *speed;
                    self.due = Instant::now();
                }
            },
            Command::Seek { step } => {
                if *step > team.steps {
                    bail!("the run has {} steps; step {step} is beyond", team.steps);
                }
                self.playing = false;
                return Ok(self.look_at(*step));
            }
            Command::Restart { seed, keep } => {
                self.refuse_boards("start the run again")?;
                if !keep && let Some((_, first)) = self.before.first() {
                    self.scenario = first.clone();
                    self.before.clear();
                    self.events.clear();
                }
                if let Some(seed) = seed {
                    self.show.recorded = None;
                    let with = |scenario: &mut Scenario| scenario.seed = *seed;
                    with(&mut self.scenario);
                    self.before
                        .iter_mut()
                        .for_each(|(_, scenario)| with(scenario));
                }
                return Ok(self.again_to(0));
            }
            Command::Select { agent } => {
                if let Some(agent) = agent
                    && *agent >= team.agents
                {
                    bail!("there is no agent {agent}; there are {}", team.agents);
                }
                self.selected = *agent;
                stage.lens.turn_to(*agent);
                // What it saw in a step that is over is seen again where that can be.
                if agent.is_some() && self.show.rig.is_none() && !self.playing && self.shown > 0 {
                    return Ok(self.again_to(self.shown));
                }
            }
            Command::Fault { fault, ids } => return self.break_down(fault, ids, team),
            Command::Revive { ids } => return self.revive(ids, team),
            Command::Paint(paint) => {
                let stroke = self.stroke(paint, team)?;
                let what =
                    format!("{} strokes on the {:?}", stroke.len(), paint.what).to_lowercase();
                return self.change(what, |scenario, _| scenario.touches.extend(stroke));
            }
            Command::Add { place } => {
                let what = format!("agent {} is put down", team.agents);
                let added = |scenario: &mut Scenario, at| {
                    let place = place.clone();
                    scenario.added.push(Added { at, place });
                };
                return self.change(what, added);
            }
            Command::Undo {} => {
                self.refuse_boards("take anything back")?;
                let Some((step, scenario)) = self.before.pop() else {
                    bail!("there is nothing to take back");
                };
                self.scenario = scenario;
                self.events.pop();
                return Ok(self.again_to(self.shown.max(step)));
            }
            Command::Save {} => {
                let explicit = team.explicit(&self.scenario);
                let place = (self.show.save)(&explicit)?;
                return Ok(Done::said(json!({
                    "is": "saved",
                    "place": place,
                    "scenario": explicit.to_toml(),
                })));
            }
            Command::Curves {} => {
                let figures = &self.history.figures;
                let stride = figures.len().div_ceil(POINTS).max(1);
                let steps: Vec<usize> = (0..figures.len()).step_by(stride).collect();
                let of = |k: usize| {
                    steps
                        .iter()
                        .map(|&s| &figures[s][..])
                        .map(move |f| f.get(k).copied())
                        .collect::<Vec<_>>()
                };
                let runs = figures.first().map_or(0, Vec::len);
                return Ok(Done::said(json!({
                    "is": "curves",
                    "take": self.take,
                    "steps": steps,
                    "runs": (0..runs).map(of).collect::<Vec<_>>(),
                })));
            }
        }
        Ok(Done::default())
    }

    /// Looks at a step: back at one that is over, or on to one that is still to come.
    fn look_at(&mut self, step: usize) -> Done {
        self.shown = step.min(self.history.head());
        self.again = step;
        Done::default()
    }

    fn again_to(&mut self, step: usize) -> Done {
        self.again = step;
        Done {
            next: Some(Next::Again),
            said: None,
        }
    }
}

/// What the loop and its lens look at during a take.
struct Stage<'a, 'c> {
    cast: &'a Cast<'c>,
    lens: &'a Lens,
}

/// What came of a command.
#[derive(Default)]
struct Done {
    next: Option<Next>,
    said: Option<Value>,
}

impl Done {
    fn said(said: Value) -> Self {
        Self {
            next: None,
            said: Some(said),
        }
    }
}
