//! A training that runs on threads of its own while the program does something else: it can be watched,
//! stopped and waited for. What it computes does not depend on that.

use crate::entry::Entry;
use crate::learn::{History, StepReport, Trainer};
use crate::run::{Existing, Outcome};
use crate::training::{Opened, Options};
use anyhow::{Context, Result, anyhow};
use problem::limit;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// A training under way or ended. Dropping it asks it to stop.
#[derive(Debug)]
pub struct Background(Arc<Shared>);

/// What can be seen of a training from outside.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Where the run is kept.
    pub folder: PathBuf,
    /// Where its rollouts run.
    pub engine: String,
    /// Numbers that are learnt.
    pub parameters: usize,
    /// Optimiser steps done.
    pub step: u64,
    /// Optimiser steps in all.
    pub steps: u64,
    /// Steps and their losses: all of this session, and of those before it means of some steps each, as
    /// checkpoints keep them.
    pub losses: Vec<(u64, f64)>,
    /// Steps and the scores of the policies after them on the validation episodes.
    pub validations: Vec<(u64, f64)>,
    /// The first step after which there will be a validation.
    pub validated_at: u64,
}

/// How a training ended; the error may be looked at several times.
pub type Ended = Result<Outcome, Arc<anyhow::Error>>;

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing before the run is open.
    view: Option<View>,
    ended: Option<Ended>,
}

