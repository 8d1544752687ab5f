//! Fields that a file describes: the trainer's stages ([`plan`]) and the file's expressions, written out.
//!
//! What is implicit along lines is multiplied with its inverse, of which a band counts: a thread a node, where
//! elimination would have a thread a line. Lines with the same coefficients share the rows of it.

mod source;

use super::banded::NEGLIGIBLE;
use super::{Declaration, FieldKernel, Varying, no_kernels};
use crate::adjoint::physics::described::{Plan, plan};
use problem::kit::operator::Operator;
use problem::kit::sensor::Sensor;
use problem::kit::system::System;
use problem::pde::lines::Scheme;
use problem::{NotImplemented, Problem};
use source::Writer;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most nodes of a line: the inverse has as many squared.
const MOST_ALONG: usize = 2048;
/// Most values of all inverses together.
const MOST_VALUES: usize = 1 << 26;
/// Columns of the table `mixing`.
const COLUMNS: usize = 6;
/// What of an inverse's row may be dropped for a form that was not covered.
const TOLERABLE: f64 = 1e-6;
/// What the coefficients with a range are called in WGSL.
const COEFFICIENTS: [&str; 4] = [
    "coefficient_0",
    "coefficient_1",
    "coefficient_2",
    "coefficient_3",
];

/// The kernels of a described problem.
pub fn described(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    let grid = &problem.grid;
    if let Some(what) = lacking(problem) {
        return Err(NotImplemented {
            part: "the GPU kernels",
            form: format!("{} with {what}", problem.name),
            remedy: "train with --backend flex",
        });
    }
    if problem.grid != problem.sensors || problem.coefficients.len() > COEFFICIENTS.len() {
        return Err(no_kernels(problem));
    }
    let too_large = NotImplemented {
        part: "the GPU kernels",
        form: format!("{} on a grid of {grid}", problem.name),
        remedy: "take a coarser grid, or train with --backend flex",
    };
    if grid.points.into_iter().any(|n| n > MOST_ALONG) {
        return Err(too_large);
    }
    let kernel = Described::new(problem);
    match kernel.inverses() <= MOST_VALUES {
        true => Ok(Box::new(kernel)),
        false => Err(too_large),
    }
}

/// What the kernels, or the loop around them, have no form of.
fn lacking(problem: &Problem) -> Option<&'static str> {
    let kit = problem.kit.expect("a described problem");
    let [along, across] = problem.grid.edges;
    let lacks = [
        (
            kit.training.by_themselves(),
            "agents that see by themselves ([training] neighbours, missing)",
        ),
        (
            !kit.sensors.iter().all(Sensor::is_faithful),
            "sensors with a range or a quantisation",
        ),
        (kit.rate.is_finite(), "forces with a rate"),
        (kit.has_influence(), "influence maps"),
        (
            problem.grid.axes == 2 && along != across,
            "a box that is periodic along one axis",
        ),
        (System::of(problem).has_hyperdiffusion(), "hyperdiffusion"),
    ];
    lacks
        .into_iter()
        .find_map(|(has, what)| has.then_some(what))
}

/// The step of a described problem.
#[derive(Debug, Clone)]
struct Described {
    problem: Problem,
    system: System,
    dt: f64,
    substeps: usize,
    /// By field.
    stages: Vec<Vec<Stage>>,
    /// For every value whether edges hold it or bring something, and as the how manieth of all such.
    slots: Vec<usize>,
    /// Fields that agents or disturbances act on.
    pushed: Vec<usize>,
}

/// What of one field's stage does not depend on coefficients.
#[derive(Debug, Clone)]
struct Stage {
    plan: Plan,
    /// Whether there is something to solve.
    solved: bool,
    /// Which lines share their rows of `mixing`, along [`Stage::explicit`], and of `inverse`.
    mixing: Kinds,
    inverse: Kinds,
    /// Values of the inverse's rows that count.
    width: usize,
    /// Whether lines are rings.
    ring: bool,
}

impl Stage {
    /// The axis along whose lines rows of `mixing` are shared.
    fn explicit(&self) -> usize {
        self.plan.explicit.unwrap_or(self.plan.implicit)
    }
}

/// Lines of which some are alike.
#[derive(Debug, Clone)]
struct Kinds {
    axis: usize,
    points: [usize; 2],
    of_line: Vec<usize>,
    /// A line of each kind.
    lines: Vec<usize>,
}

