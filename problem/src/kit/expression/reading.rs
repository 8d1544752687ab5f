//! From text to a program.
//!
//! `exmex` finds out what belongs to what; what it sees is not the user's text but one of leaves `{0}`,
//! `{1}`…, operators and parentheses, because as it stands (0.21) it
//! - lets a sign bind tighter than a power: `-u^2` is (−u)². A sign is a factor −1 here;
//! - does not know `1e-3`, and folds numbers wrongly (its nested form takes `x-2-3-4` for `x-2-(3-4)`).
//!   Numbers are leaves as variables are, folded by the program;
//! - loses track of a comma within another function's second argument. `min(a, b)` becomes
//!   `((a)min(b))`;
//! - takes `minimum` for `min`, and accepts `sin x` and `{`.

use std::cell::RefCell;
use std::iter::Peekable;
use std::rc::Rc;
use std::str::{CharIndices, FromStr};

use exmex::{BinOp, Express, FlatEx, MakeOperators, Operator};

use super::program::{Binary, Graph, Place, Program, Unary};
use super::{BadExpression, MAX_DEPTH, MAX_LENGTH};

/// Constants by name.
const CONSTANTS: [(&str, f64); 5] = [
    ("pi", std::f64::consts::PI),
    ("PI", std::f64::consts::PI),
    ("π", std::f64::consts::PI),
    ("e", std::f64::consts::E),
    ("E", std::f64::consts::E),
];

type One = fn(Value) -> Value;
type Two = fn(Value, Value) -> Value;

/// Functions of one value, and the sign.
const FUNCTIONS: [(&str, One); 15] = [
    ("sin", |a| a.one(Unary::Sin)),
    ("cos", |a| a.one(Unary::Cos)),
    ("tan", |a| a.one(Unary::Tan)),
    ("atan", |a| a.one(Unary::Atan)),
    ("sinh", |a| a.one(Unary::Sinh)),
    ("cosh", |a| a.one(Unary::Cosh)),
    ("tanh", |a| a.one(Unary::Tanh)),
    ("exp", |a| a.one(Unary::Exp)),
    ("ln", |a| a.one(Unary::Ln)),
    ("log", |a| a.one(Unary::Ln)),
    ("sqrt", |a| a.one(Unary::Sqrt)),
    ("abs", |a| a.one(Unary::Abs)),
    ("sign", |a| a.one(Unary::Sign)),
    ("signum", |a| a.one(Unary::Sign)),
    ("-", |a| a.one(Unary::Neg)),
];

/// Operators and functions of two values, and their precedence.
const OPERATORS: [(&str, i64, Two); 7] = [
    ("+", 0, |a, b| a.two(Binary::Add, b)),
    ("-", 0, |a, b| a.two(Binary::Sub, b)),
    ("*", 1, |a, b| a.two(Binary::Mul, b)),
    ("/", 1, |a, b| a.two(Binary::Div, b)),
    ("^", 2, |a, b| a.two(Binary::Pow, b)),
    ("min", 3, |a, b| a.two(Binary::Min, b)),
    ("max", 3, |a, b| a.two(Binary::Max, b)),
];

/// What there is, for those who asked for something else.
pub(super) fn functions() -> String {
    let names = FUNCTIONS.iter().map(|f| f.0).filter(|&name| name != "-");
    let all: Vec<&str> = names.chain(["min", "max", "pi", "e"]).collect();
    all.join(", ")
}

/// A place in a program that is being written: what `exmex` computes with.
#[derive(Clone, Debug, Default)]
struct Value {
    /// None of the values that `exmex` leaves behind where it took one.
    graph: Option<Rc<RefCell<Graph>>>,
    place: Place,
}

impl Value {
    fn one(mut self, op: Unary) -> Self {
        if let Some(graph) = &self.graph {
            self.place = graph.borrow_mut().one(op, self.place);
        }
        self
    }

    fn two(mut self, op: Binary, other: Self) -> Self {
        if let Some(graph) = &self.graph {
            self.place = graph.borrow_mut().two(op, self.place, other.place);
        }
        self
    }
}

/// `exmex` reads literals with it; there are none in what it is given.
impl FromStr for Value {
    type Err = &'static str;

    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Err("a literal")
    }
}

#[derive(Clone, Debug)]
struct Operators;

impl MakeOperators<Value> for Operators {
    fn make<'a>() -> Vec<Operator<'a, Value>> {
        let binary = |&(name, prio, apply): &(&'a str, i64, Two)| {
            // None is called commutative: that is for moving numbers past their neighbours.
            let op = BinOp {
                apply,
                prio,
                is_commutative: false,
            };
            match FUNCTIONS.iter().find(|f| f.0 == name) {
                Some(&(_, sign)) => Operator::make_bin_unary(name, op, sign),
                None => Operator::make_bin(name, op),
            }
        };
        let unary = FUNCTIONS.iter().filter(|f| f.0 != "-");
        let unary = unary.map(|&(name, apply)| Operator::make_unary(name, apply));
        OPERATORS.iter().map(binary).chain(unary).collect()
    }
}

