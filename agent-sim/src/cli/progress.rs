//! A progress bar that shows only when there is something to wait for.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Work that is done sooner is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes a line to standard error. A reader that has gone away (`2>&1 | head`) must not end a run.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Counts finished pieces of work, on standard error and only on a terminal.
pub struct Progress {
    bar: ProgressBar,
    shown: AtomicBool,
}

impl Progress {
    /// For `pieces` of work, e.g. episodes.
    pub fn new(pieces: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(pieces as u64), ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {pos}/{len} {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self {
            bar,
            shown: AtomicBool::new(false),
        }
    }

    /// One piece is done.
    pub fn tick(&self) {
        self.bar.inc(1);
        if self.bar.elapsed() > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Progress {
    /// Writes a line above the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| tell(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
