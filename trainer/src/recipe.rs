//! The settings a problem is trained with, and what trainings make of them.
//!
//! What they have in common was found by experiment. A learned feedback has a cliff: above a certain
//! loop gain the closed loop is unstable, gradients explode and the training does not come back.
//! Hence features of order one, a small head to begin with, and a learning rate of 1e-3. The
//! published effort weights hold the final error far above what is reachable; here the end counts
//! more and the effort less.

use crate::described;
use crate::learn::{Hardening, Schedule, TrainConfig};
use crate::loss::{self, TERMS, Term};
use crate::policy::{PolicyConfig, Sight};
use crate::swarm::Size;
use problem::Problem;

/// Everything that makes a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The network.
    pub policy: PolicyConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// Optimiser steps.
    pub steps: u64,
    /// The parameters to begin with; none for random ones.
    pub start: Option<Vec<f32>>,
}

/// What a recipe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Preset {
    /// Those of the shipped policies.
    #[default]
    Full,
    /// A usable policy in about a minute on two cores.
    Quick,
    /// The published window, loss and schedule.
    Published,
}

/// What differs from problem to problem. Start from [`Settings::COMMON`] and change what needs it.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Cells along each axis of the window that agents see; 0 for the problem's own.
    pub window: usize,
    /// Factors of errors, slopes and the coarse view, which make features of order one.
    pub gains: [f64; 3],
    /// Cells along each axis of a coarse view of the whole field, if agents have one.
    pub wide: Option<[usize; 2]>,
    /// Numbers that agents remember from step to step.
    pub memory: usize,
    /// Whether agents do nothing, by construction, where there is nothing to do.
    pub rests: bool,
    /// The loss.
    pub weights: &'static [(Term, f64)],
    /// Highest learning rate.
    pub rate: f64,
    /// Episodes per step.
    pub batch: usize,
    /// Episodes that are drawn once and then moved along the ring or torus; 0 to draw anew.
    pub pool: usize,
    /// Solver steps per control interval, where fewer than the published ones are as good.
    pub substeps: Option<usize>,
    /// Control steps per episode, where fewer than are scored are as good.
    pub horizon: Option<usize>,
    /// Swarm sizes, each episode drawing one; none for the problem's own.
    pub agents: &'static [Size],
    /// Forms of the problem, each step drawing one; an empty name is the problem as it is.
    pub variants: &'static [&'static str],
    /// Share of episodes with deaths, of agents that die at most, and of the episode in which they do.
    pub deaths: [f64; 3],
    /// Most noise on sensors and on actuators.
    pub noise: [f64; 2],
    /// Share of episodes in which agents in the plane see by themselves what neighbours say.
    pub neighbours: f64,
    /// Share of these, or on a line of all, in which sensors fail, and of the sensors that do at most.
    pub missing: [f64; 2],
    /// Optimiser steps.
    pub steps: u64,
    /// What [`Preset::Quick`] changes.
    pub quick: Quick,
    /// The authors' own training, for [`Preset::Published`] and for timings beside theirs.
    pub authors: Authors,
    /// What is different for one network that decides for all agents.
    pub central: Central,
}

/// What differs from problem to problem in training one network that decides for all agents.
#[derive(Debug, Clone, Copy)]
pub struct Central {
    /// Cells along each axis of the picture it is shown of the field; none for all grid points.
    pub picture: Option<[usize; 2]>,
    /// Highest learning rate.
    pub rate: f64,
    /// Episodes per step.
    pub batch: usize,
    /// Optimiser steps.
    pub steps: u64,
}

impl Central {
    /// What most problems have in common.
    pub const COMMON: Self = Self {
        picture: None,
        rate: 1e-3,
        batch: 32,
        steps: 600,
    };
}

/// The settings of [`Preset::Quick`].
#[derive(Debug, Clone, Copy)]
pub struct Quick {
    /// Optimiser steps.
    pub steps: u64,
    /// Episodes per step.
    pub batch: usize,
}

