//! A space of scenarios, written down.
//!
//! In place of a value there can be
//!
//! | written | stands for |
//! | --- | --- |
//! | `{ from = 4, to = 32 }` | any whole number of these; with a decimal point, any number |
//! | `{ from = 1e-4, to = 1e-1, log = true }` | any number, as likely in each decade |
//! | `{ from = 0.0, to = 1.0, points = 11 }` | these for a grid |
//! | `{ any = ["crash", "blackout"] }` | one of these |
//! | `{ pick = 2 }`, `{ pick = { from = 1, to = 3 } }` | so many different agents, for `ids` |
//!
//! and a fault can say that it `lasts` for a share of the run, in place of until when, and whether it
//! is `present` at all.

use super::sample::Sampling;
use crate::fault::Fault;
use crate::requirement::Require;
use crate::scenario::{BadScenario, Scenario};
use problem::Problems;
use problem::limit::{self, TooMany};
use serde::Deserialize;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// How a space is searched.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Points that are tried; a grid has its own number.
    pub runs: usize,
    /// Which.
    pub sampling: Sampling,
    /// Decides what sampling leaves to chance.
    pub seed: u64,
    /// The share of the runs that may fail.
    pub tolerate: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runs: 1000,
            sampling: Sampling::Sobol,
            seed: 0,
            tolerate: 0.0,
        }
    }
}

/// Why a file is no space of scenarios.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadSpace {
    /// It is no TOML.
    #[error("{0}")]
    Toml(Box<toml::de::Error>),
    /// Something makes no sense.
    #[error("line {line}: {what}")]
    Senseless {
        /// Where.
        line: usize,
        /// What.
        what: String,
    },
    /// A scenario of it cannot be run.
    #[error("line {line}: with {point}: {source}")]
    Scenario {
        /// Where what was varied stands.
        line: usize,
        /// What was varied, and to what.
        point: String,
        /// What is wrong.
        source: Box<BadScenario>,
    },
    /// None of its scenarios can be run.
    #[error(transparent)]
    Base(Box<BadScenario>),
    /// There is more of something than programs take.
    #[error("{what}{source}")]
    TooMany {
        /// Where it comes from.
        what: String,
        /// How many, and how many could be.
        source: TooMany,
    },
}

impl From<BadScenario> for BadSpace {
    fn from(error: BadScenario) -> Self {
        Self::Base(Box::new(error))
    }
}

/// A value that is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied {
    /// Where it stands, e.g. `fault 1, at`.
    pub name: String,
    /// In which line.
    pub line: usize,
    kind: Kind,
    /// Its first coordinate.
    first: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Real {
        from: f64,
        to: f64,
        log: bool,
        points: Option<usize>,
    },
    Whole {
        from: i64,
        to: i64,
    },
    Any(Vec<Value>),
    Pick {
        least: usize,
        most: usize,
    },
}

impl Varied {
    fn coordinates(&self) -> usize {
        match self.kind {
            Kind::Pick { least, most } => most + usize::from(least < most),
            _ => 1,
        }
    }

    /// How many values it has; `None` if they cannot be counted.
    fn count(&self) -> Option<u64> {
        match &self.kind {
            Kind::Real { points, .. } => points.map(|n| n as u64),
            Kind::Whole { from, to } => Some(to.abs_diff(*from).saturating_add(1)),
            Kind::Any(values) => Some(values.len() as u64),
            Kind::Pick { .. } => None,
        }
    }

    /// The coordinate of its value of that number among [`count`](Self::count).
    fn coordinate(&self, index: u64) -> f64 {
        match (&self.kind, self.count()) {
            (Kind::Real { .. }, Some(1)) => 0.5,
            (Kind::Real { .. }, Some(count)) => index as f64 / (count - 1) as f64,
            (_, Some(count)) => (index as f64 + 0.5) / count as f64,
            (_, None) => 0.5,
        }
    }

    /// How far agents are apart along a coordinate that says which, of so many.
    pub(crate) fn neighbour(&self, agents: usize) -> Option<f64> {
        matches!(self.kind, Kind::Pick { .. }).then(|| 1.0 / agents.max(1) as f64)
    }

    /// The numbers of its coordinates.
    pub(crate) fn range(&self) -> Range<usize> {
        self.first..self.first + self.coordinates()
    }

    /// The smallest and the largest number it can be, and whether decades count; none if it is no number.
    pub fn span(&self) -> Option<([f64; 2], bool)> {
        match self.kind {
            Kind::Real { from, to, log, .. } => Some(([from, to], log)),
            Kind::Whole { from, to } => Some(([from as f64, to as f64], false)),
            Kind::Any(_) | Kind::Pick { .. } => None,
        }
    }

