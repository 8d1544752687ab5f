//! Nonlinear model-predictive control: a plan for the next steps, followed for some of them, and made anew
//! from what has become of the field.
//!
//! Plans are those of [`oracle`](crate::oracle): the same rollout, the same adjoint, the same quasi-Newton
//! descent, each warm-started with what is left of the plan before. A planner is told the whole field as it
//! truly is, the target as it is now, and where every agent is. It is not told who is lost: it plans with all
//! that it was given, and learns of losses only from the field. In the simulator it is a
//! [`centre`](agent_sim::centre), whose orders go over the agents' links like everybody's.

use crate::adjoint::real::Real;
use crate::entry::{Entries, Entry};
use crate::host_loop::HostLoop;
use crate::loss::{TERMS, Term};
use crate::oracle::search::Flight;
use crate::rollout::Terms;
use crate::trial::Trial;
use agent_sim::centre::{Bring, Centre, Decisions, Guide, Order, Stopwatch, Whole};
use agent_sim::controller::ControllerKind;
use agent_sim::scenario::{BadScenario, Planning, Team};
use indicatif::ProgressBar;
use problem::{Drives, Episode, Problem};
use std::fmt;
use std::sync::Arc;

/// Weight of the error at a plan's end beside that on the way: what is left there is left to later plans.
const AT_THE_END: f64 = 1.0;
/// Weight of the distance of the centres of mass, where stirrers carry clouds: clouds that do not overlap their
/// target need to be told where it is.
const CENTRES: f64 = 0.01;
/// Old plans, as shares of the limits, are drawn in to this before they are improved: saturated actions have no
/// slope.
const SATURATED: f64 = 0.99;

/// Makes planners for the problems of a list.
#[derive(Debug, Clone, Copy)]
pub struct Planners<'a>(pub &'a Entries<'a>);

impl Bring for Planners<'_> {
    fn kind(&self) -> ControllerKind {
        ControllerKind::NMPC
    }

    fn bring(&self, team: &Team) -> Result<Arc<dyn Guide>, BadScenario> {
        let refused = |why: String| BadScenario::Senseless(format!("nmpc: {why}"));
        let entry = self.0.by_name(&team.problem.address())?;
        let planner = Nmpc::new(entry, &team.problem, team.planning);
        Ok(Arc::new(
            planner.map_err(|error| refused(error.to_string()))?,
        ))
    }
}

/// A planner for a problem.
#[derive(Clone)]
pub struct Nmpc(Arc<Shared>);

/// What the planners of all episodes have in common.
struct Shared {
    problem: Problem,
    closed_loop: HostLoop,
    planning: Planning,
    objective: Terms,
    watch: Stopwatch,
}

/// Why nothing can be planned.
#[derive(Debug, thiserror::Error)]
pub enum NoPlans {
    /// The rollout cannot do this form of the problem.
    #[error(transparent)]
    NotImplemented(#[from] problem::NotImplemented),
    /// Its step has no derivative but Burn's.
    #[error(
        "{0} has no step with a hand-written derivative, and plans through tensor operations would take \
         minutes a decision; write one (docs/new-problem.md), or compare with --controller proportional"
    )]
    InTensors(&'static str),
    /// It has a clock, which plans do not carry.
    #[error(
        "{0} is described by a file: its edges may follow a clock and its actuators may be slow, and plans, \
         which begin anew every time, carry neither; compare with --controller proportional or coverage"
    )]
    Described(&'static str),
}

impl Nmpc {
    /// A planner that looks so far ahead.
    pub fn new(entry: &Entry, problem: &Problem, planning: Planning) -> Result<Self, NoPlans> {
        if problem.kit.is_some() {
            return Err(NoPlans::Described(problem.name));
        }
        let step = entry.physics.step_by_hand::<f32>(problem);
        let step = step.ok_or(NoPlans::InTensors(problem.name))??;
        let config = entry.recipe.full(problem).policy;
        let mut objective = [0.0; TERMS];
        objective[Term::Track as usize] = 1.0;
        objective[Term::Final as usize] = AT_THE_END;
        if problem.actuation.drives == Drives::Flow {
            objective[Term::Centroid as usize] = CENTRES;
        }
        // All of a plan counts, whenever it is made.
        let mut problem = *problem;
        problem.scoring.from = 0;
        Ok(Self(Arc::new(Shared {
            problem,
            closed_loop: HostLoop::new(&problem, step, planning.steps, &config)?,
            planning,
            objective,
            watch: Stopwatch::default(),
        })))
    }
}

impl fmt::Debug for Nmpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared {
            problem, planning, ..
        } = &*self.0;
        write!(f, "{planning:?} on {}", problem.name)
    }
}

impl Guide for Nmpc {
    fn kind(&self) -> ControllerKind {
        ControllerKind::NMPC
    }

