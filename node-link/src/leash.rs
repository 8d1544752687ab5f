//! A process that ends when ours does, however ours ends: returns, panics, or is killed.

use std::{
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A watcher beside the program reads from a pipe of which we hold the other end. When we are gone it
/// ends the program, whose number is the shell's own, and clears up after it. A line through the
/// pipe tells it that it is no longer needed.
const SCRIPT: &str = r#"
exec 3<&0
(read _ <&3 || { kill -9 $$; rm -rf -- "$1"; }) >/dev/null 2>&1 &
shift
exec "$@" 3<&- </dev/null
"#;

/// The program on a leash; `folder` goes with it if we end without letting go.
pub fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT, "sh"])
        .arg(folder)
        .arg(program)
        .stdin(Stdio::piped());
    command
}

/// Ends a process that was started with [`command`].
pub fn end(process: &mut Child) {
    if let Some(mut leash) = process.stdin.take() {
        // An error means that the watcher has ended.
        let _ = leash.write_all(b"\n");
    }
    // Likewise the process.
    let _ = process.kill();
    let _ = process.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        thread,
        time::{Duration, Instant},
    };

    fn sleeper(folder: &Path) -> Child {
        command("sleep", folder).arg("60").spawn().unwrap()
    }

    #[test]
    fn a_process_ends_when_nobody_holds_its_leash() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = sleeper(folder.path());
        thread::sleep(Duration::from_millis(100));
        assert!(process.try_wait().unwrap().is_none());
        // As the system does it for a process that was killed.
        drop(process.stdin.take());
        process.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while folder.path().exists() {
            assert!(Instant::now() < deadline, "the folder stays");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_process_that_is_ended_leaves_its_folder_to_us() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = sleeper(folder.path());
        end(&mut process);
        thread::sleep(Duration::from_millis(200));
        assert!(folder.path().exists());
    }
}
