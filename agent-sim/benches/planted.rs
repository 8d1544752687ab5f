//! Whether hunts find what is wrong with agents that have a weakness in one corner.
//!
//! ```text
//! cargo bench -p agent-sim --bench planted
//! cargo bench -p agent-sim --bench planted -- --seeds 3 --first 7 --budget 30 corner
//! ```
//!
//! Agents run the policy that is shipped for `heat-1d` with a mistake around it. Every search has the same
//! time, and stops where it has found a run that fails; chance alone is the reference. The spaces are such
//! that agents without the mistake hold: a hunt for their worst run comes first, and must not find any
//! that fails.

use agent_core::agent::Action;
use agent_core::message::Observation;
use agent_core::policy::Policy;
use agent_sim::campaign::Space;
use agent_sim::episode::ClosedLoop;
use agent_sim::hunt::{Method, Trail, search};
use agent_sim::link::{InProcess, Link, LinkError};
use agent_sim::requirement::{Judge, Moment};
use agent_sim::scenario::Scenario;
use agent_sim::sense::View;
use problem::Problems;
use std::time::{Duration, Instant};

/// Something that is wrong with agents.
#[derive(Clone, Copy)]
struct Weakness {
    name: &'static str,
    what: &'static str,
    /// What is varied besides.
    space: &'static str,
    /// What becomes of an action, by what the agent knows.
    act: fn(&Known, Action) -> Action,
}

/// What an agent knows of itself.
#[derive(Default)]
struct Known {
    position: f32,
    /// Field minus target where it stands.
    error: f32,
    now_us: u64,
    /// How long it had seen nothing when it last saw something, in steps.
    gap: u64,
    /// Gaps of more than two steps so far.
    gaps: u64,
}

const STEP_US: u64 = 1000;

impl Known {
    fn steps(&self) -> u64 {
        self.now_us / STEP_US
    }
}

/// With another force.
fn pushed(action: Action, force: f32) -> Action {
    Action { force, ..action }
}

/// What all spaces have in common: a rod for a third of its time, which swarms without weakness hold.
const ROD: &str = "
problem = \"heat-1d\"
steps = 120
set = \"table\"
episode = { from = 0, to = 49 }
[campaign]
runs = 3000
[[require]]
what = \"error\"
below = 0.04
from = 0.6
";

/// An agent crashes.
const CRASH: &str = "agents = { from = 12, to = 24 }\n[[fault]]\nkind = \"crash\"\n\
                       ids = { pick = 1 }\nat = { from = 0.05, to = 0.5 }";

const WEAKNESSES: [Weakness; 5] = [
    Weakness {
        name: "corner",
        what: "full force, and slow to leave, between 0.7298 and 0.7302",
        space: CRASH,
        act: |known, action| match (0.7298..=0.7302).contains(&known.position) {
            true => Action {
                velocity: [0.05 * action.velocity[0], 0.0],
                ..pushed(action, 40.0)
            },
            false => action,
        },
    },
    Weakness {
        name: "band",
        what: "the wrong way with 20 for errors between 0.10 and 0.13 after step 60",
        space: CRASH,
        act: |known, action| match known.steps() > 60 && (0.10..=0.13).contains(&known.error) {
            true => pushed(action, 20.0),
            false => action,
        },
    },
    Weakness {
        name: "fail-safe",
        what: "full force in the right half after 17 steps without a word, no more and no less",
        space: "agents = { from = 12, to = 24 }\n[[fault]]\nkind = \"loss\"\np = 1.0\nids = { pick = 1 }\n\
                at = { from = 0.05, to = 0.5 }\nlasts = { from = 0.01, to = 0.45 }",
        act: |known, action| match known.gap == 17 && known.position > 0.5 {
            true => pushed(action, 40.0),
            false => action,
        },
    },
    Weakness {
        name: "three gaps",
        what: "pushes up in the left quarter, by 24 more for each time that it had missed words",
        space: "agents = { from = 12, to = 24 }\n\
                [[fault]]\nkind = \"loss\"\np = 1.0\nids = { pick = 1 }\n\
                at = { from = 0.05, to = 0.5 }\nlasts = { from = 0.01, to = 0.15 }\n\
                [[fault]]\nkind = \"loss\"\np = 1.0\nids = { pick = 1 }\n\
                at = { from = 0.05, to = 0.5 }\nlasts = { from = 0.01, to = 0.15 }\n\
                [[fault]]\nkind = \"loss\"\np = 1.0\nids = { pick = 1 }\n\
                at = { from = 0.05, to = 0.5 }\nlasts = { from = 0.01, to = 0.15 }",
        act: |known, action| match known.position < 0.25 {
            true => pushed(action, action.force + 24.0 * known.gaps as f32),
            false => action,
        },
    },
    Weakness {
        name: "late and cold",
        what: "full force where it is colder than it should be by 0.12 and more after step 80",
        space: CRASH,
        act: |known, action| match known.steps() > 80 && known.error < -0.12 {
            true => pushed(action, -40.0),
            false => action,
        },
    },
];

/// No weakness.
const SOUND: fn(&Known, Action) -> Action = |_, action| action;

