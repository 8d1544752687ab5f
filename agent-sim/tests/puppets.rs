//! Agents that are led from outside do what agents do that decide by themselves.

use agent_core::agent::AgentState;
use agent_core::policy::Policy;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::fault::Fault;
use agent_sim::plant::BuiltIn;
use agent_sim::puppets::{BadLead, Order, Puppets, Stage};
use agent_sim::sense::View;
use artifacts::observation::OwnedObservation;
use artifacts::policy_file::PolicyFile;
use problem::published::{density_2d, heat_1d, ks_1d};
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem};

const STEPS: usize = 20;

fn faults(texts: &[&str]) -> Vec<Fault> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn stage<'a>(problem: &'a Problem, view: View, faults: &'a [Fault]) -> Stage<'a> {
    Stage {
        problem,
        view,
        agents: 6,
        steps: STEPS,
        faults,
        seed: 3,
    }
}

fn episode(problem: &Problem) -> Episode {
    EpisodeSet::Fresh.episode(problem, 1, 0).unwrap()
}

/// What an agent with a policy makes of what a puppet saw.
fn decide(policy: &Policy<'_>, state: &mut AgentState, sight: &OwnedObservation) -> Order {
    let mut workspace = vec![0.0; policy.workspace_len()];
    let action = state.step(policy, &mut workspace, &sight.as_observation());
    Order {
        force: action.force,
        velocity: action.velocity,
    }
}

fn led(stage: &Stage<'_>) -> Result<Puppets, BadLead> {
    Puppets::new(stage, &episode(stage.problem), Box::new(BuiltIn::default()))
}

fn bits(field: &[f64]) -> Vec<u64> {
    field.iter().map(|z| z.to_bits()).collect()
}

/// The field after every step, of agents that decide by themselves and of puppets led by the same policy.
fn both_ways(problem: &Problem, faults: &[Fault]) -> [Vec<Vec<u64>>; 2] {
    let file = PolicyFile::shipped(problem).unwrap();
    let policy = file.policy(problem).unwrap();
    let episode = episode(problem);
    let stage = stage(problem, View::of(&policy), faults);
    let mut alone = Vec::new();
    let experiment = Experiment {
        problem,
        controller: Controller::Policy(&policy),
        agents: stage.agents,
        steps: STEPS,
        faults,
        seed: stage.seed,
        plant: None,
    };
    experiment
        .run(&episode, &mut |snapshot| alone.push(bits(snapshot.field)))
        .unwrap();
    let mut puppets = led(&stage).unwrap();
    let mut states: Vec<AgentState> = (0..stage.agents).map(|_| AgentState::new()).collect();
    let mut seen = vec![bits(puppets.snapshot().field)];
    for _ in 0..STEPS {
        let orders: Vec<Order> = (states.iter_mut().enumerate())
            .map(|(agent, state)| {
                let decide = |sight: &OwnedObservation| decide(&policy, state, sight);
                puppets.sight(agent, decide).unwrap()
            })
            .collect();
        puppets.step(orders).unwrap();
        seen.push(bits(puppets.snapshot().field));
    }
    [alone, seen]
}

#[test]
fn a_led_swarm_gives_the_bits_of_one_that_decides_by_itself() {
    let none = Vec::new();
    let some = faults(&[
        "noise,std=0.1",
        "crash,ids=1,at=0.5",
        "gain,factor=0.5,ids=2",
    ]);
    for problem in [&heat_1d::PROBLEM, &ks_1d::PROBLEM, &density_2d::PROBLEM] {
        for faults in [&none, &some] {
            let [alone, led] = both_ways(problem, faults);
            assert_eq!(alone, led, "{} {}", problem.name, faults.len());
            assert_ne!(led[0], led[STEPS]);
        }
    }
}

#[test]
fn the_killed_do_nothing_and_are_not_heard() {
    let problem = &heat_1d::PROBLEM;
    let view = View {
        window: 8,
        target: true,
        wide: None,
    };
    let mut puppets = led(&stage(problem, view, &[])).unwrap();
    let push = [Order {
        force: 5.0,
        velocity: [1.0, 0.0],
    }; 6];
    puppets.step(push).unwrap();
    let before = puppets.snapshot().positions[2];
    puppets.kill(2);
    puppets.step(push).unwrap();
    let snapshot = puppets.snapshot();
    assert_eq!(snapshot.positions[2], before);
    assert_ne!(snapshot.positions[3], before);
    let heard: Vec<bool> = snapshot.deeds.iter().map(|deed| deed.heard()).collect();
    assert_eq!(heard, [true, true, false, true, true, true]);
    // Whoever is told nothing rests.
    puppets.step([]).unwrap();
    assert!(puppets.snapshot().deeds.iter().all(|d| d.force == 0.0));
}

#[test]
fn what_cannot_be_led_is_refused_by_name() {
    let problem = &heat_1d::PROBLEM;
    let view = |window| View {
        window,
        target: true,
        wide: None,
    };
    let refused = |stage: Stage<'_>| match led(&stage) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error,
    };
    for window in [0, 99, usize::MAX] {
        let error = refused(stage(problem, view(window), &[]));
        assert!(matches!(error, BadLead::Window { most: 98, .. }), "{error}");
    }
    let wide = View {
        wide: Some([7, 1]),
        ..view(8)
    };
    let error = refused(stage(problem, wide, &[]));
    assert!(matches!(error, BadLead::Wide { .. }), "{error}");
    for (text, why) in [
        ("clock,rate=0.02", "no clock"),
        ("kill,count=1,at=0.5", "no boards"),
        ("crash,ids=9", "9"),
    ] {
        let error = refused(stage(problem, view(8), &faults(&[text]))).to_string();
        assert!(error.contains(text) && error.contains(why), "{error}");
    }
}
