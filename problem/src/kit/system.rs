//! The equation of a described problem in numbers: what both solvers of it read.

use super::domain::Domain;
use super::expression::{Expression, Scratch};
use super::operator::{self, Operator};
use super::{Described, Kit, Map};
use crate::Problem;
use crate::grid::Grid;
use crate::pde::lines::Scheme;
use crate::resample::Sampler;
use std::collections::BTreeMap;

/// The equation on a problem's grid with its coefficients: for every field
///
/// ```text
/// u_t = A₀ u + A₁ u − κ Δ²u + edges(t) + reaction(all fields, x, t) + forcing
/// ```
#[derive(Debug, Clone)]
pub struct System {
    /// Where.
    pub domain: Domain,
    /// The fields, in order.
    pub fields: Vec<FieldSystem>,
    /// The solver's order in time.
    pub scheme: Scheme,
    /// Values of the coefficients, in the order in which expressions find them.
    coefficients: Vec<f64>,
    /// Coordinates of every node.
    pub coordinates: [Vec<f64>; 2],
    kit: &'static Kit,
}

/// One field's part.
#[derive(Debug, Clone)]
pub struct FieldSystem {
    /// Its diffusion and flow; diffusion that is negative is [`Hyper`]'s.
    pub operator: Operator,
    /// Its hyperdiffusion, where it has any.
    pub hyper: Option<Hyper>,
    /// What it is cut to after every step of the solver.
    pub clip: Option<[f64; 2]>,
    /// Where the sides' values are asked for: at fixed nodes, where something comes in, and where
    /// hyperdiffusion goes by what is beyond.
    fixed: Vec<Stretch>,
    inflow: Vec<Stretch>,
    ambient: Vec<Stretch>,
}

/// Hyperdiffusion, `−κ Δ²u`, which needs a second condition at walls. Where the field is held Δu is zero; where
/// nothing passes it is level, as u is; where u exchanges with its surroundings Δu does with none, at the same
/// rate. So Δ is the same symmetric operator both times, and an exchange goes from the one to the other as it
/// grows from nothing beyond all bounds.
#[derive(Debug, Clone)]
pub struct Hyper {
    /// κ.
    pub coefficient: f64,
    /// Δ with the field's edges.
    pub laplacian: Operator,
    /// Diffusion by as much as the diffusivity is below zero anywhere; it is to be taken away.
    pub against: Option<Operator>,
}

/// The places of one side among those of all.
#[derive(Debug, Clone)]
struct Stretch {
    side: usize,
    /// Which of all they are.
    which: Vec<usize>,
    coordinates: [Vec<f64>; 2],
}

/// Places, given by node and side, side by side: one expression is evaluated for each.
fn stretches(grid: &Grid, places: impl Iterator<Item = (usize, usize)>) -> Vec<Stretch> {
    let mut all: BTreeMap<usize, Stretch> = BTreeMap::new();
    for (k, (node, side)) in places.enumerate() {
        let stretch = all.entry(side).or_insert_with(|| Stretch {
            side,
            which: Vec::new(),
            coordinates: Default::default(),
        });
        stretch.which.push(k);
        let here = grid.place(node);
        (0..2).for_each(|axis| stretch.coordinates[axis].push(here[axis]));
    }
    all.into_values().collect()
}

impl System {
    /// The equation of this form of a described problem.
    ///
    /// # Panics
    /// If no file describes it.
    pub fn of(problem: &Problem) -> Self {
        let kit = problem.kit.expect("a described problem");
        let grid = &problem.grid;
        let domain = kit.domain(grid);
        let fields = kit.described.iter().map(|field| {
            let diffusion = kit.mapped(problem, grid, &field.diffusion);
            let velocity = (field.velocity.as_ref())
                .map(|flow| [0, 1].map(|axis| kit.mapped(problem, grid, &flow[axis])));
            let edges: Vec<operator::Edge> = field.edges.iter().map(|edge| edge.kind).collect();
            let spacing = [0, 1].map(|axis| grid.spacing(axis));
            // What is taken away again passes no wall: there diffusion exchanges what it does.
            let walls = edges.iter().map(|edge| match edge {
                operator::Edge::Convective { .. } => operator::Edge::Insulated,
                edge => *edge,
            });
            let walls: Vec<operator::Edge> = walls.collect();
            let taken = |d: &[f64]| Operator::new(&domain, d, None, &walls, spacing);
            let part =
                |sign: f64| -> Vec<f64> { diffusion.iter().map(|d| (sign * d).max(0.0)).collect() };
            let (above, below) = (part(1.0), part(-1.0));
            let operator = Operator::new(&domain, &above, velocity.as_ref(), &edges, spacing);
            let hyper = kit
                .hyperdiffusivity(problem, field)
                .map(|coefficient| Hyper {
                    coefficient,
                    laplacian: Operator::laplacian(&domain, &diffusion, &edges, spacing),
                    against: below.iter().any(|d| *d > 0.0).then(|| taken(&below)),
                });
            let sides = |inflow: &[operator::Inflow]| {
                stretches(grid, inflow.iter().map(|inflow| (inflow.node, inflow.side)))
            };
            FieldSystem {
                clip: field.clipped.then_some(field.range),
                fixed: stretches(grid, operator.fixed.iter().copied()),
                inflow: sides(&operator.inflow),
                ambient: (hyper.as_ref())
                    .map_or(Vec::new(), |hyper| sides(&hyper.laplacian.inflow)),
                operator,
                hyper,
            }
        });
        let coordinates = [0, 1].map(|axis| (0..grid.len()).map(|k| grid.place(k)[axis]).collect());
        Self {
            fields: fields.collect(),
            domain,
            scheme: kit.scheme,
            coefficients: kit.values(problem),
            coordinates,
            kit,
        }
    }

