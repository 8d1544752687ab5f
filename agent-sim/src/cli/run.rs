//! `agent-sim run`: one episode, scores, pictures and a record to replay.

use super::eval::{notes, thought};
use super::fields::{self, Fields};
use super::live::PageArgs;
use super::nodes::{conduct_rows, in_words, status_rows};
use super::origin::origin;
use super::plant_args::{PlantArgs, on_plant};
use super::progress::Progress;
use super::replay::{EPISODE, NETWORK, POLICY, SCENARIO, STEPS};
use super::rig_args::{RigArgs, Start, read_boards};
use super::scenario_args::ScenarioArgs;
use super::tape::{self, Tape};
use super::{VERSION, print, provenance, say_beforehand, use_threads};
use crate::centre::{Bring, Decisions};
use crate::controller::{Controller, ControllerKind, Experiment};
use crate::episode::RunError;
use crate::fault::{Clock, Fault};
use crate::live::Broadcast;
use crate::plant::Shared;
use crate::recording::{Cut, Recording, StepLog, csv as log_csv};
use crate::report::film::film;
use crate::report::html::{self, Page};
use crate::report::{self, DrawError, Event, RGBColor, Shown, line};
use crate::requirement::{Judge, Moment, Verdict};
use crate::rig::{Boards, Diary, Images, LinkKind, Pace, Rig};
use crate::scenario::{Scenario, Team};
use crate::standing::{Stand, stands};
use crate::table::{number, table};
use crate::trajectory::Trajectory;
use agent_core::policy::Policy;
use anyhow::bail;
use artifacts::output::{OutputError, OutputFolder, tell};
use clap::Args;
use node_link::NodeConduct;
use place::record::RECORD;
use problem::metrics::Score;
use problem::test_set::Resampled;
use problem::{Episode, Problem};
use problem::{Problems, input, npy};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A run from flags, a file or both: which, on what, at whose pace.
#[derive(Args)]
pub struct StageArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    pub rig: RigArgs,
    #[command(flatten)]
    pub plant: PlantArgs,
    /// Go with the wall clock, this many times as fast (1 if none is given), instead of waiting for
    /// every answer; late answers are late
    #[arg(long, value_name = "SPEED", num_args = 0..=1, default_missing_value = "1")]
    realtime: Option<f64>,
    /// Boards of the first agents with --standalone (repeatable): emulated ones, qemu=8, whose
    /// thermometers the field warms and whose actuators drive it; nobody shows them anything
    #[arg(long, value_name = "BOARDS")]
    plant_io: Vec<String>,
    /// Let a scenario file name boards that are not emulated: a run gives them its policy and drives
    /// what they drive
    #[arg(long)]
    write_boards: bool,
    /// Number of agents [default: as published]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Where the episode is taken from: fresh (drawn by --seed), table (published) or a .npy file,
    /// resampled if it is on another grid [default: fresh]
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// Which episode of the set [default: 0]
    #[arg(long, value_name = "I")]
    episode: Option<usize>,
}

impl StageArgs {
    /// The scenario that is named.
    pub fn scenario(&self) -> anyhow::Result<Scenario> {
        self.settle(self.scenario.scenario()?)
    }

    /// A scenario with what flags say besides; refuses what a file must not ask for.
    pub fn settle(&self, mut scenario: Scenario) -> anyhow::Result<Scenario> {
        scenario.agents = self.agents.or(scenario.agents);
        scenario.set = self.set.clone().unwrap_or(scenario.set);
        scenario.episode = self.episode.unwrap_or(scenario.episode);
        if !self.rig.links.is_empty() {
            scenario.links = self.rig.boards()?;
        } else if !self.write_boards {
            refuse_real_boards(&scenario.links)?;
        }
        if !self.plant_io.is_empty() {
            scenario.plant_io = read_boards(&self.plant_io)?;
        }
        scenario.realtime = self.realtime.or(scenario.realtime);
        self.plant.settle(&mut scenario)?;
        Ok(scenario)
    }
}

