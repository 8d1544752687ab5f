//! Promises about runs in which things go wrong.

use agent_core::agent::{Action, Mode};
use agent_core::message::Observation;
use agent_sim::episode::{ClosedLoop, time_us};
use agent_sim::fault::{
    self, Act, Descriptor, Fault, Group, Parameter, Plan, Presence, Range, Run, Sort, When, Whom,
};
use agent_sim::link::{InProcess, Link, LinkError, Recorder, Wire};
use agent_sim::sense::View;
use agent_sim::swarm::Swarm;
use artifacts::policy_file::PolicyFile;
use problem::Episode;
use problem::published::heat_1d::PROBLEM;
use problem::test_set::EpisodeSet;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// What the shipped policy is shown.
const VIEW: View = View {
    window: 20,
    target: true,
    wide: None,
};
const STEPS: usize = 300;

fn shipped() -> PolicyFile {
    PolicyFile::shipped(&PROBLEM).unwrap()
}

fn episode() -> Episode {
    EpisodeSet::Table.episode(&PROBLEM, 0, 3).unwrap()
}

fn plan(faults: &[&str], agents: usize, seed: u64) -> Plan {
    let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
    for fault in &faults {
        let [low, high] = PROBLEM.reach;
        fault.check(agents, 1, low, high).unwrap();
    }
    let places = positions(agents);
    let run = Run {
        grid: &PROBLEM.grid,
        places: &places,
        at_first: places.len(),
        steps: STEPS,
        interval_us: PROBLEM.control_interval * 1e6,
        seed,
    };
    Plan::new(&faults, run)
}

fn positions(agents: usize) -> Vec<[f64; 2]> {
    (PROBLEM.placement)(&PROBLEM, agents)
}

/// A whole run of the shipped policy; what is left of the error, and the field's bits on the way.
fn run(faults: &[&str], agents: usize, seed: u64) -> (f64, Vec<u64>) {
    let file = shipped();
    let policy = file.policy(&PROBLEM).unwrap();
    let plan = plan(faults, agents, seed);
    let links = (0..agents)
        .map(|agent| plan.stack(agent, || InProcess::new(&policy)))
        .collect();
    let swarm = Swarm::new(&PROBLEM, VIEW, links, positions(agents));
    let mut run = ClosedLoop::new(&PROBLEM, &episode(), swarm);
    let mut bits = Vec::new();
    for _ in 0..STEPS {
        run.advance().unwrap();
        bits.extend(run.snapshot().field.iter().map(|z| z.to_bits()));
    }
    (run.snapshot().error, bits)
}

/// Every fault of a link at once, over different agents, times and places.
const EVERYTHING: [&str; 17] = [
    "crash,fraction=0.1,at=0.5",
    "crash,fraction=0.2,at=0.2,until=0.4",
    "join,fraction=0.1,at=0.1",
    "blackout,region=0.4..0.5,at=0.3,until=0.6",
    "stuck,fraction=0.05,at=0.7",
    "gain,factor=0.8,fraction=0.3",
    "bias,value=0.5,drift=true,fraction=0.3",
    "invert,fraction=0.05,at=0.9",
    "noise,std=0.05",
    "sensor-bias,value=0.01,region=0..0.3",
    "dropout,p=0.01",
    "freeze,fraction=0.1,at=0.8",
    "loss,p=0.1",
    "delay,steps=1,jitter=2,fraction=0.5",
    "duplicate,p=0.1",
    "reorder,p=0.1",
    "corrupt,p=0.1",
];

#[test]
fn faults_cost_control_and_leave_the_field_finite() {
    let (healthy, _) = run(&[], 8, 1);
    for fault in [
        "crash,fraction=0.5",
        "blackout,region=0.1..0.6",
        "invert,fraction=0.5",
        "noise,std=0.5",
        "sensor-bias,value=0.3",
        "loss,p=0.95",
        "freeze,at=0.1",
        "stuck,value=20,ids=0",
    ] {
        let (error, _) = run(&[fault], 8, 1);
        assert!(
            error.is_finite() && error > 2.0 * healthy,
            "{fault}: {error} vs {healthy}"
        );
    }
}

/// 600 agents make three groups, so that threads have something to disagree about.
#[test]
fn a_run_with_every_fault_depends_on_its_seed_and_not_on_threads() {
    let with = |threads: usize, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build()
            .unwrap()
            .install(|| run(&EVERYTHING, 600, seed).1)
    };
    let one = with(1, 1);
    assert_eq!(one, with(3, 1));
    assert_ne!(one, with(1, 2));
}

/// A link whose answers can be looked at from outside a stack.
struct Overheard<L> {
    inner: L,
    answers: Arc<Mutex<Vec<Action>>>,
}

impl<L: Link> Link for Overheard<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = self.inner.receive(now_us)?;
        self.answers.lock().unwrap().extend(action);
        Ok(action)
    }
}

