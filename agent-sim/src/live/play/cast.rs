//! Who plays: the run that is looked at, and those that go along to compare it with.

use crate::centre::{Desk, Guide};
use crate::controller::{Controller, ControllerKind, Experiment};
use crate::episode::{ClosedLoop, RunError};
use crate::link::{InProcess, Link};
use crate::live::lens::{Lens, Watched};
use crate::plant::{BuiltIn, Plant, Shared};
use crate::proportional::{Law, ProportionalAgent};
use crate::report::RGBColor;
use crate::rig::Rig;
use crate::scenario::Team;
use crate::sense::View;
use agent_core::policy::Policy;
use problem::Episode;

/// Everything that a run is made of.
pub(super) struct Cast<'c> {
    pub(super) team: &'c Team,
    pub(super) episode: &'c Episode,
    pub(super) policy: Option<&'c Policy<'c>>,
    pub(super) law: Option<&'c Law>,
}

/// The run and those that go along to compare it with.
pub(super) struct Runs<'c> {
    pub(super) main: ClosedLoop<Box<dyn Link + 'c>>,
    pub(super) others: Vec<Other<'c>>,
}

/// A run that goes along.
pub(super) struct Other<'c> {
    pub(super) run: ClosedLoop<Box<dyn Link + 'c>>,
    /// It blew up; it stays where it was.
    over: bool,
}

impl<'c> Cast<'c> {
    fn experiment(&self, controller: Controller<'c>) -> Experiment<'c> {
        Experiment {
            controller,
            ..self.team.experiment(self.policy)
        }
    }

    /// Names and colours of the run and of those that go along.
    pub(super) fn names(&self) -> Vec<(&'static str, RGBColor)> {
        let called = |kind: ControllerKind| (kind.run, kind.colour);
        let mut names = vec![called(self.team.kind)];
        names.extend(
            self.feedback_goes_along()
                .map(|_| called(ControllerKind::PROPORTIONAL)),
        );
        names.extend(
            self.team
                .kind
                .has_agents
                .then(|| called(ControllerKind::NONE)),
        );
        names
    }

    /// The feedback that a policy is compared with.
    fn feedback_goes_along(&self) -> Option<&'c Law> {
        let is_policy = self.team.kind == ControllerKind::POLICY;
        self.law.filter(|_| is_policy)
    }

    pub(super) fn begin(
        &self,
        lens: &'c Lens,
        rig: Option<&'c Rig>,
        plant: Option<&Shared>,
    ) -> Result<Runs<'c>, RunError> {
        let nobody = || self.start(Controller::None, None);
        let main = match self.team.experiment(self.policy).controller {
            Controller::Policy(policy) => {
                let rig = rig.filter(|rig| !rig.is_empty());
                let link = move |agent| -> Box<dyn Link + 'c> {
                    match rig.and_then(|rig| rig.link(agent)) {
                        Some(link) => Box::new(link),
                        None => Box::new(Watched::new(policy, agent, lens)),
                    }
                };
                self.driven(Controller::Policy(policy), View::of(policy), plant, link)?
            }
            Controller::Standing { .. } => unreachable!("refused before"),
            Controller::Proportional(_) => {
                self.fed_back(self.law.expect("checked when set up"), plant)?
            }
            Controller::Guided(guide) => self.led(guide, plant)?,
            Controller::None => self.start(Controller::None, plant)?,
        };
        let mut others = Vec::new();
        if let Some(law) = self.feedback_goes_along() {
            others.push(self.fed_back(law, None)?);
        }
        if self.team.kind.has_agents {
            others.push(nobody()?);
        }
        let others = others.into_iter();
        Ok(Runs {
            main,
            others: others.map(|run| Other { run, over: false }).collect(),
        })
    }

    fn fed_back(
        &self,
        law: &'c Law,
        plant: Option<&Shared>,
    ) -> Result<ClosedLoop<Box<dyn Link + 'c>>, RunError> {
        let link = move |agent| ProportionalAgent::new(law, agent);
        self.driven(Controller::None, law.view(), plant, link)
    }

    fn led(
        &self,
        guide: &'c dyn Guide,
        plant: Option<&Shared>,
    ) -> Result<ClosedLoop<Box<dyn Link + 'c>>, RunError> {
        let desk = Desk::new(guide, self.team.agents);
        let radio = desk.radio();
        let link = move |agent| guide.agent(agent, radio.clone());
        let mut run = self.driven(Controller::Guided(guide), guide.view(), plant, link)?;
        run.led_by(Some(desk));
        Ok(run)
    }

    fn driven<L: Link + 'c>(
        &self,
        controller: Controller<'c>,
        view: View,
        plant: Option<&Shared>,
        link: impl Fn(usize) -> L + Clone + Send + 'c,
    ) -> Result<ClosedLoop<Box<dyn Link + 'c>>, RunError> {
        let experiment = self.experiment(controller);
        let swarm = experiment.swarm(view, experiment.agents, &self.episode.arrivals, link);
        let problem = &self.team.problem;
        ClosedLoop::with_plant(problem, self.episode, swarm, lent(plant), experiment.seed)
    }

    fn start(
        &self,
        controller: Controller<'c>,
        plant: Option<&Shared>,
    ) -> Result<ClosedLoop<Box<dyn Link + 'c>>, RunError> {
        let experiment = self.experiment(controller);
        let none = |_| -> InProcess<'c> { unreachable!("no agents") };
        let swarm = experiment.swarm(View::NOTHING, 0, &[], none);
        let problem = &self.team.problem;
        ClosedLoop::with_plant(problem, self.episode, swarm, lent(plant), experiment.seed)
    }
}

fn lent(plant: Option<&Shared>) -> Box<dyn Plant> {
    match plant {
        None => Box::new(BuiltIn::default()),
        Some(shared) => shared.lend(),
    }
}

impl Runs<'_> {
    /// One step of all. What goes along may blow up; the run that is looked at says so.
    pub(super) fn advance(&mut self, rig: Option<&Rig>) -> Result<(), RunError> {
        let Self { main, others } = self;
        let mut go_along = || {
            for other in others.iter_mut().filter(|other| !other.over) {
                other.over = other.run.advance().is_err();
            }
        };
        let Some(rig) = rig else {
            return rayon::join(|| main.advance(), &mut go_along).0;
        };
        // Boards are waited for off the pool, whose threads would take up other work meanwhile.
        let step = main.snapshot().step;
        rig.before(step);
        let done = main.advance();
        rig.after(step);
        go_along();
        done
    }
}