    /// What it is at a point, in a swarm of so many agents.
    fn value(&self, point: &[f64], agents: usize) -> Value {
        let own = &point[self.range()];
        let share = own[0].clamp(0.0, 1.0);
        match &self.kind {
            Kind::Real {
                from,
                to,
                log: true,
                ..
            } => Value::Float(
                libm::exp(libm::log(*from) + share * (libm::log(*to) - libm::log(*from)))
                    .clamp(*from, *to),
            ),
            Kind::Real { from, to, .. } => {
                Value::Float((from + share * (to - from)).clamp(*from, *to))
            }
            Kind::Whole { from, to } => {
                let count = to.abs_diff(*from) as f64 + 1.0;
                let steps = ((share * count) as u64).min(to.abs_diff(*from));
                Value::Integer(from.saturating_add_unsigned(steps))
            }
            Kind::Any(values) => {
                let index = (share * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Kind::Pick { least, most } => {
                let (count, which) = match least < most {
                    false => (*most, own),
                    true => {
                        let more = (share * (most - least + 1) as f64) as usize;
                        ((least + more).min(*most), &own[1..])
                    }
                };
                Value::String(picked(&which[..count], agents))
            }
        }
    }
}

/// Different agents for coordinates: where one is taken, the next that is not.
fn picked(which: &[f64], agents: usize) -> String {
    let mut ids: Vec<usize> = Vec::new();
    for share in which.iter().take(agents) {
        let first = ((share.clamp(0.0, 1.0) * agents as f64) as usize).min(agents - 1);
        let free = (0..agents).map(|k| (first + k) % agents);
        ids.extend(
            free.filter(|id| !ids.contains(id))
                .take(1)
                .collect::<Vec<_>>(),
        );
    }
    ids.sort_unstable();
    let texts: Vec<String> = ids.iter().map(usize::to_string).collect();
    texts.join("+")
}

/// A file's tree, with places for what is varied.
#[derive(Debug, Clone)]
enum Node {
    Value(Value),
    Varied(usize),
    Table(Vec<(String, Node)>),
    Array(Vec<Node>),
}

/// Scenarios that differ in some of their values.
#[derive(Debug, Clone)]
pub struct Space {
    template: Node,
    /// What is varied.
    pub varied: Vec<Varied>,
    /// How the space is searched.
    pub settings: Settings,
    /// Where each fault stands.
    fault_lines: Vec<usize>,
    /// Agents of a scenario that says nothing of them.
    agents: usize,
    /// Coordinates of a point.
    pub coordinates: usize,
    /// Whether runs are made one after the other: boards are there once, and clocks go their own way.
    pub alone: bool,
}

/// Reads a file's text.
struct Reading<'t> {
    text: &'t str,
    varied: Vec<Varied>,
}

impl Reading<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        1 + self.text[..span.start.min(self.text.len())]
            .matches('\n')
            .count()
    }

    fn senseless(&self, span: &Range<usize>, what: impl Into<String>) -> BadSpace {
        BadSpace::Senseless {
            line: self.line(span),
            what: what.into(),
        }
    }

    /// A value where `name` says; `of` is the same with its place in the text.
    fn node(
        &mut self,
        name: &str,
        value: &Value,
        of: &Spanned<DeValue<'_>>,
    ) -> Result<Node, BadSpace> {
        match (value, of.get_ref()) {
            (Value::Table(table), DeValue::Table(spans)) => match self.kind(table, &of.span())? {
                Some(kind) => {
                    let varied = Varied {
                        name: name.to_owned(),
                        line: self.line(&of.span()),
                        first: self.varied.iter().map(Varied::coordinates).sum(),
                        kind,
                    };
                    self.varied.push(varied);
                    Ok(Node::Varied(self.varied.len() - 1))
                }
                None => self.table(name, table, spans),
            },
            (Value::Array(values), DeValue::Array(spans)) => {
                let items = values.iter().zip(spans.iter()).enumerate();
                let nodes = items
                    .map(|(k, (value, of))| self.node(&format!("{name} {}", k + 1), value, of));
                Ok(Node::Array(nodes.collect::<Result<_, _>>()?))
            }
            _ => Ok(Node::Value(value.clone())),
        }
    }

    fn table(&mut self, name: &str, table: &Table, spans: &DeTable<'_>) -> Result<Node, BadSpace> {
        let mut nodes = Vec::new();
        // In the order of the file.
        let mut keys: Vec<_> = spans.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        for (key, of) in keys {
            let key = key.get_ref().as_ref();
            let Some(value) = table.get(key) else {
                continue;
            };
            let inner = match name {
                "" => key.to_owned(),
                _ => format!("{name}, {key}"),
            };
            nodes.push((key.to_owned(), self.node(&inner, value, of)?));
        }
        Ok(Node::Table(nodes))
    }

    /// What a table stands for, if it stands for a range of values.
    fn kind(&self, table: &Table, span: &Range<usize>) -> Result<Option<Kind>, BadSpace> {
        let bad = |what: String| Err(self.senseless(span, what));
        let only = |names: &[&str]| table.keys().all(|key| names.contains(&key.as_str()));
        let marks = ["from", "to", "any", "pick"];
        let known = ["from", "to", "log", "points", "any", "pick"];
        if !table.keys().any(|key| marks.contains(&key.as_str())) || !only(&known) {
            return Ok(None);
        }
        if let Some(any) = table.get("any") {
            return match any.as_array() {
                Some(values) if !values.is_empty() && only(&["any"]) => {
                    Ok(Some(Kind::Any(values.clone())))
                }
                _ => {
                    bad("any needs a list of at least one value, and nothing beside it".to_owned())
                }
            };
        }
        let whole = |value: &Value| value.as_integer().and_then(|n| usize::try_from(n).ok());
        if let Some(pick) = table.get("pick") {
            let range = pick
                .as_table()
                .and_then(|t| Some([whole(t.get("from")?)?, whole(t.get("to")?)?]));
            let picked = whole(pick).map(|count| [count; 2]).or(range);
            return match picked {
                Some([least, most]) if 1 <= least && least <= most && only(&["pick"]) => {
                    limit::VARIED
                        .check(most)
                        .map_err(|source| BadSpace::TooMany {
                            what: format!("line {}: ", self.line(span)),
                            source,
                        })?;
                    Ok(Some(Kind::Pick { least, most }))
                }
                _ => bad(
                    "pick needs a number of agents, 1 or more, or a range of such numbers"
                        .to_owned(),
                ),
            };
        }
        let (Some(from), Some(to)) = (table.get("from"), table.get("to")) else {
            return bad("a range needs both from and to".to_owned());
        };
        let points = match table.get("points") {
            None => None,
            Some(points) => match whole(points).filter(|count| *count > 0) {
                Some(count) => Some(count),
                None => {
                    return bad(format!(
                        "points = {points} is no number of points, 1 or more"
                    ));
                }
            },
        };
        let log = match table.get("log") {
            None => false,
            Some(Value::Boolean(log)) => *log,
            Some(other) => return bad(format!("log = {other} is neither true nor false")),
        };
        if let (Value::Integer(from), Value::Integer(to), None, false) = (from, to, points, log) {
            return match from <= to {
                true => Ok(Some(Kind::Whole {
                    from: *from,
                    to: *to,
                })),
                false => bad(format!("the range from {from} to {to} is empty")),
            };
        }
        let real = |value: &Value| match value {
            Value::Integer(n) => Some(*n as f64),
            Value::Float(x) => Some(*x).filter(|x| x.is_finite()),
            _ => None,
        };
        let (Some(from), Some(to)) = (real(from), real(to)) else {
            return bad("a range goes from a number to a number".to_owned());
        };
        if from > to {
            return bad(format!("the range from {from} to {to} is empty"));
        }
        if log && from <= 0.0 {
            return bad(format!(
                "decades begin above 0, not at {from}: leave log out"
            ));
        }
        Ok(Some(Kind::Real {
            from,
            to,
            log,
            points,
        }))
    }
}

