//! Programs over arrays, and as WGSL.

use num_traits::Float;

use super::Expression;
use super::program::{Binary, Instruction, Place, Program, Unary};

/// Values that an instruction computes at once: many enough that choosing it costs nothing, few
/// enough that all registers stay in the nearest cache.
const BLOCK: usize = 128;

/// Deepest nesting of what is written as one WGSL expression; compilers refuse much deeper ones.
const WGSL_DEPTH: usize = 16;

/// Memory that evaluations share, so that only the first allocates.
#[derive(Debug, Clone)]
pub struct Scratch<T> {
    /// By instruction: its value where that is the same everywhere.
    same: Vec<Option<T>>,
    registers: Vec<Vec<T>>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            same: Vec::new(),
            registers: Vec::new(),
        }
    }
}

/// An expression in WGSL, of `f32`.
#[derive(Debug, Clone, PartialEq)]
pub struct Wgsl {
    /// Statements that bind what `value` uses more than once, a line each; often none.
    pub lets: String,
    /// The value, as one expression with all its parentheses.
    pub value: String,
}

/// An operand of a block.
enum Operand<'a, T> {
    Same(T),
    Each(&'a [T]),
}

#[inline(always)]
fn map<T: Float>(a: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = f(a);
    }
}

#[inline(always)]
fn zip<T: Float>(a: Operand<T>, b: Operand<T>, out: &mut [T], f: impl Fn(T, T) -> T) {
    match (a, b) {
        (Operand::Each(a), Operand::Each(b)) => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        }
        (Operand::Each(a), Operand::Same(b)) => map(a, out, |a| f(a, b)),
        (Operand::Same(a), Operand::Each(b)) => map(b, out, |b| f(a, b)),
        (Operand::Same(a), Operand::Same(b)) => out.fill(f(a, b)),
    }
}

#[inline(always)]
fn one<T: Float>(op: Unary, a: &[T], out: &mut [T]) {
    let (zero, unit) = (T::zero(), T::one());
    match op {
        Unary::Neg => map(a, out, |a| -a),
        Unary::Abs => map(a, out, T::abs),
        // Zero of zero, as in WGSL.
        Unary::Sign => map(a, out, |a| match a > zero {
            true => unit,
            false => match a < zero {
                true => -unit,
                false => a,
            },
        }),
        Unary::Sqrt => map(a, out, T::sqrt),
        Unary::Exp => map(a, out, T::exp),
        Unary::Ln => map(a, out, T::ln),
        Unary::Sin => map(a, out, T::sin),
        Unary::Cos => map(a, out, T::cos),
        Unary::Tan => map(a, out, T::tan),
        Unary::Sinh => map(a, out, T::sinh),
        Unary::Cosh => map(a, out, T::cosh),
        Unary::Tanh => map(a, out, T::tanh),
        Unary::Atan => map(a, out, T::atan),
    }
}

#[inline(always)]
fn two<T: Float>(op: Binary, a: Operand<T>, b: Operand<T>, out: &mut [T]) {
    match op {
        Binary::Add => zip(a, b, out, |a, b| a + b),
        Binary::Sub => zip(a, b, out, |a, b| a - b),
        Binary::Mul => zip(a, b, out, |a, b| a * b),
        Binary::Div => zip(a, b, out, |a, b| a / b),
        // What is not a number stays so, and does not vanish from sight behind the other.
        Binary::Min => zip(a, b, out, |a, b| if a < b || a.is_nan() { a } else { b }),
        Binary::Max => zip(a, b, out, |a, b| if a > b || a.is_nan() { a } else { b }),
        Binary::Pow => zip(a, b, out, T::powf),
        Binary::Share => {
            let zero = T::zero();
            zip(a, b, out, |a, b| if a == zero { zero } else { a * b });
        }
    }
}

pub(super) fn one_value<T: Float>(op: Unary, a: T) -> T {
    let mut out = [a];
    one(op, &[a], &mut out);
    out[0]
}

pub(super) fn two_values<T: Float>(op: Binary, a: T, b: T) -> T {
    let mut out = [a];
    two(op, Operand::Same(a), Operand::Same(b), &mut out);
    out[0]
}

/// The program on one block of the inputs after the other.
#[inline(always)]
fn run<T: Float>(program: &Program, inputs: &[&[T]], out: &mut [T], scratch: &mut Scratch<T>) {
    let Scratch { same, registers } = scratch;
    let last = program.instructions.len() - 1;
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let (start, length) = (block * BLOCK, out.len());
        let input = |k: u16| &inputs[usize::from(k)][start..start + length];
        for (at, &instruction) in program.instructions.iter().enumerate() {
            if same[at].is_some() {
                continue;
            }
            if let Instruction::Variable(k) = instruction {
                if at == last {
                    out.copy_from_slice(input(k));
                }
                continue;
            }
            // Taken out while it is written, which moves no values.
            let register = program.registers[at] as usize;
            let mut own = std::mem::take(&mut registers[register]);
            let result = match at == last {
                true => &mut *out,
                false => &mut own[..length],
            };
            let operand = |a: Place| {
                let a = a as usize;
                match (same[a], program.instructions[a]) {
                    (Some(value), _) => Operand::Same(value),
                    (None, Instruction::Variable(k)) => Operand::Each(input(k)),
                    _ => Operand::Each(&registers[program.registers[a] as usize][..length]),
                }
            };
            match instruction {
                Instruction::One(op, a) => match operand(a) {
                    Operand::Each(a) => one(op, a, result),
                    Operand::Same(_) => {} // then the result would be the same everywhere
                },
                Instruction::Two(op, a, b) => two(op, operand(a), operand(b), result),
                Instruction::Number(_) | Instruction::Variable(_) => {}
            }
            registers[register] = own;
        }
    }
}

