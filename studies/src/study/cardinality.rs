//! How one policy fares in swarms of other sizes.

use super::{Scope, Study, curve_of};
use crate::cell::{Cell, Figure, Outcomes};
use crate::findings::{Bar, Findings, Picture, Table, Verdict, share, share_within};
use crate::swarm_work::{Controls, Setting, SwarmWork};
use agent_sim::report::{Reference, Sweep, SweepPanel, line, sweep_panels};
use agent_sim::table::number;
use problem::Problem;

/// Error against the number of agents.
pub struct Cardinality;

/// Numbers of agents, over the published one.
const MULTIPLES: [f64; 14] = [
    0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0,
];

/// Up to here proportional feedback runs beside the policy: its agents where they stir sense the
/// whole plane each, which takes half a minute an episode at the far end.
const FEEDBACK: f64 = 16.0;

/// What still counts as working, over the error at the published number.
const WORKS: f64 = 2.5;

/// The range in which the paper's policies work (its zero-shot table; 1 to 5 episodes, policies
/// trained for it separately), and why ours may not.
fn published(problem: &Problem) -> Option<([f64; 2], &'static str)> {
    match problem.name {
        // 20 of 30: 14 are the fewest of 20 that are no smaller a part.
        "fkpp-1d" => Some(([0.7, 5.0], "")),
        "heat-1d" => Some(([0.5, 4.0], "")),
        "heat-2d" => Some(([1.0, 16.0], "")),
        "ks-1d" => Some((
            [0.5, 3.0],
            "four evenly spaced actuators sit on the nodes of one phase of the second wave, six on \
             those of the third; both waves grow, and nothing can reach them from there",
        )),
        "ks-2d" => Some((
            [144.0 / 196.0, 256.0 / 196.0],
            "from a lattice of nine by nine the fourth and the fifth wave look alike, and both grow; \
             feedback that is told the number fares no better",
        )),
        "turbulence-2d" => Some((
            [36.0 / 64.0, 16.0],
            "six by six actuators leave gaps between them; feedback that is told the number fares no \
             better",
        )),
        "density-2d" => Some((
            [0.25, 64.0],
            "fans add up: a larger swarm carries the cloud past its target, too slowly for outputs \
             to alternate, so the governor sees little; a smaller one has not the speed",
        )),
        _ => None,
    }
}

/// A row of the paper's zero-shot table whose swarm is another than that of its results table.
struct ZeroShot {
    problem: &'static str,
    /// Circumference, grid points and steps, where they differ too.
    circle: Option<(f64, usize, usize)>,
    /// The number that the paper trained with.
    trained: usize,
    /// The smallest and the largest that it calls stable.
    ends: [usize; 2],
    /// Its errors there, over that of the trained number.
    published: [f64; 2],
}

const ZERO_SHOT: [ZeroShot; 5] = [
    ZeroShot::new("fkpp-1d", 30, [20, 150], [1.1497, 1.2873]),
    ZeroShot::new("heat-1d", 30, [15, 120], [1.4565, 2.0786]),
    ZeroShot {
        circle: Some((32.0, 256, 400)),
        ..ZeroShot::new("ks-1d", 30, [15, 90], [0.9975, 1.1442])
    },
    ZeroShot::new("ks-2d", 196, [144, 256], [0.4502, 2.3010]),
    ZeroShot::new("density-2d", 16, [4, 1024], [1.4153, 0.8371]),
];

impl ZeroShot {
    const fn new(
        problem: &'static str,
        trained: usize,
        ends: [usize; 2],
        published: [f64; 2],
    ) -> Self {
        Self {
            problem,
            circle: None,
            trained,
            ends,
            published,
        }
    }

    fn cell(&self, agents: usize) -> String {
        format!("zero-shot, {}, {agents}", self.problem)
    }

    fn trial(&self, scope: &Scope, agents: usize) -> anyhow::Result<SwarmWork> {
        let problem = problem::published::by_name(self.problem)?;
        let policy = Controls::Policy(scope.policy(problem)?);
        let (setting, steps) = match self.circle {
            None => (Setting::of(problem), problem.horizon),
            Some((length, points, steps)) => {
                let setting = Setting::of(problem).physics(&[("length", length)])?;
                (setting.grid(points)?, steps)
            }
        };
        Ok(SwarmWork {
            agents,
            steps,
            ..SwarmWork::fresh(scope, setting, policy)
        })
    }

