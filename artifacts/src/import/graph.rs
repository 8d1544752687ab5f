//! A network as operators on arrays, and what it computes: operator after operator, in double precision,
//! knowing nothing of policies. What a converted policy is held against.

use super::ImportError;
use std::collections::HashMap;

/// Operators that feed each other by the names of what they give.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// What it is given: the observation, then the waves of the position.
    pub inputs: Vec<String>,
    /// What it gives.
    pub output: String,
    /// In an order in which they can be computed.
    pub nodes: Vec<Node>,
    /// What does not depend on the inputs.
    pub constants: HashMap<String, Value>,
}

/// One operator of ONNX.
#[derive(Debug, Clone)]
pub struct Node {
    /// Which.
    pub operator: String,
    /// What it reads.
    pub inputs: Vec<String>,
    /// What it gives.
    pub output: String,
    /// Its settings.
    pub attributes: HashMap<String, Attribute>,
    /// How its writer calls it.
    pub name: String,
}

/// A setting of an operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A number.
    Number(f64),
    /// One or more integers.
    Integers(Vec<i64>),
}

/// An array, the last axis fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub values: Vec<f64>,
}

impl Value {
    /// Numbers of this shape, if there are as many.
    pub fn new(shape: Vec<usize>, values: Vec<f64>) -> Option<Self> {
        let count = shape.iter().try_fold(1usize, |n, m| n.checked_mul(*m))?;
        (count == values.len()).then_some(Self { shape, values })
    }

    /// A row of a batch of one.
    pub fn row(values: Vec<f64>) -> Self {
        Self {
            shape: vec![1, values.len()],
            values,
        }
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            shape: self.shape.clone(),
            values: self.values.iter().map(|&x| f(x)).collect(),
        }
    }

    /// Rows and columns of a matrix.
    pub fn matrix(&self) -> Option<[usize; 2]> {
        self.shape.as_slice().try_into().ok()
    }
}

impl Node {
    /// That it cannot be taken, and why.
    pub fn refuse(&self, why: impl Into<String>) -> ImportError {
        let node = match self.name.is_empty() {
            true => &self.output,
            false => &self.name,
        };
        ImportError::Operator {
            operator: self.operator.clone(),
            node: node.clone(),
            why: why.into(),
        }
    }

    /// An integer among its settings.
    pub fn integer(&self, name: &str, otherwise: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Integers(all)) => all.first().copied().unwrap_or(otherwise),
            _ => otherwise,
        }
    }

    /// Several.
    pub fn integers(&self, name: &str) -> Option<&[i64]> {
        match self.attributes.get(name)? {
            Attribute::Integers(all) => Some(all),
            Attribute::Number(_) => None,
        }
    }

    /// A number among them.
    pub fn number(&self, name: &str, otherwise: f64) -> f64 {
        match self.attributes.get(name) {
            Some(Attribute::Number(x)) => *x,
            _ => otherwise,
        }
    }
}

impl Graph {
    /// What it gives for these inputs.
    pub fn run(&self, given: &[Value]) -> Result<Value, ImportError> {
        let mut known: HashMap<&str, Value> = HashMap::new();
        for (name, value) in self.inputs.iter().zip(given) {
            known.insert(name, value.clone());
        }
        for node in &self.nodes {
            let inputs = node.inputs.iter().filter(|name| !name.is_empty());
            let inputs: Vec<&Value> = inputs
                .map(|name| {
                    known
                        .get(name.as_str())
                        .or_else(|| self.constants.get(name))
                })
                .collect::<Option<_>>()
                .ok_or_else(|| node.refuse("it reads what nothing before it gives"))?;
            let made = compute(node, &inputs).map_err(|why| node.refuse(why))?;
            known.insert(&node.output, made);
        }
        let output = known.remove(self.output.as_str());
        output
            .ok_or_else(|| ImportError::File(format!("nothing gives its output '{}'", self.output)))
    }
}

