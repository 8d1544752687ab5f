//! What is said to a plant and what it says, as docs/plants.md has it.

use problem::grid::Edge;
use problem::kit::domain::Domain;
use problem::{Drives, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the protocol. It changes when a plant of the version before would misunderstand.
pub const PROTOCOL: u64 = 1;

/// A header of ours. Where it has a shape, that array follows.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Question<'a> {
    Hello(Box<Hello>),
    Reset {
        shape: &'a [usize],
        /// Of the steps to come.
        dt: f64,
        seed: u64,
    },
    Step {
        shape: &'a [usize],
        dt: f64,
    },
    Bye,
}

/// What a plant must know of the problem.
#[derive(Debug, Serialize)]
pub struct Hello {
    protocol: u64,
    program: &'static str,
    problem: String,
    variant: Option<&'static str>,
    /// Of the description, where one has it.
    file: Option<String>,
    summary: String,
    grid: Vec<usize>,
    low: Vec<f64>,
    high: Vec<f64>,
    edges: Vec<&'static str>,
    axes: Vec<&'static str>,
    fields: Vec<String>,
    drives: &'static str,
    components: usize,
    interval: f64,
    substeps: usize,
    coefficients: BTreeMap<&'static str, f64>,
    /// Of the volumes that follow.
    shape: Vec<usize>,
}

impl Hello {
    pub fn of(problem: &Problem) -> Self {
        let axes = problem.grid.axes;
        let grid = problem.grid.shape().to_vec();
        let file = problem.kit.map(|_| problem.address());
        let edge = |edge: &Edge| match edge {
            Edge::Wall => "wall",
            Edge::Periodic => "periodic",
        };
        Self {
            protocol: PROTOCOL,
            program: concat!("agent-sim ", env!("CARGO_PKG_VERSION")),
            problem: problem.name.to_owned(),
            variant: problem.form,
            file,
            summary: problem.summary.to_owned(),
            low: problem.grid.low[..axes].to_vec(),
            high: problem.grid.high[..axes].to_vec(),
            edges: problem.grid.edges[..axes].iter().map(edge).collect(),
            axes: problem.axis_names[..axes].to_vec(),
            fields: match problem.kit {
                None => vec![problem.quantity.to_owned()],
                Some(kit) => kit.described.iter().map(|f| f.name.clone()).collect(),
            },
            drives: match problem.actuation.drives {
                Drives::Source => "source",
                Drives::Flow => "flow",
            },
            components: problem.components(),
            interval: problem.control_interval,
            substeps: problem.substeps,
            coefficients: (problem.coefficients.iter())
                .map(|c| (c.name, problem.coefficient(c.name)))
                .collect(),
            shape: grid.clone(),
            grid,
        }
    }
}

/// What a plant is told of a problem, as the hello of the protocol: JSON.
pub fn facts(problem: &Problem) -> String {
    header(&Question::Hello(Box::new(Hello::of(problem))))
}

/// A header as a line without its end.
pub fn header(question: &Question<'_>) -> String {
    serde_json::to_string(question).expect("names, numbers and lists")
}

/// Each node's share of a full volume: less on walls, none where something was cut out.
pub fn volumes(problem: &Problem) -> Vec<f64> {
    let domain = match problem.kit {
        Some(kit) => kit.domain(&problem.grid),
        None => Domain::new(problem.grid, &[], None),
    };
    domain.volume().to_vec()
}

/// A header of the plant's.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Answer {
    Hello {
        protocol: u64,
        #[serde(default)]
        name: String,
    },
    /// The array follows.
    Field {
        shape: Vec<usize>,
    },
    Error {
        text: String,
    },
}
