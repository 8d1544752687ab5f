//! `agent-sim campaign`: thousands of runs held to what is required.

use super::odds::{passed, share_text};
use super::progress::Progress;
use super::rig_args::RigArgs;
use super::run::{csv, listing, refuse_real_boards, rig};
use super::{VERSION, print, provenance, use_threads};
use crate::campaign::{Ledger, Points, Record, Space, Tally};
use crate::report::html::Page;
use crate::report::{self, Against, Shown, line};
use crate::requirement::Verdict;
use crate::scenario::{Scenario, Team};
use crate::table::{number, table};
use crate::trajectory::Trajectory;
use anyhow::{anyhow, bail};
use artifacts::output::{OutputFolder, tell};
use artifacts::shard::Shard;
use clap::Args;
use problem::{Problems, input};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct CampaignArgs {
    /// File (TOML): a scenario with ranges in place of values, and what is required (docs/campaigns.md)
    file: PathBuf,
    #[command(flatten)]
    rig: RigArgs,
    /// Runs to make, in place of what the file says; a grid has its own number
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Seed of the sampling, in place of what the file says
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Make only these runs, e.g. 3/16: the third of sixteen shards, which may all write to one folder at a
    /// time; the same command without --shard then writes the results
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Folder for what comes out; an interrupted campaign goes on there [default: out/campaign-<file>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The worst runs that are shown.
const SHOWN: usize = 10;
/// How long the runs take that are kept together: what is lost at most when the program is stopped.
const TOGETHER: Duration = Duration::from_secs(2);
/// Most failed runs that a test report names one by one.
const NAMED: usize = 100;

/// Runs points of a space and judges them, on boards where scenarios have any.
pub struct Court<'c> {
    pub space: &'c Space,
    pub problems: &'c Problems,
    rig: &'c RigArgs,
    patience: Duration,
}

impl<'c> Court<'c> {
    pub fn new(space: &'c Space, problems: &'c Problems, rig: &'c RigArgs) -> anyhow::Result<Self> {
        Ok(Self {
            space,
            problems,
            rig,
            patience: rig.patience()?,
        })
    }

    /// The scenario at a point.
    pub fn scenario(&self, point: &[f64]) -> anyhow::Result<Scenario> {
        let mut scenario = self.space.scenario(point)?;
        if self.rig.links.is_empty() {
            refuse_real_boards(&scenario.links)?;
        } else {
            scenario.links = self.rig.boards()?;
        }
        Ok(scenario)
    }

    /// How a scenario fares.
    pub fn judge(&self, scenario: &Scenario) -> anyhow::Result<Verdict> {
        let team = scenario.team(self.problems)?;
        let episode = scenario.episode(&team)?;
        if team.links.is_empty() && team.realtime.is_none() {
            return Ok(team.judged(&episode, None, &mut |_| {}).1);
        }
        let policy = team.parsed_policy();
        let boards = rig(self.rig, self.patience, &team, policy.as_ref(), &episode)?;
        Ok(team.judged(&episode, boards.as_ref(), &mut |_| {}).1)
    }

    fn judge_point(&self, run: usize, point: &[f64]) -> anyhow::Result<Record> {
        let judged = self
            .scenario(point)
            .and_then(|scenario| self.judge(&scenario));
        let verdict = judged.map_err(|error| {
            let values = self.space.varied.iter().zip(self.space.values(point));
            let at: Vec<String> = values
                .map(|(varied, value)| format!("{} = {value}", varied.name))
                .collect();
            anyhow!("run {run} cannot be made ({}): {error}", at.join("; "))
        })?;
        Ok(Record::new(run, &verdict))
    }
}

/// A file that describes a space, perhaps with boards.
pub fn read_space(
    file: &Path,
    problems: &Problems,
    rig: &RigArgs,
) -> anyhow::Result<(Space, String)> {
    let name = file.display();
    let text = input::read_text(file, input::SCENARIO)
        .map_err(|error| anyhow!("cannot read the campaign {name}: {error}"))?;
    let mut space = Space::read(&text, problems).map_err(|error| anyhow!("{name}: {error}"))?;
    space.alone |= !rig.links.is_empty();
    Ok((space, text))
}

/// Where what comes of a file is written, unless somebody says otherwise.
pub fn folder_for(kind: &str, file: &Path) -> PathBuf {
    let stem = file
        .file_stem()
        .map_or("file".into(), |stem| stem.to_string_lossy().into_owned());
    format!("out/{kind}-{stem}").into()
}

pub fn campaign(args: &CampaignArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let (mut space, text) = read_space(&args.file, problems, &args.rig)?;
    space.settings.runs = args.runs.unwrap_or(space.settings.runs);
    space.settings.seed = args.seed.unwrap_or(space.settings.seed);
    problem::limit::RUNS.check(space.settings.runs)?;
    let runs = space.runs();
    if runs == 0 {
        bail!("a campaign of 0 runs shows nothing; give --runs 1 or more");
    }
    let court = Court::new(&space, problems, &args.rig)?;
    let middle = court.scenario(&space.middle())?;
    let team = middle.team(problems)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| folder_for("campaign", &args.file));
    let folder = match args.shard {
        None => OutputFolder::claim(&folder)?,
        Some(shard) => OutputFolder::share(&folder, shard)?,
    };
    let purpose = json!({
        "version": VERSION,
        "file": text,
        "runs": runs,
        "seed": space.settings.seed,
        "links": args.rig.links,
        "problem": std::fs::read_to_string(&middle.problem).ok(),
        "policy": team.policy.as_ref().map(|file| file.hash()),
    });
    let purpose = purpose.to_string();
    let mut ledger = Ledger::open(folder.path(), &purpose, args.shard)?;
    if ledger.damaged {
        tell("note: the last runs that were kept are damaged; they are made again");
    }
    let known = ledger.others()?;
    let share = Share::of(&ledger, &known, args.shard, runs);
    if share.there > 0 && share.there < share.runs {
        let Share { there, runs } = share;
        tell(&format!("note: {there} of {runs} runs are there already"));
    }
    make(&court, &mut ledger, args.shard, &known).map_err(|error| {
        anyhow!(
            "{error}\nThe runs before are kept in {}; the same command goes on there",
            folder.path().display()
        )
    })?;
    match args.shard {
        None => conclude(args, &court, &team, &folder, &ledger.records),
        Some(shard) => report_shard(args, shard, share, &ledger, runs),
    }
}

