//! A policy as other programs hold one: named arrays of its numbers, and a description of all else.
//!
//! Arrays are named after their layers: `branch.0.weight`, row-major `[inputs][outputs]`, and
//! `branch.0.bias`; the same under `trunk` and `head`; `convolutions.0.weight` is
//! `[3][3][inputs][outputs]`; `frequencies` are the trunk's. What a blob has besides, its probe and the size
//! of its working memory, follows from these and is made anew.
//!
//! ```
//! use artifacts::arrays::Arrays;
//! use artifacts::policy_file::PolicyFile;
//! use problem::published::heat_1d;
//!
//! let shipped = PolicyFile::shipped(&heat_1d::PROBLEM).unwrap();
//! let arrays = Arrays::of(&shipped).unwrap();
//! assert_eq!(arrays.description.problem, "heat-1d");
//! assert_eq!(arrays.blob().unwrap(), shipped.bytes());
//! ```

use crate::policy_file::{PolicyFile, PolicyFileError};
use agent_core::policy::{
    self, Channel, Convolution, Dense, DenseWeights, Disc, EncodeError, Encoding, FORMAT, Fusion,
    Header, Layers, MAX_CONVOLUTIONS, MAX_DISCS, MAX_FREQUENCIES, MAX_LAYERS, Memory, Norm, OLDEST,
    Text, Timing, encode_as,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// A policy as arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrays {
    /// All but the numbers.
    pub description: Description,
    /// The numbers, in the order of the network.
    pub tensors: Vec<(String, Tensor)>,
}

/// Numbers in a box of so many along each axis, the last axis fastest.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// As many as they multiply to.
    pub values: Vec<f32>,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({})", by(&self.shape))
    }
}

/// What a blob says about itself, but for its numbers and what follows from the rest.
/// `docs/policy-format.md` says what each field means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The blob's format.
    #[serde(default = "newest")]
    pub format: u16,
    /// The control problem, e.g. `heat-1d`.
    pub problem: String,
    /// What the agent must be shown.
    pub sensing: Sensing,
    /// Its layers.
    pub network: Network,
    /// What the outputs mean and never exceed.
    pub limits: Limits,
    /// How often the agent acts and how long it goes on blind.
    pub timing: Timing,
    /// Where the policy comes from.
    #[serde(default)]
    pub provenance: Provenance,
}

fn newest() -> u16 {
    FORMAT
}

/// As [`policy::Sensing`].
#[expect(missing_docs, reason = "agent-core's fields, where they are described")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensing {
    pub axes: u8,
    pub window: u16,
    pub target: bool,
    pub channels: Vec<Channel>,
    pub samples: u16,
    pub error_limit: f32,
    #[serde(default)]
    pub wide: Option<[u8; 2]>,
}

/// As [`policy::Network`], without the frequencies, which are an array.
#[expect(missing_docs, reason = "agent-core's fields, where they are described")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    #[serde(default)]
    pub convolutions: Vec<Convolution>,
    #[serde(default)]
    pub flatten: Norm,
    pub branch: Vec<Dense>,
    pub trunk: Vec<Dense>,
    #[serde(default)]
    pub fusion: Fusion,
    pub head: Vec<Dense>,
    #[serde(default)]
    pub memory: Option<Memory>,
    #[serde(default)]
    pub encoding: Encoding,
}

/// As [`policy::Limits`].
#[expect(missing_docs, reason = "agent-core's fields, where they are described")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub force: Option<f32>,
    pub velocity: Option<f32>,
    pub low: [f32; 2],
    pub high: [f32; 2],
    #[serde(default)]
    pub keep_out: Vec<Disc>,
    #[serde(default)]
    pub force_rate: Option<f32>,
    #[serde(default)]
    pub velocity_rate: Option<f32>,
    #[serde(default)]
    pub governor: Option<Governor>,
}

/// As [`policy::Governor`].
#[expect(missing_docs, reason = "agent-core's fields, where they are described")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Governor {
    pub growth: f32,
    pub floor: f32,
    #[serde(default)]
    pub band: f32,
}

/// As [`policy::Provenance`].
#[expect(missing_docs, reason = "agent-core's fields, where they are described")]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Provenance {
    pub tool: String,
    pub revision: String,
    pub seed: u64,
    pub steps: u64,
}

