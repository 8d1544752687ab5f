//! `agent-sim target`: what the field should be where nodes sense and act by themselves.

use super::nodes;
use super::rig_args::RigArgs;
use anyhow::bail;
use clap::Args;
use node_link::NodeConduct;

#[derive(Args)]
pub struct TargetArgs {
    /// What the field should be in the whole window of each board, from now on until it starts again, is
    /// configured or gets a policy
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "as_placed",
        conflicts_with = "as_placed"
    )]
    value: Option<f32>,
    /// What the boards' places say again: a schedule is where it would be if nothing had been said
    #[arg(long)]
    as_placed: bool,
    #[command(flatten)]
    rig: RigArgs,
}

/// Tells boards what to aim at.
pub fn target(args: &TargetArgs) -> anyhow::Result<()> {
    let rig = nodes::start(&args.rig, None)?;
    let tell = |index: usize| Ok(rig.aim_at(index, args.value));
    let is_taken = |conduct: &NodeConduct| matches!(conduct, NodeConduct::Alone(_));
    let refused = nodes::tell_all(&rig, tell, is_taken)?;
    match refused {
        0 => Ok(()),
        _ => bail!("{refused} of {} boards did not take the target", rig.len()),
    }
}