/// The runs that are a program's to make.
#[derive(Clone, Copy)]
struct Share {
    runs: usize,
    /// How many of them were made before.
    there: usize,
}

impl Share {
    fn of(
        ledger: &Ledger,
        known: &BTreeMap<usize, Record>,
        shard: Option<Shard>,
        runs: usize,
    ) -> Self {
        let shard = shard.unwrap_or(Shard::WHOLE);
        let own = ledger.records.len();
        let elsewhere = (shard.parts().skip(own))
            .take_while(|run| *run < runs)
            .filter(|run| known.contains_key(run));
        Self {
            runs: shard.count(runs),
            there: own + elsewhere.count(),
        }
    }
}

/// Makes the runs that are missing, of all or of a shard, but for those that are known.
fn make(
    court: &Court<'_>,
    ledger: &mut Ledger,
    shard: Option<Shard>,
    known: &BTreeMap<usize, Record>,
) -> anyhow::Result<()> {
    let shard = shard.unwrap_or(Shard::WHOLE);
    let runs = shard.count(court.space.runs());
    let progress = Progress::new(runs, "runs");
    progress.skip(ledger.records.len());
    let numbers = shard.parts().skip(ledger.records.len());
    let Some(first) = numbers.clone().next() else {
        return Ok(());
    };
    let points = Points::from(court.space, first).step_by(shard.of());
    let mut points = numbers.zip(points);
    let mut together = rayon::current_num_threads();
    while ledger.records.len() < runs {
        let chunk: Vec<(usize, Vec<f64>)> = points.by_ref().take(together).collect();
        let begun = Instant::now();
        let judge = |(run, point): &(usize, Vec<f64>)| {
            let record = match known.get(run) {
                Some(record) => Ok(record.clone()),
                None => court.judge_point(*run, point),
            };
            progress.tick();
            record
        };
        let made: anyhow::Result<Vec<Record>> = match court.space.alone {
            true => chunk.iter().map(judge).collect(),
            false => chunk.par_iter().map(judge).collect(),
        };
        ledger.append(made?)?;
        // As many as take long enough that nobody waits for the last of them.
        let factor = TOGETHER.as_secs_f64() / begun.elapsed().as_secs_f64().max(1e-6);
        together = ((together as f64 * factor.clamp(0.5, 2.0)) as usize).clamp(1, 1 << 16);
    }
    Ok(())
}

/// What a shard did and what is left to others. Whether too many runs fail is for who has them all to
/// judge.
fn report_shard(
    args: &CampaignArgs,
    shard: Shard,
    share: Share,
    ledger: &Ledger,
    runs: usize,
) -> anyhow::Result<()> {
    let name = args.file.display();
    let failed = ledger.records.iter().filter(|record| !record.holds());
    let (made, failed) = (share.runs - share.there, failed.count());
    // Others may have ended meanwhile.
    let others = ledger.others()?;
    let missing = (0..runs).filter(|run| !shard.has(*run) && !others.contains_key(run));
    let missing = missing.count();
    if args.json {
        let summary = json!({
            "version": VERSION,
            "file": name.to_string(),
            "shard": shard.to_string(),
            "runs": share.runs,
            "made": made,
            "failed": failed,
            "missing": missing,
        });
        return print(&(serde_json::to_string_pretty(&summary)? + "\n"));
    }
    print(&format!(
        "shard {shard} of {name}: {} runs, {made} of them made now; {failed} fail\n  {}\n{}\n",
        share.runs,
        ledger.path().display(),
        left(missing, "runs")
    ))
}