/// Why arrays make no policy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArraysError {
    /// The description is none.
    #[error("the header describes no policy: {0}")]
    Description(String),
    /// More of something than a blob holds.
    #[error("the header's {what} has {found} entries and a policy at most {most}")]
    TooMany {
        /// Where.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many could be.
        most: usize,
    },
    /// An array is not there.
    #[error("there is no array '{name}', of shape {}; give it", by(shape))]
    Missing {
        /// Its name.
        name: String,
        /// The shape it should have.
        shape: Vec<usize>,
    },
    /// An array is of no layer.
    #[error(
        "the header has nothing that the array '{name}' belongs to; leave it out, or describe its layer"
    )]
    Unknown {
        /// Its name.
        name: String,
    },
    /// An array is there twice.
    #[error("the array '{name}' is there twice; give it once")]
    Twice {
        /// Its name.
        name: String,
    },
    /// An array has another shape than its layer.
    #[error(
        "the array '{name}' has the shape {} and its layer in the header {}",
        by(found),
        by(expected)
    )]
    Shape {
        /// Its name.
        name: String,
        /// The shape that it has,
        found: Vec<usize>,
        /// and that of its layer.
        expected: Vec<usize>,
    },
    /// A layer does not read what comes before it.
    #[error(
        "{layer} is {inputs} × {outputs} and reads {inputs} values, but {before} gives {given}"
    )]
    Chain {
        /// The layer.
        layer: String,
        /// Values that it reads,
        inputs: usize,
        /// and gives.
        outputs: usize,
        /// What comes before it,
        before: String,
        /// and what that gives.
        given: usize,
    },
    /// A number is none.
    #[error("value {index} of the array '{name}' is {value}; weights are finite")]
    NotFinite {
        /// The array.
        name: String,
        /// Counted from 0, the last axis fastest.
        index: usize,
        /// What it is, as text.
        value: String,
    },
    /// Words that are too long for a node.
    #[error("the header's {what} has {found} bytes and a policy's at most {LONGEST_TEXT}")]
    LongText {
        /// Which.
        what: &'static str,
        /// Its length.
        found: usize,
    },
    /// What agent-core says against it.
    #[error("the arrays make no policy: {0}")]
    Encode(#[from] EncodeError),
}

/// Bytes of a problem's name, or of a provenance.
const LONGEST_TEXT: usize = 256;

/// A shape for people.
fn by(shape: &[usize]) -> String {
    match shape {
        [] => "of a single number".to_owned(),
        [length] => format!("({length},)"),
        _ => {
            let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
            lengths.join(" × ")
        }
    }
}

/// What a layer is in the description: how it is called, and the shape of its weights.
struct Named {
    name: String,
    shape: Vec<usize>,
}

impl Named {
    fn outputs(&self) -> usize {
        self.shape.last().copied().unwrap_or(0)
    }

    /// The names and shapes of its arrays.
    fn arrays(&self) -> [(String, Vec<usize>); 2] {
        [
            (format!("{}.weight", self.name), self.shape.clone()),
            (format!("{}.bias", self.name), vec![self.outputs()]),
        ]
    }
}

impl Network {
    /// All layers in the order of a blob.
    fn layers(&self) -> impl Iterator<Item = Named> {
        let convolutions = self.convolutions.iter().enumerate().map(|(k, c)| Named {
            name: format!("convolutions.{k}"),
            shape: vec![3, 3, usize::from(c.inputs), usize::from(c.outputs)],
        });
        convolutions.chain(self.parts().into_iter().flat_map(|(part, layers)| {
            layers.iter().enumerate().map(move |(k, layer)| Named {
                name: format!("{part}.{k}"),
                shape: vec![usize::from(layer.inputs), usize::from(layer.outputs)],
            })
        }))
    }

