//! A plant as a process of ours, which ends when we do, with all that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Reads from a pipe of which we hold the other end. When we are gone, however we went, it ends the
/// plant's group; a line through the pipe tells it that it is no longer needed.
const WATCHER: &str = r#"read _ || kill -s KILL -- -"$1""#;

/// How long a process that closed its output may take to end.
const GRACE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);

/// The process, a group of its own.
pub struct Child {
    process: Process,
    watcher: Process,
}

/// Our ends of its standard input, output and error.
pub struct Ends {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
}

impl Child {
    /// Starts a command of the shell.
    pub fn start(command: &str) -> io::Result<(Self, Ends)> {
        let mut process = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let watcher = Command::new("sh")
            .args(["-c", WATCHER, "sh", &process.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Nor is it for the keyboard to end it before the plant.
            .process_group(0)
            .spawn();
        let watcher = watcher.inspect_err(|_| {
            let _ = process.kill();
            let _ = process.wait();
        })?;
        let ends = Ends {
            input: process.stdin.take().expect("a pipe").into(),
            output: process.stdout.take().expect("a pipe").into(),
            errors: process.stderr.take().expect("a pipe").into(),
        };
        Ok((Self { process, watcher }, ends))
    }

    /// How it ended, if it has or does in a moment.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + GRACE;
        loop {
            match self.process.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nobody else has the group's number as long as one of it is there; errors mean that all are gone.
        if let Some(group) = Pid::from_raw(self.process.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
        if let Some(mut leash) = self.watcher.stdin.take() {
            let _ = leash.write_all(b"\n");
        }
        let _ = self.watcher.wait();
    }
}