/// What is left to do where shards share the work, in words.
pub fn left(missing: usize, what: &str) -> String {
    match missing {
        0 => format!("all {what} are there: the same command without --shard writes the results"),
        _ => format!("{missing} {what} are missing, which are other shards' to make"),
    }
}

/// What runs came to, in files and in words.
fn conclude(
    args: &CampaignArgs,
    court: &Court<'_>,
    team: &Team,
    folder: &OutputFolder,
    records: &[Record],
) -> anyhow::Result<()> {
    let space = court.space;
    let name = args.file.display().to_string();
    let source = provenance(&team.problem, space.settings.seed, team.policy.as_ref());
    let tallies = Tally::all(records, &team.requirements);
    let points: Vec<Vec<f64>> = Points::from(space, 0).take(records.len()).collect();
    let mut written = vec![folder.path().join("runs.jsonl")];
    written.push(folder.write(
        "runs.csv",
        csv(&run_rows(space, team, &points, records)).as_bytes(),
    )?);

    let mut worst: Vec<&Record> = records.iter().collect();
    worst.sort_by(|a, b| a.margin().total_cmp(&b.margin()));
    worst.truncate(SHOWN);
    std::fs::create_dir_all(folder.path().join("worst")).map_err(|error| {
        anyhow!(
            "cannot make a folder in {}: {error}",
            folder.path().display()
        )
    })?;
    let mut page = Page::new(
        format!("Campaign {name}"),
        format!(
            "{} runs ({:?} sampling, seed {}) of {}; {}.",
            records.len(),
            space.settings.sampling,
            space.settings.seed,
            team.problem.title(),
            passed(&tallies[0])
        ),
    )
    .provenance(&source)
    .scores(tally_rows(&tallies));
    let margins: Vec<f64> = records.iter().map(Record::margin).collect();
    let distribution =
        report::margins_picture("How far runs were from failing", &margins, &source)?;
    written.push(folder.write("margins.svg", distribution.as_bytes())?);
    page = page.picture("The smallest margin of each run.", distribution);
    let against = against(space, &points);
    if !against.is_empty() {
        let coverage = report::coverage_picture(&margins, &against, &source)?;
        written.push(folder.write("coverage.svg", coverage.as_bytes())?);
        page = page.picture(
            "The same against what was varied: where runs fail, and what was tried.",
            coverage,
        );
    }
    let mut rows = vec![vec![
        "run".to_owned(),
        "margin".to_owned(),
        "replay".to_owned(),
    ]];
    for (rank, record) in worst.iter().enumerate() {
        let scenario = court.scenario(&points[record.run])?;
        let path = folder.write(
            &format!("worst/{:02}.toml", rank + 1),
            scenario.to_toml().as_bytes(),
        )?;
        let command = format!("agent-sim run --scenario {}", path.display());
        rows.push(vec![
            record.run.to_string(),
            margin_text(record),
            command.clone(),
        ]);
        if let Some(picture) = picture_of(court, &scenario, &source)? {
            let faults: Vec<String> = scenario.faults.iter().map(ToString::to_string).collect();
            let caption = format!(
                "Run {}, margin {}. {command} {}",
                record.run,
                margin_text(record),
                faults.join(" ")
            );
            page = page.picture(caption, picture);
        }
        written.push(path);
    }
    page = page
        .table("The worst", rows)
        .scenario(std::fs::read_to_string(&args.file).unwrap_or_default());
    let allowed = space.settings.tolerate * records.len() as f64;
    let failed = tallies[0].failed as f64 > allowed;
    let summary = json!({
        "version": VERSION,
        "file": name,
        "problem": team.problem.name,
        "policy_hash": team.policy.as_ref().map(|file| file.hash()),
        "sampling": space.settings.sampling,
        "seed": space.settings.seed,
        "tolerate": space.settings.tolerate,
        "passed": !failed,
        "tallies": tallies,
    });
    let text = serde_json::to_string_pretty(&summary)? + "\n";
    written.push(folder.write("campaign.json", text.as_bytes())?);
    written.push(folder.write(
        "junit.xml",
        junit(&name, team, &tallies, records, &worst, folder)?.as_bytes(),
    )?);
    written.push(folder.write("report.html", page.html().as_bytes())?);
    if args.json {
        print(&text)?;
    } else {
        print(&format!(
            "{source} · {} runs of {name}\n\n{}\n  {}\n\n{}",
            records.len(),
            table(&tally_rows(&tallies)),
            passed(&tallies[0]),
            listing(&written)
        ))?;
    }
    match failed {
        false => Ok(()),
        true => bail!(
            "{} of {} runs fail{}; look at {}",
            tallies[0].failed,
            records.len(),
            match allowed >= 1.0 {
                true => format!(", and {} may", allowed.floor()),
                false => String::new(),
            },
            folder.path().join("report.html").display()
        ),
    }
}