/// A training as the authors of a problem did it.
#[derive(Debug, Clone, Copy)]
pub struct Authors {
    /// Episodes per step.
    pub batch: usize,
    /// Agents, where not those of the results table.
    pub agents: Option<usize>,
    /// Control steps per episode, where not those of the results table.
    pub horizon: Option<usize>,
    /// Learning rate over the steps.
    pub schedule: Schedule,
}

impl Authors {
    /// What most problems of the paper have in common.
    pub const COMMON: Self = Self {
        batch: 32,
        agents: None,
        horizon: None,
        schedule: Schedule::Decay {
            rate: 1e-3,
            half_life: 2000.0,
        },
    };
}

/// Weights for problems with a target and mobile agents.
pub const TRACKING: &[(Term, f64)] = &[
    (Term::Track, 5.0),
    (Term::Final, 50.0),
    (Term::Effort, 1e-6),
    (Term::Bound, 1.0),
    (Term::Collision, 0.1),
    (Term::Obstacle, 10.0),
];

/// The warm-up is this part of the training.
const WARM_UP: u64 = 32;

impl Settings {
    /// What a problem begins with.
    pub const COMMON: Self = Self {
        window: 0,
        gains: [1.0, 1.0, 1.0],
        wide: None,
        memory: 0,
        rests: false,
        weights: TRACKING,
        rate: 1e-3,
        batch: 32,
        pool: 0,
        substeps: None,
        horizon: None,
        agents: &[],
        variants: &[""],
        deaths: [0.0, 0.0, 1.0],
        noise: [0.0, 0.0],
        neighbours: 0.0,
        missing: [0.0, 0.0],
        steps: 1000,
        quick: Quick {
            steps: 200,
            batch: 16,
        },
        authors: Authors::COMMON,
        central: Central::COMMON,
    };

    /// The recipe of one network that decides for so many agents, for a purpose. Nothing befalls anyone in its
    /// training: it is a yardstick for what is known of a swarm that nothing happens to.
    pub fn centralised(&self, problem: &Problem, preset: Preset, agents: usize) -> Recipe {
        let Central {
            picture,
            rate,
            batch,
            steps,
        } = self.central;
        let mut recipe = self.preset(problem, preset);
        let picture = picture.unwrap_or(problem.grid.points);
        recipe.policy = PolicyConfig::centralised(problem, agents, picture, self.gains[0]);
        recipe.train.hardening = Hardening {
            agents: vec![Size::of(agents)],
            variants: recipe.train.hardening.variants,
            ..Hardening::none(problem)
        };
        if preset != Preset::Published {
            *recipe.train.schedule.rate_mut() = rate;
        }
        if preset == Preset::Full {
            recipe.train.batch = batch;
            recipe.set_steps(steps);
        }
        recipe
    }

    /// The recipe of a problem for a purpose.
    pub fn preset(&self, problem: &Problem, preset: Preset) -> Recipe {
        match preset {
            Preset::Full => self.full(problem),
            Preset::Quick => self.quick(problem),
            Preset::Published => self.published(problem),
        }
    }

    /// The recipe of the shipped policy.
    pub fn full(&self, problem: &Problem) -> Recipe {
        let [error_gain, slope_gain, wide_gain] = self.gains;
        let sight = Sight {
            window: match self.window {
                0 => problem.sensing.window,
                cells => cells,
            },
            error_gain,
            slope_gain,
            wide: self.wide,
            wide_gain,
            target: false,
            others: described::other_gains(problem),
        };
        let mut weights = [0.0; TERMS];
        for &(term, weight) in self.weights {
            weights[term as usize] = weight;
        }
        let [deadly_episodes, deaths, deaths_by] = self.deaths;
        let [sensor_noise, actuator_noise] = self.noise;
        let usual = Hardening::none(problem);
        let hardening = Hardening {
            agents: match self.agents {
                [] => usual.agents,
                sizes => sizes.to_vec(),
            },
            variants: self.variants.iter().map(|&name| name.to_owned()).collect(),
            deadly_episodes,
            deaths,
            deaths_by,
            sensor_noise,
            actuator_noise,
            neighbours: self.neighbours,
            missing: self.missing,
            ..usual
        };
        let mut policy = PolicyConfig::new(problem, sight);
        policy.shape.memory = self.memory;
        if self.rests {
            policy.shape = policy.shape.resting();
        }
        let mut recipe = Recipe {
            policy,
            train: TrainConfig {
                batch: self.batch,
                pool: self.pool,
                substeps: self.substeps.unwrap_or(problem.substeps),
                horizon: self.horizon.unwrap_or_else(|| problem.scored_steps()),
                schedule: Schedule::Cosine {
                    rate: self.rate,
                    warm_up: 0,
                    steps: 0,
                },
                weights,
                hardening,
                ..self.published(problem).train
            },
            steps: 0,
            start: None,
        };
        recipe.set_steps(self.steps);
        recipe
    }

