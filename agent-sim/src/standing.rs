//! Agents as nodes that sense and act by themselves: fixed where they are mounted, each with eight
//! thermometers in its window, from whose readings it assembles its patch as `place` has it. In the plane each
//! has one thermometer where it is, and hears what those of its window measure.
//!
//! A [`Stand`] is what there is at one agent's place. [`Standing`] puts an agent of this process there, with the
//! code that boards have; on a board it is the place that the node is [configured](crate::rig::Rig::stand_at)
//! for, and here is only what its thermometers measure ([`Stand::sixteenths`]).

mod hall;

pub use hall::{Bell, Hall};

use crate::link::{Link, LinkError};
use crate::sense::{Eye, HALO, View};
use agent_core::agent::Action;
use agent_core::message::{Observation, Overview, Patch, Samples, Span};
use agent_core::policy::Policy;
use hall::Ear;
use place::neighbours::grid::Grid;
use place::neighbours::window;
use place::record::{Calibration, Neighbours, SENSORS, Sensor, Target, Tolerance};
use place::{Equipment, Fault, Place, Sight};
use problem::{Episode, Problem};
use std::sync::Arc;

/// Thermometers of a node: as many as the emulated boards have.
pub const THERMOMETERS: usize = 8;

/// The channels of those boards that they are: at four addresses on each of two branches.
pub const CHANNELS: [u8; THERMOMETERS] = [8, 9, 10, 11, 16, 17, 18, 19];

/// What else they have: a bus on which they hear each other.
const BOARD: Equipment = Equipment {
    channels: CHANNELS[THERMOMETERS - 1] + 1,
    bus: true,
};

/// How far from where it should be a neighbour may stand, as a share of the way from cell to cell.
const ASTRAY: f64 = 0.25;

/// For how many steps what a neighbour said is as good as new.
pub const FRESH: u32 = 4;

/// Steps of their readings in a degree.
const SIXTEENTHS: f32 = 16.0;

/// What they can show, in sixteenths of a degree. One that is dead shows the most.
const LEAST: i32 = -40 * 16;
const MOST: i32 = 125 * 16;

/// Degrees Celsius where a field is zero, and of one of its units, if that has no name.
const ZERO: f32 = 20.0;
const UNIT: f32 = 10.0;

/// Why agents cannot stand by themselves.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadStand {
    /// The policy, or the place where an agent would be, is not for it.
    #[error("agent {agent} cannot stand by itself: {fault}")]
    Place {
        /// Which one.
        agent: usize,
        /// What is wrong.
        fault: Fault,
    },
    /// Targets are part of a place.
    #[error(
        "agents cannot stand by themselves where the target wanders: it is part of their places, and stays"
    )]
    Wanders,
    /// So are positions.
    #[error(
        "agents cannot stand by themselves where others come on the way: places are given beforehand"
    )]
    Arrivals,
    /// Places have one field.
    #[error(
        "agents cannot stand by themselves where they see several fields: their thermometers read one"
    )]
    Fields,
    /// A plane is seen by what neighbours say.
    #[error(
        "agent {agent} cannot stand by itself: nobody is mounted in a cell of its window, and of a plane it \
         sees, besides its own cell, what neighbours say; put agents a cell of the window apart, or the cells \
         of the window as far as agents are ([sensors] spacing)"
    )]
    Deaf {
        /// Which one.
        agent: usize,
    },
    /// What neighbours say has one distance from cell to cell.
    #[error(
        "agents cannot stand by themselves in this plane: the cells of their windows are {0} apart along one \
         axis and {1} along the other"
    )]
    Oblong(f64, f64),
}

/// What there is at an agent's place.
#[derive(Debug, Clone)]
pub struct Stand {
    /// What a node there is told.
    pub place: Place,
    /// Whose agent it is for.
    agent: usize,
    /// How the cells of its window lie.
    grid: Grid,
    /// The agents that it hears.
    others: Vec<usize>,
}

