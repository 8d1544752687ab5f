//! From operators to the layers of a policy, from the output backwards.

use super::graph::{Graph, Node, Value};
use super::{ImportError, OPERATORS};
use crate::arrays::Tensor;
use agent_core::policy::{Activation, Convolution, Dense, Fusion, MAX_LAYERS, Norm};

/// The layers of a network, and their numbers under the names of a policy's.
#[derive(Debug, Default)]
pub struct Layers {
    pub convolutions: Vec<Convolution>,
    pub branch: Vec<Dense>,
    pub trunk: Vec<Dense>,
    pub fusion: Fusion,
    pub head: Vec<Dense>,
    pub tensors: Vec<(String, Tensor)>,
    /// Whether its last operator is the tanh that agents apply themselves.
    pub ends_in_tanh: bool,
}

/// A dense layer with its numbers: weights `[inputs][outputs]`.
#[derive(Debug)]
struct Found {
    layer: Dense,
    weights: Vec<f64>,
    bias: Vec<f64>,
}

/// A convolution with its numbers, `[3][3][inputs][outputs]`.
#[derive(Debug)]
struct Kernel {
    layer: Convolution,
    weights: Vec<f64>,
    bias: Vec<f64>,
}

/// Layers in their order, and what they read.
#[derive(Debug)]
struct Chain<'g> {
    convolutions: Vec<Kernel>,
    dense: Vec<Found>,
    end: End<'g>,
}

#[derive(Debug)]
enum End<'g> {
    /// One of the graph's inputs, by its number.
    Input(usize),
    /// Two things that come together.
    Fusion(Fusion, &'g str, &'g str),
}

/// What is behind a layer that has not been met yet.
#[derive(Debug, Default)]
struct Behind {
    activation: Option<Activation>,
    norm: Norm,
    bias: Option<Vec<f64>>,
    /// A flattened picture.
    flattened: bool,
}

impl Behind {
    /// Refuses what no layer is there for.
    fn nothing(&self, node: &Node) -> Result<(), ImportError> {
        match self.activation.is_none() && self.norm == Norm::None && self.bias.is_none() {
            true => Ok(()),
            false => Err(node.refuse("an activation, norm or bias behind it belongs to no layer")),
        }
    }
}

/// The layers of a graph.
pub fn layers(graph: &Graph) -> Result<Layers, ImportError> {
    let mut found = Layers::default();
    let Chain {
        mut convolutions,
        mut dense,
        end,
    } = chain(graph, &graph.output)?;
    if let Some(last) = dense.last_mut()
        && last.layer.activation == Activation::Tanh
    {
        last.layer.activation = Activation::Identity;
        found.ends_in_tanh = true;
    }
    let (branch, trunk, head) = match end {
        End::Input(0) => {
            // All but the last, as far as a branch goes; convolutions need one behind them.
            let own = usize::from(!convolutions.is_empty());
            let split = dense.len().saturating_sub(1).max(own).min(MAX_LAYERS);
            let head = dense.split_off(split.min(dense.len()));
            (dense, Vec::new(), head)
        }
        End::Input(_) => return Err(nothing_seen()),
        End::Fusion(fusion, first, second) => {
            if !convolutions.is_empty() {
                return Err(ImportError::File(
                    "it has convolutions behind its fusion; a policy's come first".to_owned(),
                ));
            }
            let (first, second) = (chain(graph, first)?, chain(graph, second)?);
            let (seen, placed, swapped) = match (&first.end, &second.end) {
                (End::Input(0), End::Input(1)) => (first, second, false),
                (End::Input(1), End::Input(0)) => (second, first, true),
                (End::Fusion(..), _) | (_, End::Fusion(..)) => {
                    return Err(ImportError::File(
                        "it joins more than two parts; a policy joins branch and trunk".to_owned(),
                    ));
                }
                _ => return Err(nothing_seen()),
            };
            if !placed.convolutions.is_empty() {
                return Err(ImportError::File(
                    "it has convolutions on the position's waves; a policy's are on the window"
                        .to_owned(),
                ));
            }
            if let (true, Fusion::Concatenate, Some(joint)) = (swapped, fusion, dense.first_mut()) {
                // What is seen comes first.
                let before = match placed.dense.last() {
                    Some(last) => usize::from(last.layer.outputs),
                    None => return Err(ImportError::File(
                        "it joins the waves themselves before what is seen; put the observation first".to_owned(),
                    )),
                };
                let rows = before * usize::from(joint.layer.outputs);
                let all = joint.weights.len();
                joint.weights.rotate_left(rows.min(all));
            }
            found.fusion = fusion;
            convolutions = seen.convolutions;
            (seen.dense, placed.dense, dense)
        }
    };
    for (
        k,
        Kernel {
            layer,
            weights,
            bias,
        },
    ) in convolutions.into_iter().enumerate()
    {
        let shape = vec![3, 3, layer.inputs.into(), layer.outputs.into()];
        found.keep(&format!("convolutions.{k}"), shape, &weights, &bias);
        found.convolutions.push(layer);
    }
    for (part, layers) in [("branch", branch), ("trunk", trunk), ("head", head)] {
        for (
            k,
            Found {
                layer,
                weights,
                bias,
            },
        ) in layers.into_iter().enumerate()
        {
            let shape = vec![layer.inputs.into(), layer.outputs.into()];
            found.keep(&format!("{part}.{k}"), shape, &weights, &bias);
            match part {
                "branch" => found.branch.push(layer),
                "trunk" => found.trunk.push(layer),
                _ => found.head.push(layer),
            }
        }
    }
    Ok(found)
}