impl Kinds {
    fn new(axis: usize, points: [usize; 2]) -> Self {
        Self {
            axis,
            points,
            of_line: vec![0; points[1 - axis]],
            lines: vec![0],
        }
    }

    fn length(&self) -> usize {
        self.points[self.axis]
    }

    fn nodes(&self) -> usize {
        self.points[0] * self.points[1]
    }

    fn node(&self, line: usize, k: usize) -> usize {
        match self.axis {
            0 => k * self.points[1] + line,
            _ => line * self.points[1] + k,
        }
    }

    /// The values of a line, of one per node.
    fn line(&self, values: &[f64], line: usize) -> Vec<f64> {
        (0..self.length())
            .map(|k| values[self.node(line, k)])
            .collect()
    }

    /// Tells lines apart that differ in one of these.
    fn refine(&mut self, values: &[&Vec<f64>]) {
        let mut kinds: HashMap<(usize, Vec<u64>), usize> = HashMap::new();
        let old = std::mem::take(&mut self.of_line);
        self.lines.clear();
        for (line, kind) in old.into_iter().enumerate() {
            // Zeros of either sign are alike.
            let bits = (values.iter())
                .flat_map(|values| self.line(values, line))
                .map(|x| (x + 0.0).to_bits());
            let next = kinds.len();
            let kind = *kinds.entry((kind, bits.collect())).or_insert(next);
            if kind == next {
                self.lines.push(line);
            }
            self.of_line.push(kind);
        }
    }

    /// Whether nearly every line has rows of its own: then so has every node, side by side.
    fn single(&self) -> bool {
        2 * self.lines.len() > self.of_line.len()
    }

    /// Distance of columns in a table.
    fn step(&self) -> usize {
        match self.single() {
            true => self.nodes(),
            false => self.length(),
        }
    }

    /// Values of a table of so many columns.
    fn size(&self, columns: usize) -> usize {
        match self.single() {
            true => columns * self.nodes(),
            false => columns * self.length() * self.lines.len(),
        }
    }

    /// Adds such a table: for a line [node of the line, column].
    fn write(&self, columns: usize, table: &mut Vec<f64>, mut row: impl FnMut(usize) -> Vec<f64>) {
        let start = table.len();
        table.resize(start + self.size(columns), 0.0);
        let count = match self.single() {
            true => self.of_line.len(),
            false => self.lines.len(),
        };
        for which in 0..count {
            let line = if self.single() {
                which
            } else {
                self.lines[which]
            };
            for (k, values) in row(line).chunks_exact(columns).enumerate() {
                for (c, &value) in values.iter().enumerate() {
                    let at = match self.single() {
                        true => c * self.nodes() + self.node(line, k),
                        false => (which * columns + c) * self.length() + k,
                    };
                    table[start + at] = value;
                }
            }
        }
    }
}

/// A stage in numbers, per node.
struct Matrices {
    own: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
    share: Vec<f64>,
    /// What is to be inverted.
    lower: Vec<f64>,
    diagonal: Vec<f64>,
    upper: Vec<f64>,
}

impl Matrices {
    fn new(a: &Operator, plan: &Plan) -> Self {
        let nodes = a.grid.len();
        let implicit = |row: &[f64]| -> Vec<f64> { row.iter().map(|x| -plan.by * x).collect() };
        let explicit = |rows: &[Vec<f64>; 2]| match plan.explicit {
            Some(axis) => rows[axis].iter().map(|x| plan.by * x).collect(),
            None => vec![0.0; nodes],
        };
        let one_more = |row: Vec<f64>| -> Vec<f64> { row.into_iter().map(|x| 1.0 + x).collect() };
        let mut matrices = Self {
            own: one_more(explicit(&a.at)),
            before: explicit(&a.before),
            after: explicit(&a.after),
            share: vec![plan.push; nodes],
            lower: implicit(&a.before[plan.implicit]),
            diagonal: one_more(implicit(&a.at[plan.implicit])),
            upper: implicit(&a.after[plan.implicit]),
        };
        let held = a.fixed.iter().map(|&(node, _)| (node, plan.midway));
        for (node, midway) in held.chain(a.dry.iter().map(|&node| (node, false))) {
            matrices.own[node] = if midway { 0.5 } else { 0.0 };
            for part in [
                &mut matrices.before,
                &mut matrices.after,
                &mut matrices.share,
            ] {
                part[node] = 0.0;
            }
        }
        matrices
    }