fn compute(node: &Node, inputs: &[&Value]) -> Result<Value, String> {
    match (node.operator.as_str(), inputs) {
        ("Identity", [x]) => Ok((*x).clone()),
        ("Tanh", [x]) => Ok(x.map(f64::tanh)),
        ("Relu", [x]) => Ok(x.map(|x| x.max(0.0))),
        ("Add", [a, b]) => broadcast(a, b, |x, y| x + y),
        ("Mul", [a, b]) => broadcast(a, b, |x, y| x * y),
        ("Div", [a, b]) => broadcast(a, b, |x, y| x / y),
        ("MatMul", [a, b]) => multiply(a, false, b, false),
        ("Gemm", [a, b, rest @ ..]) => {
            let turned = |name| node.integer(name, 0) != 0;
            let product = multiply(a, turned("transA"), b, turned("transB"))?;
            let product = product.map(|x| x * node.number("alpha", 1.0));
            match rest {
                [c] => broadcast(
                    &product,
                    &c.map(|x| x * node.number("beta", 1.0)),
                    |x, y| x + y,
                ),
                _ => Ok(product),
            }
        }
        ("Conv", [x, kernel, rest @ ..]) => convolve(node, x, kernel, rest.first().copied()),
        ("Concat", parts) => concatenate(parts, node.integer("axis", 1)),
        ("Flatten", [x]) => {
            if node.integer("axis", 1) != 1 {
                return Err("it keeps other axes than the first".to_owned());
            }
            let [first, ..] = x.shape[..] else {
                return Err("it reads a single number".to_owned());
            };
            let shape = vec![first, x.values.len() / first.max(1)];
            Value::new(shape, x.values.clone()).ok_or_else(|| "it does not divide".to_owned())
        }
        ("Reshape", [x, shape]) => reshape(x, shape),
        ("ReduceL2", [x, rest @ ..]) => {
            let axes = match rest {
                [axes] => axes.values.iter().map(|&axis| axis as i64).collect(),
                _ => node.integers("axes").unwrap_or(&[-1]).to_vec(),
            };
            let end = x.shape.len() as i64 - 1;
            let along_rows = matches!(axes[..], [axis] if axis == -1 || axis == end);
            if !along_rows || node.integer("keepdims", 1) != 1 {
                return Err("it is not along the last axis, or drops it".to_owned());
            }
            let last = *x.shape.last().ok_or("it reads a single number")?;
            let rows = x.values.chunks(last.max(1));
            let lengths = rows.map(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt());
            let mut shape = x.shape.clone();
            *shape.last_mut().ok_or("it reads a single number")? = 1;
            Ok(Value {
                shape,
                values: lengths.collect(),
            })
        }
        _ => Err("no policy has it".to_owned()),
    }
}

/// Value by value, axes of length 1 repeated.
fn broadcast(a: &Value, b: &Value, f: impl Fn(f64, f64) -> f64) -> Result<Value, String> {
    let axes = a.shape.len().max(b.shape.len());
    let padded = |shape: &[usize]| [vec![1; axes - shape.len()], shape.to_vec()].concat();
    let (left, right) = (padded(&a.shape), padded(&b.shape));
    let mut shape = Vec::new();
    for (&m, &n) in left.iter().zip(&right) {
        if m != n && m != 1 && n != 1 {
            return Err(format!("its operands are {:?} and {:?}", a.shape, b.shape));
        }
        shape.push(if m == 1 { n } else { m });
    }
    let at = |own: &[usize], index: usize| {
        let (mut rest, mut stride, mut at) = (index, 1, 0);
        for (&length, &own) in shape.iter().zip(own).rev() {
            if own > 1 {
                at += rest % length * stride;
            }
            rest /= length;
            stride *= own;
        }
        at
    };
    let count = shape.iter().product();
    let values = (0..count).map(|k| f(a.values[at(&left, k)], b.values[at(&right, k)]));
    let values = values.collect();
    Ok(Value { shape, values })
}

fn multiply(a: &Value, turn_a: bool, b: &Value, turn_b: bool) -> Result<Value, String> {
    let (Some(first), Some(second)) = (a.matrix(), b.matrix()) else {
        return Err(format!(
            "its operands are {:?} and {:?}, not matrices",
            a.shape, b.shape
        ));
    };
    let turned = |[m, n]: [usize; 2], turn| if turn { [n, m] } else { [m, n] };
    let ([rows, inner], [depth, columns]) = (turned(first, turn_a), turned(second, turn_b));
    if inner != depth {
        return Err(format!("its operands are {:?} and {:?}", a.shape, b.shape));
    }
    let at = |value: &Value, [_, n]: [usize; 2], turn: bool, i: usize, j: usize| match turn {
        true => value.values[j * n + i],
        false => value.values[i * n + j],
    };
    let mut values = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let terms =
                (0..inner).map(|k| at(a, first, turn_a, i, k) * at(b, second, turn_b, k, j));
            values.push(terms.sum());
        }
    }
    Ok(Value {
        shape: vec![rows, columns],
        values,
    })
}

