//! Sizes without measure, files that are none, and two programs in one folder: one sentence each, at
//! once, and nothing left behind.

mod support;

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{refused, stdout};
use tempfile::TempDir;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hand.policy"), support::policy()).unwrap();
    folder
}

#[test]
fn every_size_has_an_end_that_is_named() {
    let folder = folder();
    let huge = "1000000000000";
    for (command, given, limit) in [
        ("run heat-1d --steps HUGE", huge, "1000000 are"),
        ("run heat-1d --agents HUGE", huge, "1048576 are"),
        ("run heat-1d --grid HUGE", huge, "4194304 are"),
        ("run heat-2d --grid HUGExHUGE", huge, "4194304 are"),
        ("run heat-1d --substeps HUGE", huge, "100000 are"),
        ("run heat-1d --episode HUGE", huge, "999999"),
        ("run heat-1d --threads 1000000", "1000000", "1024 are"),
        ("run heat-1d --link qemu=HUGE", huge, "1024"),
        (
            "run heat-1d --realtime 1e-300",
            "1e-300",
            "0.0001 to 1000000",
        ),
        ("run heat-1d --realtime 1e300", "1e300", "0.0001 to 1000000"),
        ("run heat-1d --realtime inf", "inf", "0.0001 to 1000000"),
        ("run heat-1d --realtime nan", "NaN", "0.0001 to 1000000"),
        ("run heat-1d --realtime=-1", "-1", "0.0001 to 1000000"),
        (
            "run heat-1d --link qemu=1 --patience inf",
            "inf",
            "3600 seconds",
        ),
        (
            "run heat-1d --link qemu=1 --patience nan",
            "NaN",
            "3600 seconds",
        ),
        (
            "run heat-1d --link qemu=1 --patience=-1",
            "-1",
            "3600 seconds",
        ),
        (
            "run heat-1d --link qemu=1 --patience 1e300",
            "1e300",
            "3600 seconds",
        ),
        (
            "eval heat-1d --set fresh --episodes HUGE",
            huge,
            "1000000 are",
        ),
        ("tune heat-1d --episodes HUGE", huge, "1000000 are"),
        ("bench heat-1d --episodes HUGE", huge, "1000000 are"),
        ("sweep heat-1d --episodes HUGE", huge, "1000000 are"),
        ("sweep heat-1d --agents 5..HUGE", huge, "1048576 are"),
        ("sweep heat-1d --agents 5,HUGE", huge, "1048576 are"),
        (
            "run heat-1d --steps 99999999999999999999",
            "--steps",
            "too large",
        ),
    ] {
        let command = command.replace("HUGE", huge);
        refused(folder.path(), &command, &[given, limit]);
    }
    let shares: Vec<String> = (0..600).map(|k| format!("{}", k as f64 / 600.0)).collect();
    let command = format!(
        "sweep heat-1d --agents 2,4 --fault-fraction {}",
        shares.join(",")
    );
    refused(
        folder.path(),
        &command,
        &["1200 points of a sweep", "1000 are"],
    );
}

