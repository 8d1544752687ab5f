//! A training on disk: `<out>/<problem>/{latest, best, report.json, loss.svg}`, or `<out>/<problem>-centralised`.

use crate::checkpoint::Checkpoint;
use crate::engine::Engine;
use crate::entry::{Entries, Entry};
use crate::learn::{StepReport, TrainConfig, Trainer};
use crate::ranks::Ranks;
use crate::recipe::Recipe;
use crate::report::TrainingReport;
use anyhow::{Context, Result, bail, ensure};
use artifacts::output::OutputFolder;
use problem::Problem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Steps between two writes of `latest`.
const SAVE_EVERY: u64 = 100;

/// Where a training of a problem is kept in a folder of runs: that of a network which decides for all agents stands
/// beside that of the policy.
pub fn folder(out: &Path, problem: &Problem, centralised: bool) -> PathBuf {
    match centralised {
        true => out.join(format!("{}-centralised", problem.name)),
        false => out.join(problem.name),
    }
}

/// What to do with a run that is already in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse to touch it.
    Keep,
    /// Continue it.
    Resume,
    /// Start over.
    Overwrite,
}

impl Existing {
    /// What two wishes, of which only one can be had, come to.
    pub fn asked(resume: bool, overwrite: bool) -> Result<Self> {
        match (resume, overwrite) {
            (true, true) => {
                bail!(
                    "--resume goes on with a training and --overwrite replaces it; give one of them"
                )
            }
            (true, false) => Ok(Self::Resume),
            (false, true) => Ok(Self::Overwrite),
            (false, false) => Ok(Self::Keep),
        }
    }
}

/// There is a training in the folder, and it is to be kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{}' already holds a training; add --resume to continue it, --overwrite to replace it, or choose another --out",
    .0.display()
)]
pub struct Held(PathBuf);

/// A training and where it is kept.
pub struct TrainingRun {
    folder: PathBuf,
    /// That nobody else trains into it: held by who leads.
    _claimed: Option<OutputFolder>,
    ranks: Ranks,
    trainer: Trainer,
    /// Seconds of earlier sessions.
    before: f64,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are done.
    Finished,
    /// Validation had stopped becoming better.
    Stale,
    /// Asked to stop; the state is on disk.
    Interrupted,
}

impl TrainingRun {
    /// Opens the run of `problem` under `out`. `change` edits the recipe's settings of a new run; a
    /// resumed one keeps its own, and `change` must agree with them.
    pub fn open(
        entry: &'static Entry,
        out: &Path,
        existing: Existing,
        recipe: Recipe,
        change: impl Fn(&mut TrainConfig),
        engine: &Engine,
    ) -> Result<Self> {
        let ranks = engine.ranks();
        let folder = folder(out, entry.problem, recipe.policy.shape.seats.is_some());
        if !ranks.leads() {
            return Self::follow(entry, folder, engine);
        }
        let run = Self::lead(entry, folder, existing, recipe, change, engine)?;
        if ranks.of() > 1 {
            ranks.exchange(run.trainer.checkpoint(run.before)?.to_bytes()?)?;
        }
        Ok(run)
    }

    /// The run as another rank has opened it, which alone reads and writes its folder.
    fn follow(entry: &'static Entry, folder: PathBuf, engine: &Engine) -> Result<Self> {
        let ranks = engine.ranks();
        let told: Vec<Vec<u8>> = ranks.exchange(Vec::new())?;
        let checkpoint = Checkpoint::from_bytes(&told[0], "what rank 0 says")?;
        let before = checkpoint.seconds;
        Ok(Self {
            folder,
            _claimed: None,
            ranks,
            trainer: Trainer::resume(checkpoint, &Entries::new(&[entry])?, engine)?,
            before,
        })
    }