    /// The rows of `mixing` of a line.
    fn mixing(&self, lines: &Kinds, line: usize) -> Vec<f64> {
        let n = lines.length();
        let at = |values: &[f64], k: usize| values[lines.node(line, k % n)];
        let row = |k: usize| {
            [
                at(&self.own, k),
                at(&self.before, k),
                at(&self.after, k),
                at(&self.share, k),
                at(&self.after, k + n - 1),
                at(&self.before, k + 1),
            ]
        };
        (0..n).flat_map(row).collect()
    }

    /// The inverse on a line, row after row.
    fn inverse(&self, lines: &Kinds, line: usize) -> Vec<f64> {
        let part = |values: &[f64]| lines.line(values, line);
        invert(
            &part(&self.lower),
            &part(&self.diagonal),
            &part(&self.upper),
        )
    }
}

/// The inverse of a tridiagonal matrix, row after row; the first of `lower` and the last of `upper` stand in
/// its corners.
fn invert(lower: &[f64], diagonal: &[f64], upper: &[f64]) -> Vec<f64> {
    let n = diagonal.len();
    let corners = [lower[0], upper[n - 1]];
    let ring = corners != [0.0; 2];
    // With corners it is the open line's plus u vᵀ, as in the trainer's own solver.
    let gamma = -diagonal[0];
    let mut middle = diagonal.to_vec();
    if ring {
        middle[0] -= gamma;
        middle[n - 1] -= corners[0] * corners[1] / gamma;
    }
    let (mut pivots, mut ratios) = (vec![0.0; n], vec![0.0; n]);
    for k in 0..n {
        let left = if k > 0 { lower[k] * ratios[k - 1] } else { 0.0 };
        pivots[k] = 1.0 / (middle[k] - left);
        ratios[k] = upper[k] * pivots[k];
    }
    let solve = |values: &mut [f64]| {
        values[0] *= pivots[0];
        for k in 1..n {
            values[k] = (values[k] - lower[k] * values[k - 1]) * pivots[k];
        }
        for k in (0..n - 1).rev() {
            values[k] -= ratios[k] * values[k + 1];
        }
    };
    let mut inverse = vec![0.0; n * n];
    let mut column = vec![0.0; n];
    for unit in 0..n {
        column.fill(0.0);
        column[unit] = 1.0;
        solve(&mut column);
        for k in 0..n {
            inverse[k * n + unit] = column[k];
        }
    }
    if ring {
        column.fill(0.0);
        (column[0], column[n - 1]) = (gamma, corners[1]);
        solve(&mut column);
        let v = [1.0, corners[0] / gamma];
        let along = 1.0 + v[0] * column[0] + v[1] * column[n - 1];
        let ends: Vec<f64> = (0..n)
            .map(|c| (v[0] * inverse[c] + v[1] * inverse[(n - 1) * n + c]) / along)
            .collect();
        for k in 0..n {
            for c in 0..n {
                inverse[k * n + c] -= column[k] * ends[c];
            }
        }
    }
    inverse
}

/// The first column of a row that counts: `width` from there on, around a ring if it is one.
fn first_column(n: usize, width: usize, ring: bool, k: usize) -> usize {
    match ring {
        true => (k + n - width / 2) % n,
        false => k.saturating_sub(width / 2).min(n - width),
    }
}

/// How many values around the diagonal count, if what is less than so much of it does not.
fn width_of(inverse: &[f64], n: usize, ring: bool, negligible: f64) -> usize {
    let size = |k: usize| inverse[k * n + k].abs();
    let mut reach = 0;
    for k in 0..n {
        for c in 0..n {
            let apart = k.abs_diff(c);
            let apart = if ring { apart.min(n - apart) } else { apart };
            if apart > reach && inverse[k * n + c].abs() > negligible * size(k).min(size(c)) {
                reach = apart;
            }
        }
    }
    (2 * reach + 1).min(n)
}

