//! Differentiable predictive control at work: one network that is told the whole field and decides for all agents.
//!
//! It is trained through the same rollout and adjoint as policies are (`trainer train … --centralised`), and here it is
//! a [`centre`](agent_sim::centre), whose orders go over the agents' links like everybody's. It is told the field as it
//! truly is, the target as it is now, and where every agent is; not who is lost. How many agents there are is built
//! into it.

use crate::adjoint::network::Network;
use crate::checkpoint::Checkpoint;
use crate::entry::{Entries, Entry};
use crate::host_loop::HostLoop;
use crate::policy::PolicyConfig;
use crate::trial::Trial;
use agent_sim::centre::{Bring, Centre, Decisions, Guide, Order, Stopwatch, Whole};
use agent_sim::controller::ControllerKind;
use agent_sim::scenario::{BadScenario, Team};
use anyhow::{Context, Result, bail, ensure};
use burn::tensor::Device;
use problem::{Episode, NotImplemented, Problem};
use std::fmt;
use std::sync::Arc;

/// Makes controllers of trained networks, for the problems of a list.
#[derive(Debug, Clone, Copy)]
pub struct Networks<'a>(pub &'a Entries<'a>);

impl Bring for Networks<'_> {
    fn kind(&self) -> ControllerKind {
        ControllerKind::DPC
    }

    fn bring(&self, team: &Team) -> Result<Arc<dyn Guide>, BadScenario> {
        let refused = |why: String| BadScenario::Senseless(format!("dpc: {why}"));
        let address = team.problem.address();
        let entry = self.0.by_name(&address)?;
        let Some(path) = &team.network else {
            return Err(refused(format!(
                "which network is to decide? Give --network runs/{address}-centralised/best, as trainer train \
                 {address} --centralised makes it"
            )));
        };
        let made = Checkpoint::load(path).and_then(|checkpoint| {
            let shown = path.display();
            Dpc::of(&checkpoint, entry, &team.problem, team.agents)
                .with_context(|| format!("'{shown}' cannot decide here"))
        });
        Ok(Arc::new(
            made.map_err(|error| refused(format!("{error:#}")))?,
        ))
    }
}

/// A network that decides for all agents of a problem.
#[derive(Clone)]
pub struct Dpc(Arc<Shared>);

/// What those who decide in several episodes have in common.
struct Shared {
    problem: Problem,
    closed_loop: HostLoop,
    network: Network<f32>,
    watch: Stopwatch,
}

impl Dpc {
    /// The network of a checkpoint, for so many agents.
    pub fn of(
        checkpoint: &Checkpoint,
        entry: &Entry,
        problem: &Problem,
        agents: usize,
    ) -> Result<Self> {
        let (trained_on, address) = (&checkpoint.problem, problem.address());
        let Some(seats) = checkpoint.policy.shape.seats else {
            bail!(
                "it is the training of a policy, which agents carry; export it and give it with --policy, or train \
                 with --centralised"
            );
        };
        ensure!(
            *trained_on == address,
            "it was trained on {trained_on}; train one with trainer train {address} --centralised"
        );
        ensure!(
            seats == agents,
            "it was trained for {seats} agents and decides for no other number; give --agents {seats}, or train one \
             with --centralised --agents {agents}"
        );
        let parameters = checkpoint.network(&Device::default())?.parameters();
        Ok(Self::new(entry, problem, &checkpoint.policy, &parameters)?)
    }

    /// A network with these parameters.
    pub fn new(
        entry: &Entry,
        problem: &Problem,
        config: &PolicyConfig,
        parameters: &[f32],
    ) -> Result<Self, NotImplemented> {
        // Nothing is stepped here, but what a network sees and what becomes of its decisions is the loop's.
        let step = entry.physics.step(problem, &Device::default())?;
        Ok(Self(Arc::new(Shared {
            problem: *problem,
            closed_loop: HostLoop::new(problem, step, 1, config)?,
            network: Network::new(&config.shape, parameters),
            watch: Stopwatch::default(),
        })))
    }
}

impl fmt::Debug for Dpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a network for {}", self.0.problem.name)
    }
}

impl Guide for Dpc {
    fn kind(&self) -> ControllerKind {
        ControllerKind::DPC
    }

    fn problem(&self) -> &Problem {
        &self.0.problem
    }

    fn centre(&self, _: usize) -> Box<dyn Centre> {
        Box::new(self.clone())
    }

    fn decisions(&self) -> Option<Decisions> {
        Some(self.0.watch.read())
    }
}

impl Centre for Dpc {
    fn decide(&mut self, whole: &Whole<'_>, orders: &mut [Order]) {
        let Shared {
            problem,
            closed_loop,
            network,
            watch,
        } = &*self.0;
        let now = Episode {
            initial: whole.state.iter().map(|&z| z as f32).collect(),
            target: whole.target.to_vec(),
            ..Episode::default()
        };
        let trial = Trial {
            start: whole.positions.to_vec(),
            ..Trial::plain(problem, whole.positions.len(), now)
        };
        let decided = watch.time(|| closed_loop.decisions(network, &trial));
        let decided = decided.chunks_exact(closed_loop.shape.actions);
        for (order, decided) in orders.iter_mut().zip(decided) {
            let (force, velocity) = closed_loop.order(decided);
            *order = Order { force, velocity };
        }
    }
}
