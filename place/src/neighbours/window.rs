//! A patch from what a node reads itself and what its neighbours say.

use super::grid::{Grid, Mounted, bit};
use super::hearing::Hearing;
use crate::record::{CELLS, Place, SENSORS};
use crate::sight::Sight;
use agent_core::message::Span;

/// The cells of a window, row after row.
type Cells = [Option<f32>; CELLS];

/// Looks at the sensors' readings, in the order of the place's, and at what was heard: the window's field goes
/// to `field`, which has a cell more on each side, and the cells that are seen are returned, per axis. None if
/// too little can be seen, or the slice is not a patch's.
pub fn look(
    sight: &mut Sight,
    hearing: &Hearing,
    place: &Place,
    grid: Grid,
    now_us: u64,
    readings: &[Option<f32>; SENSORS],
    field: &mut [f32],
) -> Option<[Span; 2]> {
    let mounted = Mounted::of(place, grid);
    let (mut known, mut held) = ([None; CELLS], [None; CELLS]);
    read(sight, place, now_us, readings, &mut known, &mut held);
    hear(hearing, place, now_us, &mut known, &mut held);
    let is_missing = |cell: &u16| {
        let value = known.get(usize::from(*cell));
        mounted.has(*cell) && value.is_none_or(Option::is_none)
    };
    let missing = (0..grid.cells()).filter(is_missing).count();
    if missing > place.tolerance.missing.into() {
        return None;
    }
    fill(mounted, grid, &known, &held, field)?;
    spread(mounted, grid, field)?;
    let columns = span(mounted.columns())?;
    match grid.plane {
        true => Some([span(mounted.rows())?, columns]),
        false => Some([columns, Span::default()]),
    }
}

/// What the node's own sensors read.
fn read(
    sight: &mut Sight,
    place: &Place,
    now_us: u64,
    readings: &[Option<f32>; SENSORS],
    known: &mut Cells,
    held: &mut Cells,
) {
    let seen = sight.take(place, now_us, readings);
    for (k, (sensor, value)) in place.sensors.iter().zip(seen).enumerate() {
        let cell = usize::from(sensor.cell);
        let last = sight.last(k).filter(|(_, at_us)| {
            now_us.saturating_sub(*at_us) <= place.tolerance.missing_us.into()
        });
        put(known, cell, value);
        put(held, cell, last.map(|(value, _)| value));
    }
}

/// What neighbours have said. What is stale was last good when it became so.
fn hear(hearing: &Hearing, place: &Place, now_us: u64, known: &mut Cells, held: &mut Cells) {
    let Some(neighbours) = &place.neighbours else {
        return;
    };
    let stale_us = u64::from(neighbours.stale_us);
    for cell in (0..64).filter(|cell| neighbours.hears(*cell)) {
        if let Some((value, age_us)) = hearing.said(cell, now_us) {
            let at = usize::from(cell);
            let borne_us = stale_us + u64::from(place.tolerance.missing_us);
            put(known, at, (age_us <= stale_us).then_some(value));
            put(held, at, (age_us <= borne_us).then_some(value));
        }
    }
}

fn put(cells: &mut Cells, at: usize, value: Option<f32>) {
    if let Some(cell) = cells.get_mut(at) {
        *cell = value;
    }
}

/// Writes the cells that somebody measures in; those that are missing lie on a [`line`], or are what they
/// last were.
fn fill(
    mounted: Mounted,
    grid: Grid,
    known: &Cells,
    held: &Cells,
    field: &mut [f32],
) -> Option<()> {
    let value = |cell: u16| *known.get(usize::from(cell))?;
    let is_known = |cell: &u16| value(*cell).is_some();
    let bits = (0..grid.cells())
        .filter(is_known)
        .fold(0, |all, cell| all | bit(cell));
    for row in mounted.rows() {
        for column in mounted.columns() {
            let at = row * usize::from(grid.side) + column;
            let cell = at as u16;
            let value = match value(cell) {
                Some(value) => value,
                None => {
                    let last = (*held.get(at)?)?;
                    match line(grid, bits, cell) {
                        Some(line) => line.between(value(line.from)?, value(line.to)?),
                        None => last,
                    }
                }
            };
            *field.get_mut(grid.in_patch(row, column))? = value;
        }
    }
    Some(())
}

/// Where a cell that nobody reads lies between two that are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The nearest one before it,
    pub from: u16,
    /// and behind it.
    pub to: u16,
    /// How far it is from the one to the other.
    pub share: f32,
}

impl Line {
    /// What is there, of values at the ends.
    pub fn between(self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.share
    }
}

/// The line that makes up for a cell, of those whose value is known, a bit each: of its row, or else of its
/// column. None at the rim of what is known, where the last that was known is held.
#[inline(never)]
pub fn line(grid: Grid, known: u64, cell: u16) -> Option<Line> {
    let side = grid.side.max(1);
    let (row, column) = (cell / side, cell % side);
    let along = between(known, (row * side, 1), column, grid.side);
    along.or_else(|| between(known, (column, side), row, grid.rows()))
}

