//! A run held to what is required of it.

use super::{Bound, Conditions, Moment, Reader, Requirement, When};
use serde::{Deserialize, Serialize};

/// How a requirement fared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// How far it was from failing, as a share of its bound: 1 is all the way down to 0, 0 is the bound
    /// itself, and below 0 it failed.
    pub margin: f64,
    /// What the quantity was when that was so.
    pub value: f64,
    /// After how many steps.
    pub step: usize,
}

impl Judged {
    /// Before anything was seen.
    const NOTHING: Self = Self {
        margin: f64::NAN,
        value: f64::NAN,
        step: 0,
    };

    /// Whether what was required held.
    pub fn holds(&self) -> bool {
        self.margin >= 0.0
    }

    fn or(self, other: Self, better: fn(f64, f64) -> bool) -> Self {
        match self.margin.is_nan() || better(other.margin, self.margin) {
            true => other,
            false => self,
        }
    }

    fn or_worse(self, other: Self) -> Self {
        self.or(other, |new, old| new < old)
    }

    fn or_better(self, other: Self) -> Self {
        self.or(other, |new, old| new > old)
    }
}

/// How a run fared.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Each requirement, in order.
    pub judged: Vec<Judged>,
    /// Why the run ended before its time, if it did: then nothing of what was required holds.
    pub cut: Option<String>,
}

impl Verdict {
    /// The smallest margin.
    pub fn margin(&self) -> f64 {
        match self.cut {
            Some(_) => f64::NEG_INFINITY,
            None => self
                .judged
                .iter()
                .map(|judged| judged.margin)
                .fold(f64::INFINITY, f64::min),
        }
    }

    /// The number of the requirement with the smallest margin.
    pub fn worst(&self) -> usize {
        let margins = self.judged.iter().map(|judged| judged.margin).enumerate();
        margins
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(0, |(index, _)| index)
    }

    /// Whether everything held.
    pub fn holds(&self) -> bool {
        self.margin() >= 0.0
    }

    /// Whether a run with this verdict fails as one that failed did: both were cut short, or neither was and
    /// the requirement that the other lost most is lost.
    pub fn fails_like(&self, other: &Self) -> bool {
        match (&self.cut, &other.cut) {
            (None, None) => self
                .judged
                .get(other.worst())
                .is_some_and(|judged| !judged.holds()),
            (now, before) => now.is_some() && before.is_some(),
        }
    }
}

/// Sees a run, and holds it to what is required.
pub struct Judge {
    tracks: Vec<Track>,
}

struct Track {
    reader: Reader,
    bound: Bound,
    of_start: bool,
    when: When,
    /// First and last step that count.
    span: [usize; 2],
    /// For each fault: its first step that counts, its last, and the best so far.
    after: Vec<([usize; 2], Judged)>,
    so_far: Judged,
}

impl Judge {
    /// For a run under these conditions, by requirements that have passed [`Requirement::check`] for it.
    pub fn new(requirements: &[Requirement], run: &Conditions<'_>) -> Self {
        let track = |requirement: &Requirement| {
            let span = requirement.steps(run.steps);
            let after = match requirement.when {
                When::AfterFaults(steps) => {
                    let begun = run
                        .faults
                        .iter()
                        .filter(|at| (span[0]..=span[1]).contains(*at));
                    begun
                        .map(|&at| ([at, at + steps], Judged::NOTHING))
                        .collect()
                }
                _ => Vec::new(),
            };
            Track {
                reader: (requirement.quantity.reader)(requirement, run),
                bound: requirement.bound,
                of_start: requirement.of_start,
                when: requirement.when,
                span,
                after,
                so_far: Judged::NOTHING,
            }
        };
        Self {
            tracks: requirements.iter().map(track).collect(),
        }
    }

    /// Sees the run before the first step and after each.
    pub fn see(&mut self, now: &Moment<'_>) {
        for track in &mut self.tracks {
            track.see(now);
        }
    }

    /// What it comes to; `cut` if the run ended before its time.
    pub fn verdict(self, cut: Option<String>) -> Verdict {
        let judged = self.tracks.into_iter().map(Track::judged).collect();
        Verdict { judged, cut }
    }
}

impl Track {
    fn see(&mut self, now: &Moment<'_>) {
        // Also outside its time: some quantities are sums over the whole run.
        let (step, value) = (now.snapshot.step, (self.reader)(now));
        if step == 0 && self.of_start {
            self.bound = self.bound.of(value);
        }
        let judged = Judged {
            margin: self.bound.margin(value),
            value,
            step,
        };
        for (span, best) in &mut self.after {
            if (span[0]..=span[1]).contains(&step) {
                *best = best.or_better(judged);
            }
        }
        if !(self.span[0]..=self.span[1]).contains(&step) {
            return;
        }
        match self.when {
            When::Always => self.so_far = self.so_far.or_worse(judged),
            When::Eventually => self.so_far = self.so_far.or_better(judged),
            When::AtTheEnd => self.so_far = judged,
            When::AfterFaults(_) => {}
        }
    }

    fn judged(self) -> Judged {
        let after = self.after.into_iter().map(|(_, best)| best);
        after.fold(self.so_far, |worst, best| match best.margin.is_nan() {
            true => worst,
            false => worst.or_worse(best),
        })
    }
}