impl Described {
    fn new(problem: &Problem) -> Self {
        let (dt, substeps) = problem.solver_steps(1);
        let system = System::of(problem);
        let kit = system.kit();
        let points = problem.grid.points;
        let plans = plan(problem.grid.axes, system.scheme, dt);
        let stage = |plan: Plan| Stage {
            mixing: Kinds::new(plan.explicit.unwrap_or(plan.implicit), points),
            inverse: Kinds::new(plan.implicit, points),
            plan,
            solved: true,
            width: 1,
            ring: false,
        };
        let mut pushed: Vec<usize> = kit.pushed().chain([kit.driven]).collect();
        pushed.sort_unstable();
        pushed.dedup();
        let mut kernel = Self {
            problem: *problem,
            dt,
            substeps,
            stages: vec![plans.into_iter().map(stage).collect(); system.fields.len()],
            slots: vec![0; system.fields.len() * system.nodes()],
            pushed,
            system,
        };
        // Fields that nothing moves need one stage, in which nothing is solved.
        for (k, field) in kernel.system.fields.iter().enumerate() {
            if field.operator.is_idle() {
                let stages = &mut kernel.stages[k];
                stages.truncate(1);
                stages[0].solved = false;
                stages[0].plan = Plan {
                    explicit: None,
                    push: dt,
                    inflow: [0.0; 2],
                    midway: false,
                    ..stages[0].plan
                };
                stages[0].mixing = Kinds::new(stages[0].plan.implicit, points);
            }
        }
        kernel.take_in(problem);
        kernel
    }

    /// Makes tables large enough for a form.
    fn take_in(&mut self, form: &Problem) {
        let system = System::of(form);
        let nodes = system.nodes();
        for (f, field) in system.fields.iter().enumerate() {
            let a = &field.operator;
            if !a.is_idle() && !self.stages[f][0].solved {
                // It moved in no form so far.
                let problem = self.problem;
                let mut other = Self::new(form);
                other.take_in(&problem);
                let stages = other.stages.swap_remove(f);
                self.stages[f] = stages;
            }
            for stage in &mut self.stages[f] {
                let m = Matrices::new(a, &stage.plan);
                stage
                    .mixing
                    .refine(&[&m.own, &m.before, &m.after, &m.share]);
                if !stage.solved {
                    continue;
                }
                let lines = &mut stage.inverse;
                lines.refine(&[&m.lower, &m.diagonal, &m.upper]);
                let n = lines.length();
                let ends = |&line: &usize| {
                    let (first, last) = (lines.node(line, 0), lines.node(line, n - 1));
                    m.lower[first] != 0.0 || m.upper[last] != 0.0
                };
                stage.ring |= lines.lines.iter().any(ends);
                for &line in &lines.lines {
                    let inverse = m.inverse(lines, line);
                    let width = width_of(&inverse, n, stage.ring, NEGLIGIBLE);
                    stage.width = stage.width.max(width);
                }
            }
            let inflow = a.inflow.iter().map(|inflow| inflow.node);
            for node in a.fixed.iter().map(|&(node, _)| node).chain(inflow) {
                self.slots[f * nodes + node] = 1;
            }
        }
        let mut count = 0;
        for slot in self.slots.iter_mut().filter(|slot| **slot > 0) {
            count += 1;
            *slot = count;
        }
    }

    fn nodes(&self) -> usize {
        self.system.nodes()
    }

    fn fields(&self) -> usize {
        self.stages.len()
    }

    fn slot_count(&self) -> usize {
        self.slots.iter().copied().max().unwrap_or(0)
    }

    /// Most stages of a field.
    fn stage_count(&self) -> usize {
        self.stages.iter().map(Vec::len).max().unwrap_or(1)
    }

    fn reacts(&self) -> bool {
        let mut fields = self.system.kit().described.iter();
        fields.any(|field| field.reaction.is_some())
    }

    fn clips(&self) -> bool {
        self.system.fields.iter().any(|field| field.clip.is_some())
    }

    /// Whether reactions come half before and half after the rest.
    fn split(&self) -> bool {
        self.reacts() && self.system.scheme == Scheme::SecondOrder
    }

    /// Fields kept in the middle of solver steps, and at their ends.
    fn kept_fields(&self) -> [usize; 2] {
        [
            if self.split() { self.substeps } else { 0 },
            if self.reacts() || self.clips() {
                self.substeps - 1
            } else {
                0
            },
        ]
    }