/// Those that may still run, for whoever must end the program.
static RUNNING: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Background {
    /// Begins a training as [`Options::open`] does, on `threads` threads (0 for one per core). Comes back at
    /// once: whether there is such a training is found out on the way, see [`Self::opened`].
    pub fn start(
        entry: &'static Entry,
        options: Options,
        out: PathBuf,
        existing: Existing,
        threads: usize,
    ) -> Result<Self> {
        limit::THREADS.check(threads)?;
        let none = || format!("cannot start {threads} threads; give --threads fewer");
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|k| format!("training {k}"));
        let pool = pool.build().with_context(none)?;
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let all = move || {
            let train = || pool.install(|| theirs.train(entry, &options, out, existing));
            let ended = catch_unwind(AssertUnwindSafe(train)).unwrap_or_else(|panic| {
                let said = words(&*panic);
                Err(anyhow!(
                    "the training ended by a mistake of its own: {said}"
                ))
            });
            theirs.locked().ended = Some(ended.map_err(Arc::new));
            theirs.changed.notify_all();
        };
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&shared));
        let thread = thread::Builder::new().name("training".to_owned());
        thread.spawn(all).with_context(none)?;
        Ok(Self(shared))
    }

    /// Waits until the run is open: then it trains, or it has ended by what stood against it. None if it
    /// takes longer.
    pub fn opened(&self, at_most: Duration) -> Option<Result<(), Arc<anyhow::Error>>> {
        let state = self.0.wait(at_most, |state| {
            state.view.is_some() || state.ended.is_some()
        });
        match (&state.view, &state.ended) {
            (Some(_), _) => Some(Ok(())),
            (None, Some(ended)) => Some(ended.clone().map(|_| ())),
            (None, None) => None,
        }
    }

    /// Waits until the training has ended and its state is on disk. None if it takes longer.
    pub fn ended(&self, at_most: Duration) -> Option<Ended> {
        self.0
            .wait(at_most, |state| state.ended.is_some())
            .ended
            .clone()
    }

    /// Asks it to stop after the step that it is at; it then writes its state.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Looks at the training; at nothing before it is open.
    pub fn look<T>(&self, at: impl FnOnce(&View) -> T) -> T {
        match &self.0.locked().view {
            Some(view) => at(view),
            None => at(&View::default()),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Asks all trainings of this program to stop, and waits for them, but not longer than that.
pub fn stop_all(at_most: Duration) {
    let running = std::mem::take(&mut *RUNNING.lock().unwrap_or_else(PoisonError::into_inner));
    let running: Vec<_> = running.iter().filter_map(Weak::upgrade).collect();
    for one in &running {
        one.stop.store(true, Ordering::Relaxed);
    }
    let until = Instant::now() + at_most;
    for one in &running {
        let left = until.saturating_duration_since(Instant::now());
        drop(one.wait(left, |state| state.ended.is_some()));
    }
}

impl Shared {
    /// Nothing panics while it holds the lock, and what is in it is whole.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, at_most: Duration, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed
            .wait_timeout_while(self.locked(), at_most, |state| !until(state))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn train(
        &self,
        entry: &'static Entry,
        options: &Options,
        out: PathBuf,
        existing: Existing,
    ) -> Result<Outcome> {
        let opened = options.open(entry, &out, existing)?;
        self.locked().view = Some(View::of(&opened));
        self.changed.notify_all();
        let Opened { mut run, steps, .. } = opened;
        run.train(steps, &self.stop, |trainer, report| {
            if let Some(view) = &mut self.locked().view {
                view.add(trainer, report);
            }
        })
    }
}

impl View {
    /// The best score so far.
    pub fn best(&self) -> Option<f64> {
        let scores = self.validations.iter().map(|(_, score)| *score);
        scores.min_by(f64::total_cmp)
    }

    fn of(Opened { run, steps, engine }: &Opened) -> Self {
        let trainer = run.trainer();
        let History {
            stretches, current, ..
        } = &trainer.history;
        let means = stretches
            .iter()
            .chain(Some(current).filter(|c| c.count > 0));
        let every = trainer.config.validate_every;
        let mut view = Self {
            folder: run.folder().to_owned(),
            engine: engine.clone(),
            parameters: trainer.policy_config.shape.parameters(),
            step: trainer.step,
            steps: *steps,
            losses: means.map(|mean| (mean.step, mean.loss)).collect(),
            validations: Vec::new(),
            validated_at: ((trainer.step / every + 1) * every).min(*steps),
        };
        view.add_validations(trainer);
        view
    }

    fn add(&mut self, trainer: &Trainer, report: &StepReport) {
        self.step = report.step;
        self.losses.push((report.step, report.loss));
        self.add_validations(trainer);
    }

    fn add_validations(&mut self, trainer: &Trainer) {
        let (known, headline) = (self.validations.len(), trainer.headline());
        let new = trainer.history.validations.iter().skip(known);
        self.validations
            .extend(new.map(|v| (v.step, v.score(headline))));
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::heat_1d::ENTRY;
    use crate::recipe::Preset;

    const PATIENCE: Duration = Duration::from_secs(120);

    /// Held by tests with trainings that run: one of them stops all there are.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn turn() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(out: &std::path::Path, steps: usize, existing: Existing) -> Background {
        let options = Options {
            preset: Preset::Quick,
            steps: Some(steps),
            batch: Some(1),
            agents: vec!["2".parse().unwrap()],
            ..Options::default()
        };
        Background::start(&ENTRY, options, out.to_owned(), existing, 1).unwrap()
    }

    fn finished(training: &Background) -> View {
        let ended = training.ended(PATIENCE).expect("an end in two minutes");
        assert_eq!(ended.unwrap(), Outcome::Finished);
        training.look(View::clone)
    }

    #[test]
    fn a_training_is_watched_stopped_and_resumed_to_the_same_end() {
        let _turn = turn();
        let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let undisturbed = finished(&start(whole.path(), 30, Existing::Keep));
        let steps = |view: &View| {
            view.losses
                .iter()
                .map(|(step, _)| *step)
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(&undisturbed), (1..=30).collect::<Vec<_>>());
        assert_eq!(undisturbed.validations.last().unwrap().0, 30);

        let first = start(cut.path(), 30, Existing::Keep);
        first.opened(PATIENCE).unwrap().unwrap();
        first.stop();
        let ended = first.ended(PATIENCE).unwrap().unwrap();
        assert!(matches!(ended, Outcome::Interrupted | Outcome::Finished));
        // A second one waits for nobody: the folder is free as soon as the first has ended.
        let resumed = match ended {
            Outcome::Finished => first.look(View::clone),
            _ => finished(&start(cut.path(), 30, Existing::Resume)),
        };
        assert_eq!(undisturbed.validations.last(), resumed.validations.last());
    }

    #[test]
    fn what_stands_against_a_training_is_told_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let training = start(folder.path(), 0, Existing::Keep);
        let error = training.opened(PATIENCE).unwrap().unwrap_err();
        assert!(error.to_string().contains("--steps 0"), "{error}");
        assert!(training.ended(Duration::ZERO).unwrap().is_err());
    }

    #[test]
    fn whoever_ends_the_program_leaves_a_checkpoint() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let training = start(folder.path(), 100_000, Existing::Keep);
        training.opened(PATIENCE).unwrap().unwrap();
        drop(training);
        stop_all(PATIENCE);
        let resumed = start(folder.path(), 100_000, Existing::Resume);
        resumed.opened(PATIENCE).unwrap().unwrap();
    }
}
