//! What hands do: they change the scenario, or boards.

use super::{Done, Player};
use crate::fault::{Fault, Ids, When, Who};
use crate::live::Paint;
use crate::scenario::{Scenario, Team};
use crate::touch::Touch;
use anyhow::bail;

/// Most places of one stroke.
const STROKE: usize = 64;

impl Player<'_> {
    pub(super) fn refuse_boards(&self, what: &str) -> anyhow::Result<()> {
        match self.show.rig {
            None => Ok(()),
            Some(_) => bail!("boards cannot be taken back in time, so nobody can {what} here"),
        }
    }

    /// The share of the run that is over at the step that is looked at.
    fn now(&self, team: &Team) -> f64 {
        self.shown as f64 / team.steps as f64
    }

    /// Changes the run from the step that is looked at on. What was done by hand after that step is undone:
    /// it was done to a future that there is not any more.
    pub(super) fn change(
        &mut self,
        what: String,
        change: impl FnOnce(&mut Scenario, f64),
    ) -> anyhow::Result<Done> {
        self.refuse_boards("change what agents in this process do")?;
        let shown = self.shown;
        let mut before = self.before.clone();
        let mut scenario = self.scenario.clone();
        while let Some((_, earlier)) = before.pop_if(|(step, _)| *step > shown) {
            scenario = earlier;
        }
        before.push((shown, scenario.clone()));
        let steps = scenario.team(self.show.problems)?.steps;
        if shown >= steps {
            bail!("the run is over; go back, or start it again");
        }
        change(&mut scenario, shown as f64 / steps as f64);
        // Refused here, while the run that there is goes on.
        let team = scenario.team(self.show.problems)?;
        scenario.episode(&team)?;
        self.scenario = scenario;
        self.before = before;
        self.events.retain(|(step, _)| *step <= shown);
        self.events.push((shown, what));
        Ok(self.again_to(shown))
    }

    pub(super) fn break_down(
        &mut self,
        fault: &str,
        ids: &[usize],
        team: &Team,
    ) -> anyhow::Result<Done> {
        let mut fault: Fault = fault.parse()?;
        if ids.is_empty() {
            bail!("nobody is pointed at; click an agent, or draw around several");
        }
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if let Some(unknown) = sorted.last().filter(|last| **last >= team.agents) {
            bail!("there is no agent {unknown}; there are {}", team.agents);
        }
        fault.who = Who::Ids(Ids::from_iter(sorted.iter().copied()));
        fault.until = None;
        let what = format!("{} {}", names(&sorted), fault.what.kind.name);
        let Some(rig) = self.show.rig else {
            return self.change(what, |scenario, at| {
                fault.at = at;
                scenario.faults.push(fault);
            });
        };
        if fault.on_board().is_none() {
            bail!("the others are on boards: what can be done here is done to boards");
        }
        if let Some(unknown) = sorted.iter().find(|id| **id >= rig.len()) {
            bail!(
                "agent {unknown} is on no board; boards have the first {} agents",
                rig.len()
            );
        }
        fault.at = self.now(team);
        let mut scenario = self.scenario.clone();
        scenario.faults.push(fault.clone());
        let team = scenario.team(self.show.problems)?;
        for (name, file) in &team.brought {
            rig.shelve(name, (self.show.payload)(file)?);
        }
        for &id in &sorted {
            rig.begin(&fault, id, format!("by hand: {what}"));
        }
        self.scenario = scenario;
        self.events.push((self.shown, what));
        Ok(Done::default())
    }

    /// Ends what is wrong with agents.
    pub(super) fn revive(&mut self, ids: &[usize], team: &Team) -> anyhow::Result<Done> {
        let now = self.now(team);
        let hit = |fault: &Fault| match &fault.who {
            Who::Ids(hit) => hit.within(team.agents).iter().any(|id| ids.contains(id)),
            _ => false,
        };
        let is_open = |fault: &Fault| {
            let ends = !matches!(fault.what.kind.when, When::Always | When::From);
            ends && hit(fault) && fault.until.is_none_or(|until| until > now) && fault.at <= now
        };
        if !self.scenario.faults.iter().any(is_open) {
            bail!(
                "nothing is wrong with {} that somebody pointed at them for",
                names(ids)
            );
        }
        let what = format!("{} back", names(ids));
        if let Some(rig) = self.show.rig {
            for fault in self
                .scenario
                .faults
                .iter_mut()
                .filter(|fault| is_open(fault))
            {
                if fault.on_board().is_none() {
                    continue;
                }
                fault.until = Some(now.max(f64::EPSILON));
                for &id in ids.iter().filter(|id| **id < rig.len()) {
                    rig.end(fault, id, format!("by hand: {what}"));
                }
            }
            self.events.push((self.shown, what));
            return Ok(Done::default());
        }
        self.change(what, |scenario, at| {
            let mut rest = Vec::new();
            for fault in scenario.faults.iter_mut().filter(|fault| is_open(fault)) {
                let Who::Ids(all) = &fault.who else { continue };
                let (back, others): (Vec<usize>, Vec<usize>) =
                    (all.within(team.agents).into_iter()).partition(|id| ids.contains(id));
                if !others.is_empty() {
                    rest.push(Fault {
                        who: Who::Ids(Ids::from_iter(others)),
                        ..fault.clone()
                    });
                }
                fault.who = Who::Ids(Ids::from_iter(back));
                fault.until = Some(at);
            }
            // What began in this very step has never been.
            scenario
                .faults
                .retain(|fault| fault.until != Some(fault.at));
            scenario.faults.extend(rest);
        })
    }

    pub(super) fn stroke(&self, paint: &Paint, team: &Team) -> anyhow::Result<Vec<Touch>> {
        if paint.places.is_empty() || paint.places.len() > STROKE {
            bail!(
                "a stroke has 1 to {STROKE} places, not {}",
                paint.places.len()
            );
        }
        let at = self.now(team);
        let until = paint
            .steps
            .map(|steps| (self.shown + steps.max(1)) as f64 / team.steps as f64);
        Ok(paint
            .places
            .iter()
            .map(|place| Touch {
                what: paint.what,
                at,
                until: until.filter(|until| *until < 1.0),
                place: place.clone(),
                radius: paint.radius,
                amount: paint.amount,
            })
            .collect())
    }
}

/// Agents by their numbers.
fn names(ids: &[usize]) -> String {
    match ids {
        [one] => format!("agent {one}"),
        few if few.len() <= 8 => {
            let few: Vec<String> = few.iter().map(usize::to_string).collect();
            format!("agents {}", few.join(", "))
        }
        many => format!("{} agents", many.len()),
    }
}
