//! Faults written back as the texts and tables that [`text`](super::text) reads.

use super::{Fault, Who};
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

impl Fault {
    /// All that has to be written down, in the order in which it is.
    pub(super) fn written(&self) -> Vec<(&'static str, Value)> {
        let mut all: Vec<_> = self.what.written().collect();
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
        if let Some(steps) = self.announced {
            all.push(("announced", Value::Whole(steps.into())));
        }
        all
    }
}

/// The text that reads as this fault.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what.kind.name)?;
        for (name, value) in self.written() {
            write!(f, ",{name}={value}")?;
        }
        Ok(())
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parameters = self.written();
        let mut map = serializer.serialize_map(Some(parameters.len() + 1))?;
        map.serialize_entry("kind", self.what.kind.name)?;
        for (name, value) in &parameters {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Descriptor, Presence, Range, Sort, What, When, Whom};
    use crate::rig::LinkKind;
    use proptest::prelude::*;

    /// Texts that read as values of that sort.
    fn value(sort: Sort) -> BoxedStrategy<String> {
        match sort {
            Sort::Number(Range { allows, .. }) => prop_oneof![0.0..=1.0, -1e9..1e9]
                .prop_filter("in range", move |value: &f64| allows(*value))
                .prop_map(|value| value.to_string())
                .boxed(),
            Sort::Whole => any::<u32>().prop_map(|value| value.to_string()).boxed(),
            Sort::Truth => any::<bool>().prop_map(|value| value.to_string()).boxed(),
            Sort::File => "[a-z/.-]{1,20}".boxed(),
        }
    }

    fn what(kind: &'static Descriptor) -> impl Strategy<Value = What> {
        let values = kind.parameters.iter().map(|parameter| {
            let value = value(parameter.sort);
            match parameter.presence {
                Presence::Needed | Presence::OneOf(_) => value.prop_map(Some).boxed(),
                _ => proptest::option::of(value).boxed(),
            }
        });
        values.collect::<Vec<_>>().prop_map(move |values| {
            let given = kind.parameters.iter().zip(values);
            given.fold(What::from(kind), |what, (parameter, value)| match value {
                Some(value) => what.with(parameter.name, value),
                None => what,
            })
        })
    }

    fn whom(whom: Whom) -> BoxedStrategy<Who> {
        let side = || (-1e3..0.0, 0.0..1e3).prop_map(|(low, high)| format!("{low}..{high}"));
        let ids = proptest::collection::vec((0usize..99, 0usize..99), 1..4).prop_map(|pairs| {
            let range = |(a, more): &(usize, usize)| format!("{a}..{}", a + more);
            let text: Vec<String> = pairs.iter().map(range).collect();
            Who::Ids(text.join("+").parse().unwrap())
        });
        let region = prop_oneof![
            side().prop_map(|x| Who::Region(x.parse().unwrap())),
            (side(), side()).prop_map(|(x, y)| Who::Region(format!("{x}x{y}").parse().unwrap())),
        ];
        let agents = prop_oneof![
            Just(Who::All),
            (0.0..=1.0).prop_map(Who::Fraction),
            (0.0..=1.0).prop_map(Who::Cluster),
        ];
        let link = proptest::sample::select(LinkKind::ALL.to_vec());
        let boards = (proptest::option::of(link), proptest::option::of(0..99usize));
        let boards = boards.prop_map(|(link, count)| Who::Boards { link, count });
        match whom {
            Whom::Anyone => prop_oneof![agents, ids, region].boxed(),
            Whom::Agents | Whom::Standing => prop_oneof![agents, ids].boxed(),
            Whom::Region => region.boxed(),
            Whom::Boards => prop_oneof![boards, ids].boxed(),
        }
    }

    fn faults() -> impl Strategy<Value = Fault> {
        let kinds = proptest::sample::select(super::super::ALL);
        kinds.prop_flat_map(|kind| {
            let at = match kind.when {
                When::Always => Just(0.0).boxed(),
                _ => (0.0..0.5).boxed(),
            };
            let until = match kind.when {
                When::Always | When::From => Just(None).boxed(),
                When::Between | When::UntilRestart => proptest::option::of(0.5..=1.0).boxed(),
            };
            let announced = match kind.when {
                When::Always => Just(None).boxed(),
                _ => proptest::option::of(0u32..100).boxed(),
            };
            let parts = (what(kind), whom(kind.whom), at, until, announced);
            parts.prop_map(|(what, who, at, until, announced)| Fault {
                what,
                who,
                at,
                until,
                announced,
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn what_is_written_reads_as_the_same_fault(fault in faults()) {
            let text = fault.to_string();
            let read: Fault = text.parse().unwrap();
            prop_assert_eq!(&read, &fault, "{}", text);
            let table = toml::to_string(&fault).unwrap();
            let read: Fault = toml::from_str(&table).unwrap();
            prop_assert_eq!(&read, &fault, "{}", table);
        }
    }
}
