//! What stands in a cell of the page's tables.

use super::method::{CRASHED, Condition, METHODS, Method, Site, Source};
use super::{central, learning, rl, why};
use crate::cell::{Figure, Outcomes};
use crate::oracle::{Oracle, plan};
use crate::paper::{ROWS, Row};
use agent_sim::table::number;
use problem::test_set::EpisodeSet;
use problem::{Drives, Problem};

/// A cell.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A figure.
    Found(Box<Found>),
    /// What stands there instead, because there can be none.
    Word(&'static str),
    /// Nobody measured it, and why.
    NotRun(&'static str),
}

/// A figure with where it comes from.
#[derive(Debug, Clone)]
pub struct Found {
    /// Of the errors; quantiles are known only of what the study runs itself.
    pub figure: Figure,
    /// Of each training, where there was any.
    pub seeds: Vec<f64>,
    /// Whether a training behind it has budget left.
    pub half: bool,
    /// Of so many first episodes, where it is not all of them.
    pub part: Option<usize>,
    /// The error of proportional feedback on those.
    pub beside: Option<f64>,
    /// Microseconds a decision.
    pub decision_us: Option<f64>,
    /// Of a network's weights.
    pub bytes: Option<usize>,
}

/// What stands beside figures of trainings that have budget left.
pub const HALF: &str = "†";

impl Found {
    /// One of which nothing else is known.
    pub fn new(figure: Figure) -> Self {
        Self {
            figure,
            seeds: Vec::new(),
            half: false,
            part: None,
            beside: None,
            decision_us: None,
            bytes: None,
        }
    }

    fn mark(&self) -> String {
        let half = if self.half { HALF } else { "" };
        let part = self.part.map(|n| format!(" (n = {n})"));
        format!("{half}{}", part.unwrap_or_default())
    }

    /// The mean.
    pub fn short(&self) -> String {
        match self.figure.mean.is_finite() {
            true => format!("{}{}", number(self.figure.mean), self.mark()),
            false => format!("blew up{}", self.mark()),
        }
    }

    /// The mean ± two standard deviations over episodes.
    pub fn long(&self) -> String {
        let Figure { mean, std, .. } = self.figure;
        if !mean.is_finite() || std.is_nan() {
            return self.short();
        }
        format!("{} ± {}{}", number(mean), number(2.0 * std), self.mark())
    }

    /// Seeds, with the best and the worst.
    pub fn seeds(&self) -> String {
        let (low, high) = (self.seeds.iter().copied())
            .fold((f64::INFINITY, 0.0f64), |(low, high), error| {
                (low.min(error), high.max(error))
            });
        match self.seeds.len() {
            0 => "–".to_owned(),
            1 => "1".to_owned(),
            n => format!("{n}: {} to {}", number(low), number(high)),
        }
    }
}

/// A figure of which no more than mean and deviation are known.
fn known(mean: f64, std: Option<f64>, pieces: usize) -> Figure {
    let unknown = f64::NAN;
    Figure {
        mean,
        std: std.unwrap_or(unknown),
        median: unknown,
        p95: unknown,
        worst: unknown,
        pieces,
        blown: usize::from(!mean.is_finite()),
    }
}

/// Several trainings as one figure: the mean over them, and the deviation over all their episodes.
pub fn together(rows: &[&rl::Trained]) -> Option<Found> {
    let first = rows.first()?;
    let count = rows.len() as f64;
    let mean = rows.iter().map(|row| row.error).sum::<f64>() / count;
    // Within trainings and between them.
    let within: Option<f64> = rows.iter().map(|row| row.deviation.map(|d| d * d)).sum();
    let between: f64 = rows.iter().map(|row| (row.error - mean).powi(2)).sum();
    let std = within.map(|within| ((within + between) / count).sqrt());
    let longest = |times: Vec<f64>| times.into_iter().reduce(f64::max);
    Some(Found {
        seeds: rows.iter().map(|row| row.error).collect(),
        half: rows.iter().any(|row| !row.complete),
        decision_us: longest(rows.iter().filter_map(|row| row.decision_us).collect()),
        bytes: rows.iter().filter_map(|row| row.bytes).max(),
        ..Found::new(known(mean, std, first.episodes))
    })
}

/// All that was measured elsewhere.
pub struct Evidence {
    /// By reinforcement learning.
    pub trained: Vec<rl::Trained>,
    /// By the trainer, of those who decide in one place.
    pub central: Vec<central::Measured>,
    /// How trainings went.
    pub courses: Vec<learning::Course>,
    /// Why something is missing.
    pub whys: Vec<why::Why>,
    /// Of the bound.
    pub plans: Vec<Oracle>,
}

impl Evidence {
    /// What `data` has.
    pub fn read() -> anyhow::Result<Self> {
        Ok(Self {
            trained: rl::Trained::all()?,
            central: central::Measured::all()?,
            courses: learning::Course::all()?,
            whys: why::Why::all()?,
            plans: Oracle::all()?,
        })
    }

    /// Trainings of a method that were scored in that condition.
    pub fn trainings<'a>(
        &'a self,
        row: &str,
        method: &Method,
        condition: Condition,
    ) -> Vec<&'a rl::Trained> {
        let rows = self.trained.iter();
        rows.filter(|it| it.row == row && it.method == method && it.condition == condition)
            .collect()
    }

    /// What is known of a method on a row of the table in that condition.
    pub fn entry(
        &self,
        outcomes: &Outcomes,
        row: &Row,
        method: &Method,
        condition: Condition,
    ) -> anyhow::Result<Entry> {
        let problem = problem::published::by_name(row.problem)?;
        if let Some(word) = impossible(problem, method, condition) {
            return Ok(Entry::Word(word));
        }
        let name = row.name();
        let found = match method.source {
            Source::Study => {
                let outcome = outcomes.of(&cell(row, method, condition))?;
                Some(Found::new(outcome.figure("headline")))
            }
            Source::Rl => together(&self.trainings(&name, method, condition)),
            Source::Central => self.planned(&name, method, condition),
            Source::Plans => self.bound(row, problem, condition),
        };
        let why = || why::not_run(&self.whys, &name, method, condition);
        Ok(match found {
            Some(mut found) => {
                if method.source != Source::Study {
                    let all = EpisodeSet::Table.episodes(problem, 0, None)?.len();
                    let some = found.figure.pieces;
                    found.part = (some < all).then_some(some);
                }
                Entry::Found(Box::new(found))
            }
            None => Entry::NotRun(why().unwrap_or("nobody wrote down why")),
        })
    }

    fn planned(&self, row: &str, method: &Method, condition: Condition) -> Option<Found> {
        let mut all = self.central.iter();
        let it =
            all.find(|it| it.row == row && it.method == method && it.condition == condition)?;
        Some(Found {
            beside: it.proportional,
            decision_us: it.decision_us,
            bytes: it.bytes,
            ..Found::new(known(it.error, it.deviation, it.episodes))
        })
    }

    fn bound(&self, row: &Row, problem: &Problem, condition: Condition) -> Option<Found> {
        if row.variant.is_some() {
            return None;
        }
        let crash = (condition == Condition::Crash).then_some(CRASHED);
        let plan = plan(&self.plans, row.problem, condition.agents(problem)?, crash)?;
        Some(Found::new(known(plan.error, None, plan.episodes)))
    }
}