impl Space {
    /// Reads a file, and makes sure that what it describes can be run: with everything in the middle of
    /// its range, and each value at its ends.
    pub fn read(text: &str, problems: &Problems) -> Result<Self, BadSpace> {
        let toml = |error: toml::de::Error| BadSpace::Toml(Box::new(error));
        let mut table: Table = toml::from_str(text).map_err(toml)?;
        let spans = DeTable::parse(text).map_err(toml)?;
        let mut reading = Reading {
            text,
            varied: Vec::new(),
        };
        let span_of = |name: &str| {
            let found = spans
                .get_ref()
                .iter()
                .find(|(key, _)| key.get_ref().as_ref() == name);
            found.map_or(0..0, |(key, _)| key.span())
        };
        let settings = match table.remove("campaign") {
            None => Settings::default(),
            Some(value) => value.try_into().map_err(|error: toml::de::Error| {
                reading.senseless(
                    &span_of("campaign"),
                    format!("campaign: {}", error.message()),
                )
            })?,
        };
        reading.check_requirements(&table, spans.get_ref())?;
        let template = reading.table("", &table, spans.get_ref())?;
        let varied = reading.varied.clone();
        let mut space = Self {
            fault_lines: reading.lines(spans.get_ref(), "fault"),
            coordinates: varied.iter().map(Varied::coordinates).sum(),
            alone: ["link", "plant_io", "realtime"]
                .iter()
                .any(|name| table.contains_key(*name)),
            template,
            varied,
            settings,
            agents: 1,
        };
        space.check_size().map_err(|(varied, source)| {
            let what = varied.map_or(String::new(), |varied| format!("line {}: ", varied.line));
            BadSpace::TooMany { what, source }
        })?;
        if !(0.0..1.0).contains(&space.settings.tolerate) {
            let what = format!(
                "tolerate = {} is no share of the runs that may fail: give 0 or more, and less than 1",
                space.settings.tolerate
            );
            return Err(reading.senseless(&span_of("campaign"), what));
        }
        if let (Sampling::Grid, Some(varied)) = (
            space.settings.sampling,
            space.varied.iter().find(|varied| varied.count().is_none()),
        ) {
            return Err(BadSpace::Senseless {
                line: varied.line,
                what: format!(
                    "a grid cannot go through all of '{}': give points, or take sobol or random sampling",
                    varied.name
                ),
            });
        }
        space.agents = space.solved_agents(problems)?;
        space.check_scenarios(problems)?;
        Ok(space)
    }