    fn lead(
        entry: &'static Entry,
        folder: PathBuf,
        existing: Existing,
        recipe: Recipe,
        change: impl Fn(&mut TrainConfig),
        engine: &Engine,
    ) -> Result<Self> {
        let problem = entry.problem;
        let latest = folder.join("latest");
        if existing == Existing::Resume && !latest.exists() {
            // In the words of one that cannot be read, and without making the folder.
            Checkpoint::load(&latest)?;
        }
        let claimed = OutputFolder::claim(&folder)?;
        if existing == Existing::Resume {
            let checkpoint = Checkpoint::load(&latest)?;
            ensure!(
                checkpoint.problem == problem.address(),
                "'{}' is a training of {}, not of {}; choose another --out",
                latest.display(),
                checkpoint.problem,
                problem.address()
            );
            let mut asked = checkpoint.config.clone();
            change(&mut asked);
            ensure!(
                asked == checkpoint.config,
                "the run in '{}' has other settings ({}); resume it without settings, or start over with --overwrite",
                folder.display(),
                differences(&checkpoint.config, &asked)?
            );
            let before = checkpoint.seconds;
            let trainer = Trainer::resume(checkpoint, &Entries::new(&[entry])?, engine)
                .with_context(|| format!("cannot resume from '{}'", latest.display()))?;
            return Ok(Self {
                folder,
                _claimed: Some(claimed),
                ranks: engine.ranks(),
                trainer,
                before,
            });
        }
        if existing == Existing::Keep && latest.exists() {
            bail!(Held(folder));
        }
        let Recipe {
            policy,
            mut train,
            start,
            ..
        } = recipe;
        change(&mut train);
        let mut trainer = Trainer::new(entry, train, policy, engine)?;
        if let Some(parameters) = start {
            trainer.begin_with(&parameters);
        }
        let run = Self {
            folder,
            _claimed: None,
            ranks: engine.ranks(),
            trainer,
            before: 0.0,
        };
        // From here on the old run is gone, all of it or none.
        run.save("latest", 0.0)?;
        for leftover in ["best", "report.json", "loss.svg"] {
            claimed.remove(leftover).ok();
        }
        Ok(Self {
            _claimed: Some(claimed),
            ..run
        })
    }

    /// The training itself.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Where the run is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The processes that share it, as this one sees them.
    pub fn ranks(&self) -> Ranks {
        self.ranks
    }

    fn save(&self, name: &str, seconds: f64) -> Result<()> {
        if !self.ranks.leads() {
            return Ok(());
        }
        self.trainer
            .checkpoint(seconds)?
            .save(&self.folder().join(name))
    }

    fn report(&self, seconds: f64) -> Result<()> {
        if !self.ranks.leads() {
            return Ok(());
        }
        TrainingReport {
            problem: self.trainer.problem().name,
            config: &self.trainer.config,
            policy: &self.trainer.policy_config,
            step: self.trainer.step,
            seconds,
            headline: self.trainer.headline(),
            history: &self.trainer.history,
        }
        .write(self.folder())
    }

    /// Trains until `steps` steps are done or `stop` is set, for any of the ranks. `watch` sees every step, after its validation
    /// if it has one.
    pub fn train(
        &mut self,
        steps: u64,
        stop: &AtomicBool,
        mut watch: impl FnMut(&Trainer, &StepReport),
    ) -> Result<Outcome> {
        let began = Instant::now();
        let seconds = |before: f64| before + began.elapsed().as_secs_f64();
        let ended = |trainer: &Trainer| trainer.step >= steps || trainer.is_stale();
        while !ended(&self.trainer) && !self.ranks.any(stop.load(Ordering::Relaxed))? {
            let report = match self.trainer.step() {
                Ok(report) => report,
                Err(error) => {
                    // What was learnt so far is whole, whatever became of the others.
                    self.save("latest", seconds(self.before))?;
                    return Err(error);
                }
            };
            let step = report.step;
            if step.is_multiple_of(self.trainer.config.validate_every) || step == steps {
                let best = self.trainer.validate()?;
                // `best` first: a crash in between repeats the steps since the last `latest`.
                if best {
                    self.save("best", seconds(self.before))?;
                }
                self.report(seconds(self.before))?;
            }
            if step.is_multiple_of(SAVE_EVERY) || step == steps {
                self.save("latest", seconds(self.before))?;
            }
            watch(&self.trainer, &report);
        }
        let outcome = match (self.trainer.step < steps, self.trainer.is_stale()) {
            (false, _) => Outcome::Finished,
            (true, true) => Outcome::Stale,
            (true, false) => Outcome::Interrupted,
        };
        if outcome != Outcome::Finished {
            self.save("latest", seconds(self.before))?;
        }
        self.before = seconds(self.before);
        self.report(self.before)?;
        Ok(outcome)
    }
}

/// The settings in which two configurations differ, as `name: old, not new`.
fn differences(old: &TrainConfig, new: &TrainConfig) -> Result<String> {
    let (old, new) = (serde_json::to_value(old)?, serde_json::to_value(new)?);
    let fields = old.as_object().into_iter().flatten();
    let differing = fields.filter(|(name, value)| new.get(name.as_str()) != Some(value));
    let shown = differing.map(|(name, value)| format!("{name} {value}, not {}", new[name]));
    Ok(shown.collect::<Vec<_>>().join("; "))
}
