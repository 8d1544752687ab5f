//! Running other programs.

use anyhow::{Context, Result, bail};
use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt::Arguments,
    io::{self, BufRead, BufReader, IsTerminal, PipeReader, Write},
    mem,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::firmware::root;

/// So many of the lines that say what went wrong, and so many of the last ones, are part of the error.
const TELLING: usize = 24;
const LAST: usize = 12;

/// A panic's message and what it compared follow the line that names it.
const AFTER_A_PANIC: usize = 3;

/// How long what a command has left running may hold its output open after it has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// What has been printed and is shown later.
type Held = Arc<Mutex<Vec<u8>>>;

thread_local! {
    /// Where this thread and its commands print, if that is held back.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Runs something whose printing is held back, and returns that too: beside other work, each is readable
/// only as a whole.
pub fn held<T>(run: impl FnOnce() -> T) -> (T, Vec<u8>) {
    let held = Held::default();
    HELD.set(Some(Arc::clone(&held)));
    let value = run();
    HELD.set(None);
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    (value, mem::take(&mut *held))
}

fn holder() -> Option<Held> {
    HELD.with_borrow(Clone::clone)
}

/// Prints a line where this thread's commands print.
macro_rules! say {
    ($($line:tt)*) => {
        $crate::command::say_line(format_args!($($line)*))
    };
}
pub(crate) use say;

pub fn say_line(line: Arguments<'_>) {
    print(holder().as_ref(), format!("{line}\n").as_bytes());
}

fn print(held: Option<&Held>, bytes: &[u8]) {
    match held {
        Some(held) => {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            held.extend_from_slice(bytes);
        }
        // Nobody may be there to read it.
        None => drop(io::stdout().write_all(bytes)),
    }
}

/// Runs a command in the workspace's folder. Where nobody watches, what a failed one said of its failure
/// is part of the error: CI keeps the summary, and not always what scrolled by before it.
pub fn succeed(command: &mut Command) -> Result<()> {
    succeed_in(root(), command)
}

/// Runs a command in another folder.
pub fn succeed_in(folder: &Path, command: &mut Command) -> Result<()> {
    command.current_dir(folder);
    let terminal = io::stdout().is_terminal() || io::stderr().is_terminal();
    let ended = match terminal && holder().is_none() {
        true => command.status().map(|status| (status, Digest::default())),
        false => followed(command),
    };
    let (status, digest) = ended.with_context(|| format!("cannot run {}", name(command)))?;
    if status.success() {
        return Ok(());
    }
    let lines = digest.telling.iter().chain(&digest.last);
    let lines: String = lines.map(|line| format!("\n  | {line}")).collect();
    bail!("{} ended with {status}{lines}", name(command))
}

/// What of a command's output explains its failure.
#[derive(Default)]
struct Digest {
    /// The first lines that name a failed test, a panic or an error.
    telling: Vec<String>,
    last: VecDeque<String>,
    /// So many lines still belong to a panic.
    of_panic: usize,
}

impl Digest {
    fn add(&mut self, line: &str) {
        let panics = line.contains("panicked at");
        let fails = line.ends_with("... FAILED") || line.trim_start().starts_with("error");
        let tells = panics || fails || self.of_panic > 0;
        // Some libraries print the same complaint again and again.
        let new = self.telling.iter().all(|told| told != line);
        if tells && new && self.telling.len() < TELLING {
            self.telling.push(line.to_owned());
        }
        self.of_panic = match panics {
            true => AFTER_A_PANIC,
            false => self.of_panic.saturating_sub(1),
        };
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }
}

/// Runs a command, passes on what it prints, and returns what matters of that.
fn followed(command: &mut Command) -> io::Result<(ExitStatus, Digest)> {
    let (output, input) = io::pipe()?;
    command.stdout(input.try_clone()?).stderr(input);
    let child = command.spawn();
    // The command has kept its ends of the pipe, which would never be closed.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child = child?;
    let digest = Arc::new(Mutex::new(Digest::default()));
    let reader = thread::spawn({
        let digest = Arc::clone(&digest);
        let held = holder();
        move || pass_on(output, held.as_ref(), &digest)
    });
    let status = child.wait()?;
    let end = Instant::now();
    while !reader.is_finished() && end.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    let mut digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((status, mem::take(&mut *digest)))
}

/// Prints lines until there are no more.
fn pass_on(output: PipeReader, held: Option<&Held>, digest: &Mutex<Digest>) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    while output.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
        print(held, &bytes);
        let mut digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
        digest.add(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
}

fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_a_command_prints_is_kept_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1 50; echo last >&2; exit 3"]);
        let (status, digest) = followed(&mut command).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(digest.last.len(), LAST);
        assert_eq!(digest.last[0], "40");
        assert_eq!(digest.last[LAST - 2], "50");
        assert_eq!(digest.last[LAST - 1], "last");
        assert!(digest.telling.is_empty());
    }

    #[test]
    fn what_is_held_back_comes_whole_and_in_order() {
        let (result, printed) = held(|| {
            say!("first");
            succeed(Command::new("sh").args(["-c", "echo second; echo third >&2"]))?;
            say!("fourth");
            succeed(&mut Command::new("false"))
        });
        assert!(result.is_err());
        assert_eq!(printed, b"first\nsecond\nthird\nfourth\n");
        assert!(holder().is_none());
    }

    #[test]
    fn what_names_a_failure_is_kept_once_however_much_follows() {
        let telling = [
            "test b ... FAILED",
            "thread 'b' panicked at b.rs:1:2:",
            "message",
            "left: 1",
            "right: 2",
            "error: 1 target failed",
        ];
        let mut digest = Digest::default();
        digest.add("test a ... ok");
        for line in telling {
            digest.add(line);
        }
        digest.add("error: 1 target failed");
        for _ in 0..100 {
            digest.add("something else");
        }
        assert_eq!(digest.telling, telling);
    }

    #[test]
    fn what_a_command_leaves_running_does_not_hold_it_up() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo here; sleep 600 & echo $!"]);
        let (status, digest) = followed(&mut command).unwrap();
        assert!(status.success());
        assert_eq!(digest.last[0], "here");
        let _ = Command::new("kill").arg(&digest.last[1]).status();
    }
}
