//! The kernels' source for one loop: sizes become constants, each dense layer a product of its own.

use super::spec::LoopSpec;
use super::{Declaration, FieldKernel, Varying};
use crate::adjoint::motion::KEEP_OUT_MARGIN;
use crate::loss::{ORDER_FLOOR, TERMS, Term, late_steps};
use crate::policy::{GAIN, LEAK};
use crate::trial::OtherNoise;
use agent_core::policy::Fusion;
use problem::{Cells, Drives, NotImplemented};
use std::fmt::{Display, Write};

/// Numbers that an episode begins with: delay, sensor noise, actuator noise, seed, agents, its first row.
pub const CONDITIONS: usize = 7;
/// Stretches that a row's sum of squares is cut into.
const PARTS: usize = 8;
/// Most agents that run through the network together.
const MOST_ROWS: usize = 32;
/// The same where an episode has several workgroups.
const SPREAD_ROWS: usize = 8;
/// Most rows that one thread of a product works on.
const MOST_ROWS_PER_THREAD: usize = 8;

/// The kernels of a closed loop and what they need to know about their buffers.
#[derive(Debug, Clone)]
pub struct Shader {
    /// WGSL.
    pub source: String,
    /// Entry points that take episodes on by a portion of the horizon one after the other, and the
    /// workgroups of each for one episode.
    pub forward: Vec<(&'static str, usize)>,
    /// The same for the way back.
    pub backward: Vec<(&'static str, usize)>,
    /// Whether such a portion is one step, whatever the GPU's patience.
    pub step_by_step: bool,
    /// Constant matrices.
    pub tables: Vec<f32>,
    /// Where things are in a row of the trace and of the deltas.
    pub rows: Rows,
    /// Values per episode of its input.
    pub episode: usize,
    /// Values of one state: fields, then positions, then what the field's kernel keeps.
    pub state: usize,
    /// Values per episode of room besides.
    pub scratch: usize,
    /// Values of memory that a workgroup shares.
    pub pool: usize,
    /// Rounds of the field's loops in one step, where they may be many.
    pub rounds: usize,
}

/// What the network leaves behind per agent and step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Values in a row of the trace.
    pub trace: usize,
    /// Inputs of each layer in a row of the trace, in the order of [`Shape::layers`](crate::policy::Shape::layers).
    pub inputs: [usize; 6],
    /// Ends of branch and trunk in a row of the trace.
    pub joined: usize,
    /// Values in a row of the deltas.
    pub delta: usize,
    /// Gradients before each layer's activation in a row of the deltas.
    pub outputs: [usize; 6],
}

/// Lays regions out one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout(usize);

impl Layout {
    pub(super) fn take(&mut self, size: usize) -> usize {
        let at = self.0;
        self.0 += size;
        at
    }
}

/// WGSL under construction.
#[derive(Debug, Default)]
pub(super) struct Source(String);

impl Source {
    pub(super) fn line(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("strings take all");
    }
    pub(super) fn count(&mut self, name: &str, value: usize) {
        self.line(format_args!("const {name}: u32 = {value}u;"));
    }
    pub(super) fn number(&mut self, name: &str, value: f64) {
        self.line(format_args!("const {name}: f32 = {:?}f;", value as f32));
    }
    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.line(format_args!("const {name}: bool = {value};"));
    }
    /// A function from an axis to its number.
    fn per_axis(&mut self, name: &str, [first, second]: [f64; 2]) {
        let (first, second) = (first as f32, second as f32);
        self.line(format_args!(
            "fn {name}(axis: u32) -> f32 {{ return select({first:?}f, {second:?}f, axis == 1u); }}"
        ));
    }
}

