//! Networks that other programs wrote, as policies: ONNX and safetensors, for the layers that a blob has.
//!
//! A file becomes a [`Graph`] of operators; `convert` reads the layers out of it, and the graph itself, run
//! operator by operator in double precision, is what the policy is held against: [`Difference`]. `docs/import.md`
//! says what is taken. (ONNX's messages are declared here by hand and its dozen operators computed here,
//! because a runtime for all of ONNX would take everybody who builds the trainer minutes to compile.)

mod convert;
mod graph;
mod onnx;
mod tensors;

use crate::arrays::{Arrays, ArraysError, Description, Network, Tensor};
use crate::fitting;
use crate::observation::OwnedObservation;
use crate::policy_file::{PolicyFile, PolicyFileError};
use agent_core::message::Span;
use agent_core::policy::{self, Encoding, FORMAT, MAX_MEMORY, Memory, Policy};
pub use graph::{Graph, Value};
use problem::{Problem, input};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;
use std::fmt;
use std::path::{Path, PathBuf};

/// The operators that are taken, for people.
const OPERATORS: &str = "Gemm, MatMul and Add, Conv of 3 × 3, Tanh, Relu, Flatten, Concat or Mul of branch and trunk, and \
     Div(h, ReduceL2(h) + 1)";

/// Why a network is no policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read the network {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Neither of the two kinds.
    #[error("'{}' is neither .onnx nor .safetensors; give one of these", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// Something is wrong with the file as a whole.
    #[error("the network cannot be taken: {0}")]
    File(String),
    /// An operator that no policy has, or not so.
    #[error("the network's operator {operator} ('{node}') cannot be taken: {why}")]
    Operator {
        /// Its kind.
        operator: String,
        /// Its name.
        node: String,
        /// What stands against it.
        why: String,
    },
    /// An array whose name says nothing.
    #[error(
        "the array '{name}' is of no layer that is known: names are like branch.0.weight and branch.0.bias, \
         below convolutions, branch, trunk and head, or frequencies"
    )]
    Name {
        /// Its name.
        name: String,
    },
    /// A layer without weights, or with two.
    #[error(
        "the layer {layer} has not one array of weights, 'weight' as PyTorch has it or, of dense layers, 'kernel' as Flax does"
    )]
    Incomplete {
        /// Its name.
        layer: String,
    },
    /// The window is wider than anything.
    #[error(
        "a window of {window} cells is too wide: at most {} are seen",
        policy::MAX_WIDTH
    )]
    Window {
        /// As asked for.
        window: usize,
    },
    /// The layers make no policy for this problem.
    #[error("{source}{hint}", source = .0, hint = hint(.0))]
    Arrays(ArraysError),
    /// The blob is not one for this problem.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
}

/// What may be wrong where layers do not fit what agents are shown.
fn hint(error: &ArraysError) -> &'static str {
    match error {
        ArraysError::Chain { .. } => {
            "; the window, the wide view, the memory and the frequencies must be those that it was trained with"
        }
        _ => "",
    }
}

/// What a file does not say.
#[derive(Debug, Clone, Default)]
pub struct Assumed {
    /// Cells of the window; the problem's unless given.
    pub window: Option<usize>,
    /// Cells of a coarse picture of the whole.
    pub wide: Option<[u8; 2]>,
    /// Numbers that an agent remembers.
    pub memory: u8,
    /// Of the waves that the trunk reads; 1, 2, 4, 8 unless given here or in the file.
    pub frequencies: Option<Vec<f32>>,
    /// How weights are stored.
    pub encoding: Encoding,
    /// What layers end in, for safetensors: tanh, relu or identity.
    pub activation: Option<String>,
    /// The branch's norm, for safetensors: none or soft.
    pub norm: Option<String>,
    /// How branch and trunk are joined, for safetensors: concatenate or multiply.
    pub fusion: Option<String>,
}

/// A network that has become a policy.
#[derive(Debug)]
pub struct Imported {
    /// The policy.
    pub file: PolicyFile,
    /// How far it is from the network.
    pub difference: Difference,
    /// Whether the network ends in the tanh that agents apply; if not, they apply it to its outputs.
    pub ends_in_tanh: bool,
}

/// How far a policy is from the network it was made of, in shares of the limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Random observations that both were shown.
    pub observations: usize,
    /// The largest difference of an output.
    pub largest: f64,
    /// The root of the mean square.
    pub rms: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            observations,
            largest,
            rms,
        } = self;
        write!(
            f,
            "at most {largest:.1e} of a limit from the network, {rms:.1e} rms, on {observations} random observations"
        )
    }
}

/// Reads a network and makes a policy for this problem of it.
pub fn import(path: &Path, problem: &Problem, assumed: &Assumed) -> Result<Imported, ImportError> {
    let bytes = input::read(path, input::POLICY).map_err(|source| ImportError::Io {
        path: path.to_owned(),
        source,
    })?;
    let kind = path.extension().and_then(|kind| kind.to_str());
    let (graph, frequencies) = match kind {
        Some("onnx") => (onnx::read(&bytes)?, None),
        Some("safetensors") => tensors::read(&bytes, assumed)?,
        _ => {
            return Err(ImportError::Kind {
                path: path.to_owned(),
            });
        }
    };
    let frequencies = assumed.frequencies.clone().or(frequencies);
    made(
        &graph,
        frequencies,
        problem,
        assumed,
        path.display().to_string(),
    )
}