/// The program of a text.
pub(super) fn read(text: &str, variables: &[&str]) -> Result<Program, BadExpression> {
    let reserved = |name: &&&str| is_function(name) || constant(name).is_some();
    if let Some(name) = variables.iter().find(reserved) {
        return Err(BadExpression::Reserved((*name).to_owned()));
    }
    let length = text.chars().count();
    if length > MAX_LENGTH {
        return Err(BadExpression::TooLong(length));
    }
    let (plain, leaves) = Scan::new(text, variables).run()?;
    let unreadable = |e: exmex::ExError| BadExpression::Unreadable(e.to_string());
    let parsed = FlatEx::<Value, Operators>::parse_wo_compile(&plain).map_err(unreadable)?;
    let graph = Rc::new(RefCell::new(Graph::default()));
    let value = |name: &String| {
        let leaf = name.parse().ok().and_then(|n: usize| leaves.get(n));
        let leaf = leaf.ok_or_else(|| BadExpression::Unreadable(plain.clone()))?;
        let place = match *leaf {
            Leaf::Number(value) => graph.borrow_mut().number(value),
            Leaf::Variable(index) => graph.borrow_mut().variable(index),
        };
        Ok(Value {
            graph: Some(graph.clone()),
            place,
        })
    };
    let values: Result<Vec<Value>, BadExpression> = parsed.var_names().iter().map(value).collect();
    let root = parsed.eval(&values?).map_err(unreadable)?.place;
    graph.borrow().program(root)
}

fn constant(name: &str) -> Option<f64> {
    let found = CONSTANTS.iter().find(|c| c.0 == name);
    found.map(|c| c.1)
}

fn is_function(name: &str) -> bool {
    takes_two(name) || FUNCTIONS.iter().any(|f| f.0 == name)
}

fn takes_two(name: &str) -> bool {
    matches!(name, "min" | "max")
}

#[derive(Clone, Copy, PartialEq)]
enum Leaf {
    Number(f64),
    Variable(usize),
}

/// What a parenthesis is open for.
#[derive(Default)]
struct Level<'a> {
    function: Option<&'a str>,
    /// The comma of a function of two has passed.
    second: bool,
    /// The last operator was a power.
    power: bool,
}

