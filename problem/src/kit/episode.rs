//! How episodes of a described problem begin, what they should come to, and what happens on the way.

use super::Kit;
use super::expression::Expression;
use super::shape::Shape;
use crate::grid::Grid;
use crate::random_field::Smooth;
use crate::{Change, Course, Episode, Problem};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Draws one field.
#[derive(Debug)]
pub enum Generator {
    /// Always the same, by an expression in position and coefficients.
    Expression(Expression),
    /// A random one around such.
    Random {
        mean: Expression,
        amplitude: f64,
        field: Smooth,
    },
    /// One of these.
    Samples(Vec<Vec<f32>>),
}

/// A target that becomes another.
#[derive(Debug)]
pub struct Wander {
    pub to: Generator,
    /// When, how long it takes and how long it stays if not for good; times to draw from.
    pub at: [f64; 2],
    pub over: [f64; 2],
    pub lasts: Option<[f64; 2]>,
}

/// Something that acts on a field besides the agents.
#[derive(Debug)]
pub struct Push {
    pub name: String,
    pub field: usize,
    pub form: Form,
    /// Ranges to draw from: how strong, from when on, for how long.
    pub strength: [f64; 2],
    pub from: [f64; 2],
    pub lasts: [f64; 2],
    pub chance: f64,
}

/// Where a push acts.
#[derive(Debug, Clone)]
pub enum Form {
    /// Within a shape.
    Sharp(Shape),
    /// As a Gaussian bump.
    Bell {
        /// Its centre.
        centre: [f64; 2],
        /// Its standard deviation.
        width: f64,
    },
}

impl Form {
    /// The push at full strength.
    pub(super) fn on(&self, grid: &Grid) -> Vec<f32> {
        let value = |node: usize| {
            let here = grid.place(node);
            match self {
                Self::Sharp(shape) => f64::from(u8::from(shape.covers(grid, here))),
                Self::Bell { centre, width } => {
                    let d = grid.distance(here, *centre) / width;
                    libm::exp(-0.5 * d * d)
                }
            }
        };
        (0..grid.len()).map(|node| value(node) as f32).collect()
    }
}

fn between(rng: &mut ChaCha8Rng, [low, high]: [f64; 2]) -> f64 {
    low + (high - low) * rng.random::<f64>()
}

impl Generator {
    /// One field; of samples number `sample`, so that fields of one file each belong together.
    fn draw(&self, problem: &Problem, kit: &Kit, sample: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let grid = &problem.sensors;
        match self {
            Self::Expression(expression) => {
                let plain = kit.at_rest(problem, grid, expression);
                plain.map(|z| z as f32).collect()
            }
            Self::Random {
                mean,
                amplitude,
                field,
            } => {
                let drawn = field.draw(rng).into_iter();
                let both = kit.at_rest(problem, grid, mean).zip(drawn);
                both.map(|(mean, r)| (mean + amplitude * r) as f32)
                    .collect()
            }
            Self::Samples(all) => all[sample % all.len()].clone(),
        }
    }
}

impl Kit {
    /// An expression in position and coefficients at every node of a grid, fields and time being zero.
    pub(super) fn at_rest<'a>(
        &'a self,
        problem: &'a Problem,
        grid: &'a Grid,
        expression: &'a Expression,
    ) -> impl Iterator<Item = f64> + 'a {
        let mut values = vec![0.0; self.fields()];
        values.extend(self.values(problem));
        let first = values.len();
        values.extend([0.0; 3]);
        (0..grid.len()).map(move |node| {
            values[first..first + 2].copy_from_slice(&grid.place(node));
            expression.at(&values)
        })
    }

    /// Draws an episode.
    pub(super) fn draw(&self, problem: &Problem, rng: &mut ChaCha8Rng) -> Episode {
        let mut episode = Episode::default();
        let domain = self.domain(&problem.sensors);
        let dry = |field: &mut [f32]| {
            for (node, z) in field.iter_mut().enumerate() {
                if !domain.wet(node) {
                    *z = 0.0;
                }
            }
        };
        let sample = rng.random_range(0..usize::MAX);
        for field in &self.described {
            for (to, generator) in [
                (&mut episode.initial, &field.initial),
                (&mut episode.target, &field.target),
            ] {
                let mut drawn = generator.draw(problem, self, sample, rng);
                dry(&mut drawn);
                to.extend(drawn);
            }
        }
        let steps = |time: f64| (time / problem.control_interval).round();
        // Fields that have goals have them at the same times.
        let wandering = self.described.iter().map(|field| &field.goals);
        let courses = wandering.max_by_key(|goals| goals.len());
        let mut reached = 0.0f64;
        for (number, wander) in courses.into_iter().flatten().enumerate() {
            // Not before the last is reached, which rounding to steps could make of it.
            let at = steps(between(rng, wander.at)).max(reached);
            let over = steps(between(rng, wander.over));
            let lasts = wander.lasts.map(|times| steps(between(rng, times)));
            let mut to = Vec::new();
            for (k, field) in self.described.iter().enumerate() {
                let points = problem.sensors.len();
                let mut drawn = match field.goals.get(number) {
                    Some(wander) => wander.to.draw(problem, self, sample, rng),
                    None => episode.target[k * points..][..points].to_vec(),
                };
                dry(&mut drawn);
                to.extend(drawn);
            }
            let mut course = vec![(at, 0.0), (at + over, 1.0)];
            if let Some(lasts) = lasts {
                let back = at + over + lasts;
                course.extend([(back, 1.0), (back + over, 0.0)]);
            }
            reached = course.last().map_or(at, |(step, _)| *step);
            episode.goals.push(Change {
                field: to,
                course: Course(course),
            });
        }
        for push in &self.pushes {
            // Drawn whether it happens or not, so that the others do not depend on it.
            let happens = rng.random::<f64>() < push.chance;
            let strength = between(rng, push.strength);
            let from = steps(between(rng, push.from));
            let until = from + steps(between(rng, push.lasts));
            if !happens {
                continue;
            }
            let points = problem.sensors.len();
            let mut field = vec![0.0; self.fields() * points];
            field[push.field * points..][..points].copy_from_slice(&push.form.on(&problem.sensors));
            episode.pushes.push(Change {
                field,
                course: Course(vec![
                    (from, 0.0),
                    (from, strength),
                    (until, strength),
                    (until, 0.0),
                ]),
            });
        }
        episode
    }
}