/// What `run` takes.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Folder for the report, the pictures and the record [default: out/run-PROBLEM]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the field of all steps too, as a float32 array (.npy), and beside it a .json file with
    /// its axes and times and what the agents did
    #[arg(long, value_name = "FILE.npy")]
    fields: Option<PathBuf>,
    /// Write a recording for Foxglove and other programs that read MCAP (docs/live.md says what it holds)
    #[arg(long, value_name = "FILE.mcap")]
    mcap: Option<PathBuf>,
    /// Show the run in the browser while it goes; with --realtime, or with boards, there is time to look
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    page: PageArgs,
    /// Leave out the yardsticks (no control, proportional feedback, no faults)
    #[arg(long)]
    alone: bool,
    /// An animated GIF of the run too
    #[arg(long)]
    gif: bool,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Outcome<'a> {
    version: &'a str,
    scenario: &'a Scenario,
    policy_hash: Option<String>,
    /// What computed the field, where the problem's own solver did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    plant: Option<&'a str>,
    scores: Vec<Named>,
    /// How long a controller that plans took to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<Decisions>,
    folder: String,
    /// What `--fields` wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    /// If the set came on another grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    resampled: Option<&'a Resampled>,
    /// What was required, and its margins.
    #[serde(skip_serializing_if = "Option::is_none")]
    requirements: Option<Vec<Object>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<Object>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<Vec<Object>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<Object>>,
}

/// A row of a table by the names of its columns.
type Object = serde_json::Map<String, serde_json::Value>;

#[derive(Serialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    score: Score,
    /// Of the field at the start and at the end, by what the problem calls it.
    #[serde(flatten)]
    integral: BTreeMap<&'static str, [f64; 2]>,
}

