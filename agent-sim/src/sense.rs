//! What an agent is shown: the patch of field and target around its grid cell.

use crate::problem::Problem;
use agent_core::message::{Patch, Span};

/// Cells beyond the window on each side, so that slopes at its rim are those of the whole field.
pub const HALO: usize = 1;

/// What agents of one kind are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Cells of the window.
    pub window: usize,
    /// Whether the target is shown too; agents that steer to zero need none.
    pub target: bool,
}

/// Cuts patches out of a field.
#[derive(Debug, Clone)]
pub struct Eye {
    window: usize,
    field: Vec<f32>,
    target: Vec<f32>,
}

impl Eye {
    /// For agents with this view.
    pub fn new(view: View) -> Self {
        let cells = view.window + 2 * HALO;
        Self {
            window: view.window,
            field: vec![0.0; cells],
            target: vec![0.0; if view.target { cells } else { 0 }],
        }
    }

    /// The patch around an agent at `x`: with the agent in cell `c`, cells
    /// `c − window/2 − 1 ..= c + window/2`.
    ///
    /// Cells beyond a wall hold the wall's value and are not `inside`: the agent leaves them out.
    pub fn look(&mut self, problem: &Problem, field: &[f32], target: &[f32], x: f32) -> Patch<'_> {
        let first = problem.cell_of(x) as isize - (self.window / 2 + HALO) as isize;
        let last = field.len() as isize - 1;
        let cell = |k: usize| (first + k as isize).clamp(0, last) as usize;
        for (k, value) in self.field.iter_mut().enumerate() {
            *value = field[cell(k)];
        }
        for (k, value) in self.target.iter_mut().enumerate() {
            *value = target[cell(k)];
        }
        let cells = self.field.len() as isize;
        let inside = Span {
            first: (-first).clamp(0, cells - 1) as u16,
            last: (last - first).clamp(0, cells - 1) as u16,
        };
        Patch::line(&self.field, &self.target, inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::heat_1d::PROBLEM;

    fn look(x: f32) -> (Vec<f32>, Vec<f32>, Span) {
        let field: Vec<f32> = (0..100).map(|j| j as f32).collect();
        let target: Vec<f32> = field.iter().map(|v| -v).collect();
        let mut eye = Eye::new(View {
            window: 8,
            target: true,
        });
        let patch = eye.look(&PROBLEM, &field, &target, x);
        (
            patch.field.iter().collect(),
            patch.target.iter().collect(),
            patch.inside[0],
        )
    }

    fn cells(range: std::ops::Range<i32>) -> Vec<f32> {
        range.map(|j| j as f32).collect()
    }

    /// The published window is c−4 ..= c+3 (protocol A11); one cell of halo makes c−5 ..= c+4.
    #[test]
    fn the_window_and_its_halo_are_the_published_cells() {
        let (field, target, inside) = look(0.5); // c = floor(49.5) = 49
        assert_eq!(field, cells(44..54));
        assert_eq!(target, field.iter().map(|v| -v).collect::<Vec<_>>());
        assert_eq!(inside, Span { first: 0, last: 9 });
    }

    #[test]
    fn beyond_a_wall_the_wall_value_is_repeated_and_marked() {
        let (field, _, inside) = look(0.0); // c = 0: cells −5 ..= 4
        assert_eq!(field, [&[0.0; 5][..], &cells(0..5)].concat());
        assert_eq!(inside, Span { first: 5, last: 9 });

        let (field, _, inside) = look(1.0); // c = 99: cells 94 ..= 103
        assert_eq!(field, [&cells(94..100)[..], &[99.0; 4]].concat());
        assert_eq!(inside, Span { first: 0, last: 5 });
    }

    #[test]
    fn a_window_wider_than_the_field_is_fine() {
        let mut eye = Eye::new(View {
            window: 400,
            target: false,
        });
        let field = vec![1.0; 100];
        let patch = eye.look(&PROBLEM, &field, &field, 0.5);
        // c = 49, patch starts at 49 − 201 = −152.
        let inside = Span {
            first: 152,
            last: 251,
        };
        assert_eq!((patch.field.len(), patch.inside[0]), (402, inside));
        assert!(patch.target.is_empty());
    }
}