    /// Values of all inverses.
    fn inverses(&self) -> usize {
        let stages = self.stages.iter().flatten().filter(|stage| stage.solved);
        stages
            .map(|stage| 2 * stage.inverse.size(stage.width))
            .sum()
    }

    /// Whether a node of a field is held or dry.
    fn rest(&self) -> Vec<f64> {
        let mut rest = vec![0.0; self.slots.len()];
        for (f, field) in self.system.fields.iter().enumerate() {
            let held = field.operator.fixed.iter().map(|(node, _)| node);
            for node in held.chain(&field.operator.dry) {
                rest[f * self.nodes() + node] = 1.0;
            }
        }
        rest
    }

    /// What edges hold and bring: [solver steps, or one where nothing changes, slots, stages].
    fn beyond(&self, system: &System) -> Vec<f64> {
        let (slots, stages) = (self.slot_count(), self.stage_count());
        let steps = match self.system.edges_change() {
            true => self.problem.horizon * self.substeps,
            false => 1,
        };
        let mut table = vec![0.0; steps * slots * stages];
        let (mut fixed, mut inflow) = (Vec::new(), Vec::new());
        for (step, table) in table.chunks_exact_mut((slots * stages).max(1)).enumerate() {
            let begin = step as f64 * self.dt;
            let inflow_time = system.inflow_time(begin, self.dt);
            for (f, field) in system.fields.iter().enumerate() {
                let a = &field.operator;
                let slot = |node: usize| self.slots[f * self.nodes() + node] - 1;
                system.fixed_values(f, begin + self.dt, &mut fixed);
                system.inflow_values(f, inflow_time, &mut inflow);
                for (s, Stage { plan, .. }) in self.stages[f].iter().enumerate() {
                    for (&(node, _), value) in a.fixed.iter().zip(&fixed) {
                        let share = if plan.midway { 0.5 } else { 1.0 };
                        table[slot(node) * stages + s] += share * value;
                    }
                    for (from, value) in a.inflow.iter().zip(&inflow) {
                        let share = plan.inflow[from.axis] * from.weight;
                        table[slot(from.node) * stages + s] += share * value;
                    }
                }
            }
        }
        table
    }
}

