//! Promises about swarms of the plane that run a policy, with and without a picture of the whole.

mod support;

use agent_core::agent::{Action, AgentState, Mode};
use agent_core::message::{Command, Observation, Overview, Patch, Samples, Span, decode_frame};
use agent_core::policy::Policy;
use agent_sim::controller::{Controller, Experiment};
use agent_sim::link::{InProcess, Link, Recorder, Wire};
use agent_sim::sense::View;
use agent_sim::swarm::Swarm;
use artifacts::policy_file::PolicyFile;
use problem::Problem;
use problem::metrics::Score;
use problem::published::{density_2d, heat_1d, heat_2d, heat_2d_obstacles, turbulence_2d};
use problem::random_field::episode_rng;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{Plane, plane_policy};

/// Another window than the published one, 8 on the plate and 12 in the room.
const NEAR: Plane = Plane {
    window: 6,
    wide: None,
    keep_out: true,
    seed: 1,
};
/// The room's 64 × 80 sensors in blocks of 8 × 8.
const WIDE: Plane = Plane {
    wide: Some([8, 10]),
    ..NEAR
};

fn made(problem: &Problem, plane: Plane) -> PolicyFile {
    PolicyFile::new(&plane_policy(problem, plane), "by hand".into())
}

/// A whole run: the score and every bit of the field and of the places on the way.
fn run(problem: &Problem, policy: &Policy, faults: &[&str], seed: u64) -> (Score, Vec<u64>) {
    let faults: Vec<_> = faults.iter().map(|text| text.parse().unwrap()).collect();
    let experiment = Experiment {
        problem,
        controller: Controller::Policy(policy),
        agents: 300,
        steps: 40,
        faults: &faults,
        seed,
        plant: None,
    };
    let episode = (problem.draw)(problem, &mut episode_rng(1, 0));
    let mut bits = Vec::new();
    let score = experiment.run(&episode, &mut |now| {
        bits.extend(now.field.iter().map(|z| z.to_bits()));
        bits.extend(now.positions.iter().flatten().map(|x| x.to_bits()));
    });
    (score.unwrap(), bits)
}

/// 300 agents are two groups, so that threads have something to disagree about.
#[test]
fn swarms_of_the_plane_run_the_same_on_any_number_of_threads() {
    for (problem, plane) in [(&heat_2d::PROBLEM, NEAR), (&density_2d::PROBLEM, WIDE)] {
        let file = made(problem, plane);
        let policy = file.policy(problem).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            (pool.build().unwrap()).install(|| run(problem, &policy, &[], 1))
        };
        let (score, one) = with(1);
        assert!(score.final_error.is_finite() && score.effort > 0.0 && score.travel > 0.0);
        assert_eq!(one, with(3).1, "{}", problem.name);
    }
}

#[test]
fn faults_of_all_kinds_go_with_a_wide_view() {
    const FAULTS: [&str; 12] = [
        "crash,fraction=0.1,at=0.5",
        "blackout,region=0.4..0.5x0.2..0.9,at=0.3,until=0.6",
        "stuck,fraction=0.05,at=0.7",
        "noise,std=0.05",
        "sensor-bias,value=0.01,region=0.2..0.5x0.2..0.5",
        "dropout,p=0.0005",
        "freeze,fraction=0.1,at=0.8",
        "loss,p=0.1",
        "delay,steps=1,jitter=2,fraction=0.5",
        "duplicate,p=0.1",
        "reorder,p=0.1",
        "corrupt,p=0.1",
    ];
    let problem = &density_2d::PROBLEM;
    let file = made(problem, WIDE);
    let policy = file.policy(problem).unwrap();
    let (healthy, _) = run(problem, &policy, &[], 1);
    for fault in FAULTS {
        let (score, _) = run(problem, &policy, &[fault], 1);
        assert!(score.final_error.is_finite(), "{fault}");
        // Seeing the same thing twice changes nothing.
        let effect = !fault.starts_with("duplicate");
        assert_eq!(score != healthy, effect, "{fault}");
    }
    let (_, once) = run(problem, &policy, &FAULTS, 1);
    assert_eq!(once, run(problem, &policy, &FAULTS, 1).1);
    assert_ne!(once, run(problem, &policy, &FAULTS, 2).1);
}

