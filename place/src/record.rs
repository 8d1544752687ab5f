//! What is particular about a place, in bytes that outlive power cuts and can be signed.

use crate::aim::{Aim, Schedule};
use crate::neighbours::grid::{Grid, Mounted};
use agent_core::agent::Action;
use agent_core::policy::Header;
use core::fmt;
use heapless::Vec;
use serde::{Deserialize, Serialize};

/// Most sensors of a node: as many as a status has bits for.
pub const SENSORS: usize = 16;

/// Most cells of a window that a node assembles by itself.
pub const CELLS: usize = 64;

/// Most bytes of a record.
pub const RECORD: usize = 560;

/// First in every record: what it is, and its form.
const FORM: [u8; 4] = *b"PLC2";

/// What a board has for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equipment {
    /// Channels that sensors are read on, from 0.
    pub channels: u8,
    /// Whether it hears its neighbours.
    pub bus: bool,
}

/// What a node knows of its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The node's number, for people: nothing that an agent does depends on it.
    pub node: u16,
    /// Where the node is mounted, in the policy's coordinates; unused axes are 0.
    pub position: [f32; 2],
    /// How long one of the policy's seconds takes here, in seconds: fields have time scales of their own.
    pub second: f32,
    /// What it reads, in the order of their cells.
    pub sensors: Vec<Sensor, SENSORS>,
    /// What it should read.
    pub target: Target,
    /// Largest |force| here, where that is less than the policy's.
    pub force: Option<f32>,
    /// What it may do without.
    pub tolerance: Tolerance,
    /// Whom it hears, if anybody.
    pub neighbours: Option<Neighbours>,
}

/// Whose readings a node takes beside its own, from the bus that all of them are on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Which cells of the window another node is mounted in, a bit each, from the lowest; in the plane
    /// row after row.
    pub cells: u64,
    /// From one cell to the next, in the policy's coordinates.
    pub spacing: f32,
    /// How far from the middle of its cell a neighbour may be mounted, along each axis.
    pub within: f32,
    /// What was measured longer ago is not taken any more.
    pub stale_us: u32,
    /// It says what it measures itself every so many steps; 0: never.
    pub every: u8,
}

/// Which channel of the board reads which cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sensor {
    /// The board's channel.
    pub channel: u8,
    /// The cell of the policy's window, from 0.
    pub cell: u16,
    /// None: the channel was never calibrated, which a node refuses.
    pub calibration: Option<Calibration>,
}

/// From what a channel reads to the field: `gain · reading + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The field's units in one of the channel's.
    pub gain: f32,
    /// What the field is where the channel reads zero.
    pub offset: f32,
}

impl Calibration {
    /// The field where the channel reads that.
    pub fn field(&self, reading: f32) -> f32 {
        self.gain * reading + self.offset
    }
}

/// What the field should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// Zero, of a policy that is shown no target.
    None,
    /// The same everywhere in the window.
    Constant(f32),
    /// A value for each cell of the window.
    Profile(Vec<f32, CELLS>),
    /// The same everywhere, and another with time. Last, so that records of before are read as they were.
    Schedule(Schedule),
}

/// What a node may do without, and what it takes for a reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// So many sensors may be missing at once; cells between others are then interpolated, those at
    /// the rim held.
    pub missing: u8,
    /// For so long each.
    pub missing_us: u32,
    /// The least that the field can be here,
    pub least: f32,
    /// the most,
    pub most: f32,
    /// and the most by which it changes in a second.
    pub change: f32,
    /// A channel that reads the same to the last bit for so long is frozen; none: it may.
    pub frozen_us: Option<u32>,
}

