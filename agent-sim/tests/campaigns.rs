//! What is required of runs, spaces of scenarios, campaigns that are stopped and go on, hunts and what
//! they make of what they find.

use agent_sim::campaign::{Ledger, Points, Record, Space};
use agent_sim::hunt::{Method, search, shrink};
use agent_sim::requirement::{Require, Verdict};
use agent_sim::scenario::Scenario;
use problem::Problems;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn problems() -> Problems {
    Problems::published()
}

fn verdict(toml: &str) -> Verdict {
    let scenario = Scenario::from_toml(toml).unwrap();
    let team = scenario.team(&problems()).unwrap();
    let episode = scenario.episode(&team).unwrap();
    team.judged(&episode, None, &mut |_| {}).1
}

/// A rod under feedback, with what is required of it.
fn rod(rest: &str) -> String {
    format!("problem = \"heat-1d\"\ncontroller = \"proportional\"\nseed = 3\n{rest}")
}

fn require(text: &str) -> String {
    let required: Require = text.parse().unwrap();
    let table = toml::to_string(&required).unwrap();
    format!("[[require]]\n{table}")
}

/// Nobody controls the rod: its error is what it is, so bounds on both sides of it tell what margins mean.
#[test]
fn margins_are_shares_of_their_bounds() {
    let free = |text: &str| {
        let toml = format!(
            "problem = \"heat-1d\"\ncontroller = \"none\"\n{}",
            require(text)
        );
        verdict(&toml).judged[0]
    };
    let end = free("error,below=1e9,when=at the end");
    assert_eq!(end.step, 300);
    let exact = end.value;
    let twice = free(&format!("error,below={},when=at the end", 2.0 * exact));
    assert!((twice.margin - 0.5).abs() < 1e-12);
    let half = free(&format!("error,below={},when=at the end", exact / 2.0));
    assert!((half.margin + 1.0).abs() < 1e-12);
    let above = free(&format!("error,above={},when=at the end", exact / 2.0));
    assert!((above.margin - 1.0).abs() < 1e-12);
    // What holds always holds at its worst; what holds eventually, at its best.
    let always = free(&format!("error,below={exact}"));
    let eventually = free(&format!("error,below={exact},when=eventually"));
    assert!(always.margin <= 0.0 && eventually.margin >= 0.0);
    // A share of what it was at the start is 1 at the start.
    let start = free("error,below=1,of=start,when=at the end,until=0");
    assert_eq!((start.margin, start.step), (0.0, 0));
}

#[test]
fn an_error_in_the_whole_domain_is_the_error() {
    let both = require("error,below=1") + &require("error,below=1,region=0..1");
    let verdict = verdict(&rod(&both));
    let [whole, region] = verdict.judged[..] else {
        panic!("{verdict:?}")
    };
    assert_eq!(whole.step, region.step);
    assert!((whole.value - region.value).abs() < 1e-12 * whole.value);
}

#[test]
fn what_holds_after_faults_is_looked_for_after_each_of_them() {
    let faults = "[[fault]]\nkind = \"crash\"\nids = \"0\"\nat = 0.5\n[[fault]]\nkind = \"crash\"\nids = \"1\"\nat = 0.8\n";
    let toml = rod(&format!(
        "{faults}{}{}{}",
        require("silent,above=2,when=within 5 steps of a fault"),
        require("silent,below=2"),
        require("recovery,level=1e9,below=10,when=at the end")
    ));
    let verdict = verdict(&toml);
    // After the first of them there was one.
    assert_eq!(
        (verdict.judged[0].value, verdict.judged[0].margin),
        (1.0, -0.5)
    );
    assert!((151..=155).contains(&verdict.judged[0].step), "{verdict:?}");
    assert_eq!(verdict.judged[1].value, 2.0);
    // The error never was above such a level.
    assert_eq!(
        (verdict.judged[2].value, verdict.judged[2].margin),
        (0.0, 1.0)
    );
}