/// The line from the nearest cell that is known before to the nearest after, of so many, of which the first
/// is there and the next that much further.
#[inline(never)]
fn between(known: u64, (first, stride): (u16, u16), at: u16, cells: u16) -> Option<Line> {
    let cell = |k: u16| first.saturating_add(stride.saturating_mul(k));
    let is_known = |k: &u16| known & bit(cell(*k)) != 0;
    let from = (0..at).rev().find(is_known)?;
    let to = (at + 1..cells).find(is_known)?;
    Some(Line {
        from: cell(from),
        to: cell(to),
        share: f32::from(at - from) / f32::from(to - from),
    })
}

/// Draws lines between the cells that somebody measures in, along the rows and then from row to row.
fn spread(mounted: Mounted, grid: Grid, field: &mut [f32]) -> Option<()> {
    for row in mounted.rows() {
        let mut before = None;
        for column in mounted.columns() {
            if let Some(from) = before {
                draw(field, (grid.in_patch(row, 0), 1), from, column)?;
            }
            before = Some(column);
        }
    }
    let (first, last) = (mounted.columns().next()?, mounted.columns().last()?);
    let down = grid.in_patch(1, 0) - grid.in_patch(0, 0);
    let mut before = None;
    for row in mounted.rows() {
        if let Some(from) = before {
            for column in first..=last {
                draw(field, (grid.in_patch(0, column), down), from, row)?;
            }
        }
        before = Some(row);
    }
    Some(())
}

/// Puts what lies between two cells on the line from one to the other; the first of their line is there, and
/// the next that much further.
#[inline(never)]
fn draw(field: &mut [f32], (first, stride): (usize, usize), from: usize, to: usize) -> Option<()> {
    let at = |k: usize| first + stride * k;
    let (low, high) = (*field.get(at(from))?, *field.get(at(to))?);
    for k in from + 1..to {
        let share = (k - from) as f32 / (to - from) as f32;
        *field.get_mut(at(k))? = low + (high - low) * share;
    }
    Some(())
}

