//! The problems that a program knows.

use crate::Problem;
use crate::kit::{self, BadFile};
use std::path::Path;

/// What stands for a problem in a list of them: the problem itself, or an entry that says more about it.
pub trait Listed {
    /// The problem.
    fn problem(&self) -> &'static Problem;
}

impl Listed for &'static Problem {
    fn problem(&self) -> &'static Problem {
        self
    }
}

/// The problems that a program knows, in the order in which it lists them.
#[derive(Debug, Clone)]
pub struct Problems(Vec<&'static Problem>);

impl Problems {
    /// Those of a list; refuses two of one name.
    pub fn new(entries: &[impl Listed]) -> Result<Self, SameName> {
        let all: Vec<&'static Problem> = entries.iter().map(Listed::problem).collect();
        for (k, problem) in all.iter().enumerate() {
            if all[..k].iter().any(|other| other.name == problem.name) {
                return Err(SameName(problem.name));
            }
        }
        Ok(Self(all))
    }

    /// The published ones.
    pub fn published() -> Self {
        Self(crate::published::ALL.to_vec())
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &'static Problem> + '_ {
        self.0.iter().copied()
    }

    /// Their names, for people.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.iter().map(|problem| problem.name).collect();
        names.join(", ")
    }

    /// The one of that name, or that of a file where the name is a file's.
    pub fn by_name(&self, name: &str) -> Result<&'static Problem, NoProblem> {
        if kit::is_file(name) {
            return Ok(kit::load(Path::new(name))?);
        }
        self.iter()
            .find(|problem| problem.name == name)
            .ok_or_else(|| NoProblem::Unknown {
                asked: name.to_owned(),
                known: self.names(),
            })
    }
}

/// Why there is no problem of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProblem {
    /// None has it.
    #[error("there is no problem called '{asked}'; choose one of: {known}")]
    Unknown {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// It is that of a file which describes none.
    #[error(transparent)]
    File(#[from] BadFile),
}

/// A name that two problems have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two of the problems in the list are called '{0}'; give each a name of its own")]
pub struct SameName(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{heat_1d, ks_1d};

    #[test]
    fn problems_are_found_by_name_and_names_are_told() {
        let two = Problems::new(&[&heat_1d::PROBLEM, &ks_1d::PROBLEM]).unwrap();
        assert_eq!(two.by_name("ks-1d").unwrap().name, "ks-1d");
        let message = two.by_name("heat-2d").unwrap_err().to_string();
        assert!(
            message.ends_with("choose one of: heat-1d, ks-1d"),
            "{message}"
        );
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let error = Problems::new(&[&heat_1d::PROBLEM, &heat_1d::PROBLEM]).unwrap_err();
        assert!(error.to_string().contains("'heat-1d'"));
    }
}
