//! `agent-sim sweep`: how a swarm fares with more or fewer agents and with more or fewer faults.

use super::campaign::left;
use super::eval::{evaluate, headline_name, notes};
use super::plant_args::PlantArgs;
use super::run::listing;
use super::scenario_args::ScenarioArgs;
use super::{VERSION, print, provenance, say_beforehand, use_threads};
use crate::controller::{Controller, ControllerKind, Experiment, YARDSTICKS};
use crate::fault::{Fault, Who, life::CRASH};
use crate::plant::Shared;
use crate::report::html::Page;
use crate::report::{self, DrawError, RGBColor, Scored, Series, Sweep, line};
use crate::scenario::{Scenario, Team};
use crate::table::{number, table};
use anyhow::bail;
use artifacts::output::{OutputFolder, tell};
use artifacts::seal;
use artifacts::shard::Shard;
use clap::Args;
use problem::metrics::Summary;
use problem::{Episode, Headline, Problems, input, limit};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Args)]
pub struct SweepArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    plant: PlantArgs,
    /// Numbers of agents: a list (4,8,16) or a range that doubles (5..320) [default: as published]
    #[arg(long, value_name = "LIST")]
    agents: Option<Counts>,
    /// Shares of the agents that the faults hit, e.g. 0,0.1,0.3,0.5; without --fault these agents
    /// are dead from the start
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    fault_fraction: Vec<f64>,
    /// Episodes: table (published), fresh (drawn by --seed) or the path of a .npy file
    #[arg(long, default_value = "fresh", value_name = "SET")]
    set: String,
    /// Episodes for each point
    #[arg(long, default_value_t = 20, value_name = "N")]
    episodes: usize,
    /// Compute only these points, e.g. 3/16: the third of sixteen shards, which may all write to one folder
    /// at a time; the same command without --shard then writes the results
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Folder for the table, the plot and the report; an interrupted sweep goes on there
    /// [default: out/sweep-<problem>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Numbers of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(Vec<usize>);

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is no list of numbers; write 4,8,16 or, for a range that doubles, 5..320"
            )
        };
        let number = |part: &str| part.trim().parse::<usize>().map_err(|_| wrong());
        let counts = match text.split_once("..") {
            None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from == 0 || to < from {
                    return Err(format!(
                        "the range {text} must begin at 1 or more and not end before it begins"
                    ));
                }
                let doubling = std::iter::successors(Some(from), |n| n.checked_mul(2));
                let mut counts: Vec<usize> = doubling.take_while(|n| *n < to).collect();
                counts.push(to);
                counts
            }
        };
        if counts.contains(&0) {
            return Err("a swarm of 0 agents controls nothing; begin at 1".to_owned());
        }
        let largest = counts.iter().copied().max().unwrap_or(0);
        limit::AGENTS
            .check(largest)
            .map_err(|error| error.to_string())?;
        Ok(Self(counts))
    }
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point {
    controller: ControllerKind,
    agents: usize,
    fraction: Option<f64>,
    /// None where the field blew up in some episode.
    summary: Option<Summary>,
}

/// What identifies a sweep: points of another one must not be taken for its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Identity {
    version: String,
    scenario: Scenario,
    episodes: usize,
    policy_hash: Option<String>,
}

/// What `--json` prints and `sweep.json` holds.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    identity: &'a Identity,
    headline: &'a str,
    points: &'a [Point],
}

const IDENTITY: &str = "sweep-identity.json";

