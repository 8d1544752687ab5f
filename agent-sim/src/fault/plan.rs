//! What the faults of a run come to: who, exactly when, and with which random numbers.

use super::life::{Reset, Restartable};
use super::{Act, Clock, Fault, Hit, OwnTime, Scope, What, When, Who};
use crate::link::Link;
use problem::grid::Grid;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The run that faults are planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run<'a> {
    /// The domain.
    pub grid: &'a Grid,
    /// Where each agent of the swarm starts.
    pub places: &'a [[f64; 2]],
    /// How many are there from the beginning, the first ones: of these shares are drawn, so that one more
    /// who comes later changes nobody's fate.
    pub at_first: usize,
    /// Control steps.
    pub steps: usize,
    /// Time between two of them, in microseconds.
    pub interval_us: f64,
    /// Decides everything that is drawn.
    pub seed: u64,
}

impl Run<'_> {
    /// The host's time at the step after this share of the run.
    fn time_us(&self, share: f64) -> u64 {
        let step = (share * self.steps as f64).round();
        (step * self.interval_us).round() as u64
    }
}

/// The faults of a run with everything settled that is the same for all agents, so that a swarm of
/// any size is wrapped quickly.
#[derive(Debug, Clone)]
pub struct Plan {
    seed: u64,
    planned: Vec<Planned>,
    /// How many of the first agents are on boards that keep their own time.
    boards: usize,
}

#[derive(Debug, Clone)]
struct Planned {
    what: What,
    scope: Scope,
    /// When a drift is complete: at the fault's end, or at the run's.
    end_us: u64,
    /// Whether the agent restarts when it is over.
    restarts: bool,
    /// In ascending order; `None` for all, if perhaps only in some region.
    victims: Option<Vec<usize>>,
}

impl Planned {
    fn addresses(&self, agent: usize) -> bool {
        let among = |victims: &Vec<usize>| victims.binary_search(&agent).is_ok();
        self.victims.as_ref().is_none_or(among)
    }
}

impl Plan {
    /// Settles `faults`, which have passed [`Fault::check`], for one run.
    pub fn new(faults: &[Fault], run: Run<'_>) -> Self {
        let agents = run.places.len();
        let planned = faults.iter().enumerate().map(|(index, fault)| {
            let (at_us, until_us) = (run.time_us(fault.at), fault.until.map(|t| run.time_us(t)));
            let (region, victims) = match &fault.who {
                Who::All => (None, None),
                Who::Fraction(share) => (None, Some(draw(*share, run.at_first, run.seed, index))),
                Who::Cluster(share) => (None, Some(draw_cluster(*share, &run, index))),
                Who::Ids(ids) => (None, Some(ids.within(agents))),
                Who::Region(region) => (Some(*region), None),
                // Nothing is wrapped for them.
                Who::Boards { .. } => (None, Some(Vec::new())),
            };
            Planned {
                what: fault.what.clone(),
                scope: Scope::new(at_us, until_us, region),
                end_us: until_us.unwrap_or(run.time_us(1.0)),
                restarts: fault.what.kind.when == When::UntilRestart && until_us.is_some(),
                victims,
            }
        });
        Self {
            seed: run.seed,
            planned: planned.collect(),
            boards: 0,
        }
    }

    /// The same with so many of the first agents on boards that keep their own time: whose clock is off, the
    /// board's is, and nothing about it is simulated.
    pub fn with_boards(self, boards: usize) -> Self {
        Self { boards, ..self }
    }

    /// The agents that the fault at `index` of the list addresses, in ascending order; `None` where
    /// that is decided as the run goes or all of them are meant.
    pub fn victims(&self, index: usize) -> Option<&[usize]> {
        self.planned.get(index)?.victims.as_deref()
    }

    /// Whether agents act by clocks of their own.
    pub fn has_clocks(&self) -> bool {
        let clock = |planned: &Planned| matches!(planned.what.kind.act, Act::Clock(_));
        self.planned.iter().any(clock)
    }

    /// The clock of an agent, all faults of clocks together.
    pub fn clock(&self, agent: usize) -> Clock {
        self.of(agent)
            .fold(Clock::EXACT, |clock, (index, planned)| {
                let Act::Clock(draw) = planned.what.kind.act else {
                    return clock;
                };
                let own = draw(&planned.what, &mut self.rng(index, agent));
                Clock {
                    rate: clock.rate * own.rate,
                    phase: clock.phase + own.phase,
                }
            })
    }

