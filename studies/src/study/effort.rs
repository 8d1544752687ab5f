//! How much a swarm pushes once it is there, against how many push.

use super::{Scope, Study};
use crate::cell::{Cell, Outcome, Outcomes, Work};
use crate::findings::{Bar, Findings, Picture, Table, Verdict};
use crate::fit::Exponent;
use crate::plot::{PALETTE, banded};
use crate::shelf::{Draw, Shelf};
use crate::study_policy::missing;
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Sweep, sweep_picture};
use agent_sim::table::number;
use artifacts::policy_file::PolicyFile;
use problem::published::fkpp_1d::PROBLEM;
use std::sync::Arc;

/// Σu² against the number of agents.
pub struct Effort;

/// How the names of policies trained with other weights of the effort begin.
const PREFIX: &str = "fkpp-1d-effort-";
/// Weights of the effort, of those in the paper; the shipped policy has its own.
const WEIGHTS: [f64; 4] = [0.001, 0.01, 0.05, 0.1];
const AGENTS: [usize; 7] = [15, 20, 30, 40, 60, 80, 120];
/// The share of an episode before the force is looked at (paper).
const SETTLING: f64 = 0.3;
/// A mean that is off the fit by more than this factor: there is no power law.
const MISFIT: f64 = 2.0;
/// The likely reason for a bar that is missed.
const CHATTER: &str = "the larger swarms chatter (see the swing): the loop's gain grows with the \
                       number of agents whose kernels overlap, and from some number on it is too high \
                       for the step. The error averages over the swings and stays small for longer.";
/// The exponents of the paper's claim, O(1/M), and of the data stored with it.
const CLAIMED: f64 = -1.0;
const STORED: &str = "−0.54 to −0.73";

/// A trial whose figures are, of the steps after the settling, `effort`, the mean of Σu², and `swing`,
/// the squared changes of all u from step to step over their squares: 0 for steady forces, 4 where
/// every force changes its sign in every step. And the final error.
struct LateEffort(SwarmWork);

const FIGURES: [&str; 3] = ["effort", "swing", "final"];

impl Work for LateEffort {
    fn key(&self) -> serde_json::Value {
        serde_json::json!({ "late effort": self.0.key(), "from": SETTLING })
    }

    fn pieces(&self) -> usize {
        self.0.pieces()
    }

    fn cost(&self) -> u64 {
        self.0.cost()
    }

    fn figures(&self) -> Vec<String> {
        FIGURES.map(String::from).to_vec()
    }

    fn draw(&self) -> Option<Draw> {
        self.0.draw()
    }

    fn run(&self, piece: usize, shelf: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
        let settled = (SETTLING * self.0.steps as f64).round() as usize;
        let (mut sum, mut changes, mut steps) = (0.0, 0.0, 0);
        let mut before: Vec<f32> = Vec::new();
        let score = self.0.watched(piece, shelf, &mut |snapshot| {
            if snapshot.step > settled {
                sum += snapshot.cost.squared_effort;
                let pairs = snapshot.deeds.iter().zip(&before);
                changes += pairs
                    .map(|(deed, before)| f64::from(deed.force - before).powi(2))
                    .sum::<f64>();
                steps += 1;
            }
            before = snapshot.deeds.iter().map(|deed| deed.force).collect();
        })?;
        Ok(score.map(|score| vec![sum / f64::from(steps), changes / sum, score.final_error]))
    }
}

/// A policy and how it was trained.
struct Contender {
    name: String,
    policy: Arc<PolicyFile>,
}

fn contenders(scope: &Scope) -> anyhow::Result<Vec<Contender>> {
    let mut all = vec![Contender {
        name: "shipped".to_owned(),
        policy: scope.policy(&PROBLEM)?,
    }];
    for varied in scope.study_policies(&PROBLEM, PREFIX)? {
        all.push(Contender {
            name: varied.value.to_string(),
            policy: varied.policy,
        });
    }
    Ok(all)
}

fn agents(scope: &Scope) -> &'static [usize] {
    &AGENTS[..scope.pick(3, AGENTS.len())]
}

fn cell(contender: &Contender, agents: usize) -> String {
    format!("{}, {agents}", contender.name)
}

