//! Reading safetensors: arrays by name, which say nothing of what joins them, so that their names and a few
//! words must.

use super::graph::{Attribute, Graph, Node, Value};
use super::{Assumed, ImportError};
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, HashMap};

/// The network of a file: layers below `convolutions`, `branch`, `trunk` and `head`, in the order of the
/// numbers in their names. Also the frequencies of the trunk's waves, if they are among the arrays.
pub fn read(bytes: &[u8], assumed: &Assumed) -> Result<(Graph, Option<Vec<f32>>), ImportError> {
    let wrong = |error: &dyn std::fmt::Display| {
        ImportError::File(format!("it is not safetensors: {error}"))
    };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| wrong(&e))?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| wrong(&e))?;
    let said = header.metadata().clone().unwrap_or_default();
    let mut parts: BTreeMap<&str, BTreeMap<usize, HashMap<String, Value>>> = BTreeMap::new();
    let mut frequencies = None;
    for (name, view) in file.tensors() {
        let value = value(&name, view.dtype(), view.shape(), view.data())?;
        if name == "frequencies" {
            frequencies = Some(value.values.iter().map(|&f| f as f32).collect());
            continue;
        }
        let place = |part: &'static str| {
            let (number, kind) = name
                .strip_prefix(part)?
                .strip_prefix('.')?
                .split_once('.')?;
            let number = number.trim_start_matches(|c: char| !c.is_ascii_digit());
            let known = matches!(kind, "weight" | "bias" | "kernel");
            Some((part, number.parse().ok()?, kind.to_owned())).filter(|_| known)
        };
        let found = PARTS.into_iter().find_map(place);
        let (part, number, kind) = found.ok_or_else(|| ImportError::Name { name: name.clone() })?;
        let layers = parts.entry(part).or_default();
        layers.entry(number).or_default().insert(kind, value);
    }
    let word = |name: &str, given: Option<&str>, otherwise: &str| -> String {
        let found = given.map(str::to_owned).or_else(|| said.get(name).cloned());
        found.unwrap_or_else(|| otherwise.to_owned())
    };
    let mut made = Maker {
        graph: Graph {
            inputs: vec!["observation".to_owned(), "waves".to_owned()],
            ..Graph::default()
        },
        activation: word("activation", assumed.activation.as_deref(), "tanh"),
        norm: word("norm", assumed.norm.as_deref(), "none"),
    };
    let fusion = word("fusion", assumed.fusion.as_deref(), "concatenate");
    let mut take = |part| parts.remove(part).unwrap_or_default().into_values();
    let mut seen = "observation".to_owned();
    let kernels = take("convolutions");
    let convolved = kernels.len() > 0;
    for (k, arrays) in kernels.enumerate() {
        let setting = |what: &str, otherwise: i64| -> Result<i64, ImportError> {
            let key = format!("convolutions.{k}.{what}");
            match said.get(&key).map(|text| text.parse()) {
                None => Ok(otherwise),
                Some(Ok(number)) => Ok(number),
                Some(Err(_)) => Err(ImportError::File(format!("its {key} is no number"))),
            }
        };
        let (stride, padding) = (setting("stride", 1)?, setting("padding", 0)?);
        seen = made.convolve(k, arrays, &seen, stride, padding)?;
    }
    if convolved {
        seen = made.node("Flatten", &[&seen], &[]);
    }
    let norm = made.norm.clone();
    seen = made.dense("branch", take("branch"), seen, &norm, false)?;
    let trunk = take("trunk");
    let mut joint = seen;
    if trunk.len() > 0 {
        let placed = made.dense("trunk", trunk, "waves".to_owned(), "none", false)?;
        joint = match fusion.as_str() {
            "concatenate" => made.node("Concat", &[&joint, &placed], &[("axis", vec![1])]),
            "multiply" => made.node("Mul", &[&joint, &placed], &[]),
            other => return Err(unknown("fusion", other, "concatenate or multiply")),
        };
    } else {
        made.graph.inputs.pop();
    }
    made.graph.output = made.dense("head", take("head"), joint, "none", true)?;
    Ok((made.graph, frequencies))
}

const PARTS: [&str; 4] = ["convolutions", "branch", "trunk", "head"];

fn unknown(what: &str, found: &str, known: &str) -> ImportError {
    ImportError::File(format!("its {what} is '{found}'; a policy's is {known}"))
}

