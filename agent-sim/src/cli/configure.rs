//! `agent-sim configure`: where nodes are that sense and act by themselves.

use super::nodes;
use super::place_file::{self, PlaceFile};
use super::rig_args::RigArgs;
use anyhow::bail;
use clap::Args;
use node_link::NodeConduct;
use place::record::RECORD;
use std::path::PathBuf;

#[derive(Args)]
pub struct ConfigureArgs {
    /// The places, one for each board in the order of the links
    #[arg(required_unless_present = "fed", conflicts_with = "fed")]
    places: Vec<PathBuf>,
    /// Take the boards' places from them: they act on what a host shows them again
    #[arg(long)]
    fed: bool,
    #[command(flatten)]
    rig: RigArgs,
}

/// Gives boards their places.
pub fn configure(args: &ConfigureArgs) -> anyhow::Result<()> {
    let places = place_file::read_all(&args.places)?;
    let rig = nodes::start(&args.rig, None)?;
    if !args.fed && places.len() != rig.len() {
        bail!(
            "{} places are given for {} boards; give one for each, in the order of the links",
            places.len(),
            rig.len()
        );
    }
    let give = |index: usize| {
        let bytes = match places.get(index) {
            Some(PlaceFile { place, .. }) => place.encode(&mut [0; RECORD])?.to_vec(),
            None => Vec::new(),
        };
        let problem = places.get(index).map_or("", |file| &file.problem);
        let offer = args.rig.place_offer(&bytes, problem)?;
        Ok(rig.configure(index, &offer))
    };
    let is_taken = |conduct: &NodeConduct| match conduct {
        NodeConduct::Alone(_) => !args.fed,
        NodeConduct::Fed => args.fed,
        NodeConduct::Refused(_) => false,
    };
    let refused = nodes::tell_all(&rig, give, is_taken)?;
    match refused {
        0 => Ok(()),
        _ => bail!("{refused} of {} boards did not take their place", rig.len()),
    }
}
