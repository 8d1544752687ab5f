//! What agents see that sense by themselves, each where it is mounted: on a line what the sensors of their
//! windows read, in the plane what they measure in their own cell and what their neighbours said a step
//! before. Sensors fail, and who dies says nothing any more; what is missing is made up as nodes do
//! ([`place::neighbours::window`]).
//!
//! All of it is linear in what was read, in this step and in those before, so the adjoint is its transpose.

use super::real::Real;
use crate::policy::Sight;
use crate::trial::Trial;
use agent_sim::standing::{FRESH, mounted};
use place::neighbours::grid::Grid;
use place::neighbours::window::{Line, line};
use place::record::CELLS;
use problem::{NotImplemented, Problem};

/// Where agents stand and what is in their windows.
#[derive(Debug)]
pub struct Stands {
    grid: Grid,
    gain: f64,
    /// Sensors of each agent.
    each: usize,
    agents: Vec<Stand>,
    /// The grid point that each sensor reads, agent after agent.
    points: Vec<usize>,
}

#[derive(Debug)]
struct Stand {
    /// By cell of the window; none beyond a wall.
    cells: Vec<Option<Cell>>,
    /// The cell that is shown for each: itself, or the nearest one within the walls.
    shown: Vec<usize>,
}

/// A cell of a window that somebody measures in.
#[derive(Debug, Clone, Copy)]
struct Cell {
    sensor: usize,
    /// Whether it is a neighbour's, who says what it reads.
    heard: bool,
    /// Its grid point: the target is the window's own.
    point: usize,
}

/// A step and the sensor that read something in it.
type Reading = (usize, usize);

/// What is seen in a cell.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// What a sensor reads, or the last that is known of it.
    As(Reading),
    /// What lies between two.
    Between(Line, Reading, Reading),
}

/// Sensors of each agent of a problem with such a window.
pub fn sensors_each(problem: &Problem, window: usize) -> usize {
    match problem.grid.axes {
        1 => window,
        _ => 1,
    }
}

impl Stands {
    /// Those of a problem's agents. Refuses windows in which nobody is mounted in some cell of the domain.
    pub fn new(problem: &Problem, sight: &Sight) -> Result<Self, NotImplemented> {
        let grid = Grid {
            side: sight.window as u16,
            plane: problem.grid.axes != 1,
        };
        let refused = |form: String| NotImplemented {
            part: "training with neighbours or missing",
            form: format!("{}, where {form}", problem.name),
            remedy: "put agents a cell of the window apart, in every cell of it ([sensors] spacing), or leave \
                     neighbours and missing out of [training]",
        };
        if usize::from(grid.cells()) > CELLS {
            return Err(refused(format!(
                "windows have more than the {CELLS} cells that nodes assemble by themselves"
            )));
        }
        let positions = (problem.placement)(problem, problem.agents);
        let cells = |position: &[f64; 2]| problem.cell_of(position.map(|x| x as f32));
        let [_, columns] = problem.grid.points;
        let point = |[row, column]: [usize; 2]| row * columns + column;
        let mut stands = Self {
            grid,
            gain: sight.error_gain,
            each: sensors_each(problem, sight.window),
            agents: Vec::new(),
            points: Vec::new(),
        };
        for (agent, position) in positions.iter().enumerate() {
            let at = cells(position);
            let within = |cell| within(problem, grid, at, cell);
            let others = match grid.plane {
                false => Vec::new(),
                true => mounted(problem, grid, position.map(|x| x as f32), &positions)
                    .map_err(|bad| refused(bad.to_string()))?,
            };
            let mut stand = Stand {
                cells: Vec::new(),
                shown: Vec::new(),
            };
            for cell in 0..grid.cells() {
                let sensor = match (grid.plane, cell == grid.own()) {
                    (false, _) => Some((agent * stands.each + usize::from(cell), false)),
                    (true, true) => Some((agent, false)),
                    (true, false) => (others.iter().find(|(other, _)| *other == cell))
                        .map(|&(_, other)| (other, true)),
                };
                stand.cells.push(match (within(cell), sensor) {
                    (Ok(at), Some((sensor, heard))) => Some(Cell {
                        sensor,
                        heard,
                        point: point(at),
                    }),
                    (Err(_), _) => None,
                    (Ok(_), None) => {
                        return Err(refused(format!(
                            "nobody is mounted in cell {cell} of the window of agent {agent}"
                        )));
                    }
                });
                stand.shown.push(match within(cell) {
                    Ok(_) => cell.into(),
                    Err(nearest) => nearest.into(),
                });
                if !grid.plane {
                    // Beyond a wall nothing is read.
                    stands.points.push(within(cell).map_or(point(at), point));
                }
            }
            if grid.plane {
                stands.points.push(point(at));
            }
            stands.agents.push(stand);
        }
        Ok(stands)
    }

