//! What a program knows about a problem in order to train on it.
//!
//! A program's problems are one list of [`Entry`]s: `trainer::cli::main` and `agent_sim::cli::main`
//! both take it. The published ones are in [`crate::published`]; `docs/new-problem.md` walks through
//! one of a user's own.

use crate::adjoint::physics::{Differentiable, FieldStep};
use crate::adjoint::real::Real;
use crate::described;
use crate::kernels::Kernels;
use crate::recipe::Settings;
use crate::tensor_step::{TensorForm, TensorStep};
use burn::tensor::Device;
use problem::{Listed, NoProblem, NotImplemented, Problem, Problems, SameName};
use std::path::Path;

/// A problem that can be trained on.
#[derive(Debug)]
pub struct Entry {
    /// What is controlled.
    pub problem: &'static Problem,
    /// What the field does in one control interval, and the adjoint of that.
    pub physics: Physics,
    /// The settings it is trained with.
    pub recipe: Settings,
    /// The same physics as compute kernels, for `--backend gpu`, if somebody wrote them.
    pub kernels: Option<Kernels>,
}

impl Listed for Entry {
    fn problem(&self) -> &'static Problem {
        self.problem
    }
}

impl Listed for &Entry {
    fn problem(&self) -> &'static Problem {
        self.problem
    }
}

/// Differentiable physics, in one or both of two ways: a step with a hand-written adjoint, which is
/// fast, or a step in Burn's tensor operations, which is easy and has Burn's adjoint.
#[derive(Debug, Clone, Copy)]
pub struct Physics {
    by_hand: Option<ByHand>,
    in_tensors: Option<TensorForm>,
}

/// Makes a step with an adjoint from what a problem says.
type Make<T> = fn(&Problem) -> Result<Box<dyn FieldStep<T>>, NotImplemented>;

/// A step with a hand-written adjoint: in f32 to train, in f64 to plan and to compare with finite
/// differences.
#[derive(Debug, Clone, Copy)]
pub struct ByHand {
    pub(crate) single: Make<f32>,
    pub(crate) double: Make<f64>,
}

impl Physics {
    /// A step whose adjoint is written by hand, in both precisions.
    pub const fn by_hand<S: Differentiable<f32>, D: Differentiable<f64>>() -> Self {
        Self {
            by_hand: Some(ByHand {
                single: |problem| Ok(Box::new(S::new(problem)?)),
                double: |problem| Ok(Box::new(D::new(problem)?)),
            }),
            in_tensors: None,
        }
    }

    /// A step in tensor operations.
    pub const fn in_tensors(form: TensorForm) -> Self {
        Self {
            by_hand: None,
            in_tensors: Some(form),
        }
    }

    /// The same with a step in tensor operations besides.
    pub const fn and_in_tensors(self, form: TensorForm) -> Self {
        Self {
            by_hand: self.by_hand,
            in_tensors: Some(form),
        }
    }

    /// Whether there is a step in tensor operations.
    pub fn has_tensor_form(&self) -> bool {
        self.in_tensors.is_some()
    }

    /// The hand-written step of this form of a problem; none where there is none at all.
    pub fn step_by_hand<T: Real>(
        &self,
        problem: &Problem,
    ) -> Option<Result<Box<dyn FieldStep<T>>, NotImplemented>> {
        self.by_hand.map(|made| T::step_by_hand(&made, problem))
    }

    /// The step in single precision: by hand where there is one, else in tensor operations on a device.
    pub fn step(
        &self,
        problem: &Problem,
        device: &Device,
    ) -> Result<Box<dyn FieldStep<f32>>, NotImplemented> {
        match (self.by_hand, self.in_tensors) {
            (Some(made), _) => (made.single)(problem),
            (None, Some(form)) => Ok(Box::new(TensorStep::new(form, problem, device)?)),
            (None, None) => Err(NotImplemented {
                part: "the trainer",
                form: problem.name.to_owned(),
                remedy: "bring a step by hand or in tensor operations",
            }),
        }
    }

    /// The step in tensor operations on a device; none where there is none at all.
    pub fn step_in_tensors(
        &self,
        problem: &Problem,
        device: &Device,
    ) -> Option<Result<TensorStep, NotImplemented>> {
        self.in_tensors
            .map(|form| TensorStep::new(form, problem, device))
    }
}

/// The entries that a program knows.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a>(&'a [&'static Entry]);

impl<'a> Entries<'a> {
    /// Those of a list; refuses two of one name.
    pub fn new(list: &'a [&'static Entry]) -> Result<Self, SameName> {
        Problems::new(list)?;
        Ok(Self(list))
    }

    /// Their problems.
    pub fn problems(&self) -> Problems {
        Problems::new(self.0).expect("no two of one name")
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &'static Entry> + 'a {
        self.0.iter().copied()
    }

    /// The one of that name, or that of a file where the name is a file's.
    pub fn by_name(&self, name: &str) -> Result<&'static Entry, NoProblem> {
        if problem::kit::is_file(name) {
            return Ok(described::entry(problem::kit::load(Path::new(name))?));
        }
        let found = self.iter().find(|entry| entry.problem.name == name);
        found.ok_or_else(|| NoProblem::Unknown {
            asked: name.to_owned(),
            known: (self.iter().map(|entry| entry.problem.name))
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}
