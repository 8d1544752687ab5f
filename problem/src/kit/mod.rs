//! Fields of a user's own, described in one file.
//!
//! 1. [`mod@file`]: what stands in it. `build`: what that means, checked; complaints name the line.
//! 2. [`shape`], [`domain`]: the box and what is cut out of it. [`expression`]: what users write.
//! 3. [`operator`]: diffusion and flow on such a domain. [`system`]: the whole equation in numbers, which
//!    the truth ([`crate::pde::described`]) and the trainer each solve in their own way.
//! 4. `episode`: how runs begin, what they should come to and what happens on the way. [`sensor`]: what agents
//!    are shown of it; `keep_out`: where they must not go.
//!
//! [`load`] makes a [`Problem`] of a file: every command takes one where it takes a problem's name.

mod build;
pub mod domain;
mod episode;
pub mod expression;
pub mod file;
mod keep_out;
pub mod operator;
mod places;
pub mod sensor;
pub mod shape;
pub mod system;
mod told;

use crate::Problem;
use crate::grid::Grid;
use crate::pde::lines::Scheme;
use domain::{Domain, Mask};
pub use episode::Form;
use episode::{Generator, Push, Wander};
use expression::Expression;
use file::Training;
pub use keep_out::Stand;
use places::Places;
use sensor::Sensor;
use shape::Shape;
use std::path::{Path, PathBuf};
pub use told::{Scales, Told};

/// Most fields of one problem.
pub const MOST_FIELDS: usize = 4;

/// A described field, checked: what a [`Problem`] of a file goes by.
#[derive(Debug)]
pub struct Kit {
    /// The file.
    pub path: PathBuf,
    /// What policies for it say that they are for, see [`Problem::seen_as`].
    pub seen_as: &'static str,
    /// The unit of lengths, and that of times.
    pub units: [String; 2],
    /// The fields, in order.
    pub described: Vec<Described>,
    /// Which of them agents see, and are judged by unless the file says otherwise.
    pub seen: usize,
    /// Which of them they see besides, through a window of the same cells.
    pub also_seen: Vec<usize>,
    /// Which of them agents act on.
    pub driven: usize,
    /// Names and shapes of what is cut out.
    pub cuts: Vec<(String, Shape)>,
    /// What is left besides.
    pub mask: Option<Mask>,
    /// The solver's order in time.
    pub scheme: Scheme,
    /// Largest change of a force per time; infinite for instant actuators.
    pub rate: f64,
    /// What each actuator does to the field per unit of force, where that was measured.
    influence: Option<Vec<Map>>,
    /// What mobile agents keep out of, by name, with the discs that stand for it; none of a cut-out for
    /// which there are too few.
    pub kept_out: Vec<(String, Option<Stand>)>,
    /// What agents read the fields with: the one that they see, then each that they see besides.
    pub sensors: Vec<Sensor>,
    /// How it is trained, where not as usual.
    pub training: Training,
    /// Values of coefficients that have no range, by their place among an expression's variables; those
    /// that have one are the problem's.
    constants: Vec<Constant>,
    /// The same for people.
    coefficients: Vec<Named>,
    places: Places,
    pushes: Vec<Push>,
    /// Regions and how much errors there count, and those elsewhere.
    regions: Vec<(Shape, f64)>,
    elsewhere: f64,
}

/// A coefficient, where expressions look for it.
#[derive(Debug, Clone, Copy)]
enum Constant {
    /// It never changes.
    Fixed(f64),
    /// It is this one of the problem's coefficients.
    Changeable(usize),
}

/// A coefficient as people know it.
#[derive(Debug)]
struct Named {
    name: String,
    meaning: Option<String>,
    unit: Option<String>,
    /// What it may be changed to.
    range: Option<[f64; 2]>,
}

/// One field of a described problem.
#[derive(Debug)]
pub struct Described {
    /// Its name in expressions.
    pub name: String,
    /// What it is.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// Where its values are expected.
    pub range: [f64; 2],
    /// Whether it is cut to that after every step of the solver.
    pub clipped: bool,
    /// How fast it grows by itself, and the derivatives of that by every field it depends on.
    pub reaction: Option<Reaction>,
    diffusion: Map,
    /// κ of −κ Δ²u, by coefficients.
    hyperdiffusion: Option<Expression>,
    velocity: Option<[Map; 2]>,
    /// By side of the domain.
    edges: Vec<Edge>,
    /// How much its errors count.
    weight: f64,
    initial: Generator,
    target: Generator,
    /// Where its target goes, one after the other.
    goals: Vec<Wander>,
}

