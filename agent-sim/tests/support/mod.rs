//! The program as a user meets it, and a small policy that works, so that tests need no trained one.
#![allow(dead_code)] // Each test file uses its own part of this.

use std::path::Path;
use std::process::{Command, Output};

use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Disc, Fusion, Header, Limits, Network, Norm,
    Provenance, Sensing, Text, Timing, encode,
};
use problem::Problem;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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
        problem: Text::new(problem),
        sensing: Sensing {
            axes: 1,
            window: 8,
            target: true,
            channels: heapless::Vec::from_slice(&[Channel::Error]).unwrap(),
            samples: 8,
            error_limit: 100.0,
            wide: None,
        },
        network: Network {
            branch: heapless::Vec::from_slice(&[dense(8, 1)]).unwrap(),
            frequencies: heapless::Vec::new(),
            trunk: heapless::Vec::new(),
            fusion: Fusion::Concatenate,
            head: heapless::Vec::from_slice(&[dense(1, 2)]).unwrap(),
            ..Network::default()
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(2.0),
            low: [0.0; 2],
            high: [1.0; 2],
            keep_out: heapless::Vec::new(),
            ..Limits::default()
        },
        timing: timing(1_000),
        workspace: 0,
        provenance: BY_HAND,
        probe: None,
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

const BY_HAND: Provenance<'static> = Provenance {
    tool: Text::new("by hand"),
    revision: Text::new(""),
    seed: 0,
    steps: 0,
};

fn timing(period_us: u32) -> Timing {
    Timing {
        period_us,
        late_us: 3 * period_us,
        fail_safe_us: 20 * period_us,
    }
}

/// What can be chosen about a policy of the plane.
#[derive(Clone, Copy)]
pub struct Plane {
    pub window: u16,
    pub wide: Option<[u8; 2]>,
    /// Whether the policy knows the problem's keep-out zones.
    pub keep_out: bool,
    /// Decides the weights.
    pub seed: u64,
}

/// A blob with random weights for a problem of the plane.
pub fn plane_policy(problem: &Problem, plane: Plane) -> Vec<u8> {
    let Plane { window, wide, .. } = plane;
    let actuation = &problem.actuation;
    let limit = |value: f64| (value > 0.0).then_some(value as f32);
    let (force, velocity) = (limit(actuation.force_max), limit(actuation.velocity_max));
    let [low, high] = problem.reach.map(|corner| corner.map(|x| x as f32));
    let zones: &[_] = if plane.keep_out {
        problem.keep_out
    } else {
        &[]
    };
    let sensing = Sensing {
        axes: 2,
        window,
        target: problem.tracking,
        channels: heapless::Vec::from_slice(&[Channel::Error]).unwrap(),
        samples: window,
        error_limit: 100.0,
        wide,
    };
    let features = usize::from(window).pow(2) + sensing.wide_len();
    let outputs = usize::from(force.is_some()) + 2 * usize::from(velocity.is_some());
    // Frequencies 1 and 2, sine and cosine, along two axes.
    let sizes = [(features, 24), (8, 8), (32, outputs)];
    let layer = |(inputs, outputs): (usize, usize), norm| {
        let dense = Dense {
            inputs: inputs as u16,
            outputs: outputs as u16,
            norm,
            activation: Activation::Tanh,
        };
        heapless::Vec::from_slice(&[dense]).unwrap()
    };
    let header = Header {
        problem: Text::new(problem.name),
        sensing,
        network: Network {
            branch: layer(sizes[0], Norm::Soft),
            frequencies: heapless::Vec::from_slice(&[1.0, 2.0]).unwrap(),
            trunk: layer(sizes[1], Norm::None),
            fusion: Fusion::Concatenate,
            head: layer(sizes[2], Norm::None),
            ..Network::default()
        },
        limits: Limits {
            force,
            velocity,
            low,
            high,
            keep_out: zones
                .iter()
                .map(|zone| Disc {
                    centre: zone.centre.map(|x| x as f32),
                    radius: zone.radius as f32,
                })
                .collect(),
            ..Limits::default()
        },
        timing: timing((problem.control_interval * 1e6) as u32),
        workspace: 0,
        provenance: BY_HAND,
        probe: None,
    };
    let mut rng = ChaCha8Rng::seed_from_u64(plane.seed);
    let numbers = sizes.map(|(inputs, outputs)| {
        let scale = (3.0 / inputs as f32).sqrt();
        let weights: Vec<f32> = (0..inputs * outputs)
            .map(|_| rng.random_range(-scale..scale))
            .collect();
        (weights, vec![0.0; outputs])
    });
    let layers = numbers
        .each_ref()
        .map(|(weights, bias)| DenseWeights { weights, bias });
    let mut buffer = vec![0; 1 << 16];
    encode(&header, &layers, &mut buffer).unwrap().to_vec()
}

/// The policy with feedback, for heat-1d.
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
