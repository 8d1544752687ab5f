//! Requirements as people write them: `error,below=0.01,when=at the end`, or a table in a file.

use super::{ALL, BadRequirement, Bound, Quantity, Require, Requirement, When};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The name of what is expected of any swarm.
const BUILT_IN: &str = "built-in";

/// A requirement as it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    above: Option<f64>,
    /// "start": the bound is a share of what the quantity was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
}

fn unreadable(text: String) -> BadRequirement {
    BadRequirement::Unreadable(text)
}

fn by_name(name: &str) -> Result<&'static Quantity, BadRequirement> {
    ALL.iter()
        .copied()
        .find(|known| known.name == name)
        .ok_or_else(|| {
            let near = |known: &&&Quantity| strsim::damerau_levenshtein(known.name, name);
            let nearest = ALL.iter().min_by_key(near).filter(|known| near(known) <= 3);
            BadRequirement::NoQuantity {
                given: name.to_owned(),
                nearest: nearest.map(|known| known.name.to_owned()),
            }
        })
}

impl FromStr for When {
    type Err = BadRequirement;

    fn from_str(text: &str) -> Result<Self, BadRequirement> {
        let after = || {
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["within", steps, "steps", "of", "a", "fault"] => steps.parse().ok(),
                _ => None,
            }
        };
        match text {
            "always" => Ok(Self::Always),
            "eventually" => Ok(Self::Eventually),
            "at the end" => Ok(Self::AtTheEnd),
            _ => after().map(Self::AfterFaults).ok_or_else(|| {
                unreadable(format!(
                    "'{text}' is no time; write always, eventually, at the end, or within 50 steps of a fault"
                ))
            }),
        }
    }
}

impl TryFrom<Written> for Require {
    type Error = BadRequirement;

    fn try_from(written: Written) -> Result<Self, BadRequirement> {
        if written.what == BUILT_IN {
            let rest = Written {
                what: String::new(),
                ..written
            };
            return match rest.is_blank() {
                true => Ok(Self::BuiltIn),
                false => Err(unreadable(format!("{BUILT_IN} takes nothing else"))),
            };
        }
        let quantity = by_name(&written.what)?;
        let bound = match (written.below, written.above) {
            (Some(below), None) => Bound::Below(below),
            (None, Some(above)) => Bound::Above(above),
            _ => {
                return Err(unreadable(format!(
                    "{} needs a bound: either below=… or above=…",
                    written.what
                )));
            }
        };
        let of_start = match written.of.as_deref() {
            None => false,
            Some("start") => true,
            Some(other) => {
                return Err(unreadable(format!(
                    "of={other} is nothing that a bound can be a share of; write of=start"
                )));
            }
        };
        let requirement = Requirement {
            of_start,
            when: written.when.map_or(Ok(When::Always), |when| when.parse())?,
            from: written.from.unwrap_or(0.0),
            until: written.until.unwrap_or(1.0),
            region: written.region.map(|text| text.parse()).transpose()?,
            ids: written.ids.map(|text| text.parse()).transpose()?,
            level: written.level,
            ..Requirement::new(quantity, bound)
        };
        requirement.check_values()?;
        Ok(Self::This(requirement))
    }
}

impl Written {
    fn is_blank(&self) -> bool {
        let Self {
            what,
            below,
            above,
            of,
            when,
            from,
            until,
            region,
            ids,
            level,
        } = self;
        let numbers = [below, above, from, until, level];
        what.is_empty()
            && numbers.iter().all(|number| number.is_none())
            && [of, when, region, ids].iter().all(|text| text.is_none())
    }

    /// Sets what a text calls by a name.
    fn set(&mut self, name: &str, value: &str) -> Result<(), BadRequirement> {
        let number = || {
            let number: Result<f64, _> = value.parse();
            number.map_err(|_| unreadable(format!("{name}={value} is no number")))
        };
        let text = || value.to_owned();
        match name {
            "below" => self.below = Some(number()?),
            "above" => self.above = Some(number()?),
            "of" => self.of = Some(text()),
            "when" => self.when = Some(text()),
            "from" => self.from = Some(number()?),
            "until" => self.until = Some(number()?),
            "region" => self.region = Some(text()),
            "ids" => self.ids = Some(text()),
            "level" => self.level = Some(number()?),
            _ => {
                return Err(unreadable(format!(
                    "there is no '{name}' in a requirement; it has below or above, of, when, from, until, \
                     region, ids and level"
                )));
            }
        }
        Ok(())
    }
}

impl From<&Require> for Written {
    fn from(require: &Require) -> Self {
        let Require::This(this) = require else {
            return Self {
                what: BUILT_IN.to_owned(),
                ..Self::default()
            };
        };
        let (below, above) = match this.bound {
            Bound::Below(value) => (Some(value), None),
            Bound::Above(value) => (None, Some(value)),
        };
        Self {
            what: this.quantity.name.to_owned(),
            below,
            above,
            of: this.of_start.then(|| "start".to_owned()),
            when: (this.when != When::Always).then(|| this.when.to_string()),
            from: (this.from != 0.0).then_some(this.from),
            until: (this.until != 1.0).then_some(this.until),
            region: this.region.map(|region| region.to_string()),
            ids: this.ids.as_ref().map(|ids| ids.to_string()),
            level: this.level,
        }
    }
}

/// As on the command line.
impl FromStr for Require {
    type Err = BadRequirement;

    fn from_str(text: &str) -> Result<Self, BadRequirement> {
        let mut parts = text.split(',');
        let mut written = Written {
            what: parts.next().unwrap_or_default().trim().to_owned(),
            ..Written::default()
        };
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                unreadable(format!(
                    "'{part}' in '{text}' sets nothing; write name=value"
                ))
            })?;
            written.set(name.trim(), value.trim())?;
        }
        written.try_into()
    }
}

impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = Written::from(self);
        f.write_str(&written.what)?;
        let number = |value: Option<f64>| value.map(|value| value.to_string());
        for (name, value) in [
            ("below", number(written.below)),
            ("above", number(written.above)),
            ("of", written.of),
            ("level", number(written.level)),
            ("region", written.region),
            ("ids", written.ids),
            ("when", written.when),
            ("from", number(written.from)),
            ("until", number(written.until)),
        ] {
            if let Some(value) = value {
                write!(f, ",{name}={value}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Require::This(self.clone()).fmt(f)
    }
}

impl Serialize for Require {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Require {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        written.try_into().map_err(de::Error::custom)
    }
}