#[test]
fn what_a_run_cannot_have_cannot_be_required() {
    let refused = |rest: &str, said: &str| {
        let scenario = Scenario::from_toml(&rod(rest));
        let error = match scenario.map_err(|e| e.to_string()) {
            Ok(scenario) => scenario.team(&problems()).unwrap_err().to_string(),
            Err(error) => error,
        };
        assert!(error.contains(said), "{rest}: {error}");
    };
    for (text, said) in [
        ("mass,below=1", "integral means nothing"),
        ("intrusion,below=1", "no keep-out zones"),
        ("resets,below=1", "no agent is on a board"),
        ("lost-policies,below=0", "no agent is on a board"),
        ("stack,below=0.9", "no agent is on a board"),
        ("recovery,level=1,below=1", "no fault to recover from"),
        ("error,below=1,region=0.5..2", "0..1"),
        ("force,below=1,ids=8", "agent 8"),
        (
            "error,below=1,when=within 5 steps of a fault",
            "no fault begins",
        ),
    ] {
        refused(&require(text), said);
    }
    for (text, said) in [
        ("eror,below=1", "did you mean error?"),
        ("error", "either below=… or above=…"),
        ("error,below=1,above=2", "either below=… or above=…"),
        ("error,below=inf", "cannot be held to inf"),
        ("error,below=1,ids=0", "no parameter 'ids'"),
        ("error,below=1,from=0.9,until=0.1", "ends before it begins"),
        ("error,below=1,when=sometimes", "no time"),
        ("recovery,below=1", "needs the error that counts"),
        ("built-in,below=1", "takes nothing else"),
    ] {
        let error = text.parse::<Require>().unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn requirements_are_written_as_they_are_read() {
    for text in [
        "built-in",
        "error,below=0.01,of=start,region=0.2..0.6,when=at the end,from=0.5",
        "force,above=3,ids=0+3+5..7,when=within 50 steps of a fault,until=0.75",
        "recovery,below=50,level=0.001,when=eventually",
    ] {
        let read: Require = text.parse().unwrap();
        assert_eq!(read.to_string(), text);
        let table = toml::to_string(&read).unwrap();
        assert_eq!(toml::from_str::<Require>(&table).unwrap(), read, "{table}");
    }
}

/// Every problem can be held to what is expected of any swarm.
#[test]
fn built_in_requirements_fit_every_problem() {
    let problems = problems();
    for problem in problems.iter() {
        let scenario = Scenario {
            problem: problem.name.to_owned(),
            set: "fresh".to_owned(),
            requirements: vec![Require::BuiltIn],
            ..Scenario::default()
        };
        let team = scenario.team(&problems).unwrap();
        assert!(team.requirements.len() >= 2, "{}", problem.name);
    }
}

const SPACE: &str = "\
problem = \"heat-1d\"
controller = \"proportional\"
agents = { from = 4, to = 9 }
seed = { from = 0, to = 999 }
steps = 20

[campaign]
runs = 60
seed = 7

[[fault]]
kind = { any = [\"crash\", \"freeze\"] }
ids = { pick = { from = 1, to = 3 } }
at = { from = 0.0, to = 0.5 }
lasts = { from = 0.1, to = 0.9 }
present = { any = [true, false] }

[[require]]
what = \"error\"
below = 0.5
of = \"start\"
when = \"at the end\"
";

fn space() -> Space {
    Space::read(SPACE, &problems()).unwrap()
}

#[test]
fn points_of_a_space_are_scenarios_within_it() {
    let space = space();
    let mut present = 0;
    for point in Points::from(&space, 0) {
        let scenario = space.scenario(&point).unwrap();
        let agents = scenario.agents.unwrap();
        assert!((4..=9).contains(&agents) && scenario.seed <= 999);
        scenario.team(&problems()).unwrap();
        for fault in &scenario.faults {
            present += 1;
            let until = fault.until.unwrap_or(1.0);
            assert!((0.0..=0.5).contains(&fault.at) && until - fault.at <= 0.9 + 1e-12);
            let agent_sim::fault::Who::Ids(ids) = &fault.who else {
                panic!("{fault}")
            };
            assert!((1..=3).contains(&ids.within(agents).len()), "{fault}");
        }
    }
    assert_eq!(space.runs(), 60);
    assert!((20..40).contains(&present), "{present} of 60");
}

/// From wherever a sequence is taken up, it goes on as it would have.
#[test]
fn sequences_go_on_where_they_were_left() {
    for sampling in ["sobol", "random"] {
        let text = SPACE.replace("seed = 7", &format!("seed = 7\nsampling = \"{sampling}\""));
        let space = Space::read(&text, &problems()).unwrap();
        let all: Vec<_> = Points::from(&space, 0).collect();
        let rest: Vec<_> = Points::from(&space, 23).collect();
        assert_eq!(all[23..], rest[..]);
        assert!(all.iter().flatten().all(|x| (0.0..1.0).contains(x)));
    }
}

#[test]
fn a_grid_has_every_combination_once() {
    let text = "problem = \"heat-1d\"\nagents = { from = 4, to = 6 }\n\
                seed = { any = [1, 5] }\n[physics]\nnu = { from = 0.1, to = 0.3, points = 3 }\n\
                [campaign]\nsampling = \"grid\"\n[[require]]\nwhat = \"built-in\"\n";
    let space = Space::read(text, &problems()).unwrap();
    let mut seen: Vec<Vec<String>> = Points::from(&space, 0)
        .map(|point| space.values(&point))
        .collect();
    assert_eq!(seen[0], ["4", "1", "0.1"]);
    assert_eq!(seen.last().unwrap()[..2], ["6", "5"]);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3 * 2 * 3);
}

#[test]
fn mistakes_in_a_space_are_told_with_their_line() {
    for (from, to, line, said) in [
        ("{ from = 4, to = 9 }", "{ from = 9, to = 4 }", 3, "empty"),
        (
            "{ from = 4, to = 9 }",
            "{ from = 4 }",
            3,
            "both from and to",
        ),
        (
            "{ from = 4, to = 9 }",
            "{ from = 0, to = 9 }",
            3,
            "0 agents",
        ),
        ("{ from = 4, to = 9 }", "{ any = [] }", 3, "at least one"),
        (
            "{ from = 0.0, to = 0.5 }",
            "{ from = 0.0, to = 1.5 }",
            11,
            "1.5",
        ),
        (
            "lasts = { from = 0.1, to = 0.9 }",
            "until = { from = 0.1, to = 0.2 }",
            11,
            "before",
        ),
        ("pick = { from = 1, to = 3 }", "pick = 0", 13, "1 or more"),
        (
            "seed = 7",
            "seed = 7\ntolerate = 2.0",
            7,
            "share of the runs",
        ),
        ("seed = 7", "sampling = \"grid\"", 13, "give points"),
        ("\"error\"", "\"erorr\"", 18, "did you mean error?"),
        (
            "what = \"error\"",
            "what = \"mass\"",
            0,
            "integral means nothing",
        ),
    ] {
        let wrong = SPACE.replace(from, to);
        assert_ne!(wrong, SPACE, "{from}");
        let error = Space::read(&wrong, &problems()).unwrap_err().to_string();
        let place = format!("line {line}:");
        assert!(error.contains(said), "{to}: {error}");
        assert!(line == 0 || error.contains(&place), "{to}: {error}");
    }
}

/// A trillion points are refused before anything runs.
#[test]
fn a_grid_beyond_counting_is_refused() {
    let text = "problem = \"heat-1d\"\nagents = { from = 1, to = 1000 }\nseed = { from = 0, to = 999999999 }\n\
                [campaign]\nsampling = \"grid\"\n[[require]]\nwhat = \"built-in\"\n";
    let error = Space::read(text, &problems()).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains("1000000000000"),
        "{error}"
    );
}

fn records(space: &Space, range: std::ops::Range<usize>) -> Vec<Record> {
    let points = Points::from(space, range.start).take(range.len());
    let judged = points.zip(range).map(|(point, run)| {
        let scenario = space.scenario(&point).unwrap();
        let team = scenario.team(&problems()).unwrap();
        let episode = scenario.episode(&team).unwrap();
        Record::new(run, &team.judged(&episode, None, &mut |_| {}).1)
    });
    judged.collect()
}

/// Cut anywhere, a ledger holds a beginning, and what is appended makes it what it would have been.
#[test]
fn a_ledger_that_was_cut_anywhere_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let space = space();
    let open = |purpose: &str| Ledger::open(folder.path(), purpose, None);
    let mut ledger = open("purpose").unwrap();
    ledger.append(records(&space, 0..12)).unwrap();
    drop(ledger);
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(97) {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut ledger = open("purpose").unwrap();
        let there = ledger.records.len();
        ledger.append(records(&space, there..12)).unwrap();
        drop(ledger);
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
    }
    // Another campaign's runs are nobody's business; changed ones are not believed.
    assert!(open("another").is_err());
    let mut changed = whole.clone();
    let place = whole.len() - 20;
    changed[place] ^= 1;
    fs::write(&path, &changed).unwrap();
    let ledger = open("purpose").unwrap();
    assert_eq!((ledger.records.len(), ledger.damaged), (11, true));
}

/// Where a swarm is said to fail: a needle in five coordinates with a slope around it.
#[test]
fn hunts_find_what_chance_does_not() {
    let space = space();
    let needle = |point: &[f64]| -> f64 {
        let off: f64 = point.iter().map(|x| (x - 0.37).powi(2)).sum();
        off.sqrt() - 0.02
    };
    let hunt = |method, seed| {
        let mut go_on = |trail: &agent_sim::hunt::Trail| trail.failed == 0 && trail.runs < 6000;
        search(&space, method, seed, &mut go_on, &needle).failed > 0
    };
    let found = |method| (0..10).filter(|seed| hunt(method, *seed)).count();
    assert_eq!(found(Method::Portfolio), 10);
    assert_eq!(found(Method::Random), 0);
}

/// The same seed finds the same, however many threads look.
#[test]
fn hunts_do_not_depend_on_threads() {
    let space = space();
    let margin = |point: &[f64]| point.iter().map(|x| (x - 0.6).abs()).sum::<f64>();
    let hunt = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let mut go_on = |trail: &agent_sim::hunt::Trail| trail.runs < 400;
        pool.install(|| search(&space, Method::Portfolio, 5, &mut go_on, &margin))
            .worse
    };
    assert_eq!(hunt(1), hunt(3));
}