impl Shader {
    /// For workgroups of `threads` threads that share up to `memory` values.
    pub fn new(
        spec: &LoopSpec,
        field: &dyn FieldKernel,
        threads: usize,
        memory: usize,
    ) -> Result<Self, NotImplemented> {
        let mut source = Source::default();
        let mut tables = Vec::new();
        let rows = Rows::new(spec);
        let (agents, axes) = (spec.agents, spec.axes());
        let values = spec.problem.state_len();

        source.count("THREADS", threads);
        constants(&mut source, spec);
        discs_and_frequencies(&mut source, &mut tables, spec);
        rows.write(&mut source, spec);
        source.count("SWARM", CONDITIONS - 2);
        source.count("FIRST_ROW", CONDITIONS - 1);
        let varying = field.varying(&spec.problem)?;
        let form = match spec.corners.is_empty() {
            true => constant(&mut source, &mut tables, &varying),
            false => drawn(&mut source, &varying),
        };
        let mut episode = Layout(CONDITIONS);
        for (name, size) in [
            ("SHARES", TERMS),
            ("PULLS", TERMS),
            ("INITIAL", values),
            ("TARGET", values),
            ("GOAL", spec.goals() * values),
            ("COURSE", spec.goals() * (spec.horizon + 1)),
            ("PUSHES", spec.pushes() * values),
            ("STRENGTH", spec.pushes() * spec.horizon),
            ("FORM", form),
            ("START", agents * axes),
            ("DEATH", agents),
            ("CELLS", agents * axes),
            ("PLACED", agents * field.placed()),
        ] {
            source.count(&format!("{name}_IN_EPISODE"), episode.take(size));
        }
        source.count("EPISODE", episode.0);
        source.count("PLACED", field.placed());
        let kept = values + agents * axes;
        let state = kept + field.kept();
        source.count("KEPT", kept);
        source.count("STATE", state);

        // The pool: what lasts for an episode, then what lasts for a phase.
        let people = agents * (5 * axes + spec.shape.actions + 1);
        let near = field.keeps_field_in_pool(memory.saturating_sub(people));
        let held = if near { values } else { 0 };
        let (mut forward, mut backward) = (Layout(0), Layout(0));
        source.count("FIELD_AT", forward.take(held));
        source.count("POSITION_AT", forward.take(agents * axes));
        source.count("ACTION_AT", forward.take(agents * spec.shape.actions));
        // What the backward pass carries from step to step comes first.
        let carry = held + 2 * agents * axes;
        source.count("CARRY", carry);
        source.count("CARRY_AT", 0);
        source.count("G_FIELD_AT", backward.take(held));
        source.count("G_POSITION_AT", backward.take(agents * axes));
        source.count("G_CHANGE_AT", backward.take(agents * axes));
        source.count("G_VELOCITY_AT", backward.take(agents * axes));
        source.count("G_FORCE_AT", backward.take(agents));
        let phase = Layout(forward.0.max(backward.0).next_multiple_of(4));

        let mut work = phase;
        let mut scratch = Layout(carry);
        let mut declaration = Declaration {
            source: &mut source,
            tables: &mut tables,
            work: &mut work,
            scratch: &mut scratch,
            spec,
            threads,
            near,
        };
        declaration.common();
        field.declare(&mut declaration);
        let survey = survey(spec).iter().sum::<usize>();
        let most_rows = match field.strips() {
            None => MOST_ROWS,
            Some(_) => SPREAD_ROWS,
        };
        let rows_in_pool = tile_rows(spec, memory.saturating_sub(phase.0 + survey), most_rows);
        let tiles = agents.div_ceil(rows_in_pool);
        source.count("ROWS", rows_in_pool);
        source.count("TILES", tiles);
        let network = network_products(&mut source, phase, spec, rows_in_pool, threads);

        let pool = work.0.max(network.0).max(threads);
        source.count("POOL", pool);
        source.count("MARKS_IN_SCRATCH", scratch.take(spec.horizon * TERMS));
        if field.strips().is_some() {
            let pulled = scratch.take(agents * spec.shape.features);
            source.count("PULLED_IN_SCRATCH", pulled);
        }
        source.count("SCRATCH", scratch.0);
        for part in [
            include_str!("wgsl/loop.wgsl"),
            match field.strips() {
                None => include_str!("wgsl/loop_whole.wgsl"),
                Some(_) => include_str!("wgsl/loop_spread.wgsl"),
            },
            include_str!("wgsl/terms.wgsl"),
            include_str!("wgsl/noise.wgsl"),
            include_str!("wgsl/score.wgsl"),
            include_str!("wgsl/network.wgsl"),
            match axes {
                1 => include_str!("wgsl/window_line.wgsl"),
                _ => include_str!("wgsl/window_plane.wgsl"),
            },
            match (axes, field.strips()) {
                (2, None) => include_str!("wgsl/window_plane_adjoint.wgsl"),
                _ => "",
            },
            match (near, field.strips()) {
                (true, _) => include_str!("wgsl/field_near.wgsl"),
                (false, None) => include_str!("wgsl/field_far.wgsl"),
                (false, Some(_)) => "",
            },
            &field.source(near),
        ] {
            source.line(part);
        }
        let (forward, backward) = match field.strips() {
            None => (vec![("forward", 1)], vec![("backward", 1)]),
            Some(strips) => (
                vec![("decide_step", tiles), ("advance_step", strips)],
                vec![("advance_back", strips), ("decide_back", tiles)],
            ),
        };
        Ok(Self {
            source: source.0,
            forward,
            backward,
            step_by_step: field.strips().is_some(),
            tables,
            rows,
            episode: episode.0,
            state,
            scratch: scratch.0,
            pool,
            rounds: field.rounds(threads),
        })
    }
}