/// Runs the command, also with controllers that others bring.
pub fn run(args: &RunArgs, problems: &Problems, brought: &[&dyn Bring]) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let StageArgs {
        rig: rig_args,
        plant,
        ..
    } = &args.stage;
    if args.page.is_given() && !args.live {
        bail!("--port, --listen, --token and --no-open are for the page of --live; give that too");
    }
    let scenario = args.stage.scenario()?;
    let patience = rig_args.patience()?;
    let team = scenario.team_with(problems, brought)?;
    let episode = scenario.episode(&team)?;
    let resampled = scenario.resampled(&team)?;
    let problem = &team.problem;
    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| format!("out/run-{}", problem.name).into());
    if let Some(path) = &args.fields {
        fields::check(path, &folder)?;
    }
    if let Some(path) = &args.mcap {
        tape::check(path)?;
    }
    let plant = plant.open(&scenario, problem)?;
    let folder = OutputFolder::claim(&folder)?;
    let agents = match team.kind.has_agents {
        false => 0,
        true => team.agents,
    };
    let begin = |path: &PathBuf| Fields::create(path, problem, &episode, team.steps, agents);
    let mut fields = args.fields.as_ref().map(begin).transpose()?;
    say_beforehand(&scenario, &team, resampled.as_ref());

    let policy = team.parsed_policy();
    let experiment = Experiment {
        plant: plant.as_ref(),
        ..team.experiment(policy.as_ref())
    };
    let contenders = contenders(&team, &experiment, args.alone);
    let record = |path: &PathBuf| {
        let about = [
            ("problem", problem.title()),
            ("scenario", team.explicit(&scenario).to_toml()),
        ];
        let about = about.map(|(name, text)| (name.to_owned(), text));
        Tape::create(path, problem, events(&experiment), about.into())
    };
    let mut tape = args.mcap.as_ref().map(record).transpose()?;
    let rig = rig(rig_args, patience, &team, policy.as_ref(), &episode)?;
    let mut broadcast = match args.live {
        false => None,
        true => Some(broadcast(
            &args.page,
            &team,
            &episode,
            contenders[0].name,
            rig.as_ref(),
        )?),
    };
    let mut judge = Some(Judge::new(&team.requirements, &team.conditions()));
    let mut verdict = None;
    let mut node_log = NodeLog::default();
    let entries = || {
        let mut origin = origin(&scenario, &team, resampled.as_ref(), plant.as_ref());
        origin.push(("episode", scenario.episode.into()));
        origin
    };
    let mut made: Vec<Recording> = Vec::new();
    let mut cut: Option<Box<Cut>> = None;
    let mut kept = Vec::new();
    for (index, contender) in contenders.iter().enumerate() {
        let progress = Progress::new(team.steps, contender.name);
        // Only the run that was asked for goes to the boards.
        let rig = rig.as_ref().filter(|_| index == 0);
        let (mut fields, mut tape) = (fields.take(), tape.take());
        let mut broadcast = broadcast.as_mut().filter(|_| index == 0);
        let recording = Recording::watched(&contender.experiment, rig, &episode, |snapshot| {
            progress.tick();
            if let Some(judge) = &mut judge {
                judge.see(&Moment { snapshot, rig });
            }
            if let Some(fields) = &mut fields {
                fields.push(snapshot);
            }
            if let Some(tape) = &mut tape {
                tape.push(snapshot);
            }
            if let Some(broadcast) = &mut broadcast {
                broadcast.push(snapshot, rig);
            }
            if let Some(rig) = rig.filter(|_| rig_args.node_log) {
                node_log.take(rig, &progress);
            }
        });
        let recording = match recording {
            Ok(recording) => recording,
            Err(ended) => {
                let error = &ended.error;
                let path = last_finite(&folder, problem, error)?;
                if let RunError::BlownUp(_) = error {
                    bail!(
                        "{}: {error}; the field before that step is in {}. {}",
                        contender.name,
                        path.display(),
                        remedy(&contender.experiment, error)
                    );
                }
                // A plant may not do the same again: what there is is kept and shown.
                kept.push(path);
                if let Some(fields) = fields.filter(|_| !ended.log.is_empty()) {
                    kept.extend(fields.finish(&entries(), None)?);
                }
                if let Some(tape) = tape {
                    kept.push(tape.finish()?);
                }
                cut = Some(ended);
                break;
            }
        };
        // Only of the run that was asked for is anything required.
        verdict = verdict.or_else(|| judge.take().map(|judge| judge.verdict(None)));
        if let Some(fields) = fields {
            kept = fields.finish(&entries(), Some(&recording.score))?;
        }
        if let Some(tape) = tape {
            kept.push(tape.finish()?);
        }
        made.push(recording);
    }
    for (contender, recording) in contenders.iter().zip(&made) {
        if let Some(too_coarse) = &recording.too_coarse {
            tell(&format!("warning: {}: {too_coarse}", contender.name));
        }
    }

    let source = provenance(problem, scenario.seed, team.policy.as_ref());
    let source = source + &on_plant(plant.as_ref());
    let logs = made.iter().map(|recording| &recording.log);
    let asked = logs.chain(cut.iter().map(|cut| &cut.log)).next();
    let asked = asked.map_or(&[][..], |log| log);
    let mut written = keep(&folder, &scenario, &team, &episode, asked)?;
    let whole = made.iter().map(|recording| &recording.trajectory);
    let begun = cut.iter().filter(|cut| !cut.log.is_empty());
    let shown: Vec<Shown<'_>> = contenders
        .iter()
        .zip(whole.chain(begun.map(|cut| &cut.trajectory)))
        .map(|(contender, trajectory)| contender.shown(trajectory))
        .collect();
    // The run that ended is the one after those that were made.
    let cut = (cut.as_ref()).map(|cut| format!("{}: {}", contenders[made.len()].name, cut.error));
    if let Some(cut) = cut.as_ref().filter(|_| shown.is_empty()) {
        written.extend_from_slice(&kept);
        bail!(cut_short(cut, &written));
    }
    let decisions = experiment.controller.decisions();
    let events = events(&experiment);
    let mut pictures = pictures(problem, &episode, &shown, &events, &source)?;
    let boards = rig.as_ref().filter(|rig| !rig.is_empty());
    let boards = boards.map(|rig| board_tables(rig, team.standing.is_some()));
    if let (Some(rig), Some(boards)) = (&rig, &boards) {
        let diary = |index| {
            let node = rig.node(index);
            (node.name.clone(), node.diary.clone())
        };
        let diaries: Vec<(String, Diary)> = (0..rig.len()).map(diary).collect();
        let rows: Vec<report::Row<'_>> = diaries
            .iter()
            .map(|(name, diary)| (name.as_str(), diary))
            .collect();
        pictures.push(Picture {
            name: "nodes.svg",
            caption: "The field's error, and what became of each board.",
            svg: report::nodes_picture(problem, &shown, &events, &rows, &source)?,
        });
        written.push(folder.write("nodes.csv", csv(&boards.nodes).as_bytes())?);
        if let Some(places) = &boards.places {
            written.push(folder.write("places.csv", csv(places).as_bytes())?);
        }
        written.push(folder.write("events.csv", csv(&boards.events).as_bytes())?);
        written.extend(node_log.write(&folder)?);
    }
    for picture in &pictures {
        written.push(folder.write(picture.name, picture.svg.as_bytes())?);
    }
    let rows = score_rows(problem, &contenders, &made);
    let mut summary = html::summary(problem, team.agents, team.steps, contenders[0].name);
    if let Some(cut) = &cut {
        summary += &format!(" It was cut short. {cut}.");
    }
    let mut note = decisions.map_or(String::new(), thought) + &notes(problem, team.agents);
    if let Some(resampled) = &resampled {
        note += &format!("  The episode is of {}, {resampled}.\n", scenario.set);
    }
    let mut page = Page::new(format!("{}: {}", problem.name, contenders[0].name), summary)
        .provenance(&source)
        .scores(rows.clone())
        .note(note)
        .scenario(team.explicit(&scenario).to_toml());
    for fault in &team.faults {
        page = page.fault(format!("{fault}: {}", fault.describe(team.agents)));
    }
    if args.gif {
        let film = film(problem, &episode, &shown[..1])?;
        written.push(folder.write("film.gif", &film)?);
        page = page.film("The run as a film.", film);
    }
    for picture in pictures {
        page = page.picture(picture.caption, picture.svg);
    }
    let judged = verdict.filter(|_| !team.requirements.is_empty());
    let margins = judged.as_ref().map(|verdict| margin_rows(&team, verdict));
    if let Some(margins) = &margins {
        page = page.table("What is required", margins.clone());
    }
    if let Some(boards) = &boards {
        page = page.table("Boards", boards.nodes.clone());
        if let Some(places) = &boards.places {
            page = page.table("At their places", places.clone());
        }
        page = page.table("What happened to them", boards.events.clone());
    }
    written.push(folder.write("report.html", page.html().as_bytes())?);
    written.extend_from_slice(&kept);
    if let Some(cut) = &cut {
        bail!(cut_short(cut, &written));
    }

    if args.json {
        let scores = contenders
            .iter()
            .zip(&made)
            .map(|(contender, recording)| Named {
                name: contender.name.to_owned(),
                score: recording.score,
                integral: problem
                    .integral
                    .into_iter()
                    .zip(recording.integral)
                    .collect(),
            });
        let outcome = Outcome {
            version: VERSION,
            scenario: &scenario,
            policy_hash: team.policy.as_ref().map(|file| file.hash()),
            plant: plant.as_ref().map(Shared::name),
            scores: scores.collect(),
            decisions,
            folder: folder.path().display().to_string(),
            fields: kept.iter().map(|path| path.display().to_string()).collect(),
            resampled: resampled.as_ref(),
            requirements: margins.as_ref().map(|margins| objects(margins)),
            nodes: boards.as_ref().map(|boards| objects(&boards.nodes)),
            places: (boards.as_ref()).and_then(|boards| Some(objects(boards.places.as_deref()?))),
            events: boards.as_ref().map(|boards| objects(&boards.events)),
        };
        print(&(serde_json::to_string_pretty(&outcome)? + "\n"))?;
        return lost(&team, judged.as_ref());
    }
    let margins = margins.map_or(String::new(), |margins| format!("\n{}", table(&margins)));
    let boards = boards.map_or(String::new(), |boards| {
        let places = boards.places.as_deref().map_or(String::new(), table);
        format!(
            "\n{}\n{places}\n{}",
            table(&boards.nodes),
            table(&boards.events)
        )
    });
    print(&format!(
        "{source} · {} agents · {} steps · episode {} of the {} set{}\n{}\n{}{}{margins}{boards}\n{}",
        team.agents,
        team.steps,
        scenario.episode,
        scenario.set,
        aside(resampled.as_ref()),
        fault_lines(&team),
        table(&rows),
        decisions.map_or(String::new(), |taken| format!("\n{}", thought(taken))),
        listing(&written)
    ))?;
    lost(&team, judged.as_ref())
}