fn margin_text(record: &Record) -> String {
    match &record.cut {
        Some(cut) => cut.clone(),
        None => number(record.margin()),
    }
}

fn tally_rows(tallies: &[Tally]) -> Vec<Vec<String>> {
    let head = [
        "required",
        "runs",
        "failed",
        "probability of failure (95 %)",
        "worst margin",
        "in run",
        "median",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for tally in tallies {
        rows.push(vec![
            tally.requirement.clone(),
            tally.runs.to_string(),
            tally.failed.to_string(),
            share_text(tally.probability),
            number(tally.worst_margin),
            tally.worst_run.to_string(),
            number(tally.median_margin),
        ]);
    }
    rows
}

/// A row for each run: what was varied, and the margins.
fn run_rows(
    space: &Space,
    team: &Team,
    points: &[Vec<f64>],
    records: &[Record],
) -> Vec<Vec<String>> {
    let mut head = vec!["run".to_owned()];
    head.extend(space.varied.iter().map(|varied| varied.name.clone()));
    head.extend(["holds", "margin"].map(String::from));
    head.extend(team.requirements.iter().map(ToString::to_string));
    let mut rows = vec![head];
    for (record, point) in records.iter().zip(points) {
        let mut row = vec![record.run.to_string()];
        row.extend(space.values(point));
        row.push(record.holds().to_string());
        row.push(format!("{:?}", record.margin()));
        row.extend(
            record
                .judged
                .iter()
                .map(|judged| format!("{:?}", judged.margin)),
        );
        rows.push(row);
    }
    rows
}

/// Numbers that were varied, in all runs.
fn against<'s>(space: &'s Space, points: &[Vec<f64>]) -> Vec<Against<'s>> {
    let values: Vec<Vec<String>> = points.iter().map(|point| space.values(point)).collect();
    let varied = space.varied.iter().enumerate().filter_map(|(k, varied)| {
        let value = |row: &Vec<String>| row[k].parse().unwrap_or(f64::NAN);
        Some(Against {
            name: &varied.name,
            span: varied.span()?,
            values: values.iter().map(value).collect(),
        })
    });
    varied.collect()
}

/// The field of a run.
fn picture_of(
    court: &Court<'_>,
    scenario: &Scenario,
    source: &str,
) -> anyhow::Result<Option<String>> {
    let team = scenario.team(court.problems)?;
    if !team.links.is_empty() {
        // What boards did is not done again for a picture.
        return Ok(None);
    }
    let episode = scenario.episode(&team)?;
    let mut trajectory = Trajectory::new(&team.problem, &episode, team.steps);
    let (score, _) = team.judged(&episode, None, &mut |snapshot| trajectory.push(snapshot));
    if score.is_err() {
        return Ok(None);
    }
    let shown = Shown {
        name: "the swarm",
        trajectory: &trajectory,
        colour: line::BLUE,
    };
    Ok(Some(report::field_picture(
        &team.problem,
        &episode,
        &shown,
        source,
    )?))
}

/// A test report: a case for each requirement, and one for each of the first runs that failed.
fn junit(
    name: &str,
    team: &Team,
    tallies: &[Tally],
    records: &[Record],
    worst: &[&Record],
    folder: &OutputFolder,
) -> anyhow::Result<String> {
    let mut suite = TestSuite::new(name);
    for tally in &tallies[1..] {
        let status = match tally.failed {
            0 => TestCaseStatus::success(),
            failed => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!(
                    "{failed} of {} runs fail, probability {}; worst margin {} in run {}",
                    tally.runs,
                    share_text(tally.probability),
                    number(tally.worst_margin),
                    tally.worst_run
                ));
                status
            }
        };
        suite.add_test_case(TestCase::new(tally.requirement.clone(), status));
    }
    for record in records.iter().filter(|record| !record.holds()).take(NAMED) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let rank = worst.iter().position(|other| other.run == record.run);
        let replay = rank.map_or(String::new(), |rank| {
            let path = folder.path().join(format!("worst/{:02}.toml", rank + 1));
            format!("; agent-sim run --scenario {}", path.display())
        });
        status.set_message(format!("margin {}{replay}", margin_text(record)));
        suite.add_test_case(TestCase::new(format!("run {}", record.run), status));
    }
    let mut report = Report::new(format!("campaign of {}", team.problem.name));
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}