    fn row(&self, outcomes: &Outcomes) -> anyhow::Result<Vec<String>> {
        // Final errors, as in the paper's.
        let error = |agents| -> anyhow::Result<Figure> {
            Ok(outcomes.of(&self.cell(agents))?.figure("final"))
        };
        let home = error(self.trained)?;
        let mut row = vec![
            match self.circle {
                Some((length, ..)) => format!("`{}`, length {length}", self.problem),
                None => format!("`{}`", self.problem),
            },
            self.trained.to_string(),
            home.text(),
        ];
        for (agents, published) in self.ends.into_iter().zip(self.published) {
            let relative = error(agents)?.mean / home.mean;
            row.extend([
                agents.to_string(),
                share_within(relative, WORKS),
                share(published),
            ]);
        }
        Ok(row)
    }
}

/// The swarms of the paper's zero-shot table; a quick run leaves them out.
fn zero_shot(scope: &Scope) -> &'static [ZeroShot] {
    scope.pick(&[], &ZERO_SHOT)
}

/// The aim for all problems.
const AIM: [f64; 2] = [0.5, 32.0];

impl Study for Cardinality {
    fn name(&self) -> &'static str {
        "cardinality"
    }

    fn title(&self) -> &'static str {
        "One policy in swarms of 1/8 to 128 times the published size"
    }

    fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for problem in problem::published::measured() {
            let setting = Setting::of(problem);
            let nobody = SwarmWork::fresh(scope, setting.clone(), Controls::Nobody);
            cells.push(Cell::new(name(problem, &nobody.controls, 0), nobody));
            for agents in counts(scope, problem) {
                let mut both = vec![Controls::Policy(scope.policy(problem)?)];
                both.extend(has_feedback(problem, agents).then_some(Controls::Proportional));
                for controls in both {
                    let trial = SwarmWork {
                        agents,
                        ..SwarmWork::fresh(scope, setting.clone(), controls)
                    };
                    cells.push(Cell::new(name(problem, &trial.controls, agents), trial));
                }
            }
        }
        for row in zero_shot(scope) {
            for agents in [row.trained].into_iter().chain(row.ends) {
                cells.push(Cell::new(row.cell(agents), row.trial(scope, agents)?));
            }
        }
        Ok(cells)
    }

    fn conclude(&self, scope: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
        let mut findings = Findings {
            about: vec![format!(
                "The policies of the results table, unchanged, with other numbers of agents than the \
                 published one; {} fresh episodes each, the figure of the results table. On planes \
                 numbers are squares, because swarms start on square lattices. A swarm works where \
                 its error is at most {:.0} % of that of the published swarm; the range is that \
                 around the published number without a gap. The paper's ranges are of policies \
                 trained for that table alone, from 1 to 5 episodes.",
                scope.episodes(),
                100.0 * WORKS
            )],
            ..Findings::default()
        };
        findings.csv_head(&["problem", "agents", "multiple", "controller", "relative"]);
        let mut ranges = Vec::new();
        let mut points = Vec::new();
        let mut curves = Vec::new();
        for problem in problem::published::measured() {
            let figure = |controls: &Controls, agents| -> anyhow::Result<Figure> {
                let outcome = outcomes.of(&name(problem, controls, agents))?;
                Ok(outcome.figure("headline"))
            };
            let policy = Controls::Policy(scope.policy(problem)?);
            let counts = counts(scope, problem);
            let at_home = figure(&policy, problem.agents)?;
            let nobody = figure(&Controls::Nobody, 0)?;
            let mut curve = Vec::new();
            let mut feedback = Vec::new();
            for &agents in &counts {
                let multiple = agents as f64 / problem.agents as f64;
                let ours = figure(&policy, agents)?;
                let theirs = match has_feedback(problem, agents) {
                    true => Some(figure(&Controls::Proportional, agents)?),
                    false => None,
                };
                let relative = ours.mean / at_home.mean;
                for (name, figure) in [("policy", Some(ours)), ("proportional", theirs)] {
                    let Some(figure) = figure else { continue };
                    let [agents, multiple] = [agents.to_string(), format!("{multiple:.3}")];
                    let relative = format!("{:.4}", figure.mean / at_home.mean);
                    findings.csv_row(
                        &[problem.name, &agents, &multiple, name, &relative],
                        &figure,
                    );
                }
                points.push(vec![
                    format!("`{}`", problem.name),
                    agents.to_string(),
                    format!("{multiple:.2}×"),
                    ours.text(),
                    share_within(relative, WORKS),
                    theirs.map_or("–".to_owned(), |theirs| theirs.text()),
                ]);
                feedback.extend(theirs.map(|theirs| (multiple, theirs.mean / at_home.mean)));
                curve.push((agents, relative));
            }
            let (low, high) = range(&curve, problem.agents, WORKS);
            let times = |agents: usize| number_of_times(agents, problem);
            let text = format!("{}–{}×", times(low), times(high));
            let covers = |[from, to]: [f64; 2]| {
                low <= nearest(problem, from) && nearest(problem, to) <= high
            };
            if let Some((paper, reason)) = published(problem) {
                let [from, to] = paper.map(|end| nearest(problem, end));
                let verdict = match (
                    counts.contains(&from) && counts.contains(&to),
                    covers(paper),
                ) {
                    (false, _) => Verdict::LeftOut("a quick run does not go so far".to_owned()),
                    (true, true) => Verdict::Met,
                    (true, false) => Verdict::Missed(format!("missed: works for {low} to {high}")),
                };
                let bar = format!(
                    "works for {from} to {to} agents ({:.2}–{:.1}×)",
                    paper[0], paper[1]
                );
                let bar = Bar::holds(
                    problem.name,
                    bar,
                    format!("{low} to {high} ({text})"),
                    verdict,
                );
                findings.bars.push(bar.because(reason));
            }
            ranges.push(vec![
                format!("`{}`", problem.name),
                problem.agents.to_string(),
                at_home.text(),
                number(nobody.mean),
                text,
                published(problem).map_or("–".to_owned(), |(paper, _)| {
                    format!("{:.2}–{:.1}×", paper[0], paper[1])
                }),
                if covers(AIM) { "yes" } else { "no" }.to_owned(),
            ]);
            let multiple = |(agents, relative): &(usize, f64)| {
                (*agents as f64 / problem.agents as f64, *relative)
            };
            curves.push((
                problem,
                [
                    curve_of("policy", line::BLUE, curve.iter().map(multiple)),
                    curve_of("proportional", line::ORANGE, feedback),
                ],
            ));
        }
        let head = [
            "",
            "agents",
            "error",
            "no control",
            "works for",
            "the paper",
            "0.5–32×",
        ];
        findings.tables.push(Table::new("Ranges", &head, ranges));
        let head = [
            "",
            "agents",
            "",
            "error",
            "of the published swarm's",
            "proportional feedback",
        ];
        findings
            .tables
            .push(Table::new("All points", &head, points));
        let rows = zero_shot(scope).iter().map(|row| row.row(outcomes));
        let rows: Vec<Vec<String>> = rows.collect::<anyhow::Result<_>>()?;
        if !rows.is_empty() {
            let head = [
                "",
                "the paper trained with",
                "error",
                "agents",
                "",
                "the paper",
                "agents",
                "",
                "the paper",
            ];
            let title = "The shipped policies in the swarms of the paper's zero-shot table, where those \
                         are not the ones above: final errors, over that with as many agents as the \
                         paper trained with";
            findings.tables.push(Table::new(title, &head, rows));
        }
        let references = [Reference {
            name: "250 %".to_owned(),
            y: WORKS,
        }];
        let panels: Vec<SweepPanel<'_>> = curves
            .iter()
            .map(|(problem, series)| SweepPanel {
                sweep: Sweep {
                    title: problem.name,
                    x_label: "agents, over the published number",
                    y_label: "error, over the policy's there",
                    series,
                    references: &references,
                    log_x: true,
                },
                shaded: published(problem).map(|(ends, _)| ends),
            })
            .collect();
        findings.pictures.push(Picture {
            name: "panels".to_owned(),
            caption: "Error against the number of agents, over those of the published swarm; \
                      shaded: where the paper's policies work"
                .to_owned(),
            svg: sweep_panels(&panels, &scope.foot())?,
        });
        Ok(findings)
    }
}