    fn parts(&self) -> [(&'static str, &[Dense]); 3] {
        [
            ("branch", &self.branch),
            ("trunk", &self.trunk),
            ("head", &self.head),
        ]
    }
}

impl Arrays {
    /// Those of a policy. One of a format that is no longer written becomes one of the newest.
    pub fn of(file: &PolicyFile) -> Result<Self, PolicyFileError> {
        let policy = file.parse()?;
        let header = policy.header();
        let format = policy::format(file.bytes()).filter(|format| *format >= OLDEST);
        let description = Description::of(header, format.unwrap_or(FORMAT));
        let mut scratch = vec![0.0; policy.parameters_len()];
        let mut layers = Layers::new();
        policy
            .unpack(&mut scratch, &mut layers)
            .expect("there is room for all parameters");
        let numbers = layers.iter().flat_map(|layer| [layer.weights, layer.bias]);
        let names = description.network.layers().flat_map(|l| l.arrays());
        let mut tensors: Vec<_> = names
            .zip(numbers)
            .map(|((name, shape), values)| {
                let values = values.to_vec();
                (name, Tensor { shape, values })
            })
            .collect();
        let frequencies = header.network.frequencies.to_vec();
        if !frequencies.is_empty() {
            let shape = vec![frequencies.len()];
            let values = frequencies;
            tensors.push(("frequencies".to_owned(), Tensor { shape, values }));
        }
        Ok(Self {
            description,
            tensors,
        })
    }

    /// The blob that they make, with a probe of its own: of arrays that came from a blob that agent-core
    /// wrote, the same bytes.
    pub fn blob(&self) -> Result<Vec<u8>, ArraysError> {
        let mut given = HashMap::new();
        for (name, tensor) in &self.tensors {
            if given.insert(name.as_str(), tensor).is_some() {
                return Err(ArraysError::Twice { name: name.clone() });
            }
        }
        let frequencies = match given.remove("frequencies") {
            Some(tensor) => vector("frequencies", tensor)?,
            None => &[],
        };
        let header = self.description.header(frequencies)?;
        self.description.chain(frequencies.len())?;
        let mut layers = Vec::new();
        // Blocks of eight outputs, header, probe and the largest working memory.
        let mut room = 1 << 19;
        for layer in self.description.network.layers() {
            let [weights, bias] = layer.arrays().map(|(name, expected)| {
                let Some(tensor) = given.remove(name.as_str()) else {
                    let shape = expected;
                    return Err(ArraysError::Missing { name, shape });
                };
                numbers(name, tensor, &expected)
            });
            let (weights, bias) = (weights?, bias?);
            let inputs = weights.len() / bias.len().max(1);
            room += (inputs + 1) * bias.len().next_multiple_of(8);
            layers.push(DenseWeights { weights, bias });
        }
        if let Some(name) = given.keys().min() {
            let name = (*name).to_owned();
            return Err(ArraysError::Unknown { name });
        }
        let mut buffer = vec![0u32; room];
        Ok(encode_as(self.description.format, &header, &layers, &mut buffer)?.to_vec())
    }
}

/// The numbers of an array of this shape.
fn numbers<'t>(
    name: String,
    tensor: &'t Tensor,
    expected: &[usize],
) -> Result<&'t [f32], ArraysError> {
    let Tensor { shape, values } = tensor;
    if shape != expected || values.len() != shape.iter().product::<usize>() {
        return Err(ArraysError::Shape {
            name,
            found: shape.clone(),
            expected: expected.to_vec(),
        });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(ArraysError::NotFinite {
            name,
            index,
            value: values[index].to_string(),
        }),
        None => Ok(values),
    }
}

/// The numbers of an array with one axis, of any length.
fn vector<'t>(name: &str, tensor: &'t Tensor) -> Result<&'t [f32], ArraysError> {
    numbers(name.to_owned(), tensor, &[tensor.values.len()])
}

/// As many as a blob holds.
fn held<T: Clone, const N: usize>(
    what: &'static str,
    from: &[T],
) -> Result<heapless::Vec<T, N>, ArraysError> {
    heapless::Vec::from_slice(from).map_err(|_| ArraysError::TooMany {
        what,
        found: from.len(),
        most: N,
    })
}

