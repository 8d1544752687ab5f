//! Whether the gradient of a finite swarm's cost goes to that of a continuum of agents.

mod swarm;

use super::{Scope, Study, counted};
use crate::cell::{Cell, Outcomes, Work};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::fit::Exponent;
use crate::plot::{PALETTE, banded};
use crate::shelf::{Draw, Shelf};
use agent_sim::report::{Sweep, sweep_picture};
use agent_sim::table::number;
use problem::published::heat_1d::{GRID, PROBLEM};
use problem::random_field::episode_rng;
use rand::RngExt;
use swarm::{FEATURES, PARAMETERS, Swarm, contraction};

/// ‖∇J_M − ∇J_∞‖ against M.
pub struct MeanField;

/// To be raised with every change of the arithmetic in `swarm.rs`.
const REVISION: u32 = 1;
/// Agents.
const AGENTS: [usize; 8] = [4, 8, 16, 32, 64, 128, 256, 512];
/// Agents, evenly placed, that stand for infinitely many: the midpoint rule's error falls as 1/M², so
/// theirs is a hundredth of that of the largest swarm compared with them.
const CONTINUUM: usize = 5120;

/// How agents are placed, both with the uniform density as their limit.
#[derive(Clone, Copy, PartialEq)]
enum Placing {
    /// In the middle of equal parts.
    Even,
    /// Each anywhere, by itself.
    Random,
}

impl Placing {
    const BOTH: [Self; 2] = [Self::Even, Self::Random];

    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Random => "random",
        }
    }

    fn places(self, agents: usize, seed: u64, episode: usize) -> Vec<f64> {
        match self {
            Self::Even => (0..agents)
                .map(|i| (i as f64 + 0.5) / agents as f64)
                .collect(),
            Self::Random => {
                let mut rng = episode_rng(seed, ((agents as u64) << 32) + episode as u64);
                (0..agents).map(|_| rng.random_range(0.0..1.0)).collect()
            }
        }
    }
}

/// All swarms on the same episodes.
struct Gradients {
    agents: Vec<usize>,
    continuum: usize,
    episodes: usize,
    seed: u64,
}

impl Gradients {
    fn of(scope: &Scope) -> Self {
        Self {
            agents: AGENTS[..scope.pick(5, AGENTS.len())].to_vec(),
            continuum: scope.pick(CONTINUUM / 8, CONTINUUM),
            episodes: scope.pick(2, 20),
            seed: scope.seed,
        }
    }
}

fn figure(placing: Placing, agents: usize) -> String {
    format!("{}, {agents}", placing.name())
}

impl Work for Gradients {
    fn key(&self) -> serde_json::Value {
        serde_json::json!({
            "mean field": REVISION,
            "agents": self.agents,
            "continuum": self.continuum,
            "parameters": PARAMETERS,
            "seed": self.seed,
        })
    }

    fn pieces(&self) -> usize {
        self.episodes
    }

    fn cost(&self) -> u64 {
        let agents: usize = self.agents.iter().sum();
        let each = 4 * FEATURES * GRID * PROBLEM.horizon;
        ((2 * agents + self.continuum) * each) as u64
    }

    fn figures(&self) -> Vec<String> {
        let named = |placing| self.agents.iter().map(move |&n| figure(placing, n));
        Placing::BOTH.into_iter().flat_map(named).collect()
    }

    fn draw(&self) -> Option<Draw> {
        Some(Draw {
            problem: PROBLEM,
            form: String::new(),
            seed: self.seed,
            count: self.episodes,
        })
    }

