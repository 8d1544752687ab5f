//! Steps of episodes that have coefficients of their own.

use super::{Batch, FieldStep, Gradients, Interval};
use problem::coefficient::Coefficients;
use problem::{NotImplemented, Problem};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Makes the step of a form of a problem.
pub type MakeStep<T> =
    dyn Fn(&Problem) -> Result<Box<dyn FieldStep<T>>, NotImplemented> + Send + Sync;

/// The step of a problem, and what makes those of the same problem with other coefficients.
pub struct Steps<T> {
    problem: Problem,
    usual: Arc<dyn FieldStep<T>>,
    make: Option<Box<MakeStep<T>>>,
}

impl<T> fmt::Debug for Steps<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} and others of its family", self.usual)
    }
}

impl<T> Steps<T> {
    /// That of the problem alone.
    pub fn new(problem: &Problem, usual: Box<dyn FieldStep<T>>) -> Self {
        Self {
            problem: *problem,
            usual: usual.into(),
            make: None,
        }
    }

    /// With other coefficients what this makes.
    pub fn others(&mut self, make: Box<MakeStep<T>>) {
        self.make = Some(make);
    }

    /// Values per episode that a step leaves for its adjoint.
    pub fn tape_len(&self) -> usize {
        self.usual.tape_len()
    }

    /// Values per episode of room.
    pub fn scratch_len(&self) -> usize {
        self.usual.scratch_len()
    }

    /// The step of episodes with these coefficients, in their order. Steps are made for the occasion, which
    /// costs little beside the hundreds of intervals that each is taken for.
    ///
    /// # Panics
    /// If there are other coefficients than the problem's and nothing makes steps with these, or no step
    /// like the problem's own.
    pub fn of(&self, episodes: impl Iterator<Item = Coefficients>) -> Mixed<T> {
        let mut stretches: Vec<(usize, Coefficients)> = Vec::new();
        for physics in episodes {
            match stretches.last_mut() {
                Some((count, same)) if *same == physics => *count += 1,
                _ => stretches.push((1, physics)),
            }
        }
        let with_step = |(count, physics)| (count, self.step(physics));
        Mixed(stretches.into_iter().map(with_step).collect())
    }

    fn step(&self, physics: Coefficients) -> Arc<dyn FieldStep<T>> {
        if physics == self.problem.physics {
            return self.usual.clone();
        }
        let make = self.make.as_ref().expect("a loop of one form");
        let form = self.problem.with_coefficients(physics);
        let form = form.expect("coefficients of the family");
        let step = make(&form).expect("both ends of the family could be made");
        assert_eq!(
            (step.tape_len(), step.scratch_len()),
            (self.tape_len(), self.scratch_len()),
            "{} takes other steps",
            form.title()
        );
        step.into()
    }
}

/// One control interval of episodes of which neighbours with the same coefficients share a step.
#[derive(Debug)]
pub struct Mixed<T>(Vec<(usize, Arc<dyn FieldStep<T>>)>);

impl<T> Mixed<T> {
    /// Of no episodes.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Every step with the episodes that it is for.
    fn stretches(&self) -> impl Iterator<Item = (Share, &dyn FieldStep<T>)> {
        let all: usize = self.0.iter().map(|(count, _)| count).sum();
        self.0.iter().scan(0, move |end, (count, step)| {
            let of = *end..*end + count;
            *end += count;
            Some((Share { of, all }, &**step))
        })
    }
}

/// Some of the episodes.
struct Share {
    of: Range<usize>,
    all: usize,
}

impl Share {
    fn batch(&self, step: usize) -> Batch {
        Batch {
            episodes: self.of.len(),
            step,
        }
    }

    /// Their part of values that all episodes have the same number of.
    fn within(&self, values: usize) -> Range<usize> {
        let each = values / self.all;
        self.of.start * each..self.of.end * each
    }

    fn part<'a, T>(&self, values: &'a [T]) -> &'a [T] {
        &values[self.within(values.len())]
    }

    fn part_mut<'a, T>(&self, values: &'a mut [T]) -> &'a mut [T] {
        let within = self.within(values.len());
        &mut values[within]
    }
}

impl<T> Mixed<T> {
    /// [`FieldStep::advance`] of all episodes, in control step `number`.
    pub fn advance(
        &self,
        number: usize,
        fields: &[T],
        forcing: &[T],
        next: &mut [T],
        tape: &mut [T],
        scratch: &mut [T],
    ) {
        for (share, step) in self.stretches() {
            step.advance(
                share.batch(number),
                share.part(fields),
                share.part(forcing),
                share.part_mut(next),
                share.part_mut(tape),
                share.part_mut(scratch),
            );
        }
    }

    /// [`FieldStep::adjoint`] of all episodes, in control step `number`.
    pub fn adjoint(&self, number: usize, at: Interval<T>, g: Gradients<T>, scratch: &mut [T]) {
        for (share, step) in self.stretches() {
            let at = Interval {
                fields: share.part(at.fields),
                forcing: share.part(at.forcing),
                next: share.part(at.next),
                tape: share.part(at.tape),
            };
            let g = Gradients {
                next: share.part(g.next),
                fields: share.part_mut(g.fields),
                forcing: share.part_mut(g.forcing),
            };
            step.adjoint(share.batch(number), at, g, share.part_mut(scratch));
        }
    }
}
