//! What an agent is shown: the patch of field and target around its grid cell and, where its policy asks for
//! it, either a coarse picture of the whole or, of a problem with several fields, the windows on the others.

use agent_core::message::{Overview, Patch, Samples, Span};
use agent_core::policy::Policy;
use problem::Problem;
use problem::grid::{Edge, Grid};

/// Cells beyond the window on each side, so that slopes at its rim are those of the whole field.
pub const HALO: usize = 1;

/// What agents of one kind are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Cells of the window along each axis.
    pub window: usize,
    /// Whether the target is shown too; agents that steer to zero need none.
    pub target: bool,
    /// Cells along each axis of what comes with the patch; none where patches are all. Where a problem shows
    /// its agents more than one field these are the others' windows ([`Problem::other_windows`]), and a
    /// coarse picture of the whole domain elsewhere.
    pub wide: Option<[usize; 2]>,
}

impl View {
    /// Nothing but where one is.
    pub const NOTHING: Self = Self {
        window: 0,
        target: false,
        wide: None,
    };

    /// What agents with this policy must be shown. The window is the policy's, whatever the
    /// published one is.
    pub fn of(policy: &Policy<'_>) -> Self {
        let sensing = &policy.header().sensing;
        Self {
            window: usize::from(sensing.window),
            target: sensing.target,
            wide: sensing.wide.map(|cells| cells.map(usize::from)),
        }
    }
}

/// Cuts patches out of a field.
#[derive(Debug, Clone)]
pub struct Eye {
    window: usize,
    /// Grid indices of the patch's cells along each axis.
    cells: [Vec<usize>; 2],
    field: Vec<f32>,
    target: Vec<f32>,
    /// The same of the window on other fields, beyond a wall those of the last cell before it.
    within: [Vec<usize>; 2],
    /// The windows on other fields, one after the other.
    other_fields: Vec<f32>,
    other_targets: Vec<f32>,
}

impl Eye {
    /// For agents of a problem with this view.
    pub fn new(view: View, problem: &Problem) -> Self {
        let side = view.window + 2 * HALO;
        let shape = [side, if problem.sensors.axes == 2 { side } else { 1 }];
        let cells = shape[0] * shape[1];
        let others = match problem.also_seen() {
            [] => 0,
            _ => view.wide.map_or(0, |[rows, columns]| rows * columns),
        };
        let of_target = |cells| vec![0.0; if view.target { cells } else { 0 }];
        Self {
            window: view.window,
            cells: shape.map(|n| vec![0; n]),
            within: shape.map(|n| vec![0; n.saturating_sub(2 * HALO).max(1)]),
            field: vec![0.0; cells],
            target: of_target(cells),
            other_fields: vec![0.0; others],
            other_targets: of_target(others),
        }
    }

    /// The patch around an agent: with the agent in cell `c`, cells
    /// `c − window/2 − 1 ..= c + window/2` along each axis; with a spacing `s` between them those from
    /// `c − s (window/2 + 1)` on, every `s`-th.
    ///
    /// Cells beyond a wall hold the wall's value and are not `inside`: the agent leaves them out.
    /// On a torus there is no beyond.
    ///
    /// `field` and `target` are all that is seen on the sensors' grid, one after the other. Of the other
    /// fields the patch has the window without what lies around it.
    pub fn look(
        &mut self,
        problem: &Problem,
        field: &[f32],
        target: &[f32],
        position: [f32; 2],
    ) -> Patch<'_> {
        let grid = &problem.sensors;
        let cell = problem.cell_of(position);
        let mut inside = [Span { first: 0, last: 0 }; 2];
        for axis in 0..grid.axes {
            let spacing = problem.sensing.spacing as isize;
            let first = cell[axis] as isize - spacing * (self.window / 2 + HALO) as isize;
            inside[axis] = fill(&mut self.cells[axis], (grid, axis), first, spacing);
        }
        cut(grid, field, &self.cells, &mut self.field);
        if !self.target.is_empty() {
            cut(grid, target, &self.cells, &mut self.target);
        }
        if !self.other_fields.is_empty() {
            let axes = self.within.iter_mut().zip(&self.cells).zip(inside);
            for ((within, cells), Span { first, last }) in axes.take(grid.axes) {
                let ends = [first, last].map(usize::from);
                for (k, cell) in within.iter_mut().enumerate() {
                    *cell = cells[(k + HALO).clamp(ends[0], ends[1])];
                }
            }
            for (from, into) in [
                (field, &mut self.other_fields),
                (target, &mut self.other_targets),
            ] {
                let windows = into.chunks_exact_mut(self.within.iter().map(Vec::len).product());
                for (window, other) in windows.zip(from.chunks_exact(grid.len()).skip(1)) {
                    cut(grid, other, &self.within, window);
                }
            }
        }
        Patch {
            field: Samples::new(&self.field),
            target: Samples::new(&self.target),
            inside,
            wide: Overview {
                field: Samples::new(&self.other_fields),
                target: Samples::new(&self.other_targets),
            },
        }
    }
}