fn convolve(node: &Node, x: &Value, kernel: &Value, bias: Option<&Value>) -> Result<Value, String> {
    let ([batch, depth, height, width], [outputs, inputs, rows, columns]) = (
        <[usize; 4]>::try_from(x.shape.as_slice()),
        <[usize; 4]>::try_from(kernel.shape.as_slice()),
    )
        .both()
        .ok_or_else(|| format!("it reads {:?} with a kernel of {:?}", x.shape, kernel.shape))?;
    let pair = |name: &str, otherwise: usize| {
        let all = node.integers(name).unwrap_or(&[]);
        let one = |k: usize| {
            all.get(k)
                .map_or(otherwise, |&n| usize::try_from(n).unwrap_or(0))
        };
        [one(0), one(1)]
    };
    let ([down, along], [above, before]) = (pair("strides", 1), pair("pads", 0));
    let pads = node.integers("pads").unwrap_or(&[0; 4]);
    let even = matches!(pads, [a, b, c, d] if a == c && b == d);
    let whole = node.integer("group", 1) == 1 && pair("dilations", 1) == [1, 1];
    if !even || !whole || depth != inputs || down == 0 || along == 0 {
        return Err(format!(
            "it reads {:?} with a kernel of {:?}",
            x.shape, kernel.shape
        ));
    }
    let room = |side: usize, pad: usize, kernel: usize, stride: usize| {
        (side + 2 * pad)
            .checked_sub(kernel)
            .map(|room| room / stride + 1)
    };
    let sides = room(height, above, rows, down).zip(room(width, before, columns, along));
    let (tall, wide) = sides.ok_or("its kernel is larger than what it reads")?;
    let mut values = Vec::new();
    for image in 0..batch {
        for o in 0..outputs {
            for r in 0..tall {
                for c in 0..wide {
                    let mut sum = bias.and_then(|b| b.values.get(o)).copied().unwrap_or(0.0);
                    for i in 0..inputs {
                        for u in 0..rows {
                            for v in 0..columns {
                                let (y, z) = (r * down + u, c * along + v);
                                let inside = (above..above + height).contains(&y)
                                    && (before..before + width).contains(&z);
                                if inside {
                                    let at = ((image * depth + i) * height + y - above) * width;
                                    let weight = ((o * inputs + i) * rows + u) * columns + v;
                                    sum += x.values[at + z - before] * kernel.values[weight];
                                }
                            }
                        }
                    }
                    values.push(sum);
                }
            }
        }
    }
    Ok(Value {
        shape: vec![batch, outputs, tall, wide],
        values,
    })
}

/// Two results as one.
trait Both<A, B> {
    fn both(self) -> Option<(A, B)>;
}

impl<A, B, E> Both<A, B> for (Result<A, E>, Result<B, E>) {
    fn both(self) -> Option<(A, B)> {
        Some((self.0.ok()?, self.1.ok()?))
    }
}

/// Rows side by side.
fn concatenate(parts: &[&Value], axis: i64) -> Result<Value, String> {
    let matrices: Option<Vec<[usize; 2]>> = parts.iter().map(|part| part.matrix()).collect();
    let matrices = matrices.filter(|_| axis == 1 || axis == -1);
    let matrices = matrices.ok_or("it joins something else than the columns of matrices")?;
    let rows = matrices.first().map_or(0, |[rows, _]| *rows);
    if matrices.iter().any(|[other, _]| *other != rows) {
        return Err("it joins different numbers of rows".to_owned());
    }
    let mut values = Vec::new();
    for row in 0..rows {
        for (part, [_, columns]) in parts.iter().zip(&matrices) {
            values.extend_from_slice(&part.values[row * columns..(row + 1) * columns]);
        }
    }
    let columns = matrices.iter().map(|[_, columns]| columns).sum();
    Ok(Value {
        shape: vec![rows, columns],
        values,
    })
}

