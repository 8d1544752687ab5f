//! A scenario from flags, from a file, or from both.

use crate::controller::ControllerKind;
use crate::fault::Fault;
use crate::scenario::Scenario;
use anyhow::anyhow;
use clap::Args;
use problem::coefficient::setting;
use problem::grid::Points;
use problem::input;
use std::path::PathBuf;

/// What a run is made of. A flag takes precedence over the same entry of a scenario file.
#[derive(Args)]
pub struct ScenarioArgs {
    /// The problem, e.g. turbulence-2d (agent-sim problems lists all)
    problem: Option<String>,
    /// Scenario file (TOML), as `run` writes it
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Who commands the actuators [default: the policy shipped for the problem, or else
    /// proportional feedback]
    #[arg(long, value_enum)]
    controller: Option<ControllerKind>,
    /// Policy blob [default: the one shipped for the problem]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Gain of proportional or coverage feedback [default: tuned for the problem]
    #[arg(long, value_name = "K")]
    gain: Option<f64>,
    /// Steps that nmpc looks ahead [default: 30, or as many as the run has]
    #[arg(long, value_name = "T")]
    plan: Option<usize>,
    /// Steps after which nmpc plans anew [default: 5]
    #[arg(long, value_name = "T")]
    replan: Option<usize>,
    /// Most times that nmpc runs a plan, forwards and backwards, in one decision: its bound on time
    /// [default: 20]
    #[arg(long, value_name = "N")]
    plan_runs: Option<usize>,
    /// Network of dpc: a checkpoint of trainer train --centralised
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// Something that goes wrong, e.g. crash,fraction=0.3,at=0.5 (repeatable; agent-sim faults
    /// lists all)
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<String>,
    /// Something that must hold, e.g. error,below=0.01,when=at the end, or built-in (repeatable;
    /// agent-sim requirements lists quantities)
    #[arg(long = "require", value_name = "REQUIREMENT")]
    requirements: Vec<String>,
    /// Agents that sense by themselves where they are mounted: eight thermometers each, read in
    /// sixteenths of a degree (docs/deploy.md)
    #[arg(long)]
    standalone: bool,
    /// Seed of fresh episodes and of faults [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Control steps [default: as published]
    #[arg(long, value_name = "T")]
    steps: Option<usize>,
    /// Grid points of the truth along the first axis, or along both: 96 or 48x80 [default: as
    /// published]
    #[arg(long, value_name = "N")]
    grid: Option<Points>,
    /// Solver steps per control interval [default: as published, more where the grid needs them]
    #[arg(long, value_name = "N")]
    substeps: Option<usize>,
    /// Coefficients of the equation, e.g. nu=0.001,rho=5 [default: as published; agent-sim problems
    /// lists them]
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting)]
    physics: Vec<(String, f64)>,
    /// Another form of the problem
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Short for --variant as-published: the authors' numerics where ours are corrected
    #[arg(long, conflicts_with = "variant")]
    as_published: bool,
}

impl ScenarioArgs {
    /// The scenario, with `agents` and the episode set as the command has them.
    pub fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = match &self.scenario {
            None => Scenario {
                set: "fresh".to_owned(),
                ..Scenario::default()
            },
            Some(path) => {
                let name = path.display();
                let text = input::read_text(path, input::SCENARIO)
                    .map_err(|error| anyhow!("cannot read the scenario {name}: {error}"))?;
                Scenario::from_toml(&text).map_err(|error| anyhow!("{name}: {error}"))?
            }
        };
        if let Some(problem) = &self.problem {
            scenario.problem.clone_from(problem);
        }
        for text in &self.faults {
            let fault: Result<Fault, _> = text.parse();
            let fault =
                fault.map_err(|error| anyhow!("the fault '{text}' is impossible: {error}"))?;
            scenario.faults.push(fault);
        }
        for text in &self.requirements {
            let required = text.parse();
            let required =
                required.map_err(|error| anyhow!("'{text}' cannot be required: {error}"))?;
            scenario.requirements.push(required);
        }
        let as_published = || self.as_published.then(|| "as-published".to_owned());
        let or = |given: &Option<usize>, there: Option<usize>| given.or(there);
        scenario.variant = self
            .variant
            .clone()
            .or_else(as_published)
            .or(scenario.variant);
        scenario.physics.extend(self.physics.iter().cloned());
        scenario.grid = self.grid.or(scenario.grid);
        scenario.substeps = or(&self.substeps, scenario.substeps);
        scenario.steps = or(&self.steps, scenario.steps);
        scenario.controller = self.controller.or(scenario.controller);
        scenario.gain = self.gain.or(scenario.gain);
        scenario.plan = or(&self.plan, scenario.plan);
        scenario.replan = or(&self.replan, scenario.replan);
        scenario.plan_runs = or(&self.plan_runs, scenario.plan_runs);
        scenario.network = self.network.clone().or(scenario.network);
        scenario.policy = self.policy.clone().or(scenario.policy);
        scenario.standalone |= self.standalone;
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        Ok(scenario)
    }
}