/// The name of what the study runs for a cell.
pub fn cell(row: &Row, method: &Method, condition: Condition) -> String {
    format!("{}, {}, {}", row.name(), method.label, condition.name())
}

/// What stands in a cell for which there can be no figure, or only one that stands elsewhere already.
pub fn impossible(
    problem: &Problem,
    method: &Method,
    condition: Condition,
) -> Option<&'static str> {
    if !method.takes_part(problem.name) {
        return Some("–");
    }
    if method.site == Site::Network && condition == Condition::Fourfold {
        return Some("fixed number");
    }
    if method.name == "none" && condition != Condition::Table {
        return Some("the same");
    }
    if method.name == "coverage" {
        let actuation = &problem.actuation;
        return match actuation.drives {
            Drives::Flow => Some("refused: agents stir"),
            Drives::Source if actuation.velocity_max == 0.0 => Some("as proportional"),
            Drives::Source => None,
        };
    }
    None
}

/// All cells of the page: rows, methods that take part, conditions.
pub fn all() -> impl Iterator<Item = (&'static Row, &'static Method, Condition)> {
    ROWS.iter().flat_map(|row| {
        let methods = METHODS
            .iter()
            .filter(|method| method.takes_part(row.problem));
        methods.flat_map(move |method| Condition::SHOWN.map(|condition| (row, method, condition)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_without_a_reason() {
        let evidence = Evidence::read().unwrap();
        for (row, method, condition) in all() {
            let problem = problem::published::by_name(row.problem).unwrap();
            let there =
                method.source == Source::Study || impossible(problem, method, condition).is_some();
            if there {
                continue;
            }
            let entry = evidence.entry(&Outcomes::default(), row, method, condition);
            if let Entry::NotRun(why) = entry.unwrap() {
                assert!(
                    !why.starts_with("nobody"),
                    "data/why.csv: {}, {}, {}",
                    row.name(),
                    method.name,
                    condition.name()
                );
            }
        }
    }

    #[test]
    fn trainings_are_averaged_and_one_that_goes_on_is_marked() {
        let rows = rl::written(
            "heat-1d,mappo,1,table,8,50,1e-3,3e-3,5000000,600,100,10,90000,2 cores,true\n\
             heat-1d,mappo,2,table,8,50,3e-3,3e-3,1000,6,1,12,90000,2 cores,false",
        );
        let found = together(&rows.iter().collect::<Vec<_>>()).unwrap();
        assert!((found.figure.mean - 2e-3).abs() < 1e-12);
        // 3e-3 in each, 1e-3 between.
        assert!((found.figure.std - 10f64.sqrt() * 1e-3).abs() < 1e-12);
        assert_eq!(found.seeds(), "2: 1.00e-3 to 3.00e-3");
        assert_eq!(found.long(), "2.00e-3 ± 6.32e-3†");
        assert_eq!((found.decision_us, found.bytes), (Some(12.0), Some(90_000)));
        assert!(together(&[]).is_none());
    }

    #[test]
    fn centralised_networks_have_no_more_outputs_than_agents_they_were_trained_for() {
        let heat = problem::published::by_name("heat-1d").unwrap();
        let word = |name, condition| impossible(heat, Method::named(name).unwrap(), condition);
        assert_eq!(word("dpc", Condition::Fourfold), Some("fixed number"));
        assert_eq!(word("dpc", Condition::Crash), None);
        assert_eq!(word("matd3", Condition::Fourfold), None);
        assert_eq!(word("matd3-deeponet", Condition::Table), Some("–"));
    }
}