/// Twenty faults, of which those of the agents that are stuck at full force matter.
#[test]
fn scenarios_shrink_to_the_faults_that_matter() {
    let mut toml = rod("steps = 100\n");
    let mut fault = |text: &str| {
        let fault: agent_sim::fault::Fault = text.parse().unwrap();
        toml += &format!("[[fault]]\n{}", toml::to_string(&fault).unwrap());
    };
    for k in 0..9 {
        fault(&format!("noise,std=0.00{},fraction=0.3,at=0.{k}", k + 1));
        fault(&format!("loss,p=0.0{},at=0.{k},until=0.95", k + 1));
    }
    fault("crash,ids=5..6,at=0.3");
    fault("stuck,value=40.123456,ids=2..4,at=0.4,until=0.98");
    toml += &require("error,below=1,of=start,when=at the end");
    let scenario = Scenario::from_toml(&toml).unwrap();
    assert_eq!(scenario.faults.len(), 20);
    let mut fails = |scenario: &Scenario| {
        let team = scenario.team(&problems()).unwrap();
        let episode = scenario.episode(&team).unwrap();
        !team.judged(&episode, None, &mut |_| {}).1.holds()
    };
    assert!(fails(&scenario), "planted");
    let lost = scenario.team(&problems()).unwrap().requirements[0].clone();
    let smaller = shrink(
        &scenario,
        &problems(),
        Some(&lost),
        &mut || true,
        &mut fails,
    )
    .scenario;
    assert!(fails(&smaller));
    assert!(
        (1..=2).contains(&smaller.faults.len()),
        "{:?}",
        smaller.faults
    );
    for fault in &smaller.faults {
        assert!(
            ["crash", "stuck"].contains(&fault.what.kind.name),
            "{fault}"
        );
        assert!(!fault.to_string().contains("123456"), "{fault}");
    }
    // Nothing more can be taken away.
    for left_out in 0..smaller.faults.len() {
        let mut less = smaller.clone();
        less.faults.remove(left_out);
        assert!(!fails(&less));
    }
    // What was written is what was run.
    let again = Scenario::from_toml(&smaller.to_toml()).unwrap();
    assert_eq!(again, smaller);
}