/// The answers of a lone agent with the shipped policy at each step.
fn answers(faults: &[&str], steps: usize) -> Vec<Action> {
    let file = shipped();
    let policy = file.policy(&PROBLEM).unwrap();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let link = plan(faults, 1, 1).stack(0, || Overheard {
        inner: InProcess::new(&policy),
        answers: answers.clone(),
    });
    let swarm = Swarm::new(&PROBLEM, VIEW, vec![link], vec![[0.4, 0.0]]);
    let mut run = ClosedLoop::new(&PROBLEM, &episode(), swarm);
    (0..steps).for_each(|_| run.advance().unwrap());
    assert!(run.snapshot().error.is_finite());
    answers.lock().unwrap().clone()
}

/// The shipped policy fails safe after 20 steps without valid input. Half way through those the
/// command of the last good step, number 29, has faded to half.
#[test]
fn an_agent_whose_sensor_is_dead_holds_and_then_rests() {
    let answers = answers(&["dropout,p=1,at=0.1"], 60);
    let mode = |step: usize| answers[step].mode;
    assert_eq!(
        (mode(29), mode(30), mode(48)),
        (Mode::Active, Mode::Holding, Mode::Holding)
    );
    assert!((answers[39].force / answers[29].force - 0.5).abs() < 1e-6);
    assert_ne!(answers[29].force, 0.0);
    for action in &answers[49..] {
        assert_eq!((action.force, action.mode), (0.0, Mode::FailedSafe));
    }
}

#[test]
fn an_agent_without_observations_behaves_as_one_with_a_dead_sensor() {
    let blind = answers(&["loss,p=1,at=0.1"], 60);
    let dead = answers(&["dropout,p=1,at=0.1"], 60);
    assert_eq!(blind, dead);
}

#[test]
fn an_agent_that_restarts_waits_for_its_first_patch_again() {
    let answers = answers(
        &["loss,p=1,at=0.1,until=0.15", "crash,at=0.05,until=0.1"],
        60,
    );
    // Silent from step 15 to 29, so the 16th answer is that of step 30.
    assert_eq!(answers.len(), 45);
    assert_eq!(answers[14].mode, Mode::Active);
    assert!(
        answers[15..30]
            .iter()
            .all(|a| *a == Action::none(Mode::Waiting))
    );
    assert_eq!(answers[30].mode, Mode::Active);
}

/// What an agent was told and said, and where it went.
struct Conversation {
    wire: Wire,
    path: Vec<f32>,
}

/// The conversations of all agents over 50 steps of a field that is given and that nobody changes.
fn converse(faults: &[&str], agents: usize) -> Vec<Conversation> {
    let file = shipped();
    let policy = file.policy(&PROBLEM).unwrap();
    let plan = plan(faults, agents, 1);
    let links = (0..agents)
        .map(|agent| Recorder::new(plan.stack(agent, || InProcess::new(&policy))))
        .collect();
    let mut swarm = Swarm::new(&PROBLEM, VIEW, links, positions(agents));
    let Episode {
        initial, target, ..
    } = episode();
    let mut force = vec![0.0; PROBLEM.grid.len()];
    let mut paths = vec![Vec::new(); agents];
    for step in 0..50 {
        for (path, position) in paths.iter_mut().zip(swarm.positions()) {
            path.push(position[0] as f32);
        }
        let fade = 1.0 - 0.01 * step as f32;
        let field: Vec<f32> = initial.iter().map(|z| z * fade).collect();
        swarm.act(&field, &target, time_us(&PROBLEM, step as f64), &mut force);
        swarm.travel(PROBLEM.control_interval);
    }
    let wires = swarm.links().iter().map(|link| link.wire().clone());
    wires
        .zip(paths)
        .map(|(wire, path)| Conversation { wire, path })
        .collect()
}

#[test]
fn an_agent_without_faults_notices_nothing_of_those_of_others() {
    let faults = EVERYTHING.map(|fault| {
        let kind = fault.split(",fraction").next().unwrap();
        match kind.contains("region") {
            true => "invert,ids=1".to_owned(), // a region addresses everyone
            false => format!("{kind},ids=1+4..6"),
        }
    });
    let faults = faults.each_ref().map(String::as_str);
    let (healthy, faulty) = (converse(&[], 8), converse(&faults, 8));
    for agent in [0, 2, 3, 7] {
        assert_eq!(healthy[agent].wire, faulty[agent].wire, "agent {agent}");
    }
    for agent in [1, 4, 5, 6] {
        assert_ne!(healthy[agent].wire, faulty[agent].wire, "agent {agent}");
    }
}

/// The first agent starts at 0.2 and drifts to the left; the last one never comes near.
#[test]
fn a_region_takes_hold_of_an_agent_when_it_enters() {
    let healthy = converse(&[], 8);
    let dark = converse(&["blackout,region=0..0.195"], 8);
    let entry = healthy[0].path.iter().position(|x| *x <= 0.195).unwrap();
    // Late enough to have done something before, early enough to show what follows.
    assert!((10..STEPS / 3).contains(&entry), "enters at step {entry}");
    let (before, after) = dark[0].wire.received.split_at(entry);
    assert_eq!(before, &healthy[0].wire.received[..entry]);
    assert!(
        after.iter().all(Vec::is_empty),
        "silent from step {entry} on"
    );
    assert!(
        dark[0].path[entry..]
            .iter()
            .all(|x| *x == dark[0].path[entry])
    );
    assert_eq!(dark[7].wire, healthy[7].wire);
}