/// A stand for each of the first agents of an episode, in order; a second of the policy's takes so many there.
pub fn stands(
    problem: &Problem,
    policy: &Policy<'_>,
    positions: &[[f64; 2]],
    episode: &Episode,
    second: f64,
) -> Result<Vec<Stand>, BadStand> {
    if !episode.has_one_target() {
        return Err(BadStand::Wanders);
    }
    if !episode.arrivals.is_empty() {
        return Err(BadStand::Arrivals);
    }
    if !problem.also_seen().is_empty() {
        return Err(BadStand::Fields);
    }
    let view = View::of(policy);
    let grid = Grid::of(&policy.header().sensing);
    let fits = |place: &Place| place.fits(policy.header(), BOARD);
    let seen = |field: &[f32]| problem.all_seen(field).collect::<Vec<_>>().concat();
    let (initial, target) = (seen(&episode.initial), seen(&episode.target));
    let mut eye = Eye::new(view, problem);
    let mut stands = Vec::new();
    for (agent, position) in positions.iter().enumerate() {
        let position = position.map(|x| x as f32);
        let mut place = empty(problem, agent, position, second);
        let mut others = Vec::new();
        if grid.plane {
            (place.neighbours, others) = neighbours(problem, policy, &place, positions)?;
            place.tolerance.missing = others.len() as u8;
        }
        // Of such windows nothing can be cut out.
        if let Err(fault @ (Fault::Wide | Fault::Window { .. })) = fits(&place) {
            return Err(BadStand::Place { agent, fault });
        }
        let patch = eye.look(problem, &initial, &target, position);
        match grid.plane {
            true => {
                let own = sensor(problem, 0, grid.own().into());
                let added = place.sensors.push(own);
                debug_assert!(added.is_ok(), "it is the first");
                if others.is_empty() {
                    return Err(BadStand::Deaf { agent });
                }
            }
            false => wire(&mut place, problem, view, &patch),
        }
        if view.target {
            let cells =
                (0..grid.cells()).filter_map(|cell| patch.target.iter().nth(at(grid, cell)));
            place.target = Target::Profile(cells.collect());
        }
        let fitting = place.check().and_then(|()| fits(&place));
        fitting.map_err(|fault| BadStand::Place { agent, fault })?;
        stands.push(Stand {
            place,
            agent,
            grid,
            others,
        });
    }
    Ok(stands)
}

/// A place without sensors and target.
fn empty(problem: &Problem, agent: usize, position: [f32; 2], second: f64) -> Place {
    let [zero, unit] = scale(problem);
    let field = |sixteenths: i32| (sixteenths as f32 / SIXTEENTHS - zero) / unit;
    Place {
        node: agent as u16,
        position,
        second: second as f32,
        sensors: heapless::Vec::new(),
        target: Target::None,
        force: None,
        tolerance: Tolerance {
            // One sensor may be gone for good, or all neighbours: the others tell what it would.
            missing: 1,
            missing_us: u32::MAX,
            least: field(LEAST),
            // One step below what a dead one shows.
            most: field(MOST - 1),
            // Any: what a field of a file may do in a moment is not known.
            change: 1e9,
            frozen_us: None,
        },
        neighbours: None,
    }
}

/// Where a cell of the window is in the patch.
fn at(grid: Grid, cell: u16) -> usize {
    let side = usize::from(grid.side).max(1);
    grid.in_patch(usize::from(cell) / side, usize::from(cell) % side)
}

/// Whom an agent hears: those mounted in cells of its window.
fn neighbours(
    problem: &Problem,
    policy: &Policy<'_>,
    place: &Place,
    positions: &[[f64; 2]],
) -> Result<(Option<Neighbours>, Vec<usize>), BadStand> {
    let grid = Grid::of(&policy.header().sensing);
    let spacing = apart(problem)?;
    let mounted = mounted(problem, grid, place.position, positions)?;
    let period_us = place.period_us(policy.header()).unwrap_or(1);
    let neighbours = Neighbours {
        cells: (mounted.iter()).fold(0, |cells, (cell, _)| cells | 1 << cell),
        spacing: spacing as f32,
        within: (ASTRAY * spacing) as f32,
        stale_us: period_us.saturating_mul(FRESH),
        every: 1,
    };
    let others = mounted.into_iter().map(|(_, agent)| agent).collect();
    Ok((Some(neighbours), others))
}

/// How far the cells of windows in a plane are apart.
fn apart(problem: &Problem) -> Result<f64, BadStand> {
    let [spacing, other] =
        [0, 1].map(|axis| problem.sensors.spacing(axis) * problem.sensing.spacing as f64);
    match (spacing - other).abs() > 1e-6 * spacing {
        true => Err(BadStand::Oblong(spacing, other)),
        false => Ok(spacing),
    }
}