impl Layers {
    fn keep(&mut self, name: &str, shape: Vec<usize>, weights: &[f64], bias: &[f64]) {
        let single = |values: &[f64]| values.iter().map(|&x| x as f32).collect();
        let lengths = vec![bias.len()];
        let (values, biases) = (single(weights), single(bias));
        let weights = Tensor { shape, values };
        let bias = Tensor {
            shape: lengths,
            values: biases,
        };
        self.tensors.push((format!("{name}.weight"), weights));
        self.tensors.push((format!("{name}.bias"), bias));
    }
}

fn nothing_seen() -> ImportError {
    ImportError::File(
        "its parts do not read its first input, the observation, and its second, the waves of the \
         position, one each"
            .to_owned(),
    )
}

/// Follows operators from what they give back to an input or a fusion.
fn chain<'g>(graph: &'g Graph, from: &'g str) -> Result<Chain<'g>, ImportError> {
    let (mut convolutions, mut dense) = (Vec::new(), Vec::<Found>::new());
    let (mut name, mut behind) = (from, Behind::default());
    // A graph that feeds itself would have no end.
    for _ in 0..=graph.nodes.len() {
        if let Some(input) = graph.inputs.iter().position(|input| input == name) {
            let loose =
                behind.activation.is_some() || behind.bias.is_some() || behind.norm != Norm::None;
            if loose {
                return Err(ImportError::File(format!(
                    "it has an activation, norm or bias on its input '{name}'; a policy's belong to layers"
                )));
            }
            convolutions.reverse();
            dense.reverse();
            return Ok(Chain {
                convolutions,
                dense,
                end: End::Input(input),
            });
        }
        let node = graph.nodes.iter().find(|node| node.output == name);
        let node = node.ok_or_else(|| ImportError::File(format!("nothing gives its '{name}'")))?;
        let constant = |k: usize| {
            node.inputs
                .get(k)
                .and_then(|name| graph.constants.get(name))
        };
        let first = node.inputs.first().map_or("", String::as_str);
        match node.operator.as_str() {
            "Identity" => {}
            "Tanh" | "Relu" => {
                if behind.activation.is_some() || behind.norm != Norm::None || behind.bias.is_some()
                {
                    return Err(node.refuse(
                        "there is another activation, norm or bias behind it, and no layer between",
                    ));
                }
                behind.activation = Some(match node.operator.as_str() {
                    "Tanh" => Activation::Tanh,
                    _ => Activation::Relu,
                });
            }
            "Div" => {
                if behind.norm != Norm::None || behind.bias.is_some() {
                    return Err(
                        node.refuse("there is a norm or bias behind it, and no layer between")
                    );
                }
                soft_norm(graph, node)?;
                behind.norm = Norm::Soft;
            }
            "Add" => {
                let (bias, other) = match (constant(0), constant(1)) {
                    (None, Some(bias)) => (bias, 0),
                    (Some(bias), None) => (bias, 1),
                    _ => return Err(node.refuse("only the bias of a MatMul is added")),
                };
                if behind.bias.is_some() {
                    return Err(node.refuse("there is another bias behind it"));
                }
                behind.bias = Some(bias.values.clone());
                name = &node.inputs[other];
                let of_product = graph
                    .nodes
                    .iter()
                    .any(|n| n.output == name && n.operator == "MatMul");
                if !of_product {
                    return Err(node.refuse("only the bias of a MatMul is added"));
                }
                continue;
            }
            "MatMul" | "Gemm" => {
                if !convolutions.is_empty() {
                    return Err(node.refuse("convolutions come first"));
                }
                let weights = constant(1).ok_or_else(|| {
                    node.refuse("its second operand is computed; a layer's weights are constant")
                })?;
                dense.push(layer(node, weights, constant(2), &mut behind)?);
            }
            "Flatten" | "Reshape" => {
                behind.nothing(node)?;
                behind.flattened = true;
            }
            "Conv" => {
                let kernel = constant(1).ok_or_else(|| node.refuse("its kernel is computed"))?;
                let made = convolution(node, kernel, constant(2), &behind)?;
                if convolutions.is_empty() {
                    let next = dense.last_mut().filter(|_| behind.flattened);
                    let next = next.ok_or_else(|| {
                        node.refuse("behind the last of a policy's are a Flatten and a dense layer")
                    })?;
                    cells_first(next, usize::from(made.layer.outputs)).ok_or_else(|| {
                        node.refuse("the layer behind it reads something else than its cells")
                    })?;
                }
                behind = Behind::default();
                convolutions.push(made);
            }
            "Concat" | "Mul" => {
                behind.nothing(node)?;
                let [first, second] = node.inputs.as_slice() else {
                    return Err(node.refuse("a policy joins two things, branch and trunk"));
                };
                if constant(0).is_some() || constant(1).is_some() {
                    return Err(
                        node.refuse("one of its operands is constant; fold it into a layer")
                    );
                }
                let fusion = match node.operator.as_str() {
                    "Mul" => Fusion::Multiply,
                    _ => Fusion::Concatenate,
                };
                convolutions.reverse();
                dense.reverse();
                return Ok(Chain {
                    convolutions,
                    dense,
                    end: End::Fusion(fusion, first, second),
                });
            }
            _ => return Err(node.refuse(format!("no policy has it; it has {OPERATORS}"))),
        }
        name = first;
    }
    Err(ImportError::File(
        "its operators feed each other in a ring".to_owned(),
    ))
}