/// A text with everything set that the fault takes for itself, whom it hits, and when.
fn in_full(kind: &Descriptor) -> String {
    let mut text = kind.example();
    let general = [
        (kind.whom.takes(), "ids", "0..3"),
        (kind.when.takes(), "at", "0.25"),
        (kind.when.takes(), "until", "0.75"),
    ];
    for (taken, name, value) in general {
        if taken.contains(&name) {
            text += &format!(",{name}={value}");
        }
    }
    text
}

/// What is forgotten of a fault would show here: it would read as another one, or lose a value.
#[test]
fn every_fault_is_written_as_it_was_read() {
    for kind in fault::ALL {
        let text = in_full(kind);
        let fault: Fault = text.parse().unwrap();
        assert_eq!(fault.what.kind.name, kind.name);
        assert_eq!(fault.to_string(), text);
        let table = toml::to_string(&fault).unwrap();
        let values: toml::Table = toml::from_str(&table).unwrap();
        assert_eq!(values["kind"].as_str(), Some(kind.name));
        for parameter in kind.parameters {
            assert!(values.contains_key(parameter.name), "{table}");
        }
        assert_eq!(toml::from_str::<Fault>(&table).unwrap(), fault, "{table}");
    }
}

#[test]
fn every_fault_has_a_name_and_parameters_of_its_own() {
    let names: BTreeSet<&str> = fault::names().into_iter().collect();
    assert_eq!(names.len(), fault::ALL.len());
    // Taken for whom, when and what.
    let general = "fraction cluster ids region link count at until restart kind";
    for kind in fault::ALL {
        let mut own: Vec<&str> = kind.parameters.iter().map(|p| p.name).collect();
        own.extend(general.split(' '));
        let apart: BTreeSet<&str> = own.iter().copied().collect();
        assert_eq!(own.len(), apart.len(), "{kind:?}: {own:?}");
    }
}

#[test]
fn every_fault_is_listed_with_what_it_takes() {
    let listed = Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .arg("faults")
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for kind in fault::ALL {
        let mut words = listed.lines().map(|line| line.trim().split_once("  "));
        let line = words.find_map(|line| line.filter(|(usage, _)| *usage == kind.usage()));
        let (_, help) = line.unwrap_or_else(|| panic!("{kind:?} is not in\n{listed}"));
        assert_eq!(help.trim(), kind.help);
        for parameter in kind.parameters {
            assert!(kind.usage().contains(&format!(",{}=", parameter.name)));
        }
    }
}

/// An actuator that is too weak for what it is told.
struct Feeble<L> {
    inner: L,
    most: f32,
}

impl<L: Link> Link for Feeble<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        self.inner.send(observation)
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = self.inner.receive(now_us)?;
        Ok(action.map(|action| Action {
            force: action.force.clamp(-self.most, self.most),
            ..action
        }))
    }
}

static FEEBLE: Descriptor = Descriptor {
    name: "feeble",
    group: Group::Actuator,
    parameters: &[Parameter::new(
        "most",
        Sort::Number(Range::NOT_NEGATIVE),
        Presence::Needed,
        "1",
    )],
    whom: Whom::Anyone,
    when: When::Always,
    help: "forces come out cut off",
    caption: |fault| format!("push with {} at most", fault.what.number("most")),
    act: Act::Link(|inner, hit| {
        let most = hit.what.number("most") as f32;
        Box::new(Feeble { inner, most })
    }),
};

#[test]
fn a_fault_can_come_from_another_crate() {
    let fault = fault::text::read("feeble,most=0.5,ids=0", &[&FEEBLE]).unwrap();
    assert_eq!(fault.to_string(), "feeble,most=0.5,ids=0");
    assert_eq!(fault.describe(8), "1 of 8 agents push with 0.5 at most");
    let strong = Fault::new(FEEBLE.with("most", -1));
    let [low, high] = PROBLEM.reach;
    let refusal = strong.check(8, 1, low, high).unwrap_err().to_string();
    assert!(refusal.contains("most is -1"), "{refusal}");

    let places = positions(2);
    let run = Run {
        grid: &PROBLEM.grid,
        places: &places,
        at_first: places.len(),
        steps: STEPS,
        interval_us: PROBLEM.control_interval * 1e6,
        seed: 1,
    };
    struct Eager;
    impl Link for Eager {
        fn send(&mut self, _: &Observation<'_>) -> Result<(), LinkError> {
            Ok(())
        }

        fn receive(&mut self, _: u64) -> Result<Option<Action>, LinkError> {
            Ok(Some(Action {
                force: 7.0,
                ..Action::none(Mode::Active)
            }))
        }
    }
    let plan = Plan::new(&[fault], run);
    let force = |agent| {
        plan.stack(agent, || Eager)
            .receive(0)
            .unwrap()
            .unwrap()
            .force
    };
    assert_eq!((force(0), force(1)), (0.5, 7.0));
}