    /// How many sensors there are.
    pub fn sensors(&self) -> usize {
        self.points.len()
    }

    /// The grid point that each of them reads.
    pub fn points(&self) -> &[usize] {
        &self.points
    }

    /// From which step on an agent sees enough to act: it waits until something was known of every cell.
    pub fn wakes(&self, trial: &Trial, agent: usize, horizon: usize) -> usize {
        let sees = |step: &usize| self.look(trial, agent, *step).is_some();
        (0..horizon).find(sees).unwrap_or(usize::MAX)
    }

    /// The features of an agent in a step, from what every sensor read in that step and those before; zeros
    /// as long as it sees too little.
    pub fn observe<T: Real>(
        &self,
        (trial, agent, step): (&Trial, usize, usize),
        read: impl Fn(Reading) -> T,
        target: &[T],
        features: &mut [T],
    ) {
        features.fill(T::ZERO);
        let Some(seen) = self.look(trial, agent, step) else {
            return;
        };
        let (stand, gain) = (&self.agents[agent], T::of(self.gain));
        // Behind the errors of a line are slopes, of which nodes by themselves have none.
        for (feature, &cell) in features.iter_mut().zip(&stand.shown) {
            let (Some(Cell { point, .. }), Some(seen)) = (stand.cells[cell], seen[cell]) else {
                continue;
            };
            let value = match seen {
                Seen::As(reading) => read(reading),
                Seen::Between(Line { share, .. }, from, to) => {
                    let (low, high) = (read(from), read(to));
                    low + (high - low) * T::of(f64::from(share))
                }
            };
            *feature = gain * (value - target[point]);
        }
    }

    /// Adjoint of [`Self::observe`]: tells `pull` the gradient of readings.
    pub fn observe_adjoint<T: Real>(
        &self,
        (trial, agent, step): (&Trial, usize, usize),
        g_features: &[T],
        mut pull: impl FnMut(Reading, T),
    ) {
        let Some(seen) = self.look(trial, agent, step) else {
            return;
        };
        let (stand, gain) = (&self.agents[agent], T::of(self.gain));
        for (&g, &cell) in g_features.iter().zip(&stand.shown) {
            match seen[cell] {
                None => {}
                Some(Seen::As(reading)) => pull(reading, gain * g),
                Some(Seen::Between(Line { share, .. }, from, to)) => {
                    let share = T::of(f64::from(share));
                    pull(from, gain * g * (T::ONE - share));
                    pull(to, gain * g * share);
                }
            }
        }
    }

    /// What an agent sees in each cell of its window; none if of one of them nothing was ever known.
    fn look(&self, trial: &Trial, agent: usize, step: usize) -> Option<[Option<Seen>; CELLS]> {
        let cells = self.agents[agent].cells.iter().enumerate();
        let cells = cells.filter_map(|(k, cell)| Some((k, (*cell)?)));
        let (mut last, mut known) = ([None; CELLS], 0u64);
        for (k, cell) in cells.clone() {
            let (then, fresh) = match cell.heard {
                false => (self.read_by(trial, cell.sensor, step), 0),
                true => {
                    let before = step.checked_sub(1)?;
                    (
                        self.taken_by(trial, cell.sensor, before),
                        FRESH as usize + 1,
                    )
                }
            };
            let then = then?;
            last[k] = Some((then, cell.sensor));
            known |= u64::from(step - then <= fresh) << k;
        }
        let mut seen = [None; CELLS];
        for (k, _) in cells {
            let made_up = match known >> k & 1 {
                1 => None,
                _ => line(self.grid, known, k as u16),
            };
            seen[k] = Some(match made_up {
                Some(line) => Seen::Between(
                    line,
                    last[usize::from(line.from)]?,
                    last[usize::from(line.to)]?,
                ),
                None => Seen::As(last[k]?),
            });
        }
        Some(seen)
    }