/// Whether a division is h / (‖h‖ + 1).
fn soft_norm(graph: &Graph, node: &Node) -> Result<(), ImportError> {
    let giving = |name: Option<&String>, operator: &str| {
        let name = name?;
        let mut all = graph.nodes.iter();
        all.find(|node| node.output == *name && node.operator == operator)
    };
    let [h, divisor] = node.inputs.as_slice() else {
        return Err(node.refuse("it has not two operands"));
    };
    let sum = giving(Some(divisor), "Add");
    let one = sum.and_then(|sum| sum.inputs.iter().find_map(|name| graph.constants.get(name)));
    let length = sum.and_then(|sum| {
        sum.inputs
            .iter()
            .find_map(|name| giving(Some(name), "ReduceL2"))
    });
    let is_one = one.is_some_and(|one| one.values == [1.0]);
    match is_one && length.is_some_and(|length| length.inputs.first() == Some(h)) {
        true => Ok(()),
        false => Err(node.refuse("a policy divides h by ReduceL2(h) + 1 and by nothing else")),
    }
}

fn layer(
    node: &Node,
    weights: &Value,
    third: Option<&Value>,
    behind: &mut Behind,
) -> Result<Found, ImportError> {
    let matrix = weights
        .matrix()
        .ok_or_else(|| node.refuse(format!("its weights are {:?}, not a matrix", weights.shape)))?;
    let gemm = node.operator == "Gemm";
    let plain = node.number("alpha", 1.0) == 1.0 && node.number("beta", 1.0) == 1.0;
    if gemm && (!plain || node.integer("transA", 0) != 0) {
        return Err(node.refuse("it has factors, or turns what it reads"));
    }
    let turned = gemm && node.integer("transB", 0) != 0;
    let [inputs, outputs] = match (matrix, turned) {
        ([m, n], false) => [m, n],
        ([m, n], true) => [n, m],
    };
    let numbers = match turned {
        false => weights.values.clone(),
        true => (0..inputs * outputs)
            .map(|k| weights.values[k % outputs * inputs + k / outputs])
            .collect(),
    };
    let bias = behind
        .bias
        .take()
        .or_else(|| third.filter(|_| gemm).map(|bias| bias.values.clone()));
    let bias = bias.unwrap_or_else(|| vec![0.0; outputs]);
    if bias.len() != outputs {
        return Err(node.refuse(format!(
            "its bias has {} numbers and its weights are {:?}",
            bias.len(),
            weights.shape
        )));
    }
    let length = |n: usize| {
        u16::try_from(n).map_err(|_| node.refuse(format!("its weights are {:?}", weights.shape)))
    };
    let found = Found {
        layer: Dense {
            inputs: length(inputs)?,
            outputs: length(outputs)?,
            norm: behind.norm,
            activation: behind.activation.unwrap_or(Activation::Identity),
        },
        weights: numbers,
        bias,
    };
    *behind = Behind::default();
    Ok(found)
}