/// The whole domain as agents see it: means of the sensors' readings over equal blocks of cells.
///
/// Taken once for all agents: it tells each of them the same, and nothing about the others but what
/// they did to the field.
#[derive(Debug, Clone, Default)]
pub struct Panorama {
    /// Blocks along each axis.
    blocks: [usize; 2],
    field: Vec<f32>,
    target: Vec<f32>,
}

impl Panorama {
    /// For agents of a problem with this view.
    pub fn new(view: View, problem: &Problem) -> Self {
        let blocks = view.wide.filter(|_| problem.also_seen().is_empty());
        let blocks = blocks.unwrap_or([0; 2]);
        let cells = blocks[0] * blocks[1];
        Self {
            blocks,
            field: vec![0.0; cells],
            target: vec![0.0; if view.target { cells } else { 0 }],
        }
    }

    /// Whether there is one.
    pub fn is_shown(&self) -> bool {
        !self.field.is_empty()
    }

    /// Takes the picture. The sensors' grid must be a multiple of the blocks along each axis, as
    /// [`PolicyFile::policy`](artifacts::policy_file::PolicyFile::policy) makes sure.
    pub fn take(&mut self, grid: &Grid, field: &[f32], target: &[f32]) {
        if !self.is_shown() {
            return;
        }
        block_means(grid, self.blocks, field, &mut self.field);
        if !self.target.is_empty() {
            block_means(grid, self.blocks, target, &mut self.target);
        }
    }

    /// The patch with the picture last taken, if there is one.
    pub fn beside<'a>(&'a self, patch: Patch<'a>) -> Patch<'a> {
        match self.is_shown() {
            false => patch,
            true => Patch {
                wide: Overview {
                    field: Samples::new(&self.field),
                    target: Samples::new(&self.target),
                },
                ..patch
            },
        }
    }
}

/// Row-major means of `values` over `blocks` equal blocks along each axis.
fn block_means(grid: &Grid, blocks: [usize; 2], values: &[f32], means: &mut [f32]) {
    let size = [0, 1].map(|axis| grid.points[axis] / blocks[axis]);
    let stride = grid.points[1];
    for (k, mean) in means.iter_mut().enumerate() {
        let first = [k / blocks[1] * size[0], k % blocks[1] * size[1]];
        let sum: f64 = (first[0]..first[0] + size[0])
            .flat_map(|row| &values[row * stride + first[1]..][..size[1]])
            .map(|z| f64::from(*z))
            .sum();
        *mean = (sum / (size[0] * size[1]) as f64) as f32;
    }
}

/// The values of a field in these cells.
fn cut(grid: &Grid, from: &[f32], cells: &[Vec<usize>; 2], into: &mut [f32]) {
    // A line is one row of the cells along it.
    let [first, second] = cells;
    let (rows, columns, stride) = match grid.axes {
        1 => (&second[..], &first[..], grid.points[0]),
        _ => (&first[..], &second[..], grid.points[1]),
    };
    // Neither beyond a wall nor around a torus.
    let together = columns[0] + columns.len() == columns[columns.len() - 1] + 1;
    for (line, &row) in into.chunks_exact_mut(columns.len()).zip(rows) {
        let from = &from[row * stride..][..stride];
        if together {
            line.copy_from_slice(&from[columns[0]..][..line.len()]);
            continue;
        }
        for (value, &column) in line.iter_mut().zip(columns) {
            *value = from[column];
        }
    }
}

