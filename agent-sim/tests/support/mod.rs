//! The program as a user meets it, and a small policy that works, so that tests need no trained one.
#![allow(dead_code)] // Each test file uses its own part of this.

use std::path::Path;
use std::process::{Command, Output};

use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Fusion, Header, Limits, Network, Norm, Provenance,
    Sensing, Timing, encode,
};

/// A blob by hand for `problem`: `u = 40 tanh(−2.5 e)` and `v = 2 tanh(e)` with the mean error `e`
/// of the two cells around the agent.
pub fn policy_for(problem: &str) -> Vec<u8> {
    let dense = |inputs, outputs| Dense {
        inputs,
        outputs,
        norm: Norm::None,
        activation: Activation::Identity,
    };
    let header = Header {
        problem,
        sensing: Sensing {
            axes: 1,
            window: 8,
            target: true,
            channels: heapless::Vec::from_slice(&[Channel::Error]).unwrap(),
            samples: 8,
            error_limit: 100.0,
        },
        network: Network {
            branch: heapless::Vec::from_slice(&[dense(8, 1)]).unwrap(),
            frequencies: heapless::Vec::new(),
            trunk: heapless::Vec::new(),
            fusion: Fusion::Concatenate,
            head: heapless::Vec::from_slice(&[dense(1, 2)]).unwrap(),
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(2.0),
            low: [0.0; 2],
            high: [1.0; 2],
        },
        timing: Timing {
            period_us: 1_000,
            late_us: 3_000,
            fail_safe_us: 20_000,
        },
        workspace: 0,
        provenance: Provenance {
            tool: "by hand",
            revision: "",
            seed: 0,
            steps: 0,
        },
    };
    let layers = [
        DenseWeights {
            weights: &[0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
            bias: &[0.0],
        },
        DenseWeights {
            weights: &[-2.5, 1.0],
            bias: &[0.0, 0.0],
        },
    ];
    let mut buffer = vec![0; 4096];
    encode(&header, &layers, &mut buffer).unwrap().to_vec()
}

/// The policy above for heat-1d.
pub fn policy() -> Vec<u8> {
    policy_for("heat-1d")
}

/// Runs the program in a folder.
pub fn agent_sim(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What a command prints that must succeed.
pub fn stdout(folder: &Path, arguments: &str) -> String {
    let output = agent_sim(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail, saying each of `facts` in one sentence on standard error and
/// leaving the folder as it was.
pub fn refused(folder: &Path, arguments: &str, facts: &[&str]) {
    let before = listing(folder);
    let output = agent_sim(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{arguments} succeeded");
    assert!(output.stdout.is_empty(), "{arguments} printed results");
    for fact in facts {
        assert!(message.contains(fact), "{arguments}: {message}");
    }
    assert!(message.starts_with("error: "), "{message}");
    assert_eq!(listing(folder), before, "{arguments} left something behind");
}

/// All files and folders below a folder.
pub fn listing(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            files.push(path);
        }
    }
    files.sort();
    files
}

/// An `.npy` file of this shape, all zero but for one value.
pub fn npy(shape: &[usize], odd: Option<(usize, f32)>) -> Vec<u8> {
    let shape_text: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape_text}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    let mut values = vec![0f32; shape.iter().product()];
    if let Some((index, value)) = odd {
        values[index] = value;
    }
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}