struct Maker {
    graph: Graph,
    activation: String,
    norm: String,
}

impl Maker {
    /// Adds an operator; the name of what it gives.
    fn node(&mut self, operator: &str, inputs: &[&str], settings: &[(&str, Vec<i64>)]) -> String {
        let output = format!("{}.{operator}", self.graph.nodes.len());
        let settings = settings.iter().cloned();
        self.graph.nodes.push(Node {
            operator: operator.to_owned(),
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: output.clone(),
            attributes: settings
                .map(|(name, integers)| (name.to_owned(), Attribute::Integers(integers)))
                .collect(),
            name: String::new(),
        });
        output
    }

    fn constant(&mut self, name: String, value: Value) -> String {
        self.graph.constants.insert(name.clone(), value);
        name
    }

    fn activate(&mut self, sums: String) -> Result<String, ImportError> {
        match self.activation.clone().as_str() {
            "tanh" => Ok(self.node("Tanh", &[&sums], &[])),
            "relu" => Ok(self.node("Relu", &[&sums], &[])),
            "identity" => Ok(sums),
            other => Err(unknown("activation", other, "tanh, relu or identity")),
        }
    }

    /// Dense layers; the last one of the head ends in its sums.
    fn dense(
        &mut self,
        part: &str,
        layers: impl ExactSizeIterator<Item = HashMap<String, Value>>,
        from: String,
        norm: &str,
        ends: bool,
    ) -> Result<String, ImportError> {
        let (count, mut x) = (layers.len(), from);
        for (k, mut arrays) in layers.enumerate() {
            let name = format!("{part}.{k}");
            // PyTorch's weights are [outputs][inputs], Flax' kernels the reverse.
            let (weights, turned) = match (arrays.remove("weight"), arrays.remove("kernel")) {
                (Some(weights), None) => (weights, 1),
                (None, Some(kernel)) => (kernel, 0),
                _ => return Err(ImportError::Incomplete { layer: name }),
            };
            let weights = self.constant(format!("{name}.weight"), weights);
            let mut inputs = vec![x, weights];
            if let Some(bias) = arrays.remove("bias") {
                inputs.push(self.constant(format!("{name}.bias"), bias));
            }
            let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
            x = self.node("Gemm", &inputs, &[("transB", vec![turned])]);
            match norm {
                "none" => {}
                "soft" => {
                    let length = self.node("ReduceL2", &[&x], &[("keepdims", vec![1])]);
                    let one = Value::row(vec![1.0]);
                    let one = self.constant("one".to_owned(), one);
                    let divisor = self.node("Add", &[&length, &one], &[]);
                    x = self.node("Div", &[&x, &divisor], &[]);
                }
                other => return Err(unknown("norm", other, "none or soft")),
            }
            if !(ends && k + 1 == count) {
                x = self.activate(x)?;
            }
        }
        Ok(x)
    }

    fn convolve(
        &mut self,
        k: usize,
        mut arrays: HashMap<String, Value>,
        x: &str,
        stride: i64,
        padding: i64,
    ) -> Result<String, ImportError> {
        let name = format!("convolutions.{k}");
        let Some(weights) = arrays.remove("weight") else {
            return Err(ImportError::Incomplete { layer: name });
        };
        let mut inputs = vec![
            x.to_owned(),
            self.constant(format!("{name}.weight"), weights),
        ];
        if let Some(bias) = arrays.remove("bias") {
            inputs.push(self.constant(format!("{name}.bias"), bias));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let settings = [("strides", vec![stride; 2]), ("pads", vec![padding; 4])];
        let sums = self.node("Conv", &inputs, &settings);
        self.activate(sums)
    }
}

fn value(name: &str, kind: Dtype, shape: &[usize], data: &[u8]) -> Result<Value, ImportError> {
    let values: Vec<f64> = match kind {
        Dtype::F32 => {
            let words = data.as_chunks().0.iter();
            words.map(|word| f32::from_le_bytes(*word).into()).collect()
        }
        Dtype::F64 => {
            let words = data.as_chunks().0.iter();
            words.map(|word| f64::from_le_bytes(*word)).collect()
        }
        other => {
            return Err(ImportError::File(format!(
                "its array '{name}' has elements of {other:?}; weights are F32 or F64"
            )));
        }
    };
    Value::new(shape.to_vec(), values)
        .ok_or_else(|| ImportError::File(format!("its array '{name}' is cut off")))
}