pub fn sweep(args: &SweepArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let mut scenario = args.scenario.scenario()?;
    scenario.set.clone_from(&args.set);
    args.plant.settle(&mut scenario)?;
    if !args.fault_fraction.is_empty() && scenario.faults.is_empty() {
        scenario.faults.push(Fault::new(&CRASH));
    }
    let team = scenario.team(problems)?;
    let counts = match &args.agents {
        Some(Counts(counts)) => counts.clone(),
        None => vec![team.agents],
    };
    let fractions: Vec<Option<f64>> = match args.fault_fraction.is_empty() {
        true => vec![None],
        false => args.fault_fraction.iter().copied().map(Some).collect(),
    };
    limit::SWEEP.check_product([counts.len(), fractions.len()])?;
    // Everything is checked before the first point is run.
    let mut cells = Vec::new();
    for &agents in &counts {
        for &fraction in &fractions {
            let scenario = cell(&scenario, agents, fraction);
            cells.push((fraction, scenario.team(problems)?));
        }
    }
    let episodes = scenario.episodes(&team, Some(args.episodes))?;
    say_beforehand(&scenario, &team, scenario.resampled(&team)?.as_ref());

    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| format!("out/sweep-{}", team.problem.name).into());
    let plant = args.plant.open(&scenario, &team.problem)?;
    let folder = match args.shard {
        None => OutputFolder::claim(&folder)?,
        Some(shard) => OutputFolder::share(&folder, shard)?,
    };
    let identity = Identity {
        version: VERSION.to_owned(),
        scenario,
        episodes: episodes.len(),
        policy_hash: team.policy.as_ref().map(|file| file.hash()),
    };
    begin(&folder, &identity)?;
    let purpose = serde_json::to_string(&identity)?;

    let bench = Bench {
        folder: &folder,
        purpose: &purpose,
        episodes: &episodes,
        plant: plant.as_ref(),
    };
    let kinds = contestants(team.kind).into_iter();
    let asked = kinds.flat_map(|kind| {
        (cells.iter()).map(move |(fraction, team)| Asked {
            kind,
            fraction: *fraction,
            team,
        })
    });
    let asked: Vec<Asked> = asked.collect();
    if let Some(shard) = args.shard {
        return sweep_shard(args, shard, &bench, &asked);
    }
    let points = asked.iter().map(|asked| bench.point(asked));
    let points: Vec<Point> = points.collect::<anyhow::Result<_>>()?;
    conclude(&folder, &identity, &team, &points, args.json)
}

/// Computes the points of a shard, and says what is left to others.
fn sweep_shard(
    args: &SweepArgs,
    shard: Shard,
    bench: &Bench,
    asked: &[Asked],
) -> anyhow::Result<()> {
    // Each file once: several points can be one.
    let mut files = BTreeSet::new();
    let all: Vec<&Asked> = asked.iter().filter(|a| files.insert(a.file())).collect();
    let points = shard.count(all.len());
    for part in shard.parts().take(points) {
        bench.point(all[part])?;
    }
    let there = |asked: &&&Asked| bench.folder.path().join(asked.file()).exists();
    let missing = all.len() - all.iter().filter(there).count();
    if args.json {
        let summary = json!({
            "version": VERSION,
            "shard": shard.to_string(),
            "points": points,
            "missing": missing,
        });
        return print(&(serde_json::to_string_pretty(&summary)? + "\n"));
    }
    print(&format!(
        "shard {shard}: {points} points in {}\n{}\n",
        bench.folder.path().display(),
        left(missing, "points")
    ))
}

/// The controllers of a sweep: the one asked for and the yardsticks.
fn contestants(asked: ControllerKind) -> Vec<ControllerKind> {
    let mut kinds = vec![asked];
    let yardsticks = YARDSTICKS.into_iter().rev();
    kinds.extend(yardsticks.filter(|kind| *kind != asked));
    kinds
}

/// The scenario of one point.
fn cell(scenario: &Scenario, agents: usize, fraction: Option<f64>) -> Scenario {
    let mut cell = scenario.clone();
    cell.agents = Some(agents);
    if let Some(share) = fraction {
        for fault in &mut cell.faults {
            fault.who = Who::Fraction(share);
        }
    }
    cell
}

/// Refuses a folder that holds points of another sweep.
fn begin(folder: &OutputFolder, identity: &Identity) -> anyhow::Result<()> {
    let path = folder.path().join(IDENTITY);
    match input::read_text(&path, input::FIGURES) {
        Ok(text) => {
            let there: Option<Identity> = serde_json::from_str(&text).ok();
            if there.as_ref() != Some(identity) {
                bail!(
                    "{} holds another sweep (another scenario, policy, version or number of \
                     episodes); choose another folder with --out or delete it",
                    folder.path().display()
                );
            }
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            bail!("cannot read {}: {error}", path.display());
        }
        Err(_) => {
            folder.write(IDENTITY, serde_json::to_string_pretty(identity)?.as_bytes())?;
        }
    }
    Ok(())
}

/// A point in its file, with the checksum of it and of what it is for.
#[derive(Serialize, Deserialize)]
struct Kept {
    sha256: String,
    point: Point,
}

impl Kept {
    fn new(point: Point, purpose: &str) -> anyhow::Result<Self> {
        Ok(Self {
            sha256: seal::checksum(purpose, serde_json::to_string(&point)?.as_bytes()),
            point,
        })
    }

    /// The point of a file that was written for this purpose and not changed since.
    fn read(text: &str, purpose: &str) -> Option<Point> {
        let Self { sha256, point } = serde_json::from_str(text).ok()?;
        let again = Self::new(point, purpose).ok()?;
        (again.sha256 == sha256).then_some(again.point)
    }
}