impl FieldKernel for Described {
    fn source(&self, near: bool) -> Cow<'static, str> {
        let mut source = include_str!("wgsl/described.wgsl").to_owned();
        if !near {
            source += "fn begin(here_at: u32) {}\n";
        }
        Writer {
            kernel: self,
            source: &mut source,
        }
        .write();
        source.into()
    }

    fn keeps_field_in_pool(&self, room: usize) -> bool {
        // The fields, what a stage makes of them, and the forcing; some for the network.
        let needed = (2 * self.fields() + self.pushed.len()) * self.nodes();
        needed <= room.saturating_sub(512)
    }

    fn kept(&self) -> usize {
        let [middles, ends] = self.kept_fields();
        (middles + ends) * self.fields() * self.nodes()
    }

    fn rounds(&self, threads: usize) -> usize {
        let each = self.nodes().div_ceil(threads);
        let stages = self.stages.iter().flatten();
        let solving: usize = stages.map(|stage| each * (stage.width + 2)).sum();
        self.substeps * (solving + 4 * each)
    }

    fn varying(&self, form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        let system = System::of(form);
        let (mut mixing, mut inverses) = (Vec::new(), Vec::new());
        for (field, stages) in system.fields.iter().zip(&self.stages) {
            for stage in stages {
                let m = Matrices::new(&field.operator, &stage.plan);
                let lines = &stage.mixing;
                alike(form, lines, &[&m.own, &m.before, &m.after, &m.share])?;
                lines.write(COLUMNS, &mut mixing, |line| m.mixing(lines, line));
                if !stage.solved {
                    if !field.operator.is_idle() {
                        return Err(uncovered(form));
                    }
                    continue;
                }
                let (lines, width) = (&stage.inverse, stage.width);
                alike(form, lines, &[&m.lower, &m.diagonal, &m.upper])?;
                let n = lines.length();
                let mut counts = 0;
                for transposed in [false, true] {
                    lines.write(width, &mut inverses, |line| {
                        let inverse = m.inverse(lines, line);
                        counts = counts.max(width_of(&inverse, n, stage.ring, TOLERABLE));
                        let row = |k: usize| {
                            let first = first_column(n, width, stage.ring, k);
                            let value = move |c: usize| match transposed {
                                false => k * n + (first + c) % n,
                                true => (first + c) % n * n + k,
                            };
                            (0..width).map(value)
                        };
                        (0..n).flat_map(row).map(|at| inverse[at]).collect()
                    });
                }
                if counts > width {
                    return Err(uncovered(form));
                }
            }
        }
        let mut varying: Vec<Varying> = (COEFFICIENTS.iter().zip(form.physics.iter()))
            .map(|(name, &value)| Varying::Number(name, value))
            .take(form.coefficients.len())
            .collect();
        varying.extend([
            Varying::Table("mixing", mixing),
            Varying::Table("inverse", inverses),
            Varying::Table("beyond", self.beyond(&system)),
        ]);
        Ok(varying)
    }

    fn cover(&mut self, form: &Problem) {
        self.take_in(form);
        // Lines that differ in between do so half-way.
        let mut between = form.physics;
        for (x, usual) in between.iter_mut().zip(self.problem.physics.iter()) {
            *x = 0.5 * (*x + usual);
        }
        if let Ok(between) = form.with_coefficients(between) {
            self.take_in(&between);
        }
    }

    fn declare(&self, shader: &mut Declaration) {
        let near = shader.near();
        let (values, nodes) = (self.slots.len(), self.nodes());
        let grid = shader.problem().grid;
        let [middles, _] = self.kept_fields();
        shader.flag("NEAR", near);
        shader.number("SPACING_0", grid.spacing(0));
        shader.number("SPACING_1", grid.spacing(1));
        shader.number("SOLVER_DT", self.dt);
        shader.count("SUBSTEPS", self.substeps);
        shader.count("MIDDLES", middles);
        shader.count("STAGES", self.stage_count());
        shader.count("SLOTS", self.slot_count());
        shader.count("PUSHES", self.system.kit().pushed().count());
        shader.flag("EDGES_CHANGE", self.system.edges_change());
        let slots: Vec<f64> = self.slots.iter().map(|&slot| slot as f64).collect();
        shader.table("SLOTS", &slots);
        shader.table("REST", &self.rest());
        let kinds = |kinds: &Kinds| -> Vec<f64> {
            assert!(kinds.of_line.iter().all(|&kind| kind < kinds.lines.len()));
            kinds.of_line.iter().map(|&kind| kind as f64).collect()
        };
        for (f, stages) in self.stages.iter().enumerate() {
            for (s, stage) in stages.iter().enumerate() {
                shader.table(&format!("MIXING_KIND_{f}_{s}"), &kinds(&stage.mixing));
                shader.table(&format!("INVERSE_KIND_{f}_{s}"), &kinds(&stage.inverse));
            }
        }
        let room = |here: bool, size: usize| if here { size } else { 0 };
        let pushes = self.pushed.len() * nodes;
        shader.in_pool("WORK", room(near, values));
        shader.in_pool("PUSH", room(near, pushes));
        for (name, size) in [
            ("FIELD", values),
            ("G_FIELD", values),
            ("WORK", values),
            ("PUSH", pushes),
        ] {
            shader.in_scratch(name, room(!near, size));
        }
        let (agents, [rows, columns]) = (shader.agents(), grid.points);
        let spread = match grid.axes {
            1 => 2 * shader.lanes(),
            _ => 3 * rows,
        };
        shader.in_scratch("KERNELS", agents * (rows + columns));
        shader.in_scratch("SPREAD", agents * spread);
    }
}

/// Lines that share rows must be alike in every form: one in which they are not would be computed as if it
/// were another.
fn alike(form: &Problem, lines: &Kinds, values: &[&Vec<f64>]) -> Result<(), NotImplemented> {
    if lines.single() {
        return Ok(());
    }
    let mut finer = lines.clone();
    finer.refine(values);
    match finer.lines.len() == lines.lines.len() {
        true => Ok(()),
        false => Err(uncovered(form)),
    }
}

/// A form whose lines are not as those at the ends of its coefficients' ranges made expect.
fn uncovered(form: &Problem) -> NotImplemented {
    NotImplemented {
        part: "the GPU kernels",
        form: format!(
            "{}: its coefficients change what lines of the grid have in common in a way that the ends of their \
             ranges do not show",
            form.title()
        ),
        remedy: "draw coefficients from other ranges, or train with --backend flex",
    }
}
