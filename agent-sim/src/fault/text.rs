//! Faults as people write them: `crash,fraction=0.3,at=0.5` on a command line, or the same
//! parameters as a table in a file.
//!
//! ```toml
//! [[fault]]
//! kind = "crash"
//! fraction = 0.3
//! at = 0.5
//! ```
//!
//! A fault takes the parameters that its [`Descriptor`] names, and those that say who is meant and
//! when: one of `fraction=0.3`, `cluster=0.3`, `ids=0+3+10..20` and `region=0.2..0.6x0.1..0.4` instead
//! of all agents, `at` and `until` as shares of the run, which is meant as a whole without them, and
//! `announced=10`, so many steps after its beginning, if others are told.
//! [`listing`](super::listing) has all faults.

use super::written::Value;
use super::{ALL, BadFault, Descriptor, Fault, What, Who, Whom};
use crate::rig::LinkKind;
use serde::de::{self, Deserialize, Deserializer, MapAccess};
use std::fmt;
use std::str::FromStr;

/// The one of `known` that `given` is most likely meant to be.
fn nearest(given: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |name: &&'static str| strsim::damerau_levenshtein(given, name);
    let best = known.iter().min_by_key(|name| distance(name))?;
    // More than a third of the letters wrong is another word.
    (3 * distance(best) <= best.len().max(3)).then_some(best)
}