impl Study for Effort {
    fn name(&self) -> &'static str {
        "effort"
    }

    fn title(&self) -> &'static str {
        "How much a swarm pushes, against how many push"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for contender in contenders(scope)? {
            for &agents in agents(scope) {
                let controls = Controls::Policy(contender.policy.clone());
                let trial = SwarmWork {
                    agents,
                    ..SwarmWork::fresh(scope, Setting::of(&PROBLEM), controls)
                };
                cells.push(Cell::new(cell(&contender, agents), LateEffort(trial)));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let contenders = contenders(scope)?;
        let there = scope.study_policies(&PROBLEM, PREFIX)?;
        let there: Vec<f64> = there.iter().map(|varied| varied.value).collect();
        let mut findings = Findings {
            about: vec![
                format!(
                    "`fkpp-1d`: Σu² over all agents, its mean over the last {:.0} % of an episode and \
                     over {} fresh episodes, with M agents, for policies trained with other weights of \
                     the effort in the loss. The exponent is that of a power of M fitted to these means \
                     by least squares on logarithms; its interval holds 95 % of the exponents of 2000 \
                     redraws of the episodes. Where a mean is off the fit by a factor of more than \
                     {MISFIT}, no power of M describes them, and the exponent says only whether they \
                     rise or fall. The swing is Σ(Δu)² over Σu², Δu the change from one step to the next: \
                     near 0 for steady forces, 4 where every force changes its sign in every step. The paper claims O(1/M); the data stored with it, of one \
                     episode each, give {STORED} from 15 to 60 agents.",
                    100.0 * (1.0 - SETTLING),
                    scope.episodes(),
                ),
                missing(&WEIGHTS, &there, PREFIX, "--weight effort="),
            ],
            ..Findings::default()
        };
        findings.about.retain(|text| !text.is_empty());
        findings.csv_head(&["effort_weight", "policy", "agents", "figure"]);
        let mut rows = Vec::new();
        let mut swings = Vec::new();
        let mut series = Vec::new();
        for (index, contender) in contenders.iter().enumerate() {
            let mut efforts = Vec::new();
            let mut curve = Vec::new();
            let mut row = vec![
                contender.name.clone(),
                contender.policy.hash()[..12].to_owned(),
            ];
            let mut swing = row.clone();
            let mut errors = Vec::new();
            for &agents in agents(scope) {
                let outcome: &Outcome = outcomes.of(&cell(contender, agents))?;
                for figure in FIGURES {
                    let hash = contender.policy.hash();
                    let labels = [&contender.name, &hash[..12], &agents.to_string(), figure];
                    findings.csv_row(&labels, &outcome.figure(figure));
                }
                let effort = outcome.figure("effort");
                row.push(effort.text());
                swing.push(outcome.figure("swing").text());
                errors.push(outcome.figure("final"));
                curve.push((agents as f64, effort));
                if effort.blown == 0 {
                    efforts.push((agents as f64, outcome.values("effort")));
                }
            }
            let fitted = Exponent::fit(&efforts, scope.seed);
            let (text, verdict) = match fitted {
                Some(exponent) if exponent.misfit > MISFIT => {
                    let off = format!("missed: no power law, off by {:.1} times", exponent.misfit);
                    (exponent.to_string(), Verdict::Missed(off))
                }
                Some(exponent) => (exponent.to_string(), Verdict::Met),
                None => ("–".to_owned(), Verdict::Missed("missed: no fit".to_owned())),
            };
            let what = format!("exponent, weight {}", contender.name);
            let bar = "a power of M, measured with its interval";
            findings
                .bars
                .push(Bar::holds(what, bar, text.clone(), verdict).because(CHATTER));
            row.push(text);
            row.push(fitted.map_or("–".to_owned(), |fit| format!("{:.1}", fit.misfit)));
            row.push(match fitted {
                Some(exponent) if exponent.misfit > MISFIT => "no: no power law".to_owned(),
                Some(exponent) if exponent.allows(CLAIMED) => "yes".to_owned(),
                Some(exponent) if exponent.value < CLAIMED => "no: falls faster".to_owned(),
                Some(exponent) if exponent.value < 0.0 => "no: falls more slowly".to_owned(),
                Some(_) => "no: rises".to_owned(),
                None => "–".to_owned(),
            });
            let worst = errors.iter().map(|figure| figure.mean).fold(0.0, f64::max);
            row.push(number(worst));
            rows.push(row);
            swings.push(swing);
            series.push(banded(
                contender.name.clone(),
                PALETTE[index % PALETTE.len()],
                curve,
            ));
        }
        let mut head = vec!["effort's weight".to_owned(), "policy".to_owned()];
        head.extend(agents(scope).iter().map(|n| format!("M = {n}")));
        let short: Vec<&str> = head.iter().map(String::as_str).collect();
        let swings = Table::new("Swing of the forces", &short, swings);
        head.extend(["exponent", "off by", "1/M", "largest mean error"].map(String::from));
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        findings.tables.push(Table::new("Σu²", &head, rows));
        findings.tables.push(swings);
        let sweep = Sweep {
            title: "fkpp-1d: Σu² after settling against the number of agents",
            x_label: "agents M",
            y_label: "Σu², with one standard deviation",
            series: &series,
            references: &[],
            log_x: true,
        };
        findings.pictures.push(Picture {
            name: "agents".to_owned(),
            caption: "Σu² after settling against the number of agents".to_owned(),
            svg: sweep_picture(&sweep, &scope.foot())?,
        });
        Ok(findings)
    }
}