impl Place {
    /// Its bytes, in `buffer`. Whatever is in it: who reads them checks it.
    pub fn encode<'b>(&self, buffer: &'b mut [u8; RECORD]) -> Result<&'b [u8], Fault> {
        let bytes = postcard::to_slice(&(FORM, self), buffer);
        let bytes = bytes.map_err(|_| Fault::TooLong)?;
        Ok(bytes)
    }

    /// The place that these bytes are, if they are one by itself.
    #[inline(never)]
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() > RECORD {
            return Err(Fault::TooLong);
        }
        match postcard::take_from_bytes::<([u8; 4], Self)>(bytes) {
            Ok(((FORM, place), [])) => place.check().map(|()| place),
            _ => Err(Fault::Unreadable),
        }
    }

    /// Whether it is a place, whatever runs there.
    pub fn check(&self) -> Result<(), Fault> {
        if !self.position.iter().all(|x| x.is_finite()) {
            return Err(Fault::Position);
        }
        if !positive(self.second) {
            return Err(Fault::Second);
        }
        if self.sensors.is_empty() {
            return Err(Fault::NoSensor);
        }
        for (k, sensor) in self.sensors.iter().enumerate() {
            let Sensor {
                channel,
                cell,
                calibration,
            } = *sensor;
            let before = self.sensors.get(..k).unwrap_or_default();
            if before.iter().any(|other| other.channel == channel) {
                return Err(Fault::ChannelTwice { channel });
            }
            if before.last().is_some_and(|other| other.cell >= cell) {
                return Err(Fault::CellTwice { cell });
            }
            let calibration = calibration.ok_or(Fault::Uncalibrated { channel })?;
            let usable = calibration.gain.is_normal() && calibration.offset.is_finite();
            if !usable {
                return Err(Fault::Calibration { channel });
            }
        }
        let finite = match &self.target {
            Target::None => true,
            Target::Constant(value) => value.is_finite(),
            Target::Profile(values) => values.iter().all(|value| value.is_finite()),
            Target::Schedule(schedule) => schedule.check()?,
        };
        if !finite {
            return Err(Fault::Target);
        }
        if self.force.is_some_and(|force| !positive(force)) {
            return Err(Fault::Force);
        }
        let Tolerance {
            missing,
            least,
            most,
            change,
            frozen_us,
            ..
        } = self.tolerance;
        if !(least.is_finite() && most.is_finite() && least < most) {
            return Err(Fault::Range);
        }
        if !positive(change) {
            return Err(Fault::Change);
        }
        if frozen_us == Some(0) {
            return Err(Fault::Frozen);
        }
        let mut sensors = self.sensors.len();
        if let Some(neighbours) = &self.neighbours {
            neighbours.check(&self.sensors)?;
            sensors += neighbours.cells.count_ones() as usize;
        }
        if usize::from(missing) >= sensors {
            return Err(Fault::Missing {
                sensors: sensors as u8,
            });
        }
        Ok(())
    }

    /// Whether a policy can run here, on a board that has this.
    #[inline(never)]
    pub fn fits(&self, policy: &Header, board: Equipment) -> Result<(), Fault> {
        let (sensing, limits) = (&policy.sensing, &policy.limits);
        if sensing.axes != 1 && self.neighbours.is_none() {
            return Err(Fault::Plane);
        }
        if sensing.wide.is_some() {
            return Err(Fault::Wide);
        }
        let grid = Grid::of(sensing);
        let window = grid.cells();
        if usize::from(window) > CELLS {
            return Err(Fault::Window { window });
        }
        for &Sensor { channel, cell, .. } in &self.sensors {
            if channel >= board.channels {
                let channels = board.channels;
                return Err(Fault::NoChannel { channel, channels });
            }
            if cell >= window {
                return Err(Fault::Cell { cell, window });
            }
        }
        if self.neighbours.is_some() && !board.bus {
            return Err(Fault::NoBus);
        }
        if let Some(neighbours) = &self.neighbours
            && let Some(cell) = (0..64).find(|c| neighbours.hears(*c) && *c >= window)
        {
            return Err(Fault::Cell { cell, window });
        }
        // Agents know nothing of a field that goes on beyond their outermost sensors.
        let mounted = Mounted::of(self, grid);
        if !mounted.surround(grid.own()) {
            return Err(Fault::OwnCell { own: grid.own() });
        }
        let is_inside = |position: [f32; 2], margin: f32| {
            let bounds = limits.low.iter().zip(&limits.high);
            let mut axes = position.iter().zip(bounds).take(sensing.axes.into());
            axes.all(|(x, (low, high))| (low - margin..=high + margin).contains(x))
        };
        if !is_inside(self.position, 0.0) {
            return Err(Fault::Outside);
        }
        if let Some(neighbours) = &self.neighbours {
            if let Some(cell) = mounted.gap() {
                return Err(Fault::Gap { cell });
            }
            let is_beyond = |cell: &u16| {
                let centre = grid.centre(self.position, neighbours.spacing, *cell);
                neighbours.hears(*cell) && !is_inside(centre, neighbours.within)
            };
            if let Some(cell) = (0..window).find(is_beyond) {
                return Err(Fault::Beyond { cell });
            }
        }
        match (&self.target, sensing.target) {
            (Target::None, true) => return Err(Fault::TargetMissing),
            (Target::None, false) => {}
            (_, false) => return Err(Fault::TargetUnasked),
            (Target::Profile(values), true) if values.len() != usize::from(window) => {
                return Err(Fault::Profile {
                    values: values.len() as u8,
                    window,
                });
            }
            _ => {}
        }
        if self.period_us(policy).is_none() {
            return Err(Fault::Period);
        }
        let force = limits.force.ok_or(Fault::OnlyMoves)?;
        if self.force.is_some_and(|here| here > force) {
            return Err(Fault::Wider);
        }
        Ok(())
    }

    /// What of an action is done here: within the place's limits, and by a node that stays where it is.
    pub fn narrowed(&self, action: Action) -> Action {
        let force = match self.force {
            // Not `clamp`, which panics on bounds it cannot know to be in order.
            Some(most) => action.force.max(-most).min(most),
            None => action.force,
        };
        Action {
            force,
            velocity: [0.0; 2],
            mode: action.mode,
        }
    }

    /// From one step to the next here, where that is a time that a node can keep.
    pub fn period_us(&self, policy: &Header) -> Option<u32> {
        let period = policy.timing.period_us as f32 * self.second;
        // Beyond 2^24 single precision leaves out microseconds: a node steps every 16 seconds at least.
        (1.0..=16_777_216.0)
            .contains(&period)
            .then_some(period as u32)
    }

    /// What the field should be so long after the node took the place.
    pub fn aim(&self, passed_us: u64) -> Aim<'_> {
        match &self.target {
            Target::None => Aim::Same(0.0),
            Target::Constant(value) => Aim::Same(*value),
            Target::Profile(values) => Aim::Each(values),
            Target::Schedule(schedule) => Aim::Same(schedule.value(passed_us)),
        }
    }

    /// Whether a node here may be told that the field should be this, whatever the place says.
    pub fn may_aim(&self, value: f32) -> Result<(), Fault> {
        let Tolerance { least, most, .. } = self.tolerance;
        match self.target {
            Target::None => Err(Fault::TargetUnasked),
            _ if !value.is_finite() => Err(Fault::Target),
            _ if !(least..=most).contains(&value) => Err(Fault::TargetImplausible),
            _ => Ok(()),
        }
    }
}

