//! The closed loop as compute kernels: their source, their constants and tables, no GPU yet.
//!
//! - [`FieldKernel`]: what a problem's field does, as WGSL with its constants: the part that an
//!   [`Entry`](crate::entry::Entry) brings. A file for each of the published ones: [`line`](mod@line), [`ring`],
//!   [`plate`], [`room`], [`torus`]; [`described`] is for fields that files describe.
//! - [`spec`]: what a loop is made of; [`shader`]: the kernels' source for one loop, whose sizes become
//!   constants ([`wgsl/loop.wgsl`](./wgsl/loop.wgsl) is the place to start reading).
//!
//! Nothing here needs a GPU or its libraries; `gpu` compiles and runs what is made here.

mod banded;
pub mod described;
pub mod line;
pub mod plate;
pub mod ring;
pub mod room;
pub mod shader;
pub mod spec;
pub mod torus;

pub use spec::LoopSpec;

use problem::{NotImplemented, Problem};
use shader::{Layout, Source};
use std::borrow::Cow;
use std::fmt::Debug;

/// Makes the kernels of a problem's field, or refuses by name.
pub type MakeKernel = fn(&Problem) -> Result<Box<dyn FieldKernel>, NotImplemented>;

/// What makes the kernels of an entry's field.
#[derive(Debug, Clone, Copy)]
pub struct Kernels(pub MakeKernel);

/// What a field does in one control interval, and the adjoint of that, as WGSL.
///
/// The source defines the functions that `wgsl/loop.wgsl` calls; the constants that they read are
/// those of [`declare`](Self::declare) and of the loop.
pub trait FieldKernel: Debug + Send + Sync {
    /// The functions, for a field that stays in the pool ([`Self::keeps_field_in_pool`]) or does not.
    fn source(&self, near: bool) -> Cow<'static, str>;

    /// Over how many workgroups the field of an episode is spread, if one is too few for it: then each step is
    /// dispatches of its own (`wgsl/loop_spread.wgsl`), and nothing stays in the pool.
    fn strips(&self) -> Option<usize> {
        None
    }

    /// Whether the field is small enough to stay in the memory that a workgroup shares, where that has room
    /// for so many values.
    fn keeps_field_in_pool(&self, _room: usize) -> bool {
        true
    }

    /// Values that it keeps of every step for the way back: from `KEPT` on in a state.
    fn kept(&self) -> usize {
        0
    }

    /// Rounds that a thread's loops take in its part of one step, where they may be many.
    fn rounds(&self, _threads: usize) -> usize {
        0
    }

    /// The one number of threads that it works with, if there is one.
    fn needs_threads(&self) -> Option<usize> {
        None
    }

    /// Values that it needs to know about every agent that stays where it is: `placed(agent, k)` in the
    /// kernel.
    fn placed(&self) -> usize {
        0
    }

    /// These values for an agent at `place`.
    fn place(&self, _problem: &Problem, _place: [f64; 2]) -> Vec<f64> {
        Vec::new()
    }

    /// What changes with the coefficients of the equation, for a form of the problem that it
    /// [covers](Self::cover): always the same numbers and tables, in the same order and size. Without
    /// any, coefficients cannot be drawn. Refuses a form that differs where none of those covered did.
    fn varying(&self, _form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        Ok(Vec::new())
    }

    /// Makes its tables large enough for another form.
    fn cover(&mut self, _form: &Problem) {}

    /// Its constants, tables and room.
    fn declare(&self, shader: &mut Declaration);
}

/// What a kernel reads by a function of that name.
#[derive(Debug, Clone, PartialEq)]
pub enum Varying {
    /// `name()`
    Number(&'static str, f64),
    /// `name(k)`
    Table(&'static str, Vec<f64>),
}

impl Varying {
    /// All of it.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Number(_, value) => std::slice::from_ref(value),
            Self::Table(_, values) => values,
        }
    }
}

/// That kernels have the coefficients of one form among their constants.
pub fn no_family(problem: &Problem) -> NotImplemented {
    NotImplemented {
        part: "the GPU kernels",
        form: format!("{} with coefficients that episodes draw", problem.name),
        remedy: "give each coefficient one value, or train with --backend flex",
    }
}

/// That a form of a problem has no kernels.
pub fn no_kernels(problem: &Problem) -> NotImplemented {
    NotImplemented {
        part: "the GPU kernels",
        form: format!(
            "{} with {} solver steps per action",
            problem.described(),
            problem.substeps
        ),
        remedy: "train with --backend flex, or with --backend wgpu where there is a tensor form",
    }
}

/// Refuses what kernels of one solver step on the sensors' grid cannot do.
pub fn one_step(problem: &Problem) -> Result<(), NotImplemented> {
    match problem.grid == problem.sensors && problem.substeps == 1 {
        true => Ok(()),
        false => Err(no_kernels(problem)),
    }
}

/// Where a [`FieldKernel`] says what it needs.
#[derive(Debug)]
pub struct Declaration<'a> {
    source: &'a mut Source,
    tables: &'a mut Vec<f32>,
    work: &'a mut Layout,
    scratch: &'a mut Layout,
    spec: &'a LoopSpec,
    threads: usize,
    near: bool,
}

impl Declaration<'_> {
    /// The control problem.
    pub fn problem(&self) -> &Problem {
        &self.spec.problem
    }

    /// Most agents in one episode.
    pub fn agents(&self) -> usize {
        self.spec.agents
    }

    /// Steps per episode.
    pub fn horizon(&self) -> usize {
        self.spec.horizon
    }

    /// Values of a field.
    pub fn cells(&self) -> usize {
        self.spec.problem.grid.len()
    }

    /// Whether the field stays in the pool.
    pub fn near(&self) -> bool {
        self.near
    }

    /// Threads of a workgroup.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Threads that share an agent (`LANES` in the kernel).
    pub fn lanes(&self) -> usize {
        (self.threads / self.spec.agents).clamp(1, 16)
    }

    /// A whole number.
    pub fn count(&mut self, name: &str, value: usize) {
        self.source.count(name, value);
    }

    /// A number.
    pub fn number(&mut self, name: &str, value: f64) {
        self.source.number(name, value);
    }

    /// A switch.
    pub fn flag(&mut self, name: &str, value: bool) {
        self.source.flag(name, value);
    }

    /// Constant values among the tables, from `<NAME>_IN_TABLES` on.
    pub fn table(&mut self, name: &str, values: &[f64]) {
        self.count(&format!("{name}_IN_TABLES"), self.tables.len());
        self.tables.extend(values.iter().map(|&x| x as f32));
    }

    /// Room in the pool that a workgroup shares, from `<NAME>_AT` on.
    pub fn in_pool(&mut self, name: &str, size: usize) {
        let at = self.work.take(size);
        self.count(&format!("{name}_AT"), at);
    }

    /// Room per episode besides, from `<NAME>_IN_SCRATCH` on.
    pub fn in_scratch(&mut self, name: &str, size: usize) {
        let at = self.scratch.take(size);
        self.count(&format!("{name}_IN_SCRATCH"), at);
    }

    /// What every field kernel may read.
    fn common(&mut self) {
        let (spacing, width) = {
            let problem = self.problem();
            (problem.grid.spacing(0), problem.actuation.width)
        };
        self.number("SPACING", spacing);
        self.number("FALLOFF", 0.5 / width.powi(2));
        self.count("LANES", self.lanes());
        let weights = self.problem().weights();
        self.flag("WEIGHTED", weights.is_some());
        let roots: Vec<f64> = weights.into_iter().flatten().map(f64::sqrt).collect();
        self.table("ROOTS", &roots);
    }
}
