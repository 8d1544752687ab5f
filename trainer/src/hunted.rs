//! Scenarios in which a swarm was found to fail (`agent-sim hunt`), as episodes to train with.

use crate::family::{Family, Spread};
use crate::trial::Trial;
use agent_sim::controller::ControllerKind;
use agent_sim::fault::actuator::ACTUATOR_NOISE;
use agent_sim::fault::life::CRASH;
use agent_sim::fault::line::DELAY;
use agent_sim::fault::sensor::NOISE;
use agent_sim::fault::{Fault, Who};
use agent_sim::scenario::{Scenario, Team};
use anyhow::{Context, Result, bail, ensure};
use problem::{Problem, Problems};

/// A scenario that can be trained with.
pub struct Hunted {
    /// The form of the problem that it is about; empty for the problem as it is.
    pub variant: String,
    physics: Vec<(String, f64)>,
    trial: Trial,
}

impl Hunted {
    /// Reads a scenario's text. Crashes happen to whom and when it says; noise and delays, which the rollout
    /// has for whole episodes only, happen to everybody all the time.
    pub fn read(text: &str, problem: &'static Problem) -> Result<Self> {
        let scenario = Scenario::from_toml(text)?;
        let problems = Problems::new(&[problem])?;
        let meant = problems.by_name(&scenario.problem)?;
        ensure!(
            meant.address() == problem.address(),
            "it is about {}, not {}",
            meant.name,
            problem.name
        );
        ensure!(
            scenario.grid.is_none(),
            "it is about another grid, and training has the problem's; take grid out of it"
        );
        for fault in &scenario.faults {
            check(fault)?;
        }
        let (variant, physics) = (scenario.variant.clone(), scenario.physics.clone());
        // Who acts, where and what is required of it makes no difference here.
        let bare = Scenario {
            controller: Some(ControllerKind::NONE),
            policy: None,
            gain: None,
            links: Vec::new(),
            realtime: None,
            plant: None,
            requirements: Vec::new(),
            ..scenario
        };
        let team = bare.team(&problems)?;
        let episode = bare.episode(&team)?;
        let mut trial = Trial::plain(&team.problem, team.agents, episode);
        befall(&mut trial, &team)?;
        Ok(Self {
            variant: variant.unwrap_or_default(),
            physics: physics.into_iter().collect(),
            trial,
        })
    }

    /// How many agents it has.
    pub fn agents(&self) -> usize {
        self.trial.agents()
    }

    /// The episode on one of a family of fields.
    pub fn trial(&self, family: &Family, spreads: &[Spread]) -> Result<Trial> {
        for (name, value) in &self.physics {
            ensure!(
                spreads.iter().any(|spread| spread.holds(name, *value)),
                "it has {name} = {value}, which is not among what is trained; add --physics \
                 {name}=LEAST..MOST with this value between them"
            );
        }
        let values = (self.physics.iter()).map(|(name, value)| (name.as_str(), *value));
        Ok(Trial {
            physics: family.usual.with_physics(values)?.physics,
            ..self.trial.clone()
        })
    }
}

/// Refuses what the rollout does not have.
fn check(fault: &Fault) -> Result<()> {
    let known = [&CRASH, &NOISE, &ACTUATOR_NOISE, &DELAY].map(|kind| kind.name);
    ensure!(
        known.contains(&fault.what.kind.name),
        "training has no {}; take '{fault}' out of it (crash, noise, actuator-noise and delay can stay)",
        fault.what.kind.name
    );
    if fault.what.kind.name == CRASH.name {
        ensure!(
            fault.until.is_none(),
            "in training nobody comes back from a crash; take until out of '{fault}'"
        );
        ensure!(
            !matches!(fault.who, Who::Region(_)),
            "training must know whom '{fault}' hits before the run; name them with ids"
        );
    }
    Ok(())
}