    fn quick(&self, problem: &Problem) -> Recipe {
        let mut recipe = self.full(problem);
        let Quick { steps, batch } = self.quick;
        recipe.train.batch = batch;
        recipe.train.hardening = Hardening {
            variants: recipe.train.hardening.variants,
            ..Hardening::none(problem)
        };
        recipe.train.validation_episodes = recipe.train.validation_episodes.min(16);
        recipe.train.validate_every = (steps / 4).max(1);
        recipe.train.pool = recipe.train.pool.min(16);
        recipe.set_steps(steps);
        recipe
    }

    /// The published settings on our network, except that training episodes are not a fixed set.
    fn published(&self, problem: &Problem) -> Recipe {
        let stabilised = !problem.tracking;
        let sight = Sight {
            window: problem.sensing.window,
            error_gain: 1.0,
            slope_gain: 1.0,
            wide: None,
            wide_gain: 0.0,
            target: false,
            others: vec![1.0; problem.also_seen().len()],
        };
        Recipe {
            policy: PolicyConfig::new(problem, sight),
            train: TrainConfig {
                seed: 0,
                batch: self.authors.batch,
                pool: match stabilised && problem.grid.is_closed() {
                    true => 64,
                    false => 0,
                },
                substeps: problem.substeps,
                horizon: problem.scored_steps(),
                schedule: self.authors.schedule,
                clip: 1.0,
                weights: loss::weights(&problem.loss),
                hardening: Hardening::none(problem),
                validate_every: 50,
                validation_episodes: if stabilised { 16 } else { 64 },
                patience: 0,
                retreats: 3,
            },
            steps: 500,
            start: None,
        }
    }
}

impl Recipe {
    /// Another length of training; the schedule follows.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
        if let Schedule::Cosine {
            steps: length,
            warm_up,
            ..
        } = &mut self.train.schedule
        {
            (*length, *warm_up) = (steps, steps.div_ceil(WARM_UP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::ENTRIES;

    #[test]
    fn every_problem_has_every_recipe_and_a_network_that_fits_a_small_board() {
        for entry in ENTRIES {
            let of = |preset| entry.recipe.preset(entry.problem, preset);
            for preset in [Preset::Full, Preset::Quick, Preset::Published] {
                let recipe = of(preset);
                assert!(recipe.steps > 0 && recipe.train.batch > 0);
                // 256 KiB with a page for the header.
                assert!(4 * recipe.policy.shape.parameters() <= 252 * 1024);
            }
            assert!(of(Preset::Quick).steps < of(Preset::Full).steps);
        }
    }

    #[test]
    fn a_network_for_all_agents_is_told_everything_and_nothing_befalls_anyone() {
        for entry in ENTRIES {
            let problem = entry.problem;
            for preset in [Preset::Full, Preset::Quick, Preset::Published] {
                let recipe = entry.recipe.centralised(problem, preset, problem.agents);
                let PolicyConfig { shape, sight } = &recipe.policy;
                assert_eq!(shape.outputs(), problem.agents * shape.actions);
                assert_eq!(shape.fourier() % problem.agents, 0);
                let fields = 1 + usize::from(problem.tracking);
                assert_eq!(shape.inputs(), fields * sight.coarse());
                let hardening = &recipe.train.hardening;
                assert_eq!(hardening.agents, [Size::of(problem.agents)]);
                assert_eq!((hardening.deaths, hardening.sensor_noise), (0.0, 0.0));
            }
        }
    }
}