fn convolution(
    node: &Node,
    kernel: &Value,
    bias: Option<&Value>,
    behind: &Behind,
) -> Result<Kernel, ImportError> {
    let [outputs, inputs, 3, 3] = kernel.shape[..] else {
        return Err(node.refuse(format!(
            "its kernel is {:?}; a policy's are of 3 × 3 cells",
            kernel.shape
        )));
    };
    if behind.norm != Norm::None || behind.bias.is_some() {
        return Err(node.refuse("a norm or a bias of its own is behind it"));
    }
    let same = |name: &str, otherwise: i64| {
        let all = node.integers(name).unwrap_or(&[]);
        let first = all.first().copied().unwrap_or(otherwise);
        let one = all.iter().all(|n| *n == first).then_some(first);
        one.and_then(|n| u8::try_from(n).ok())
    };
    let plain = node.integer("group", 1) == 1 && same("dilations", 1) == Some(1);
    let (Some(stride), Some(padding), true) = (same("strides", 1), same("pads", 0), plain) else {
        return Err(
            node.refuse("its strides, pads, dilations or groups are not those of a policy's")
        );
    };
    let length = |n: usize| {
        u16::try_from(n).map_err(|_| node.refuse(format!("its kernel is {:?}", kernel.shape)))
    };
    let bias = bias.map_or_else(|| vec![0.0; outputs], |bias| bias.values.clone());
    if bias.len() != outputs {
        return Err(node.refuse(format!(
            "its bias has {} numbers and its kernel is {:?}",
            bias.len(),
            kernel.shape
        )));
    }
    // From [outputs][inputs][3][3].
    let weights = (0..kernel.values.len()).map(|k| {
        let (o, i, cell) = (k % outputs, k / outputs % inputs, k / outputs / inputs);
        kernel.values[(o * inputs + i) * 9 + cell]
    });
    Ok(Kernel {
        layer: Convolution {
            inputs: length(inputs)?,
            outputs: length(outputs)?,
            stride,
            padding,
            activation: behind.activation.unwrap_or(Activation::Identity),
        },
        weights: weights.collect(),
        bias,
    })
}

/// Brings the rows of the layer behind convolutions from channel after channel to cell after cell.
fn cells_first(found: &mut Found, channels: usize) -> Option<()> {
    let (inputs, outputs) = (
        usize::from(found.layer.inputs),
        usize::from(found.layer.outputs),
    );
    let cells = inputs.checked_div(channels)?;
    if cells * channels != inputs {
        return None;
    }
    let row = |k: usize| {
        let (cell, channel) = (k / channels, k % channels);
        let from = (channel * cells + cell) * outputs;
        found.weights[from..from + outputs].iter().copied()
    };
    found.weights = (0..inputs).flat_map(row).collect();
    Some(())
}
