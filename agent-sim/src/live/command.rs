//! What viewers ask for.

use crate::touch::Touched;
use serde::Deserialize;

/// Something that a viewer wants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Go on.
    Play {},
    /// Stand still.
    Pause {},
    /// One step, then stand still.
    Step {},
    /// So many steps a second; as fast as it goes if none is given.
    Speed {
        /// Steps a second.
        steps: Option<f64>,
    },
    /// Show an earlier step, or go on to a later one.
    Seek {
        /// Steps taken.
        step: usize,
    },
    /// From the beginning.
    Restart {
        /// Another seed: another field; the same if none is given.
        seed: Option<u64>,
        /// Whether what was done by hand is done again.
        #[serde(default)]
        keep: bool,
    },
    /// Show what an agent sees; nobody if none is given.
    Select {
        /// Its number.
        agent: Option<usize>,
    },
    /// Something goes wrong with agents from now on.
    Fault {
        /// As on the command line, without whom and when: `stuck,value=5`.
        fault: String,
        /// Whom.
        ids: Vec<usize>,
    },
    /// What is wrong with agents is over.
    Revive {
        /// Whom.
        ids: Vec<usize>,
    },
    /// A stroke on the field or on its target.
    Paint(Paint),
    /// One more agent.
    Add {
        /// Where.
        place: Vec<f64>,
    },
    /// Take back what was last done by hand.
    Undo {},
    /// Write down what was done as a scenario.
    Save {},
    /// All errors and efforts so far.
    Curves {},
}

impl Command {
    /// Reads a command.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        // By way of a value: read at once, numbers within tagged objects are lost where any crate of a
        // program asks serde_json for arbitrary precision.
        serde_json::from_value(serde_json::from_str(text)?)
    }
}

/// A stroke: the same bump at a few places, at once.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paint {
    /// What is painted on.
    pub what: Touched,
    /// Where.
    pub places: Vec<Vec<f64>>,
    /// How wide.
    pub radius: f64,
    /// How high, in units of the field.
    pub amount: f64,
    /// For how many steps; to the end if none is given.
    pub steps: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_nonsense_is_refused() {
        let read = Command::read;
        assert_eq!(read(r#"{"do":"play"}"#).unwrap(), Command::Play {});
        assert_eq!(
            read(r#"{"do":"fault","fault":"crash","ids":[3]}"#).unwrap(),
            Command::Fault {
                fault: "crash".to_owned(),
                ids: vec![3]
            }
        );
        let paint =
            r#"{"do":"paint","what":"push","places":[[0.5]],"radius":0.1,"amount":1,"steps":5}"#;
        assert!(matches!(read(paint).unwrap(), Command::Paint(_)));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"do":"dance"}"#,
            r#"{"do":"seek"}"#,
            r#"{"do":"seek","step":-1}"#,
            r#"{"do":"play","now":true}"#,
            r#"{"do":"fault","fault":"crash","ids":"all"}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