    fn problem(&self) -> &Problem {
        &self.0.problem
    }

    fn centre(&self, _: usize) -> Box<dyn Centre> {
        Box::new(Planner {
            shared: self.0.clone(),
            plan: Vec::new(),
            made_at: 0,
        })
    }

    fn decisions(&self) -> Option<Decisions> {
        Some(self.0.watch.read())
    }
}

/// Who plans in one episode.
struct Planner {
    shared: Arc<Shared>,
    /// [plan's steps, agents, actions] before tanh; empty before the first.
    plan: Vec<f64>,
    made_at: usize,
}

impl Centre for Planner {
    fn decide(&mut self, whole: &Whole<'_>, orders: &mut [Order]) {
        let Planning { replan, .. } = self.shared.planning;
        let actions = self.shared.closed_loop.shape.actions;
        let width = orders.len() * actions;
        if width == 0 {
            return;
        }
        if self.plan.is_empty() || whole.step >= self.made_at + replan {
            let shared = self.shared.clone();
            shared.watch.time(|| self.think(whole, width));
        }
        let now = &self.plan[(whole.step - self.made_at) * width..][..width];
        for (order, planned) in orders.iter_mut().zip(now.chunks_exact(actions)) {
            let mut narrow = [0.0; 3];
            for (to, from) in narrow.iter_mut().zip(planned) {
                *to = (*from as f32).squash();
            }
            let (force, velocity) = self.shared.closed_loop.order(&narrow[..actions]);
            *order = Order { force, velocity };
        }
    }
}