/// The conversation of the agent at `place` among `others`, on fields that are given rather than
/// controlled, so that only what an agent is told can differ.
fn conversation(problem: &Problem, policy: &Policy, place: [f64; 2], others: usize) -> Wire {
    let mut positions = (problem.placement)(problem, others);
    let own = others / 2;
    positions.insert(own, place);
    let links = vec![Recorder::new(InProcess::new(policy)); positions.len()];
    let mut swarm = Swarm::new(problem, View::of(policy), links, positions);
    let target = (problem.draw)(problem, &mut episode_rng(1, 0)).target;
    let mut force = vec![0.0; problem.components() * problem.grid.len()];
    for step in 0..20 {
        let field = (problem.draw)(problem, &mut episode_rng(2, step)).initial;
        let now_us = (1e6 * problem.control_interval) as u64 * step;
        swarm.act(&field, &target, now_us, &mut force);
        swarm.travel(problem.control_interval);
    }
    swarm.links()[own].wire().clone()
}

#[test]
fn an_agent_alone_and_among_a_hundred_reads_and_writes_the_same_bytes() {
    for (problem, plane) in [(&heat_2d::PROBLEM, NEAR), (&density_2d::PROBLEM, WIDE)] {
        let file = made(problem, plane);
        let policy = file.policy(problem).unwrap();
        for place in [[0.1, 0.1], [0.42, 0.63]] {
            let alone = conversation(problem, &policy, place, 0);
            assert_eq!((alone.sent.len(), alone.received.len()), (20, 20));
            let among = conversation(problem, &policy, place, 99);
            assert!(alone == among, "{} at {place:?}", problem.name);
        }
    }
}

#[test]
fn the_window_and_the_blocks_are_those_of_the_policy() {
    let problem = &density_2d::PROBLEM;
    let file = made(problem, WIDE);
    let policy = file.policy(problem).unwrap();
    let mut wire = conversation(problem, &policy, [0.5, 0.5], 0);
    match decode_frame(&mut wire.sent[0]) {
        Ok((_, Command::Observe(observation))) => {
            let patch = observation.patch;
            let wide = patch.wide;
            assert_ne!(problem.sensing.window, 6);
            assert_eq!((patch.field.len(), patch.target.len()), (8 * 8, 8 * 8));
            assert_eq!((wide.field.len(), wide.target.len()), (80, 80));
            // Blocks are equal, so the mean of their means is that of the whole.
            let episode = (problem.draw)(problem, &mut episode_rng(2, 0));
            let mean = |values: &mut dyn Iterator<Item = f32>, n: f64| {
                values.map(f64::from).sum::<f64>() / n
            };
            let whole = mean(&mut episode.initial.iter().copied(), 5120.0);
            let blocks = mean(&mut wide.field.iter(), 80.0);
            assert!((whole / blocks - 1.0).abs() < 1e-6, "{whole} {blocks}");
        }
        other => panic!("{other:?}"),
    }
}

/// The same network with and without knowledge of the zones: it runs into them only without.
#[test]
fn agents_that_know_the_zones_stay_out_of_them_whatever_the_network_says() {
    let problem = &heat_2d_obstacles::PROBLEM;
    let intrusion = |plane: Plane| -> f64 {
        let file = made(problem, plane);
        let policy = file.policy(problem).unwrap();
        run(problem, &policy, &["loss,p=0.3"], 1).0.intrusion
    };
    let mut strayed = 0;
    for seed in 0..6 {
        let knowing = Plane { seed, ..NEAR };
        assert_eq!(intrusion(knowing), 0.0, "seed {seed}");
        let unknowing = Plane {
            keep_out: false,
            ..knowing
        };
        strayed += usize::from(intrusion(unknowing) > 0.0);
    }
    assert!(strayed >= 3, "{strayed} of 6");
}