    fn check_size(&self) -> Result<(), (Option<&Varied>, TooMany)> {
        limit::VARIED
            .check(self.coordinates)
            .map_err(|error| (self.varied.last(), error))?;
        if self.settings.sampling == Sampling::Grid {
            let mut runs = 1usize;
            for varied in &self.varied {
                let count = usize::try_from(varied.count().unwrap_or(1)).unwrap_or(usize::MAX);
                limit::RUNS
                    .check_product([runs, count])
                    .map_err(|error| (Some(varied), error))?;
                runs *= count;
            }
        }
        limit::RUNS
            .check(self.settings.runs.max(1))
            .map_err(|error| (None, error))
    }

    fn solved_agents(&self, problems: &Problems) -> Result<usize, BadSpace> {
        Ok(self.scenario(&self.middle())?.solved(problems)?.agents)
    }

    /// The point in the middle of all ranges, where what may or may not be is.
    pub fn middle(&self) -> Vec<f64> {
        let mut point = vec![0.5; self.coordinates];
        for varied in &self.varied {
            if let Kind::Any(values) = &varied.kind
                && let Some(index) = values.iter().position(|v| *v == Value::Boolean(true))
            {
                point[varied.first] = varied.coordinate(index as u64);
            }
        }
        point
    }

    fn check_scenarios(&self, problems: &Problems) -> Result<(), BadSpace> {
        let team = self.scenario(&self.middle())?.team(problems)?;
        if team.requirements.is_empty() {
            return Err(BadSpace::Senseless {
                line: 1,
                what:
                    "nothing is required, so nothing can fail: add [[require]] tables (agent-sim \
                       requirements lists quantities), or what = \"built-in\""
                        .to_owned(),
            });
        }
        for varied in &self.varied {
            let ends: Vec<f64> = match &varied.kind {
                Kind::Any(values) => (0..values.len() as u64)
                    .map(|k| varied.coordinate(k))
                    .collect(),
                _ => vec![0.0, 1.0],
            };
            for end in ends {
                let mut point = self.middle();
                point[varied.first] = end;
                let checked = self
                    .scenario(&point)
                    .and_then(|scenario| Ok(scenario.team(problems)?));
                if let Err(error) = checked {
                    let agents = self.agents_at(&point);
                    return Err(match error {
                        BadSpace::Base(source) => BadSpace::Scenario {
                            line: varied.line,
                            point: format!("{} = {}", varied.name, varied.value(&point, agents)),
                            source,
                        },
                        other => other,
                    });
                }
            }
        }
        Ok(())
    }

    /// The same space, searched in another way.
    pub fn searched(&self, settings: Settings) -> Self {
        Self {
            settings,
            ..self.clone()
        }
    }

    /// How many points a campaign tries.
    pub fn runs(&self) -> usize {
        match self.settings.sampling {
            Sampling::Grid => {
                let counts = self
                    .varied
                    .iter()
                    .map(|varied| varied.count().unwrap_or(1) as usize);
                counts.product()
            }
            Sampling::Sobol | Sampling::Random => self.settings.runs,
        }
    }