impl Planner {
    /// Makes the plan anew, from what is left of the old one.
    fn think(&mut self, whole: &Whole<'_>, width: usize) {
        let Shared {
            problem,
            closed_loop,
            planning,
            objective,
            ..
        } = &*self.shared;
        let steps = planning.steps;
        let past = match self.plan.is_empty() {
            true => 0,
            false => (whole.step - self.made_at).min(steps),
        };
        let limit = SATURATED.atanh();
        let mut start: Vec<f64> = (self.plan.iter().skip(past * width))
            .map(|action| action.clamp(-limit, limit))
            .collect();
        // What came last goes on; of a plan that is over, or before the first, nothing is left.
        let last = match start.len().checked_sub(width) {
            Some(from) => start[from..].to_vec(),
            None => vec![0.0; width],
        };
        while start.len() < steps * width {
            start.extend_from_slice(&last);
        }
        let agents = whole.positions.len();
        let now = Episode {
            initial: whole.state.iter().map(|&z| z as f32).collect(),
            target: whole.target.to_vec(),
            ..Episode::default()
        };
        let trial = Trial {
            start: whole.positions.to_vec(),
            ..Trial::plain(problem, agents, now)
        };
        let bar = ProgressBar::hidden();
        let flight = Flight::new(closed_loop, &trial, *objective, (0, planning.runs), &bar);
        self.plan = flight.seek(start, false).plan;
        self.made_at = whole.step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Physics;
    use crate::oracle::tests::least;
    use crate::published::{ENTRIES, heat_1d, ks_1d};
    use agent_sim::controller::{Controller, Experiment};
    use agent_sim::recording::Recording;
    use agent_sim::scenario::Scenario;
    use problem::metrics::Score;
    use problem::test_set::EpisodeSet;

    fn episode(problem: &Problem) -> Episode {
        EpisodeSet::Fresh.episode(problem, 1, 0).unwrap()
    }

    fn experiment<'p>(nmpc: &'p Nmpc, problem: &'p Problem, agents: usize) -> Experiment<'p> {
        Experiment {
            problem,
            controller: Controller::Guided(nmpc),
            agents,
            steps: problem.horizon,
            faults: &[],
            seed: 1,
            plant: None,
        }
    }

    fn planning(steps: usize, replan: usize, runs: usize) -> Planning {
        Planning {
            steps,
            replan,
            runs,
        }
    }

    /// Agents that stay drive a linear field for one step, so little that no force comes to its limit: what is
    /// left at best is known.
    #[test]
    fn on_a_linear_field_the_plan_is_the_least_squares_solution() {
        let mut problem = *heat_1d::ENTRY.problem;
        problem.actuation.velocity_max = 0.0;
        problem.horizon = 1;
        let mut episode = episode(&problem);
        for (initial, target) in episode.initial.iter_mut().zip(&mut episode.target) {
            *initial *= 1e-3;
            *target *= 1e-3;
        }
        let nmpc = Nmpc::new(&heat_1d::ENTRY, &problem, planning(1, 1, 500)).unwrap();
        let score = experiment(&nmpc, &problem, 4).run(&episode, &mut |_| {});
        let config = heat_1d::ENTRY.recipe.full(&problem).policy;
        let field = heat_1d::ENTRY
            .physics
            .step_by_hand::<f64>(&problem)
            .unwrap();
        let exact = HostLoop::new(&problem, field.unwrap(), 1, &config).unwrap();
        let trial = [Trial::plain(&problem, 4, episode)];
        let square = |shares: &[f64]| {
            let plan = shares.iter().map(|share| share.atanh()).collect();
            let (terms, tape) = exact.forward_plans(vec![plan], &trial);
            exact.recycle(tape);
            terms[0][Term::Final as usize]
        };
        let (left, least) = (score.unwrap().final_error, least(square, 4));
        assert!(
            (left / least - 1.0).abs() < 0.01,
            "{left:e} instead of {least:e}"
        );
        assert!(least < 0.9 * square(&[0.0; 4]));
    }

    #[test]
    fn actions_keep_their_limits_and_a_planner_beats_feedback() {
        let problem = Problem {
            horizon: 60,
            ..*heat_1d::ENTRY.problem
        };
        let episode = episode(&problem);
        let nmpc = Nmpc::new(&heat_1d::ENTRY, &problem, planning(20, 5, 20)).unwrap();
        let mut most = [0f32; 2];
        let planned = experiment(&nmpc, &problem, 8)
            .run(&episode, &mut |snapshot| {
                for deed in snapshot.deeds {
                    most = [
                        most[0].max(deed.force.abs()),
                        most[1].max(deed.velocity[0].abs()),
                    ];
                }
            })
            .unwrap();
        assert!(most[0] <= 40.0 && most[1] <= 2.0, "{most:?}");
        assert!(most[0] > 10.0, "they push: {most:?}");
        let fed_back = Experiment {
            controller: Controller::Proportional(problem.baseline_for(8).unwrap()),
            ..experiment(&nmpc, &problem, 8)
        };
        let fed_back = fed_back.run(&episode, &mut |_| {}).unwrap();
        assert!(planned.final_error < fed_back.final_error);
        let took = nmpc.decisions().unwrap();
        assert_eq!(took.count, 12);
        assert!(0.0 < took.mean_ms && took.mean_ms <= took.worst_ms);
    }

    /// Half of the agents are dead after a third of the run, and nobody tells.
    #[test]
    fn losses_are_made_up_for_by_planning_anew() {
        let problem = Problem {
            horizon: 60,
            ..*heat_1d::ENTRY.problem
        };
        let (episode, faults) = (
            episode(&problem),
            ["crash,fraction=0.5,at=0.33".parse().unwrap()],
        );
        let score = |replan| -> Score {
            let nmpc = Nmpc::new(&heat_1d::ENTRY, &problem, planning(60, replan, 20)).unwrap();
            let struck = Experiment {
                faults: &faults,
                ..experiment(&nmpc, &problem, 8)
            };
            struck.run(&episode, &mut |_| {}).unwrap()
        };
        let (once, again) = (score(60).final_error, score(5).final_error);
        assert!(again < 0.5 * once, "{again:e} instead of {once:e}");
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let problem = Problem {
            horizon: 12,
            ..*ks_1d::ENTRY.problem
        };
        let episode = episode(&problem);
        let log = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let nmpc = Nmpc::new(&ks_1d::ENTRY, &problem, planning(8, 3, 6)).unwrap();
                let experiment = experiment(&nmpc, &problem, 8);
                let made = Recording::make(&experiment, None, &episode, || ()).unwrap();
                made.log
            })
        };
        assert_eq!(log(1), log(2));
    }

    #[test]
    fn what_cannot_be_planned_is_refused_by_name() {
        let entries = Entries::new(ENTRIES).unwrap();
        let problems = entries.problems();
        let refusal = |settings: &str| {
            let text = format!("problem = \"heat-1d\"\ncontroller = \"nmpc\"\n{settings}");
            let scenario = Scenario::from_toml(&text).unwrap();
            let team = scenario.team_with(&problems, &[&Planners(&entries)]);
            team.map(|team| team.kind).unwrap_err().to_string()
        };
        for (settings, parts) in [
            ("plan = 500", ["--plan 500", "300 steps", "1 to 300"]),
            (
                "plan = 10\nreplan = 11",
                ["--replan 11", "plans of 10 steps", "1 to 10"],
            ),
            ("plan_runs = 0", ["--plan-runs 0", "1 to 10000", "give"]),
            ("gain = 2.0", ["--gain", "proportional", "coverage"]),
        ] {
            let message = refusal(settings);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }

        let bare = Entry {
            problem: heat_1d::ENTRY.problem,
            physics: Physics::in_tensors(|_, _| unreachable!("nobody steps")),
            recipe: heat_1d::ENTRY.recipe,
            kernels: None,
        };
        let refused = Nmpc::new(&bare, bare.problem, Planning::USUAL).unwrap_err();
        let message = refused.to_string();
        assert!(
            message.contains("heat-1d") && message.contains("hand-written"),
            "{message}"
        );
    }
}
