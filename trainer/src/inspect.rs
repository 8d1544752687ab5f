//! A policy blob for people to look at: what is in it, and what it makes of one observation.

use crate::entry::Entries;
use agent_core::agent::{Action, AgentState};
use agent_core::message::Observation;
use agent_core::policy::{Activation, Dense, Governor, MAX_MEMORY, Memory, Norm, Policy};
use anyhow::{Context, Result};
use artifacts::policy_file::{self, PolicyFile, off_beat, self_test};
use std::fmt::Write;

/// The text of `inspect`.
pub fn describe(file: &PolicyFile, entries: &Entries) -> Result<String> {
    let blob = file.bytes();
    let policy = file.parse()?;
    let header = policy.header();
    // Checked by the parser: bytes 8 to 11 of every blob.
    let format = blob.get(8).copied().unwrap_or_default();
    let mut out = String::new();
    let mut line =
        |name: &str, value: String| writeln!(out, "{name:<16}{value}").context("no memory");
    line("problem", header.problem.to_string())?;
    line("format", format.to_string())?;
    let sensing = &header.sensing;
    let channels: Vec<String> = sensing
        .channels
        .iter()
        .map(|c| format!("{c:?}").to_lowercase())
        .collect();
    line(
        "sensing",
        format!(
            "window of {} cells → {} samples of {}, errors within ±{}",
            match sensing.axes {
                1 => sensing.window.to_string(),
                _ => format!("{0} × {0}", sensing.window),
            },
            sensing.samples,
            channels.join(" and "),
            sensing.error_limit
        ),
    )?;
    if let Some([rows, columns]) = sensing.wide {
        let others: Vec<&str> = header.problem.as_str().split('+').skip(1).collect();
        match others[..] {
            [] => {
                let cells = format!("{rows} × {columns} cells of the whole domain");
                line("wide view", cells)?;
            }
            _ => line("besides", format!("{} in such windows", others.join(", ")))?,
        }
    }
    let network = &header.network;
    let activation = |activation| match activation {
        Activation::Identity => "identity",
        Activation::Tanh => "tanh",
        Activation::Relu => "relu",
    };
    let norm = |norm| match norm {
        Norm::None => "",
        Norm::Soft => "soft-norm ",
    };
    let show = |layers: &[Dense]| {
        let each = layers.iter().map(|l| {
            let (norm, activation) = (norm(l.norm), activation(l.activation));
            format!("{}→{} {norm}{activation}", l.inputs, l.outputs)
        });
        each.collect::<Vec<_>>().join(", ")
    };
    for c in &network.convolutions {
        let (from, to, stride, padding) = (c.inputs, c.outputs, c.stride, c.padding);
        line(
            "convolution",
            format!(
                "3 × 3, {from}→{to} channels, stride {stride}, padding {padding}, {}",
                activation(c.activation)
            ),
        )?;
    }
    if !network.convolutions.is_empty() {
        let flattened = match network.flatten {
            Norm::None => "as it is",
            Norm::Soft => "soft-norm",
        };
        line("flattening", flattened.to_owned())?;
    }
    line("branch", show(&network.branch))?;
    let frequencies: Vec<String> = network.frequencies.iter().map(f32::to_string).collect();
    line(
        "trunk",
        format!(
            "sin, cos of πf·position, f = {}; {}",
            frequencies.join(" "),
            show(&network.trunk)
        ),
    )?;
    line("fusion", format!("{:?}", network.fusion).to_lowercase())?;
    line("weights", policy_file::name(network.encoding).to_owned())?;
    line("head", show(&network.head))?;
    if let Some(Memory { floats, leak, gain }) = network.memory {
        line(
            "memory",
            format!(
                "{floats} numbers within ±1, each step up to {gain} more or less and up to {} % forgotten",
                200.0 * leak
            ),
        )?;
    }
    line("parameters", policy.parameters_len().to_string())?;
    line(
        "work",
        format!("{} multiply-accumulates per step", policy.macs()),
    )?;
    line("size", format!("{} bytes", blob.len()))?;
    line(
        "working memory",
        format!("{} bytes", 4 * policy.workspace_len()),
    )?;
    let limits = &header.limits;
    let limit = |value: Option<f32>| value.map_or("none".to_owned(), |v| format!("±{v}"));
    let axes = usize::from(sensing.axes).min(2);
    line(
        "limits",
        format!(
            "force {}, velocity {}, position {:?} to {:?}",
            limit(limits.force),
            limit(limits.velocity),
            &limits.low[..axes],
            &limits.high[..axes]
        ),
    )?;
    for (name, rate) in [
        ("force", limits.force_rate),
        ("velocity", limits.velocity_rate),
    ] {
        if let Some(rate) = rate {
            line("rate", format!("{name} changes by at most {rate} a second"))?;
        }
    }
    if let Some(Governor {
        growth,
        floor,
        band,
    }) = limits.governor
    {
        let beyond = match band {
            0.0 => String::new(),
            _ => format!(" beyond {band}"),
        };
        line(
            "governor",
            format!(
                "eases what overshoots{beyond}, to 1/{} at least; back by {growth} a step",
                1.0 / floor
            ),
        )?;
    }
    for disc in &limits.keep_out {
        let ([x, y], radius) = (disc.centre, disc.radius);
        line("keep-out", format!("({x}, {y}), radius {radius}"))?;
    }
    let timing = &header.timing;
    line(
        "timing",
        format!(
            "every {} µs; holds after {} µs, fails safe after {} µs without input",
            timing.period_us, timing.late_us, timing.fail_safe_us
        ),
    )?;
    let published = entries.by_name(header.problem.as_str()).ok();
    if let Some(off_beat) = published.and_then(|entry| off_beat(&policy, entry.problem)) {
        line("WARNING", off_beat)?;
    }
    line(
        "self-test",
        match (header.probe, self_test(&policy)) {
            (None, _) => "none; trainer export writes the policy anew, with one".to_owned(),
            (Some(_), Ok(())) => "passed here".to_owned(),
            (Some(_), Err(why)) => format!("FAILED here, agents will refuse it: {why}"),
        },
    )?;
    let from = &header.provenance;
    let revision = if from.revision.as_str().is_empty() {
        ""
    } else {
        " at "
    };
    line(
        "provenance",
        format!(
            "{}{revision}{}, seed {}, {} steps",
            from.tool, from.revision, from.seed, from.steps
        ),
    )?;
    line("SHA-256", file.hash())?;
    line(
        "CRC-32",
        format!("{:08x} over {} bytes", policy.checksum(), policy.length()),
    )?;
    Ok(out)
}