    /// The link to `agent` with all that is wrong with it. `fresh` makes the bare link, and makes it
    /// again when the agent restarts. The first fault of the list is nearest to the agent: what it
    /// does to an observation comes last and what it does to a command first.
    pub fn stack<'l, L: Link + 'l>(
        &self,
        agent: usize,
        fresh: impl Fn() -> L + Send + 'l,
    ) -> Box<dyn Link + 'l> {
        let reset = Reset::default();
        let restarts = self.of(agent).any(|(_, planned)| planned.restarts);
        let bare: Box<dyn Link + 'l> = match restarts {
            true => Box::new(Restartable::new(fresh, reset.clone())),
            false => Box::new(fresh()),
        };
        let bare = match self.has_clocks() && agent >= self.boards {
            true => Box::new(OwnTime::new(bare, self.clock(agent))),
            false => bare,
        };
        self.of(agent).fold(bare, |link, (index, planned)| {
            // A clock is nearest to the agent of all, see above, and the rig breaks boards themselves.
            let Act::Link(wrap) = planned.what.kind.act else {
                return link;
            };
            let hit = Hit {
                what: &planned.what,
                scope: planned.scope,
                end_us: planned.end_us,
                reset: &reset,
                rng: self.rng(index, agent),
            };
            wrap(link, &hit)
        })
    }

    /// The faults that address an agent, with their places in the list.
    fn of(&self, agent: usize) -> impl Iterator<Item = (usize, &Planned)> {
        let all = self.planned.iter().enumerate();
        all.filter(move |(_, planned)| planned.addresses(agent))
    }

    /// The random stream of the noise that an agent's sensors have anyway.
    pub(crate) fn sensor_rng(&self, agent: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Between those of faults and those of `draw`.
        rng.set_stream((1 << 63) | agent as u64);
        rng
    }

    /// The random stream of one fault of one agent.
    fn rng(&self, index: usize, agent: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Above those of episodes, which are numbered from 0, and below those of `draw`.
        rng.set_stream(((index as u64 + 1) << 32) | agent as u64);
        rng
    }
}

/// A share of the agents, rounded, in ascending order, drawn for the fault at `index` of the list.
pub(super) fn draw(fraction: f64, agents: usize, seed: u64, index: usize) -> Vec<usize> {
    let count = (fraction * agents as f64).round() as usize;
    draw_count(count, agents, seed, index)
}

/// As many, likewise, but one drawn agent and those that start nearest to it.
fn draw_cluster(fraction: f64, run: &Run<'_>, index: usize) -> Vec<usize> {
    let agents = run.at_first;
    let Some(&centre) = draw_count(1, agents, run.seed, index).first() else {
        return Vec::new();
    };
    let far = |agent: &usize| run.grid.distance(run.places[centre], run.places[*agent]);
    let mut nearest: Vec<usize> = (0..agents).collect();
    nearest.sort_by(|a, b| far(a).total_cmp(&far(b)));
    nearest.truncate((fraction * agents as f64).round() as usize);
    nearest.sort_unstable();
    nearest
}