fn agent_sim(folder: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-sim"));
    command.current_dir(folder).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A campaign of so many runs, killed so many times at random, ends with the bytes of one that nobody
/// disturbed.
fn killed_and_taken_up_again(runs: usize, kills: u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(
        path.join("space.toml"),
        SPACE.replace("runs = 60", &format!("runs = {runs}")),
    )
    .unwrap();
    let run = |out: &str| agent_sim(path, &["campaign", "space.toml", "--out", out]);
    let begun = Instant::now();
    let whole = run("whole").output().unwrap();
    // Together they are not longer than the whole, so that there is work left for each to be killed at.
    let longest = begun.elapsed() / kills;
    let told = String::from_utf8_lossy(&whole.stdout);
    let heading = format!("{runs} runs of space.toml");
    assert!(told.contains(&heading), "{told}");
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let mut at_work = 0;
    for _ in 0..kills {
        let mut child = run("killed").spawn().unwrap();
        std::thread::sleep(longest.mul_f64(random.random()));
        at_work += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
    }
    println!("{at_work} of {kills} killed at work");
    assert_eq!(
        run("killed").output().unwrap().status.code(),
        whole.status.code()
    );
    for name in ["runs.jsonl", "runs.csv", "campaign.json", "margins.svg"] {
        let [there, again] =
            ["whole", "killed"].map(|out| fs::read(path.join(out).join(name)).unwrap());
        assert_eq!(there, again, "{name}");
    }
    let junit = fs::read_to_string(path.join("whole/junit.xml")).unwrap();
    assert!(junit.contains("<testsuite name=\"space.toml\""), "{junit}");
}

#[test]
fn a_campaign_that_is_killed_goes_on_to_the_same_result() {
    killed_and_taken_up_again(1500, 6);
}

/// So many lines of a shard's ledger are runs.
fn runs_in(ledger: &std::path::Path) -> usize {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.matches('\n').count().saturating_sub(1)
}

/// Eight programs at a time in one folder, three of which are killed in the middle of their share and run
/// again: what one program makes of the folder then is what it would have made of none.
#[test]
fn shards_of_a_campaign_that_are_killed_and_run_again_are_the_campaign() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [alone, shared] = folders.each_ref().map(|folder| folder.path());
    for path in [alone, shared] {
        let text = SPACE
            .replace("runs = 60", "runs = 800")
            .replace("steps = 20", "steps = 200");
        fs::write(path.join("space.toml"), text).unwrap();
    }
    let run = |path, more: &[&str]| {
        let plain = ["campaign", "space.toml", "--out", "out", "--threads", "1"];
        agent_sim(path, &[&plain, more].concat())
    };
    let shard = |number: usize| run(shared, &["--shard", &format!("{number}/8")]);
    let ledger = |number: usize| shared.join(format!("out/runs-{number}-of-8.jsonl"));
    let mut children: Vec<_> = (1..=8)
        .map(|number| shard(number).spawn().unwrap())
        .collect();
    let deadline = Instant::now() + Duration::from_secs(120);
    let doomed = [2, 5, 7];
    let mut alive = doomed.to_vec();
    while !alive.is_empty() {
        assert!(Instant::now() < deadline, "shards {alive:?} do not begin");
        alive.retain(|number| {
            let begun = runs_in(&ledger(*number)) >= 2;
            if begun {
                children[number - 1].kill().unwrap();
            }
            !begun
        });
        std::thread::sleep(Duration::from_millis(1));
    }
    for (k, child) in children.into_iter().enumerate() {
        let ended = child.wait_with_output().unwrap();
        let number = k + 1;
        assert_eq!(
            ended.status.code(),
            (!doomed.contains(&number)).then_some(0)
        );
        let there = runs_in(&ledger(number));
        assert_eq!(
            there == 100,
            !doomed.contains(&number),
            "shard {number}: {there}"
        );
    }
    // Nobody writes the results before all is there but who makes what is missing.
    assert!(!shared.join("out/campaign.json").exists());
    for number in doomed {
        let ended = shard(number).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(
            told.contains(&format!("shard {number}/8 of space.toml: 100 runs")),
            "{told}"
        );
        let last = number == 7;
        assert_eq!(
            told.contains("the same command without --shard"),
            last,
            "{told}"
        );
        assert_eq!(told.contains(" are missing"), !last, "{told}");
    }
    let ended = [alone, shared].map(|path| run(path, &[]).output().unwrap());
    assert_eq!(ended[0].status.code(), ended[1].status.code());
    assert_eq!(ended[0].stdout, ended[1].stdout);
    for name in [
        "runs.jsonl",
        "runs.csv",
        "campaign.json",
        "junit.xml",
        "margins.svg",
        "report.html",
    ] {
        let [one, eight] =
            [alone, shared].map(|path| fs::read(path.join("out").join(name)).unwrap());
        assert!(one == eight, "{name} differs");
    }
    // Nothing was computed again: a run that comes from elsewhere is believed.
    let told = String::from_utf8_lossy(&ended[1].stderr);
    assert!(!told.contains("damaged"), "{told}");
}

