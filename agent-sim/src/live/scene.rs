//! What viewers are told in words and numbers, as JSON.

use super::frame::Raster;
use super::lens::Sight;
use crate::fault::{self, Descriptor, Fault, Group, Presence, Sort, When, Whom};
use crate::report::{RGBColor, Scale};
use crate::rig::Rig;
use crate::scenario::Team;
use agent_core::policy::Policy;
use problem::Drives;
use problem::grid::Edge;
use serde_json::{Value, json};

/// Colours of the field's map.
const COLOURS: usize = 256;

/// What does not change from step to step.
pub fn hello(
    team: &Team,
    raster: &Raster,
    scale: &Scale,
    runs: &[(&str, RGBColor)],
    boards: usize,
    hands: bool,
) -> Value {
    let (problem, grid) = (&team.problem, &team.problem.grid);
    let colours = (0..COLOURS).flat_map(|k| scale.at(k as f64 / (COLOURS - 1) as f64));
    let runs = runs.iter().map(|(name, RGBColor(r, g, b))| {
        json!({ "name": name, "colour": format!("#{r:02x}{g:02x}{b:02x}") })
    });
    let policy = team.parsed_policy();
    json!({
        "is": "hello",
        "version": env!("CARGO_PKG_VERSION"),
        "problem": {
            "name": problem.name,
            "title": problem.title(),
            "summary": problem.summary,
            "quantity": problem.quantity,
            "axes": grid.axes,
            "axisNames": problem.axis_names[..grid.axes],
            "shape": raster.shape,
            "low": grid.low,
            "high": grid.high,
            "periodic": grid.edges.map(|edge| edge == Edge::Periodic),
            "keepOut": problem.keep_out.iter().map(|disc| json!([disc.centre[0], disc.centre[1], disc.radius])).collect::<Vec<_>>(),
            "tracking": problem.tracking,
            "interval": problem.control_interval,
            "stirs": problem.actuation.drives == Drives::Flow,
            "forceMax": problem.actuation.force_max,
            "speedMax": problem.actuation.velocity_max,
            "width": problem.actuation.width,
        },
        "steps": team.steps,
        "scale": { "low": scale.low(), "high": scale.high(), "unit": scale.high(), "colours": colours.collect::<Vec<u8>>() },
        "runs": runs.collect::<Vec<_>>(),
        "faults": fault::ALL.iter().filter(|kind| can_be_done(kind, boards)).map(|kind| described(kind)).collect::<Vec<_>>(),
        "policy": team.policy.as_ref().map(|file| file.hash()[..12].to_owned()),
        "window": policy.as_ref().map(|policy| policy.header().sensing.window),
        "memory": policy.as_ref().map_or(0, |policy| policy.header().network.remembered()),
        "boards": boards,
        "hands": hands,
    })
}

/// Whether a fault can begin in the middle of a run, for somebody who is pointed at.
fn can_be_done(kind: &Descriptor, boards: usize) -> bool {
    match kind.group {
        Group::Board => boards > 0,
        _ => {
            boards == 0
                && kind.when != When::Always
                && kind.when != When::From
                && !matches!(kind.whom, Whom::Region | Whom::Standing)
        }
    }
}

fn described(kind: &Descriptor) -> Value {
    let parameters = kind.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "example": parameter.example,
            "needed": matches!(parameter.presence, Presence::Needed | Presence::OneOf(_)),
            "truth": matches!(parameter.sort, Sort::Truth),
        })
    });
    json!({
        "name": kind.name,
        "help": kind.help,
        "board": kind.group == Group::Board,
        "ends": kind.when.takes().contains(&"until"),
        "parameters": parameters.collect::<Vec<_>>(),
    })
}

/// What goes wrong, in words and with its step.
pub fn faults(team: &Team) -> Vec<Value> {
    let told = |fault: &Fault| {
        let (text, what) = (fault.to_string(), fault.describe(team.agents));
        json!({ "text": text, "what": what, "step": fault.begins(team.steps) })
    };
    team.faults.iter().map(told).collect()
}

/// How the boards are, where there are any.
pub fn boards(rig: Option<&Rig>) -> Option<Vec<Value>> {
    let rig = rig?;
    let told = |index| {
        let node = rig.node(index);
        let state = node.diary.states.last();
        let state = state.map_or("waiting", |state| state.name());
        json!({ "name": node.name.clone(), "state": state, "restarts": node.diary.restarts })
    };
    Some((0..rig.len()).map(told).collect())
}

/// What an agent sees, and what its policy makes of it.
pub fn agent(sight: &Sight, policy: &Policy<'_>) -> Value {
    let observation = sight.observation.as_observation();
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut features = vec![0.0; policy.features_len()];
    let valid = policy
        .features(&observation.patch, &mut workspace, &mut features)
        .is_some();
    let finite = |values: &[f32]| -> Vec<Option<f32>> {
        let known = |value: &f32| value.is_finite().then_some(*value);
        values.iter().map(known).collect()
    };
    let sensing = &policy.header().sensing;
    let [rows, columns] = sight.observation.inside;
    json!({
        "is": "agent",
        "agent": sight.agent,
        "axes": sensing.axes,
        "side": sensing.window + 2,
        "position": sight.observation.position,
        "field": finite(&sight.observation.field),
        "target": finite(&sight.observation.target),
        "inside": [[rows.first, rows.last], [columns.first, columns.last]],
        "features": if valid { finite(&features) } else { Vec::new() },
        "channels": sensing.channels.iter().map(|channel| format!("{channel:?}").to_lowercase()).collect::<Vec<_>>(),
        "memory": finite(&sight.memory),
    })
}
