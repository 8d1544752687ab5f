//! The studies, one a file.

mod asynchrony;
mod campaigns;
mod cardinality;
mod controllers;
mod deployed;
mod effort;
mod failure;
mod families;
mod fidelity;
mod fov;
mod meanfield;
mod mishap;
mod multiscale;
mod noise;
pub mod own_field;
mod physics;
mod regret;
mod sizes;
mod table;

use crate::cell::{Cell, Outcomes};
use crate::findings::{Findings, Picture};
use crate::study_policy::{Varied, varied};
use agent_sim::report::{RGBColor, Scored, Series, Sweep, line, sweep_picture};
use anyhow::Context;
use artifacts::policy_file::PolicyFile;
use problem::{Headline, Problem};
use std::path::PathBuf;
use std::sync::Arc;

/// All studies, in the order in which they are run and listed.
pub static ALL: &[&dyn Study] = &[
    &table::Table,
    &controllers::Controllers,
    &regret::Regret,
    &cardinality::Cardinality,
    &failure::Failure,
    &noise::Noise,
    &fov::FieldOfView,
    &physics::OtherPhysics,
    &families::Families,
    &fidelity::Fidelity,
    &effort::Effort,
    &meanfield::MeanField,
    &multiscale::MultiScale,
    &asynchrony::Asynchrony,
    &deployed::Deployed,
    &campaigns::Campaigns,
];

/// A colour a problem.
const COLOURS: [RGBColor; 8] = [
    line::BLUE,
    line::ORANGE,
    line::GREEN,
    line::PURPLE,
    line::VERMILION,
    line::GREY,
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x80, 0x60, 0x20),
];

/// The problems with the figure that the results table shows of each; where that is the time mean,
/// which forgives what happens late, also with the final one. The label says which.
fn figures() -> Vec<(&'static Problem, &'static str, String)> {
    let mut all = Vec::new();
    for problem in problem::published::measured() {
        all.push((problem, "headline", format!("`{}`", problem.name)));
        if problem.scoring.headline == Headline::TimeMean {
            let label = format!("`{}`, final error", problem.name);
            all.push((problem, "final", label));
        }
    }
    all
}

/// `1 episode`, `2 episodes`.
fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// A line of means without bands; points that are not finite are left out.
fn curve_of(name: &str, colour: RGBColor, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let scored = |(x, mean)| Scored {
        x,
        mean,
        low: mean,
        high: mean,
    };
    Series {
        name: name.to_owned(),
        colour,
        points: points
            .into_iter()
            .filter(|(_, mean)| mean.is_finite())
            .map(scored)
            .collect(),
    }
}

/// A picture with one line a problem; `sweep` says all but the lines.
fn problems_picture(
    scope: &Scope,
    name: &str,
    sweep: &Sweep<'_>,
    curves: &[(&'static str, Vec<(f64, f64)>)],
) -> anyhow::Result<Picture> {
    let series = curves.iter().zip(COLOURS.into_iter().cycle());
    let series: Vec<Series> = series
        .map(|((problem, points), colour)| curve_of(problem, colour, points.iter().copied()))
        .collect();
    let sweep = Sweep {
        series: &series,
        ..sweep.clone()
    };
    Ok(Picture {
        name: name.to_owned(),
        caption: sweep.title.to_owned(),
        svg: sweep_picture(&sweep, &scope.foot())?,
    })
}

/// A question with a measured answer.
pub trait Study: Sync {
    /// On the command line and of its files.
    fn name(&self) -> &'static str;

    /// The heading of its page.
    fn title(&self) -> &'static str;

    /// All that has to be run.
    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>>;

    /// What the outcomes of these cells say.
    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings>;
}

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Few points and episodes: does it work at all.
    Quick,
    /// What is published.
    Full,
}

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What a run is about, as far as studies need to know.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How thorough it is.
    pub mode: Mode,
    /// Seed of fresh episodes and of faults.
    pub seed: u64,
    /// Revision of the source tree that results name.
    pub commit: String,
    policies: Option<PathBuf>,
}

impl Scope {
    /// A run with the policies `<problem>.policy` of a folder, or with those that are built in.
    pub fn new(mode: Mode, seed: u64, policies: Option<PathBuf>, commit: String) -> Self {
        Self {
            mode,
            seed,
            commit,
            policies,
        }
    }

    /// For the foot of a picture.
    pub fn foot(&self) -> String {
        format!(
            "Fieldswarm {} · commit {} · seed {} · {}",
            env!("CARGO_PKG_VERSION"),
            self.commit,
            self.seed,
            self.mode.name()
        )
    }

    /// One thing in a quick run, another in a full one.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        match self.mode {
            Mode::Quick => quick,
            Mode::Full => full,
        }
    }

    /// Fresh episodes a cell.
    pub fn episodes(&self) -> usize {
        self.pick(2, 50)
    }

    /// The policies `<prefix><value>.policy` that were trained for one study, by rising value; those
    /// that are there.
    pub fn study_policies(&self, problem: &Problem, prefix: &str) -> anyhow::Result<Vec<Varied>> {
        varied(self.policies.as_deref(), problem, prefix)
    }

    /// The problem's policy.
    pub fn policy(&self, problem: &Problem) -> anyhow::Result<Arc<PolicyFile>> {
        let file = match &self.policies {
            None => PolicyFile::shipped(problem)?,
            Some(folder) => {
                let path = folder.join(format!("{}.policy", problem.name));
                PolicyFile::read(&path).with_context(|| {
                    format!(
                        "--policies needs one for each problem: <problem>.policy in {}",
                        folder.display()
                    )
                })?
            }
        };
        file.policy(problem)?;
        Ok(Arc::new(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_study_can_list_its_cells_by_names_of_their_own() {
        for mode in [Mode::Quick, Mode::Full] {
            let scope = Scope::new(mode, 1, None, String::new());
            for study in ALL {
                let cells = study.cells(&scope).unwrap();
                let names: HashSet<&str> = cells.iter().map(|cell| &*cell.name).collect();
                assert_eq!(names.len(), cells.len(), "{}", study.name());
                assert!(cells.iter().all(|cell| cell.work.pieces() > 0));
            }
        }
        let names: HashSet<&str> = ALL.iter().map(|study| study.name()).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
