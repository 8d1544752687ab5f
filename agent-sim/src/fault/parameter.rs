//! What faults take: named values of some sort.

use super::BadFault;
use super::written::Value;

/// A parameter of a fault.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// What people call it.
    pub name: &'static str,
    /// What it can be.
    pub sort: Sort,
    /// Whether it can be left out.
    pub presence: Presence,
    /// A value that shows how to write it, other than the one it has when it is left out.
    pub example: &'static str,
    /// Of numbers: the one that changes nothing.
    pub harmless: f64,
}

/// Whether a parameter can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// No.
    Needed,
    /// Yes: then there is none.
    Optional,
    /// Yes: then it is this, and where it is this it is not written down.
    Default(&'static str),
    /// Yes: then it is this; but one at least of all such parameters of a fault has to be given.
    OneOf(&'static str),
}

/// What a parameter can be.
#[derive(Debug, Clone, Copy)]
pub enum Sort {
    /// A number within a range.
    Number(Range),
    /// A whole number, 0 or more.
    Whole,
    /// Yes or no.
    Truth,
    /// A file, by its path.
    File,
}

/// The numbers that are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Whether a number is one of them.
    pub allows: fn(f64) -> bool,
    /// All of them in words.
    pub said: &'static str,
}

impl Range {
    /// Any number.
    pub const FINITE: Self = Self {
        allows: f64::is_finite,
        said: "a finite number",
    };
    /// An amount.
    pub const NOT_NEGATIVE: Self = Self {
        allows: |value| value.is_finite() && value >= 0.0,
        said: "finite and not below 0",
    };
    /// A share or a probability.
    pub const SHARE: Self = Self {
        allows: |value| (0.0..=1.0).contains(&value),
        said: "between 0 and 1",
    };
    /// A share that is not the whole.
    pub const BELOW_ONE: Self = Self {
        allows: |value| (0.0..1.0).contains(&value),
        said: "at least 0 and below 1",
    };

    /// Refuses a number that is not one of them.
    pub(super) fn check(&self, parameter: &'static str, value: f64) -> Result<(), BadFault> {
        match (self.allows)(value) {
            true => Ok(()),
            false => Err(BadFault::OutOfRange {
                parameter,
                value,
                range: self.said,
            }),
        }
    }
}

impl Parameter {
    /// The probability that so many faults have.
    pub const P: Self = Self::new("p", Sort::Number(Range::SHARE), Presence::Needed, "0.1");

    /// A parameter.
    pub const fn new(
        name: &'static str,
        sort: Sort,
        presence: Presence,
        example: &'static str,
    ) -> Self {
        Self {
            name,
            sort,
            presence,
            example,
            harmless: 0.0,
        }
    }

    /// The same with another number that changes nothing than 0.
    pub const fn harmless_at(self, harmless: f64) -> Self {
        Self { harmless, ..self }
    }

    /// Its value in a text.
    pub(super) fn read(&self, text: &str) -> Result<Value, BadFault> {
        let (value, wanted) = match self.sort {
            Sort::Number(_) => (text.parse().ok().map(Value::Number), "a number"),
            Sort::Whole => {
                let whole = text.parse::<u32>().ok();
                let whole = whole.map(|whole| Value::Whole(whole.into()));
                (whole, "a whole number, 0 or more")
            }
            Sort::Truth => (text.parse().ok().map(Value::Truth), "true or false"),
            Sort::File => {
                let path = (!text.is_empty()).then(|| Value::Text(text.to_owned()));
                (path, "the path of a file")
            }
        };
        value.ok_or_else(|| BadFault::Unreadable {
            parameter: self.name,
            text: text.to_owned(),
            wanted,
        })
    }

    /// Its value where it is left out.
    pub(super) fn left_out(&self) -> Option<Value> {
        match self.presence {
            Presence::Needed | Presence::Optional => None,
            Presence::Default(text) | Presence::OneOf(text) => self.read(text).ok(),
        }
    }
}
