//! A scenario that fails, without all that it does not need to fail.

use crate::fault::{Descriptor, Fault, When as Lasting, Who};
use crate::requirement::Requirement;
use crate::scenario::{Scenario, Team};
use problem::Problems;

/// A scenario and the number of the runs that it took to make it smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Smaller {
    /// As small as it gets.
    pub scenario: Scenario,
    /// Runs made.
    pub runs: usize,
}

/// Makes a scenario that fails smaller for as long as it still does: fewer faults, fewer agents hit, later,
/// shorter, weaker, and, where what is `lost` does not depend on when the run ends, fewer steps. `fails`
/// says whether a scenario does, in the same way; `go_on` whether there is time for another run.
pub fn shrink(
    scenario: &Scenario,
    problems: &Problems,
    lost: Option<&Requirement>,
    go_on: &mut dyn FnMut() -> bool,
    fails: &mut dyn FnMut(&Scenario) -> bool,
) -> Smaller {
    let mut shrinker = Shrinker {
        best: scenario.clone(),
        runs: 0,
        problems,
        go_on,
        fails,
    };
    loop {
        let before = shrinker.best.clone();
        shrinker.fewer_faults();
        shrinker.fewer_victims();
        shrinker.later();
        shrinker.shorter();
        shrinker.weaker();
        if lost.is_none_or(Requirement::is_of_any_run) {
            shrinker.fewer_steps();
        }
        if shrinker.best == before || !(shrinker.go_on)() {
            break;
        }
    }
    Smaller {
        scenario: shrinker.best,
        runs: shrinker.runs,
    }
}

struct Shrinker<'s> {
    best: Scenario,
    runs: usize,
    problems: &'s Problems,
    go_on: &'s mut dyn FnMut() -> bool,
    fails: &'s mut dyn FnMut(&Scenario) -> bool,
}