impl Neighbours {
    /// Whether another node is mounted in that cell.
    pub fn hears(&self, cell: u16) -> bool {
        cell < 64 && self.cells >> cell & 1 == 1
    }

    fn check(&self, sensors: &[Sensor]) -> Result<(), Fault> {
        if !positive(self.spacing) {
            return Err(Fault::Spacing);
        }
        // No position may be that of two cells.
        if !(positive(self.within) && self.within < 0.5 * self.spacing) {
            return Err(Fault::Within);
        }
        // Half of what the clock of a neighbour tells before it begins again.
        if !(1..=i32::MAX as u32).contains(&self.stale_us) {
            return Err(Fault::Stale);
        }
        if let Some(sensor) = sensors.iter().find(|sensor| self.hears(sensor.cell)) {
            return Err(Fault::HeardAndRead { cell: sensor.cell });
        }
        Ok(())
    }
}

/// And finite.
fn positive(x: f32) -> bool {
    x.is_normal() && x > 0.0
}

/// What is wrong with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are none.
    Unreadable,
    /// It has too many bytes.
    TooLong,
    /// The position is no number.
    Position,
    /// A second of the policy's takes no time here.
    Second,
    /// Nothing is read.
    NoSensor,
    /// A channel is given two cells.
    ChannelTwice {
        /// The channel.
        channel: u8,
    },
    /// A cell is read by two channels, or cells are out of order.
    CellTwice {
        /// The cell.
        cell: u16,
    },
    /// A channel was never calibrated.
    Uncalibrated {
        /// The channel.
        channel: u8,
    },
    /// A calibration loses what is read.
    Calibration {
        /// The channel.
        channel: u8,
    },
    /// The target is no number.
    Target,
    /// A schedule has nothing to go through.
    NoPoint,
    /// A point of a schedule comes before the one that it stands behind.
    Times {
        /// Which one, from 0.
        point: u8,
    },
    /// A schedule would begin again before its last point.
    Repeat,
    /// The limit is none.
    Force,
    /// The plausible range is none.
    Range,
    /// The plausible change is none.
    Change,
    /// Nothing is frozen after no time.
    Frozen,
    /// All sensors may be missing.
    Missing {
        /// How many there are.
        sensors: u8,
    },
    /// The policy's window is a plane's.
    Plane,
    /// The policy is shown the whole domain.
    Wide,
    /// The policy's window has too many cells.
    Window {
        /// How many.
        window: u16,
    },
    /// The board does not have a channel.
    NoChannel {
        /// The channel.
        channel: u8,
        /// How many it has.
        channels: u8,
    },
    /// It is to hear neighbours, and the board has nothing to hear them with.
    NoBus,
    /// The policy's window does not have a cell.
    Cell {
        /// The cell.
        cell: u16,
        /// How many it has.
        window: u16,
    },
    /// The sensors all lie on one side of the node.
    OwnCell {
        /// The node's own cell.
        own: u16,
    },
    /// The node is outside the policy's domain.
    Outside,
    /// The policy must be shown a target.
    TargetMissing,
    /// The policy cannot be shown a target.
    TargetUnasked,
    /// The target is nothing that the field can be.
    TargetImplausible,
    /// The target has another length than the window.
    Profile {
        /// Its values.
        values: u8,
        /// The window's cells.
        window: u16,
    },
    /// Steps would come too quickly one after the other, or too slowly.
    Period,
    /// The policy has no force.
    OnlyMoves,
    /// The limit is wider than the policy's.
    Wider,
    /// The cells have no size.
    Spacing,
    /// Neighbours could be in two cells.
    Within,
    /// Nothing is ever, or never, too old.
    Stale,
    /// A cell is heard that is read.
    HeardAndRead {
        /// The cell.
        cell: u16,
    },
    /// Nobody is mounted in a cell whose row and column have somebody.
    Gap {
        /// The cell.
        cell: u16,
    },
    /// A cell is heard that is outside the domain.
    Beyond {
        /// The cell.
        cell: u16,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unreadable => f.write_str(
                "these bytes are no place that this image reads: configure it with the program that \
                 belongs to it",
            ),
            Self::TooLong => write!(f, "a place has at most {RECORD} bytes"),
            Self::Position => f.write_str("the position is not a number"),
            Self::Second => f.write_str("the time that a second of the policy's takes here must be positive"),
            Self::NoSensor => f.write_str("no sensor is named: say which channel reads which cell"),
            Self::ChannelTwice { channel } => {
                write!(f, "channel {channel} reads two cells: name each channel once")
            }
            Self::CellTwice { cell } => write!(
                f,
                "cell {cell} is read twice or stands out of order: name each cell once, in order"
            ),
            Self::Uncalibrated { channel } => write!(
                f,
                "channel {channel} is not calibrated: give its gain and offset, measured at this place"
            ),
            Self::Calibration { channel } => write!(
                f,
                "the calibration of channel {channel} is unusable: the gain must be a number other than \
                 0, the offset a number"
            ),
            Self::Target => f.write_str("the target is not a number everywhere"),
            Self::NoPoint => f.write_str("the target has no points: give at least one"),
            Self::Times { point } => write!(
                f,
                "point {point} of the target, from 0, is earlier than the one before: put them in order"
            ),
            Self::Repeat => f.write_str("the target begins again before its last point"),
            Self::Force => f.write_str("the limit of the force must be positive"),
            Self::Range => f.write_str(
                "the least plausible reading must be less than the most plausible one, and both numbers",
            ),
            Self::Change => f.write_str("the largest plausible change a second must be positive"),
            Self::Frozen => f.write_str(
                "a channel is frozen after some time: give more than 0, or leave it out",
            ),
            Self::Missing { sensors } => {
                write!(f, "of {sensors} sensors at least one must be left: fewer may be missing")
            }
            Self::Plane => f.write_str(
                "the policy sees a plane, and the sensors of a place lie on a line: say which neighbours it \
                 hears, or flash a policy of a field on a line",
            ),
            Self::Wide => f.write_str(
                "the policy is shown the whole domain, which a node by itself does not see: flash one \
                 without a wide view",
            ),
            Self::Window { window } => write!(
                f,
                "the policy's window has {window} cells, and a node by itself assembles at most {CELLS}: \
                 flash one with a smaller window"
            ),
            Self::NoChannel { channel, channels } => {
                write!(f, "there is no channel {channel}: the board has {channels}, from 0")
            }
            Self::NoBus => f.write_str("it is to hear neighbours: the board has no bus"),
            Self::Cell { cell, window } => write!(
                f,
                "there is no cell {cell}: the policy's window has {window}, from 0"
            ),
            Self::OwnCell { own } => write!(
                f,
                "the node's own cell, {own} of its window, lies outside its sensors: it must lie between \
                 two of them, or on one"
            ),
            // Without numbers: what writes floats would be a tenth of an image.
            Self::Outside => f.write_str(
                "the position is outside the policy's domain: is it in the problem's lengths?",
            ),
            Self::TargetMissing => f.write_str("the policy holds the field at a target: give one"),
            Self::TargetUnasked => {
                f.write_str("the policy holds the field at zero: leave the target out")
            }
            Self::TargetImplausible => {
                f.write_str("the target is outside what the field can be here")
            }
            Self::Profile { values, window } => write!(
                f,
                "the target has {values} values and the policy's window {window} cells: give one for each"
            ),
            Self::Period => f.write_str(
                "the policy's period would be less than a microsecond here, or more than 16 seconds: change \
                 how long a second of the policy's takes",
            ),
            Self::OnlyMoves => f.write_str(
                "the policy acts by moving, and a node by itself stays where it is: flash one with a force",
            ),
            Self::Wider => f.write_str(
                "the limit is wider than the policy's own, which a place can only narrow: leave it out for \
                 that one",
            ),
            Self::Spacing => f.write_str("the spacing of the window's cells must be positive"),
            Self::Within => f.write_str(
                "neighbours must be within less than half a spacing of the middle of their cells, or they \
                 could be in two, and within more than nothing, which no number hits",
            ),
            Self::Stale => f.write_str(
                "what neighbours say must become stale after some time, of at most 2147 seconds",
            ),
            Self::HeardAndRead { cell } => {
                write!(f, "cell {cell} is both heard and read: name it once")
            }
            Self::Gap { cell } => write!(
                f,
                "cell {cell} is neither heard nor read, though others in its row and its column are: what \
                 lies between cannot be told without it"
            ),
            Self::Beyond { cell } => write!(
                f,
                "cell {cell} is to be heard and lies outside the policy's domain: nobody is there"
            ),
        }
    }
}