#[test]
fn files_have_the_same_limits() {
    let folder = folder();
    let scenario = |more: &str| format!("problem = \"heat-1d\"\npolicy = \"hand.policy\"\n{more}");
    let faults = |count: usize| "[[fault]]\nkind = \"crash\"\nids = \"1\"\n".repeat(count);
    let many = faults(2000);
    let plan = "agents = 1000000\n".to_owned() + &faults(1000);
    for (more, facts) in [
        (
            "steps = 1000000000000",
            ["1000000000000 steps", "1000000 are"],
        ),
        (
            "agents = 1000000000000",
            ["1000000000000 agents", "1048576 are"],
        ),
        (
            "grid = 1000000000000",
            ["1000000000000 grid points", "4194304 are"],
        ),
        ("realtime = 1e-300", ["1e-300", "0.0001 to"]),
        (
            "episode = 1000000000000",
            ["episode 1000000000000", "999999"],
        ),
        (many.as_str(), ["2000 faults", "1000 are"]),
        // 256 GB of faults.
        (
            plan.as_str(),
            ["1000000 agents with 1000 faults", "of memory"],
        ),
    ] {
        std::fs::write(folder.path().join("mine.toml"), scenario(more)).unwrap();
        refused(folder.path(), "run --scenario mine.toml", &facts);
    }
    std::fs::write(folder.path().join("mine.toml"), scenario(&faults(200_000))).unwrap();
    refused(
        folder.path(),
        "run --scenario mine.toml",
        &["mine.toml", "a scenario has at most 1048576"],
    );

    stdout(folder.path(), "new plate");
    let text = std::fs::read_to_string(folder.path().join("plate.toml")).unwrap();
    let with = |begins: &str, line: &str| {
        let mut changed = String::new();
        for old in text.lines() {
            let new = if old.starts_with(begins) { line } else { old };
            writeln!(changed, "{new}").unwrap();
        }
        assert_ne!(changed, text, "no line begins with {begins}");
        std::fs::write(folder.path().join("plate.toml"), changed).unwrap();
    };
    for (begins, line, limit) in [
        ("steps = ", "steps = 1000000000000", "1 to 1000000"),
        ("grid = ", "grid = [100000, 100000]", "4194304"),
    ] {
        with(begins, line);
        refused(folder.path(), "run plate.toml", &["plate.toml", limit]);
    }
}

/// Whatever is given for a file and is none is named at once, before it is read or waited for.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_neither_read_nor_waited_for() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
    std::fs::create_dir(at("empty")).unwrap();
    let sparse = std::fs::File::create(at("long")).unwrap();
    sparse.set_len(1 << 42).unwrap();
    // The same under the names that described fields have.
    for name in ["pipe", "zero", "long", "empty"] {
        std::os::unix::fs::symlink(at(name), at(&format!("{name}.toml"))).unwrap();
    }
    let began = Instant::now();
    for (name, fact) in [
        ("pipe", "a pipe, not a file"),
        ("zero", "a device, not a file"),
        ("socket", "a socket, not a file"),
        ("empty", "a folder, not a file"),
        ("long", "4398046511104 bytes"),
    ] {
        for command in [
            "run heat-1d --policy NAME",
            "run --scenario NAME",
            "run heat-1d --set NAME",
            "eval heat-1d --set NAME",
            "demo --policy NAME",
            "flash NAME --link qemu=1",
            "flash hand.policy --link qemu=1 --key NAME",
        ] {
            let command = command.replace("NAME", name);
            refused(folder.path(), &command, &[name, fact]);
        }
        if name != "socket" {
            let field = format!("{name}.toml");
            for command in ["run", "check"] {
                refused(
                    folder.path(),
                    &format!("{command} {field}"),
                    &[&field, fact],
                );
            }
        }
    }
    // Files of a recorded run.
    stdout(
        folder.path(),
        "run heat-1d --policy hand.policy --steps 3 --alone --out run",
    );
    for name in ["scenario.toml", "steps.csv", "episode.npy", "agents.policy"] {
        let (file, kept) = (at("run").join(name), at("kept"));
        std::fs::rename(&file, &kept).unwrap();
        std::os::unix::fs::symlink(at("pipe"), &file).unwrap();
        refused(folder.path(), "replay run", &[name, "a pipe, not a file"]);
        std::fs::remove_file(&file).unwrap();
        std::fs::rename(&kept, &file).unwrap();
    }
    stdout(folder.path(), "replay run");
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[cfg(unix)]
#[test]
fn a_second_program_in_a_folder_is_told_of_the_first_until_that_is_killed() {
    let folder = folder();
    // 30 steps of a millisecond at a ten-thousandth of real time: five minutes.
    let slow = "run heat-1d --policy hand.policy --steps 30 --realtime 0.0001 --alone --out out";
    let mut first = Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(slow.split(' '))
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lock = folder.path().join("out/.lock");
    let began = Instant::now();
    while !std::fs::read_to_string(&lock).is_ok_and(|text| text.ends_with('\n')) {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no lock is taken"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let holder = format!("process {} (agent-sim {slow})", first.id());
    let facts = [holder.as_str(), "s ago", "--out"];
    for command in [
        "run heat-1d --policy hand.policy --out out",
        "sweep heat-1d --policy hand.policy --out out",
        "demo --policy hand.policy --out out",
    ] {
        refused(folder.path(), command, &facts);
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(lock.exists(), "it was killed");
    stdout(
        folder.path(),
        "run heat-1d --policy hand.policy --steps 3 --alone --out out",
    );
    assert!(!lock.exists());
}

#[test]
fn a_changed_point_of_a_sweep_is_computed_again_with_a_note() {
    let folder = folder();
    let sweep = "sweep heat-1d --policy hand.policy --agents 4,8 --episodes 2 --out out";
    let made = stdout(folder.path(), sweep);
    let point = folder.path().join("out/point-policy-4.json");
    let good = std::fs::read_to_string(&point).unwrap();
    let other = std::fs::read_to_string(folder.path().join("out/point-policy-8.json")).unwrap();
    let digit = good.find("\"mean\": ").unwrap() + 8;
    let mut changed = good.clone();
    let new = if &good[digit..=digit] == "9" {
        "8"
    } else {
        "9"
    };
    changed.replace_range(digit..=digit, new);
    for wrong in [
        changed.as_str(),
        other.as_str(),
        &good[..good.len() / 2],
        "",
    ] {
        std::fs::write(&point, wrong).unwrap();
        let output = support::agent_sim(folder.path(), sweep);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("point-policy-4.json is damaged or was changed"),
            "{said}"
        );
        assert_eq!(String::from_utf8(output.stdout).unwrap(), made);
        assert_eq!(std::fs::read_to_string(&point).unwrap(), good);
    }
    let output = support::agent_sim(folder.path(), sweep);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("note"));
}