/// What changes with coefficients, where all episodes have the same; needs no room in episodes.
fn constant(source: &mut Source, tables: &mut Vec<f32>, varying: &[Varying]) -> usize {
    for item in varying {
        match item {
            Varying::Number(name, value) => source.line(format_args!(
                "fn {name}() -> f32 {{ return {:?}f; }}",
                *value as f32
            )),
            Varying::Table(name, values) => {
                let at = tables.len();
                tables.extend(values.iter().map(|&x| x as f32));
                source.line(format_args!(
                    "fn {name}(k: u32) -> f32 {{ return tables[{at}u + k]; }}"
                ));
            }
        }
    }
    0
}

/// The same where episodes bring their own; returns the room that it takes in an episode.
fn drawn(source: &mut Source, varying: &[Varying]) -> usize {
    let mut form = Layout(0);
    for item in varying {
        let at = form.take(item.values().len());
        source.line(match item {
            Varying::Number(name, _) => {
                format!("fn {name}() -> f32 {{ return given(FORM_IN_EPISODE + {at}u); }}")
            }
            Varying::Table(name, _) => {
                format!("fn {name}(k: u32) -> f32 {{ return given(FORM_IN_EPISODE + {at}u + k); }}")
            }
        });
    }
    form.0
}

/// The fields that agents see besides: where they stand, and what their errors and noise are multiplied by.
fn others(source: &mut Source, spec: &LoopSpec) {
    let problem = &spec.problem;
    let noises = OtherNoise::of(problem);
    let fields = problem
        .also_seen()
        .iter()
        .map(|field| field * problem.grid.len());
    let noise =
        |of: fn(OtherNoise) -> f64| -> Vec<f64> { noises.iter().map(|&noise| of(noise)).collect() };
    source.count("OTHERS", fields.len());
    source.line(chosen(
        "other_field",
        "u32",
        fields.map(|at| format!("{at}u")),
    ));
    let numbers: [(&str, Vec<f64>); 3] = [
        ("other_gain", spec.sight.others.clone()),
        (
            "other_share",
            noise(|noise| match noise {
                OtherNoise::Times(share) => share,
                OtherNoise::Always(_) => 0.0,
            }),
        ),
        (
            "other_always",
            noise(|noise| match noise {
                OtherNoise::Always(deviation) => deviation,
                OtherNoise::Times(_) => 0.0,
            }),
        ),
    ];
    for (name, values) in numbers {
        let values = values
            .into_iter()
            .map(|value| format!("{:?}", value as f32));
        source.line(chosen(name, "f32", values));
    }
}