impl Shrinker<'_> {
    /// Takes a smaller scenario if it fails too.
    fn accept(&mut self, smaller: Scenario) -> bool {
        if smaller == self.best || !(self.go_on)() || smaller.team(self.problems).is_err() {
            return false;
        }
        self.runs += 1;
        let fails = (self.fails)(&smaller);
        if fails {
            self.best = smaller;
        }
        fails
    }

    /// The same with one fault changed.
    fn with(&self, index: usize, change: impl FnOnce(&mut Fault)) -> Scenario {
        let mut scenario = self.best.clone();
        if let Some(fault) = scenario.faults.get_mut(index) {
            change(fault);
        }
        scenario
    }

    /// Leaves out as many of a list as can be: halves, then smaller pieces, as delta debugging does.
    /// `without` makes the scenario that has only the rest.
    fn leave_out<T: Clone>(
        &mut self,
        mut list: Vec<T>,
        least: usize,
        without: impl Fn(&Scenario, &[T]) -> Scenario,
    ) {
        let mut piece = list.len().div_ceil(2);
        while piece > 0 {
            let mut first = 0;
            while first < list.len() {
                let end = (first + piece).min(list.len());
                let rest = [&list[..first], &list[end..]].concat();
                if rest.len() >= least && self.accept(without(&self.best, &rest)) {
                    list = rest;
                } else {
                    first = end;
                }
            }
            piece /= 2;
        }
    }

    fn fewer_faults(&mut self) {
        let faults = self.best.faults.clone();
        self.leave_out(faults, 0, |best, rest| Scenario {
            faults: rest.to_vec(),
            ..best.clone()
        });
    }

    /// Those that are drawn are named, so that they can be left out one by one.
    fn fewer_victims(&mut self) {
        for index in 0..self.best.faults.len() {
            let Ok(team) = self.best.team(self.problems) else {
                return;
            };
            let Some(ids) = victims(&team, index).filter(|ids| !ids.is_empty()) else {
                continue;
            };
            if !matches!(self.best.faults[index].who, Who::Ids(_)) {
                let named = self.with(index, |fault| fault.who = who(&ids));
                if !self.accept(named) {
                    continue;
                }
            }
            self.leave_out(ids, 1, |best, rest| {
                let mut scenario = best.clone();
                scenario.faults[index].who = who(rest);
                scenario
            });
        }
    }

    /// The last step at which a fault can begin, or the smallest number of steps that it can last, and the
    /// like: the end of `range` that is nearest to `goal` for which `change` still fails. Faults are
    /// not always the worse the earlier they come: what is found is one such number, not the best.
    fn bisect(&mut self, from: usize, goal: usize, change: impl Fn(&Scenario, usize) -> Scenario) {
        let (mut good, mut bad) = (from, goal);
        if self.accept(change(&self.best, goal)) {
            return;
        }
        while good.abs_diff(bad) > 1 {
            let middle = good.midpoint(bad);
            match self.accept(change(&self.best, middle)) {
                true => good = middle,
                false => bad = middle,
            }
        }
    }

    fn steps(&self) -> usize {
        self.best.team(self.problems).map_or(1, |team| team.steps)
    }

    fn later(&mut self) {
        let steps = self.steps();
        for index in 0..self.best.faults.len() {
            let fault = self.best.faults[index].clone();
            if fault.what.kind.when == Lasting::Always {
                continue;
            }
            let first = step_of(fault.at, steps);
            let last = fault
                .until
                .map_or(steps, |until| step_of(until, steps))
                .saturating_sub(1);
            if first < last {
                self.bisect(first, last, |best, step| {
                    let mut scenario = best.clone();
                    scenario.faults[index].at = share(step, steps);
                    scenario
                });
            }
        }
    }

    fn shorter(&mut self) {
        let steps = self.steps();
        for index in 0..self.best.faults.len() {
            let fault = self.best.faults[index].clone();
            let ends = matches!(
                fault.what.kind.when,
                Lasting::Between | Lasting::UntilRestart
            );
            let first = step_of(fault.at, steps) + 1;
            let last = fault.until.map_or(steps, |until| step_of(until, steps));
            // What lasts to the end of the run ends with it.
            if ends && first < last {
                self.bisect(last, first, |best, step| {
                    let mut scenario = best.clone();
                    scenario.faults[index].until = (step < steps).then(|| share(step, steps));
                    scenario
                });
            }
        }
    }

    /// Numbers of faults go to what does nothing, by halves, and lose the digits that do not matter.
    fn weaker(&mut self) {
        const HALVINGS: usize = 6;
        for index in 0..self.best.faults.len() {
            let kind: &'static Descriptor = self.best.faults[index].what.kind;
            for parameter in kind.parameters {
                for _ in 0..HALVINGS {
                    let what = self.best.faults[index].what.clone();
                    let Some(weaker) = what.weaker(parameter) else {
                        break;
                    };
                    if !self.accept(self.with(index, |fault| fault.what = weaker)) {
                        break;
                    }
                }
                if let Some(rounder) = self.best.faults[index].what.rounder(parameter) {
                    self.accept(self.with(index, |fault| fault.what = rounder));
                }
            }
        }
    }

    /// Faults stay at their steps: their times are shares of the run.
    fn fewer_steps(&mut self) {
        let steps = self.steps();
        let begun = self
            .best
            .faults
            .iter()
            .map(|fault| step_of(fault.at, steps) + 1);
        let least = begun.max().unwrap_or(1).min(steps);
        if least < steps {
            self.bisect(steps, least, |best, fewer| {
                let mut scenario = best.clone();
                scenario.steps = Some(fewer);
                for fault in &mut scenario.faults {
                    fault.at = share(step_of(fault.at, steps), fewer);
                    let until = fault.until.map(|until| step_of(until, steps));
                    fault.until = until
                        .filter(|step| *step < fewer)
                        .map(|step| share(step, fewer));
                }
                scenario
            });
        }
    }
}

/// The agents that a fault hits, where that is settled before the run.
fn victims(team: &Team, index: usize) -> Option<Vec<usize>> {
    if team.faults[index].on_board().is_some() {
        return None;
    }
    if team.faults[index].who == Who::All {
        return Some((0..team.agents).collect());
    }
    team.plan().victims(index).map(<[usize]>::to_vec)
}

fn who(ids: &[usize]) -> Who {
    Who::Ids(ids.iter().copied().collect())
}

fn step_of(share: f64, steps: usize) -> usize {
    (share * steps as f64).round() as usize
}

/// The shortest number that means this step of so many.
fn share(step: usize, steps: usize) -> f64 {
    let exact = step as f64 / steps as f64;
    let rounded = |digits: i32| (exact * 10f64.powi(digits)).round() / 10f64.powi(digits);
    let means = |share: &f64| step_of(*share, steps) == step && (0.0..=1.0).contains(share);
    (1..9).map(rounded).find(means).unwrap_or(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short_and_mean_their_step() {
        assert_eq!(share(41, 300), 0.137);
        assert_eq!(share(150, 300), 0.5);
        for steps in [1, 7, 300, 999_983] {
            for step in [0, steps / 3, steps - 1, steps] {
                assert_eq!(step_of(share(step, steps), steps), step);
            }
        }
    }
}