#[test]
fn a_policy_that_does_not_fit_its_problem_is_refused_by_name() {
    let refusal = |file: &PolicyFile, problem: &Problem| -> String {
        file.policy(problem).unwrap_err().to_string()
    };
    let other = made(&heat_2d::PROBLEM, NEAR);
    let said = refusal(&other, &density_2d::PROBLEM);
    assert!(
        said.contains("trained for heat-2d, not for density-2d"),
        "{said}"
    );

    let line = Problem {
        name: "heat-2d",
        ..heat_1d::PROBLEM
    };
    let said = refusal(&other, &line);
    assert!(said.contains("2 axes but heat-2d has 1"), "{said}");
    let flat = PolicyFile::new(&support::policy_for("heat-2d"), "by hand".into());
    let said = refusal(&flat, &heat_2d::PROBLEM);
    assert!(said.contains("1 axis but heat-2d has 2"), "{said}");

    // The plate has 32 × 32 sensors; 64 cells are far more, 10 do not divide them.
    let wide = made(&heat_2d::PROBLEM, WIDE);
    let said = refusal(&wide, &heat_2d::PROBLEM);
    assert!(
        said.contains("8 × 10 blocks") && said.contains("32x32"),
        "{said}"
    );
    let large = Plane { window: 40, ..NEAR };
    let said = refusal(&made(&heat_2d::PROBLEM, large), &heat_2d::PROBLEM);
    assert!(
        said.contains("40 cells") && said.contains("grid of 32"),
        "{said}"
    );
    let turbulence = made(&turbulence_2d::PROBLEM, NEAR);
    turbulence.policy(&turbulence_2d::PROBLEM).unwrap();
}

#[test]
fn the_commands_take_policies_of_the_plane() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, problem: &Problem, plane| {
        std::fs::write(folder.path().join(name), plane_policy(problem, plane)).unwrap();
    };
    write("plate.policy", &heat_2d::PROBLEM, NEAR);
    write("room.policy", &density_2d::PROBLEM, WIDE);
    let said = |arguments: &str| support::stdout(folder.path(), arguments);
    let table = said("eval density-2d --policy room.policy --episodes 2 --steps 20");
    assert!(table.contains("policy, conservative"), "{table}");
    said("run heat-2d --policy plate.policy --steps 10 --fault noise,std=0.1 --alone");
    said("sweep heat-2d --policy plate.policy --agents 4,9 --episodes 1 --steps 5");
    support::refused(
        folder.path(),
        "eval heat-2d --policy room.policy",
        &["density-2d", "heat-2d", "--policy"],
    );
}

/// Patches of noise at all distances from walls, every tenth with a gap.
#[test]
fn wider_vectors_change_no_bit_in_the_plane() {
    let problem = &density_2d::PROBLEM;
    let file = made(problem, WIDE);
    let policy = file.policy(problem).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut link = InProcess::new(&policy);
    let mut state = AgentState::new();
    let mut workspace = vec![0.0; policy.workspace_len()];
    for step in 0..500 {
        let mut noise =
            |n: usize| -> Vec<f32> { (0..n).map(|_| rng.random_range(-2.0..2.0)).collect() };
        let (mut field, target, wide) = (noise(64), noise(64), noise(160));
        if step % 10 == 9 {
            field[4 * 8 + 4] = f32::NAN; // the agent's own cell
        }
        let mut span = || Span {
            first: rng.random_range(0..=4),
            last: rng.random_range(4..=7),
        };
        let inside = [span(), span()];
        let observation = Observation {
            now_us: 10_000 * step,
            position: [rng.random_range(0.0..1.0), rng.random_range(0.0..1.25)],
            patch: Patch {
                field: Samples::new(&field),
                target: Samples::new(&target),
                inside,
                wide: Overview {
                    field: Samples::new(&wide[..80]),
                    target: Samples::new(&wide[80..]),
                },
            },
        };
        let expected = state.step(&policy, &mut workspace, &observation);
        let active = if step % 10 == 9 {
            Mode::Holding
        } else {
            Mode::Active
        };
        assert_eq!(expected.mode, active, "step {step}");
        link.send(&observation).unwrap();
        let found = link.receive(observation.now_us).unwrap().unwrap();
        let bits = |action: &Action| action.velocity.map(f32::to_bits);
        assert_eq!((bits(&found), found.mode), (bits(&expected), expected.mode));
    }
}