#[test]
fn shards_of_a_sweep_leave_nothing_to_compute() {
    let folder = folder();
    let sweep = "sweep heat-1d --policy hand.policy --agents 4,8 --episodes 2";
    stdout(folder.path(), &format!("{sweep} --out whole"));
    // Two numbers of agents under two controllers, and nobody: five points, three of them the first's.
    let shard = |number| {
        stdout(
            folder.path(),
            &format!("{sweep} --out out --shard {number}/2"),
        )
    };
    let told = shard(1);
    assert!(
        told.contains("shard 1/2: 3 points") && told.contains("2 points are missing"),
        "{told}"
    );
    let told = shard(2);
    assert!(told.contains("all points are there"), "{told}");
    let points = || {
        let entries = std::fs::read_dir(folder.path().join("out")).unwrap();
        let names = entries.map(|entry| entry.unwrap().path());
        let points = names.filter(|path| path.to_string_lossy().contains("point-"));
        let mut written: Vec<_> = points
            .map(|path| (std::fs::metadata(&path).unwrap().modified().unwrap(), path))
            .collect();
        written.sort();
        written
    };
    let before = points();
    assert_eq!(before.len(), 5);
    stdout(folder.path(), &format!("{sweep} --out out"));
    assert_eq!(points(), before, "computed again");
    for file in ["sweep.json", "sweep.csv", "sweep.svg", "report.html"] {
        let [whole, shards] =
            ["whole", "out"].map(|out| std::fs::read(folder.path().join(out).join(file)).unwrap());
        assert!(whole == shards, "{file} differs");
    }
    refused(
        folder.path(),
        &format!("{sweep} --shard 3/2"),
        &["no shard 3 of 2"],
    );
}

/// Readers that have seen enough end nothing.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = folder();
    for command in [
        "problems",
        "faults",
        "check plate.toml",
        "eval heat-1d --episodes 1",
    ] {
        if command.starts_with("check") {
            stdout(folder.path(), "new plate");
        }
        let output = closed(folder.path(), command);
        assert_eq!(output.0, Some(0), "{command}: {}", output.1);
    }
}

/// Exit code and complaints of a command whose output nobody reads.
#[cfg(unix)]
fn closed(folder: &Path, command: &str) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_agent-sim"))
        .args(command.split(' '))
        .current_dir(folder)
        .stdout(writer)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}
