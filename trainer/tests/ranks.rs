//! Trainings that several processes share, started by `mpirun` as users start them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use trainer::checkpoint::Checkpoint;

/// What a test waits for at most.
const PATIENCE: Duration = Duration::from_secs(120);

/// A training that takes a second.
const SMALL: &str = "train heat-1d --preset quick --batch 6 --threads 1";

fn mpirun(ranks: usize) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--oversubscribe", "-n", &ranks.to_string()]);
    // Containers have no other user.
    for allowed in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        mpirun.env(allowed, "1");
    }
    mpirun
}

fn trainer(mut command: Command, folder: &Path, arguments: &str) -> Command {
    command
        .args(arguments.split_whitespace())
        .current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The trainer on so many ranks; on one without a launcher.
fn shared(ranks: usize, folder: &Path, arguments: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_trainer");
    let command = match ranks {
        1 => Command::new(program),
        _ => {
            let mut mpirun = mpirun(ranks);
            mpirun.arg(program);
            mpirun
        }
    };
    trainer(command, folder, arguments)
}

fn trained(ranks: usize, folder: &Path, arguments: &str) -> Checkpoint {
    let output = shared(ranks, folder, arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    latest(folder)
}

fn latest(folder: &Path) -> Checkpoint {
    let mut checkpoint = Checkpoint::load(&folder.join("runs/heat-1d/latest")).unwrap();
    // What may differ: the time, and the order in which Burn writes moments.
    checkpoint.seconds = 0.0;
    checkpoint.optimiser.clear();
    checkpoint
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folders<const N: usize>() -> [tempfile::TempDir; N] {
    [(); N].map(|()| tempfile::tempdir().unwrap())
}

/// Until it holds, or too long.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// What a command that is to end by itself said.
fn ended(mut child: Child) -> Output {
    wait_for("it goes on", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

/// The processes that a launcher has started, in the order of their ranks.
fn ranks_of(launcher: &Child) -> Vec<u32> {
    let children = format!("/proc/{0}/task/{0}/children", launcher.id());
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let mut found: Vec<(u32, u32)> = Vec::new();
    for pid in children.split_whitespace().map(|pid| pid.parse().unwrap()) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let rank = variables.find_map(|v| v.strip_prefix(b"OMPI_COMM_WORLD_RANK="));
        let rank = rank.and_then(|rank| std::str::from_utf8(rank).ok()?.parse().ok());
        found.extend(rank.map(|rank| (rank, pid)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, pid)| pid).collect()
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn ranks_learn_what_one_process_learns_and_the_same_bits_every_time() {
    let [one, three, again] = folders();
    let steps = format!("{SMALL} --steps 3");
    let one = trained(1, one.path(), &steps);
    let three = trained(3, three.path(), &steps);
    assert!(
        three == trained(3, again.path(), &steps),
        "not the same bits"
    );
    let (a, b) = (&one.history.current, &three.history.current);
    assert_eq!((a.count, b.count), (3, 3));
    assert!(
        (a.loss - b.loss).abs() < 1e-5 * a.loss,
        "{} and {}",
        a.loss,
        b.loss
    );
    for (a, b) in a.terms.iter().zip(b.terms) {
        assert!((a - b).abs() <= 1e-5 * a.abs().max(1e-6), "{a} and {b}");
    }
    let [a, b] = [&one, &three].map(|run| run.history.validations[0].terms);
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-4 * a.abs().max(1e-6), "{a} and {b}");
    }
}

/// More ranks than episodes, too.
#[test]
fn the_first_step_is_that_of_one_process_to_rounding() {
    let [one, many] = folders();
    let steps = "train heat-1d --preset quick --batch 3 --threads 1 --steps 1";
    let one = trained(1, one.path(), steps).history.current;
    let many = trained(4, many.path(), steps).history.current;
    assert!(
        (one.loss - many.loss).abs() < 1e-9 * one.loss,
        "{} and {}",
        one.loss,
        many.loss
    );
}

#[test]
fn a_training_goes_on_with_another_number_of_ranks() {
    let [alone, changing] = folders();
    // In the same sessions: the first one's number of steps decides the learning rate.
    let sessions = |ranks: [usize; 3], folder: &Path| {
        trained(ranks[0], folder, &format!("{SMALL} --steps 2"));
        trained(ranks[1], folder, &format!("{SMALL} --steps 4 --resume"));
        trained(ranks[2], folder, &format!("{SMALL} --steps 6 --resume"))
    };
    let alone = sessions([1, 1, 1], alone.path());
    let end = sessions([2, 3, 1], changing.path());
    assert_eq!((end.step, end.history.current.count), (6, 6));
    let (a, b) = (alone.history.current.loss, end.history.current.loss);
    assert!((a - b).abs() < 1e-4 * a, "{a} and {b}");
}

#[test]
fn ranks_that_are_not_asked_for_the_same_are_refused_by_name() {
    let [folder] = folders();
    let program = env!("CARGO_BIN_EXE_trainer");
    let refused = |first: &str, second: &str| {
        let mut mpirun = mpirun(1);
        mpirun.arg(program).args(first.split_whitespace());
        mpirun.args([":", "-n", "1", program]);
        let output = trainer(mpirun, folder.path(), second).output().unwrap();
        assert!(!output.status.success());
        assert!(!folder.path().join("runs").exists(), "something was begun");
        said(&output)
    };
    let told = refused(SMALL, &format!("{SMALL} --seed 2"));
    assert!(
        told.contains("rank 1 and rank 0 do not have the same settings"),
        "{told}"
    );
    let told = refused(SMALL, &SMALL.replace("heat-1d", "fkpp-1d"));
    assert!(told.contains("do not have the same problem"), "{told}");
    let told = refused(SMALL, &format!("{SMALL} --from nothing.policy"));
    assert!(
        told.contains("rank 1 of 2:") && told.contains("nothing.policy"),
        "{told}"
    );
    // What is wrong with all of them is said once.
    let wrong = format!("{SMALL} --lr -1");
    let told = refused(&wrong, &wrong);
    assert_eq!(told.matches("--lr -1 is not usable").count(), 1, "{told}");
}

/// A training that would go on for long, with a state on disk.
fn begun(folder: &Path, more: &str) -> Child {
    let long = format!("{SMALL} --steps 1000000 {more}");
    let child = shared(2, folder, &long).spawn().unwrap();
    wait_for("no state on disk", || {
        folder.join("runs/heat-1d/latest").exists()
    });
    wait_for("no ranks", || ranks_of(&child).len() == 2);
    // In the middle of its steps.
    sleep(Duration::from_secs(1));
    child
}

fn goes_on(folder: &Path) {
    let step = latest(folder).step;
    let further = format!("{SMALL} --steps {} --resume", step + 2);
    assert_eq!(trained(2, folder, &further).step, step + 2);
}

#[test]
fn a_rank_that_dies_ends_all_and_leaves_a_state_to_go_on_from() {
    let [folder] = folders();
    let child = begun(folder.path(), "");
    signal(ranks_of(&child)[1], "KILL");
    let output = ended(child);
    assert!(!output.status.success());
    assert!(said(&output).contains("signal 9"), "{}", said(&output));
    goes_on(folder.path());
}

#[test]
fn a_rank_that_hangs_is_not_waited_for_without_end() {
    let [folder] = folders();
    let child = begun(folder.path(), "--rank-patience 2");
    let hung = ranks_of(&child)[1];
    signal(hung, "STOP");
    let output = ended(child);
    assert!(!output.status.success());
    let told = said(&output);
    assert!(
        told.contains("of 2 ranks not all have answered in 2 s"),
        "{told}"
    );
    goes_on(folder.path());
}

#[test]
fn one_rank_that_is_asked_to_stop_stops_all_with_their_state_on_disk() {
    let [folder] = folders();
    let child = begun(folder.path(), "");
    signal(ranks_of(&child)[1], "INT");
    let output = ended(child);
    assert!(
        said(&output).contains("continue with --resume"),
        "{}",
        said(&output)
    );
    assert!(latest(folder.path()).step > 0);
    goes_on(folder.path());
}
