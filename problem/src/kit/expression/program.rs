//! Straight-line programs, and how they are written: each instruction once, constants folded.

use std::collections::HashMap;

use super::running::{one_value, two_values};
use super::{BadExpression, MAX_INSTRUCTIONS};

/// The index of an instruction, whose result it stands for.
pub(super) type Place = u16;

/// Largest whole exponent that becomes multiplications.
const MAX_POWER: f64 = 16.0;

/// Instructions that may be written before those that nothing needs are left out.
const MAX_WRITTEN: usize = 8 * MAX_INSTRUCTIONS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unary {
    Neg,
    Abs,
    Sign,
    Sqrt,
    Exp,
    Ln,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Atan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
    /// A product that is zero if its first factor is, whatever the second: slopes of the side that a
    /// minimum does not take may be infinite.
    Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Instruction {
    /// Its bits, so that it can be looked up.
    Number(u64),
    Variable(u16),
    One(Unary, Place),
    Two(Binary, Place, Place),
}

impl Instruction {
    pub(super) fn operands(self) -> impl Iterator<Item = Place> {
        let (a, b) = match self {
            Self::Number(_) | Self::Variable(_) => (None, None),
            Self::One(_, a) => (Some(a), None),
            Self::Two(_, a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }

    pub(super) fn is_leaf(self) -> bool {
        self.operands().next().is_none()
    }
}

/// Instructions, each after those it needs; the last is the result.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    /// Where each leaves its result; never where it finds an operand.
    pub(super) registers: Vec<Place>,
    pub(super) register_count: usize,
}

impl Program {
    pub(super) fn number(value: f64) -> Self {
        Self::new(vec![Instruction::Number(value.to_bits())])
    }

    fn new(instructions: Vec<Instruction>) -> Self {
        let mut last_use = vec![0; instructions.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            instruction
                .operands()
                .for_each(|a| last_use[a as usize] = at);
        }
        let mut registers: Vec<Place> = Vec::with_capacity(instructions.len());
        let (mut free, mut register_count) = (Vec::new(), 0);
        for (at, instruction) in instructions.iter().enumerate() {
            if instruction.is_leaf() {
                registers.push(0); // read where it stands
                continue;
            }
            registers.push(free.pop().unwrap_or(register_count as Place));
            register_count = register_count.max(registers[at] as usize + 1);
            let mut done: Vec<Place> = instruction.operands().collect();
            done.dedup();
            done.retain(|&a| last_use[a as usize] == at && !instructions[a as usize].is_leaf());
            free.extend(done.iter().map(|&a| registers[a as usize]));
        }
        Self {
            instructions,
            registers,
            register_count,
        }
    }

    /// What is divided by, factor by factor, in the order in which that is done, as far as it has no jumps
    /// of its own.
    pub(super) fn denominators(&self) -> impl Iterator<Item = Self> + '_ {
        let divided = self.instructions.iter().filter_map(|instruction| {
            let Instruction::Two(Binary::Div, _, by) = instruction else {
                return None;
            };
            Some(self.factors(*by))
        });
        let all = divided.flatten();
        let upto = all.map(|place| &self.instructions[..=usize::from(place)]);
        let smooth = upto.filter(|upto| !jumps(upto));
        smooth.map(|upto| Self::new(upto.to_vec()))
    }

    /// Results, one of which is zero where that one is: a square changes no sign at its zero, what is
    /// squared does.
    fn factors(&self, of: Place) -> Vec<Place> {
        let (mut open, mut factors) = (vec![of], Vec::new());
        let mut seen = vec![false; self.instructions.len()];
        while let Some(place) = open.pop() {
            if std::mem::replace(&mut seen[usize::from(place)], true) {
                continue;
            }
            match self.instructions[usize::from(place)] {
                Instruction::Two(Binary::Mul, a, b) => open.extend([b, a]),
                Instruction::Two(Binary::Pow, base, power) if self.is_positive(power) => {
                    open.push(base);
                }
                Instruction::One(Unary::Neg | Unary::Abs | Unary::Sqrt, a) => open.push(a),
                _ => factors.push(place),
            }
        }
        factors
    }

    /// Whether a result is a positive number, whatever the variables are.
    fn is_positive(&self, place: Place) -> bool {
        let instruction = self.instructions[usize::from(place)];
        matches!(instruction, Instruction::Number(bits) if f64::from_bits(bits) > 0.0)
    }

    pub(super) fn uses(&self, variable: usize) -> bool {
        let is = |op: &Instruction| matches!(op, Instruction::Variable(k) if usize::from(*k) == variable);
        self.instructions.iter().any(is)
    }

    /// By the chain rule along the program, so it is a few times as long at most.
    ///
    /// Not by `exmex` (0.21), although it differentiates: it copies what it differentiates at each
    /// step and takes two minutes for a product of 300 factors, folds some numbers wrongly (see
    /// `reading`), and knows nothing of abs, sign, min and max. Tests compare with it.
    pub(super) fn derivative(&self, variable: usize) -> Result<Self, BadExpression> {
        let mut graph = Graph::of(&self.instructions);
        // None is zero, so that nothing is written for what does not depend on the variable.
        let mut slopes: Vec<Option<Place>> = Vec::with_capacity(self.instructions.len());
        for (at, &instruction) in self.instructions.iter().enumerate() {
            let slope = match instruction {
                Instruction::Number(_) => None,
                Instruction::Variable(k) => (usize::from(k) == variable).then(|| graph.number(1.0)),
                Instruction::One(op, a) => {
                    let slope = slopes[a as usize];
                    slope.and_then(|slope| graph.slope_of_one(op, a, at as Place, slope))
                }
                Instruction::Two(op, a, b) => {
                    let inner = [slopes[a as usize], slopes[b as usize]];
                    match inner {
                        [None, None] => None,
                        _ => graph.slope_of_two(op, [a, b], at as Place, inner),
                    }
                }
            };
            slopes.push(slope);
        }
        let root = slopes.pop().flatten();
        let root = root.unwrap_or_else(|| graph.number(0.0));
        graph.program(root)
    }
}

/// A program that is being written. What goes wrong is kept until it is finished, so that writing
/// needs no care.
#[derive(Debug, Default)]
pub(super) struct Graph {
    instructions: Vec<Instruction>,
    places: HashMap<Instruction, Place>,
    failure: Option<BadExpression>,
}

impl Graph {
    fn of(instructions: &[Instruction]) -> Self {
        let mut graph = Self::default();
        for &instruction in instructions {
            graph.write(instruction);
        }
        graph
    }

    fn write(&mut self, instruction: Instruction) -> Place {
        if let Some(&place) = self.places.get(&instruction) {
            return place;
        }
        if self.instructions.len() == MAX_WRITTEN {
            self.failure.get_or_insert(BadExpression::TooLarge);
            return 0;
        }
        let place = self.instructions.len() as Place;
        self.instructions.push(instruction);
        self.places.insert(instruction, place);
        place
    }

    pub(super) fn number(&mut self, value: f64) -> Place {
        // What a shader cannot be told either.
        if !(value as f32).is_finite() {
            self.failure.get_or_insert(BadExpression::NotFinite(value));
        }
        self.write(Instruction::Number(value.to_bits()))
    }

    pub(super) fn variable(&mut self, index: usize) -> Place {
        self.write(Instruction::Variable(index as u16))
    }

    fn constant(&self, a: Place) -> Option<f64> {
        match self.instructions[a as usize] {
            Instruction::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// What it is the negative of.
    fn negated(&self, a: Place) -> Option<Place> {
        match self.instructions[a as usize] {
            Instruction::One(Unary::Neg, inner) => Some(inner),
            _ => None,
        }
    }

    pub(super) fn one(&mut self, op: Unary, a: Place) -> Place {
        if let Some(value) = self.constant(a) {
            return self.number(one_value(op, value));
        }
        match (op, self.negated(a)) {
            (Unary::Neg, Some(inner)) => inner,
            _ => self.write(Instruction::One(op, a)),
        }
    }

    pub(super) fn two(&mut self, op: Binary, a: Place, b: Place) -> Place {
        use Binary::{Add, Div, Max, Min, Mul, Pow, Share, Sub};
        match (op, self.constant(a), self.constant(b)) {
            (_, Some(x), Some(y)) => return self.number(two_values(op, x, y)),
            (Add, Some(0.0), _) | (Mul | Share, Some(1.0), _) => return b,
            (Add | Sub, _, Some(0.0)) | (Mul | Div, _, Some(1.0)) => return a,
            (Sub, Some(0.0), _) | (Mul, Some(-1.0), _) => return self.one(Unary::Neg, b),
            (Mul | Div, _, Some(-1.0)) => return self.one(Unary::Neg, a),
            (Mul | Div, Some(0.0), _) | (Mul | Share, _, Some(0.0)) => return self.number(0.0),
            (Pow, _, Some(exponent)) if exponent.fract() == 0.0 => {
                return self.whole_power(a, exponent);
            }
            _ => {}
        }
        match (op, self.negated(a), self.negated(b)) {
            (Add, _, Some(b)) => self.two(Sub, a, b),
            (Add, Some(a), _) => self.two(Sub, b, a),
            (Sub, _, Some(b)) => self.two(Add, a, b),
            (Mul | Div, Some(a), Some(b)) => self.two(op, a, b),
            (Add | Mul | Min | Max, ..) => {
                let swapped = self.places.get(&Instruction::Two(op, b, a));
                let swapped = swapped.copied();
                swapped.unwrap_or_else(|| self.write(Instruction::Two(op, a, b)))
            }
            _ => self.write(Instruction::Two(op, a, b)),
        }
    }

    /// Right for negative bases too, of which shaders cannot take powers.
    fn whole_power(&mut self, a: Place, exponent: f64) -> Place {
        if exponent < 0.0 {
            let (one, power) = (self.number(1.0), self.whole_power(a, -exponent));
            return self.two(Binary::Div, one, power);
        }
        if exponent > MAX_POWER {
            let (size, exponent_at) = (self.one(Unary::Abs, a), self.number(exponent));
            let power = self.write(Instruction::Two(Binary::Pow, size, exponent_at));
            if exponent % 2.0 == 0.0 {
                return power;
            }
            let sign = self.one(Unary::Sign, a);
            return self.two(Binary::Mul, sign, power);
        }
        match exponent {
            0.0 => self.number(1.0),
            1.0 => a,
            _ if exponent % 2.0 == 0.0 => {
                let root = self.whole_power(a, 0.5 * exponent);
                self.two(Binary::Mul, root, root)
            }
            _ => {
                let rest = self.whole_power(a, exponent - 1.0);
                self.two(Binary::Mul, rest, a)
            }
        }
    }

    fn add(&mut self, a: Place, b: Place) -> Place {
        self.two(Binary::Add, a, b)
    }

    fn sub(&mut self, a: Place, b: Place) -> Place {
        self.two(Binary::Sub, a, b)
    }

    fn mul(&mut self, a: Place, b: Place) -> Place {
        self.two(Binary::Mul, a, b)
    }

    fn div(&mut self, a: Place, b: Place) -> Place {
        self.two(Binary::Div, a, b)
    }

    /// Of `op(a)`, which stands at `result`, where `slope` is that of `a`.
    fn slope_of_one(&mut self, op: Unary, a: Place, result: Place, slope: Place) -> Option<Place> {
        let one = self.number(1.0);
        Some(match op {
            Unary::Neg => self.one(Unary::Neg, slope),
            Unary::Sign => return None,
            Unary::Sqrt => {
                let twice = self.add(result, result);
                self.div(slope, twice)
            }
            Unary::Ln => self.div(slope, a),
            Unary::Atan => {
                let square = self.mul(a, a);
                let below = self.add(one, square);
                self.div(slope, below)
            }
            Unary::Abs | Unary::Exp | Unary::Sin | Unary::Sinh | Unary::Cosh => {
                let factor = match op {
                    Unary::Abs => self.one(Unary::Sign, a),
                    Unary::Sin => self.one(Unary::Cos, a),
                    Unary::Sinh => self.one(Unary::Cosh, a),
                    Unary::Cosh => self.one(Unary::Sinh, a),
                    _ => result,
                };
                self.mul(factor, slope)
            }
            Unary::Cos => {
                let sine = self.one(Unary::Sin, a);
                let product = self.mul(sine, slope);
                self.one(Unary::Neg, product)
            }
            Unary::Tan | Unary::Tanh => {
                let square = self.mul(result, result);
                let factor = match op {
                    Unary::Tan => self.add(one, square),
                    _ => self.sub(one, square),
                };
                self.mul(factor, slope)
            }
        })
    }

    /// Of `op(a, b)`, which stands at `result`.
    fn slope_of_two(
        &mut self,
        op: Binary,
        [a, b]: [Place; 2],
        result: Place,
        [slope_a, slope_b]: [Option<Place>; 2],
    ) -> Option<Place> {
        // By how much the result follows each.
        let (first, second) = match op {
            Binary::Add => (slope_a, slope_b),
            Binary::Sub => (slope_a, slope_b.map(|s| self.one(Unary::Neg, s))),
            Binary::Mul if a == b => {
                let product = slope_a.map(|s| self.mul(a, s));
                (product, product)
            }
            Binary::Mul => (
                slope_a.map(|s| self.mul(s, b)),
                slope_b.map(|s| self.mul(a, s)),
            ),
            Binary::Div => (
                slope_a.map(|s| self.div(s, b)),
                slope_b.map(|s| {
                    let above = self.mul(result, s);
                    let share = self.div(above, b);
                    self.one(Unary::Neg, share)
                }),
            ),
            Binary::Min | Binary::Max => {
                let larger = self.sub(a, b);
                let larger = self.one(Unary::Sign, larger);
                let (one, half) = (self.number(1.0), self.number(0.5));
                let (above, below) = (self.add(one, larger), self.sub(one, larger));
                let (above, below) = (self.mul(half, above), self.mul(half, below));
                let [to_a, to_b] = match op {
                    Binary::Max => [above, below],
                    _ => [below, above],
                };
                (
                    slope_a.map(|s| self.two(Binary::Share, to_a, s)),
                    slope_b.map(|s| self.two(Binary::Share, to_b, s)),
                )
            }
            // Its first factor is made of signs, which have no slope.
            Binary::Share => (None, slope_b.map(|s| self.two(Binary::Share, a, s))),
            Binary::Pow => (
                slope_a.map(|s| {
                    let one = self.number(1.0);
                    let lower = self.sub(b, one);
                    let power = self.two(Binary::Pow, a, lower);
                    let factor = self.mul(b, power);
                    self.mul(factor, s)
                }),
                slope_b.map(|s| {
                    let logarithm = self.one(Unary::Ln, a);
                    let factor = self.mul(result, logarithm);
                    self.mul(factor, s)
                }),
            ),
        };
        match (first, second) {
            (Some(first), Some(second)) if first == second => {
                let two = self.number(2.0);
                Some(self.mul(two, first))
            }
            (Some(first), Some(second)) => Some(self.add(first, second)),
            (first, second) => first.or(second),
        }
    }

    /// What is needed for the value at `root`.
    pub(super) fn program(&self, root: Place) -> Result<Program, BadExpression> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        // Depth first: few results wait for others, so that few registers are needed.
        let mut moved: Vec<Option<Place>> = vec![None; self.instructions.len()];
        let mut instructions = Vec::new();
        let mut open = vec![root];
        while let Some(&at) = open.last() {
            let instruction = self.instructions[at as usize];
            let missing = |&a: &Place| moved[a as usize].is_none();
            if let Some(operand) = instruction.operands().find(missing) {
                open.push(operand);
                continue;
            }
            open.pop();
            let there = |a: Place| moved[a as usize].unwrap_or_default();
            let instruction = match instruction {
                Instruction::One(op, a) => Instruction::One(op, there(a)),
                Instruction::Two(op, a, b) => Instruction::Two(op, there(a), there(b)),
                leaf => leaf,
            };
            moved[at as usize] = Some(instructions.len() as Place);
            instructions.push(instruction);
        }
        match instructions.len() <= MAX_INSTRUCTIONS {
            true => Ok(Program::new(instructions)),
            false => Err(BadExpression::TooLarge),
        }
    }
}

/// Whether the last of these may jump where nothing is divided by zero.
fn jumps(instructions: &[Instruction]) -> bool {
    let mut needed = vec![false; instructions.len()];
    if let Some(last) = needed.last_mut() {
        *last = true;
    }
    for (at, instruction) in instructions.iter().enumerate().rev() {
        if !needed[at] {
            continue;
        }
        if let Instruction::One(Unary::Sign | Unary::Tan, _) = instruction {
            return true;
        }
        instruction
            .operands()
            .for_each(|a| needed[usize::from(a)] = true);
    }
    false
}