/// So many of the agents, likewise.
pub(crate) fn draw_count(count: usize, agents: usize, seed: u64, index: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX - index as u64);
    let mut ids: Vec<usize> = (0..agents).collect();
    let (chosen, _) = ids.partial_shuffle(&mut rng, count.min(agents));
    let mut chosen = chosen.to_vec();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::ALL;
    use crate::fault::probe::{Log, drive, forces};
    use problem::grid::Edge;

    fn plan(faults: &[&str], seed: u64) -> Plan {
        let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
        // Ten centimetres apart on a ring of ten metres.
        let grid = Grid::line(200, 10.0, Edge::Periodic);
        let places: Vec<[f64; 2]> = (0..100).map(|i| [0.1 * f64::from(i), 0.0]).collect();
        let run = Run {
            grid: &grid,
            places: &places,
            at_first: places.len(),
            steps: 10,
            interval_us: 1000.0,
            seed,
        };
        Plan::new(&faults, run)
    }

    #[test]
    fn shares_of_a_swarm_are_drawn_for_each_fault_and_seed_apart() {
        let faults = ["crash,fraction=0.3", "loss,p=1,fraction=0.3"];
        let one = plan(&faults, 1);
        let victims = |plan: &Plan, index| plan.victims(index).unwrap().to_vec();
        assert_eq!(victims(&one, 0).len(), 30);
        assert!(victims(&one, 0).is_sorted());
        assert_ne!(victims(&one, 0), victims(&one, 1));
        assert_eq!(victims(&one, 0), victims(&plan(&faults, 1), 0));
        assert_ne!(victims(&one, 0), victims(&plan(&faults, 2), 0));
        assert_eq!(plan(&["invert"], 1).victims(0), None);
        assert_eq!(plan(&["invert,ids=5+2"], 1).victims(0), Some(&[2, 5][..]));
    }

    #[test]
    fn a_cluster_is_an_unbroken_stretch_around_a_drawn_agent() {
        let mut centres = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let plan = plan(&["crash,cluster=0.29"], seed);
            let victims = plan.victims(0).unwrap();
            assert_eq!(victims.len(), 29);
            // On the ring there is one gap, of 71 agents; none within the stretch.
            let next = |k: usize| victims[(k + 1) % 29];
            let gaps = (0..29).filter(|&k| next(k) != (victims[k] + 1) % 100);
            let gaps: Vec<usize> = gaps.collect();
            assert_eq!(gaps.len(), 1, "{victims:?}");
            centres.insert((victims[gaps[0]] + 100 - 14) % 100);
        }
        assert!(centres.len() > 10, "{centres:?}");
        assert_eq!(
            plan(&["crash,cluster=0"], 1).victims(0),
            Some(&[][..]),
            "nobody"
        );
    }

    #[test]
    fn the_first_fault_of_the_list_is_nearest_to_the_agent() {
        let log = Log::default();
        let last = |faults: &[&str]| {
            let mut link = plan(faults, 1).stack(0, || log.probe());
            forces(&mut link, 4)[3]
        };
        // The probe commands 3: (3 + 1) · 2 and 3 · 2 + 1.
        assert_eq!(last(&["bias,value=1", "gain,factor=2"]), Some(8.0));
        assert_eq!(last(&["gain,factor=2", "bias,value=1"]), Some(7.0));
    }

    #[test]
    fn times_are_shares_of_the_run() {
        let log = Log::default();
        let mut link =
            plan(&["crash,at=0.3,until=0.6", "stuck,at=0.8"], 1).stack(0, || log.probe());
        let told = forces(&mut link, 10);
        let heard: Vec<bool> = told.iter().map(Option::is_some).collect();
        assert_eq!(
            heard,
            [
                true, true, true, false, false, false, true, true, true, true
            ]
        );
        assert_eq!(told[7..], [Some(7.0); 3]);
    }

    #[test]
    fn a_drift_without_an_end_ends_with_the_run() {
        let log = Log::default();
        let mut link = plan(&["bias,value=10,drift=true"], 1).stack(0, || log.probe());
        // After 5 of 10 steps half the bias is there.
        assert_eq!(forces(&mut link, 6)[5], Some(10.0));
    }

    #[test]
    fn a_restart_reaches_the_agent_through_other_faults_which_keep_their_state() {
        let log = Log::default();
        let faults = ["stuck,at=0.2", "crash,at=0.4,until=0.6"];
        let mut link = plan(&faults, 1).stack(0, || log.probe());
        let told = drive(&mut link, 8);
        // Stuck at step 1's command, before and after the agent's reboot.
        assert_eq!(told[7].map(|a| a.force), Some(1.0));
        let mut link = plan(&faults[1..], 1).stack(0, || log.probe());
        assert_eq!(drive(&mut link, 8)[7].map(|a| a.velocity[0]), Some(2.0));
    }

    #[test]
    fn late_agents_are_silent_until_they_join() {
        let log = Log::default();
        let mut link = plan(&["join,at=0.2"], 1).stack(0, || log.probe());
        assert_eq!(forces(&mut link, 3), [None, None, Some(2.0)]);
    }

    #[test]
    fn an_agents_random_numbers_are_its_own() {
        let seen = |faults: &[&str], seed, agent| {
            let log = Log::default();
            drive(&mut plan(faults, seed).stack(agent, || log.probe()), 10);
            log.all()
        };
        let noise = &["noise,std=1"][..];
        assert_eq!(seen(noise, 1, 3), seen(noise, 1, 3));
        assert_ne!(seen(noise, 1, 3), seen(noise, 1, 4));
        assert_ne!(seen(noise, 1, 3), seen(noise, 2, 3));
        let second = &["invert,ids=4", "noise,std=1"][..];
        assert_ne!(seen(noise, 1, 3), seen(second, 1, 3));
        assert_eq!(
            seen(&["noise,std=1,ids=4"], 1, 3),
            seen(&[], 1, 3),
            "not addressed"
        );
    }

    #[test]
    fn clocks_scatter_within_their_limits() {
        let plan = plan(&["clock,rate=0.02,phase=0.5,ids=0..98"], 1);
        let clocks: Vec<Clock> = (0..99).map(|agent| plan.clock(agent)).collect();
        assert!(clocks.iter().all(|c| (0.98..=1.02).contains(&c.rate)));
        assert!(clocks.iter().all(|c| (0.0..=0.5).contains(&c.phase)));
        // Of 99 uniform draws some lie in the outer tenths: the chance of none is below 1e-4.
        assert!(clocks.iter().any(|c| c.rate < 0.984) && clocks.iter().any(|c| c.rate > 1.016));
        assert!(clocks.iter().any(|c| c.phase < 0.05) && clocks.iter().any(|c| c.phase > 0.45));
        assert_eq!(plan.clock(99), Clock::EXACT);
    }

    /// With all that it takes and with as little as it needs, over a hundred steps: a chance of a
    /// tenth that nothing happens for so long is below 3e-5.
    #[test]
    fn every_fault_of_an_agent_does_something_and_says_so() {
        let told = |faults: &[&str]| {
            let log = Log::default();
            let told = drive(&mut plan(faults, 1).stack(0, || log.probe()), 100);
            (told, log.all())
        };
        for kind in ALL {
            let usage = kind.usage();
            let needed = usage.split('[').next().unwrap().replace('…', "0.2..0.6");
            for mut text in [kind.example(), needed] {
                if kind.when.takes().contains(&"at") {
                    text += ",at=0.5";
                }
                let on_board = matches!(kind.act, Act::Board(_));
                assert_eq!(told(&[&text]) == told(&[]), on_board, "{text}");
                assert_ne!(text.parse::<Fault>().unwrap().describe(8), "");
            }
        }
    }
}