    /// The description that it is of.
    pub fn kit(&self) -> &'static Kit {
        self.kit
    }

    /// Values of the coefficients, in the order in which expressions find them.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Nodes of the grid.
    pub fn nodes(&self) -> usize {
        self.coordinates[0].len()
    }

    /// Writes the values that a field's fixed nodes are held at, in the operator's order.
    pub fn fixed_values(&self, field: usize, time: f64, values: &mut Vec<f64>) {
        let part = &self.fields[field];
        values.resize(part.operator.fixed.len(), 0.0);
        self.beyond(field, &part.fixed, time, values);
    }

    /// Writes the values of what a field's edges bring in, in the operator's order.
    pub fn inflow_values(&self, field: usize, time: f64, values: &mut Vec<f64>) {
        let part = &self.fields[field];
        values.resize(part.operator.inflow.len(), 0.0);
        self.beyond(field, &part.inflow, time, values);
    }

    /// Writes the values of what is beyond a field's edges where hyperdiffusion goes by it, in the order of
    /// its [`Hyper::laplacian`]'s inflow.
    pub fn ambient_values(&self, field: usize, time: f64, values: &mut Vec<f64>) {
        let part = &self.fields[field];
        let hyper = part.hyper.as_ref();
        values.resize(hyper.map_or(0, |hyper| hyper.laplacian.inflow.len()), 0.0);
        self.beyond(field, &part.ambient, time, values);
    }

    /// When, in a step of `dt` from `begin` on, that counts what edges bring: half-way, which is worth an
    /// order, or at the end, where what they hold does.
    pub fn inflow_time(&self, begin: f64, dt: f64) -> f64 {
        match self.scheme {
            Scheme::FirstOrder => begin + dt,
            Scheme::SecondOrder => begin + 0.5 * dt,
        }
    }

    /// Whether what edges hold or bring changes in time.
    pub fn edges_change(&self) -> bool {
        let time = self.kit.fields() + self.coefficients.len() + 2;
        let mut edges = self.kit.described.iter().flat_map(|field| &field.edges);
        edges.any(|edge| edge.value.uses(time))
    }

    /// Writes the values that belong to sides.
    fn beyond(&self, field: usize, stretches: &[Stretch], time: f64, values: &mut [f64]) {
        let nothing = vec![[0.0].as_slice(); self.kit.fields()];
        let (mut out, mut scratch) = (Vec::new(), Scratch::default());
        for stretch in stretches {
            out.resize(stretch.which.len(), 0.0);
            let value = &self.kit.described[field].edges[stretch.side].value;
            let coordinates = &stretch.coordinates;
            self.evaluate(value, &nothing, coordinates, time, &mut out, &mut scratch);
            for (&k, &value) in stretch.which.iter().zip(&out) {
                values[k] = value;
            }
        }
    }

    /// Evaluates an expression in all fields at every node; `fields` and `coordinates` are of one precision.
    pub fn evaluate<T: num_traits::Float + Default>(
        &self,
        expression: &Expression,
        fields: &[&[T]],
        coordinates: &[Vec<T>; 2],
        time: f64,
        out: &mut [T],
        scratch: &mut Scratch<T>,
    ) {
        let t = |value: f64| T::from(value).expect("floats convert to floats");
        // Of few nodes the values take no longer than memory for this would.
        let (mut few, mut many) = ([T::default(); FEW], Vec::new());
        let numbers = room(&mut few, &mut many, self.coefficients.len() + 1);
        for (to, &value) in numbers
            .iter_mut()
            .zip(self.coefficients.iter().chain([&time]))
        {
            *to = t(value);
        }
        let (time, coefficients) = numbers.split_last().expect("time is there");
        let nothing: &[T] = &[];
        let (mut few, mut many) = ([nothing; FEW], Vec::new());
        let inputs = room(&mut few, &mut many, fields.len() + coefficients.len() + 3);
        let given = (fields.iter().copied())
            .chain(coefficients.iter().map(std::slice::from_ref))
            .chain(coordinates.iter().map(Vec::as_slice))
            .chain([std::slice::from_ref(time)]);
        inputs
            .iter_mut()
            .zip(given)
            .for_each(|(to, from)| *to = from);
        expression.evaluate(inputs, out, scratch);
    }

    /// The longest step that explicit parts bear: two over the fastest rate of reactions found where fields
    /// are expected, or of growth by a negative diffusivity; infinite where there is none.
    pub fn longest_step(&self) -> f64 {
        let growth = self.fields.iter().map(FieldSystem::growth);
        match growth.chain(self.rates()).fold(0.0, f64::max) {
            0.0 => f64::INFINITY,
            fastest => 2.0 / fastest,
        }
    }

    /// Whether any field has hyperdiffusion.
    pub fn has_hyperdiffusion(&self) -> bool {
        self.fields.iter().any(|field| field.hyper.is_some())
    }

    /// How fast fields change by themselves in the middle of where they are expected.
    pub fn usual_rate(&self) -> f64 {
        let kit = self.kit;
        let mut values: Vec<f64> = (kit.described.iter())
            .map(|field| 0.5 * (field.range[0] + field.range[1]))
            .collect();
        values.extend(&self.coefficients);
        let node = (0..self.nodes())
            .filter(|&node| self.domain.wet(node))
            .nth(self.nodes() / 3);
        values.extend([0, 1].map(|axis| self.coordinates[axis][node.unwrap_or(0)]));
        values.push(0.0);
        let own = kit.described.iter().enumerate().flat_map(|(k, field)| {
            let derivatives = field.reaction.iter().flat_map(|r| &r.derivatives);
            derivatives.filter(move |(by, _)| *by == k)
        });
        own.map(|(_, d)| d.at(&values).abs()).fold(0.0, f64::max)
    }

    /// How fast reactions change what they depend on, at a sample of states and places; slowest first.
    pub fn rates(&self) -> Vec<f64> {
        let kit = self.kit;
        let ranges: Vec<[f64; 2]> = kit.described.iter().map(|field| field.range).collect();
        let nodes: Vec<usize> = (0..self.nodes())
            .step_by((self.nodes() / 16).max(1))
            .filter(|&node| self.domain.wet(node))
            .collect();
        let mut rates = Vec::new();
        // Corners, edges' middles and the centre of where fields are expected: 3 values of each.
        for corner in 0..3usize.pow(ranges.len() as u32) {
            let value = |k: usize| {
                let share = (corner / 3usize.pow(k as u32) % 3) as f64 / 2.0;
                ranges[k][0] + share * (ranges[k][1] - ranges[k][0])
            };
            for &node in &nodes {
                let mut values: Vec<f64> = (0..ranges.len()).map(value).collect();
                values.extend(&self.coefficients);
                values.extend([0, 1].map(|axis| self.coordinates[axis][node]));
                values.push(0.0);
                let rate = |field: &Described| -> f64 {
                    let derivatives = field.reaction.iter().flat_map(|r| &r.derivatives);
                    derivatives.map(|(_, d)| d.at(&values).abs()).sum()
                };
                // What is not a number is found out by the checks of the file.
                let fastest = kit
                    .described
                    .iter()
                    .map(rate)
                    .filter(|rate| rate.is_finite());
                rates.push(fastest.fold(0.0, f64::max));
            }
        }
        rates.sort_by(f64::total_cmp);
        rates
    }
}

