//! What a person writes: the TOML of a field of their own, as it stands in the file.
//!
//! Every value that can be wrong by itself keeps its place, so that a complaint names the line. What the
//! words mean together is `build`'s business.

use crate::pde::lines::Scheme;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// A value and where it stands.
pub type Said<T> = Spanned<T>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// On the command line's reports and in policies.
    pub name: Said<String>,
    /// One line about the task.
    pub summary: Option<String>,
    /// Where.
    pub domain: Domain,
    /// When.
    pub time: Time,
    /// Numbers with names, which expressions may use and commands may change.
    #[serde(default)]
    pub coefficients: BTreeMap<Said<String>, Coefficient>,
    /// What.
    pub fields: BTreeMap<Said<String>, Field>,
    /// Which of the fields comes first, second, …; by name unless said.
    #[serde(default)]
    pub order: Vec<Said<String>>,
    /// By whom.
    pub actuators: Actuators,
    /// Seeing what.
    pub sensors: Sensors,
    /// What else happens.
    #[serde(default)]
    pub disturbances: Vec<Disturbance>,
    /// How it is judged.
    #[serde(default)]
    pub score: Score,
    /// Proportional feedback to compare with.
    pub feedback: Option<Feedback>,
    /// How it is trained, where not as usual.
    pub training: Option<Said<Training>>,
}

/// The box, its grid, and what is cut out of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Of lengths.
    pub unit: Said<String>,
    /// Lengths of the sides: one on a line, two on a plane.
    pub size: Said<Vec<f64>>,
    /// Grid points along each side, ends included (on periodic sides without the last).
    pub grid: Said<Vec<usize>>,
    /// Shapes that do not belong to it.
    #[serde(default)]
    pub cuts: Vec<Said<Cut>>,
    /// A picture or array of what does.
    pub mask: Option<Said<String>>,
    /// Separate parts that it may fall into.
    #[serde(default = "one")]
    pub parts: usize,
}

fn one() -> usize {
    1
}

/// A shape with a name, by which edges call its rim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Its name.
    pub name: Option<String>,
    /// Round.
    pub disc: Option<Disc>,
    /// Two opposite corners.
    pub rectangle: Option<[[f64; 2]; 2]>,
    /// Corners in order.
    pub polygon: Option<Vec<[f64; 2]>>,
    /// Two ends, on a line.
    pub interval: Option<[f64; 2]>,
    /// How much it counts, where that is asked for.
    pub weight: Option<f64>,
}

/// A round shape.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disc {
    /// Its centre.
    pub centre: [f64; 2],
    /// Its radius.
    pub radius: f64,
}

/// Control interval and horizon.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// Of times.
    pub unit: Said<String>,
    /// Between two actions.
    pub interval: Said<f64>,
    /// Actions in one episode.
    pub steps: Said<usize>,
    /// Of the solver in one interval; found where it is not said.
    pub substeps: Option<Said<usize>>,
    /// The solver's order in time.
    #[serde(default)]
    pub scheme: Scheme,
}

/// A number with a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// What it is, unless it is changed.
    pub value: Said<f64>,
    /// What it may be changed to.
    pub range: Option<Said<[f64; 2]>>,
    /// What it stands for.
    pub meaning: Option<String>,
    /// Its unit, for people; "1" for none.
    pub unit: Option<String>,
}

/// One field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// What it is, for axes and legends; its name unless said.
    pub quantity: Option<String>,
    /// Its unit; "1" for none.
    pub unit: Said<String>,
    /// Where its values are expected: expressions must be finite there.
    pub range: Said<[f64; 2]>,
    /// Whether it is cut to its range after every step of the solver.
    #[serde(default)]
    pub clipped: bool,
    /// Its diffusivity.
    pub diffusion: Option<Said<Amount>>,
    /// κ of −κ Δ²u; with it a diffusivity may be negative.
    pub hyperdiffusion: Option<Said<Number>>,
    /// What carries it along.
    pub velocity: Option<Said<Flow>>,
    /// How fast it grows where it is, from all fields.
    pub reaction: Option<Said<Number>>,
    /// Its edges, by side.
    #[serde(default)]
    pub edges: BTreeMap<Said<String>, Said<Edge>>,
    /// How an episode begins; zero unless said.
    pub initial: Option<Said<Shape>>,
    /// What it should be; zero unless said.
    pub target: Option<Said<Shape>>,
    /// What the target becomes in the course of an episode, one after the other.
    #[serde(default)]
    pub goal: Goals,
    /// How much its errors count beside other fields'; 1 for the one that agents see first, 0 for others.
    pub weight: Option<Said<f64>>,
}

