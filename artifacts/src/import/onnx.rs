//! Reading ONNX: the few messages of its protocol buffers that a network of layers needs, by their numbers
//! in onnx.proto.

use super::ImportError;
use super::graph::{Attribute, Graph, Node, Value};
use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Content>,
}

#[derive(Clone, PartialEq, Message)]
struct Content {
    #[prost(message, repeated, tag = "1")]
    node: Vec<Operation>,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<Named>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<Named>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<Setting>,
}

#[derive(Clone, PartialEq, Message)]
struct Setting {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(float, tag = "2")]
    f: f32,
    #[prost(int64, tag = "3")]
    i: i64,
    #[prost(bytes = "vec", tag = "4")]
    s: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    t: Option<Tensor>,
    #[prost(int64, repeated, tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(float, repeated, tag = "4")]
    float_data: Vec<f32>,
    #[prost(int64, repeated, tag = "7")]
    int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
    #[prost(double, repeated, tag = "10")]
    double_data: Vec<f64>,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

/// The network in the bytes of a file.
pub fn read(bytes: &[u8]) -> Result<Graph, ImportError> {
    let model = Model::decode(bytes)
        .map_err(|error| ImportError::File(format!("it is not ONNX: {error}")))?;
    let content = model
        .graph
        .ok_or_else(|| ImportError::File("it has no graph: is it ONNX?".to_owned()))?;
    let mut constants = HashMap::new();
    for tensor in &content.initializer {
        constants.insert(tensor.name.clone(), value(tensor)?);
    }
    let mut nodes = Vec::new();
    for operation in content.node {
        let Some(output) = operation.output.first().cloned() else {
            continue;
        };
        if operation.op_type == "Constant" {
            let tensor = operation.attribute.iter().find_map(|a| a.t.as_ref());
            let tensor = tensor.ok_or_else(|| ImportError::Operator {
                operator: "Constant".to_owned(),
                node: output.clone(),
                why: "it is no tensor".to_owned(),
            })?;
            constants.insert(output, value(tensor)?);
            continue;
        }
        let mut padded = operation.attribute.iter().filter(|a| a.name == "auto_pad");
        if padded.any(|a| !matches!(a.s.as_slice(), b"" | b"NOTSET" | b"VALID")) {
            return Err(ImportError::Operator {
                operator: operation.op_type,
                node: output,
                why: "it has auto_pad; write its pads".to_owned(),
            });
        }
        let attributes = operation.attribute.into_iter();
        let attributes = attributes.filter_map(|setting| {
            // FLOAT, INT, INTS.
            let attribute = match setting.kind {
                1 => Attribute::Number(setting.f.into()),
                2 => Attribute::Integers(vec![setting.i]),
                7 => Attribute::Integers(setting.ints),
                _ => return None,
            };
            Some((setting.name, attribute))
        });
        nodes.push(Node {
            operator: operation.op_type,
            inputs: operation.input,
            output,
            attributes: attributes.collect(),
            name: operation.name,
        });
    }
    let names = |named: Vec<Named>| named.into_iter().map(|n| n.name);
    let inputs = names(content.input).filter(|name| !constants.contains_key(name));
    let inputs = inputs.collect();
    let outputs: Vec<String> = names(content.output).collect();
    let [output] = outputs.as_slice() else {
        return Err(ImportError::File(format!(
            "it has {} outputs and a policy one: force and velocities side by side",
            outputs.len()
        )));
    };
    Ok(Graph {
        inputs,
        output: output.clone(),
        nodes,
        constants,
    })
}

fn value(tensor: &Tensor) -> Result<Value, ImportError> {
    let wrong = |why: String| ImportError::File(format!("its tensor '{}' {why}", tensor.name));
    if tensor.data_location != 0 {
        return Err(wrong(
            "is in another file; export with external_data=False".to_owned(),
        ));
    }
    let raw = tensor.raw_data.as_slice();
    let values: Vec<f64> = match tensor.data_type {
        1 if raw.is_empty() => tensor.float_data.iter().copied().map(f64::from).collect(),
        1 => words(raw, f32::from_le_bytes).map(f64::from).collect(),
        7 if raw.is_empty() => tensor.int64_data.iter().map(|&i| i as f64).collect(),
        7 => words(raw, i64::from_le_bytes).map(|i| i as f64).collect(),
        11 if raw.is_empty() => tensor.double_data.clone(),
        11 => words(raw, f64::from_le_bytes).collect(),
        kind => {
            return Err(wrong(format!(
                "has elements of ONNX's type {kind}; weights are float or double"
            )));
        }
    };
    let lengths = tensor.dims.iter().map(|&n| usize::try_from(n));
    let shape: Vec<usize> = lengths
        .collect::<Result<_, _>>()
        .map_err(|_| wrong("has a negative length".to_owned()))?;
    Value::new(shape, values)
        .ok_or_else(|| wrong("has not as many numbers as its shape".to_owned()))
}

fn words<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks::<N>().0.iter().map(move |word| read(*word))
}
