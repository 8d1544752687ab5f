//! Running other programs.

use anyhow::{Context, Result, bail};
use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, IsTerminal, PipeReader, Write},
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::firmware::root;

/// So many of a failed command's last lines are part of the error.
const LINES: usize = 40;

/// How long what a command has left running may hold its output open after it has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a command in the workspace's folder. Where nobody watches, the end of what a failed one printed
/// is part of the error: CI keeps the summary, and not always what scrolled by before it.
pub fn succeed(command: &mut Command) -> Result<()> {
    command.current_dir(root());
    let watched = io::stdout().is_terminal() || io::stderr().is_terminal();
    let ended = match watched {
        true => command.status().map(|status| (status, Vec::new())),
        false => followed(command),
    };
    let (status, lines) = ended.with_context(|| format!("cannot run {}", name(command)))?;
    if status.success() {
        return Ok(());
    }
    let end: String = lines.iter().map(|line| format!("\n  | {line}")).collect();
    bail!("{} ended with {status}{end}", name(command))
}

/// Runs a command, passes on what it prints, and returns the last lines of that.
fn followed(command: &mut Command) -> io::Result<(ExitStatus, Vec<String>)> {
    let (output, input) = io::pipe()?;
    command.stdout(input.try_clone()?).stderr(input);
    let child = command.spawn();
    // The command has kept its ends of the pipe, which would never be closed.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child = child?;
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let reader = thread::spawn({
        let last = Arc::clone(&last);
        move || pass_on(output, &last)
    });
    let status = child.wait()?;
    let end = Instant::now();
    while !reader.is_finished() && end.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((status, last.drain(..).collect()))
}

/// Prints lines until there are no more.
fn pass_on(output: PipeReader, last: &Mutex<VecDeque<String>>) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    while output.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
        // Nobody may be there to read it; what it ends with still counts.
        let _ = io::stdout().write_all(&bytes);
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LINES {
            last.pop_front();
        }
        last.push_back(String::from_utf8_lossy(&bytes).trim_end().to_owned());
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
        let (status, lines) = followed(&mut command).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[0], "12");
        assert_eq!(lines[LINES - 2..], ["50", "last"]);
    }

    #[test]
    fn what_a_command_leaves_running_does_not_hold_it_up() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo here; sleep 600 & echo $!"]);
        let (status, lines) = followed(&mut command).unwrap();
        assert!(status.success());
        assert_eq!(lines[0], "here");
        let _ = Command::new("kill").arg(&lines[1]).status();
    }
}