/// What is no shard is refused before anything is made, and so are shards of another campaign.
#[test]
fn shards_that_are_none_and_those_of_another_campaign_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("space.toml"), SPACE).unwrap();
    let refused = |shard: &str, seed: &str| {
        let arguments = [
            "campaign",
            "space.toml",
            "--out",
            "out",
            "--seed",
            seed,
            "--shard",
            shard,
        ];
        let output = agent_sim(path, &arguments).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (shard, said) in [
        ("0/16", "there is no shard 0 of 16"),
        ("17/16", "numbered from 1 to 16"),
        ("3", "like 3/16"),
        ("x/16", "'x/16' is no shard"),
        ("1/1000000", "at most 10000"),
    ] {
        let told = refused(shard, "7");
        assert!(told.contains(said), "{told}");
        assert!(!path.join("out").exists());
    }
    let first = ["campaign", "space.toml", "--out", "out", "--shard", "1/4"];
    let first = agent_sim(path, &first).output().unwrap();
    assert!(first.status.success(), "{first:?}");
    let told = refused("2/4", "8");
    assert!(
        told.contains("runs-1-of-4.jsonl holds the runs of another campaign"),
        "{told}"
    );
}

/// Minutes, where builds are not optimised.
#[test]
#[ignore = "long: cargo test --release -p agent-sim --test campaigns -- --ignored killed --nocapture"]
fn ten_thousand_runs_killed_twenty_times_end_alike() {
    killed_and_taken_up_again(10_000, 20);
}