/// A function that returns one of these values by its number; the first type's zero beyond them.
fn chosen(name: &str, kind: &str, values: impl Iterator<Item = String>) -> String {
    let cases = values.enumerate();
    let cases: String = cases
        .map(|(k, value)| format!("case {k}u: {{ return {value}; }} "))
        .collect();
    format!(
        "fn {name}(k: u32) -> {kind} {{ switch k {{ {cases}default: {{ return {kind}(0); }} }} }}"
    )
}

/// Sizes, limits and the constants of the score.
fn constants(source: &mut Source, spec: &LoopSpec) {
    let problem = &spec.problem;
    let (agents, horizon, grid) = (spec.agents, spec.horizon, &problem.grid);
    source.count("AXES", spec.axes());
    source.count("AGENTS", agents);
    source.count("HORIZON", horizon);
    source.count("CELLS", grid.len());
    source.count("VALUES", problem.state_len());
    source.count("SEEN_FIELD", problem.seen_field() * grid.len());
    others(source, spec);
    source.count("GOALS", spec.goals());
    source.count("POINTS_0", grid.points[0]);
    source.count("POINTS_1", grid.points[1]);
    source.flag("PERIODIC", grid.is_closed());
    source.number("DT", problem.control_interval);
    source.count("WINDOW", spec.sight.window);
    source.count("APART", problem.sensing.spacing);
    source.count("FEATURES", spec.shape.features);
    source.count("MEMORY", spec.shape.memory);
    source.number("LEAK", LEAK.into());
    source.number("GAIN", GAIN.into());
    source.count("INPUTS", spec.shape.inputs());
    source.count("OUTPUTS", spec.shape.outputs());
    source.count("FOURIER", spec.shape.fourier());
    source.count("FREQUENCIES", spec.shape.frequencies.len());
    source.count("FORCES", spec.forces());
    source.count("DIRECTIONS", spec.directions());
    source.count("ACTIONS", spec.shape.actions);
    source.count("BRANCH_1", spec.shape.branch[0]);
    source.count("BRANCH_2", spec.shape.branch[1]);
    source.count("TRUNK_1", spec.shape.trunk[0]);
    source.count("TRUNK_2", spec.shape.trunk[1]);
    source.count("JOINED", spec.shape.branch[1] + spec.shape.trunk[1]);
    source.flag("MULTIPLIED", multiplied(spec) > 0);
    source.count("FUSE", spec.shape.fuse);
    source.count("PARTS", PARTS);
    source.number("FORCE_MAX", problem.actuation.force_max);
    source.number("VELOCITY_MAX", problem.actuation.velocity_max);
    source.flag("ROUND", problem.actuation.drives == Drives::Flow);
    source.number("ERROR_GAIN", spec.sight.error_gain);
    source.number("SLOPE_GAIN", spec.sight.slope_gain);
    source.number("WIDE_GAIN", spec.sight.wide_gain);
    let [down, along] = spec.sight.wide.unwrap_or([0; 2]);
    source.count("WIDE", down * along);
    source.count("WIDE_ALONG", along.max(1));
    source.count("BLOCK_0", grid.points[0] / down.max(1));
    source.count("BLOCK_1", grid.points[1] / along.max(1));

    let [low, high] = problem.reach;
    let margin = problem.loss.margin;
    source.per_axis("reach_low", low);
    source.per_axis("reach_high", high);
    source.per_axis(
        "reach_scale",
        [0, 1].map(|axis| match high[axis] > low[axis] {
            true => 1.0 / (high[axis] - low[axis]),
            false => 0.0,
        }),
    );
    source.per_axis("free_low", low.map(|x| x + margin));
    source.per_axis("free_high", high.map(|x| x - margin));
    source.per_axis("grid_low", grid.low);
    source.per_axis("grid_extent", [0, 1].map(|axis| grid.extent(axis)));
    let cells = |points: usize| match problem.sensing.cells {
        Cells::Intervals => points - 1,
        Cells::Points => points,
    };
    source.per_axis("grid_cells", grid.points.map(|points| cells(points) as f64));
    source.line(
        "fn cell_along(x: f32, axis: u32) -> u32 {
            let unit = clamp((x - grid_low(axis)) / grid_extent(axis), 0.0, 1.0);
            return min(u32(unit * grid_cells(axis)), select(POINTS_0, POINTS_1, axis == 1u) - 1u);
        }",
    );

    source.number("VELOCITY_EFFORT", problem.loss.velocity_effort);
    source.number("SAFE_DISTANCE", problem.loss.safe_distance);
    source.number("ORDER_FLOOR", ORDER_FLOOR);
    source.count("LATE_STEPS", late_steps(horizon));
    source.count("SCORED_FROM", problem.scoring.from);
    source.count("TERMS", TERMS);
    for term in Term::ALL {
        source.count(&term.name().to_uppercase(), term as usize);
    }
}

