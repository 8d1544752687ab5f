//! What a run looked like, kept for pictures.

use crate::episode::Snapshot;
use agent_core::agent::Mode;
use problem::grid::Grid;
use problem::resample::resample;
use problem::{Episode, Problem};
use std::borrow::Cow;

/// Most numbers kept of the field, over all frames: 64 MiB.
const MAX_VALUES: usize = 16 << 20;
/// Most frames kept: more than a picture is wide or a film is long.
const MAX_FRAMES: usize = 400;
/// Most agents whose ways are kept, spread evenly over the swarm: more cannot be told apart in a
/// picture, and a million would not fit in memory.
const MAX_PATHS: usize = 1024;

/// A run, thinned out where it is long or large.
#[derive(Debug, Clone)]
pub struct Trajectory {
    /// Every how many steps a frame is kept; the last step's is always kept.
    stride: usize,
    last: usize,
    /// What the fields stand on.
    pub grid: Grid,
    /// The field to reach in the end, on the same grid.
    pub target: Vec<f32>,
    /// The episode of the field that agents see, if its target does not stay.
    wandering: Option<Episode>,
    /// The step number of each frame.
    pub steps: Vec<usize>,
    /// The field in each frame.
    pub fields: Vec<Vec<f32>>,
    /// Some of the agents in each frame.
    pub paths: Vec<Path>,
    /// Mean squared error to the target after 0, 1, … steps: all of them.
    pub errors: Vec<f64>,
    /// Mean squared force (or speed, where agents stir) in steps 1, 2, …
    pub efforts: Vec<f64>,
    /// Agents that answered in steps 1, 2, …
    pub heard: Vec<usize>,
}

/// One agent's way and states.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The agent.
    pub agent: usize,
    /// Its position in each frame.
    pub positions: Vec<[f64; 2]>,
    /// Its state in each frame; none for silence.
    pub modes: Vec<Option<Mode>>,
}

impl Path {
    /// The first frame from which on the agent never answered again.
    pub fn silent_from(&self) -> Option<usize> {
        let alive = self.modes.iter().rposition(Option::is_some);
        let first = alive.map_or(0, |frame| frame + 1);
        (first < self.modes.len()).then_some(first)
    }
}

impl Trajectory {
    /// For a run of `steps` steps of an episode.
    pub fn new(problem: &Problem, episode: &Episode, steps: usize) -> Self {
        let frames = (MAX_VALUES / problem.grid.len()).clamp(2, MAX_FRAMES);
        let seen = |state: &[f32]| resample(problem.seen(state), &problem.sensors, &problem.grid);
        Self {
            stride: steps.div_ceil(frames).max(1),
            last: steps,
            grid: problem.grid,
            target: seen(&episode.target_at(steps)),
            wandering: (!episode.has_one_target()).then(|| episode.mapped(seen)),
            steps: Vec::new(),
            fields: Vec::new(),
            paths: Vec::new(),
            errors: Vec::new(),
            efforts: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// What the field should be in a frame.
    pub fn target_in(&self, frame: usize) -> Cow<'_, [f32]> {
        match &self.wandering {
            None => Cow::Borrowed(&self.target),
            Some(episode) => Cow::Owned(episode.target_at(self.steps[frame])),
        }
    }

    /// Adds the state after a step.
    pub fn push(&mut self, snapshot: &Snapshot<'_>) {
        self.errors.push(snapshot.error);
        if snapshot.step > 0 {
            let heard = snapshot.deeds.iter().filter(|deed| deed.heard()).count();
            let agents = snapshot.deeds.len().max(1) as f64;
            self.efforts.push(snapshot.cost.squared_effort / agents);
            self.heard.push(heard);
        }
        if !snapshot.step.is_multiple_of(self.stride) && snapshot.step != self.last {
            return;
        }
        self.steps.push(snapshot.step);
        self.fields
            .push(snapshot.field.iter().map(|&z| z as f32).collect());
        if self.paths.is_empty() {
            let stride = snapshot.positions.len().div_ceil(MAX_PATHS).max(1);
            self.paths = (0..snapshot.positions.len())
                .step_by(stride)
                .map(|agent| Path {
                    agent,
                    positions: Vec::new(),
                    modes: Vec::new(),
                })
                .collect();
        }
        for path in &mut self.paths {
            path.positions.push(snapshot.positions[path.agent]);
            // Before the first step nobody has been asked.
            path.modes.push(match snapshot.step {
                0 => Some(Mode::Waiting),
                _ => snapshot.deeds[path.agent].mode,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Cost, Deed};
    use problem::published::heat_1d::PROBLEM;
    use problem::{Change, Course};

    fn watch(steps: usize, cells: usize) -> Trajectory {
        let mut problem = PROBLEM;
        problem.grid.points = [cells, 1];
        let episode = Episode {
            initial: vec![0.0; 100],
            target: vec![0.0; 100],
            ..Episode::default()
        };
        let mut trajectory = Trajectory::new(&problem, &episode, steps);
        let deed = Deed {
            mode: Some(Mode::Active),
            ..Deed::default()
        };
        for step in 0..=steps {
            let silent = Deed::default();
            let deeds = [deed, if step > steps / 2 { silent } else { deed }];
            trajectory.push(&Snapshot {
                step,
                field: &[1.0, 2.0],
                target: &[],
                error: 1.0,
                positions: &[[0.0; 2]; 2],
                deeds: &deeds,
                cost: Cost::default(),
            });
        }
        trajectory
    }

    #[test]
    fn short_runs_are_kept_whole_and_long_ones_thinned_with_their_end() {
        assert_eq!(watch(300, 100).steps, (0..=300).collect::<Vec<_>>());
        let long = watch(1001, 100);
        assert_eq!((long.stride, long.steps.last()), (3, Some(&1001)));
        assert_eq!((long.errors.len(), long.heard.len()), (1002, 1001));
        assert!(watch(100, 1 << 18).fields.len() <= 66);
    }

    #[test]
    fn a_target_that_changes_is_in_each_frame_what_it_is_then() {
        let episode = Episode {
            initial: vec![0.0; 100],
            target: vec![0.0; 100],
            goals: vec![Change {
                field: vec![2.0; 100],
                course: Course(vec![(2.0, 0.0), (4.0, 1.0)]),
            }],
            ..Episode::default()
        };
        let mut run = Trajectory::new(&PROBLEM, &episode, 6);
        run.steps = vec![0, 3, 6];
        assert_eq!(
            [0, 1, 2].map(|frame| run.target_in(frame)[50]),
            [0.0, 1.0, 2.0]
        );
        assert_eq!(run.target[50], 2.0);
    }

    #[test]
    fn silence_is_dated() {
        let run = watch(10, 2);
        assert_eq!(run.paths[0].silent_from(), None);
        assert_eq!(run.paths[1].silent_from(), Some(6));
        assert_eq!(run.heard, [2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
    }
}
