//! Faults written back as the texts and tables that [`text`](super::text) reads.

use super::{Fault, Kind, Who};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// A parameter's value, in the type that a file gives it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged, expecting = "expected a number, a text, true or false")]
pub(super) enum Value {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(value) => value.fmt(f),
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f), // the shortest text that reads as the same number
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Kind {
    /// The name that people write.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Join => "join",
            Self::Blackout => "blackout",
            Self::Stuck { .. } => "stuck",
            Self::Gain { .. } => "gain",
            Self::Bias { .. } => "bias",
            Self::Invert => "invert",
            Self::ActuatorNoise { .. } => "actuator-noise",
            Self::Noise { .. } => "noise",
            Self::SensorBias { .. } => "sensor-bias",
            Self::Dropout { .. } => "dropout",
            Self::Freeze => "freeze",
            Self::Loss { .. } => "loss",
            Self::Delay { .. } => "delay",
            Self::Duplicate { .. } => "duplicate",
            Self::Reorder { .. } => "reorder",
            Self::Corrupt { .. } => "corrupt",
            Self::Clock { .. } => "clock",
            Self::Board(fault) => fault.name(),
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Value)> {
        let number = |name, value: f64| (name, Value::Number(value));
        let drifting = |first, drift| match drift {
            true => vec![first, ("drift", Value::Truth(true))],
            false => vec![first],
        };
        match *self {
            Self::Crash
            | Self::Join
            | Self::Blackout
            | Self::Invert
            | Self::Freeze
            | Self::Board(_) => Vec::new(),
            Self::Stuck { value, speed } => {
                let value = value.map(|value| number("value", value));
                let speed = speed.map(|speed| number("speed", speed));
                value.into_iter().chain(speed).collect()
            }
            Self::SensorBias { value } => vec![number("value", value)],
            Self::Gain { factor, drift } => drifting(number("factor", factor), drift),
            Self::Bias { value, drift } => drifting(number("value", value), drift),
            Self::Noise { std } | Self::ActuatorNoise { std } => vec![number("std", std)],
            Self::Dropout { p }
            | Self::Loss { p }
            | Self::Duplicate { p }
            | Self::Reorder { p }
            | Self::Corrupt { p } => vec![number("p", p)],
            Self::Delay { steps, jitter } => {
                let steps = ("steps", Value::Whole(steps.into()));
                match jitter {
                    0 => vec![steps],
                    _ => vec![steps, ("jitter", Value::Whole(jitter.into()))],
                }
            }
            Self::Clock { rate, phase } => vec![number("rate", rate), number("phase", phase)],
        }
    }
}

impl Fault {
    /// All that has to be written down, in the order in which it is.
    pub(super) fn parameters(&self) -> Vec<(&'static str, Value)> {
        let mut all = self.kind.parameters();
        match &self.who {
            Who::All => {}
            Who::Fraction(share) => all.push(("fraction", Value::Number(*share))),
            Who::Cluster(share) => all.push(("cluster", Value::Number(*share))),
            Who::Ids(ids) => all.push(("ids", Value::Text(ids.to_string()))),
            Who::Region(region) => all.push(("region", Value::Text(region.to_string()))),
            Who::Boards { link, count } => {
                all.extend(link.map(|link| ("link", Value::Text(link.to_string()))));
                let whole = |count: usize| Value::Whole(i64::try_from(count).unwrap_or(i64::MAX));
                all.extend(count.map(|count| ("count", whole(count))));
            }
        }
        if self.at != 0.0 {
            all.push(("at", Value::Number(self.at)));
        }
        if let Some(until) = self.until {
            all.push(("until", Value::Number(until)));
        }
        all
    }
}

/// The text that reads as this fault.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (name, value) in self.parameters() {
            write!(f, ",{name}={value}")?;
        }
        Ok(())
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parameters = self.parameters();
        let mut map = serializer.serialize_map(Some(parameters.len() + 1))?;
        map.serialize_entry("kind", self.kind.name())?;
        for (name, value) in &parameters {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        let share = || 0.0..=1.0;
        let number = || -1e9..1e9;
        prop_oneof![
            Just(Kind::Crash),
            Just(Kind::Invert),
            Just(Kind::Freeze),
            (
                proptest::option::of(number()),
                proptest::option::of(0.0..1e9)
            )
                .prop_map(|(value, speed)| Kind::Stuck { value, speed }),
            (0.0..1e9).prop_map(|std| Kind::ActuatorNoise { std }),
            (number(), any::<bool>()).prop_map(|(factor, drift)| Kind::Gain { factor, drift }),
            (number(), any::<bool>()).prop_map(|(value, drift)| Kind::Bias { value, drift }),
            (0.0..1e9).prop_map(|std| Kind::Noise { std }),
            number().prop_map(|value| Kind::SensorBias { value }),
            share().prop_map(|p| Kind::Dropout { p }),
            share().prop_map(|p| Kind::Loss { p }),
            (any::<u32>(), any::<u32>()).prop_map(|(steps, jitter)| Kind::Delay { steps, jitter }),
            share().prop_map(|p| Kind::Duplicate { p }),
            share().prop_map(|p| Kind::Reorder { p }),
            share().prop_map(|p| Kind::Corrupt { p }),
        ]
    }

    fn whom() -> impl Strategy<Value = Who> {
        let side = || (-1e3..0.0, 0.0..1e3).prop_map(|(low, high)| format!("{low}..{high}"));
        prop_oneof![
            Just(Who::All),
            (0.0..=1.0).prop_map(Who::Fraction),
            (0.0..=1.0).prop_map(Who::Cluster),
            proptest::collection::vec((0usize..99, 0usize..99), 1..4).prop_map(|pairs| {
                let range = |(a, more): &(usize, usize)| format!("{a}..{}", a + more);
                let text: Vec<String> = pairs.iter().map(range).collect();
                Who::Ids(text.join("+").parse().unwrap())
            }),
            side().prop_map(|x| Who::Region(x.parse().unwrap())),
            (side(), side()).prop_map(|(x, y)| Who::Region(format!("{x}x{y}").parse().unwrap())),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same_fault(
            kind in kinds(),
            who in whom(),
            at in 0.0..0.5,
            until in proptest::option::of(0.5..=1.0),
        ) {
            let fault = Fault { kind, who, at, until };
            let text = fault.to_string();
            let read: Fault = text.parse().unwrap();
            prop_assert_eq!(&read, &fault, "{}", text);
            let table = toml::to_string(&fault).unwrap();
            let read: Fault = toml::from_str(&table).unwrap();
            prop_assert_eq!(&read, &fault, "{}", table);
        }
    }
}