fn discs_and_frequencies(source: &mut Source, tables: &mut Vec<f32>, spec: &LoopSpec) {
    let problem = &spec.problem;
    source.count("FREQUENCIES_IN_TABLES", tables.len());
    tables.extend(spec.shape.frequencies.iter().map(|&f| f as f32));
    source.line("fn frequency(k: u32) -> f32 { return tables[FREQUENCIES_IN_TABLES + k]; }");
    source.count("DISCS", problem.keep_out.len());
    source.count("DISCS_IN_TABLES", tables.len());
    for disc in problem.keep_out {
        let [x, y] = disc.centre;
        let rim = disc.radius * (1.0 + KEEP_OUT_MARGIN);
        let reach = disc.radius + problem.loss.obstacle_margin;
        tables.extend([x, y, rim, reach].map(|x| x as f32));
    }
    source.line(
        "fn disc_centre(k: u32) -> vec2<f32> {
            return vec2(tables[DISCS_IN_TABLES + 4u * k], tables[DISCS_IN_TABLES + 4u * k + 1u]);
        }
        fn disc_rim(k: u32) -> f32 { return tables[DISCS_IN_TABLES + 4u * k + 2u]; }
        fn disc_reach(k: u32) -> f32 { return tables[DISCS_IN_TABLES + 4u * k + 3u]; }",
    );
}

/// Products of branch and trunk, where they are multiplied.
fn multiplied(spec: &LoopSpec) -> usize {
    match spec.shape.fusion {
        Fusion::Concatenate => 0,
        Fusion::Multiply => spec.shape.branch[1],
    }
}

impl Rows {
    /// The parts that layers read come first; fusion reads the end of the branch and of the trunk
    /// as one, or their products.
    fn new(spec: &LoopSpec) -> Self {
        let ([b1, b2], [t1, t2]) = (spec.shape.branch, spec.shape.trunk);
        let mut at = Layout(0);
        let [window, y_1, joined, product, fourier, trunk_1, fuse] = [
            spec.shape.inputs(),
            b1,
            b2 + t2,
            multiplied(spec),
            spec.shape.fourier(),
            t1,
            spec.shape.fuse,
        ]
        .map(|w| at.take(w));
        let fused = if multiplied(spec) > 0 {
            product
        } else {
            joined
        };
        let mut out = Layout(0);
        let [d_b1, d_b2, d_t1, d_t2, d_fuse, d_head] =
            spec.shape.layers().map(|[_, outputs]| out.take(outputs));
        Self {
            trace: at.0 + spec.shape.outputs() + spec.shape.actions + b1 + b2 + 2,
            joined,
            inputs: [window, y_1, fourier, trunk_1, fused, fuse],
            // Behind the layers' the gradient of the memory before the step.
            delta: out.0 + spec.shape.memory,
            outputs: [d_b1, d_b2, d_t1, d_t2, d_fuse, d_head],
        }
    }

