//! A Zenoh network from flags.

use anyhow::anyhow;
use clap::Args;
use node_link::network::Settings;
use problem::input;
use std::path::PathBuf;

/// How a Zenoh network is joined.
#[derive(Args, Default)]
pub struct NetworkArgs {
    /// Where to listen for others of the Zenoh network, e.g. tcp/10.0.0.7:7447 (repeatable) [default:
    /// nowhere]
    #[arg(long, value_name = "ENDPOINT")]
    zenoh_listen: Vec<String>,
    /// A peer or router of the Zenoh network, e.g. tcp/10.0.0.7:7447 (repeatable)
    #[arg(long, value_name = "ENDPOINT")]
    zenoh_connect: Vec<String>,
    /// Zenoh's configuration: TLS, access control and whatever else it can be told (JSON5)
    #[arg(long, value_name = "FILE.json5")]
    zenoh_config: Option<PathBuf>,
}

impl NetworkArgs {
    /// What the flags say.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let read = |path: &PathBuf| {
            let name = path.display();
            input::read_text(path, input::SCENARIO)
                .map_err(|error| anyhow!("cannot read Zenoh's configuration {name}: {error}"))
        };
        Ok(Settings {
            configuration: self.zenoh_config.as_ref().map(read).transpose()?,
            listen: self.zenoh_listen.clone(),
            connect: self.zenoh_connect.clone(),
        })
    }
}