/// Indices of the cells from `first` on, so many from one to the next, and which of them are inside the
/// domain.
fn fill(cells: &mut [usize], (grid, axis): (&Grid, usize), first: isize, spacing: isize) -> Span {
    let last = grid.points[axis] as isize - 1;
    let end = cells.len() as isize - 1;
    // Most windows are nowhere near an end, and this is a good part of what a small swarm costs.
    if first >= 0 && first + spacing * end <= last {
        for (k, cell) in cells.iter_mut().enumerate() {
            *cell = first as usize + k * spacing as usize;
        }
        return Span {
            first: 0,
            last: end as u16,
        };
    }
    for (k, cell) in (first..).step_by(spacing as usize).zip(cells) {
        *cell = match grid.edges[axis] {
            Edge::Wall => k.clamp(0, last),
            Edge::Periodic => k.rem_euclid(last + 1),
        } as usize;
    }
    match grid.edges[axis] {
        Edge::Wall => Span {
            first: (spacing - 1 - first).div_euclid(spacing).clamp(0, end) as u16,
            last: (last - first).div_euclid(spacing).clamp(0, end) as u16,
        },
        Edge::Periodic => Span {
            first: 0,
            last: end as u16,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::heat_1d::PROBLEM;

    fn look(x: f32) -> (Vec<f32>, Vec<f32>, Span) {
        let field: Vec<f32> = (0..100).map(|j| j as f32).collect();
        let target: Vec<f32> = field.iter().map(|v| -v).collect();
        let view = View {
            window: 8,
            target: true,
            wide: None,
        };
        let mut eye = Eye::new(view, &PROBLEM);
        let patch = eye.look(&PROBLEM, &field, &target, [x, 0.0]);
        (
            patch.field.iter().collect(),
            patch.target.iter().collect(),
            patch.inside[0],
        )
    }

    /// The patch of a window without cells.
    fn nothing() -> Patch<'static> {
        Patch::line(&[], &[], Span::default())
    }

    fn cells(range: std::ops::Range<i32>) -> Vec<f32> {
        range.map(|j| j as f32).collect()
    }

    /// The published window is c−4 ..= c+3 (authors' code); one cell of halo makes c−5 ..= c+4.
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
        let view = View {
            window: 400,
            target: false,
            wide: None,
        };
        let mut eye = Eye::new(view, &PROBLEM);
        let field = vec![1.0; 100];
        let patch = eye.look(&PROBLEM, &field, &field, [0.5, 0.0]);
        // c = 49, patch starts at 49 − 201 = −152.
        let inside = Span {
            first: 152,
            last: 251,
        };
        assert_eq!((patch.field.len(), patch.inside[0]), (402, inside));
        assert!(patch.target.is_empty());
    }

    /// Every third cell of 100: 49 − 3 · 5 = 34 and on. Nearer to a wall than the halo, the cells inside are
    /// those that the agent's own goes on to: from 7 down to 1, from 93 up to 99.
    #[test]
    fn cells_may_be_apart() {
        let mut problem = PROBLEM;
        problem.sensing.spacing = 3;
        let view = View {
            window: 8,
            target: false,
            wide: None,
        };
        let field: Vec<f32> = (0..100).map(|j| j as f32).collect();
        let mut eye = Eye::new(view, &PROBLEM);
        let mut look = |cell: f32| {
            let patch = eye.look(&problem, &field, &[], [(cell + 0.5) / 99.0, 0.0]);
            let seen: Vec<f32> = patch.field.iter().collect();
            (seen, patch.inside[0])
        };
        let every_third = |first: i32, cells: i32| -> Vec<f32> {
            (0..cells).map(|k| (first + 3 * k) as f32).collect()
        };
        assert_eq!(
            look(49.0),
            (every_third(34, 10), Span { first: 0, last: 9 })
        );
        let (seen, inside) = look(7.0);
        assert_eq!(
            (seen[3..].to_vec(), inside),
            (every_third(1, 7), Span { first: 3, last: 9 })
        );
        let (seen, inside) = look(93.0);
        assert_eq!(
            (seen[..8].to_vec(), inside),
            (every_third(78, 8), Span { first: 0, last: 7 })
        );
    }

    /// On a 6 × 5 torus whose values name their cell, a window of 2 around cell (5, 0).
    #[test]
    fn patches_of_a_torus_wrap_and_have_no_outside() {
        let mut problem = PROBLEM;
        problem.sensors = Grid::plane([6, 5], [6.0, 5.0], Edge::Periodic);
        problem.sensing.cells = problem::Cells::Points;
        let field: Vec<f32> = (0..30).map(|i| (10 * (i / 5) + i % 5) as f32).collect();
        let view = View {
            window: 2,
            target: false,
            wide: None,
        };
        let mut eye = Eye::new(view, &problem);
        let patch = eye.look(&problem, &field, &[], [5.5, 0.5]);
        let rows = [3, 4, 5, 0]; // 5 − 2 ..= 5 + 1
        let columns = [3, 4, 0, 1]; // 0 − 2 ..= 0 + 1
        let expected: Vec<f32> = rows
            .iter()
            .flat_map(|r| columns.map(|c| (10 * r + c) as f32))
            .collect();
        assert_eq!(patch.field.iter().collect::<Vec<_>>(), expected);
        assert_eq!(patch.inside, [Span { first: 0, last: 3 }; 2]);
    }

    /// Cells that hold 10 · row + column in 2 × 3 blocks of 2 × 2: a block's mean is its first cell
    /// plus (0 + 1 + 10 + 11) / 4.
    #[test]
    fn the_whole_is_shown_as_means_of_blocks() {
        let grid = Grid::plane([4, 6], [1.0, 1.0], Edge::Wall);
        let field: Vec<f32> = (0..24).map(|i| (10 * (i / 6) + i % 6) as f32).collect();
        let target: Vec<f32> = field.iter().map(|z| -z).collect();
        let view = View {
            window: 2,
            target: true,
            wide: Some([2, 3]),
        };
        let mut panorama = Panorama::new(view, &PROBLEM);
        panorama.take(&grid, &field, &target);
        let expected = [5.5, 7.5, 9.5, 25.5, 27.5, 29.5];
        let Overview { field, target } = panorama.beside(nothing()).wide;
        assert!(field.iter().eq(expected));
        assert!(target.iter().eq(expected.map(|z| -z)));
    }

    #[test]
    fn agents_without_wide_view_are_told_nothing_of_the_whole() {
        let view = View {
            window: 2,
            target: true,
            wide: None,
        };
        let mut panorama = Panorama::new(view, &PROBLEM);
        panorama.take(&PROBLEM.sensors, &[1.0; 100], &[1.0; 100]);
        assert_eq!(panorama.beside(nothing()), nothing());
    }
}