impl core::error::Error for Fault {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::aim::{POINTS, Point};
    use agent_core::agent::Mode;
    use agent_core::policy::{Limits, Sensing, Timing};
    use proptest::prelude::*;
    use std::string::ToString;

    /// Three sensors of a window of four, in degrees of which ten are one of the field.
    pub fn place() -> Place {
        let sensor = |(channel, cell)| Sensor {
            channel,
            cell,
            calibration: Some(Calibration {
                gain: 0.1,
                offset: -2.0,
            }),
        };
        Place {
            node: 7,
            position: [0.5, 0.0],
            second: 1.0,
            sensors: [(2, 0), (0, 1), (1, 3)].into_iter().map(sensor).collect(),
            target: Target::Constant(1.0),
            force: Some(1.5),
            tolerance: Tolerance {
                missing: 1,
                missing_us: 500_000,
                least: -5.0,
                most: 5.0,
                change: 10.0,
                frozen_us: Some(2_000_000),
            },
            neighbours: None,
        }
    }

    pub fn policy() -> Header<'static> {
        Header {
            sensing: Sensing {
                axes: 1,
                window: 4,
                target: true,
                ..Sensing::default()
            },
            limits: Limits {
                force: Some(2.0),
                high: [1.0; 2],
                ..Limits::default()
            },
            timing: Timing {
                period_us: 1_000,
                ..Timing::default()
            },
            ..Header::default()
        }
    }

    /// What places are for, where nothing else is said.
    pub const BOARD: Equipment = Equipment {
        channels: 3,
        bus: true,
    };

    /// The sentence for a place that was changed so.
    fn refused(change: impl FnOnce(&mut Place)) -> Fault {
        let mut place = place();
        change(&mut place);
        match place.check() {
            Err(fault) => {
                // Bytes that say so are refused for the same reason.
                let mut buffer = [0; RECORD];
                let bytes = place.encode(&mut buffer).unwrap();
                assert_eq!(Place::read(bytes), Err(fault));
                fault
            }
            Ok(()) => place.fits(&policy(), BOARD).unwrap_err(),
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let mut buffer = [0; RECORD];
        let bytes = place().encode(&mut buffer).unwrap();
        assert_eq!(Place::read(bytes), Ok(place()));
        assert_eq!(place().fits(&policy(), BOARD), Ok(()));
        let short = &bytes[..bytes.len() - 1];
        assert_eq!(Place::read(short), Err(Fault::Unreadable));
        let mut other = bytes.to_vec();
        other[3] = b'9';
        assert_eq!(Place::read(&other), Err(Fault::Unreadable));
        other[3] = b'2';
        other.push(0);
        assert_eq!(Place::read(&other), Err(Fault::Unreadable));
    }

    /// Of the form that they had before there were schedules.
    #[test]
    fn the_bytes_of_a_record_are_fixed() {
        let mut place = place();
        place.sensors.truncate(1);
        place.tolerance.missing = 0;
        let mut expected = b"PLC2".to_vec();
        // Node 7 at (0.5, 0), whose second takes 1; a sensor: channel 2, cell 0, calibrated.
        expected.push(7);
        for value in [0.5f32, 0.0, 1.0] {
            expected.extend(value.to_le_bytes());
        }
        expected.extend([1, 2, 0, 1]);
        for value in [0.1f32, -2.0] {
            expected.extend(value.to_le_bytes());
        }
        // The second form of targets, 1; a limit of 1.5.
        expected.push(1);
        expected.extend(1f32.to_le_bytes());
        expected.push(1);
        expected.extend(1.5f32.to_le_bytes());
        // None missing, for 500,000 µs in seven bits a byte; from -5 to 5, 10 a second; 2,000,000 µs; nobody.
        expected.extend([0, 0xa0, 0xc2, 0x1e]);
        for value in [-5f32, 5.0, 10.0] {
            expected.extend(value.to_le_bytes());
        }
        expected.extend([1, 0x80, 0x89, 0x7a, 0]);
        let mut buffer = [0; RECORD];
        assert_eq!(place.encode(&mut buffer).unwrap(), expected);
        // The fourth form: again after 300 ms, two points, of which the second is 200 ms after the first.
        place.target = schedule(300, &[(0, 1.0), (200, 1.0)]);
        let mut points = std::vec![3, 0xac, 2, 2, 0];
        points.extend(1f32.to_le_bytes());
        points.extend([0xc8, 1]);
        points.extend(1f32.to_le_bytes());
        expected.splice(29..34, points);
        assert_eq!(place.encode(&mut buffer).unwrap(), expected);
        assert_eq!(Place::read(&expected), Ok(place));
    }

    /// Through these points, in milliseconds.
    fn schedule(repeat_ms: u32, points: &[(u32, f32)]) -> Target {
        let points = points.iter().map(|&(at_ms, value)| Point { at_ms, value });
        Target::Schedule(Schedule {
            repeat_ms,
            points: points.collect(),
        })
    }

    #[test]
    fn a_schedule_that_cannot_be_followed_is_refused_by_name() {
        let of = |repeat_ms, points: &[(u32, f32)]| {
            let target = schedule(repeat_ms, points);
            refused(|place| place.target = target)
        };
        assert_eq!(of(0, &[]), Fault::NoPoint);
        let falling = [(0, 0.0), (200, 0.0), (100, 0.0)];
        assert_eq!(of(0, &falling), Fault::Times { point: 2 });
        assert_eq!(of(99, &[(0, 0.0), (100, 0.0)]), Fault::Repeat);
        assert_eq!(of(0, &[(0, f32::NAN)]), Fault::Target);
        assert_eq!(of(0, &[(0, 0.0), (100, f32::INFINITY)]), Fault::Target);
        // What lies between them would be none.
        assert_eq!(of(0, &[(0, f32::MIN), (100, f32::MAX)]), Fault::Target);
        // Two at one time are a step, and it may begin again with its last point.
        let sound = schedule(100, &[(0, 0.0), (0, 1.0), (100, 0.5)]);
        let sound = Place {
            target: sound,
            ..place()
        };
        assert_eq!(sound.check(), Ok(()));
        assert_eq!(sound.fits(&policy(), BOARD), Ok(()));
        let mut aimless = policy();
        aimless.sensing.target = false;
        assert_eq!(sound.fits(&aimless, BOARD), Err(Fault::TargetUnasked));
    }

    #[test]
    fn a_node_may_be_told_what_the_field_can_be_where_its_policy_has_a_target() {
        assert_eq!(place().may_aim(-5.0), Ok(()));
        assert_eq!(place().may_aim(5.1), Err(Fault::TargetImplausible));
        assert_eq!(place().may_aim(f32::NAN), Err(Fault::Target));
        assert_eq!(place().may_aim(f32::INFINITY), Err(Fault::Target));
        let aimless = Place {
            target: Target::None,
            ..place()
        };
        assert_eq!(aimless.may_aim(0.0), Err(Fault::TargetUnasked));
    }

    #[test]
    fn there_is_room_for_the_longest_place() {
        let sensor = |k: usize| Sensor {
            channel: 240 + k as u8,
            cell: 65_000 + k as u16,
            ..place().sensors[0]
        };
        let mut longest = place();
        longest.node = u16::MAX;
        longest.sensors = (0..SENSORS).map(sensor).collect();
        longest.target = Target::Profile([0.1; CELLS].into_iter().collect());
        longest.tolerance.missing_us = u32::MAX;
        longest.tolerance.frozen_us = Some(u32::MAX);
        longest.neighbours = Some(Neighbours {
            cells: u64::MAX,
            spacing: 0.1,
            within: 0.01,
            stale_us: i32::MAX as u32,
            every: u8::MAX,
        });
        let mut buffer = [0; RECORD];
        let bytes = longest.encode(&mut buffer).unwrap();
        let length = bytes.len();
        assert_eq!(Place::read(bytes), Ok(longest.clone()));
        // Four bytes a value, sixty-four times, are more than five and four, sixteen times.
        longest.target = schedule(u32::MAX, &[(u32::MAX, 0.1); POINTS]);
        let bytes = longest.encode(&mut buffer).unwrap();
        assert!(bytes.len() < length);
        assert_eq!(Place::read(bytes), Ok(longest));
        assert!(size_of::<Schedule>() < size_of::<Vec<f32, CELLS>>());
    }

    #[test]
    fn what_does_not_fit_the_policy_or_the_board_is_refused_by_name() {
        use Fault::{
            Cell, CellTwice, ChannelTwice, Missing, NoChannel, Outside, OwnCell, Profile,
            TargetMissing, Uncalibrated, Wider,
        };
        let beyond = Cell { cell: 4, window: 4 };
        assert_eq!(refused(|place| place.sensors[2].cell = 4), beyond);
        assert_eq!(refused(|place| place.position[0] = 1.01), Outside);
        assert_eq!(
            refused(|place| place.position[0] = f32::NAN),
            Fault::Position
        );
        let uncalibrated = Uncalibrated { channel: 0 };
        assert_eq!(
            refused(|place| place.sensors[1].calibration = None),
            uncalibrated
        );
        let missing = NoChannel {
            channel: 3,
            channels: 3,
        };
        assert_eq!(refused(|place| place.sensors[0].channel = 3), missing);
        let twice = ChannelTwice { channel: 2 };
        assert_eq!(refused(|place| place.sensors[1].channel = 2), twice);
        let again = CellTwice { cell: 1 };
        assert_eq!(refused(|place| place.sensors[2].cell = 1), again);
        // Cells 0 and 1, and the node is in cell 2.
        let aside = |place: &mut Place| {
            place.sensors.pop();
        };
        assert_eq!(refused(aside), OwnCell { own: 2 });
        assert_eq!(refused(|place| place.target = Target::None), TargetMissing);
        let short =
            |place: &mut Place| place.target = Target::Profile([0.0; 3].into_iter().collect());
        let profile = Profile {
            values: 3,
            window: 4,
        };
        assert_eq!(refused(short), profile);
        assert_eq!(refused(|place| place.force = Some(2.5)), Wider);
        assert_eq!(
            refused(|place| place.tolerance.missing = 3),
            Missing { sensors: 3 }
        );
        assert_eq!(refused(|place| place.second = 0.0), Fault::Second);
        assert_eq!(refused(|place| place.second = 1e9), Fault::Period);
        assert_eq!(refused(|place| place.tolerance.most = -5.0), Fault::Range);
        assert_eq!(refused(|place| place.tolerance.change = 0.0), Fault::Change);
        assert_eq!(
            refused(|place| place.tolerance.frozen_us = Some(0)),
            Fault::Frozen
        );
        assert_eq!(refused(|place| place.sensors.clear()), Fault::NoSensor);
        assert!(beyond.to_string().contains("no cell 4"));
    }

    /// Cell 0 of the four is heard, of a window that begins at 0.3.
    pub fn heard() -> Place {
        let mut place = place();
        place.sensors.remove(0);
        Place {
            neighbours: Some(Neighbours {
                cells: 0b1,
                spacing: 0.1,
                within: 0.01,
                stale_us: 10_000,
                every: 1,
            }),
            ..place
        }
    }

    #[test]
    fn neighbours_that_could_not_be_told_apart_are_refused() {
        assert_eq!(heard().check(), Ok(()));
        assert_eq!(heard().fits(&policy(), BOARD), Ok(()));
        let deaf = Equipment {
            bus: false,
            ..BOARD
        };
        assert_eq!(heard().fits(&policy(), deaf), Err(Fault::NoBus));
        let refused = |change: fn(&mut Neighbours)| {
            let mut place = heard();
            change(place.neighbours.as_mut().unwrap());
            place
                .check()
                .and_then(|()| place.fits(&policy(), BOARD))
                .unwrap_err()
        };
        assert_eq!(refused(|n| n.spacing = 0.0), Fault::Spacing);
        assert_eq!(refused(|n| n.within = 0.05), Fault::Within);
        assert_eq!(refused(|n| n.within = f32::NAN), Fault::Within);
        assert_eq!(refused(|n| n.stale_us = 0), Fault::Stale);
        let twice = Fault::HeardAndRead { cell: 3 };
        assert_eq!(refused(|n| n.cells = 0b1001), twice);
        let beyond = Fault::Cell { cell: 4, window: 4 };
        assert_eq!(refused(|n| n.cells = 0b1_0001), beyond);
        // Two cells to the left of 0.5 is -0.1.
        assert_eq!(refused(|n| n.spacing = 0.3), Fault::Beyond { cell: 0 });
    }

    #[test]
    fn in_the_plane_those_who_are_heard_stand_in_rows_and_columns() {
        let mut header = policy();
        header.sensing.axes = 2;
        let mut place = heard();
        // Row 2, column 2 is the node's own of 4 × 4.
        place.sensors.truncate(1);
        place.sensors[0].cell = 10;
        place.position = [0.5; 2];
        place.tolerance.missing = 0;
        let around = |cells| {
            let mut place = place.clone();
            place.neighbours.as_mut().unwrap().cells = cells;
            place.fits(&header, BOARD)
        };
        let at = |row: u64, column: u64| 1 << (4 * row + column);
        let corners = at(1, 1) | at(1, 2) | at(1, 3) | at(2, 1) | at(2, 3);
        assert_eq!(around(corners), Ok(()));
        assert_eq!(around(corners & !at(1, 3)), Err(Fault::Gap { cell: 7 }));
        let mut header = header.clone();
        header.sensing.window = 9;
        assert_eq!(
            place.fits(&header, BOARD),
            Err(Fault::Window { window: 81 })
        );
    }

    #[test]
    fn policies_that_no_sensor_map_serves_are_refused() {
        let unfit = |change: fn(&mut Header<'static>)| {
            let mut policy = policy();
            change(&mut policy);
            place().fits(&policy, BOARD).unwrap_err()
        };
        assert_eq!(unfit(|policy| policy.sensing.axes = 2), Fault::Plane);
        assert_eq!(
            unfit(|policy| policy.sensing.wide = Some([4, 1])),
            Fault::Wide
        );
        assert_eq!(
            unfit(|policy| policy.sensing.window = 65),
            Fault::Window { window: 65 }
        );
        assert_eq!(unfit(|policy| policy.limits.force = None), Fault::OnlyMoves);
        assert_eq!(
            unfit(|policy| policy.sensing.target = false),
            Fault::TargetUnasked
        );
    }

    #[test]
    fn a_place_narrows_what_is_done_and_stays_where_it_is() {
        let action = |force| Action {
            force,
            velocity: [1.0, 0.0],
            mode: Mode::Active,
        };
        for (asked, done) in [(1.0, 1.0), (1.9, 1.5), (-1.9, -1.5)] {
            let narrowed = place().narrowed(action(asked));
            assert_eq!((narrowed.force, narrowed.velocity), (done, [0.0; 2]));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_place_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Place::read(&bytes);
        }

        /// Most random bytes stop at the form: these begin as a place does.
        #[test]
        fn any_bytes_in_a_place_are_a_place_or_none(
            at in 4usize..60, byte: u8, bit in 0usize..8, follows: bool, passed_us: u64,
        ) {
            let mut buffer = [0; RECORD];
            let mut place = place();
            if follows {
                place.target = schedule(300, &[(100, 1.0), (200, 2.0), (200, 0.0)]);
            }
            let mut bytes = place.encode(&mut buffer).unwrap().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte ^ 1 << bit;
            if let Ok(place) = Place::read(&bytes) {
                let _ = place.fits(&policy(), BOARD);
                prop_assert!(place.aim(passed_us).cell(0).is_finite());
            }
        }
    }
}