    fn run(&self, piece: usize, shelf: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let draw = self.draw().expect("always some");
        let episode = shelf.get(&draw, piece)?;
        let wide = |field: &[f32]| -> [f64; GRID] { std::array::from_fn(|j| f64::from(field[j])) };
        let (initial, target) = (wide(&episode.initial), wide(&episode.target));
        let gradient = |places: &[f64]| Swarm::new(places).cost(&PARAMETERS, &initial, &target).1;
        let limit = gradient(&Placing::Even.places(self.continuum, 0, 0));
        let mut figures = Vec::new();
        for placing in Placing::BOTH {
            for &agents in &self.agents {
                let found = gradient(&placing.places(agents, self.seed, piece));
                let off: [f64; FEATURES] = std::array::from_fn(|k| found[k] - limit[k]);
                figures.push(norm(&off) / norm(&limit));
            }
        }
        Ok(Some(figures))
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

const CELL: &str = "gradients";

impl Study for MeanField {
    fn name(&self) -> &'static str {
        "meanfield"
    }

    fn title(&self) -> &'static str {
        "Gradients of finite swarms against that of a continuum"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        Ok(vec![Cell::new(CELL, Gradients::of(scope))])
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let work = Gradients::of(scope);
        let outcome = outcomes.of(CELL)?;
        let mut findings = Findings {
            about: vec![
                format!(
                    "The setting of the paper's theorem: the heat equation with the constants and the \
                     grid of `heat-1d`, fixed agents with normalised forcing (each kernel times 1/M), \
                     one policy G = U tanh(θ·φ/U) of the whole field, seen through a Gaussian, with \
                     {FEATURES} parameters, and the cost ∫∫(z − z_ref)². The gradient in θ is exact \
                     (adjoint of the scheme). {} evenly placed agents stand for infinitely many. Errors \
                     are ‖∇J_M − ∇J_∞‖ / ‖∇J_∞‖, means over {}.",
                    work.continuum,
                    counted(work.episodes, "fresh episode")
                ),
                format!(
                    "The theorem's condition L_G L_b C_T < 1 holds: it is {:.2}. The theorem says that \
                     the gradients converge and not how fast. Evenly placed agents are a midpoint rule, \
                     whose error falls as 1/M² for smooth kernels; agents placed at random are a mean of \
                     independent draws, whose error falls as 1/√M.",
                    contraction(&PARAMETERS)
                ),
            ],
            ..Findings::default()
        };
        findings.csv_head(&["placing", "agents"]);
        let mut columns = Vec::new();
        let mut series = Vec::new();
        let mut fits = vec!["exponent".to_owned()];
        for (placing, colour) in Placing::BOTH.into_iter().zip(PALETTE) {
            let mut values = Vec::new();
            let mut curve = Vec::new();
            for &agents in &work.agents {
                let name = figure(placing, agents);
                let found = outcome.figure(&name);
                findings.csv_row(&[placing.name(), &agents.to_string()], &found);
                values.push((agents as f64, outcome.values(&name)));
                curve.push((agents as f64, found));
            }
            let fitted = Exponent::fit(&values, scope.seed);
            let means: Vec<f64> = curve.iter().map(|(_, found)| found.mean).collect();
            findings.bars.push(bar(placing, &means, fitted));
            fits.push(fitted.map_or("–".to_owned(), |exponent| exponent.to_string()));
            columns.push(means);
            series.push(banded(format!("{} places", placing.name()), colour, curve));
        }
        let mut rows: Vec<Vec<String>> = (work.agents.iter().enumerate())
            .map(|(k, agents)| {
                let errors = columns.iter().map(|means| number(means[k]));
                [agents.to_string()].into_iter().chain(errors).collect()
            })
            .collect();
        rows.push(fits);
        let head = ["agents M", "evenly placed", "placed at random"];
        findings
            .tables
            .push(Table::new("Relative error of the gradient", &head, rows));
        let sweep = Sweep {
            title: "Gradient of M agents against that of a continuum",
            x_label: "agents M",
            y_label: "‖∇J_M − ∇J_∞‖ / ‖∇J_∞‖, with one standard deviation",
            series: &series,
            references: &[],
            log_x: true,
        };
        findings.pictures.push(Picture {
            name: "gradients".to_owned(),
            caption: "Relative error of the gradient against the number of agents".to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}

/// Errors are to fall: with every doubling where places are regular; where they are left to chance,
/// by the fit.
fn bar(placing: Placing, means: &[f64], fitted: Option<Exponent>) -> Bar {
    let rising = means.windows(2).filter(|pair| pair[1] >= pair[0]).count();
    let falls = fitted.is_some_and(|exponent| exponent.interval[1] < 0.0);
    let (wanted, met) = match placing {
        Placing::Even => ("falls with every doubling of M", rising == 0 && falls),
        Placing::Random => ("falls: exponent below 0", falls),
    };
    let verdict = match met {
        true => Verdict::Met,
        false => Verdict::Missed(format!("missed: rises at {rising} doublings")),
    };
    let text = fitted.map_or("no fit".to_owned(), |exponent| {
        format!("as M to the {exponent}")
    });
    let what = format!("{} places", placing.name());
    Bar::holds(what, wanted, text, verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_even_or_drawn_and_follow_seed_and_episode() {
        assert_eq!(Placing::Even.places(2, 1, 1), [0.25, 0.75]);
        let drawn = |seed, episode| Placing::Random.places(3, seed, episode);
        assert_eq!(drawn(1, 0), drawn(1, 0));
        assert_ne!(drawn(1, 0), drawn(1, 1));
        assert_ne!(drawn(1, 0), drawn(2, 0));
        assert!(drawn(1, 0).iter().all(|y| (0.0..1.0).contains(y)));
    }

    #[test]
    fn a_rise_misses_the_bar() {
        let fitted = Some(Exponent {
            value: -2.0,
            interval: [-2.1, -1.9],
            misfit: 1.0,
        });
        let verdict = |means: &[f64]| bar(Placing::Even, means, fitted).verdict;
        assert_eq!(verdict(&[4.0, 1.0, 0.25]), Verdict::Met);
        assert!(matches!(verdict(&[4.0, 1.0, 1.5]), Verdict::Missed(_)));
        assert!(matches!(
            bar(Placing::Random, &[1.0], None).verdict,
            Verdict::Missed(_)
        ));
    }
}