    /// The last step up to this one in which a sensor read something.
    fn read_by(&self, trial: &Trial, sensor: usize, step: usize) -> Option<usize> {
        let step = step.min(trial.dies_at[sensor / self.each].checked_sub(1)?);
        match (trial.by_themselves.as_ref()).and_then(|outages| outages.get(sensor)) {
            Some(outage) if outage.contains(&step) => outage.start.checked_sub(1),
            _ => Some(step),
        }
    }

    /// The last step up to this one of which neighbours took what was said: who was silent for long is only
    /// introduced by the first that it says.
    fn taken_by(&self, trial: &Trial, sensor: usize, step: usize) -> Option<usize> {
        let mut step = self.read_by(trial, sensor, step)?;
        loop {
            let before = self.read_by(trial, sensor, step.checked_sub(1)?)?;
            if step - before <= FRESH as usize {
                return Some(step);
            }
            step = before;
        }
    }
}

/// The grid cell of a window's cell, around an agent in cell `at`; beyond a wall the nearest cell of the
/// window before it.
fn within(problem: &Problem, grid: Grid, at: [usize; 2], cell: u16) -> Result<[usize; 2], u16> {
    let spacing = problem.sensing.spacing;
    let side = usize::from(grid.side);
    let place = |cell: u16| match grid.plane {
        true => [usize::from(cell) / side, usize::from(cell) % side],
        false => [usize::from(cell), 0],
    };
    let (mut found, mut nearest) = ([0; 2], [0; 2]);
    let mut is_within = true;
    for axis in 0..problem.grid.axes {
        let (half, k) = (side / 2, place(cell)[axis]);
        // Cells of the window that there are before the agent's, and behind it.
        let before = (at[axis] / spacing).min(half);
        let behind = (problem.grid.points[axis] - 1 - at[axis]) / spacing;
        nearest[axis] = k.clamp(half - before, half + behind);
        is_within &= nearest[axis] == k;
        found[axis] = (at[axis] + spacing * nearest[axis]) - spacing * half;
    }
    match is_within {
        true => Ok(found),
        false => Err((nearest[0] * if grid.plane { side } else { 1 } + nearest[1]) as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::physics::FieldStep;
    use crate::adjoint::physics::described::DescribedStep;
    use crate::described;
    use crate::engine::Engine;
    use crate::export::{Training, blob};
    use crate::host_loop::HostLoop;
    use crate::learn::Trainer;
    use crate::loss::TERMS;
    use crate::policy::PolicyConfig;
    use crate::swarm::Size;
    use agent_core::agent::Action;
    use agent_core::message::Observation;
    use agent_sim::centre::{Centre, Whole};
    use agent_sim::link::{Link, LinkError};
    use agent_sim::sense::{Eye, View};
    use agent_sim::standing::{Bell, Hall, Standing, stands};
    use artifacts::policy_file::PolicyFile;
    use burn::tensor::Device;
    use problem::random_field::episode_rng;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    const STEPS: usize = 20;

    /// An example with more settings of its training, and without what stands in `without`.
    fn example(name: &str, settings: &str, without: &str) -> &'static Problem {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/standalone");
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let kept = |line: &&str| {
            let key = line.split(" = ").next().unwrap_or_default();
            !["neighbours", "missing", without].contains(&key)
        };
        let text: Vec<&str> = text.lines().filter(kept).collect();
        let text = text
            .join("\n")
            .replace("[training]", &format!("[training]\n{settings}\n#"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        problem::kit::load(&path).unwrap()
    }

    fn config(problem: &'static Problem) -> PolicyConfig {
        described::entry(problem).recipe.full(problem).policy
    }

    /// Parameters with which agents act within a few steps.
    fn lively(config: &PolicyConfig) -> Vec<f32> {
        let size = config.shape.parameters();
        (0..size)
            .map(|k| 0.4 * (0.7 * k as f32 + 0.01 * (k as f32).powi(2)).sin())
            .collect()
    }

    /// An episode in which one agent dies, one sensor fails for a while and one for so long that whom it
    /// belongs to has to be introduced again.
    fn disturbed(problem: &Problem, sensors: usize) -> Trial {
        let episode = (problem.draw)(problem, &mut episode_rng(3, 1));
        let mut trial = Trial::plain(problem, problem.agents, episode);
        let mut outages = vec![0..0; sensors];
        trial.dies_at[5] = 4;
        outages[10] = 6..9;
        outages[3] = 3..11;
        outages[sensors - 4] = 5..usize::MAX;
        trial.by_themselves = Some(outages);
        trial
    }

    /// What an agent is shown: the errors of its window's cells, beyond walls those of the last before.
    #[derive(Default, Clone)]
    struct Shown(Arc<Mutex<Option<Vec<f32>>>>);

    impl Link for Shown {
        fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
            let patch = observation.patch;
            let errors: Vec<f32> = (patch.field.iter().zip(patch.target.iter()))
                .map(|(z, target)| z - target)
                .collect();
            let plane = patch.inside[1].last > 0;
            let side = match plane {
                true => errors.len().isqrt(),
                false => errors.len(),
            };
            let within = |k: usize, axis: usize| {
                let span = patch.inside[axis];
                (k + 1).clamp(span.first.into(), span.last.into())
            };
            let cells = (0..side - 2).flat_map(|i| match plane {
                true => (0..side - 2)
                    .map(|j| errors[within(i, 0) * side + within(j, 1)])
                    .collect(),
                false => vec![errors[within(i, 0)]],
            });
            *self.0.lock().unwrap() = Some(cells.collect());
            Ok(())
        }

        fn receive(&mut self, _: u64) -> Result<Option<Action>, LinkError> {
            Ok(None)
        }
    }

    /// Every agent in every step of an episode: what it sees here is what it sees in the simulator, there by
    /// the code that nodes have.
    fn compare(problem: &'static Problem, sensors: usize) {
        let config = config(problem);
        let here = Stands::new(problem, &config.sight).unwrap();
        assert_eq!(here.sensors(), sensors);
        let trial = disturbed(problem, sensors);
        let training = Training { seed: 0, steps: 0 };
        let bytes = blob(problem, &config, &lively(&config), training).unwrap();
        let file = PolicyFile::new(&bytes, "a test's".to_owned());
        let policy = file.policy(problem).unwrap();
        let places = stands(problem, &policy, &trial.start, &trial.episode, 1.0).unwrap();
        let hall = Hall::new(places.len());
        // Not clones, which would share.
        let shown: Vec<Shown> = places.iter().map(|_| Shown::default()).collect();
        let mut there: Vec<_> = (places.into_iter().zip(&shown))
            .map(|(place, shown)| Standing::new(shown.clone(), place, &policy, &hall))
            .collect();
        let mut eye = Eye::new(View::of(&policy), problem);
        let sensor = problem.kit.unwrap().sensors[0];
        let (n, target) = (problem.grid.len(), &trial.episode.target);
        let mut read = Vec::new();
        let wakes: Vec<usize> = (0..there.len())
            .map(|a| here.wakes(&trial, a, STEPS))
            .collect();
        for step in 0..STEPS {
            let state: Vec<f32> = (0..n)
                .map(|k| (0.3 * k as f32 + 0.37 * (step * step) as f32).sin())
                .map(|z| sensor.reading(z.into()) as f32)
                .collect();
            read.extend(here.points().iter().map(|&point| state[point]));
            let whole = Whole {
                step,
                state: &[],
                target: &[],
                positions: &[],
            };
            Bell(hall.clone()).decide(&whole, &mut []);
            for (agent, link) in there.iter_mut().enumerate() {
                if step >= trial.dies_at[agent] {
                    continue;
                }
                let mut field = state.clone();
                for sensor in agent * here.each..(agent + 1) * here.each {
                    if trial.by_themselves.as_ref().unwrap()[sensor].contains(&step) {
                        field[here.points[sensor]] = f32::NAN;
                    }
                }
                let position = trial.start[agent].map(|x| x as f32);
                let patch = eye.look(problem, &field, target, position);
                let now_us = 1_000 * step as u64;
                *shown[agent].0.lock().unwrap() = None;
                link.send(&Observation {
                    now_us,
                    position,
                    patch,
                })
                .unwrap();
                let expected = shown[agent].0.lock().unwrap().take();
                assert_eq!(
                    expected.is_some(),
                    step >= wakes[agent],
                    "agent {agent} in step {step}"
                );
                let Some(expected) = expected else { continue };
                let mut features = vec![0.0f32; config.shape.features];
                let of = |(step, sensor): Reading| read[step * sensors + sensor];
                here.observe((&trial, agent, step), of, target, &mut features);
                for (k, (seen, expected)) in features.iter().zip(&expected).enumerate() {
                    let seen = seen / config.sight.error_gain as f32;
                    let close = (seen - expected).abs() < 2e-6;
                    assert!(
                        close,
                        "agent {agent}, step {step}, cell {k}: {seen} for {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn agents_of_a_plane_see_what_they_see_in_the_simulator() {
        compare(example("plate.toml", "neighbours = 1", ""), 16);
    }

    #[test]
    fn agents_on_a_line_see_what_they_see_in_the_simulator() {
        compare(example("rod.toml", "missing = [1, 0.2]", ""), 64);
    }

    /// Along a random direction of the parameters, with what is missing, late and never heard of.
    #[test]
    fn the_gradient_of_what_is_seen_is_its_slope() {
        for (name, settings, sensors) in [
            ("plate.toml", "neighbours = 1", 16),
            ("rod.toml", "missing = [1, 0.2]", 64),
        ] {
            let problem = example(name, settings, "quantisation");
            let mut config = config(problem);
            config.shape.memory = 2;
            let step: Box<dyn FieldStep<f64>> = Box::new(
                <DescribedStep<f64> as crate::adjoint::physics::Differentiable<f64>>::new(problem)
                    .unwrap(),
            );
            let closed_loop = HostLoop::<f64>::new(problem, step, STEPS, &config).unwrap();
            let mut alone = disturbed(problem, sensors);
            alone.sensor_noise = 0.01;
            let mut late = alone.clone();
            late.delay = 2;
            // Nobody hears of it, and those beside it wait for ever.
            late.dies_at[0] = 1;
            let plain = Trial::plain(problem, problem.agents, alone.episode.clone());
            let trials = [alone, plain, late];
            let parameters = lively(&config);
            let (terms, tape) = closed_loop.forward(&parameters, &trials);
            let weights: [f64; TERMS] = std::array::from_fn(|k| {
                let size = terms.iter().map(|t| t[k].abs()).sum::<f64>();
                if size > 0.0 { 1.0 / size } else { 0.0 }
            });
            let gradient = closed_loop.backward(tape, &trials, &[weights; 3]);
            for seed in 0..3u32 {
                let way = |k: usize| (f64::from(seed + 1) * 1.3 * k as f64).cos();
                let at = |h: f64| {
                    let moved: Vec<f32> = (parameters.iter().enumerate())
                        .map(|(k, &p)| (f64::from(p) + h * way(k)) as f32)
                        .collect();
                    let (terms, tape) = closed_loop.forward(&moved, &trials);
                    closed_loop.recycle(tape);
                    let sum: f64 = (terms.iter().flatten().zip(weights.iter().cycle()))
                        .map(|(term, weight)| term * weight)
                        .sum();
                    (sum, moved)
                };
                let ((up, above), (down, below)) = (at(1e-5), at(-1e-5));
                // Parameters are f32: the step that rounding really made counts.
                let along = above.iter().zip(&below).zip(&gradient);
                let expected: f64 = along.map(|((a, b), g)| f64::from(a - b) * g).sum();
                let off = (up - down) / expected - 1.0;
                assert!(off.abs() < 1e-4, "{name}, way {seed}: off by {off}");
            }
        }
    }

    #[test]
    fn kernels_and_swarms_of_other_sizes_are_refused_by_name() {
        let problem = example("plate.toml", "neighbours = 1", "");
        let entry = described::entry(problem);
        let recipe = entry.recipe.full(problem);
        let refused = entry.kernels.unwrap().0(problem).err().unwrap().to_string();
        assert!(
            refused.contains("agents that see by themselves") && refused.contains("--backend flex"),
            "{refused}"
        );
        let mut config = recipe.train;
        config.hardening.agents = vec![Size::of(9)];
        let engine = Engine::Host(Device::default());
        let refused = Trainer::new(entry, config, recipe.policy, &engine).err();
        let refused = refused.unwrap().to_string();
        assert!(refused.contains("leave out --agents"), "{refused}");
    }

    #[test]
    fn a_cell_that_nobody_is_mounted_in_is_refused_by_name() {
        let mut apart = *example("plate.toml", "neighbours = 1", "");
        apart.sensing.spacing = 4;
        let sight = config(Box::leak(Box::new(apart))).sight;
        let refused = Stands::new(&apart, &sight).unwrap_err().to_string();
        assert!(
            refused.contains("nobody is mounted in cell 0 of the window of agent 0"),
            "{refused}"
        );
        assert!(refused.contains("[sensors] spacing"), "{refused}");
    }
}