/// One pass over the text.
struct Scan<'a> {
    text: &'a str,
    variables: &'a [&'a str],
    rest: Peekable<CharIndices<'a>>,
    leaves: Vec<Leaf>,
    plain: String,
    levels: Vec<Level<'a>>,
    /// A value has just ended.
    after_value: bool,
    /// The operator before the value that comes, if there is one.
    operator: Option<char>,
    /// Signs before the value that comes make it negative.
    negative: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, variables: &'a [&'a str]) -> Self {
        Self {
            text,
            variables,
            rest: text.char_indices().peekable(),
            leaves: Vec::new(),
            plain: String::new(),
            levels: vec![Level::default()],
            after_value: false,
            operator: None,
            negative: false,
        }
    }

    fn run(mut self) -> Result<(String, Vec<Leaf>), BadExpression> {
        while let Some(&(start, c)) = self.rest.peek() {
            match c {
                _ if c.is_whitespace() => {
                    self.rest.next();
                }
                '0'..='9' | '.' => self.number(start)?,
                _ if c.is_alphabetic() || c == '_' => self.name(start)?,
                '+' | '-' | '*' | '/' | '^' => self.operator(c)?,
                '(' => {
                    self.begin_value("(")?;
                    self.open(None, "(")?;
                }
                ')' => self.close()?,
                ',' => self.comma()?,
                _ => return Err(BadExpression::UnknownSymbol(c)),
            }
        }
        let open = self.levels.len() - 1;
        if self.plain.is_empty() && self.operator.is_none() && !self.negative {
            Err(BadExpression::Empty)
        } else if !self.after_value {
            Err(BadExpression::MissingValue("the end".to_owned()))
        } else if open > 0 {
            Err(BadExpression::Unbalanced(open, '('))
        } else {
            Ok((self.plain, self.leaves))
        }
    }

    /// Moves on while characters are of a kind; the text from `start` to there.
    fn take(&mut self, start: usize, kind: impl Fn(char) -> bool) -> &'a str {
        while self.rest.next_if(|&(_, c)| kind(c)).is_some() {}
        &self.text[start..self.position()]
    }

    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |&(at, _)| at)
    }

    fn level(&mut self) -> &mut Level<'a> {
        self.levels
            .last_mut()
            .expect("the outermost is never closed")
    }

    /// Before a value: its sign. As a factor it lets powers go first.
    fn begin_value(&mut self, written: &str) -> Result<(), BadExpression> {
        if self.after_value {
            return Err(BadExpression::MissingOperator(written.to_owned()));
        }
        if std::mem::take(&mut self.negative) {
            match self.operator {
                // No power follows: that would be a power of a power.
                Some('^') => self.plain.push('-'),
                Some('/') => {
                    self.leaf(Leaf::Number(-1.0));
                    self.plain.push('/');
                }
                _ => {
                    self.leaf(Leaf::Number(-1.0));
                    self.plain.push('*');
                }
            }
        }
        self.operator = None;
        Ok(())
    }

    fn leaf(&mut self, leaf: Leaf) {
        let known = self.leaves.iter().position(|&l| l == leaf);
        let index = known.unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        });
        self.plain += &format!("{{{index}}}");
    }

    fn number(&mut self, start: usize) -> Result<(), BadExpression> {
        self.take(start, |c| c.is_ascii_digit() || c == '.');
        let at = self.position();
        let mut exponent = self.text[at..].bytes().peekable();
        if exponent.next_if(|b| matches!(b, b'e' | b'E')).is_some() {
            let signed = exponent.next_if(|b| matches!(b, b'+' | b'-')).is_some();
            if exponent.next().is_some_and(|b| b.is_ascii_digit()) {
                self.rest.nth(usize::from(signed));
                self.take(start, |c| c.is_ascii_digit());
            }
        }
        let written = &self.text[start..self.position()];
        let value = written.parse().ok().filter(|v: &f64| v.is_finite());
        let value = value.ok_or_else(|| BadExpression::BadNumber(written.to_owned()))?;
        self.begin_value(written)?;
        self.leaf(Leaf::Number(value));
        self.after_value = true;
        Ok(())
    }

    fn name(&mut self, start: usize) -> Result<(), BadExpression> {
        let name = self.take(start, |c| c.is_alphanumeric() || c == '_');
        self.begin_value(name)?;
        let end = self.position();
        self.take(end, char::is_whitespace);
        let called = self.rest.peek().is_some_and(|&(_, c)| c == '(');
        let variable = self.variables.iter().position(|&v| v == name);
        let leaf = variable.map(Leaf::Variable);
        if let Some(leaf) = leaf.or_else(|| constant(name).map(Leaf::Number)) {
            self.leaf(leaf);
            self.after_value = true;
            return Ok(());
        }
        match (is_function(name), called) {
            (true, true) if takes_two(name) => self.open(Some(name), "(("),
            (true, true) => {
                self.plain += name;
                self.open(Some(name), "(")
            }
            (true, false) => Err(BadExpression::NoArgument(name.to_owned())),
            (false, true) => Err(BadExpression::UnknownFunction(name.to_owned())),
            (false, false) => Err(BadExpression::UnknownName {
                name: name.to_owned(),
                known: self.variables.iter().map(|&v| v.to_owned()).collect(),
            }),
        }
    }

    fn operator(&mut self, c: char) -> Result<(), BadExpression> {
        self.rest.next();
        if !self.after_value {
            self.negative ^= c == '-';
            return match c {
                '+' | '-' => Ok(()),
                _ => Err(BadExpression::MissingValue(format!("'{c}'"))),
            };
        }
        let before = std::mem::replace(&mut self.level().power, c == '^');
        if before && c == '^' {
            return Err(BadExpression::PowerOfPower);
        }
        self.plain.push(c);
        self.operator = Some(c);
        self.after_value = false;
        Ok(())
    }

    /// At a parenthesis.
    fn open(&mut self, function: Option<&'a str>, plain: &str) -> Result<(), BadExpression> {
        self.rest.next();
        if self.levels.len() > MAX_DEPTH {
            return Err(BadExpression::TooDeep);
        }
        self.plain += plain;
        self.levels.push(Level {
            function,
            ..Level::default()
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), BadExpression> {
        self.rest.next();
        self.end_value("')'")?;
        if self.levels.len() == 1 {
            return Err(BadExpression::Unbalanced(1, ')'));
        }
        let level = self.levels.pop().expect("there are two");
        self.plain.push(')');
        if let Some(name) = level.function.filter(|name| takes_two(name)) {
            if !level.second {
                return Err(wrong_arguments(name));
            }
            self.plain.push(')');
        }
        self.after_value = true;
        Ok(())
    }

    fn comma(&mut self) -> Result<(), BadExpression> {
        self.rest.next();
        self.end_value("','")?;
        let level = self.level();
        let Some(name) = level.function else {
            return Err(BadExpression::UnknownSymbol(','));
        };
        if !takes_two(name) || level.second {
            return Err(wrong_arguments(name));
        }
        level.second = true;
        level.power = false;
        self.plain += &format!("){name}(");
        Ok(())
    }

    fn end_value(&mut self, before: &str) -> Result<(), BadExpression> {
        match std::mem::take(&mut self.after_value) {
            true => Ok(()),
            false => Err(BadExpression::MissingValue(before.to_owned())),
        }
    }
}

fn wrong_arguments(name: &str) -> BadExpression {
    BadExpression::WrongArguments {
        name: name.to_owned(),
        takes: match takes_two(name) {
            true => "two values; write both with a comma between them",
            false => "one value; leave out the comma",
        },
    }
}