    /// The point of a grid of that number.
    pub(super) fn grid_point(&self, run: usize) -> Vec<f64> {
        let mut rest = run as u64;
        let mut point = vec![0.5; self.coordinates];
        // The last that is varied goes fastest, as in a nested loop.
        for varied in self.varied.iter().rev() {
            let count = varied.count().unwrap_or(1);
            point[varied.first] = varied.coordinate(rest % count);
            rest /= count;
        }
        point
    }

    /// The number of agents at a point.
    pub(crate) fn agents_at(&self, point: &[f64]) -> usize {
        let Node::Table(entries) = &self.template else {
            return self.agents;
        };
        let agents = entries.iter().find(|(key, _)| key == "agents");
        let value = match agents {
            Some((_, Node::Varied(index))) => Some(self.varied[*index].value(point, 1)),
            Some((_, Node::Value(value))) => Some(value.clone()),
            _ => None,
        };
        let number = value.and_then(|value| usize::try_from(value.as_integer()?).ok());
        number.unwrap_or(self.agents).max(1)
    }

    /// What is varied, at a point, in words.
    pub fn values(&self, point: &[f64]) -> Vec<String> {
        let agents = self.agents_at(point);
        let value = |varied: &Varied| match varied.value(point, agents) {
            Value::String(text) => text,
            value => value.to_string(),
        };
        self.varied.iter().map(value).collect()
    }

    /// The scenario at a point.
    pub fn scenario(&self, point: &[f64]) -> Result<Scenario, BadSpace> {
        let agents = self.agents_at(point);
        let mut filled = self.fill(&self.template, point, agents);
        if let Some(Value::Array(faults)) = filled.get_mut("fault") {
            for (fault, line) in faults.iter_mut().zip(&self.fault_lines) {
                let Value::Table(table) = fault else { continue };
                let present = settle(table);
                let read: Result<Fault, toml::de::Error> = fault.clone().try_into();
                if let Err(error) = read {
                    return Err(BadSpace::Senseless {
                        line: *line,
                        what: error.message().to_owned(),
                    });
                }
                if !present {
                    *fault = Value::Boolean(false);
                }
            }
            faults.retain(|fault| *fault != Value::Boolean(false));
        }
        let scenario: Result<Scenario, toml::de::Error> = filled.try_into();
        scenario.map_err(|error| BadScenario::from(error).into())
    }

    fn fill(&self, node: &Node, point: &[f64], agents: usize) -> Value {
        match node {
            Node::Value(value) => value.clone(),
            Node::Varied(index) => self.varied[*index].value(point, agents),
            Node::Table(entries) => {
                let filled =
                    |(key, node): &(String, Node)| (key.clone(), self.fill(node, point, agents));
                Value::Table(entries.iter().map(filled).collect())
            }
            Node::Array(nodes) => Value::Array(
                nodes
                    .iter()
                    .map(|node| self.fill(node, point, agents))
                    .collect(),
            ),
        }
    }
}

impl Reading<'_> {
    /// The lines of the tables of an array.
    fn lines(&self, spans: &DeTable<'_>, name: &str) -> Vec<usize> {
        let found = spans.iter().find(|(key, _)| key.get_ref().as_ref() == name);
        match found.map(|(_, of)| of.get_ref()) {
            Some(DeValue::Array(items)) => items.iter().map(|of| self.line(&of.span())).collect(),
            _ => Vec::new(),
        }
    }

    /// Requirements are read one by one, so that a mistake can be told with its line.
    fn check_requirements(&self, table: &Table, spans: &DeTable<'_>) -> Result<(), BadSpace> {
        let found = spans
            .iter()
            .find(|(key, _)| key.get_ref().as_ref() == "require");
        let (Some(Value::Array(required)), Some((_, of))) = (table.get("require"), found) else {
            return Ok(());
        };
        let DeValue::Array(spans) = of.get_ref() else {
            return Ok(());
        };
        for (value, of) in required.iter().zip(spans.iter()) {
            let read: Result<Require, toml::de::Error> = value.clone().try_into();
            read.map_err(|error| self.senseless(&of.span(), error.message()))?;
        }
        Ok(())
    }
}

/// Puts what only spaces say of a fault into the words of scenarios; false if it does not happen.
fn settle(fault: &mut Table) -> bool {
    let present = fault.remove("present") != Some(Value::Boolean(false));
    let Some(lasts) = fault.remove("lasts").and_then(|lasts| number(&lasts)) else {
        return present;
    };
    let at = fault.get("at").and_then(number).unwrap_or(0.0);
    // To the end of the run is for good.
    if at + lasts < 1.0 {
        fault.insert("until".to_owned(), Value::Float(at + lasts));
    }
    present
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| value.as_integer().map(|n| n as f64))
}
