//! What a viewer is shown of a step: the field in half precision, the agents in a few bytes each, and only
//! what has changed since the frame that this viewer had before.
//!
//! A message is, in little-endian order:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version, 1 |
//! | 4 | take: counts how often the past was changed |
//! | 4 | step |
//! | 2 | runs; for each: error (f32), effort (f32) |
//! | 4 | agents; for each: place along both axes as shares of the domain (2 × u16), force (i16) and velocity (2 × i16) as shares of their limits, mode (u8: 0 silent, 1 waiting, 2 active, 3 holding, 4 failed safe) |
//! | 4 | cells; then changes of the field, then of the target |
//!
//! A value of a field is a half-precision float in units of the colour scale's end, as an integer that
//! grows with it: the bits with the sign bit set for positive numbers, all bits flipped for negative ones.
//! Changes of it, modulo 2¹⁶ and read as signed, are zigzag-coded LEB128 numbers; a 0 is followed by how
//! many more zeros come. The frame before the first one is all zeros.

use crate::episode::Snapshot;
use half::f16;
use problem::Problem;
use problem::grid::Grid;

/// Most cells along an axis that are shown: more cannot be seen, and would have to be sent.
const MOST: usize = 256;

/// Which cells of a grid are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    /// Cells along each axis.
    pub shape: [usize; 2],
    /// Their numbers on the grid.
    cells: Vec<usize>,
}

impl Raster {
    /// All cells of a grid, or as many as can be seen, evenly spread.
    pub fn new(grid: &Grid) -> Self {
        let shape = grid.points.map(|points| points.min(MOST));
        let spread = |axis: usize, k: usize| k * grid.points[axis] / shape[axis];
        let rows = 0..shape[0];
        let cells = rows.flat_map(|row| {
            (0..shape[1]).map(move |column| spread(0, row) * grid.points[1] + spread(1, column))
        });
        Self {
            cells: cells.collect(),
            shape,
        }
    }

    /// What is shown of values on the grid.
    pub fn of<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.cells.iter().map(|&cell| values[cell]).collect()
    }
}

/// A step as all viewers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// How often the past was changed before.
    pub take: u32,
    /// Steps taken.
    pub step: usize,
    /// Error and effort of each run.
    pub figures: Vec<[f32; 2]>,
    bodies: Vec<u8>,
    agents: usize,
    field: Vec<u16>,
    target: Vec<u16>,
}

/// Bytes of an agent.
const BODY: usize = 11;
const VERSION: u8 = 1;

impl Frame {
    /// Of a run, in units of `unit`.
    pub fn new(
        problem: &Problem,
        raster: &Raster,
        unit: f64,
        take: u32,
        snapshot: &Snapshot<'_>,
    ) -> Self {
        let mut bodies = Vec::with_capacity(BODY * snapshot.positions.len());
        let (grid, actuation) = (&problem.grid, &problem.actuation);
        for (place, deed) in snapshot.positions.iter().zip(snapshot.deeds) {
            for (x, (low, high)) in place.iter().zip(grid.low.iter().zip(grid.high)) {
                let extent = (high - low).max(f64::MIN_POSITIVE);
                let share = ((x - low) / extent).clamp(0.0, 1.0);
                bodies.extend(((share * 65535.0).round() as u16).to_le_bytes());
            }
            let [x, y] = deed.velocity;
            let shares = [
                (deed.force, actuation.force_max),
                (x, actuation.velocity_max),
                (y, actuation.velocity_max),
            ];
            for (value, most) in shares {
                let share = if most > 0.0 {
                    f64::from(value) / most
                } else {
                    0.0
                };
                bodies.extend(((share * 32767.0).round() as i16).to_le_bytes());
            }
            bodies.push(deed.mode.map_or(0, |mode| mode as u8 + 1));
        }
        let unit = 1.0 / unit;
        let field = raster.cells.iter().map(|&cell| snapshot.field[cell] * unit);
        let target = raster.cells.iter();
        let target = target.map(|&cell| f64::from(snapshot.target[cell]) * unit);
        Self {
            take,
            step: snapshot.step,
            figures: vec![figures(snapshot)],
            agents: snapshot.positions.len(),
            bodies,
            field: field.map(ordered).collect(),
            target: target.map(ordered).collect(),
        }
    }

    /// Bytes that it takes to keep.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.bodies.len() + 2 * (self.field.len() + self.target.len())
    }

    /// The message for somebody who was shown `before`.
    pub fn message(&self, before: Option<&Frame>) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.take.to_le_bytes());
        bytes.extend((self.step as u32).to_le_bytes());
        bytes.extend((self.figures.len() as u16).to_le_bytes());
        for figure in self.figures.iter().flatten() {
            bytes.extend(figure.to_le_bytes());
        }
        bytes.extend((self.agents as u32).to_le_bytes());
        bytes.extend(&self.bodies);
        bytes.extend((self.field.len() as u32).to_le_bytes());
        changes(
            &mut bytes,
            &self.field,
            before.map(|frame| &frame.field[..]),
        );
        changes(
            &mut bytes,
            &self.target,
            before.map(|frame| &frame.target[..]),
        );
        bytes
    }
}

