//! A fault's values.

use super::written::Value;
use super::{BadFault, Descriptor, Parameter, Presence, Sort};

/// What goes wrong: a fault and the values of its parameters.
///
/// ```
/// use agent_sim::fault::{Fault, line::DELAY};
///
/// let late = Fault::new(DELAY.with("steps", 2).with("jitter", 1));
/// assert_eq!(late.to_string(), "delay,steps=2,jitter=1");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct What {
    /// The fault.
    pub kind: &'static Descriptor,
    /// The value of each parameter of the fault, in its order.
    values: Vec<Option<Value>>,
}

impl From<&'static Descriptor> for What {
    fn from(kind: &'static Descriptor) -> Self {
        let value = |parameter: &Parameter| match parameter.presence {
            Presence::OneOf(_) => None, // until another one is given
            _ => parameter.left_out(),
        };
        Self {
            kind,
            values: kind.parameters.iter().map(value).collect(),
        }
    }
}

/// A number with two digits: what is found by halving means no more.
fn short(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

impl What {
    /// The same with one parameter set.
    ///
    /// # Panics
    /// If the fault has no such parameter, or it is of another sort. Whether the value is in its
    /// range is [`Fault::check`](super::Fault::check)'s business.
    pub fn with(mut self, parameter: &str, value: impl ToString) -> Self {
        let set = self.set(parameter, &value.to_string());
        match set {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Sets a parameter to what a text says.
    pub(super) fn set(&mut self, parameter: &str, text: &str) -> Result<(), BadFault> {
        let all = self.kind.parameters;
        let Some(index) = all.iter().position(|known| known.name == parameter) else {
            return Err(BadFault::UnknownParameter {
                kind: self.kind,
                given: parameter.to_owned(),
                nearest: None,
            });
        };
        self.values[index] = Some(all[index].read(text)?);
        if let Presence::OneOf(_) = all[index].presence {
            for (parameter, value) in all.iter().zip(&mut self.values) {
                *value = value.take().or_else(|| parameter.left_out());
            }
        }
        Ok(())
    }

    fn value(&self, parameter: &str) -> Option<&Value> {
        let names = self.kind.parameters.iter().map(|known| known.name);
        let found = names.zip(&self.values).find(|(name, _)| *name == parameter);
        match found {
            Some((_, value)) => value.as_ref(),
            None => self.is_no("parameter", parameter),
        }
    }

    /// A number that may be left out.
    ///
    /// # Panics
    /// If the fault has no such parameter; here and below that is a mistake in its descriptor.
    pub fn optional(&self, parameter: &str) -> Option<f64> {
        match self.value(parameter)? {
            Value::Number(value) => Some(*value),
            _ => self.is_no("number", parameter),
        }
    }

    /// A number.
    ///
    /// # Panics
    /// If there is none. A fault that has passed [`Fault::check`](super::Fault::check) has all that it
    /// needs.
    pub fn number(&self, parameter: &str) -> f64 {
        match self.optional(parameter) {
            Some(value) => value,
            None => self.is_no("number", parameter),
        }
    }

    /// A whole number.
    ///
    /// # Panics
    /// If there is none, likewise.
    pub fn whole(&self, parameter: &str) -> u32 {
        match self.value(parameter) {
            Some(Value::Whole(value)) => (*value).try_into().unwrap_or(u32::MAX),
            _ => self.is_no("whole number", parameter),
        }
    }

    /// Yes or no.
    ///
    /// # Panics
    /// If there is none, likewise.
    pub fn truth(&self, parameter: &str) -> bool {
        match self.value(parameter) {
            Some(Value::Truth(value)) => *value,
            _ => self.is_no("truth", parameter),
        }
    }

    /// The file that it names, if it names one.
    pub fn file(&self) -> Option<&str> {
        let all = self.kind.parameters.iter().zip(&self.values);
        all.into_iter().find_map(|given| match given {
            (
                Parameter {
                    sort: Sort::File, ..
                },
                Some(Value::Text(path)),
            ) => Some(path.as_str()),
            _ => None,
        })
    }

    /// The same, half as far from what changes nothing; `None` where that is no other value.
    pub(crate) fn weaker(&self, parameter: &Parameter) -> Option<Self> {
        self.with_another(parameter, |value| match value {
            Value::Number(value) => {
                let halved = parameter.harmless + (value - parameter.harmless) / 2.0;
                Some(Value::Number(short(halved)))
            }
            Value::Whole(value) => Some(Value::Whole(value / 2)),
            Value::Truth(_) | Value::Text(_) => None,
        })
    }

    /// The same, said in few digits; `None` where it is already.
    pub(crate) fn rounder(&self, parameter: &Parameter) -> Option<Self> {
        self.with_another(parameter, |value| match value {
            Value::Number(value) => Some(Value::Number(short(*value))),
            Value::Whole(_) | Value::Truth(_) | Value::Text(_) => None,
        })
    }

    fn with_another(
        &self,
        parameter: &Parameter,
        change: impl FnOnce(&Value) -> Option<Value>,
    ) -> Option<Self> {
        let changed = change(self.value(parameter.name)?)?;
        let mut other = self.clone();
        let names = self.kind.parameters.iter().map(|known| known.name);
        let (_, value) = names
            .zip(&mut other.values)
            .find(|(name, _)| *name == parameter.name)?;
        *value = Some(changed);
        (other != *self).then_some(other)
    }

    fn is_no(&self, sort: &str, parameter: &str) -> ! {
        panic!("{} has no {sort} called {parameter}", self.kind.name)
    }

    /// Refuses a fault without what it needs.
    pub(super) fn check_given(&self) -> Result<(), BadFault> {
        let missing = |parameter| BadFault::Missing {
            kind: self.kind,
            parameter,
        };
        let open = |wanted: fn(Presence) -> bool| {
            let all = self.kind.parameters.iter().zip(&self.values);
            all.filter(move |(parameter, value)| wanted(parameter.presence) && value.is_none())
                .map(|(parameter, _)| parameter.name)
        };
        if let Some(name) = open(|presence| presence == Presence::Needed).next() {
            return Err(missing(name.to_owned()));
        }
        let either: Vec<&str> = open(|presence| matches!(presence, Presence::OneOf(_))).collect();
        match either.is_empty() {
            true => Ok(()),
            false => Err(missing(either.join(" or "))),
        }
    }

    /// Refuses numbers that are not allowed.
    pub(super) fn check_ranges(&self) -> Result<(), BadFault> {
        for (parameter, value) in self.kind.parameters.iter().zip(&self.values) {
            if let (Sort::Number(range), Some(Value::Number(value))) = (parameter.sort, value) {
                range.check(parameter.name, *value)?;
            }
        }
        Ok(())
    }

    /// All that has to be written down.
    pub(super) fn written(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let all = self.kind.parameters.iter().zip(&self.values);
        all.filter_map(|(parameter, value)| {
            let implied = matches!(parameter.presence, Presence::Default(_));
            match implied && *value == parameter.left_out() {
                true => None,
                false => Some((parameter.name, value.clone()?)),
            }
        })
    }
}
