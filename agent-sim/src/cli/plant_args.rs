//! What computes the field, from flags or a scenario file.

use crate::plant::{self, Address, Shared};
use crate::scenario::Scenario;
use anyhow::bail;
use clap::Args;
use problem::{Problem, limit};
use std::time::Duration;

/// Which plant, and how long it is waited for.
#[derive(Args)]
pub struct GivenPlant {
    /// Another program computes the field in place of the problem's own solver: a command, as in
    /// 'python my_solver.py', or tcp=HOST:PORT (docs/plants.md has the protocol)
    #[arg(long, value_name = "PLANT")]
    plant: Option<Address>,
    /// Seconds that a plant is waited for, at its start and in every step
    #[arg(long, value_name = "S", default_value_t = plant::PATIENCE.as_secs_f64())]
    plant_patience: f64,
}

impl GivenPlant {
    fn check_patience(&self) -> anyhow::Result<()> {
        let (least, most) = (limit::PATIENCE.start(), limit::PATIENCE.end());
        match limit::PATIENCE.contains(&self.plant_patience) {
            true => Ok(()),
            false => bail!(
                "--plant-patience {:?} is no time to wait for a plant; give {least} to {most} seconds",
                self.plant_patience
            ),
        }
    }

    /// Starts the plant, if one is given, or connects to it.
    pub fn open(&self, problem: &Problem) -> anyhow::Result<Option<Shared>> {
        self.check_patience()?;
        self.open_at(self.plant.as_ref(), problem)
    }

    fn open_at(
        &self,
        address: Option<&Address>,
        problem: &Problem,
    ) -> anyhow::Result<Option<Shared>> {
        let patience = Duration::from_secs_f64(self.plant_patience);
        let open = |address| plant::open(address, patience, problem);
        Ok(address.map(open).transpose()?)
    }
}

/// The same where a scenario file may name one.
#[derive(Args)]
pub struct PlantArgs {
    #[command(flatten)]
    given: GivenPlant,
    /// Let a scenario file name a plant: its command is run, or its address connected to
    #[arg(long)]
    run_plant: bool,
}

impl PlantArgs {
    /// Puts the plant that was given into the scenario. A file that somebody else wrote must not have
    /// its commands run unasked.
    pub fn settle(&self, scenario: &mut Scenario) -> anyhow::Result<()> {
        match (&self.given.plant, &scenario.plant) {
            (Some(given), _) => scenario.plant = Some(given.clone()),
            (None, Some(named)) if !self.run_plant => bail!(
                "the scenario file names the plant '{}', which would be {}; give --run-plant to allow \
                 that, or name a plant with --plant",
                named.to_string().escape_debug(),
                match named {
                    Address::Command(_) => "run as a command",
                    Address::Tcp(_) => "connected to",
                }
            ),
            _ => {}
        }
        self.given.check_patience()
    }

    /// Starts the scenario's plant, if it has one, or connects to it.
    pub fn open(&self, scenario: &Scenario, problem: &Problem) -> anyhow::Result<Option<Shared>> {
        self.given.open_at(scenario.plant.as_ref(), problem)
    }
}

/// What is said of a plant after where the figures come from.
pub fn on_plant(plant: Option<&Shared>) -> String {
    plant.map_or(String::new(), |plant| format!(" · plant {}", plant.name()))
}