/// A number or an expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "write a number, or an expression in quotes")]
pub enum Number {
    /// A number.
    Value(f64),
    /// An expression.
    Text(String),
}

/// A number, an expression in position, or the name of an .npy file.
pub type Amount = Number;

/// A velocity.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "write [vx, vy] of numbers or expressions, or the name of an .npy file"
)]
pub enum Flow {
    /// Along each axis.
    Each(Vec<Number>),
    /// A map, [axes, points…].
    Map(String),
}

/// What an edge does.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "write \"insulated\", \"periodic\", { fixed = 0.0 }, { convective = 1.0, ambient = 0.0 } or { inflow = 0.0 }"
)]
pub enum Edge {
    /// By a word.
    Word(Word),
    /// Held at a value.
    Fixed {
        /// The value.
        fixed: Number,
    },
    /// Exchanging with what is beyond.
    Convective {
        /// −D ∂u/∂n = convective · (u − ambient).
        convective: f64,
        /// What is beyond.
        ambient: Option<Number>,
    },
    /// Nothing diffuses through; what flows in brings this along.
    Open {
        /// What comes in.
        inflow: Number,
    },
}

/// Edges that need no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Nothing diffuses through.
    Insulated,
    /// The other end.
    Periodic,
}

/// A field to begin with or to reach.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "write a number, an expression in quotes, { random = { length = …, amplitude = … } } or { file = \"….npy\" }"
)]
pub enum Shape {
    /// The same everywhere, or an expression in position.
    Plain(Number),
    /// Another one in every episode.
    Random {
        /// How they are drawn.
        random: Random,
    },
    /// One of those in a file, [samples, points…].
    File {
        /// Its name.
        file: String,
    },
}

/// Gaussian random fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Correlation length, in the domain's unit.
    pub length: f64,
    /// Standard deviation.
    pub amplitude: f64,
    /// What they are drawn around: a number or an expression in position.
    pub mean: Option<Number>,
}

/// One goal, or several in a list.
#[derive(Debug, Default)]
pub struct Goals(pub Vec<Goal>);

/// By hand, because an untagged enum would lose the lines of what stands in it.
impl<'de> Deserialize<'de> for Goals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Goals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("{ field = …, at = … }, or several in a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Goals, A::Error> {
                let goal = Goal::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Goals(vec![goal]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Goals, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Goals)
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

/// A target that changes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What it becomes.
    pub field: Said<Shape>,
    /// When that begins: a time, or a range of which every episode draws its own.
    pub at: Said<Drawn>,
    /// How long it takes; a jump unless said.
    pub over: Option<Said<Drawn>>,
    /// How long it stays until the target goes back as it came; for good unless said.
    pub lasts: Option<Said<Drawn>>,
}

/// A number, or a range of which every episode draws its own.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "write a number, or [least, most] to draw from")]
pub enum Drawn {
    /// Always this.
    Always(f64),
    /// Evenly between.
    Between([f64; 2]),
}

impl Drawn {
    /// The least and the largest.
    pub fn ends(&self) -> [f64; 2] {
        match *self {
            Self::Always(value) => [value; 2],
            Self::Between(ends) => ends,
        }
    }
}

/// Who acts on the field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actuators {
    /// The field they act on; the first unless said.
    pub field: Option<Said<String>>,
    /// Standard deviation of what they do around them.
    pub width: Option<Said<f64>>,
    /// Or a file of what each of a list of them does to the field per unit of force, [actuators, points…].
    pub influence: Option<Said<String>>,
    /// Largest force, in the field's unit per time.
    pub force: Said<f64>,
    /// Largest change of the force per time; they are instant unless said.
    pub rate: Option<Said<f64>>,
    /// Largest speed; they stay where they are unless said.
    pub speed: Option<Said<f64>>,
    /// Where they are, or begin.
    pub places: Said<Places>,
    /// Places that mobile ones must not enter.
    #[serde(default)]
    pub keep_out: Vec<Said<Cut>>,
}

/// Where actuators are.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "write { lattice = [4, 4], low = [x, y], high = [x, y] } or { list = [[x, y], …] }"
)]
pub enum Places {
    /// Evenly spaced between two corners, both included; other numbers of agents on the smallest lattice
    /// that holds them.
    Lattice {
        /// How many along each axis.
        lattice: Vec<usize>,
        /// Lowest coordinates; a sixth of the way in unless said.
        low: Option<Vec<f64>>,
        /// Highest coordinates.
        high: Option<Vec<f64>>,
    },
    /// One by one.
    List {
        /// Their coordinates.
        list: Vec<Vec<f64>>,
    },
}

