//! How far a training is: a bar on a terminal, a line now and then elsewhere.

use crate::learn::{StepReport, Trainer};
use crate::loss::Term;
use artifacts::output::tell;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// What is shown of a training.
pub struct Progress {
    bar: ProgressBar,
    first: u64,
    steps: u64,
    began: Instant,
    spoken: Instant,
}

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl Progress {
    /// That of a training from step `first` to step `steps`.
    pub fn new(first: u64, steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = "{bar:30} {pos}/{len} {per_sec} eta {eta}  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
        bar.set_position(first);
        bar.reset_eta();
        let now = Instant::now();
        Self {
            bar,
            first,
            steps,
            began: now,
            spoken: now,
        }
    }

    /// Shows a step that was just done.
    pub fn show(&mut self, trainer: &Trainer, report: &StepReport) {
        let (step, weights) = (report.step, trainer.config.weights);
        let mut message = format!("loss {:.4}", report.loss);
        for term in Term::ALL {
            let k = term as usize;
            if weights[k] != 0.0 {
                message += &format!("  {} {:.1e}", term.name(), report.terms[k]);
            }
        }
        if let Some(validation) = trainer.history.validations.last() {
            message += &format!("  validation {:.2e}", validation.score(trainer.headline()));
        }
        if trainer.retreats > 0 {
            message += &format!("  went back {} times", trainer.retreats);
        }
        self.bar.set_position(step);
        if self.bar.is_hidden() {
            if self.spoken.elapsed() >= LINE_EVERY || step == self.steps {
                self.spoken = Instant::now();
                let rate = (step - self.first) as f64 / self.began.elapsed().as_secs_f64();
                let left = (self.steps - step) as f64 / rate;
                tell(&format!(
                    "step {step}/{}  {rate:.1}/s  eta {left:.0} s  {message}",
                    self.steps
                ));
            }
        } else {
            self.bar.set_message(message);
        }
    }

    /// Leaves it as it is.
    pub fn finish(&self) {
        self.bar.abandon();
    }
}