/// From the first to the last, as cells of the patch.
fn span(mounted: impl Iterator<Item = usize> + Clone) -> Option<Span> {
    let in_patch = |at: usize| u16::try_from(at + 1).ok();
    Some(Span {
        first: in_patch(mounted.clone().next()?)?,
        last: in_patch(mounted.last()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbours::bulletin::{Bulletin, Field};
    use crate::record::tests::{BOARD, heard, place, policy};
    use crate::record::{Neighbours, Sensor, Tolerance};
    use agent_core::policy::Header;
    use proptest::prelude::*;

    /// Says twice what is measured at a position, so that it is taken.
    fn say(hearing: &mut Hearing, position: [f32; 2], number: u64, now_us: u64, value: f32) {
        for (number, before) in [(number, 10), (number + 1, 0)] {
            let bulletin = Bulletin {
                field: Field::of(policy().problem.as_str()),
                start: 0,
                number,
                stamp_us: (now_us - before) as u32,
                position,
                value,
            };
            let _ = hearing.hear(&bulletin, now_us - before);
        }
    }

    fn readings(values: &[f32]) -> [Option<f32>; SENSORS] {
        let mut all = [None; SENSORS];
        for (to, from) in all.iter_mut().zip(values) {
            *to = (!from.is_nan()).then_some(*from);
        }
        all
    }

    /// Nine nodes in a plane of 4 × 4 cells, 0.1 apart, mounted in its rows and columns 0, 2 and 3.
    fn plane() -> (Place, Header<'static>) {
        let mut header = policy();
        header.sensing.axes = 2;
        let own = Sensor {
            cell: 10,
            ..place().sensors[0]
        };
        let cells = [0u64, 2, 3, 8, 11, 12, 14, 15];
        let place = Place {
            position: [0.5, 0.5],
            sensors: [own].into_iter().collect(),
            neighbours: Some(Neighbours {
                cells: cells.iter().fold(0, |all, cell| all | 1 << cell),
                ..heard().neighbours.unwrap()
            }),
            ..heard()
        };
        assert_eq!(
            place.check().and_then(|()| place.fits(&header, BOARD)),
            Ok(())
        );
        (place, header)
    }

    struct Node {
        place: Place,
        header: Header<'static>,
        sight: Sight,
        hearing: Hearing,
    }

    impl Node {
        fn new((place, header): (Place, Header<'static>)) -> Self {
            let mut hearing = Hearing::new();
            hearing.stand(&place, &header, false);
            Self {
                place,
                header,
                sight: Sight::new(),
                hearing,
            }
        }

        /// The 16 cells of the window.
        fn sees(&mut self, now_us: u64, own: f32) -> Option<[f32; 16]> {
            let grid = Grid::of(&self.header.sensing);
            let mut field = [f32::NAN; 36];
            let all = readings(&[own]);
            let Self {
                place,
                sight,
                hearing,
                ..
            } = self;
            let inside = look(sight, hearing, place, grid, now_us, &all, &mut field)?;
            assert_eq!(inside, [Span { first: 1, last: 4 }; 2]);
            let mut cells = [0.0; 16];
            for (k, cell) in cells.iter_mut().enumerate() {
                let at = (k / 4 + 1) * 6 + k % 4 + 1;
                *cell = field[at];
            }
            Some(cells)
        }
    }

    /// A field that is linear along each axis is its own interpolation: 10 · row + column, over ten.
    fn at(cell: usize) -> f32 {
        (10 * (cell / 4) + cell % 4) as f32 * 0.125 - 2.0
    }

    #[test]
    fn in_the_plane_each_cell_is_that_of_who_is_mounted_there_and_those_between_lie_between() {
        let mut node = Node::new(plane());
        // Ten degrees are one of the field, and twenty its zero.
        let own = (at(10) + 2.0) * 10.0;
        assert_eq!(node.sees(900, own), None, "nobody has spoken");
        let grid = Grid::of(&node.header.sensing);
        for cell in [0, 2, 3, 8, 11, 12, 14, 15] {
            let position = grid.centre([0.5, 0.5], 0.1, cell);
            let [row, column] = [cell / 4, cell % 4].map(|k| 0.1 * f32::from(k) + 0.3);
            assert!((position[0] - row).abs() < 1e-6 && (position[1] - column).abs() < 1e-6);
            say(&mut node.hearing, position, 1, 1_000, at(cell.into()));
        }
        let seen = node.sees(2_000, own).unwrap();
        for (cell, value) in seen.iter().enumerate() {
            assert!((value - at(cell)).abs() < 1e-6, "{cell}: {value}");
        }
        // One that is stale is made up from its row, and held at the rim, for as long as that is borne.
        for cell in [0, 2, 3, 11, 12, 14, 15] {
            let position = grid.centre([0.5, 0.5], 0.1, cell);
            say(&mut node.hearing, position, 3, 11_500, at(cell.into()));
        }
        let seen = node.sees(11_600, own).unwrap();
        assert_eq!(node.hearing.heard(11_600).deaf, 1 << 8);
        assert!((seen[8] - at(8)).abs() < 1e-6);
        for cell in [2, 3, 11, 12, 14, 15] {
            let position = grid.centre([0.5, 0.5], 0.1, cell);
            say(&mut node.hearing, position, 5, 22_000, at(cell.into()));
        }
        assert_eq!(node.sees(22_100, own), None, "two are more than are borne");
    }

    #[test]
    fn on_a_line_what_is_heard_stands_beside_what_is_read() {
        let mut node = Node::new((heard(), policy()));
        say(&mut node.hearing, [0.3, 0.0], 1, 1_000, 0.5);
        let mut field = [0.0; 6];
        let grid = Grid::of(&node.header.sensing);
        // Cell 1 reads 30 degrees and cell 3 50.
        let all = readings(&[30.0, 50.0]);
        let seen = look(
            &mut node.sight,
            &node.hearing,
            &node.place,
            grid,
            2_000,
            &all,
            &mut field,
        );
        assert_eq!(seen, Some([Span { first: 1, last: 4 }, Span::default()]));
        assert_eq!(field[1..5], [0.5, 1.0, 2.0, 3.0]);
    }

    proptest! {
        /// Without neighbours a line is seen bit for bit as [`Sight`] sees it by itself.
        #[test]
        fn a_line_without_neighbours_is_what_sensors_alone_see(
            steps in proptest::collection::vec(proptest::array::uniform3(
                prop_oneof![3 => 10.0f32..60.0, 1 => Just(f32::NAN), 1 => any::<f32>()]), 1..40),
            missing in 0u8..3,
        ) {
            let place = Place {
                tolerance: Tolerance { missing, change: 1e9, ..place().tolerance },
                ..place()
            };
            let grid = Grid::of(&policy().sensing);
            let (mut alone, mut together) = (Sight::new(), Sight::new());
            let hearing = Hearing::new();
            for (k, values) in steps.iter().enumerate() {
                let now_us = 70_000 * k as u64;
                let all = readings(values);
                let (mut field, mut other) = ([0.0; 6], [0.0; 6]);
                let span = alone.look(&place, now_us, &all, &mut field);
                let spans = look(
                    &mut together, &hearing, &place, grid, now_us, &all, &mut other,
                );
                prop_assert_eq!(spans, span.map(|span| [span, Span::default()]));
                if span.is_some() {
                    prop_assert_eq!(field[1..5].iter().map(|x| x.to_bits()).collect::<std::vec::Vec<_>>(),
                        other[1..5].iter().map(|x| x.to_bits()).collect::<std::vec::Vec<_>>());
                }
            }
        }
    }
}