impl Expression {
    /// The values for all values of the variables. Each input has as many as `out`, or one that
    /// stands for all: what depends on such inputs alone is computed once.
    ///
    /// # Panics
    /// If an input is missing or of another length.
    pub fn evaluate<T: Float>(&self, inputs: &[&[T]], out: &mut [T], scratch: &mut Scratch<T>) {
        let program = &self.program;
        scratch.same.clear();
        for &instruction in &program.instructions {
            let same = |a: Place| scratch.same[a as usize];
            let value = match instruction {
                Instruction::Number(bits) => T::from(f64::from_bits(bits)),
                Instruction::Variable(k) => match inputs[usize::from(k)] {
                    [value] => Some(*value),
                    values => {
                        assert_eq!(values.len(), out.len(), "an input is as long as the output");
                        None
                    }
                },
                Instruction::One(op, a) => same(a).map(|a| one_value(op, a)),
                Instruction::Two(op, a, b) => {
                    let both = same(a).zip(same(b));
                    both.map(|(a, b)| two_values(op, a, b))
                }
            };
            scratch.same.push(value);
        }
        if let Some(&Some(value)) = scratch.same.last() {
            out.fill(value);
            return;
        }
        let registers = program.register_count.max(scratch.registers.len());
        let empty = || vec![T::zero(); BLOCK];
        scratch.registers.resize_with(registers, empty);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || run(program, inputs, out, scratch),
        );
    }

    /// In WGSL, where `names` stand for the variables (`u`, `field[i]`) and names that begin with
    /// `prefix` are free for what is used more than once. Powers other than whole constant ones are
    /// `pow`, which shaders define for positive bases only.
    ///
    /// # Panics
    /// If a name is missing.
    pub fn wgsl(&self, names: &[&str], prefix: &str) -> Wgsl {
        let instructions = &self.program.instructions;
        let mut uses = vec![0; instructions.len()];
        let operands = instructions.iter().flat_map(|i| i.operands());
        operands.for_each(|a| uses[a as usize] += 1);
        let mut lets = String::new();
        // What stands for each instruction, and how deep it nests.
        let mut written: Vec<(String, usize)> = Vec::with_capacity(instructions.len());
        for (at, &instruction) in instructions.iter().enumerate() {
            let text = |a: Place| &written[a as usize].0;
            let value = match instruction {
                Instruction::Number(bits) => literal(f64::from_bits(bits)),
                Instruction::Variable(k) => names[usize::from(k)].to_owned(),
                Instruction::One(op, a) => call(op, text(a)),
                Instruction::Two(op, a, b) => infix(op, text(a), text(b)),
            };
            let deepest = instruction.operands().map(|a| written[a as usize].1).max();
            let depth = deepest.map_or(0, |depth| depth + 1);
            let bind = depth > 0 && at + 1 < instructions.len();
            written.push(match bind && (uses[at] > 1 || depth == WGSL_DEPTH) {
                true => {
                    let name = format!("{prefix}{at}");
                    lets += &format!("let {name} = {value};\n");
                    (name, 0)
                }
                false => (value, depth),
            });
        }
        let (value, _) = written.pop().expect("a program has a result");
        Wgsl { lets, value }
    }
}

fn literal(value: f64) -> String {
    let value = value as f32;
    match value < 0.0 {
        true => format!("({value:?})"),
        false => format!("{value:?}"),
    }
}

fn call(op: Unary, a: &str) -> String {
    let name = match op {
        Unary::Neg => return format!("(-{a})"),
        // Some drivers compute it from exponentials, which overflow; it is ±1 from 10 on.
        Unary::Tanh => return format!("tanh(clamp({a}, -15.0, 15.0))"),
        Unary::Abs => "abs",
        Unary::Sign => "sign",
        Unary::Sqrt => "sqrt",
        Unary::Exp => "exp",
        Unary::Ln => "log",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Atan => "atan",
    };
    format!("{name}({a})")
}

fn infix(op: Binary, a: &str, b: &str) -> String {
    match op {
        Binary::Add => format!("({a} + {b})"),
        Binary::Sub => format!("({a} - {b})"),
        Binary::Mul => format!("({a} * {b})"),
        Binary::Div => format!("({a} / {b})"),
        Binary::Min => format!("min({a}, {b})"),
        Binary::Max => format!("max({a}, {b})"),
        Binary::Pow => format!("pow({a}, {b})"),
        Binary::Share => format!("select({a} * {b}, 0.0, {a} == 0.0)"),
    }
}