/// A point that is to be computed.
struct Asked<'a> {
    kind: ControllerKind,
    fraction: Option<f64>,
    team: &'a Team,
}

impl Asked<'_> {
    /// What its file is called.
    fn file(&self) -> String {
        let (agents, share) = (self.team.agents, self.fraction);
        let share = share.map_or_else(String::new, |share| format!("-{share}"));
        let name = self.kind.name;
        match self.kind.has_agents {
            // Nobody is nobody, however many there are of them and whatever happens to them.
            false => format!("point-{name}.json"),
            true => format!("point-{name}-{agents}{share}.json"),
        }
    }
}

/// On what the points of a sweep are computed, and where they are kept.
struct Bench<'a> {
    folder: &'a OutputFolder,
    purpose: &'a str,
    episodes: &'a [Episode],
    plant: Option<&'a Shared>,
}

impl Bench<'_> {
    /// Runs one point, unless the folder has it.
    fn point(&self, asked: &Asked) -> anyhow::Result<Point> {
        let &Asked {
            kind,
            fraction,
            team,
        } = asked;
        let name = asked.file();
        // No point for another: the same episodes under the same name.
        let purpose = format!("{} {name}", self.purpose);
        let kept = input::read_text(&self.folder.path().join(&name), input::FIGURES);
        let there = !matches!(&kept, Err(error) if error.kind() == ErrorKind::NotFound);
        if let Some(point) = kept.ok().and_then(|text| Kept::read(&text, &purpose)) {
            return Ok(Point {
                agents: team.agents,
                fraction,
                ..point
            });
        }
        if there {
            tell(&format!(
                "note: {name} is damaged or was changed; its point is computed again"
            ));
        }
        let policy = team.parsed_policy();
        let experiment = Experiment {
            plant: self.plant,
            ..team.experiment(policy.as_ref())
        };
        let experiment = match kind {
            _ if kind == team.kind => experiment,
            kind => Experiment {
                controller: (kind.yardstick)(&team.problem, team.agents)
                    .unwrap_or(Controller::None),
                ..experiment
            },
        };
        let summary = match evaluate(&experiment, self.episodes, kind.name) {
            Ok(summary) => Some(summary),
            Err(ended) if ended.is_blown_up() => None,
            Err(ended) => bail!(
                "{ended}\nThe points before are kept in {}; the same command goes on there",
                self.folder.path().display()
            ),
        };
        let point = Point {
            controller: kind,
            agents: team.agents,
            fraction,
            summary,
        };
        let kept = Kept::new(point, &purpose)?;
        let text = serde_json::to_string_pretty(&kept)?;
        self.folder.write(&name, text.as_bytes())?;
        Ok(kept.point)
    }
}

fn conclude(
    folder: &OutputFolder,
    identity: &Identity,
    team: &Team,
    points: &[Point],
    json: bool,
) -> anyhow::Result<()> {
    let problem = &team.problem;
    let outcome = Outcome {
        identity,
        headline: headline_name(problem),
        points,
    };
    let text = serde_json::to_string_pretty(&outcome)? + "\n";
    let mut source = provenance(problem, identity.scenario.seed, team.policy.as_ref());
    if let Some(plant) = &identity.scenario.plant {
        source += &format!(" · plant '{plant}'");
    }
    let picture = picture(team, points, &source)?;
    let rows = point_rows(team, points);
    let summary = format!(
        "{}. Each point is the mean over {} episodes of the {} set.",
        problem.summary, identity.episodes, identity.scenario.set
    );
    let mut page = Page::new(format!("{}: a sweep", problem.name), summary)
        .provenance(&source)
        .scores(rows.clone())
        .note(notes(problem, team.agents))
        .picture(
            "Means with one standard deviation over the episodes.",
            &picture,
        )
        .scenario(identity.scenario.to_toml());
    for fault in &identity.scenario.faults {
        page = page.fault(fault.to_string());
    }
    let written = vec![
        folder.write("sweep.json", text.as_bytes())?,
        folder.write("sweep.csv", csv(points).as_bytes())?,
        folder.write("sweep.svg", picture.as_bytes())?,
        folder.write("report.html", page.html().as_bytes())?,
    ];
    if json {
        return print(&text);
    }
    print(&format!(
        "{source} · {} episodes of the {} set for each point\n\n{}\n{}",
        identity.episodes,
        identity.scenario.set,
        table(&rows),
        listing(&written)
    ))
}

