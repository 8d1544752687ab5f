//! Expressions that a file is written with: `u*(1-u)*(u-a) - v`, `sin(pi*x)*exp(-t)`.
//!
//! 1. `reading`: text is checked, brought into the form that `exmex` reads as mathematicians do, and
//!    evaluated by it over places in a program, which so writes itself.
//! 2. `program`: constants are folded, what is equal is computed once, and derivatives are taken.
//! 3. `running`: the program over arrays, block by block, and as WGSL.
//!
//! Precedence is the usual one: `^` before a sign before `*` and `/` before `+` and `-`, all from the
//! left. `-u^2` is −(u²); `a^b^c`, which is read either way elsewhere, is refused.
//!
//! ```
//! use problem::kit::expression::Expression;
//!
//! let growth = Expression::parse("u*(1-u)*(u-a)", &["u", "a"])?;
//! assert_eq!(growth.at(&[2.0, 0.5]), -3.0);
//! assert_eq!(growth.derivative(0)?.at(&[0.0, 0.5]), -0.5);
//! let unknown = Expression::parse("u*w", &["u", "a"]).unwrap_err();
//! assert_eq!(unknown.to_string(), "there is no 'w' here; expressions may use u, a");
//! # Ok::<_, problem::kit::expression::BadExpression>(())
//! ```

mod program;
mod reading;
mod running;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use program::Program;
pub use running::{Scratch, Wgsl};
use thiserror::Error;

/// Longest text of an expression, in characters.
pub const MAX_LENGTH: usize = 2000;
/// Most parentheses within one another.
pub const MAX_DEPTH: usize = 64;
/// Longest program, also of a derivative.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// A value that depends on variables, as a file says.
#[derive(Clone)]
pub struct Expression {
    text: String,
    variables: Arc<[String]>,
    program: Program,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BadExpression {
    /// Nothing is written.
    #[error("an expression is missing; write a number at least")]
    Empty,
    /// More than [`MAX_LENGTH`] characters.
    #[error("an expression of {0} characters is longer than {MAX_LENGTH} characters; shorten it")]
    TooLong(usize),
    /// More than [`MAX_DEPTH`] parentheses within one another.
    #[error("more than {MAX_DEPTH} parentheses are within one another; shorten the expression")]
    TooDeep,
    /// More than [`MAX_INSTRUCTIONS`].
    #[error("it takes more than {MAX_INSTRUCTIONS} operations to compute; shorten the expression")]
    TooLarge,
    /// A variable that is not given.
    #[error("there is no '{name}' here; expressions may use {}", .known.join(", "))]
    UnknownName {
        /// What is written.
        name: String,
        /// The variables.
        known: Vec<String>,
    },
    /// A function that there is not.
    #[error("there is no function '{0}'; there are {known}", known = reading::functions())]
    UnknownFunction(String),
    /// A character without a meaning.
    #[error("'{0}' has no meaning here; there are + - * / ^ ( ) and {known}", known = reading::functions())]
    UnknownSymbol(char),
    /// A variable with the name of a function or constant.
    #[error(
        "nothing can be named '{0}', which is a function or constant of expressions; rename it"
    )]
    Reserved(String),
    /// A number that cannot be read.
    #[error("'{0}' is no number; write 0.001 or 1e-3")]
    BadNumber(String),
    /// Two values side by side.
    #[error("there is no operator before '{0}'; products are written with *")]
    MissingOperator(String),
    /// An operator without a value to work on.
    #[error("there is no value before {0}; write one")]
    MissingValue(String),
    /// Parentheses that do not match.
    #[error("parentheses do not match: {0} '{1}' too many")]
    Unbalanced(usize, char),
    /// A function without parentheses.
    #[error("{0} is a function; write {0}(…)")]
    NoArgument(String),
    /// A function of one value with two, or the other way round.
    #[error("{name} takes {takes}")]
    WrongArguments {
        /// The function.
        name: String,
        /// What it takes.
        takes: &'static str,
    },
    /// `a^b^c`.
    #[error("a^b^c can be read in two ways; write (a^b)^c or a^(b^c)")]
    PowerOfPower,
    /// A part without variables that no number holds.
    #[error("a part without variables is {0}; numbers must be finite and below 3e38")]
    NotFinite(f64),
    /// What the parser says of text that was thought to be good.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A derivative that cannot be taken.
    #[error("cannot be differentiated by {variable}: {reason}")]
    Derivative {
        /// The variable's name.
        variable: String,
        /// Why not.
        reason: Box<BadExpression>,
    },
}