/// What a hunt finds fails again when it is run, by the same margin, and ends programs with exit status 1.
#[test]
fn what_a_hunt_finds_fails_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Nobody can do that.
    let text = SPACE.replace("below = 0.5\nof = \"start\"", "below = 0.000001");
    fs::write(path.join("space.toml"), text).unwrap();
    let hunt = ["hunt", "space.toml", "--runs", "64", "--first", "--json"];
    let found = agent_sim(path, &hunt).output().unwrap();
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let told: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert!(told["failed"].as_u64().unwrap() > 0);
    assert!(told["story"].as_str().unwrap().contains("error"));
    let scenario = told["scenario"].as_str().unwrap();
    assert!(
        !scenario.contains("[[fault]]"),
        "no fault is needed for it: {scenario}"
    );
    let again = [
        "run",
        "--scenario",
        "out/hunt-space/found.toml",
        "--json",
        "--alone",
    ];
    let again = agent_sim(path, &again).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(
        said.contains("what is required does not hold: error"),
        "{said}"
    );
    // Where nothing fails the exit status says so too.
    let easy = SPACE.replace("below = 0.5\n", "below = 1000.0\n");
    fs::write(path.join("easy.toml"), easy).unwrap();
    let nothing = agent_sim(path, &["hunt", "easy.toml", "--runs", "32"])
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(0), "{nothing:?}");
    assert!(String::from_utf8_lossy(&nothing.stdout).contains("Nothing fails"));
}

/// Runs with boards are made one after the other: a pool's thread that waits for a board takes up another
/// run, and that run would wait for the same boards.
#[test]
fn runs_with_boards_or_clocks_are_not_made_side_by_side() {
    let space = |top: &str| {
        let text = format!(
            "problem = \"heat-1d\"\n{top}\nseed = {{ from = 0, to = 9 }}\n[[require]]\nwhat = \"built-in\"\n"
        );
        Space::read(&text, &Problems::published()).unwrap()
    };
    assert!(!space("").alone);
    assert!(space("link = [\"qemu=2\"]").alone);
    assert!(space("realtime = 1.0").alone);
}