fn reshape(x: &Value, shape: &Value) -> Result<Value, String> {
    let wrong = || format!("{:?} does not become {:?}", x.shape, shape.values);
    let mut lengths: Vec<Option<usize>> = Vec::new();
    for (k, &length) in shape.values.iter().enumerate() {
        lengths.push(match length as i64 {
            -1 => None,
            0 => Some(*x.shape.get(k).ok_or_else(wrong)?),
            n => Some(usize::try_from(n).map_err(|_| wrong())?),
        });
    }
    let known = lengths
        .iter()
        .flatten()
        .try_fold(1usize, |n, m| n.checked_mul(*m));
    let open = x.values.len() / known.ok_or_else(wrong)?.max(1);
    let shape = lengths.into_iter().map(|n| n.unwrap_or(open)).collect();
    Value::new(shape, x.values.clone()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(operator: &str, settings: &[(&str, &[i64])]) -> Node {
        let settings = settings.iter();
        Node {
            operator: operator.to_owned(),
            inputs: Vec::new(),
            output: String::new(),
            attributes: settings
                .map(|(name, all)| ((*name).to_owned(), Attribute::Integers(all.to_vec())))
                .collect(),
            name: String::new(),
        }
    }

    fn value(shape: &[usize], values: &[f64]) -> Value {
        Value::new(shape.to_vec(), values.to_vec()).unwrap()
    }

    /// By hand: the specification's operators on numbers that can be followed.
    #[test]
    fn operators_compute_what_onnx_says() {
        let x = value(&[1, 2], &[3.0, -4.0]);
        let matrix = value(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let row = value(&[3], &[10.0, 20.0, 30.0]);
        let run = |node: &Node, inputs: &[&Value]| compute(node, inputs).unwrap();
        // 3 − 16, 6 − 20, 9 − 24.
        let sums = run(&node("Gemm", &[]), &[&x, &matrix, &row]);
        assert_eq!(sums, value(&[1, 3], &[-3.0, 6.0, 15.0]));
        let turned = value(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(
            run(&node("Gemm", &[("transB", &[1])]), &[&x, &turned, &row]),
            sums
        );
        assert_eq!(run(&node("Relu", &[]), &[&x]).values, [3.0, 0.0]);
        assert_eq!(run(&node("ReduceL2", &[]), &[&x]), value(&[1, 1], &[5.0]));
        let divisor = value(&[1, 1], &[2.0]);
        assert_eq!(run(&node("Div", &[]), &[&x, &divisor]).values, [1.5, -2.0]);
        let joined = run(&node("Concat", &[("axis", &[-1])]), &[&x, &divisor]);
        assert_eq!(joined, value(&[1, 3], &[3.0, -4.0, 2.0]));
        // Ones around a corner: four cells with padding, every second one.
        let picture = value(
            &[1, 1, 3, 3],
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        );
        let ones = value(&[1, 1, 3, 3], &[1.0; 9]);
        let settings: [(&str, &[i64]); 2] = [("strides", &[2, 2]), ("pads", &[1, 1, 1, 1])];
        let sums = run(&node("Conv", &settings), &[&picture, &ones]);
        assert_eq!(sums, value(&[1, 1, 2, 2], &[12.0, 16.0, 24.0, 28.0]));
        let whole = run(&node("Conv", &[]), &[&picture, &ones, &value(&[1], &[0.5])]);
        assert_eq!(whole, value(&[1, 1, 1, 1], &[45.5]));
        let flat = run(&node("Reshape", &[]), &[&sums, &value(&[2], &[0.0, -1.0])]);
        assert_eq!(flat.shape, [1, 4]);
        assert_eq!(run(&node("Flatten", &[]), &[&sums]), flat);
    }

    #[test]
    fn what_does_not_fit_is_said_and_not_computed() {
        let x = value(&[1, 2], &[3.0, -4.0]);
        let narrow = value(&[3, 1], &[1.0; 3]);
        assert!(compute(&node("MatMul", &[]), &[&x, &narrow]).is_err());
        assert!(compute(&node("Concat", &[("axis", &[0])]), &[&x, &x]).is_err());
        assert!(compute(&node("Flatten", &[("axis", &[0])]), &[&x]).is_err());
        assert!(compute(&node("ReduceL2", &[("axes", &[0])]), &[&x]).is_err());
        assert!(compute(&node("Conv", &[]), &[&x, &x]).is_err());
        assert!(compute(&node("Sin", &[]), &[&x]).is_err());
        assert!(compute(&node("Tanh", &[]), &[]).is_err());
    }
}