impl FieldSystem {
    /// How fast a negative diffusivity lets waves grow, hyperdiffusion holding the finer ones: at most ν²/4κ.
    fn growth(&self) -> f64 {
        let Some(hyper) = &self.hyper else { return 0.0 };
        // The highest ν, seen in differences of the laplacian: both have one row for each.
        let ratio = |a: &Operator| {
            let pairs =
                a.at.iter()
                    .flatten()
                    .zip(hyper.laplacian.at.iter().flatten());
            let ratios = pairs.filter(|(_, l)| **l != 0.0).map(|(a, l)| a / l);
            ratios.fold(0.0, f64::max)
        };
        let most = hyper.against.as_ref().map_or(0.0, ratio);
        most * most / (4.0 * hyper.coefficient)
    }
}

/// Inputs of an expression that take no memory of their own.
const FEW: usize = 16;

/// So many values of room.
fn room<'a, T: Copy + Default>(
    few: &'a mut [T; FEW],
    many: &'a mut Vec<T>,
    count: usize,
) -> &'a mut [T] {
    if count <= FEW {
        return &mut few[..count];
    }
    many.resize(count, T::default());
    many
}

impl Kit {
    /// κ of a field, where it is not zero.
    pub(super) fn hyperdiffusivity(&self, problem: &Problem, field: &Described) -> Option<f64> {
        let expression = field.hyperdiffusion.as_ref()?;
        let value = self.at_rest(problem, &problem.grid, expression).next()?;
        (value > 0.0).then_some(value)
    }

    /// A value at every node of a grid.
    pub(super) fn mapped(&self, problem: &Problem, grid: &Grid, map: &Map) -> Vec<f64> {
        match map {
            Map::Expression(expression) => self.at_rest(problem, grid, expression).collect(),
            Map::Values { points, values } => {
                let from = Grid {
                    points: *points,
                    ..*grid
                };
                // Linear, so that sharp maps do not ring and a diffusivity stays positive.
                let values: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                let mut on_grid = vec![0.0; grid.len()];
                Sampler::new(&from, grid).read(&values, &mut on_grid);
                on_grid.into_iter().map(f64::from).collect()
            }
        }
    }
}