/// Error and effort of a step.
pub fn figures(snapshot: &Snapshot<'_>) -> [f32; 2] {
    let agents = snapshot.deeds.len().max(1) as f64;
    [
        snapshot.error as f32,
        (snapshot.cost.squared_effort / agents) as f32,
    ]
}

/// A number in half precision as an integer that grows with it.
fn ordered(value: f64) -> u16 {
    let bits = f16::from_f64(value).to_bits();
    match bits & 0x8000 {
        0 => bits | 0x8000,
        _ => !bits,
    }
}

/// What has changed in values since those before; zeros if there were none, or not as many.
fn changes(bytes: &mut Vec<u8>, values: &[u16], before: Option<&[u16]>) {
    let before = before.filter(|before| before.len() == values.len());
    let mut zeros: Option<u32> = None;
    for (k, &value) in values.iter().enumerate() {
        let change = value.wrapping_sub(before.map_or(0, |before| before[k])) as i16;
        if change == 0 {
            zeros = Some(zeros.map_or(0, |more| more + 1));
            continue;
        }
        if let Some(more) = zeros.take() {
            bytes.push(0);
            leb(bytes, more);
        }
        // The sign in the last bit: small changes of either sign are small numbers.
        let change = i32::from(change);
        leb(bytes, ((change << 1) ^ (change >> 31)) as u32);
    }
    if let Some(more) = zeros {
        bytes.push(0);
        leb(bytes, more);
    }
}

/// A number in as many bytes as it needs, seven bits each.
fn leb(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Cost, Deed};
    use problem::published::heat_1d::PROBLEM;
    use proptest::prelude::*;

    /// What the page does with changes.
    fn read(bytes: &[u8], before: &[u16]) -> Option<Vec<u16>> {
        let mut bytes = bytes.iter();
        let mut number = || {
            let (mut number, mut shift) = (0u32, 0);
            loop {
                let byte = *bytes.next()?;
                number |= u32::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return Some(number);
                }
            }
        };
        let mut values = before.to_vec();
        let mut k = 0;
        while k < values.len() {
            match number()? {
                0 => k += 1 + number()? as usize,
                coded => {
                    let change = (coded >> 1) as i32 ^ -((coded & 1) as i32);
                    values[k] = values[k].wrapping_add(change as u16);
                    k += 1;
                }
            }
        }
        bytes.next().is_none().then_some(values)
    }

    proptest! {
        #[test]
        fn changes_lead_from_any_frame_to_any_other(
            pairs in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<bool>()), 1..300)
        ) {
            let before: Vec<u16> = pairs.iter().map(|pair| pair.0).collect();
            let after: Vec<u16> = pairs.iter().map(|p| if p.2 { p.0 } else { p.1 }).collect();
            let mut bytes = Vec::new();
            changes(&mut bytes, &after, Some(&before));
            prop_assert_eq!(read(&bytes, &before), Some(after.clone()));
            let mut whole = Vec::new();
            changes(&mut whole, &after, None);
            prop_assert_eq!(read(&whole, &vec![0; after.len()]), Some(after));
        }

        #[test]
        fn integers_grow_with_what_they_stand_for(a in -4.0f64..4.0, b in -4.0f64..4.0) {
            prop_assert_eq!(ordered(a) < ordered(b), f16::from_f64(a) < f16::from_f64(b));
        }
    }

    #[test]
    fn a_field_that_rests_costs_next_to_nothing() {
        let field = vec![0.25; 100];
        let snapshot = Snapshot {
            step: 3,
            field: &field,
            target: &[0.5; 100],
            error: 0.0625,
            positions: &[[0.5, 0.0]],
            deeds: &[Deed::default()],
            cost: Cost::default(),
        };
        let raster = Raster::new(&PROBLEM.grid);
        let frame = Frame::new(&PROBLEM, &raster, 2.0, 0, &snapshot);
        let (whole, again) = (frame.message(None), frame.message(Some(&frame)));
        let head = 1 + 4 + 4 + 2 + 8 + 4 + BODY + 4;
        assert_eq!(again.len(), head + 4, "two runs of zeros");
        assert!(whole.len() > head + 200);
    }

    #[test]
    fn large_grids_are_thinned() {
        let mut grid = PROBLEM.grid;
        grid.points = [1000, 1];
        let raster = Raster::new(&grid);
        assert_eq!(raster.shape, [256, 1]);
        let values: Vec<usize> = (0..1000).collect();
        let shown = raster.of(&values);
        assert_eq!((shown[0], shown.len()), (0, 256));
        assert!(shown.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