impl Expression {
    /// Of a text and the names of variables, in the order in which their values are given later.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, BadExpression> {
        Ok(Self {
            program: reading::read(text, variables)?,
            text: text.to_owned(),
            variables: variables.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    /// A number, finite or not ([`Self::not_finite`] tells).
    pub fn constant(value: f64) -> Self {
        Self {
            text: value.to_string(),
            variables: Arc::new([]),
            program: Program::number(value),
        }
    }

    /// As it was written; of a derivative, what it is the derivative of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the value depends on the variable with this index. (`0*u` does not depend on `u`.)
    pub fn uses(&self, variable: usize) -> bool {
        self.program.uses(variable)
    }

    /// The derivative by a variable, of the same variables. Where a minimum, a maximum or an absolute
    /// value has a kink it is the mean of both sides, and that of a sign is zero everywhere.
    pub fn derivative(&self, variable: usize) -> Result<Self, BadExpression> {
        let name = self.variables.get(variable).map_or("nothing", |v| v);
        let program = self.program.derivative(variable);
        Ok(Self {
            program: program.map_err(|reason| BadExpression::Derivative {
                variable: name.to_owned(),
                reason: Box::new(reason),
            })?,
            text: format!("d({})/d{name}", self.text),
            variables: self.variables.clone(),
        })
    }

    /// The value at one point.
    ///
    /// # Panics
    /// If a value is missing.
    pub fn at(&self, values: &[f64]) -> f64 {
        let inputs: Vec<&[f64]> = values.chunks(1).collect();
        let mut out = [0.0];
        self.evaluate(&inputs, &mut out, &mut Scratch::default());
        out[0]
    }

    /// A point of a box, given by the lowest and highest value of each variable, where the value is
    /// not finite in double or in single precision, if one is found: among corners, centres and
    /// zeros of the axes, and some thousand points spread over the box, or between two of them where
    /// what is divided by changes sign.
    ///
    /// # Panics
    /// If the range of a variable that it uses is missing.
    pub fn not_finite(&self, ranges: &[[f64; 2]]) -> Option<Vec<f64>> {
        const POINTS: usize = 4096;
        let used: Vec<usize> = (0..ranges.len()).filter(|&k| self.uses(k)).collect();
        let every = used.len() <= 6; // 4^6 = POINTS
        let special = if every { 1 << (2 * used.len()) } else { POINTS };
        let spread = Spread::new(used.len());
        let column = |k: usize| -> Vec<f64> {
            let [low, high] = ranges[k];
            let centre = 0.5 * low + 0.5 * high;
            let zero = if (low..=high).contains(&0.0) {
                0.0
            } else {
                centre
            };
            let Some(axis) = used.iter().position(|&u| u == k) else {
                return vec![centre];
            };
            let ends = [low, high, centre, zero];
            let chosen = (0..special).map(|p| match every {
                true => ends[(p >> (2 * axis)) & 3],
                false => ends[(4.0 * spread.at(p, axis)) as usize & 3],
            });
            let inner = (0..POINTS).map(|p| low + (high - low) * spread.at(p, axis));
            chosen.chain(inner).collect()
        };
        let columns: Vec<Vec<f64>> = (0..ranges.len()).map(column).collect();
        let single: Vec<Vec<f32>> = (columns.iter())
            .map(|column| column.iter().map(|&x| x as f32).collect())
            .collect();
        let mut double_values = vec![0.0; special + POINTS];
        let mut single_values = vec![0.0; special + POINTS];
        let inputs: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        self.evaluate(&inputs, &mut double_values, &mut Scratch::default());
        let inputs: Vec<&[f32]> = single.iter().map(Vec::as_slice).collect();
        self.evaluate(&inputs, &mut single_values, &mut Scratch::default());
        let mut both = double_values.iter().zip(&single_values);
        let bad = both.position(|(x, y)| !x.is_finite() || !y.is_finite());
        let point = |at: usize| -> Vec<f64> {
            let value = |column: &Vec<f64>| column[at.min(column.len() - 1)];
            columns.iter().map(value).collect()
        };
        if let Some(bad) = bad {
            return Some(point(bad));
        }
        let inputs: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        self.program.denominators().find_map(|program| {
            let denominator = Self {
                program,
                ..self.clone()
            };
            denominator.evaluate(&inputs, &mut double_values, &mut Scratch::default());
            let above = double_values.iter().position(|value| *value > 0.0)?;
            let below = double_values.iter().position(|value| *value < 0.0)?;
            Some(denominator.zero_between(point(above), point(below)))
        })
    }

    /// Where the value is zero, or nearly, between a point at which it is above and one at which it is
    /// below.
    fn zero_between(&self, mut above: Vec<f64>, mut below: Vec<f64>) -> Vec<f64> {
        // As many halves as there are bits to tell points apart.
        for _ in 0..64 {
            let both = above.iter().zip(&below);
            let middle: Vec<f64> = both.map(|(a, b)| 0.5 * a + 0.5 * b).collect();
            match self.at(&middle) > 0.0 {
                true => above = middle,
                false => below = middle,
            }
        }
        below
    }
}

/// Points that fill a cube evenly however many are taken: multiples, modulo one, of the powers of
/// 1/g with g^(d+1) = g + 1, the golden ratio in one dimension (Roberts 2018).
struct Spread(Vec<f64>);

impl Spread {
    fn new(dimensions: usize) -> Self {
        let order = 1.0 / (dimensions as f64 + 1.0);
        let ratio = (0..64).fold(1.5f64, |g, _| (1.0 + g).powf(order));
        Self((1..=dimensions).map(|k| ratio.powi(-(k as i32))).collect())
    }

    fn at(&self, point: usize, axis: usize) -> f64 {
        (0.5 + point as f64 * self.0[axis]).fract()
    }
}