impl Description {
    /// That of a header in this format.
    pub fn of(header: &Header, format: u16) -> Self {
        let Header {
            problem,
            sensing,
            network,
            limits,
            timing,
            provenance,
            ..
        } = header;
        Self {
            format,
            problem: problem.as_str().to_owned(),
            sensing: Sensing {
                axes: sensing.axes,
                window: sensing.window,
                target: sensing.target,
                channels: sensing.channels.to_vec(),
                samples: sensing.samples,
                error_limit: sensing.error_limit,
                wide: sensing.wide,
            },
            network: Network {
                convolutions: network.convolutions.to_vec(),
                flatten: network.flatten,
                branch: network.branch.to_vec(),
                trunk: network.trunk.to_vec(),
                fusion: network.fusion,
                head: network.head.to_vec(),
                memory: network.memory,
                encoding: network.encoding,
            },
            limits: Limits {
                force: limits.force,
                velocity: limits.velocity,
                low: limits.low,
                high: limits.high,
                keep_out: limits.keep_out.to_vec(),
                force_rate: limits.force_rate,
                velocity_rate: limits.velocity_rate,
                governor: limits.governor.map(|governor| Governor {
                    growth: governor.growth,
                    floor: governor.floor,
                    band: governor.band,
                }),
            },
            timing: *timing,
            provenance: Provenance {
                tool: provenance.tool.as_str().to_owned(),
                revision: provenance.revision.as_str().to_owned(),
                seed: provenance.seed,
                steps: provenance.steps,
            },
        }
    }

    /// The one that a text of JSON is.
    pub fn from_json(text: &str) -> Result<Self, ArraysError> {
        serde_json::from_str(text).map_err(|error| {
            // Where in the text it stands helps nobody who did not write the text.
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            ArraysError::Description(said.to_owned())
        })
    }

    /// The reverse, to the bit.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text, numbers and lists")
    }

    /// The header of a blob; its probe and its working memory are left to [`encode_as`].
    fn header(&self, frequencies: &[f32]) -> Result<Header<'_>, ArraysError> {
        let Self {
            sensing,
            network,
            limits,
            provenance,
            ..
        } = self;
        Ok(Header {
            problem: text("problem", &self.problem)?,
            sensing: policy::Sensing {
                axes: sensing.axes,
                window: sensing.window,
                target: sensing.target,
                channels: held("sensing.channels", &sensing.channels)?,
                samples: sensing.samples,
                error_limit: sensing.error_limit,
                wide: sensing.wide,
            },
            network: policy::Network {
                branch: held::<_, MAX_LAYERS>("network.branch", &network.branch)?,
                frequencies: held::<_, MAX_FREQUENCIES>("array of frequencies", frequencies)?,
                trunk: held::<_, MAX_LAYERS>("network.trunk", &network.trunk)?,
                fusion: network.fusion,
                head: held::<_, MAX_LAYERS>("network.head", &network.head)?,
                convolutions: held::<_, MAX_CONVOLUTIONS>(
                    "network.convolutions",
                    &network.convolutions,
                )?,
                flatten: network.flatten,
                encoding: network.encoding,
                memory: network.memory,
            },
            limits: policy::Limits {
                force: limits.force,
                velocity: limits.velocity,
                low: limits.low,
                high: limits.high,
                keep_out: held::<_, MAX_DISCS>("limits.keep_out", &limits.keep_out)?,
                force_rate: limits.force_rate,
                velocity_rate: limits.velocity_rate,
                governor: limits.governor.map(|governor| policy::Governor {
                    growth: governor.growth,
                    floor: governor.floor,
                    band: governor.band,
                }),
            },
            timing: self.timing,
            workspace: 0,
            provenance: policy::Provenance {
                tool: text("provenance.tool", &provenance.tool)?,
                revision: text("provenance.revision", &provenance.revision)?,
                seed: provenance.seed,
                steps: provenance.steps,
            },
            probe: None,
        })
    }

    /// Values that the branch reads: features, after convolutions theirs, then the wide view and the
    /// memory.
    pub fn branch_inputs(&self) -> usize {
        let Self {
            sensing, network, ..
        } = self;
        let (samples, axes) = (usize::from(sensing.samples), u32::from(sensing.axes.min(2)));
        let near = match network.convolutions.last() {
            None => samples.pow(axes) * sensing.channels.len(),
            Some(last) => {
                let side = |side, c: &Convolution| c.side(side).unwrap_or(0);
                let side = network.convolutions.iter().fold(samples, side);
                side * side * usize::from(last.outputs)
            }
        };
        let wide = sensing
            .wide
            .map_or(0, |[a, b]| usize::from(a) * usize::from(b));
        near + wide + usize::from(network.memory.map_or(0, |memory| memory.floats))
    }

    /// Values that the head gives: a push and a gate for each number of the memory, then force and
    /// velocities.
    pub fn head_outputs(&self) -> usize {
        let remembered = self.network.memory.map_or(0, |memory| memory.floats);
        let force = usize::from(self.limits.force.is_some());
        let moving = usize::from(self.limits.velocity.is_some());
        2 * usize::from(remembered) + force + moving * usize::from(self.sensing.axes)
    }

    /// Whether each layer reads what comes before it. agent-core checks it too, and all else, but has no
    /// room for numbers in what it says.
    fn chain(&self, frequencies: usize) -> Result<(), ArraysError> {
        let network = &self.network;
        let mut channels = (self.sensing.channels.len(), "the observation".to_owned());
        for (k, c) in network.convolutions.iter().enumerate() {
            let name = format!("convolutions.{k}");
            follows(&name, [c.inputs, c.outputs], &channels)?;
            channels = (usize::from(c.outputs), name);
        }
        let seen = match network.convolutions.is_empty() {
            true => "the observation",
            false => "what the convolutions and the observation give together",
        };
        let seen = part(
            "branch",
            &network.branch,
            (self.branch_inputs(), seen.to_owned()),
        )?;
        let waves = 2 * usize::from(self.sensing.axes) * frequencies;
        let waves = (
            waves,
            format!("the position, with {frequencies} frequencies,"),
        );
        let placed = part("trunk", &network.trunk, waves)?;
        let fused = match network.fusion {
            Fusion::Concatenate => seen + placed,
            Fusion::Multiply => seen,
        };
        let fused = (fused, "the fusion of branch and trunk".to_owned());
        let given = part("head", &network.head, fused)?;
        let expected = self.head_outputs();
        if given != expected {
            return Err(ArraysError::Description(format!(
                "its head gives {given} values, and force, velocities and memory need {expected}"
            )));
        }
        Ok(())
    }
}

