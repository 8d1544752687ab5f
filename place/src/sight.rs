//! What sensors read becomes a patch, or nothing where too little can be seen.
//!
//! A window's halo and its cells beyond the outermost sensors are told to be outside the domain: the agent
//! then takes the nearest sensor's error for them, and slopes at the rim from one side, as it has learned to
//! at walls. To invent values there (extrapolated, say) would give the same slopes and errors that nobody
//! measured. Cells between two sensors lie on the line between them.
//!
//! A reading is taken for the field's unless it is missing, out of range, changes faster than the field
//! does here, or has been the same for too long. What is not taken is made up from the neighbours' readings,
//! for as long and for as many cells as the place tolerates; at the rim, which has a neighbour on one side
//! only, the last good reading is held.

use crate::record::{Place, SENSORS, Sensor};
use agent_core::message::Span;
use serde::{Deserialize, Serialize};

/// Why a reading was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The channel gave none.
    Missing,
    /// It is less or more than the field can be.
    OutOfRange,
    /// The field does not change so fast.
    Implausible,
    /// The channel has read the same for too long.
    Frozen,
}

/// How often readings were not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubts {
    /// The channel gave none.
    pub missing: u32,
    /// They were less or more than the field can be.
    pub out_of_range: u32,
    /// They changed faster than the field does.
    pub implausible: u32,
    /// They were the same for too long.
    pub frozen: u32,
}

impl Doubts {
    fn count(&mut self, doubt: Doubt) {
        let count = match doubt {
            Doubt::Missing => &mut self.missing,
            Doubt::OutOfRange => &mut self.out_of_range,
            Doubt::Implausible => &mut self.implausible,
            Doubt::Frozen => &mut self.frozen,
        };
        *count = count.saturating_add(1);
    }
}

/// What is known of a sensor.
#[derive(Clone, Copy)]
struct Known {
    /// The last reading that was taken, in the field's units, and when.
    good: Option<(f32, u64)>,
    /// The channel's last reading, and since when it has been that.
    same: Option<(f32, u64)>,
}

/// A node's view of its window.
pub struct Sight {
    known: [Known; SENSORS],
    /// The sensors whose last reading was not taken, a bit each in the order of their cells.
    blind: u16,
    doubts: Doubts,
}

impl Default for Sight {
    fn default() -> Self {
        Self::new()
    }
}

impl Sight {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        let known = Known {
            good: None,
            same: None,
        };
        Self {
            known: [known; SENSORS],
            blind: 0,
            doubts: Doubts {
                missing: 0,
                out_of_range: 0,
                implausible: 0,
                frozen: 0,
            },
        }
    }

    /// The sensors whose last reading was not taken, a bit each in the order of their cells.
    pub fn blind(&self) -> u16 {
        self.blind
    }

    /// How often readings were not taken.
    pub fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// Looks at the sensors' readings, in the order of the place's: the window's field goes to `field`, which
    /// has a cell more on each side, and the cells that are seen are returned. None if too little can be seen,
    /// or the slice is not a patch's.
    pub fn look(
        &mut self,
        place: &Place,
        now_us: u64,
        readings: &[Option<f32>; SENSORS],
        field: &mut [f32],
    ) -> Option<Span> {
        let seen = self.take(place, now_us, readings);
        let values = self.fill(place, now_us, seen)?;
        let sensors = place.sensors.iter().zip(values);
        let mut before: Option<(u16, f32)> = None;
        for (sensor, value) in sensors {
            let at = usize::from(sensor.cell) + 1;
            if let Some((cell, from)) = before {
                let apart = f32::from(sensor.cell - cell);
                let between = field.get_mut(usize::from(cell) + 2..at)?;
                for (k, cell) in between.iter_mut().enumerate() {
                    *cell = from + (value - from) * ((k + 1) as f32 / apart);
                }
            }
            *field.get_mut(at)? = value;
            before = Some((sensor.cell, value));
        }
        Some(Span {
            first: place.sensors.first()?.cell.checked_add(1)?,
            last: place.sensors.last()?.cell.checked_add(1)?,
        })
    }

    /// The last reading of a sensor that was taken, and when.
    pub fn last(&self, sensor: usize) -> Option<(f32, u64)> {
        self.known.get(sensor)?.good
    }

    /// Looks each reading over; what is taken of them, in the field's units.
    pub(crate) fn take(
        &mut self,
        place: &Place,
        now_us: u64,
        readings: &[Option<f32>; SENSORS],
    ) -> [Option<f32>; SENSORS] {
        let mut seen = [None; SENSORS];
        self.blind = 0;
        let each = place.sensors.iter().zip(readings).zip(&mut self.known);
        for (k, (((sensor, reading), known), seen)) in each.zip(&mut seen).enumerate() {
            match known.judge(place, sensor, *reading, now_us) {
                Ok(value) => {
                    known.good = Some((value, now_us));
                    *seen = Some(value);
                }
                Err(doubt) => {
                    self.blind |= 1 << k;
                    self.doubts.count(doubt);
                }
            }
        }
        seen
    }

    /// All sensors' values, those that are missing made up; none if that is not tolerated.
    fn fill(
        &self,
        place: &Place,
        now_us: u64,
        seen: [Option<f32>; SENSORS],
    ) -> Option<[f32; SENSORS]> {
        let tolerance = &place.tolerance;
        if self.blind.count_ones() > tolerance.missing.into() {
            return None;
        }
        let mut values = [0.0; SENSORS];
        let each = place.sensors.iter().zip(&self.known).zip(&seen);
        for (k, (((sensor, known), value), to)) in each.zip(&mut values).enumerate() {
            if let Some(value) = value {
                *to = *value;
                continue;
            }
            // Who has never read anything is not known to work at all.
            let (held, good_us) = known.good?;
            if now_us.saturating_sub(good_us) > tolerance.missing_us.into() {
                return None;
            }
            let reads = |at: usize| Some((place.sensors.get(at)?.cell, (*seen.get(at)?)?));
            let left = (0..k).rev().find_map(reads);
            let right = (k + 1..place.sensors.len()).find_map(reads);
            *to = match (left, right) {
                (Some((from, low)), Some((to, high))) => {
                    let share = f32::from(sensor.cell - from) / f32::from(to - from);
                    low + (high - low) * share
                }
                _ => held,
            };
        }
        Some(values)
    }
}