/// Which cells of the window of an agent there are others mounted in, and who, of agents at these positions.
pub fn mounted(
    problem: &Problem,
    grid: Grid,
    position: [f32; 2],
    positions: &[[f64; 2]],
) -> Result<Vec<(u16, usize)>, BadStand> {
    let spacing = apart(problem)?;
    let within = ASTRAY * spacing;
    let who = |cell: u16| {
        let centre = grid.centre(position, spacing as f32, cell);
        let stands_there = |position: &[f64; 2]| {
            let mut axes = position.iter().zip(centre);
            axes.all(|(x, middle)| (*x as f32 - middle).abs() <= within as f32)
        };
        Some((cell, positions.iter().position(stands_there)?))
    };
    let cells = (0..grid.cells().min(64)).filter(|cell| *cell != grid.own());
    Ok(cells.filter_map(who).collect())
}

/// Puts thermometers into the cells of the window that lie in the domain, the outermost ones among them.
fn wire(place: &mut Place, problem: &Problem, view: View, patch: &Patch<'_>) {
    let inside = patch.inside[0];
    let first = usize::from(inside.first).saturating_sub(HALO);
    let last = usize::from(inside.last)
        .min(view.window)
        .saturating_sub(HALO);
    let cells = last.saturating_sub(first) + 1;
    let count = cells.min(THERMOMETERS);
    for k in 0..count {
        let share = (k * (cells - 1)).checked_div(count - 1).unwrap_or(0);
        let added = place.sensors.push(sensor(problem, k, first + share));
        debug_assert!(added.is_ok(), "eight are not too many");
    }
}

fn sensor(problem: &Problem, number: usize, cell: usize) -> Sensor {
    let [zero, unit] = scale(problem);
    Sensor {
        channel: CHANNELS[number],
        cell: cell as u16,
        calibration: Some(Calibration {
            gain: 1.0 / unit,
            offset: -zero / unit,
        }),
    }
}

/// Degrees Celsius where the field is zero, and of one of its units: of a file whose field is in degrees
/// those, otherwise ten degrees a unit around room temperature.
fn scale(problem: &Problem) -> [f32; 2] {
    let kit = problem.kit;
    let unit = kit.map_or("1", |kit| kit.described[kit.seen].unit.as_str());
    match unit {
        "°C" | "degC" => [0.0, 1.0],
        "K" => [ZERO, 1.0],
        _ => [ZERO, UNIT],
    }
}

impl Stand {
    /// Whether an agent there hears others.
    pub fn hears(&self) -> bool {
        self.place.neighbours.is_some()
    }

    /// What its thermometers measure in this patch, in sixteenths of a degree, in the order of their channels;
    /// none where their bus gives [nothing](crate::fault::sensor::BusStuck).
    pub fn sixteenths(&self, patch: &Patch<'_>) -> Option<Vec<i32>> {
        if patch.field.is_empty() {
            return None;
        }
        let read = |sensor: &Sensor| {
            let z = patch.field.iter().nth(at(self.grid, sensor.cell));
            match (z, sensor.calibration) {
                (Some(z), Some(Calibration { gain, offset })) if z.is_finite() => {
                    let steps = ((z - offset) / gain * SIXTEENTHS).round() as i32;
                    steps.clamp(LEAST, MOST)
                }
                _ => MOST,
            }
        };
        Some(self.place.sensors.iter().map(read).collect())
    }
}

/// An agent of this process at its stand.
pub struct Standing<L> {
    inner: L,
    stand: Stand,
    sight: Sight,
    /// What it hears, in the plane.
    ear: Option<Ear>,
    /// Whether the policy is shown the target.
    target: bool,
    field: Vec<f32>,
    targets: Vec<f32>,
}

impl<L> Standing<L> {
    /// The agent behind `inner`, which runs this policy, at a stand that fits it, in a hall where it hears
    /// those that it is to hear.
    pub fn new(inner: L, stand: Stand, policy: &Policy<'_>, hall: &Arc<Hall>) -> Self {
        let target = View::of(policy).target;
        let side = usize::from(stand.grid.side) + 2 * HALO;
        let cells = if stand.grid.plane { side * side } else { side };
        let ear = stand.place.neighbours.map(|_| {
            let others = stand.others.clone();
            let (hall, header) = (hall.clone(), policy.header());
            Ear::new(hall, stand.agent, others, &stand.place, header)
        });
        Self {
            inner,
            stand,
            sight: Sight::new(),
            ear,
            target,
            field: vec![0.0; cells],
            targets: vec![0.0; cells],
        }
    }
}

