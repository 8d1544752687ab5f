//! What the field should be at a time, in the cells of a window.
//!
//! A place's target may follow a schedule: points in time with lines in between, once or over and over. Its
//! times are whole milliseconds and those of the node whole microseconds, so that it is followed as exactly
//! after a year as on its first day.

use crate::neighbours::grid::Grid;
use crate::record::Fault;
use heapless::Vec;
use serde::{Deserialize, Serialize};

/// Most points of a schedule: it is kept where the values of a window's cells would be, and takes half of that.
pub const POINTS: usize = 16;

/// A target that changes in time, the same everywhere in the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// It begins again so long after it began; 0: never, the last value stays.
    pub repeat_ms: u32,
    /// What it goes through, in the order of their times. Two at one time are a step.
    pub points: Vec<Point, POINTS>,
}

/// What the field should be at one time of a schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// So long after the schedule's beginning.
    pub at_ms: u32,
    /// What it should be then.
    pub value: f32,
}

impl Point {
    fn at_us(&self) -> u64 {
        u64::from(self.at_ms) * 1_000
    }
}

impl Schedule {
    /// Whether its values are numbers, and so is what lies between them; an error if its times are none to
    /// follow.
    pub(crate) fn check(&self) -> Result<bool, Fault> {
        let mut before = Point::default();
        let mut finite = true;
        for (k, point) in self.points.iter().enumerate() {
            if point.at_ms < before.at_ms {
                return Err(Fault::Times { point: k as u8 });
            }
            finite &= (point.value - before.value).is_finite();
            before = *point;
        }
        match self.repeat_ms {
            _ if self.points.is_empty() => Err(Fault::NoPoint),
            1.. if self.repeat_ms < before.at_ms => Err(Fault::Repeat),
            _ => Ok(finite),
        }
    }

    /// The value so long after the schedule began for the first time: until its first point that one's.
    #[inline(never)]
    pub fn value(&self, passed_us: u64) -> f32 {
        let repeat_us = u64::from(self.repeat_ms) * 1_000;
        let now_us = passed_us.checked_rem(repeat_us).unwrap_or(passed_us);
        let mut before: Option<&Point> = None;
        for point in &self.points {
            if point.at_us() > now_us {
                return before.map_or(point.value, |before| {
                    let since = |us: u64| us.saturating_sub(before.at_us()) as f32;
                    let share = since(now_us) / since(point.at_us());
                    before.value + (point.value - before.value) * share
                });
            }
            before = Some(point);
        }
        before.map_or(0.0, |last| last.value)
    }
}

/// What the field should be at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim<'p> {
    /// The same everywhere in the window.
    Same(f32),
    /// A value for each cell of the window.
    Each(&'p [f32]),
}

impl Aim<'_> {
    /// What it should be in a cell of the window.
    pub fn cell(&self, cell: u16) -> f32 {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values.get(usize::from(cell)).copied().unwrap_or_default(),
        }
    }

    /// Writes it into the target of a patch, which has a cell more on each side.
    #[inline(never)]
    pub fn fill(&self, grid: Grid, target: &mut [f32]) {
        let mut cells = 0..grid.cells();
        for row in 0..usize::from(grid.rows()) {
            for column in 0..usize::from(grid.side) {
                let cell = cells.next().unwrap_or_default();
                if let Some(value) = target.get_mut(grid.in_patch(row, column)) {
                    *value = self.cell(cell);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;
    const DAY: u64 = 86_400 * SECOND;

    fn schedule(repeat_ms: u32, points: &[(u32, f32)]) -> Schedule {
        let points = points.iter().map(|&(at_ms, value)| Point { at_ms, value });
        Schedule {
            repeat_ms,
            points: points.collect(),
        }
    }

    /// An hour from 0.2 to 0.5, and 0.1 for the rest of the day.
    fn daily() -> Schedule {
        let points = [(0, 0.2), (3_600_000, 0.5), (3_600_000, 0.1)];
        schedule(86_400_000, &points)
    }

    #[test]
    fn it_is_at_its_points_at_their_times_between_them_on_a_line_and_begins_again() {
        let daily = daily();
        assert_eq!(daily.value(0), 0.2);
        // A quarter of the hour.
        assert_eq!(daily.value(900 * SECOND), 0.2 + (0.5 - 0.2) * 0.25);
        let before = daily.value(3_600 * SECOND - 1);
        assert!((before - 0.5).abs() < 1e-6, "{before}");
        assert_eq!(
            daily.value(3_600 * SECOND),
            0.1,
            "of two at one time, the last"
        );
        assert_eq!(daily.value(DAY - 1), 0.1);
        assert_eq!(daily.value(DAY), 0.2);
    }

    #[test]
    fn after_a_thousand_years_it_is_what_it_was_on_the_first_day() {
        let daily = daily();
        for us in [
            1,
            17 * SECOND + 3,
            1_800 * SECOND,
            3_600 * SECOND - 1,
            DAY - 1,
        ] {
            let later = daily.value(365_250 * DAY + us);
            assert_eq!(later.to_bits(), daily.value(us).to_bits(), "{us}");
        }
    }

    #[test]
    fn before_its_first_point_it_is_that_one_and_after_its_last_it_stays() {
        let once = schedule(0, &[(1_000, 1.0), (2_000, 3.0)]);
        assert_eq!(once.value(0), 1.0);
        assert_eq!(once.value(1_500_000), 2.0);
        assert_eq!(once.value(2_000_000), 3.0);
        assert_eq!(once.value(u64::MAX), 3.0);
        // Sawtooth: its last point is where it begins again.
        let saw = schedule(2_000, &[(0, 0.0), (2_000, 4.0)]);
        assert_eq!(saw.value(3_500_000), 3.0);
        assert_eq!(saw.value(4_000_000), 0.0);
    }

    #[test]
    fn a_patch_is_told_what_the_field_should_be_in_the_window_and_not_around_it() {
        let line = Grid {
            side: 3,
            plane: false,
        };
        let plane = Grid {
            side: 2,
            plane: true,
        };
        let each = Aim::Each(&[1.0, 2.0, 3.0, 4.0]);
        let mut target = [9.0; 5];
        each.fill(line, &mut target);
        assert_eq!(target, [9.0, 1.0, 2.0, 3.0, 9.0]);
        let mut target = [0.0; 16];
        each.fill(plane, &mut target);
        #[rustfmt::skip]
        assert_eq!(target, [
            0.0, 0.0, 0.0, 0.0,
            0.0, 1.0, 2.0, 0.0,
            0.0, 3.0, 4.0, 0.0,
            0.0, 0.0, 0.0, 0.0,
        ]);
        Aim::Same(0.5).fill(line, &mut target[..5]);
        assert_eq!(target[..5], [0.0, 0.5, 0.5, 0.5, 0.0]);
        assert_eq!(each.cell(4), 0.0, "the window has no such cell");
    }

    proptest! {
        /// Whatever is taken for a schedule, at any time.
        #[test]
        fn what_is_aimed_at_is_a_number(
            points in proptest::collection::vec((any::<u32>(), any::<f32>()), 0..=POINTS),
            repeat_ms: u32,
            passed_us: u64,
        ) {
            let mut points = points;
            points.sort_by_key(|point| point.0);
            let schedule = schedule(repeat_ms, &points);
            if schedule.check() == Ok(true) {
                prop_assert!(schedule.value(passed_us).is_finite());
            }
        }
    }
}