/// What agents see.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensors {
    /// The field they see, or several; that which the actuators act on unless said.
    pub field: Option<Said<OneOrEach<String>>>,
    /// Grid points of the window around an agent, along each axis.
    pub window: Said<usize>,
    /// How many grid points it goes on from one of them to the next; 1 unless said.
    pub spacing: Option<Said<usize>>,
    /// Standard deviation of noise on every reading.
    pub noise: Option<Said<OneOrEach<f64>>>,
    /// Distance of two readings beside each other.
    pub quantisation: Option<Said<OneOrEach<f64>>>,
    /// The least and the largest reading.
    pub range: Option<Said<OneOrEach<[f64; 2]>>>,
}

/// Something about the fields that agents see: of the one or of all alike, or of each in a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "write it once, or in a list one for each field that is seen"
)]
pub enum OneOrEach<T> {
    /// Once.
    One(T),
    /// In the order in which they are seen.
    Each(Vec<T>),
}

impl<T> OneOrEach<T> {
    /// What was written.
    pub fn all(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Each(all) => all,
        }
    }
}

/// Something else that acts on a field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// For people.
    pub name: Option<String>,
    /// The field; the first unless said.
    pub field: Option<Said<String>>,
    /// Round, with sharp rim.
    pub disc: Option<Disc>,
    /// Two opposite corners.
    pub rectangle: Option<[[f64; 2]; 2]>,
    /// Corners in order.
    pub polygon: Option<Vec<[f64; 2]>>,
    /// Two ends, on a line.
    pub interval: Option<[f64; 2]>,
    /// A bell.
    pub bell: Option<Bell>,
    /// In the field's unit per time.
    pub strength: Said<Drawn>,
    /// When it comes on; from the beginning unless said.
    pub from: Option<Said<Drawn>>,
    /// How long it stays; to the end unless said.
    pub lasts: Option<Said<Drawn>>,
    /// Share of the episodes in which it happens.
    pub chance: Option<Said<f64>>,
}

/// A Gaussian bump.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bell {
    /// Its centre.
    pub centre: [f64; 2],
    /// Its standard deviation.
    pub width: f64,
}

/// How runs are judged.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Which error.
    #[serde(default)]
    pub error: Judged,
    /// The time from which on the mean counts.
    pub from: Option<Said<f64>>,
    /// Places that count more or less.
    #[serde(default)]
    pub regions: Vec<Said<Cut>>,
    /// How much all other places count; 1 unless said.
    pub elsewhere: Option<Said<f64>>,
}

/// Which error a run is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// The last.
    #[default]
    Final,
    /// The mean over time.
    Mean,
}

/// Proportional feedback.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// Force per error.
    pub gain: Said<f64>,
    /// Whether each goes by the mean error under its kernel; by that in its cell unless said.
    #[serde(default)]
    pub averaged: bool,
}

/// What a training has beyond the usual.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Optimiser steps.
    pub steps: Option<u64>,
    /// Episodes per step.
    pub batch: Option<usize>,
    /// Numbers that agents remember.
    pub memory: Option<usize>,
    /// Whether agents do nothing where there is nothing to do.
    #[serde(default)]
    pub rests: bool,
    /// Whether agents on a line look at slopes too, unless said otherwise. A node that senses by itself has
    /// nothing to tell them from where its sensors end.
    pub slopes: Option<bool>,
    /// Highest learning rate.
    pub rate: Option<f64>,
    /// Control steps per episode.
    pub horizon: Option<usize>,
    /// Share of episodes in which agents die, and of the agents that do at most.
    pub losses: Option<[f64; 2]>,
    /// Share of episodes in which agents in the plane see as nodes by themselves do: in their own cell what
    /// they measure, in the others what the agents that are mounted there say, a step late and gone with them.
    pub neighbours: Option<Said<f64>>,
    /// Share of episodes in which sensors fail, of those that agents have by themselves, and of the sensors
    /// that do at most.
    pub missing: Option<Said<[f64; 2]>>,
    /// Weight of the last error beside that over time.
    pub last: Option<f64>,
    /// Weight of effort.
    pub effort: Option<f64>,
}

impl Training {
    /// Whether there are episodes in which agents see by themselves.
    pub fn by_themselves(&self) -> bool {
        self.neighbours() > 0.0 || self.missing().iter().all(|share| *share > 0.0)
    }

    /// See [`Self::neighbours`].
    pub fn neighbours(&self) -> f64 {
        self.neighbours.as_ref().map_or(0.0, |said| *said.get_ref())
    }

    /// See [`Self::missing`].
    pub fn missing(&self) -> [f64; 2] {
        self.missing
            .as_ref()
            .map_or([0.0; 2], |said| *said.get_ref())
    }
}