    fn write(&self, source: &mut Source, spec: &LoopSpec) {
        let [b1, b2] = spec.shape.branch;
        let [window, y_1, fourier, trunk_1, fused, fuse] = self.inputs;
        let mut at = Layout(fuse + spec.shape.fuse);
        source.count("TRACE", self.trace);
        source.count("DELTA", self.delta);
        for (name, offset) in [
            ("WINDOW", window),
            ("Y_1", y_1),
            ("FOURIER", fourier),
            ("TRUNK_1", trunk_1),
            ("JOINED", self.joined),
            ("PRODUCT", fused),
            ("FUSE", fuse),
            ("OUTPUT", at.take(2 * spec.shape.memory)),
            ("DECIDED", at.take(spec.shape.actions)),
            ("ACTION", at.take(spec.shape.actions)),
            ("S_1", at.take(b1)),
            ("S_2", at.take(b2)),
            ("NORM_1", at.take(1)),
            ("NORM_2", at.take(1)),
        ] {
            source.count(&format!("{name}_IN_TRACE"), offset);
        }
        for (name, offset) in LAYERS.into_iter().zip(self.outputs) {
            source.count(&format!("{}_IN_DELTA", name.to_uppercase()), offset);
        }
        let [.., head] = self.outputs;
        source.count("DECIDED_IN_DELTA", head + 2 * spec.shape.memory);
        source.count("MEMORY_IN_DELTA", self.delta - spec.shape.memory);
    }
}

/// Names of [`Shape::layers`](crate::policy::Shape::layers).
const LAYERS: [&str; 6] = ["branch_1", "branch_2", "trunk_1", "trunk_2", "fuse", "head"];

/// Values in the pool that one agent takes on its way through the network.
fn pool_row(spec: &LoopSpec) -> usize {
    let ([b1, b2], [t1, t2]) = (spec.shape.branch, spec.shape.trunk);
    spec.shape.inputs()
        + spec.shape.fourier()
        + 2 * b1.max(b2)
        + t1
        + (b2 + t2)
        + multiplied(spec)
        + spec.shape.fuse
        + PARTS
        + spec.shape.outputs()
        + spec.axes()
}

/// Values of the coarse view of the whole domain, and of the sums along rows that these are made of.
fn survey(spec: &LoopSpec) -> [usize; 2] {
    let [_, along] = spec.sight.wide.unwrap_or([0; 2]);
    [spec.sight.coarse(), spec.problem.grid.points[0] * along]
}

/// Agents that run through the network together: as many as fit, in equal tiles.
fn tile_rows(spec: &LoopSpec, memory: usize, most_rows: usize) -> usize {
    let most = (memory / pool_row(spec)).clamp(1, most_rows);
    let most = if most > 4 { most / 4 * 4 } else { most };
    let each = spec.agents.div_ceil(spec.agents.div_ceil(most));
    let even = if each > 4 {
        each.next_multiple_of(4)
    } else {
        each
    };
    even.min(most)
}