/// Parameters by name, as text, until they are taken for a fault of this kind.
struct Given {
    kind: &'static Descriptor,
    values: Vec<(&'static str, String)>,
}

impl Given {
    fn new(
        kind: &str,
        given: impl IntoIterator<Item = (String, String)>,
        among: &[&'static Descriptor],
    ) -> Result<Self, BadFault> {
        let Some(kind) = among.iter().find(|known| known.name == kind) else {
            let known: Vec<_> = among.iter().map(|known| known.name).collect();
            return Err(BadFault::UnknownKind {
                given: kind.to_owned(),
                nearest: nearest(kind, &known),
                known,
            });
        };
        let known = kind.takes();
        let mut values: Vec<(&'static str, String)> = Vec::new();
        for (name, text) in given {
            let Some(parameter) = known.iter().copied().find(|known| *known == name) else {
                return Err(BadFault::UnknownParameter {
                    kind,
                    nearest: nearest(&name, &known),
                    given: name,
                });
            };
            if values.iter().any(|(other, _)| *other == parameter) {
                return Err(BadFault::Repeated { parameter });
            }
            values.push((parameter, text));
        }
        Ok(Self { kind, values })
    }

    fn text(&self, parameter: &'static str) -> Option<&str> {
        let found = self.values.iter().find(|(name, _)| *name == parameter);
        found.map(|(_, text)| text.as_str())
    }

    /// The value of a parameter that may be left out.
    fn optional<T: FromStr>(
        &self,
        parameter: &'static str,
        wanted: &'static str,
    ) -> Result<Option<T>, BadFault> {
        let read = |text: &str| {
            text.parse().map_err(|_| BadFault::Unreadable {
                parameter,
                text: text.to_owned(),
                wanted,
            })
        };
        self.text(parameter).map(read).transpose()
    }

    fn number(&self, parameter: &'static str) -> Result<Option<f64>, BadFault> {
        self.optional(parameter, "a number")
    }

    /// At most one of two parameters.
    fn apart(&self, first: &'static str, second: &'static str) -> Result<(), BadFault> {
        match (self.text(first), self.text(second)) {
            (Some(_), Some(_)) => Err(BadFault::Together { first, second }),
            _ => Ok(()),
        }
    }

    fn what(&self) -> Result<What, BadFault> {
        let mut what = What::from(self.kind);
        for parameter in self.kind.parameters {
            if let Some(text) = self.text(parameter.name) {
                what.set(parameter.name, text)?;
            }
        }
        what.check_given()?;
        Ok(what)
    }

    fn who(&self) -> Result<Who, BadFault> {
        if self.kind.whom == Whom::Boards && self.text("ids").is_none() {
            return Ok(Who::Boards {
                link: self.optional("link", LinkKind::NAMES)?,
                count: self.optional("count", "a whole number, 0 or more")?,
            });
        }
        self.apart("ids", "link")?;
        self.apart("ids", "count")?;
        let ways = ["fraction", "cluster", "ids", "region"];
        for (k, first) in ways.into_iter().enumerate() {
            for second in ways.into_iter().skip(k + 1) {
                self.apart(first, second)?;
            }
        }
        if let Some(share) = self.number("cluster")? {
            return Ok(Who::Cluster(share));
        }
        if let Some(share) = self.number("fraction")? {
            return Ok(Who::Fraction(share));
        }
        match (self.text("ids"), self.text("region")) {
            (Some(ids), _) => ids.parse().map(Who::Ids),
            (_, Some(region)) => region.parse().map(Who::Region),
            (None, None) => Ok(Who::All),
        }
    }

    fn until(&self) -> Result<Option<f64>, BadFault> {
        self.apart("restart", "until")?;
        match self.text("restart") {
            Some("never") => Ok(None),
            Some(_) => self.optional("restart", "never or a share of the run"),
            None => self.number("until"),
        }
    }

    fn fault(self) -> Result<Fault, BadFault> {
        let fault = Fault {
            what: self.what()?,
            who: self.who()?,
            at: self.number("at")?.unwrap_or(0.0),
            until: self.until()?,
            announced: self.optional("announced", "a whole number of steps")?,
        };
        fault.check_values()?;
        Ok(fault)
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        read(text, ALL)
    }
}

/// The fault that a text says, of those of a list.
pub fn read(text: &str, among: &[&'static Descriptor]) -> Result<Fault, BadFault> {
    let mut parts = text.split(',').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let parameters = parts.map(|part| match part.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(BadFault::NotAParameter {
            part: part.to_owned(),
        }),
    });
    Given::new(kind, parameters.collect::<Result<Vec<_>, _>>()?, among)?.fault()
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

/// Reads a table of parameters.
struct Table;

impl<'de> de::Visitor<'de> for Table {
    type Value = Fault;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the kind of a fault and its parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fault, A::Error> {
        let (mut kind, mut parameters) = (None, Vec::new());
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            match name.as_str() {
                "kind" => kind = Some(value.to_string()),
                _ => parameters.push((name, value.to_string())),
            }
        }
        let kind = kind.ok_or(BadFault::NoKind).map_err(de::Error::custom)?;
        Given::new(&kind, parameters, ALL)
            .and_then(Given::fault)
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{life::CRASH, line::DELAY};
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        text.parse::<Fault>().unwrap_err().to_string()
    }

    #[test]
    fn every_fault_reads_from_its_example() {
        for kind in ALL {
            let example = kind.example();
            let fault: Fault = example.parse().unwrap();
            assert_eq!(fault.what.kind.name, kind.name);
            assert_eq!(fault.to_string(), example);
        }
    }

    #[test]
    fn texts_read_as_written() {
        let delay: Fault = "delay,steps=2,jitter=1,at=0.25".parse().unwrap();
        assert_eq!(
            delay,
            Fault {
                at: 0.25,
                ..Fault::new(DELAY.with("steps", 2).with("jitter", 1))
            }
        );
        let crash: Fault = "crash, ids=0+3+10..20, restart=0.75".parse().unwrap();
        assert_eq!(crash.to_string(), "crash,ids=0+3+10..20,until=0.75");
        let told: Fault = "crash,at=0.5,announced=10".parse().unwrap();
        assert_eq!((told.announced, told.told(100)), (Some(10), Some(60)));
        assert_eq!((told.told(10), told.to_string().parse()), (None, Ok(told)));
        let for_good: Fault = "crash,restart=never".parse().unwrap();
        assert_eq!(for_good, Fault::new(&CRASH));
    }

    #[test]
    fn refusals_say_what_would_do() {
        for (text, said) in [
            ("crsh", &["'crsh'", "did you mean 'crash'?", "blackout"][..]),
            ("", &["''", "choose one of"]),
            ("earthquake", &["choose one of: crash, join"]),
            (
                "noise,sdt=1",
                &["noise has no parameter 'sdt'", "did you mean 'std'?"],
            ),
            ("crash,std=1", &["crash has no parameter 'std'", "fraction"]),
            ("clock,rate=0.1,region=0..1", &["clock", "'region'", "ids"]),
            ("crash,0.3", &["'0.3' is not NAME=VALUE"]),
            ("noise", &["noise needs std", "noise,std=0.1"]),
            ("clock", &["clock needs rate or phase"]),
            ("blackout", &["blackout needs region"]),
            ("crash,at=0.1,at=0.2", &["at is given twice"]),
            ("crash,fraction=0.1,ids=0", &["fraction and ids", "one"]),
            ("crash,cluster=0.1,ids=0", &["cluster and ids", "one"]),
            ("crash,until=1,restart=1", &["restart and until"]),
            ("loss,p=often", &["p is 'often'", "a number"]),
            ("delay,steps=1.5", &["steps is '1.5'", "whole number"]),
            ("gain,factor=2,drift=1", &["drift is '1'", "true or false"]),
            ("crash,ids=1-3", &["ids is '1-3'", "0+3+10..20"]),
            ("crash,region=1", &["region is '1'", "0.2..0.6"]),
            ("loss,p=1.5", &["p is 1.5", "between 0 and 1"]),
            ("crash,at=0.6,until=0.5", &["at is 0.6", "0.5"]),
        ] {
            let message = refusal(text);
            assert!(
                said.iter().all(|part| message.contains(part)),
                "{text}: {message}"
            );
        }
    }

    #[derive(serde::Deserialize)]
    struct File {
        fault: Vec<Fault>,
    }

    #[test]
    fn a_table_and_a_text_are_the_same_fault() {
        let file: File = toml::from_str(
            r#"
            [[fault]]
            kind = "crash"
            fraction = 0.3
            at = 0.5

            [[fault]]
            kind = "gain"
            factor = 2
            drift = true
            region = "0.2..0.6x0.1..0.4"

            [[fault]]
            ids = "0+3+10..20"
            kind = "delay"
            steps = 2
            "#,
        )
        .unwrap();
        let texts = [
            "crash,fraction=0.3,at=0.5",
            "gain,factor=2,drift=true,region=0.2..0.6x0.1..0.4",
            "delay,steps=2,ids=0+3+10..20",
        ];
        let faults = texts.map(|text| text.parse::<Fault>().unwrap());
        assert_eq!(file.fault, faults);
    }

    #[test]
    fn a_bad_table_is_refused_in_the_same_words() {
        let refused = |text: &str| toml::from_str::<Fault>(text).unwrap_err().to_string();
        assert!(refused("kind = 'crash'\nstd = 1").contains("crash has no parameter 'std'"));
        assert!(refused("at = 0.5").contains("no kind"));
        assert!(refused("kind = 'loss'\np = nan").contains("p is NaN"));
        assert!(refused("kind = 'loss'\np = [1]").contains("a number, a text"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_fault_or_an_error(text in "[a-z,=.+x0-9 -]{0,40}") {
            let _ = text.parse::<Fault>();
        }
    }
}
