//! What happens in a scenario that fails, in words.

use crate::fault::{Fault, When, Who};
use crate::requirement::{Bound, Moment, Requirement, Verdict};
use crate::scenario::Team;
use crate::table::number;
use problem::Episode;
use std::fmt::Write;

/// Most agents that are called by their numbers.
const NAMED: usize = 8;

/// Tells what goes wrong, when the requirement of that number is lost, and whether the faults are to blame:
/// `without` is how the same run fares without them.
pub fn story(
    team: &Team,
    episode: &Episode,
    verdict: &Verdict,
    lost: usize,
    without: Option<&Verdict>,
) -> String {
    let mut story = String::new();
    let faults: Vec<String> = (0..team.faults.len())
        .map(|index| happens(team, index))
        .collect();
    if !faults.is_empty() {
        let _ = write!(story, "{}; ", faults.join("; "));
    }
    if let Some(cut) = &verdict.cut {
        let _ = write!(story, "{cut}");
    } else if let (Some(requirement), Some(judged)) =
        (team.requirements.get(lost), verdict.judged.get(lost))
    {
        let trace = trace(team, episode, requirement);
        let _ = write!(story, "{}", course(requirement, &trace));
        let _ = write!(
            story,
            "; {} is {} at step {} (required: {requirement})",
            requirement.quantity.name,
            number(judged.value),
            judged.step
        );
    }
    if let Some(without) = without.filter(|_| !team.faults.is_empty()) {
        let fares = match without.holds() {
            true => "everything holds",
            false => "it fails as well",
        };
        let _ = write!(
            story,
            ". Without the faults {fares}, margin {}",
            number(without.margin())
        );
    }
    story + "."
}

/// Who is hit by a fault, by what, and when.
fn happens(team: &Team, index: usize) -> String {
    let fault = &team.faults[index];
    let step = |share: f64| (share * team.steps as f64).round() as usize;
    let whom = whom(team, index);
    let caption = (fault.what.kind.caption)(fault);
    let mut told = match fault.on_board().is_none() && whom.starts_with("agent ") {
        true => format!("{whom} {}", of_one(&caption)),
        false => format!("{whom} {caption}"),
    };
    match (fault.at > 0.0, fault.until) {
        (true, None) if fault.what.kind.when == When::Between => {
            told += &format!(" from step {} on", step(fault.at));
        }
        (true, None) => told += &format!(" at step {}", step(fault.at)),
        (_, Some(until)) => told += &format!(" from step {} to {}", step(fault.at), step(until)),
        (false, None) => {}
    }
    match fault.announced {
        Some(steps) => told + &format!(", announced {steps} steps later"),
        None => told,
    }
}

/// A caption, which says what many do, of one: "sees 2 steps late".
fn of_one(caption: &str) -> String {
    let (verb, rest) = caption.split_once(' ').unwrap_or((caption, ""));
    let verb = match verb {
        "have" => "has".to_owned(),
        "are" => "is".to_owned(),
        "apply" => "applies".to_owned(),
        _ if verb.ends_with("sh") => format!("{verb}es"),
        _ => format!("{verb}s"),
    };
    let rest = rest.replace("and restart", "and restarts");
    format!("{verb} {rest}").trim_end().to_owned()
}

fn whom(team: &Team, index: usize) -> String {
    let fault: &Fault = &team.faults[index];
    let Who::Ids(_) = fault.who else {
        // As in captions, which end with what happens.
        let told = fault.describe(team.agents);
        let caption = (fault.what.kind.caption)(fault);
        return told
            .strip_suffix(&caption)
            .unwrap_or(&told)
            .trim_end()
            .to_owned();
    };
    let (problem, places) = (&team.problem, team.places());
    let plan = team.plan();
    let ids = plan.victims(index).unwrap_or_default();
    let names: Vec<String> = ids.iter().map(usize::to_string).collect();
    match &names[..] {
        [one] => format!("agent {one}"),
        [] => "nobody".to_owned(),
        [most @ .., last] if names.len() <= NAMED => {
            let beside = if side_by_side(&places, ids, problem.grid.axes) {
                ", neighbours,"
            } else {
                ""
            };
            format!("agents {} and {last}{beside}", most.join(", "))
        }
        _ => format!("{} of {} agents", names.len(), team.agents),
    }
}

/// Whether nobody stands between them where the swarm starts; only on a line can that be said.
fn side_by_side(places: &[[f64; 2]], ids: &[usize], axes: usize) -> bool {
    let at = |id: &usize| places[*id][0];
    let low = ids.iter().map(at).fold(f64::INFINITY, f64::min);
    let high = ids.iter().map(at).fold(f64::NEG_INFINITY, f64::max);
    let within = places
        .iter()
        .filter(|place| (low..=high).contains(&place[0]));
    axes == 1 && within.count() == ids.len()
}

/// What a quantity was before the first step and after each.
fn trace(team: &Team, episode: &Episode, requirement: &Requirement) -> Vec<f64> {
    let mut reader = (requirement.quantity.reader)(requirement, &team.conditions());
    let mut values = Vec::with_capacity(team.steps + 1);
    let policy = team.parsed_policy();
    // A run that ends before its time has a beginning all the same.
    let _ = team
        .experiment(policy.as_ref())
        .run(episode, &mut |snapshot| {
            values.push(reader(&Moment {
                snapshot,
                rig: None,
            }));
        });
    values
}

/// When the quantity passes its bound, and whether it comes back.
fn course(requirement: &Requirement, trace: &[f64]) -> String {
    let start = trace.first().copied().unwrap_or(0.0);
    let bound = match requirement.of_start {
        true => requirement.bound.of(start),
        false => requirement.bound,
    };
    let wrong = |value: &f64| bound.margin(*value) < 0.0;
    let (name, limit) = (requirement.quantity.name, number(bound.value()));
    let side = match bound {
        Bound::Below(_) => "above",
        Bound::Above(_) => "below",
    };
    let right = trace.iter().rposition(|value| !wrong(value));
    match (trace.iter().position(wrong), right) {
        (None, _) => format!("{name} stays on the right side of {limit}"),
        (Some(_), None) => format!("{name} is {side} {limit} all the time"),
        (Some(0), Some(right)) if right + 1 < trace.len() => {
            format!(
                "{name} comes back from {side} {limit} and is there again from step {} on",
                right + 1
            )
        }
        (Some(first), Some(right)) if right + 1 < trace.len() => {
            let again = if first <= right { ", at last," } else { "" };
            format!("{name} is {side} {limit}{again} from step {} on", right + 1)
        }
        (Some(first), Some(_)) => {
            format!("{name} is {side} {limit} from step {first}, and comes back")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_one;

    #[test]
    fn what_many_do_is_told_of_one() {
        for (many, one) in [
            ("crash", "crashes"),
            ("crash and restart", "crashes and restarts"),
            ("see 2 steps late", "sees 2 steps late"),
            ("are stuck at force 5", "is stuck at force 5"),
            ("have clocks of their own", "has clocks of their own"),
        ] {
            assert_eq!(of_one(many), one);
        }
    }
}