/// An agent with a weakness.
struct Weak<L> {
    inner: L,
    known: Known,
    act: fn(&Known, Action) -> Action,
}

impl<L: Link> Link for Weak<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let known = &mut self.known;
        let middle = observation.patch.field.len() / 2;
        let sample =
            |samples: agent_core::message::Samples<'_>| samples.iter().nth(middle).unwrap_or(0.0);
        known.position = observation.position[0];
        known.error = sample(observation.patch.field) - sample(observation.patch.target);
        let gap = (observation.now_us - known.now_us) / STEP_US;
        if gap > 1 {
            known.gap = gap - 1;
            known.gaps += u64::from(gap > 3);
        }
        known.now_us = observation.now_us;
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = self.inner.receive(now_us)?;
        Ok(action.map(|action| (self.act)(&self.known, action)))
    }
}

/// The smallest margin of a run with such agents.
fn margin(
    scenario: &Scenario,
    problems: &Problems,
    policy: &Policy<'_>,
    act: fn(&Known, Action) -> Action,
) -> f64 {
    let team = scenario
        .team(problems)
        .expect("checked when the space was read");
    let episode = scenario.episode(&team).expect("fresh episodes are there");
    let experiment = team.experiment(Some(policy));
    let swarm = experiment.swarm(View::of(policy), team.agents, &[], |_| Weak {
        inner: InProcess::new(policy),
        known: Known::default(),
        act,
    });
    let mut run = ClosedLoop::new(&team.problem, &episode, swarm);
    let mut judge = Judge::new(&team.requirements, &team.conditions());
    for step in 0..=team.steps {
        if step > 0 && run.advance().is_err() {
            return f64::NEG_INFINITY;
        }
        let snapshot = run.snapshot();
        judge.see(&Moment {
            snapshot: &snapshot,
            rig: None,
        });
    }
    judge.verdict(None).margin()
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let (mut seeds, mut first, mut budget, mut names) = (10, 0, 60.0, Vec::new());
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|text| text.parse::<f64>().ok());
            value.unwrap_or_else(|| panic!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--seeds" => seeds = number() as u64,
            "--first" => first = number() as u64,
            "--budget" => budget = number(),
            _ => names.push(argument),
        }
    }
    let problems = Problems::published();
    let blob = artifacts::policy_file::PolicyFile::shipped(
        problems.by_name("heat-1d").expect("published"),
    );
    let blob = blob.expect("shipped");
    let policy = blob
        .policy(problems.by_name("heat-1d").expect("published"))
        .expect("fits");
    println!(
        "{seeds} searches each, {budget} s at most, {} threads",
        rayon::current_num_threads()
    );
    println!(
        "{:<14} {:>7} {:>7} {:>9} {:>10} {:>10}   {:>6} {:>10}",
        "weakness", "sound", "worst", "hunt", "runs", "seconds", "chance", "runs"
    );
    for weakness in WEAKNESSES
        .iter()
        .filter(|w| names.is_empty() || names.iter().any(|n| n == w.name))
    {
        let (top, faults) = weakness
            .space
            .split_once('\n')
            .unwrap_or((weakness.space, ""));
        let text = format!("{top}\n{ROD}{faults}\n");
        let space = Space::read(&text, &problems)
            .unwrap_or_else(|error| panic!("{}: {error}", weakness.name));
        let run = |act| {
            let (space, problems, policy) = (&space, &problems, &policy);
            move |point: &[f64]| {
                let scenario = space.scenario(point).expect("within the space");
                margin(&scenario, problems, policy, act)
            }
        };
        let once = |method, act, seed| -> (Trail, f64) {
            let begun = Instant::now();
            let mut go_on = |trail: &Trail| {
                trail.failed == 0 && begun.elapsed() < Duration::from_secs_f64(budget)
            };
            let trail = search(&space, method, seed, &mut go_on, &run(act));
            (trail, begun.elapsed().as_secs_f64())
        };
        let tries = |method| -> Vec<(Trail, f64)> {
            let seeds = first..first + seeds;
            seeds.map(|seed| once(method, weakness.act, seed)).collect()
        };
        let sound = once(Method::Portfolio, SOUND, first);
        let (hunts, chances) = (tries(Method::Portfolio), tries(Method::Random));
        let found =
            |tried: &[(Trail, f64)]| tried.iter().filter(|(trail, _)| trail.failed > 0).count();
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let runs = |tried: &[(Trail, f64)]| {
            median(tried.iter().map(|(trail, _)| trail.runs as f64).collect())
        };
        let worst = |tried: &[(Trail, f64)]| {
            let margins = tried.iter().filter_map(|(trail, _)| Some(trail.worst()?.1));
            margins.fold(f64::INFINITY, f64::min)
        };
        println!(
            "{:<14} {:>7.3} {:>7.3} {:>5}/{seeds:<3} {:>10.0} {:>10.1}   {:>3}/{seeds:<3} {:>10.0}   {}",
            weakness.name,
            worst(&[sound]),
            worst(&hunts),
            found(&hunts),
            runs(&hunts),
            median(hunts.iter().map(|(_, seconds)| *seconds).collect()),
            found(&chances),
            runs(&chances),
            weakness.what
        );
    }
}