/// Regions of the network and the products of its layers; returns where the regions end.
fn network_products(
    source: &mut Source,
    mut at: Layout,
    spec: &LoopSpec,
    rows: usize,
    threads: usize,
) -> Layout {
    let ([b1, b2], [t1, t2]) = (spec.shape.branch, spec.shape.trunk);
    let mut region = |source: &mut Source, name: &str, width: usize| {
        let start = at.take(rows * width);
        source.count(&format!("{name}_AT"), start);
        start
    };
    let window = region(source, "WINDOW", spec.shape.inputs());
    let fourier = region(source, "FOURIER", spec.shape.fourier());
    let _ = region(source, "H", b1.max(b2));
    let y = region(source, "Y", b1.max(b2));
    let trunk = region(source, "TRUNK", t1);
    let joined = region(source, "JOINED", b2 + t2);
    let product = region(source, "PRODUCT", multiplied(spec));
    let fused = if multiplied(spec) > 0 {
        product
    } else {
        joined
    };
    let fuse = region(source, "FUSE", spec.shape.fuse);
    let _ = region(source, "PARTS", PARTS);
    let tile = region(source, "D_TILE", spec.shape.outputs());
    let _ = region(source, "SEEN", spec.axes());
    let [wide, wide_rows] = survey(spec);
    source.count("WIDE_AT", at.take(wide));
    source.count("WIDE_ROWS_AT", at.take(wide_rows));

    let mut weights = 0;
    let forward = [window, y, fourier, trunk, fused, fuse];
    // Where each layer's adjoint finds the gradient before the layer's activation.
    let backward = [y, y, trunk, joined, fuse, tile];
    for (k, [inputs, outputs]) in spec.shape.layers().into_iter().enumerate() {
        let name = LAYERS[k];
        let product = Product {
            name: name.to_owned(),
            rows,
            inputs,
            outputs,
            x: forward[k],
            weights,
            bias: Some(weights + inputs * outputs),
        };
        product.write(source, threads);
        // The transposed matrices follow all parameters, at the same offsets.
        let adjoint = Product {
            name: format!("{name}_adjoint"),
            rows,
            inputs: outputs,
            outputs: inputs,
            x: backward[k],
            weights: spec.shape.parameters() + weights,
            bias: None,
        };
        adjoint.write(source, threads);
        weights += inputs * outputs + outputs;
    }
    at
}

/// `x W + b` for the rows of a tile, x being in the pool.
struct Product {
    name: String,
    rows: usize,
    inputs: usize,
    outputs: usize,
    x: usize,
    weights: usize,
    bias: Option<usize>,
}

impl Product {
    /// Rows per thread: as many as leave no thread idle.
    fn rows_per_thread(&self, threads: usize) -> usize {
        (1..=MOST_ROWS_PER_THREAD)
            .rev()
            .find(|&each| {
                self.rows.is_multiple_of(each) && self.rows / each * self.outputs >= threads
            })
            .unwrap_or(1)
    }

    fn write(&self, source: &mut Source, threads: usize) {
        let Self {
            name,
            rows,
            inputs,
            outputs,
            x,
            weights,
            bias,
        } = self;
        let each = self.rows_per_thread(threads);
        let items = rows / each * outputs;
        source.line(format_args!(
            "fn multiply_{name}() {{
    for (var item = tid; item < {items}u; item += THREADS) {{
        let o = item % {outputs}u;
        let r = item / {outputs}u * {each}u;
        let x = {x}u + r * {inputs}u;"
        ));
        let start = match bias {
            Some(bias) => format!("parameters[{bias}u + o]"),
            None => "0.0".to_owned(),
        };
        for k in 0..each {
            source.line(format_args!("        var sum_{k} = {start};"));
        }
        let unroll = [8, 4, 2, 1]
            .into_iter()
            .find(|u| inputs.is_multiple_of(*u))
            .unwrap_or(1);
        source.line(format_args!(
            "        for (var i = 0u; i < {inputs}u; i += {unroll}u) {{"
        ));
        for u in 0..unroll {
            source.line(format_args!(
                "            let w_{u} = parameters[{weights}u + (i + {u}u) * {outputs}u + o];"
            ));
        }
        for k in 0..each {
            for u in 0..unroll {
                let skip = k * inputs + u;
                source.line(format_args!(
                    "            sum_{k} = fma(w_{u}, pool[x + i + {skip}u], sum_{k});"
                ));
            }
        }
        source.line("        }");
        for k in 0..each {
            source.line(format_args!("        {name}_out(r + {k}u, o, sum_{k});"));
        }
        source.line("    }\n}");
    }
}