fn has_feedback(problem: &Problem, agents: usize) -> bool {
    agents as f64 <= FEEDBACK * problem.agents as f64
}

fn name(problem: &Problem, controls: &Controls, agents: usize) -> String {
    format!("{}, {}, {agents}", problem.name, controls.name())
}

/// Numbers of agents, rising; the published one is among them.
fn counts(scope: &Scope, problem: &Problem) -> Vec<usize> {
    let multiples = scope.pick(vec![0.5, 1.0, 2.0], MULTIPLES.to_vec());
    let ends = published(problem).map_or(Vec::new(), |(ends, _)| ends.to_vec());
    let ends = scope.pick(Vec::new(), ends);
    let mut counts: Vec<usize> = multiples
        .into_iter()
        .chain(ends)
        .map(|multiple| nearest(problem, multiple))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The number of agents nearest to a multiple of the published one, by their ratio; on planes a
/// square.
fn nearest(problem: &Problem, multiple: f64) -> usize {
    let wanted = multiple * problem.agents as f64;
    if problem.grid.axes == 1 {
        return (wanted.round() as usize).max(1);
    }
    let below = (wanted.sqrt() as usize).max(1);
    let (small, large) = (below * below, (below + 1) * (below + 1));
    match wanted / (small as f64) < large as f64 / wanted {
        true => small,
        false => large,
    }
}

fn number_of_times(agents: usize, problem: &Problem) -> String {
    let multiple = agents as f64 / problem.agents as f64;
    let digits = if multiple < 10.0 { 2 } else { 0 };
    let text = format!("{multiple:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The smallest and the largest of the numbers around `home` up to which no error is above `limit`.
fn range(curve: &[(usize, f64)], home: usize, limit: f64) -> (usize, usize) {
    let good = |(_, error): &&(usize, f64)| *error <= limit;
    let below = curve.iter().rev().filter(|(agents, _)| *agents < home);
    let above = curve.iter().filter(|(agents, _)| *agents > home);
    let low = below.take_while(good).last().map_or(home, |p| p.0);
    let high = above.take_while(good).last().map_or(home, |p| p.0);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    #[test]
    fn a_range_ends_at_the_first_failure_on_each_side() {
        let curve = [
            (1, 1.0),
            (2, 9.0),
            (4, 2.5),
            (8, 1.0),
            (16, 0.1),
            (32, 2.6),
            (64, 1.0),
        ];
        assert_eq!(range(&curve, 8, 2.5), (4, 16));
        let lost = [(4, f64::INFINITY), (8, 1.0), (16, f64::NAN)];
        assert_eq!(range(&lost, 8, 2.5), (8, 8));
        assert_eq!(range(&[(8, 1.0), (16, 2.0)], 8, 2.5), (8, 16));
    }

    #[test]
    fn planes_get_squares_and_every_list_has_the_published_number() {
        // 0.7 · 100 = 70 lies nearer to 64 than to 81 (1.09 and 1.16 times).
        let ks = problem::published::by_name("ks-2d").unwrap();
        assert_eq!(nearest(ks, 0.7), 64);
        assert_eq!(
            nearest(problem::published::by_name("density-2d").unwrap(), 0.01),
            1
        );
        assert_eq!(
            nearest(problem::published::by_name("heat-1d").unwrap(), 0.7),
            6
        );
        for mode in [Mode::Quick, Mode::Full] {
            let scope = Scope::new(mode, 1, None, String::new());
            for problem in problem::published::measured() {
                let counts = counts(&scope, problem);
                assert!(counts.contains(&problem.agents), "{}", problem.name);
                assert!(counts.is_sorted());
            }
        }
    }
}
