//! The example in C on the emulated board, and the same steps on the host.

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{Patch, Span},
    policy::Policy,
};
use node_link::emulated::PROGRAM;
use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
    str::{FromStr, SplitAsciiWhitespace},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The example takes well under a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// The emulator could not be run.
    #[error("cannot run {PROGRAM}: {0}")]
    Emulator(#[from] io::Error),
    /// It did not end.
    #[error("the example did not end within {PATIENCE:?}; it wrote: {0}")]
    Timeout(String),
    /// The example, or the emulator, failed.
    #[error("the example ended with {status}; it wrote: {output}")]
    Failed {
        /// Exit status.
        status: String,
        /// What it wrote.
        output: String,
    },
    /// A line is not what the example writes for this policy.
    #[error("line {number} of the example cannot be read: {line}")]
    Line {
        /// Counted from 1.
        number: usize,
        /// The line.
        line: String,
    },
    /// The host's agent does not take the policy, and why.
    #[error("{0}")]
    Host(String),
}

/// Runs an image of the example to its end and returns what it wrote.
pub fn run(elf: &Path) -> Result<String, ExampleError> {
    fs::metadata(elf).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", elf.display())))?;
    let folder = TempDir::with_prefix("c-example-")?;
    let written = folder.path().join("written");
    let mut process = Command::new(PROGRAM)
        .args(["-M", "mps2-an386", "-nodefaults", "-display", "none"])
        .arg("-chardev")
        .arg(format!("file,id=written,path={}", written.display()))
        .args([
            "-semihosting-config",
            "enable=on,target=native,chardev=written",
        ])
        .arg("-kernel")
        .arg(elf)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Warns of a network that nobody asked for.
        .stderr(Stdio::null())
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break Some(status);
        }
        if Instant::now() > deadline {
            process.kill()?;
            process.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let output = fs::read_to_string(written).unwrap_or_default();
    match status {
        Some(status) if status.success() => Ok(output),
        Some(status) => Err(ExampleError::Failed {
            status: status.to_string(),
            output,
        }),
        None => Err(ExampleError::Timeout(output)),
    }
}

/// The example's steps, taken again on the host.
#[derive(Debug, Default)]
pub struct Replay {
    /// Actions compared.
    pub actions: usize,
    /// Those of which a bit differs, each with what the host does.
    pub differing: Vec<String>,
    /// Bytes of stack that the board used at most.
    pub stack: usize,
    /// The states gone through, in the order of their first occurrence.
    pub modes: Vec<Mode>,
}

/// Takes the steps that the example wrote down and compares its actions with ours.
pub fn replay(written: &str, policy: &Policy) -> Result<Replay, ExampleError> {
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut agent = Agent::new(policy.clone(), &mut workspace)
        .map_err(|refusal| ExampleError::Host(refusal.to_string()))?;
    let mut replay = Replay::default();
    for (at, line) in written.lines().enumerate() {
        let unreadable = || ExampleError::Line {
            number: at + 1,
            line: line.to_owned(),
        };
        let (input, given) = line.split_once(" -> ").unwrap_or((line, ""));
        let mut words = Words(input.split_ascii_whitespace());
        let expected = match words.0.next() {
            Some("step") => words.step(&mut agent).ok_or_else(unreadable)?,
            Some("idle") => agent.idle(words.number().ok_or_else(unreadable)?),
            Some("reset") => {
                agent.reset();
                continue;
            }
            Some("stack") => {
                replay.stack = words.number().ok_or_else(unreadable)?;
                continue;
            }
            Some("refused,") | Some("done") => continue,
            _ => return Err(unreadable()),
        };
        let given = Words(given.split_ascii_whitespace())
            .action()
            .ok_or_else(unreadable)?;
        replay.actions += 1;
        if given != bits(&expected) {
            let difference = format!("line {}: {given:x?}, on the host {expected:?}", at + 1);
            replay.differing.push(difference);
        }
        if !replay.modes.contains(&expected.mode) {
            replay.modes.push(expected.mode);
        }
    }
    Ok(replay)
}

/// An action as what must be equal: every bit.
fn bits(action: &Action) -> ([u32; 3], u8) {
    let [x, y] = action.velocity;
    ([action.force, x, y].map(f32::to_bits), action.mode as u8)
}

/// The words of a line.
struct Words<'a>(SplitAsciiWhitespace<'a>);

impl Words<'_> {
    /// A decimal number.
    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    /// The bits of a float.
    fn bits(&mut self) -> Option<u32> {
        u32::from_str_radix(self.0.next()?, 16).ok()
    }

    fn floats(&mut self, count: usize) -> Option<Vec<f32>> {
        (0..count)
            .map(|_| self.bits().map(f32::from_bits))
            .collect()
    }

    fn step(&mut self, agent: &mut Agent) -> Option<Action> {
        let now_us = self.number()?;
        let position = [self.bits()?, self.bits()?].map(f32::from_bits);
        let inside = Span {
            first: self.number()?,
            last: self.number()?,
        };
        let cells = agent.policy().patch_len();
        let with_target = usize::from(agent.policy().header().sensing.target);
        let field = self.floats(cells)?;
        let target = self.floats(cells * with_target)?;
        let patch = Patch::line(&field, &target, inside);
        Some(agent.step(&patch, position, now_us))
    }

    fn action(&mut self) -> Option<([u32; 3], u8)> {
        Some(([self.bits()?, self.bits()?, self.bits()?], self.number()?))
    }
}