/// A reaction.
#[derive(Debug)]
pub struct Reaction {
    /// The rate, from all fields, coefficients, position and time.
    pub rate: Expression,
    /// Its derivative by every field that it depends on.
    pub derivatives: Vec<(usize, Expression)>,
}

/// A value at every place.
#[derive(Debug, Clone)]
enum Map {
    /// By an expression in position and coefficients.
    Expression(Expression),
    /// By numbers on a grid of the whole box.
    Values {
        points: [usize; 2],
        values: Vec<f32>,
    },
}

/// What happens at a side of the domain.
#[derive(Debug, Clone)]
struct Edge {
    kind: operator::Edge,
    /// The value it is held at, that of what is beyond, or of what flows in.
    value: Expression,
}

/// Why a file describes no problem: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {what}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1, where it is about one.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Whether a name on the command line is that of a file.
pub fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "toml")
}

/// The problem that a file describes. It is kept for as long as the program runs.
pub fn load(path: &Path) -> Result<&'static Problem, BadFile> {
    build::problem(path)
}

impl Kit {
    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.described.len()
    }

    /// All fields that agents see, in the order of their sensors.
    pub fn all_seen(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.seen).chain(self.also_seen.iter().copied())
    }

    /// What each actuator does per unit of force at every node of the problem's grid, where that was
    /// measured: `[actuators][nodes]`.
    pub fn influence(&self, problem: &Problem) -> Option<Vec<Vec<f64>>> {
        let maps = self.influence.as_ref()?.iter();
        Some(
            maps.map(|map| self.mapped(problem, &problem.grid, map))
                .collect(),
        )
    }

    /// Whether it was measured.
    pub fn has_influence(&self) -> bool {
        self.influence.is_some()
    }

    /// How often targets change in the course of an episode.
    pub fn goals(&self) -> usize {
        (self.described.iter().map(|field| field.goals.len()))
            .max()
            .unwrap_or(0)
    }

    /// The field of each disturbance.
    pub fn pushed(&self) -> impl Iterator<Item = usize> + '_ {
        self.pushes.iter().map(|push| push.field)
    }

    /// Of the coefficients, in the order in which expressions find them, which of the problem's each is;
    /// none where it never changes.
    pub fn changeable(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        self.constants.iter().map(|constant| match constant {
            Constant::Fixed(_) => None,
            Constant::Changeable(index) => Some(*index),
        })
    }

    /// The domain on a grid.
    pub fn domain(&self, grid: &Grid) -> Domain {
        let shapes: Vec<Shape> = self.cuts.iter().map(|(_, shape)| shape.clone()).collect();
        Domain::new(*grid, &shapes, self.mask.as_ref())
    }

    /// What people call a side of the domain.
    pub fn side_name(&self, side: usize) -> &str {
        match side.checked_sub(domain::BOX_SIDES) {
            None => SIDES[side],
            Some(cut) => self.cuts.get(cut).map_or("mask", |(name, _)| name),
        }
    }

    /// How much every value of the state counts in errors, one on average; none where all count alike.
    pub fn weights(&self, grid: &Grid) -> Option<Vec<f64>> {
        let all = self.described_weights(grid);
        if all.iter().all(|&weight| weight == all[0]) {
            return None;
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        Some(all.into_iter().map(|weight| weight / mean).collect())
    }

    /// The same as the file has them.
    fn described_weights(&self, grid: &Grid) -> Vec<f64> {
        let domain = self.domain(grid);
        let place = |node: usize| -> f64 {
            let here = grid.place(node);
            let region = self
                .regions
                .iter()
                .find(|(shape, _)| shape.covers(grid, here));
            match domain.wet(node) {
                true => region.map_or(self.elsewhere, |(_, weight)| *weight),
                false => 0.0,
            }
        };
        let places: Vec<f64> = (0..grid.len()).map(place).collect();
        let fields = self.described.iter();
        fields
            .flat_map(|field| places.iter().map(|weight| field.weight * weight))
            .collect()
    }

    /// The values that expressions find after the fields': coefficients, then position, then time.
    fn values(&self, problem: &Problem) -> Vec<f64> {
        let value = |constant: &Constant| match *constant {
            Constant::Fixed(value) => value,
            Constant::Changeable(index) => problem.physics[index],
        };
        self.constants.iter().map(value).collect()
    }
}

/// What the ends of the box are called.
pub const SIDES: [&str; domain::BOX_SIDES] = ["left", "right", "bottom", "top"];

#[cfg(test)]
mod tests;
