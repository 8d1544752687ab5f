//! What can be wrong with a fault before anything runs.

use super::Descriptor;

/// Why a fault is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadFault {
    /// There is no such fault.
    #[error("there is no fault called '{given}'{}; choose one of: {}", did_you_mean(*nearest), known.join(", "))]
    UnknownKind {
        /// The name given.
        given: String,
        /// The known name that it resembles.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The fault has no such parameter.
    #[error("{} has no parameter '{given}'{}; it takes: {}", kind.name, did_you_mean(*nearest), kind.takes().join(", "))]
    UnknownParameter {
        /// The fault.
        kind: &'static Descriptor,
        /// The parameter given.
        given: String,
        /// The parameter of this fault that it resembles.
        nearest: Option<&'static str>,
    },
    /// A part of the text is not a parameter at all.
    #[error("'{part}' is not NAME=VALUE; write for example crash,fraction=0.3,at=0.5")]
    NotAParameter {
        /// The part.
        part: String,
    },
    /// A table without a kind.
    #[error("the fault has no kind; choose one of: {}", super::names().join(", "))]
    NoKind,
    /// A parameter that the fault cannot do without.
    #[error("{} needs {parameter}; write for example {}", kind.name, kind.example())]
    Missing {
        /// The fault.
        kind: &'static Descriptor,
        /// The parameter.
        parameter: String,
    },
    /// A parameter given twice.
    #[error("{parameter} is given twice; give it once")]
    Repeated {
        /// The parameter.
        parameter: &'static str,
    },
    /// Two parameters of which one is allowed.
    #[error("{first} and {second} cannot be given together; choose one of them")]
    Together {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A value that does not read as what the parameter is.
    #[error("{parameter} is '{text}' and must be {wanted}")]
    Unreadable {
        /// The parameter.
        parameter: &'static str,
        /// Its text.
        text: String,
        /// What would have been read.
        wanted: &'static str,
    },
    /// A number beyond its range.
    #[error("{parameter} is {value} and must be {range}")]
    OutOfRange {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A fault that ends before it begins.
    #[error("at is {at} and must come before until, which is {until}")]
    EndsBeforeItBegins {
        /// Its beginning, as a share of the run.
        at: f64,
        /// Its end.
        until: f64,
    },
    /// An agent that the swarm does not have.
    #[error("there is no agent {id}: the swarm has {}", roll_call(*agents))]
    UnknownAgent {
        /// Its number.
        id: usize,
        /// How many there are.
        agents: usize,
    },
    /// A region of another dimension than the domain.
    #[error("the region {region} has {given} and the problem has {axes}", given = axes_of(region))]
    RegionAxes {
        /// The region.
        region: super::Region,
        /// Axes of the problem.
        axes: usize,
    },
    /// A region that is not inside the domain.
    #[error("the region {region} does not lie within the problem's domain {domain}")]
    RegionOutside {
        /// The region.
        region: super::Region,
        /// The whole domain.
        domain: super::Region,
    },
}

fn did_you_mean(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean '{name}'?"))
}

fn roll_call(agents: usize) -> String {
    match agents {
        0 => "no agents".to_owned(),
        1 => "one agent, number 0".to_owned(),
        _ => format!("{agents} agents, 0 to {}", agents - 1),
    }
}

fn axes_of(region: &super::Region) -> &'static str {
    match region.axes() {
        1 => "1 axis",
        _ => "2 axes",
    }
}
