//! Promises about whole runs.

mod support;

use agent_core::policy::Encoding;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::episode::{ClosedLoop, RunError};
use agent_sim::fault::Crash;
use agent_sim::link::{InProcess, Link, Recorder, Wire};
use agent_sim::plant::{BuiltIn, LastWords, Plant, PlantError, Shared, Start};
use agent_sim::recording::Recording;
use agent_sim::sense::View;
use agent_sim::swarm::Swarm;
use agent_sim::trajectory::Trajectory;
use artifacts::policy_file::PolicyFile;
use problem::Episode;
use problem::metrics::Score;
use problem::published::heat_1d::PROBLEM;
use problem::test_set::EpisodeSet;

const VIEW: View = View {
    window: 8,
    target: true,
    wide: None,
};

fn hand_made() -> PolicyFile {
    PolicyFile::new(&support::policy(), "by hand".into())
}

fn episode() -> Episode {
    EpisodeSet::Table.episode(&PROBLEM, 0, 3).unwrap()
}

fn experiment(controller: Controller<'_>, agents: usize) -> Experiment<'_> {
    Experiment {
        problem: &PROBLEM,
        controller,
        agents,
        steps: 300,
        faults: &[],
        seed: 1,
        plant: None,
    }
}

fn score(experiment: &Experiment<'_>) -> Score {
    experiment.run(&episode(), &mut |_| {}).unwrap()
}

#[test]
fn feedback_beats_no_control_and_losses_cost() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let swarm = experiment(Controller::Policy(&policy), 8);
    let killed = Experiment {
        faults: &["crash,fraction=0.5".parse().unwrap()],
        ..swarm
    };
    let proportional = experiment(Controller::Proportional(PROBLEM.baseline.unwrap()), 8);
    let nobody = score(&experiment(Controller::None, 8));
    assert!(score(&swarm).final_error < 0.1 * nobody.final_error);
    assert!(score(&proportional).final_error < 0.1 * nobody.final_error);
    assert!(score(&swarm).final_error < score(&killed).final_error);
    assert!(score(&swarm).travel > 0.0 && score(&swarm).effort > 0.0);
    assert_eq!(score(&proportional).travel, 0.0);
}

/// The policy was trained with 64 agents at most and cannot know that there are 512.
#[test]
fn a_governed_swarm_settles_where_it_is_eight_times_as_large_as_any_in_training() {
    let shipped = PolicyFile::shipped(&PROBLEM).unwrap();
    let episodes = EpisodeSet::Fresh.episodes(&PROBLEM, 5, Some(2)).unwrap();
    let error = |file: &PolicyFile, agents| {
        let policy = file.policy(&PROBLEM).unwrap();
        let experiment = experiment(Controller::Policy(&policy), agents);
        let runs = episodes.iter().map(|e| experiment.run(e, &mut |_| {}));
        runs.map(|score| score.unwrap().final_error).sum::<f64>() / episodes.len() as f64
    };
    let bare = shipped.governed(None).unwrap();
    let small = shipped.recoded(Encoding::Int8).unwrap();
    assert!(error(&bare, 512) > 1e-2, "{}", error(&bare, 512));
    assert!(error(&shipped, 512) < 1e-3, "{}", error(&shipped, 512));
    assert!(error(&small, 512) < 1e-3, "{}", error(&small, 512));
    // Where it was trained there is little to ease.
    let (before, after) = (error(&bare, 8), error(&shipped, 8));
    assert!(after < 1.5 * before, "{before} before, {after} after");
}

#[test]
fn the_dead_stay_where_they_died() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let experiment = Experiment {
        faults: &["crash,fraction=0.5,at=0.5".parse().unwrap()],
        ..experiment(Controller::Policy(&policy), 8)
    };
    let mut trajectory = Trajectory::new(&PROBLEM, &episode(), 300);
    experiment
        .run(&episode(), &mut |snapshot| trajectory.push(snapshot))
        .unwrap();
    let dead: Vec<_> = trajectory
        .paths
        .iter()
        .filter(|path| path.silent_from() == Some(151))
        .collect();
    assert_eq!(dead.len(), 4);
    for path in dead {
        assert_ne!(path.positions[0], path.positions[150]);
        assert!(
            path.positions[150..]
                .iter()
                .all(|x| *x == path.positions[150])
        );
    }
}

/// 1,000 agents make four groups, so that threads have something to disagree about.
#[test]
fn the_number_of_threads_changes_no_bit() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let experiment = experiment(Controller::Policy(&policy), 1000);
        let mut bits: Vec<u64> = Vec::new();
        pool.install(|| {
            experiment
                .run(&episode(), &mut |snapshot| {
                    bits.extend(snapshot.field.iter().map(|z| z.to_bits()));
                    bits.extend(snapshot.positions.iter().map(|x| x[0].to_bits()));
                })
                .unwrap()
        });
        bits
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

fn drive<L: Link>(swarm: Swarm<L>, steps: usize) -> ClosedLoop<L> {
    let mut run = ClosedLoop::new(&PROBLEM, &episode(), swarm);
    (0..steps).for_each(|_| run.advance().unwrap());
    run
}

