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
//! | fault | what it takes | what it does |
//! | --- | --- | --- |
//! | `crash` | `restart` (same as `until`) | silence; after `until` a fresh agent |
//! | `join` | | not there before `at` |
//! | `blackout` | `region` | no observations, no commands |
//! | `stuck` | `value`, `speed` | the actuator keeps its last command, or this force, or moves on this fast |
//! | `gain` | `factor`, `drift` | forces times a factor |
//! | `bias` | `value`, `drift` | forces plus an offset |
//! | `invert` | | force and velocity change sign |
//! | `actuator-noise` | `std` | Gaussian noise on every force |
//! | `noise` | `std` | Gaussian noise on every cell |
//! | `sensor-bias` | `value` | an offset on every cell |
//! | `dropout` | `p` | cells read NaN |
//! | `freeze` | | the patch of `at` for ever |
//! | `loss` | `p` | observations do not arrive |
//! | `delay` | `steps`, `jitter` | observations arrive late |
//! | `duplicate` | `p` | observations arrive twice |
//! | `reorder` | `p` | observations arrive after the next one |
//! | `corrupt` | `p` | one to three bytes of a frame change |
//! | `clock` | `rate`, `phase` | clocks run apart |
//! | `kill`, `hang`, `restart`, `cut`, `flood`, `brownout` | `link`, `count` | what happens to [boards](BoardFault) |
//!
//! All but `clock` take `at` and `until`, shares of the run, which is meant as a whole without them.
//! One of `fraction=0.3`, `cluster=0.3`, `ids=0+3+10..20` and `region=0.2..0.6x0.1..0.4` says who is
//! meant, instead of all agents.

use super::written::Value;
use super::{BadFault, BoardFault, Fault, Kind, Who};
use crate::rig::LinkKind;
use serde::de::{self, Deserialize, Deserializer, MapAccess};
use std::fmt;
use std::str::FromStr;

/// The faults, each with a text that shows how to write it.
const EXAMPLES: [(&str, &str); 24] = [
    ("crash", "crash,fraction=0.3,at=0.5"),
    ("join", "join,fraction=0.5,at=0.5"),
    ("blackout", "blackout,region=0.2..0.6,at=0.3,until=0.6"),
    ("stuck", "stuck,value=5"),
    ("gain", "gain,factor=0.5"),
    ("bias", "bias,value=5"),
    ("invert", "invert,ids=0"),
    ("actuator-noise", "actuator-noise,std=0.1"),
    ("noise", "noise,std=0.1"),
    ("sensor-bias", "sensor-bias,value=0.1"),
    ("dropout", "dropout,p=0.1"),
    ("freeze", "freeze,at=0.5"),
    ("loss", "loss,p=0.1"),
    ("delay", "delay,steps=2,jitter=1"),
    ("duplicate", "duplicate,p=0.1"),
    ("reorder", "reorder,p=0.1"),
    ("corrupt", "corrupt,p=0.1"),
    ("clock", "clock,rate=0.02,phase=1"),
    ("kill", "kill,link=qemu,count=2,at=0.3"),
    ("hang", "hang,count=1,at=0.3,until=0.6"),
    ("restart", "restart,count=1,at=0.5"),
    ("cut", "cut,count=1,at=0.3,until=0.6"),
    ("flood", "flood,at=0.3,until=0.6"),
    ("brownout", "brownout,count=1,at=0.5"),
];

/// Names of all faults.
pub fn names() -> Vec<&'static str> {
    EXAMPLES.iter().map(|(name, _)| *name).collect()
}

/// How to write the fault of that name.
pub(super) fn example(kind: &str) -> &'static str {
    let found = EXAMPLES.iter().find(|(name, _)| *name == kind);
    found.map_or("", |(_, example)| *example)
}

/// The parameters of the fault of that name.
pub fn takes(kind: &str) -> Vec<&'static str> {
    let own: &[&str] = match kind {
        "crash" => &["restart"],
        "stuck" => &["value", "speed"],
        "sensor-bias" => &["value"],
        "gain" => &["factor", "drift"],
        "bias" => &["value", "drift"],
        "noise" | "actuator-noise" => &["std"],
        "dropout" | "loss" | "duplicate" | "reorder" | "corrupt" => &["p"],
        "delay" => &["steps", "jitter"],
        "clock" => &["rate", "phase"],
        _ => &[],
    };
    let on_board = BoardFault::by_name(kind);
    let whom: &[&str] = match kind {
        _ if on_board.is_some() => &["link", "count", "ids"],
        "blackout" => &["region"],
        // An agent has one clock for the whole run, wherever it goes.
        "clock" => &["fraction", "cluster", "ids"],
        _ => &["fraction", "cluster", "ids", "region"],
    };
    let when: &[&str] = match kind {
        "clock" => &[],
        "join" => &["at"],
        _ if matches!(on_board, Some(BoardFault::Kill | BoardFault::Brownout)) => &["at"],
        _ => &["at", "until"],
    };
    [own, whom, when].concat()
}