impl Known {
    /// A reading in the field's units, if it may be the field's.
    fn judge(
        &mut self,
        place: &Place,
        sensor: &Sensor,
        reading: Option<f32>,
        now_us: u64,
    ) -> Result<f32, Doubt> {
        let tolerance = &place.tolerance;
        let (Some(reading), Some(calibration)) = (reading, sensor.calibration) else {
            return Err(Doubt::Missing);
        };
        let since = match self.same {
            Some((same, since)) if same.to_bits() == reading.to_bits() => since,
            _ => now_us,
        };
        self.same = Some((reading, since));
        let value = calibration.field(reading);
        if !(tolerance.least..=tolerance.most).contains(&value) {
            return Err(Doubt::OutOfRange);
        }
        let same_us = now_us.saturating_sub(since);
        if (tolerance.frozen_us).is_some_and(|frozen_us| same_us >= frozen_us.into()) {
            return Err(Doubt::Frozen);
        }
        // A channel that has read nothing good yet may read anything that the field can be.
        if let Some((good, at)) = self.good {
            let passed = now_us.saturating_sub(at) as f32 * 1e-6;
            if (value - good).abs() > tolerance.change * passed {
                return Err(Doubt::Implausible);
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Calibration, Target, Tolerance};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Cells 0, 1 and 3 of a window of four, read as they are.
    fn place(tolerance: Tolerance) -> Place {
        let sensor = |(channel, cell)| Sensor {
            channel,
            cell,
            calibration: Some(Calibration {
                gain: 1.0,
                offset: 0.0,
            }),
        };
        Place {
            sensors: [(0, 0), (1, 1), (2, 3)].into_iter().map(sensor).collect(),
            target: Target::Constant(0.5),
            tolerance,
            node: 0,
            position: [0.0; 2],
            second: 1.0,
            force: None,
            neighbours: None,
        }
    }

    const TOLERANCE: Tolerance = Tolerance {
        missing: 1,
        missing_us: 100_000,
        least: -10.0,
        most: 10.0,
        change: 10.0,
        frozen_us: None,
    };

    struct Node(Place, Sight);

    impl Node {
        fn new(tolerance: Tolerance) -> Self {
            Self(place(tolerance), Sight::new())
        }

        /// The four cells of the window after these readings, 10 ms apart.
        fn sees(&mut self, step: u64, readings: [f32; 3]) -> Option<[f32; 4]> {
            let mut all = [None; SENSORS];
            for (to, from) in all.iter_mut().zip(readings) {
                // What no channel gives stands for one that gives nothing.
                *to = (!from.is_nan()).then_some(from);
            }
            let mut field = [f32::NAN; 6];
            let Self(place, sight) = self;
            let span = sight.look(place, step * 10_000, &all, &mut field)?;
            assert_eq!(span, Span { first: 1, last: 4 });
            Some([field[1], field[2], field[3], field[4]])
        }
    }

    const GONE: f32 = f32::NAN;

    #[test]
    fn cells_between_sensors_lie_on_a_line() {
        let mut node = Node::new(TOLERANCE);
        assert_eq!(node.sees(0, [1.0, 2.0, 4.0]), Some([1.0, 2.0, 3.0, 4.0]));
        assert_eq!((node.1.blind(), node.1.doubts()), (0, Doubts::default()));
    }

    #[test]
    fn a_missing_cell_is_interpolated_and_one_at_the_rim_held_for_as_long_as_tolerated() {
        let mut node = Node::new(TOLERANCE);
        node.sees(0, [1.0, 2.0, 4.0]);
        // A third of the way from 1 to 4.
        let inner = node.sees(1, [1.0, GONE, 4.0]).unwrap();
        assert_eq!(inner, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(node.1.blind(), 0b010);
        assert_eq!(node.sees(2, [1.0, 2.0, GONE]), Some([1.0, 2.0, 3.0, 4.0]));
        for step in 3..=11 {
            assert!(node.sees(step, [1.0, 2.0, GONE]).is_some(), "{step}");
        }
        // 110 ms after the last good one.
        assert_eq!(node.sees(12, [1.0, 2.0, GONE]), None);
        assert!(node.sees(13, [1.0, 2.0, 4.5]).is_some(), "it is back");
        assert_eq!(node.1.doubts().missing, 12);
    }

    #[test]
    fn more_than_tolerated_or_never_seen_is_too_little() {
        let mut node = Node::new(TOLERANCE);
        assert_eq!(node.sees(0, [1.0, GONE, 4.0]), None);
        assert!(node.sees(1, [1.0, 2.0, 4.0]).is_some());
        assert_eq!(node.sees(2, [1.0, GONE, GONE]), None);
        assert!(node.sees(3, [1.0, 2.0, GONE]).is_some());
    }

    #[test]
    fn what_the_field_cannot_be_is_not_taken_and_what_it_has_become_is() {
        let mut node = Node::new(TOLERANCE);
        node.sees(0, [1.0, 2.0, 4.0]);
        node.sees(1, [1.0, 2.0, 11.0]);
        assert_eq!(node.1.doubts().out_of_range, 1);
        // 10 a second is 0.2 in the 20 ms since the last good one, and 0.5 in 50.
        node.sees(2, [1.0, 2.0, 4.4]);
        assert_eq!((node.1.blind(), node.1.doubts().implausible), (0b100, 1));
        assert!(node.sees(5, [1.0, 2.0, 4.4]).is_some());
        assert_eq!(node.1.blind(), 0);
    }

    #[test]
    fn a_channel_that_never_changes_is_frozen_until_it_does() {
        let mut node = Node::new(Tolerance {
            frozen_us: Some(30_000),
            ..TOLERANCE
        });
        for step in 0..3 {
            let drift = step as f32 * 0.01;
            node.sees(step, [1.0 + drift, 2.0 - drift, 4.0]).unwrap();
        }
        assert_eq!(node.1.blind(), 0);
        assert!(node.sees(3, [1.1, 1.9, 4.0]).is_some());
        assert_eq!((node.1.blind(), node.1.doubts().frozen), (0b100, 1));
        assert!(node.sees(4, [1.15, 1.85, 4.01]).is_some());
        assert_eq!(node.1.blind(), 0);
    }

    proptest! {
        /// Whatever channels read and whenever they are looked at: what an agent is shown lies in the
        /// plausible range, and no more is made up than is tolerated.
        #[test]
        fn what_is_seen_is_plausible(
            steps in proptest::collection::vec((0u64..200_000, proptest::array::uniform3(
                prop_oneof![any::<f32>(), -12.0f32..12.0])), 1..50),
            missing in 0u8..3,
        ) {
            let mut node = Node::new(Tolerance { missing, ..TOLERANCE });
            let mut now = 0;
            for (later, readings) in steps {
                now += later;
                let mut all = [None; SENSORS];
                all.iter_mut().zip(readings).for_each(|(to, from)| *to = Some(from));
                let mut field = [0.0; 6];
                let seen = node.1.look(&node.0, now, &all, &mut field);
                if seen.is_some() {
                    let inside: Vec<f32> = field[1..5].to_vec();
                    prop_assert!(inside.iter().all(|x| (-10.0..=10.0).contains(x)), "{:?}", inside);
                    prop_assert!(node.1.blind().count_ones() <= missing.into());
                }
            }
        }
    }
}