impl<L: Link> Link for Standing<L> {
    /// An agent that sees too little is not shown anything, and holds and fails safe.
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let place = &self.stand.place;
        let mut readings = [None; SENSORS];
        let sixteenths = self.stand.sixteenths(&observation.patch);
        for (reading, steps) in readings.iter_mut().zip(sixteenths.unwrap_or_default()) {
            *reading = Some(steps as f32 / SIXTEENTHS);
        }
        let here_us = (observation.now_us as f64 * f64::from(place.second)) as u64;
        let (sight, field) = (&mut self.sight, &mut self.field);
        let seen = match &mut self.ear {
            None => sight
                .look(place, here_us, &readings, field)
                .map(|span| [span, Span::default()]),
            Some(ear) => {
                ear.listen(here_us);
                let (hearing, grid) = (&ear.hearing, self.stand.grid);
                window::look(sight, hearing, place, grid, here_us, &readings, field)
            }
        };
        // What was measured in its own cell, the only one that an agent in the plane reads.
        if let (Some(ear), Some((value, taken_us))) = (&mut self.ear, sight.last(0))
            && taken_us == here_us
        {
            ear.say(place.position, value, here_us);
        }
        let Some(inside) = seen else {
            return Ok(());
        };
        let shown: &[f32] = match self.target {
            true => {
                place.aim(here_us).fill(self.stand.grid, &mut self.targets);
                &self.targets
            }
            false => &[],
        };
        self.inner.send(&Observation {
            now_us: observation.now_us,
            position: place.position,
            patch: Patch {
                field: Samples::new(field),
                target: Samples::new(shown),
                inside,
                wide: Overview::default(),
            },
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        let action = self.inner.receive(now_us)?;
        Ok(action.map(|action| self.stand.place.narrowed(action)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Scope;
    use crate::fault::sensor::BusStuck;
    use crate::link::InProcess;
    use crate::scenario::Scenario;
    use agent_core::agent::Mode;
    use artifacts::policy_file::PolicyFile;
    use problem::Problems;
    use problem::published::heat_1d::PROBLEM;
    use problem::test_set::EpisodeSet;

    fn episode() -> Episode {
        EpisodeSet::Fresh.episode(&PROBLEM, 3, 0).unwrap()
    }

    /// Of the published policy, which sees twenty cells, at these positions.
    fn stood(positions: &[f64], act: impl FnOnce(&Policy<'_>, Vec<Stand>)) {
        let file = PolicyFile::shipped(&PROBLEM).unwrap();
        let policy = file.policy(&PROBLEM).unwrap();
        let positions: Vec<[f64; 2]> = positions.iter().map(|x| [*x, 0.0]).collect();
        let stands = stands(&PROBLEM, &policy, &positions, &episode(), 50.0).unwrap();
        act(&policy, stands);
    }

    fn shown(field: &[f32], x: f32, see: impl FnOnce(&Patch<'_>)) {
        let view = View {
            window: 20,
            target: true,
            wide: None,
        };
        let target = episode().target;
        let mut eye = Eye::new(view, &PROBLEM);
        see(&eye.look(&PROBLEM, field, &target, [x, 0.0]));
    }

    #[test]
    fn thermometers_are_in_the_domain_from_one_end_of_the_window_to_the_other() {
        stood(&[0.5, 0.04], |_, stands| {
            let cells = |k: usize| -> Vec<u16> {
                let sensors = stands[k].place.sensors.iter();
                sensors.map(|sensor| sensor.cell).collect()
            };
            assert_eq!(cells(0), [0, 2, 5, 8, 10, 13, 16, 19]);
            // In the fourth cell of the rod, the node has three cells of its window before it.
            assert_eq!(cells(1), [7, 8, 10, 12, 13, 15, 17, 19]);
            assert_eq!(stands[1].place.node, 1);
        });
    }

    #[test]
    fn they_read_sixteenths_of_a_degree_and_the_dead_the_most() {
        // The window of a node in the middle: cells 39 to 58, of which the first reads 1.0, ten degrees.
        let mut field = vec![0.0; 100];
        field[39] = 1.0;
        field[41] = -100.0;
        field[44] = f32::NAN;
        field[47] = 0.0099;
        stood(&[0.5], |_, stands| {
            shown(&field, 0.5, |patch| {
                let expected = [30 * 16, LEAST, MOST, 20 * 16 + 2, 320, 320, 320, 320];
                assert_eq!(stands[0].sixteenths(patch).unwrap(), expected);
            });
        });
    }

    /// What an agent in the middle does that is shown this field.
    fn does(agent: &mut impl Link, now_us: u64, field: &[f32]) -> Action {
        shown(field, 0.5, |patch| {
            let observation = Observation {
                now_us,
                position: [0.5, 0.0],
                patch: *patch,
            };
            agent.send(&observation).unwrap();
        });
        agent.receive(now_us).unwrap().unwrap()
    }

    /// What is between thermometers is made up as on a board, one may be dead, two are too many.
    #[test]
    fn an_agent_acts_on_what_they_read_stays_where_it_is_and_fails_safe() {
        let field = episode().initial;
        stood(&[0.5], |policy, stands| {
            let mut agent = Standing::new(
                InProcess::new(policy),
                stands[0].clone(),
                policy,
                &Hall::new(1),
            );
            let mut acts = |step: u64, dead: &[usize]| {
                let mut field = field.clone();
                dead.iter().for_each(|cell| field[*cell] = f32::NAN);
                does(&mut agent, 1_000 * step, &field)
            };
            let all = acts(1, &[]);
            assert_eq!((all.mode, all.velocity), (Mode::Active, [0.0; 2]));
            assert!(all.force != 0.0);
            assert_eq!(acts(2, &[47]).mode, Mode::Active);
            assert_eq!(acts(3, &[47, 49]).mode, Mode::Holding);
            assert_eq!(acts(100_000, &[47, 49]).mode, Mode::FailedSafe);
            assert_eq!(acts(100_001, &[]).mode, Mode::Active);
        });
    }

    /// The policy acts on what is up to 20 ms old.
    #[test]
    fn an_agent_whose_bus_is_held_low_reads_nothing_and_fails_safe_until_it_is_free() {
        let field = episode().initial;
        stood(&[0.5], |policy, stands| {
            let stand = stands[0].clone();
            let agent = Standing::new(InProcess::new(policy), stand, policy, &Hall::new(1));
            let mut agent = BusStuck::new(agent, Scope::new(10_000, Some(40_000), None));
            let mut modes = Vec::new();
            for step in 0..50 {
                let action = does(&mut agent, 1_000 * step, &field);
                assert_eq!(action.force == 0.0, action.mode == Mode::FailedSafe);
                modes.push(action.mode);
            }
            let stretches: Vec<(Mode, usize)> = modes
                .chunk_by(|a, b| a == b)
                .map(|modes| (modes[0], modes.len()))
                .collect();
            let expected = [
                (Mode::Active, 10),
                (Mode::Holding, 19),
                (Mode::FailedSafe, 11),
                (Mode::Active, 10),
            ];
            assert_eq!(stretches, expected);
        });
    }

    #[test]
    fn what_cannot_stand_by_itself_is_refused_by_name() {
        let refused = |text: &str| {
            let scenario = Scenario::from_toml(text).unwrap();
            scenario
                .team(&Problems::published())
                .unwrap_err()
                .to_string()
        };
        let plane = refused("problem = \"heat-2d\"\nstandalone = true");
        assert!(
            plane.contains("has 256 cells, and a node by itself assembles at most 64"),
            "{plane}"
        );
        let led = refused("problem = \"heat-1d\"\nstandalone = true\ncontroller = \"none\"");
        assert!(led.contains("run a policy"), "{led}");
        let fed = refused("problem = \"heat-1d\"\nplant_io = [\"qemu=2\"]");
        assert!(fed.contains("give --standalone too"), "{fed}");
        let both = refused("problem = \"heat-1d\"\nstandalone = true\nlink = [\"qemu=2\"]");
        assert!(both.contains("give --plant-io"), "{both}");
        let bus = refused("problem = \"heat-1d\"\n[[fault]]\nkind = \"bus-stuck\"");
        assert!(bus.contains("give --standalone"), "{bus}");
        let real = refused("problem = \"heat-1d\"\nstandalone = true\nplant_io = [\"tcp=a:1\"]");
        assert!(
            real.contains("has no sensors that a simulated field reaches"),
            "{real}"
        );
        let added = "problem = \"heat-1d\"\nstandalone = true\n[[add]]\nat = 0.5\nplace = [0.5]";
        assert!(refused(added).contains("others come on the way"));
    }
}