/// The one of `known` that `given` is most likely meant to be.
fn nearest(given: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |name: &&'static str| strsim::damerau_levenshtein(given, name);
    let best = known.iter().min_by_key(|name| distance(name))?;
    // More than a third of the letters wrong is another word.
    (3 * distance(best) <= best.len().max(3)).then_some(best)
}

/// Parameters by name, as text, until they are taken for a fault of this kind.
struct Given {
    kind: &'static str,
    values: Vec<(&'static str, String)>,
}

impl Given {
    fn new(
        kind: &str,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, BadFault> {
        let names = names();
        let Some(kind) = names.iter().copied().find(|name| *name == kind) else {
            return Err(BadFault::UnknownKind {
                given: kind.to_owned(),
                nearest: nearest(kind, &names),
            });
        };
        let known = takes(kind);
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

    fn needed(&self, parameter: &'static str) -> Result<f64, BadFault> {
        self.number(parameter)?.ok_or(self.missing(parameter))
    }

    fn missing(&self, parameter: &'static str) -> BadFault {
        BadFault::Missing {
            kind: self.kind,
            parameter,
        }
    }

    /// At most one of two parameters.
    fn apart(&self, first: &'static str, second: &'static str) -> Result<(), BadFault> {
        match (self.text(first), self.text(second)) {
            (Some(_), Some(_)) => Err(BadFault::Together { first, second }),
            _ => Ok(()),
        }
    }

    fn drift(&self) -> Result<bool, BadFault> {
        let drift = self.optional("drift", "true or false")?;
        Ok(drift.unwrap_or(false))
    }

    fn kind(&self) -> Result<Kind, BadFault> {
        Ok(match self.kind {
            "crash" => Kind::Crash,
            "join" => Kind::Join,
            "blackout" => Kind::Blackout,
            "stuck" => Kind::Stuck {
                value: self.number("value")?,
                speed: self.number("speed")?,
            },
            "gain" => Kind::Gain {
                factor: self.needed("factor")?,
                drift: self.drift()?,
            },
            "bias" => Kind::Bias {
                value: self.needed("value")?,
                drift: self.drift()?,
            },
            "invert" => Kind::Invert,
            "actuator-noise" => Kind::ActuatorNoise {
                std: self.needed("std")?,
            },
            "noise" => Kind::Noise {
                std: self.needed("std")?,
            },
            "sensor-bias" => Kind::SensorBias {
                value: self.needed("value")?,
            },
            "freeze" => Kind::Freeze,
            "delay" => {
                let whole = "a whole number, 0 or more";
                Kind::Delay {
                    steps: (self.optional("steps", whole)?).ok_or(self.missing("steps"))?,
                    jitter: self.optional("jitter", whole)?.unwrap_or(0),
                }
            }
            "clock" => {
                let (rate, phase) = (self.number("rate")?, self.number("phase")?);
                if rate.or(phase).is_none() {
                    return Err(self.missing("rate or phase"));
                }
                Kind::Clock {
                    rate: rate.unwrap_or(0.0),
                    phase: phase.unwrap_or(0.0),
                }
            }
            name if let Some(fault) = BoardFault::by_name(name) => Kind::Board(fault),
            chance => {
                let p = self.needed("p")?;
                match chance {
                    "dropout" => Kind::Dropout { p },
                    "loss" => Kind::Loss { p },
                    "duplicate" => Kind::Duplicate { p },
                    "reorder" => Kind::Reorder { p },
                    _ => Kind::Corrupt { p },
                }
            }
        })
    }

    fn who(&self) -> Result<Who, BadFault> {
        if BoardFault::by_name(self.kind).is_some() && self.text("ids").is_none() {
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
            kind: self.kind()?,
            who: self.who()?,
            at: self.number("at")?.unwrap_or(0.0),
            until: self.until()?,
        };
        fault.check_values()?;
        Ok(fault)
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let mut parts = text.split(',').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameters = parts.map(|part| match part.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(BadFault::NotAParameter {
                part: part.to_owned(),
            }),
        });
        Given::new(kind, parameters.collect::<Result<Vec<_>, _>>()?)?.fault()
    }
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
        Given::new(&kind, parameters)
            .and_then(Given::fault)
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        text.parse::<Fault>().unwrap_err().to_string()
    }

    #[test]
    fn every_fault_reads_from_its_example() {
        for (name, example) in EXAMPLES {
            let fault: Fault = example.parse().unwrap();
            assert_eq!(fault.kind.name(), name);
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
                ..Fault::new(Kind::Delay {
                    steps: 2,
                    jitter: 1
                })
            }
        );
        let crash: Fault = "crash, ids=0+3+10..20, restart=0.75".parse().unwrap();
        assert_eq!(crash.to_string(), "crash,ids=0+3+10..20,until=0.75");
        let for_good: Fault = "crash,restart=never".parse().unwrap();
        assert_eq!(for_good, Fault::new(Kind::Crash));
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