fn csv(points: &[Point]) -> String {
    let mut text = String::from(
        "controller,agents,fault_fraction,final_mean,final_std,final_median,final_p95,final_worst,\
         time_mean,time_mean_std,effort,travel,intrusion\n",
    );
    for point in points {
        let share = point
            .fraction
            .map_or_else(String::new, |share| share.to_string());
        let start = format!("{},{},{share}", point.controller.name, point.agents);
        match &point.summary {
            None => writeln!(text, "{start},blew up,,,,,,,,,"),
            Some(s) => writeln!(
                text,
                "{start},{:e},{:e},{:e},{:e},{:e},{:e},{:e},{:e},{:e},{:e}",
                s.final_error.mean,
                s.final_error.std,
                s.final_error.median,
                s.final_error.p95,
                s.final_error.worst,
                s.time_mean.mean,
                s.time_mean.std,
                s.effort.mean,
                s.travel.mean,
                s.intrusion.mean
            ),
        }
        .expect("to a string");
    }
    text
}

/// One row per point: the headline figure of each controller side by side.
fn point_rows(team: &Team, points: &[Point]) -> Vec<Vec<String>> {
    let kinds = contestants(team.kind);
    let scoring = team.problem.scoring;
    let mut head = vec!["agents".to_owned(), "fault share".to_owned()];
    for kind in &kinds {
        head.extend([kind.name.to_owned(), "± std".to_owned()]);
    }
    let mut rows = vec![head];
    let each = points.len() / kinds.len();
    for index in 0..each {
        let first = &points[index];
        let share = first
            .fraction
            .map_or_else(|| "–".to_owned(), |share| share.to_string());
        let mut row = vec![first.agents.to_string(), share];
        for point in points[index..].iter().step_by(each) {
            row.extend(match &point.summary {
                None => ["blew up".to_owned(), String::new()],
                Some(summary) => {
                    let figure = summary.headline(scoring);
                    [number(figure.mean), number(figure.std)]
                }
            });
        }
        rows.push(row);
    }
    rows
}

/// The headline figure against the number of agents, or against the share of broken ones where
/// there is only one number of agents.
fn picture(team: &Team, points: &[Point], source: &str) -> Result<String, DrawError> {
    let problem = &team.problem;
    let by_share = points.iter().all(|point| point.agents == points[0].agents);
    let mut series: Vec<Series> = Vec::new();
    for point in points {
        let name = match (by_share, point.fraction) {
            (false, Some(share)) => {
                format!("{}, {:.0} % hit", point.controller.name, 100.0 * share)
            }
            _ => point.controller.name.to_owned(),
        };
        let Some(figure) = point.summary.as_ref().map(|s| s.headline(problem.scoring)) else {
            continue;
        };
        // The field's own spread is no news, and its band would cover everybody's.
        let std = match point.controller {
            kind if !kind.has_agents => 0.0,
            _ => figure.std,
        };
        let scored = Scored {
            x: match by_share {
                true => point.fraction.unwrap_or(0.0),
                false => point.agents as f64,
            },
            mean: figure.mean,
            low: (figure.mean - std).max(0.0),
            high: figure.mean + std,
        };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(scored),
            None => series.push(Series {
                name,
                colour: colour(point.controller, &series),
                points: vec![scored],
            }),
        }
    }
    let what = match problem.scoring.headline {
        Headline::Final => "final mean squared error",
        Headline::TimeMean => "time-mean squared error",
    };
    report::sweep_picture(
        &Sweep {
            title: &format!("{}: {what}", problem.name),
            x_label: if by_share {
                "share of agents hit"
            } else {
                "agents"
            },
            y_label: what,
            series: &series,
            references: &[],
            log_x: !by_share,
        },
        source,
    )
}

/// The colour of a controller's curve; curves of the same controller beside it get others.
fn colour(kind: ControllerKind, before: &[Series]) -> RGBColor {
    const MORE: [RGBColor; 3] = [line::GREEN, line::VERMILION, line::PURPLE];
    match before.iter().any(|series| series.colour == kind.colour) {
        false => kind.colour,
        true => MORE[before.len() % MORE.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double_and_keep_their_end() {
        let counts = |text: &str| text.parse::<Counts>().map(|c| c.0);
        assert_eq!(counts("5..320"), Ok(vec![5, 10, 20, 40, 80, 160, 320]));
        assert_eq!(counts("4..10"), Ok(vec![4, 8, 10]));
        assert_eq!(counts("7..7"), Ok(vec![7]));
        assert_eq!(counts("4, 8,16"), Ok(vec![4, 8, 16]));
        for wrong in ["", "x", "8..4", "0..4", "3,0", "4...8"] {
            assert!(counts(wrong).is_err(), "{wrong}");
        }
    }
}
