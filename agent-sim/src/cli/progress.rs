//! A progress bar that shows only when there is something to wait for.

use artifacts::output::tell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Work that is done sooner is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(2);

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

    /// So many pieces were done before.
    pub fn skip(&self, pieces: usize) {
        self.bar.set_position(pieces as u64);
        self.bar.reset_eta();
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

/// Shows how much of a time is over, and what came of it so far; likewise.
pub struct Waiting {
    bar: ProgressBar,
    shown: AtomicBool,
}

impl Waiting {
    /// For something that takes that long.
    pub fn new(time: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(time.as_secs().max(1)),
            ProgressDrawTarget::hidden(),
        );
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} s") {
            bar.set_style(style);
        }
        Self {
            bar,
            shown: AtomicBool::new(false),
        }
    }

    /// Where it stands.
    pub fn show(&self, what: &str) {
        let elapsed = self.bar.elapsed();
        self.bar.set_position(elapsed.as_secs());
        self.bar.set_message(what.to_owned());
        if elapsed > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