/// Why a run ended before its time, and what there is of it.
fn cut_short(why: &str, written: &[PathBuf]) -> String {
    let written = listing(written);
    format!(
        "{why}\nWhat was recorded before is kept:\n{}",
        written.trim_end()
    )
}

/// How long the first viewer of a run is waited for.
const VIEWER: Duration = Duration::from_secs(10);

/// Shows the run to whoever comes, and waits for the first.
fn broadcast<'t>(
    page: &PageArgs,
    team: &'t Team,
    episode: &Episode,
    name: &str,
    rig: Option<&Rig>,
) -> anyhow::Result<Broadcast<'t>> {
    let server = page.listen()?;
    let url = server.url()?;
    let boards = rig.map_or(0, Rig::len);
    let broadcast = Broadcast::begin(server, team, episode, name, boards)?;
    tell(&format!("{} live at {url}", team.problem.name));
    page.open(&url);
    if !broadcast.await_viewer(VIEWER) {
        tell("note: nobody looks; the run begins all the same");
    }
    Ok(broadcast)
}

/// What was required, and by how much it held.
fn margin_rows(team: &Team, verdict: &Verdict) -> Vec<Vec<String>> {
    let head = ["required", "margin", "was", "after step", "holds"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (requirement, judged) in team.requirements.iter().zip(&verdict.judged) {
        rows.push(vec![
            requirement.to_string(),
            number(judged.margin),
            number(judged.value),
            judged.step.to_string(),
            if judged.holds() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    rows
}

/// An error where something that was required did not hold.
fn lost(team: &Team, verdict: Option<&Verdict>) -> anyhow::Result<()> {
    let Some(verdict) = verdict.filter(|verdict| !verdict.holds()) else {
        return Ok(());
    };
    let all = team.requirements.iter().zip(&verdict.judged);
    let lost: Vec<String> = all
        .filter(|(_, judged)| !judged.holds())
        .map(|(requirement, judged)| format!("{requirement} (margin {})", number(judged.margin)))
        .collect();
    bail!("what is required does not hold: {}", lost.join("; "))
}

/// Of a set that came on another grid, after its name.
pub fn aside(resampled: Option<&Resampled>) -> String {
    resampled.map_or(String::new(), |resampled| format!(", {resampled}"))
}

/// A file that somebody else wrote must not overwrite a board's policy and move its actuator unasked.
pub fn refuse_real_boards(links: &[Boards]) -> anyhow::Result<()> {
    match links.iter().find(|boards| boards.kind() != LinkKind::Qemu) {
        None => Ok(()),
        Some(boards) => bail!(
            "the scenario file names {}, which is no emulated board: a run gives it the policy and \
             drives what it drives; give --write-boards to allow that, or name boards with --link",
            boards.to_string().escape_debug()
        ),
    }
}

/// The boards of the run, started, if it has any or keeps real time.
pub fn rig(
    args: &RigArgs,
    patience: Duration,
    team: &Team,
    policy: Option<&Policy<'_>>,
    episode: &Episode,
) -> anyhow::Result<Option<Rig>> {
    if team.links.is_empty() && team.realtime.is_none() {
        return Ok(None);
    }
    let payload = match (&team.policy, policy) {
        (Some(file), Some(policy)) => Some(args.payload(file, policy)?),
        _ => None,
    };
    let start = Start {
        images: match team.standing {
            None => Images::built(),
            Some(_) => Images::built_standalone(),
        },
        payload,
        pace: Pace::lock_step(patience),
        seed: team.seed,
        agents: Some(team.agents),
        talk: team.standing.is_some(),
    };
    let rig = args.start(&team.links, start)?;
    say_who_is_found(&team.links, &rig, team.agents);
    for (name, file) in &team.brought {
        rig.shelve(name, args.payload(file, &file.policy(&team.problem)?)?);
    }
    if let (Some(second), Some(policy)) = (team.standing, policy) {
        let stands = stands(&team.problem, policy, &team.places(), episode, second)?;
        let plan = team.plan();
        for (index, stand) in stands.into_iter().enumerate().take(rig.len()) {
            put(args, &rig, index, stand, plan.clock(index), policy)?;
        }
    }
    let rig = rig.with_faults(&team.faults, team.steps, team.seed);
    Ok(Some(match team.realtime {
        None => rig,
        Some(speed) => rig.in_real_time(speed, team.problem.control_interval * 1e6),
    }))
}

/// Puts a board at a place of the field.
fn put(
    args: &RigArgs,
    rig: &Rig,
    index: usize,
    stand: Stand,
    clock: Clock,
    policy: &Policy<'_>,
) -> anyhow::Result<()> {
    let bytes = stand.place.encode(&mut [0; RECORD])?.to_vec();
    let offer = args.place_offer(&bytes, policy.header().problem.as_str())?;
    let name = rig.node(index).name.clone();
    match rig.configure(index, &offer) {
        Ok(NodeConduct::Alone(_)) => rig.stand_at(index, stand, clock.rate),
        Ok(other) => bail!("{name} did not take its place: {}", in_words(&Ok(other))),
        Err(error) => bail!("{name} did not take its place: {error}"),
    }
    Ok(())
}

/// Where a swarm is that nobody has counted.
fn say_who_is_found(links: &[Boards], rig: &Rig, agents: usize) {
    if links.iter().any(Boards::are_found) && rig.len() < agents {
        tell(&format!(
            "note: {} of {agents} agents were found; the others are in this process",
            rig.len()
        ));
    }
}

/// What boards logged.
#[derive(Default)]
struct NodeLog {
    /// By board.
    lines: BTreeMap<String, String>,
}

impl NodeLog {
    /// Shows what has come since, and keeps it.
    fn take(&mut self, rig: &Rig, progress: &Progress) {
        for (node, line) in rig.new_log_lines() {
            progress.say(&format!("{node}: {line}"));
            let text = self.lines.entry(node).or_default();
            text.push_str(&line);
            text.push('\n');
        }
    }

    fn write(&self, folder: &OutputFolder) -> Result<Vec<PathBuf>, OutputError> {
        let written = self.lines.iter().map(|(node, text)| {
            let name = node.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            folder.write(&format!("node-{name}.log"), text.as_bytes())
        });
        written.collect()
    }
}

/// The boards and their events as tables; the first row is the head.
struct BoardTables {
    nodes: Vec<Vec<String>>,
    /// How they get on at their places, of boards that have some.
    places: Option<Vec<Vec<String>>>,
    events: Vec<Vec<String>>,
}

fn board_tables(rig: &Rig, standing: bool) -> BoardTables {
    let said = status_rows(rig);
    let head = [
        "node",
        "answered",
        "at the end",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "sent again",
        "late answers",
        "damaged answers",
        "reconnected",
    ];
    let mut nodes = vec![head.map(String::from).to_vec()];
    let mut events = vec![["step", "node", "what"].map(String::from).to_vec()];
    let mut dated = Vec::new();
    for index in 0..rig.len() {
        let node = rig.node(index);
        let diary = &node.diary;
        let mut row = vec![
            node.name.clone(),
            format!("{} of {}", diary.answered(), diary.states.len()),
            diary
                .states
                .last()
                .map_or("–", |state| state.name())
                .to_owned(),
        ];
        match diary.percentiles() {
            Some(times) => row.extend(times.map(|t| format!("{:.2}", t.as_secs_f64() * 1e3))),
            None => row.extend([(); 4].map(|()| "–".to_owned())),
        }
        let counted = node.line().unwrap_or_default();
        row.extend(
            [
                counted.resent,
                counted.late,
                counted.damaged,
                counted.reopened,
            ]
            .map(|n| n.to_string()),
        );
        nodes.push(row);
        dated.extend(
            diary
                .events
                .iter()
                .map(|e| (e.step, node.name.clone(), e.what.clone())),
        );
    }
    dated.sort_by_key(|(step, _, _)| *step);
    events.extend(
        dated
            .into_iter()
            .map(|(step, node, what)| vec![step.to_string(), node, what]),
    );
    // What the nodes say of themselves, beside what was seen of them.
    for (row, said) in nodes.iter_mut().zip(&said) {
        row.extend(said.iter().skip(1).cloned());
    }
    BoardTables {
        nodes,
        places: standing.then(|| conduct_rows(rig)),
        events,
    }
}

/// A table as CSV; cells with commas or quotes are quoted.
pub fn csv(rows: &[Vec<String>]) -> String {
    let cell = |cell: &String| match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let lines = rows
        .iter()
        .map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
    lines.collect()
}

fn objects(rows: &[Vec<String>]) -> Vec<Object> {
    let Some((head, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let object = |row: &Vec<String>| {
        let pairs = head.iter().zip(row);
        pairs
            .map(|(name, cell)| (name.clone(), cell.clone().into()))
            .collect()
    };
    rows.iter().map(object).collect()
}

/// A drawing with its file's name and a caption.
struct Picture {
    name: &'static str,
    caption: &'static str,
    svg: String,
}

fn pictures(
    problem: &Problem,
    episode: &Episode,
    shown: &[Shown<'_>],
    events: &[Event],
    source: &str,
) -> Result<Vec<Picture>, DrawError> {
    let over_time = match problem.grid.axes {
        1 => {
            "The field over space and time, with the agents' paths; a cross marks an agent's last word."
        }
        _ => "The field from start to end, with the agents; a cross marks one that is silent.",
    };
    Ok(vec![
        Picture {
            name: "field.svg",
            caption: over_time,
            svg: report::field_picture(problem, episode, &shown[0], source)?,
        },
        Picture {
            name: "error.svg",
            caption: "Mean squared error to the target over time.",
            svg: report::error_picture(problem, shown, events, source)?,
        },
        Picture {
            name: "effort.svg",
            caption: "What the agents spend, and how many of them answer.",
            svg: report::effort_picture(problem, shown, events, source)?,
        },
    ])
}

/// A run beside others.
pub struct Contender<'p> {
    pub name: &'static str,
    pub experiment: Experiment<'p>,
    pub colour: RGBColor,
}

impl Contender<'_> {
    fn shown<'a>(&'a self, trajectory: &'a Trajectory) -> Shown<'a> {
        Shown {
            name: self.name,
            trajectory,
            colour: self.colour,
        }
    }
}

/// The run asked for, first, and what it is to be compared with.
fn contenders<'p>(team: &Team, asked: &Experiment<'p>, alone: bool) -> Vec<Contender<'p>> {
    let mut list = vec![Contender {
        name: team.kind.run,
        experiment: *asked,
        colour: line::BLUE,
    }];
    if alone {
        return list;
    }
    let faulty = !team.faults.is_empty() && team.kind.has_agents;
    // What happens to boards happens to no agent of this process.
    let shared = team.faults.iter().any(|fault| fault.on_board().is_none());
    if faulty {
        list.push(Contender {
            name: "without faults",
            experiment: Experiment {
                faults: &[],
                ..*asked
            },
            colour: line::GREEN,
        });
    }
    let tuned = team.problem.baseline_for(team.agents);
    if let Some(law) = tuned.filter(|_| team.kind == ControllerKind::POLICY) {
        list.push(Contender {
            name: if shared {
                "proportional, same faults"
            } else {
                "proportional"
            },
            experiment: Experiment {
                controller: Controller::Proportional(law),
                ..*asked
            },
            colour: line::ORANGE,
        });
    }
    if team.kind.has_agents {
        list.push(Contender {
            name: ControllerKind::NONE.run,
            experiment: Experiment {
                controller: Controller::None,
                ..*asked
            },
            colour: line::GREY,
        });
    }
    list
}

/// The state before the step in which a run ended before its time.
pub const LAST_FINITE: &str = "last-finite.npy";

/// Writes the last field that was finite.
fn last_finite(
    folder: &OutputFolder,
    problem: &Problem,
    error: &RunError,
) -> Result<PathBuf, OutputError> {
    let field: Vec<f32> = error.last_finite().iter().map(|&z| z as f32).collect();
    folder.write(LAST_FINITE, &npy::encode(problem.grid.shape(), &field))
}

/// What may keep a run from blowing up: of what it has, not of what it has not.
fn remedy(experiment: &Experiment<'_>, error: &RunError) -> String {
    if let Some(too_coarse) = error.too_coarse() {
        return format!("Before, {too_coarse}");
    }
    let fed_back = experiment.controller.gain().is_some_and(|gain| gain > 0.0);
    let may_help: Vec<&str> = [
        fed_back.then_some("a lower --gain"),
        Some("more --substeps"),
        (!experiment.faults.is_empty()).then_some("fewer faults"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("What may help: {}", may_help.join(", "))
}

/// An episode as test sets have it.
fn stored(problem: &Problem, episode: &Episode) -> Vec<u8> {
    let mut shape = vec![1];
    let mut values = episode.initial.clone();
    if problem.tracking {
        shape.push(2);
        values.extend(&episode.target);
    }
    shape.extend(problem.sensors.shape());
    npy::encode(&shape, &values)
}

/// Writes what a replay needs.
fn keep(
    folder: &OutputFolder,
    scenario: &Scenario,
    team: &Team,
    episode: &Episode,
    log: &[StepLog],
) -> anyhow::Result<Vec<PathBuf>> {
    let header = format!("# agent-sim {VERSION}; run it again with agent-sim replay\n");
    let mut written = vec![
        folder.write(
            SCENARIO,
            (header + &team.explicit(scenario).to_toml()).as_bytes(),
        )?,
        folder.write(STEPS, log_csv(log).as_bytes())?,
    ];
    match team.problem.kit {
        None => written.push(folder.write(EPISODE, &stored(&team.problem, episode))?),
        // It is drawn again; one of an earlier run would be another's.
        Some(_) => folder.remove(EPISODE)?,
    }
    match &team.policy {
        Some(file) => written.push(folder.write(POLICY, file.bytes())?),
        // One of an earlier run must not be taken for this one's.
        None => folder.remove(POLICY)?,
    }
    match &team.network {
        Some(path) => {
            let bytes = input::read(path, input::CHECKPOINT)?;
            written.push(folder.write(NETWORK, &bytes)?);
        }
        None => folder.remove(NETWORK)?,
    }
    Ok(written)
}

/// What happens to the agents on the way.
pub fn events(experiment: &Experiment<'_>) -> Vec<Event> {
    if !experiment.controller.kind().has_agents {
        return Vec::new();
    }
    let steps = experiment.steps;
    let events = |fault: &Fault| {
        let begins = Event {
            step: fault.begins(steps),
            name: fault.describe(experiment.agents),
        };
        let told = fault.told(steps).map(|step| Event {
            step,
            name: "announced".to_owned(),
        });
        [Some(begins), told].into_iter().flatten()
    };
    experiment.faults.iter().flat_map(events).collect()
}

fn fault_lines(team: &Team) -> String {
    let lines = team
        .faults
        .iter()
        .map(|fault| format!("  fault: {fault} ({})\n", fault.describe(team.agents)));
    lines.collect()
}

fn score_rows(
    problem: &Problem,
    contenders: &[Contender<'_>],
    made: &[Recording],
) -> Vec<Vec<String>> {
    if made.is_empty() {
        return Vec::new();
    }
    let mut head = vec!["", "final error", "time-mean error", "effort", "travel"];
    if !problem.keep_out.is_empty() {
        head.push("in keep-out zones");
    }
    let mut rows = vec![
        head.iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    ];
    if let Some(name) = problem.integral {
        rows[0].extend(["start", "end"].map(|when| format!("{name} at {when}")));
    }
    for (contender, recording) in contenders.iter().zip(made) {
        let Recording {
            score, integral, ..
        } = recording;
        let figures = [
            score.final_error,
            score.time_mean_error,
            score.effort,
            score.travel,
            score.intrusion,
        ];
        let mut row = vec![contender.name.to_owned()];
        row.extend(figures.iter().take(head.len() - 1).map(|f| number(*f)));
        row.extend(integral.iter().flatten().map(|f| number(*f)));
        rows.push(row);
    }
    rows
}

/// Says what was written.
pub fn listing(written: &[PathBuf]) -> String {
    let lines = written
        .iter()
        .map(|path| format!("  wrote {}\n", path.display()));
    lines.collect()
}

/// Writes pictures and says so.
pub fn write_all(
    folder: &OutputFolder,
    pictures: &[(&str, String)],
) -> Result<String, OutputError> {
    let written: Result<Vec<PathBuf>, _> = pictures
        .iter()
        .map(|(name, picture)| folder.write(name, picture.as_bytes()))
        .collect();
    Ok(listing(&written?))
}
