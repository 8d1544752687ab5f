//! How the cells of a window lie, and in which of them somebody measures.

use crate::record::Place;
use agent_core::policy::Sensing;

/// The cells of a window: a line of them is a plane of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Cells per axis.
    pub side: u16,
    /// Whether there are as many rows as columns, and not one.
    pub plane: bool,
}

impl Grid {
    /// The window of a policy.
    pub fn of(sensing: &Sensing) -> Self {
        Self {
            side: sensing.window,
            plane: sensing.axes != 1,
        }
    }

    /// How many rows there are.
    pub fn rows(self) -> u16 {
        if self.plane { self.side } else { 1 }
    }

    /// How many cells there are.
    pub fn cells(self) -> u16 {
        self.side.saturating_mul(self.rows())
    }

    /// The cell that the node itself is in.
    pub fn own(self) -> u16 {
        let middle = self.side / 2;
        match self.plane {
            true => middle.saturating_mul(self.side).saturating_add(middle),
            false => middle,
        }
    }

    /// The middle of a cell of a node that stands there: a plane's rows lie along the first axis.
    pub fn centre(self, position: [f32; 2], spacing: f32, cell: u16) -> [f32; 2] {
        let ((own_row, own_column), (row, column)) = (self.place(self.own()), self.place(cell));
        let apart = |from: u16, to: u16| spacing * (f32::from(to) - f32::from(from));
        let (rows, columns) = (apart(own_row, row), apart(own_column, column));
        let [x, y] = position;
        match self.plane {
            true => [x + rows, y + columns],
            false => [x + columns, y],
        }
    }

    /// Row and column of a cell.
    fn place(self, cell: u16) -> (u16, u16) {
        let side = self.side.max(1);
        (cell / side, cell % side)
    }

    /// Where a cell is in the patch, which has one more on each side.
    pub fn in_patch(self, row: usize, column: usize) -> usize {
        let margin = usize::from(self.plane);
        (row + margin) * (usize::from(self.side) + 2) + column + 1
    }
}

/// The cells that somebody measures in: the node itself, or a neighbour that it hears. A bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mounted {
    grid: Grid,
    cells: u64,
    rows: u64,
    columns: u64,
}

impl Mounted {
    /// Those of a place.
    pub fn of(place: &Place, grid: Grid) -> Self {
        let heard = (place.neighbours.as_ref()).map_or(0, |neighbours| neighbours.cells);
        let read = place.sensors.iter().map(|sensor| sensor.cell);
        let cells = read.fold(heard, |all, cell| all | bit(cell));
        let mut mounted = Self {
            grid,
            cells,
            rows: 0,
            columns: 0,
        };
        for cell in 0..64 {
            if mounted.has(cell) {
                let (row, column) = grid.place(cell);
                mounted.rows |= bit(row);
                mounted.columns |= bit(column);
            }
        }
        mounted
    }

    /// Whether somebody measures in a cell.
    pub fn has(&self, cell: u16) -> bool {
        self.cells & bit(cell) != 0
    }

    /// The rows that somebody measures in.
    pub fn rows(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        indices(self.rows)
    }

    /// The columns that somebody measures in.
    pub fn columns(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        indices(self.columns)
    }

    /// Whether a cell lies on one of them or between.
    pub fn surround(&self, cell: u16) -> bool {
        let (row, column) = self.grid.place(cell);
        let lies = |among: u64, at: u16| {
            among.trailing_zeros() <= at.into() && u32::from(at) + among.leading_zeros() <= 63
        };
        lies(self.rows, row) && lies(self.columns, column)
    }

    /// A cell that nobody measures in, though its row and its column have somebody.
    pub fn gap(&self) -> Option<u16> {
        (0..self.grid.cells()).find(|cell| {
            let (row, column) = self.grid.place(*cell);
            let crossed = self.rows & bit(row) != 0 && self.columns & bit(column) != 0;
            crossed && !self.has(*cell)
        })
    }
}

/// The bit of a cell, a row or a column; none of one that there is no room for.
pub(super) fn bit(at: u16) -> u64 {
    1u64.checked_shl(at.into()).unwrap_or(0)
}

fn indices(bits: u64) -> impl Iterator<Item = usize> + Clone {
    (0..64).filter(move |at| bits >> at & 1 == 1)
}