/// Among 999 dead ones the last agent alive has the field to itself, as if it were alone: what
/// passes over its link must be the same to the last byte.
#[test]
fn an_agent_cannot_tell_a_swarm_of_one_from_a_swarm_of_a_thousand() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let wire = |agents: usize, alive: usize| -> Wire {
        let links = (0..agents)
            .map(|i| {
                Recorder::new(Crash::new(
                    InProcess::new(&policy),
                    (i != alive).then_some(0),
                ))
            })
            .collect();
        let swarm = Swarm::new(&PROBLEM, VIEW, links, vec![[0.3, 0.0]; agents]);
        drive(swarm, 300).swarm().links()[alive].wire().clone()
    };
    let alone = wire(1, 0);
    assert_eq!(alone.sent.len(), 300);
    assert!(alone.received.iter().all(|frame| !frame.is_empty()));
    assert_eq!(alone, wire(1000, 421));
}

/// A link that is cut after some steps.
struct Cut<L>(L, usize);

impl<L: Link> Link for Cut<L> {
    fn send(
        &mut self,
        observation: &agent_core::message::Observation<'_>,
    ) -> Result<(), agent_sim::link::LinkError> {
        self.0.send(observation)
    }

    fn receive(
        &mut self,
        now_us: u64,
    ) -> Result<Option<agent_core::agent::Action>, agent_sim::link::LinkError> {
        if self.1 == 0 {
            return Err(agent_sim::link::LinkError::Closed("cable pulled".into()));
        }
        self.1 -= 1;
        self.0.receive(now_us)
    }
}

#[test]
fn a_broken_link_is_reported_and_the_rest_goes_on() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let links: Vec<Box<dyn Link + '_>> = (0..4)
        .map(|i| -> Box<dyn Link + '_> {
            match i {
                2 => Box::new(Cut(InProcess::new(&policy), 5)),
                _ => Box::new(InProcess::new(&policy)),
            }
        })
        .collect();
    let positions = [0.2, 0.4, 0.6, 0.8].map(|x| [x, 0.0]).to_vec();
    let run = drive(Swarm::new(&PROBLEM, VIEW, links, positions), 6);
    let (agent, error) = &run.swarm().lost()[0];
    assert_eq!((*agent, run.swarm().lost().len()), (2, 1));
    assert!(error.to_string().contains("cable pulled"));
    let heard: Vec<bool> = run
        .swarm()
        .deeds()
        .iter()
        .map(|deed| deed.heard())
        .collect();
    assert_eq!(heard, [true, true, false, true]);
}

/// The problem's own solver that stops working, refuses, or moves the start.
struct Frail {
    inside: BuiltIn,
    steps: usize,
    lasts: usize,
}

impl Plant for Frail {
    fn reset(&mut self, start: &Start<'_>, state: &mut [f64]) -> Result<(), PlantError> {
        self.steps = 0;
        state[3] += 0.5;
        self.inside.reset(start, state)
    }

    fn step(&mut self, forcing: &[f64], dt: f64, state: &mut [f64]) -> Result<(), PlantError> {
        self.steps += 1;
        if self.steps > self.lasts {
            return Err(PlantError::Stopped {
                plant: "frail".into(),
                why: "it is tired".into(),
                said: LastWords::default(),
            });
        }
        self.inside.step(forcing, dt, state)
    }
}

fn frail(lasts: usize) -> Shared {
    let plant = Frail {
        inside: BuiltIn::default(),
        steps: 0,
        lasts,
    };
    Shared::new("frail", plant)
}

#[test]
fn a_plant_computes_the_field_and_says_what_it_begins_with() {
    let file = hand_made();
    let policy = file.policy(&PROBLEM).unwrap();
    let plant = frail(usize::MAX);
    let run = |plant| {
        let mut fields = Vec::new();
        let experiment = Experiment {
            plant,
            ..experiment(Controller::Policy(&policy), 8)
        };
        let score = experiment.run(&episode(), &mut |snapshot| {
            fields.push(snapshot.field.to_vec());
        });
        (fields, score.unwrap())
    };
    let (built_in, _) = run(None);
    let (there, score) = run(Some(&plant));
    assert_eq!(there[0][3], built_in[0][3] + 0.5);
    assert_eq!(there[0][4..], built_in[0][4..]);
    assert_ne!(there[20], built_in[20]);
    // It is reset from run to run.
    assert_eq!(run(Some(&plant)), (there, score));
}

#[test]
fn a_plant_that_fails_ends_the_run_with_the_step_and_the_field_before() {
    let plant = frail(4);
    let experiment = Experiment {
        plant: Some(&plant),
        ..experiment(Controller::None, 0)
    };
    let cut = Recording::watched(&experiment, None, &episode(), |_| ()).unwrap_err();
    assert_eq!(cut.log.len(), 5);
    let RunError::Plant(failed) = cut.error else {
        panic!("{}", cut.error);
    };
    assert_eq!((failed.step, failed.last_finite.len()), (5, 100));
    let text = failed.to_string();
    for fact in ["frail", "it is tired", "step 5"] {
        assert!(text.contains(fact), "{text}");
    }
}

#[test]
fn two_runs_cannot_have_one_plant_at_a_time() {
    let shared = frail(usize::MAX);
    let start = Start {
        problem: &PROBLEM,
        parts: 1,
        seed: 0,
    };
    let (mut one, mut other) = (shared.lend(), shared.lend());
    let (mut state, force) = (vec![0.0; 100], vec![0.0; 100]);
    let dt = PROBLEM.control_interval;
    one.reset(&start, &mut state).unwrap();
    one.step(&force, dt, &mut state).unwrap();
    other.reset(&start, &mut state).unwrap();
    other.step(&force, dt, &mut state).unwrap();
    let taken = one.step(&force, dt, &mut state).unwrap_err();
    assert!(matches!(taken, PlantError::Taken { .. }), "{taken}");
}