/// A layer of this name behind what gives so many values.
fn follows(
    name: &str,
    [inputs, outputs]: [u16; 2],
    (given, before): &(usize, String),
) -> Result<(), ArraysError> {
    match usize::from(inputs) == *given {
        true => Ok(()),
        false => Err(ArraysError::Chain {
            layer: name.to_owned(),
            inputs: inputs.into(),
            outputs: outputs.into(),
            before: before.clone(),
            given: *given,
        }),
    }
}

/// What a part of the network gives.
fn part(name: &str, layers: &[Dense], first: (usize, String)) -> Result<usize, ArraysError> {
    let mut before = first;
    for (k, layer) in layers.iter().enumerate() {
        let name = format!("{name}.{k}");
        follows(&name, [layer.inputs, layer.outputs], &before)?;
        before = (usize::from(layer.outputs), name);
    }
    Ok(before.0)
}

fn text<'t>(what: &'static str, words: &'t str) -> Result<Text<'t>, ArraysError> {
    match words.len() {
        found if found > LONGEST_TEXT => Err(ArraysError::LongText { what, found }),
        _ => Ok(Text::new(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published;
    use std::path::Path;

    /// As a program without types would hand them on.
    fn by_text(arrays: Arrays) -> Arrays {
        let description = Description::from_json(&arrays.description.to_json()).unwrap();
        assert_eq!(description, arrays.description);
        Arrays {
            description,
            ..arrays
        }
    }

    fn unchanged(file: &PolicyFile) {
        let arrays = by_text(Arrays::of(file).unwrap());
        assert!(arrays.blob().unwrap() == file.bytes(), "{}", file.origin());
    }

    fn heat() -> Arrays {
        let file = PolicyFile::shipped(&published::heat_1d::PROBLEM).unwrap();
        Arrays::of(&file).unwrap()
    }

    fn tensor<'a>(arrays: &'a mut Arrays, name: &str) -> &'a mut Tensor {
        let mut all = arrays.tensors.iter_mut();
        &mut all.find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn every_shipped_policy_is_written_again_to_the_byte() {
        let mut count = 0;
        for problem in published::measured() {
            unchanged(&PolicyFile::shipped(problem).unwrap());
            count += 1;
        }
        assert_eq!(count, 8);
    }

    #[test]
    fn so_are_those_of_the_example_fields_and_studies_and_int8_ones() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut count = 0;
        for folder in ["examples/fields", "policies"] {
            for file in std::fs::read_dir(root.join(folder)).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|e| e == "policy") {
                    let file = PolicyFile::read(&path).unwrap();
                    unchanged(&file);
                    if file.parse().unwrap().header().network.encoding == Encoding::F32 {
                        unchanged(&file.recoded(Encoding::Int8).unwrap());
                    }
                    count += 1;
                }
            }
        }
        assert!(count >= 11, "{count}");
    }

    #[test]
    fn so_are_convolutions_and_what_old_formats_lack_is_added() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent-core/tests/golden");
        for file in std::fs::read_dir(folder).unwrap() {
            let file = PolicyFile::read(&file.unwrap().path()).unwrap();
            let arrays = by_text(Arrays::of(&file).unwrap());
            let again = arrays.blob().unwrap();
            let again = PolicyFile::new(&again, file.origin().to_owned());
            let (old, new) = (file.parse().unwrap(), again.parse().unwrap());
            assert_eq!(Arrays::of(&again).unwrap(), arrays);
            assert_eq!(old.macs(), new.macs());
            if file.bytes()[8] >= 3 {
                assert!(again.bytes() == file.bytes(), "{}", file.origin());
            }
        }
    }

    #[test]
    fn arrays_that_do_not_fit_are_named_with_both_shapes() {
        let said = |change: fn(&mut Arrays)| {
            let mut arrays = heat();
            change(&mut arrays);
            arrays.blob().unwrap_err().to_string()
        };
        let features = heat().description.branch_inputs();
        let cut = said(|arrays| {
            let weights = tensor(arrays, "branch.1.weight");
            weights.values.truncate(63 * 64);
            weights.shape[0] = 63;
        });
        assert_eq!(
            cut,
            "the array 'branch.1.weight' has the shape 63 × 64 and its layer in the header 64 × 64"
        );
        let chain = said(|arrays| arrays.description.network.branch[0].inputs -= 1);
        assert_eq!(
            chain,
            format!(
                "branch.0 is {0} × 64 and reads {0} values, but the observation gives {features}",
                features - 1
            )
        );
        let missing = said(|arrays| drop(arrays.tensors.remove(1)));
        assert!(
            missing.contains("'branch.0.bias', of shape (64,)"),
            "{missing}"
        );
        let unknown = said(|arrays| {
            let tensor = arrays.tensors[0].1.clone();
            arrays.tensors.push(("branch.9.weight".to_owned(), tensor));
        });
        assert!(unknown.contains("'branch.9.weight'"), "{unknown}");
        let twice = said(|arrays| arrays.tensors.push(arrays.tensors[0].clone()));
        assert!(twice.contains("twice"), "{twice}");
        let none = said(|arrays| tensor(arrays, "head.1.bias").values[0] = f32::NAN);
        assert!(
            none.contains("value 0 of the array 'head.1.bias' is NaN"),
            "{none}"
        );
        let large = said(|arrays| tensor(arrays, "head.1.weight").values[0] = 1e30);
        assert!(large.contains("1e16"), "{large}");
        let many = said(|arrays| {
            let head = &mut arrays.description.network.head;
            *head = vec![head[0]; 7];
        });
        assert!(
            many.contains("7 entries") && many.contains("at most 6"),
            "{many}"
        );
        let long = said(|arrays| arrays.description.problem = "x".repeat(300));
        assert!(long.contains("300 bytes"), "{long}");
        let old = said(|arrays| arrays.description.format = 3);
        assert!(
            old.contains("format 3") && old.contains("write format 5"),
            "{old}"
        );
        let still = said(|arrays| arrays.description.limits.velocity = None);
        assert!(
            still.contains("gives 6 values") && still.contains("need 5"),
            "{still}"
        );
    }

    #[test]
    fn a_description_names_what_it_lacks_and_what_nobody_knows() {
        let text = heat().description.to_json();
        let said = |text: &str| Description::from_json(text).unwrap_err().to_string();
        let wrong = said(&text.replace("\"window\"", "\"windows\""));
        assert!(wrong.contains("unknown field `windows`"), "{wrong}");
        assert!(!wrong.contains("line"), "{wrong}");
        let wrong = said(&text.replacen("\"tanh\"", "\"gelu\"", 1));
        assert!(
            wrong.contains("`gelu`") && wrong.contains("`relu`"),
            "{wrong}"
        );
    }
}
