//! The problem through every command, and its three solvers against each other.

use burn::tensor::Device;
use own_equation::{EASY, ENTRY};
use problem::random_field::episode_rng;
use std::path::Path;
use std::process::Command;
use trainer::adjoint::physics::{Batch, FieldStep, Gradients, Interval};

/// Runs a command in `folder`; what it printed.
fn run(folder: &Path, line: &str) -> String {
    let output = command(folder, line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail; its message.
fn refused(folder: &Path, line: &str) -> String {
    let output = command(folder, line);
    assert!(!output.status.success(), "{line} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

fn command(folder: &Path, line: &str) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_own-equation"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn it_is_simulated_trained_exported_evaluated_swept_and_broken() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(run(at, "problems").contains("burgers-1d"));
    run(at, "run burgers-1d --controller none --out out/alone");
    run(at, "train burgers-1d --preset quick --batch 8 --steps 40");
    run(
        at,
        "train burgers-1d --preset quick --batch 8 --steps 60 --resume",
    );
    run(at, "export runs/burgers-1d/best -o my.policy");
    assert!(run(at, "inspect my.policy").contains("burgers-1d"));
    let json = run(
        at,
        "eval burgers-1d --policy my.policy --episodes 8 --set fresh --json",
    );
    let alone = run(
        at,
        "eval burgers-1d --controller none --episodes 8 --set fresh --json",
    );
    assert!(
        final_error(&json) < 0.5 * final_error(&alone),
        "{json} {alone}"
    );
    run(
        at,
        "run burgers-1d --policy my.policy --fault crash,fraction=0.3,at=0.5 --out out/broken",
    );
    assert!(at.join("out/broken/report.html").exists());
    run(at, "replay out/broken");
    run(
        at,
        "sweep burgers-1d --policy my.policy --agents 6,12 --episodes 2 --out out/sweep",
    );
    run(at, "oracle burgers-1d --episodes 1 --runs 5");
}

/// The mean final error in the output of `eval --json`.
fn final_error(json: &str) -> f64 {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value["final"]["mean"].as_f64().unwrap()
}

#[test]
fn the_easy_way_trains_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(
        at,
        "train burgers-1d-easy --preset quick --batch 2 --steps 4 --agents 4",
    );
    run(at, "export runs/burgers-1d-easy/latest -o easy.policy");
    run(at, "run burgers-1d-easy --policy easy.policy --steps 20");
}

#[test]
fn what_it_does_not_have_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let message = refused(at, "run burgers-1d");
    assert!(
        message.contains("--policy") && message.contains("--gain"),
        "{message}"
    );
    let message = refused(at, "eval burgers-1d --controller none --set table");
    assert!(message.contains("--set fresh"), "{message}");
    let message = refused(at, "run burgers-1d --controller none --physics nu=7");
    assert!(message.contains("from 2e-2 to 1e0"), "{message}");
    if cfg!(feature = "gpu") {
        let message = refused(at, "train burgers-1d --backend gpu");
        assert!(message.contains("--backend wgpu"), "{message}");
    }
    let message = refused(at, "run heat-1d");
    assert!(message.contains("burgers-1d"), "{message}");
}

/// On one emulated board, with the image that the workspace's tests run.
#[test]
fn a_board_does_what_an_agent_of_this_process_does() {
    let Some(image) = std::env::var_os("FIRMWARE_ELF") else {
        assert!(std::env::var_os("CI").is_none(), "CI has an image");
        eprintln!("no image: nothing run on a board");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, "train burgers-1d --preset quick --batch 2 --steps 4");
    run(at, "export runs/burgers-1d/latest -o my.policy");
    let image = image.to_str().unwrap().to_owned();
    run(
        at,
        &format!("run burgers-1d --policy my.policy --steps 40 --link qemu=1 --image {image}"),
    );
    run(at, "replay out/run-burgers-1d");
}

/// Truth, hand-written step and tensor operations: the same field, and the last two the same gradients.
#[test]
fn all_three_solvers_agree() {
    let forms = [None, Some(0.02), Some(1.0)].map(|nu| match nu {
        None => *ENTRY.problem,
        Some(nu) => ENTRY.problem.with_physics([("nu", nu)]).unwrap(),
    });
    for problem in forms {
        let n = problem.grid.len();
        let episode = (problem.draw)(&problem, &mut episode_rng(3, 0));
        let (fields, forcing, pull) = (
            episode.initial,
            (0..n).map(|j| (0.3 * j as f32).sin()).collect::<Vec<f32>>(),
            (0..n).map(|j| (0.7 * j as f32).cos()).collect::<Vec<f32>>(),
        );
        let by_hand = ENTRY
            .physics
            .step_by_hand::<f32>(&problem)
            .unwrap()
            .unwrap();
        let in_tensors = EASY.physics.step(&problem, &Device::default()).unwrap();
        let [hand, tensors] =
            [by_hand, in_tensors].map(|step| gradients(&*step, &fields, &forcing, &pull));
        for (a, b) in hand.iter().flatten().zip(tensors.iter().flatten()) {
            assert!((a - b).abs() <= 1e-5, "{}: {a} {b}", problem.described());
        }
        let mut truth: Vec<f64> = fields.iter().map(|&u| f64::from(u)).collect();
        let force: Vec<f64> = forcing.iter().map(|&f| f64::from(f)).collect();
        (problem.stepper)(&problem, 1).step(&mut truth, &force);
        for (a, b) in truth.iter().zip(&hand[0]) {
            assert!(
                (a - f64::from(*b)).abs() <= 1e-5,
                "{}: {a} {b}",
                problem.described()
            );
        }
    }
}

/// The next field, then the gradients of field and forcing.
fn gradients(
    step: &dyn FieldStep<f32>,
    fields: &[f32],
    forcing: &[f32],
    pull: &[f32],
) -> [Vec<f32>; 3] {
    let n = fields.len();
    let [mut next, mut g_fields, mut g_forcing] = [(); 3].map(|()| vec![0.0; n]);
    let mut tape = vec![0.0; step.tape_len()];
    let mut scratch = vec![0.0; step.scratch_len()];
    let one = Batch {
        episodes: 1,
        step: 0,
    };
    step.advance(one, fields, forcing, &mut next, &mut tape, &mut scratch);
    let at = Interval {
        fields,
        forcing,
        next: &next,
        tape: &tape,
    };
    let g = Gradients {
        next: pull,
        fields: &mut g_fields,
        forcing: &mut g_forcing,
    };
    step.adjoint(one, at, g, &mut scratch);
    [next, g_fields, g_forcing]
}
