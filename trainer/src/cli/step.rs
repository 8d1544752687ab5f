//! `trainer step`.

use super::{opened, unreadable};
use crate::inspect::step;
use agent_core::message::Span;
use agent_core::policy::Policy;
use anyhow::{Context, Result, bail, ensure};
use artifacts::observation::OwnedObservation;
use artifacts::output::print;
use artifacts::say;
use problem::{input, npy};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer step my.policy                                              its own probe
  trainer step my.policy --patch patch.npy --position 0.4
  trainer step plane.policy --patch patch.npy --position 0.4,0.1 --inside 0..7,3..7 --wide wide.npy
docs/policy-format.md says what a patch holds.")]
pub struct Arguments {
    /// The blob.
    policy: PathBuf,
    /// The field around the agent, its window and a cell more on each side, as a .npy file [default: what
    /// the policy's probe shows].
    #[arg(long, value_name = "FILE", requires = "position")]
    patch: Option<PathBuf>,
    /// The target there [default: 0].
    #[arg(long, value_name = "FILE", requires = "patch")]
    target: Option<PathBuf>,
    /// The coarse picture of the whole field, for a policy that looks at one.
    #[arg(long, value_name = "FILE", requires = "patch")]
    wide: Option<PathBuf>,
    /// The target's [default: 0].
    #[arg(long, value_name = "FILE", requires = "wide")]
    wide_target: Option<PathBuf>,
    /// Where the agent is, a coordinate for each axis.
    #[arg(
        long,
        value_name = "X[,Y]",
        value_delimiter = ',',
        requires = "patch",
        allow_hyphen_values = true
    )]
    position: Vec<f32>,
    /// First and last cell of the patch inside the domain, along each axis [default: all].
    #[arg(long, value_name = "A..B[,C..D]", value_delimiter = ',', requires = "patch", value_parser = span)]
    inside: Vec<Span>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn span(text: &str) -> Result<Span, &'static str> {
    let ends = text.split_once("..");
    match ends.map(|(first, last)| (first.parse(), last.parse())) {
        Some((Ok(first), Ok(last))) if first <= last => Ok(Span { first, last }),
        _ => Err("give the first and the last cell that are inside, counted from 0, like 2..9"),
    }
}

/// Runs one step and prints it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.policy;
    let file = opened(path)?;
    let policy = file.parse().with_context(|| unreadable(path))?;
    let shown = match &arguments.patch {
        Some(patch) => arguments.shown(&policy, patch)?,
        None => {
            let (probe, _) = policy.probe().context(
                "this policy has no probe; give --patch and --position, or export it again",
            )?;
            OwnedObservation::from(&probe)
        }
    };
    let made = step(&policy, &shown.as_observation()).context(
        "this is no valid observation: a value that features depend on is not finite, or --inside \
         leaves the patch",
    )?;
    if !arguments.json {
        return Ok(print(&made.text(&policy))?);
    }
    let bits = made.outputs.iter().map(|v| format!("{:08x}", v.to_bits()));
    let action = &made.action;
    let object = json!({
        "policy_hash": file.hash(),
        "features": made.features,
        "outputs": made.outputs,
        "output_bits": bits.collect::<Vec<_>>(),
        "mode": format!("{:?}", action.mode).to_lowercase(),
        "force": action.force,
        "velocity": action.velocity,
        "memory": made.memory,
    });
    say!("{object}")?;
    Ok(())
}

impl Arguments {
    /// What the flags show.
    fn shown(&self, policy: &Policy, patch: &Path) -> Result<OwnedObservation> {
        let sensing = &policy.header().sensing;
        let axes = usize::from(sensing.axes);
        let side = vec![usize::from(sensing.window) + 2; axes];
        let blocks = sensing.wide.map(|cells| cells.map(usize::from));
        let blocks = blocks.map(|cells| cells[..axes].to_vec());
        let mut shown = OwnedObservation::blank(policy);
        shown.field = values(patch, "--patch", &side)?;
        if let Some(target) = &self.target {
            ensure!(
                sensing.target,
                "this policy has no target; leave --target out"
            );
            shown.target = values(target, "--target", &side)?;
        }
        match (&self.wide, &blocks) {
            (Some(wide), Some(blocks)) => shown.wide_field = values(wide, "--wide", blocks)?,
            (None, None) => {}
            (Some(_), None) => bail!("this policy looks at its window alone; leave --wide out"),
            (None, Some(blocks)) => bail!(
                "this policy also reads {} values beside its window, of the whole field or of others; give --wide",
                shape(blocks)
            ),
        }
        if let (Some(target), Some(blocks)) = (&self.wide_target, &blocks) {
            ensure!(
                sensing.target,
                "this policy has no target; leave --wide-target out"
            );
            shown.wide_target = values(target, "--wide-target", blocks)?;
        }
        ensure!(
            self.position.len() == axes,
            "--position needs {axes} coordinates and has {}",
            self.position.len()
        );
        shown.position = [0.0; 2];
        shown.position[..axes].copy_from_slice(&self.position);
        if !self.inside.is_empty() {
            ensure!(
                self.inside.len() == axes,
                "--inside needs {axes} spans and has {}",
                self.inside.len()
            );
            shown.inside[..axes].copy_from_slice(&self.inside);
        }
        Ok(shown)
    }
}

/// The values of a file that must have this shape.
fn values(path: &Path, flag: &str, expected: &[usize]) -> Result<Vec<f32>> {
    let name = || format!("{flag} {}", path.display());
    let bytes = input::read(path, input::OBSERVATION).with_context(name)?;
    let array = npy::parse(&bytes).with_context(name)?;
    ensure!(
        array.shape == expected,
        "{}: its shape is {} and the policy looks at {}",
        name(),
        shape(&array.shape),
        shape(expected)
    );
    Ok(array.values)
}

fn shape(lengths: &[usize]) -> String {
    let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
    lengths.join(" × ")
}