/// What a policy makes of one observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The network's input, in the format's order.
    pub features: Vec<f32>,
    /// The network's outputs before tanh, force first.
    pub outputs: Vec<f32>,
    /// What an agent does that has seen nothing before.
    pub action: Action,
    /// What it then remembers; empty for a policy without memory.
    pub memory: Vec<f32>,
}

/// Runs one step; none if what is shown is no valid observation of this policy.
pub fn step(policy: &Policy, observation: &Observation) -> Option<Made> {
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut features = vec![0.0; policy.features_len()];
    policy.features(&observation.patch, &mut workspace, &mut features)?;
    let mut memory = [0.0; MAX_MEMORY];
    let outputs = policy.outputs(observation, &mut memory, &mut workspace)?;
    let header = policy.header();
    let axes = usize::from(header.sensing.axes);
    let limits = &header.limits;
    let count = usize::from(limits.force.is_some()) + limits.velocity.map_or(0, |_| axes);
    let action = AgentState::new().step(policy, &mut workspace, observation);
    Some(Made {
        features,
        outputs: outputs.into_iter().take(count).collect(),
        action,
        memory: memory[..header.network.remembered()].to_vec(),
    })
}

impl Made {
    /// The text of `step`.
    pub fn text(&self, policy: &Policy) -> String {
        let header = policy.header();
        let sensing = &header.sensing;
        let mut out = String::new();
        let mut line = |name: &str, values: &[String]| {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{name:<16}{}", values.join(" "));
        };
        let plain = |values: &[f32]| values.iter().map(f32::to_string).collect::<Vec<_>>();
        let near = self.features.len() - sensing.wide_len();
        let (near, wide) = self.features.split_at(near);
        match sensing.axes {
            1 => {
                let channels = near.chunks(usize::from(sensing.samples));
                for (channel, values) in sensing.channels.iter().zip(channels) {
                    line(&format!("{channel:?}").to_lowercase(), &plain(values));
                }
            }
            _ => {
                let row = usize::from(sensing.window) * sensing.channels.len();
                for (k, values) in near.chunks(row).enumerate() {
                    line(&format!("row {k}"), &plain(values));
                }
            }
        }
        if !wide.is_empty() {
            line("wide view", &plain(wide));
        }
        line("outputs", &plain(&self.outputs));
        let bits: Vec<String> = (self.outputs.iter())
            .map(|v| format!("{:08x}", v.to_bits()))
            .collect();
        let axes = usize::from(sensing.axes);
        let Action {
            force,
            velocity,
            mode,
        } = self.action;
        line("their bits", &bits);
        if !self.memory.is_empty() {
            line("memory", &plain(&self.memory));
        }
        let _ = writeln!(
            out,
            "{:<16}{mode:?}: force {force}, velocity {:?}",
            "action",
            &velocity[..axes.min(2)]
        );
        out
    }
}