fn made(
    graph: &Graph,
    frequencies: Option<Vec<f32>>,
    problem: &Problem,
    assumed: &Assumed,
    origin: String,
) -> Result<Imported, ImportError> {
    if graph.inputs.is_empty() || graph.inputs.len() > 2 {
        return Err(ImportError::File(format!(
            "it has {} inputs; a policy has the observation and, if it has a trunk, the waves of its position",
            graph.inputs.len()
        )));
    }
    let layers = convert::layers(graph)?;
    let window = assumed.window.unwrap_or(problem.sensing.window);
    if window > policy::MAX_WIDTH {
        return Err(ImportError::Window { window });
    }
    let mut description = Description::of(&fitting::header(problem, window), FORMAT);
    description.sensing.wide = assumed.wide.or(description.sensing.wide);
    description.network = Network {
        convolutions: layers.convolutions,
        flatten: policy::Norm::None,
        branch: layers.branch,
        trunk: layers.trunk,
        fusion: layers.fusion,
        head: layers.head,
        // As the trainer has it.
        memory: (assumed.memory > 0).then_some(Memory {
            floats: assumed.memory,
            leak: 0.05,
            gain: 0.2,
        }),
        encoding: assumed.encoding,
    };
    let mut tensors = layers.tensors;
    if graph.inputs.len() == 2 {
        let values = frequencies.unwrap_or_else(|| vec![1.0, 2.0, 4.0, 8.0]);
        let shape = vec![values.len()];
        tensors.push(("frequencies".to_owned(), Tensor { shape, values }));
    }
    let arrays = Arrays {
        description,
        tensors,
    };
    let file = PolicyFile::new(&arrays.blob().map_err(ImportError::Arrays)?, origin);
    let difference = difference(graph, &file.policy(problem)?, layers.ends_in_tanh)?;
    Ok(Imported {
        file,
        difference,
        ends_in_tanh: layers.ends_in_tanh,
    })
}

/// Observations that both are shown.
const OBSERVATIONS: usize = 256;

/// Shows both the same.
fn difference(
    graph: &Graph,
    policy: &Policy,
    ends_in_tanh: bool,
) -> Result<Difference, ImportError> {
    let header = policy.header();
    let (network, limits) = (&header.network, &header.limits);
    let axes = usize::from(header.sensing.axes);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut workspace = vec![0.0; policy.workspace_len()];
    let (mut largest, mut squares, mut count) = (0.0f64, 0.0, 0);
    for _ in 0..OBSERVATIONS {
        let mut seen = OwnedObservation::blank(policy);
        let samples = [
            &mut seen.field,
            &mut seen.target,
            &mut seen.wide_field,
            &mut seen.wide_target,
        ];
        for sample in samples.into_iter().flatten() {
            *sample = rng.random_range(-1.0..1.0);
        }
        // Walls here and there.
        let last = header.sensing.window + 1;
        for span in seen.inside.iter_mut().take(axes) {
            *span = Span {
                first: rng.random_range(0..=last / 2),
                last,
            };
        }
        let share: [f32; 2] = [rng.random_range(0.0..1.0), rng.random_range(0.0..1.0)];
        for (axis, share) in share.iter().enumerate().take(axes) {
            let (low, high) = (limits.low[axis], limits.high[axis]);
            seen.position[axis] = low + share * (high - low);
        }
        let mut memory = [0.0; MAX_MEMORY];
        let remembered = network.remembered();
        memory[..remembered].fill_with(|| rng.random_range(-1.0..1.0));
        let mut features = vec![0.0; policy.features_len()];
        let given = seen.as_observation();
        let shown = policy.features(&given.patch, &mut workspace, &mut features);
        let mut values: Vec<f64> = features.iter().map(|&x| x.into()).collect();
        values.extend(memory[..remembered].iter().copied().map(f64::from));
        let made = policy.outputs(&given, &mut memory, &mut workspace);
        let (Some(()), Some(made)) = (shown, made) else {
            return Err(ImportError::File(
                "the policy does not take its observations".to_owned(),
            ));
        };
        let observation = match network.convolutions.first() {
            None => Value::row(values),
            Some(first) => picture(
                &values,
                usize::from(header.sensing.window),
                first.inputs.into(),
            ),
        };
        let mut inputs = vec![observation];
        if graph.inputs.len() == 2 {
            let places = (0..axes).map(|axis| {
                let (low, high) = (f64::from(limits.low[axis]), f64::from(limits.high[axis]));
                ((f64::from(seen.position[axis]) - low) / (high - low)).clamp(0.0, 1.0)
            });
            let angles = places.flat_map(|s| {
                network
                    .frequencies
                    .iter()
                    .map(move |&f| PI * f64::from(f) * s)
            });
            let angles: Vec<f64> = angles.collect();
            let sines = angles.iter().map(|a| a.sin());
            inputs.push(Value::row(
                sines.chain(angles.iter().map(|a| a.cos())).collect(),
            ));
        }
        let expected = graph.run(&inputs)?;
        let driving = expected.values.iter().skip(2 * remembered);
        for (expected, made) in driving.zip(made) {
            let expected = if ends_in_tanh {
                *expected
            } else {
                expected.tanh()
            };
            let off = (f64::from(made).tanh() - expected).abs();
            largest = largest.max(off);
            squares += off * off;
            count += 1;
        }
    }
    Ok(Difference {
        observations: OBSERVATIONS,
        largest,
        rms: (squares / f64::from(count.max(1))).sqrt(),
    })
}

/// The cells of a window, channels first.
fn picture(cells: &[f64], side: usize, channels: usize) -> Value {
    let of = |channel: usize| cells.iter().skip(channel).step_by(channels.max(1)).copied();
    let values: Vec<f64> = (0..channels)
        .flat_map(|c| of(c).take(side * side))
        .collect();
    Value {
        shape: vec![1, channels, side, side],
        values,
    }
}