/// What the faults of a team do to an episode.
fn befall(trial: &mut Trial, team: &Team) -> Result<()> {
    let plan = team.plan();
    for (index, fault) in team.faults.iter().enumerate() {
        let what = &fault.what;
        match what.kind.name {
            "crash" => {
                let step = fault.begins(team.steps);
                for (agent, dies_at) in trial.dies_at.iter_mut().enumerate() {
                    if (plan.victims(index)).is_none_or(|victims| victims.contains(&agent)) {
                        *dies_at = step.min(*dies_at);
                    }
                }
            }
            "noise" => trial.sensor_noise = trial.sensor_noise.max(what.number("std")),
            "actuator-noise" => trial.actuator_noise = trial.actuator_noise.max(what.number("std")),
            "delay" => trial.delay = trial.delay.max(what.whole("steps") as usize),
            other => bail!("training has no {other}"),
        }
    }
    Ok(())
}

/// Reads all of them; an error says which cannot be trained with.
pub fn read_all(texts: &[String], problem: &'static Problem) -> Result<Vec<Hunted>> {
    let read = |(k, text): (usize, &String)| {
        Hunted::read(text, problem).with_context(|| format!("--hard, scenario {}", k + 1))
    };
    texts.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    fn refused(text: &str) -> String {
        let text = format!("problem = \"heat-1d\"\n{text}");
        let error = Hunted::read(&text, &PROBLEM).err();
        format!("{:#}", error.expect("refused"))
    }

    #[test]
    fn a_scenario_becomes_an_episode() {
        let text = "problem = \"heat-1d\"\nagents = 6\nseed = 3\nlink = [\"qemu=2\"]\n\
                    [[fault]]\nkind = \"crash\"\nids = \"1+4\"\nat = 0.5\n\
                    [[fault]]\nkind = \"delay\"\nsteps = 2\nids = \"3\"\nat = 0.2\nuntil = 0.4\n\
                    [[fault]]\nkind = \"noise\"\nstd = 0.01\n\
                    [[require]]\nwhat = \"error\"\nbelow = 0.01";
        let hunted = Hunted::read(text, &PROBLEM).unwrap();
        let family = Family::new(&PROBLEM, &[]).unwrap();
        let trial = hunted.trial(&family, &[]).unwrap();
        let never = usize::MAX;
        assert_eq!(trial.dies_at, [never, 150, never, never, 150, never]);
        assert_eq!((trial.delay, trial.sensor_noise), (2, 0.01));
        let fresh = problem::test_set::EpisodeSet::Fresh;
        assert_eq!(trial.episode, fresh.episode(&PROBLEM, 3, 0).unwrap());
    }

    #[test]
    fn what_training_has_not_is_refused_by_name() {
        let fault = |text: &str| refused(&format!("[[fault]]\n{text}"));
        assert!(fault("kind = \"kill\"").contains("no kill"));
        assert!(fault("kind = \"invert\"").contains("no invert"));
        let back = fault("kind = \"crash\"\nids = \"1\"\nat = 0.1\nuntil = 0.2");
        assert!(back.contains("take until out"), "{back}");
        let where_they_are = fault("kind = \"crash\"\nregion = \"0.2..0.4\"\nat = 0.1");
        assert!(where_they_are.contains("ids"), "{where_they_are}");
        assert!(refused("grid = 50").contains("another grid"));
        let other = Hunted::read("problem = \"ks-1d\"", &PROBLEM).err();
        assert!(format!("{:#}", other.unwrap()).contains("ks-1d"));
    }

    #[test]
    fn physics_must_be_among_what_is_trained() {
        let text = "problem = \"heat-1d\"\n[physics]\nnu = 0.3";
        let hunted = Hunted::read(text, &PROBLEM).unwrap();
        let in_family = |spreads: &[Spread]| {
            let family = Family::new(&PROBLEM, spreads).unwrap();
            hunted.trial(&family, spreads)
        };
        assert!(in_family(&[]).unwrap_err().to_string().contains("nu = 0.3"));
        let trial = in_family(&["nu=0.1..0.4".parse().unwrap()]).unwrap();
        assert_eq!(
            trial.physics,
            PROBLEM.with_physics([("nu", 0.3)]).unwrap().physics
        );
    }
}
