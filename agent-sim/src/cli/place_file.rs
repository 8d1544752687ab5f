//! A node's place as a person writes it: TOML, in which every complaint names its line.

use anyhow::anyhow;
use place::aim::{POINTS, Point, Schedule};
use place::record::{Calibration, Neighbours, Sensor, Target, Tolerance};
use place::{Fault, Place};
use problem::input;
use problem::kit::BadFile;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// A value and where it stands.
type Said<T> = Spanned<T>;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The problem of the policy that runs there.
    problem: Said<String>,
    node: Said<u16>,
    position: Said<Stands>,
    /// How long a second of the policy's takes here.
    second: Option<Said<f64>>,
    target: Option<Said<Wanted>>,
    force: Option<Said<f64>>,
    sensors: Said<Vec<Said<Channel>>>,
    tolerance: Said<Borne>,
    neighbours: Option<Said<Heard>>,
}

/// Where on a line, or in a plane.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stands {
    Line(f64),
    /// Of any length: of an array that is too long for its type nobody would hear.
    Plane(Vec<f64>),
}

/// What the field should be.
enum Wanted {
    Constant(f64),
    Profile(Vec<f64>),
    Schedule(Course),
}

/// What it should be at which times, in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Course {
    repeat_every: Option<Said<f64>>,
    points: Said<Vec<Said<Vec<f64>>>>,
}

/// By hand: of an untagged enum nobody could say on which line what is wrong.
impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyForm;

        impl<'de> Visitor<'de> for AnyForm {
            type Value = Wanted;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a list of numbers or a table with points")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Wanted, E> {
                Ok(Wanted::Constant(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Wanted, E> {
                Ok(Wanted::Constant(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Wanted, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(values)).map(Wanted::Profile)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Wanted, A::Error> {
                Course::deserialize(MapAccessDeserializer::new(table)).map(Wanted::Schedule)
            }
        }

        deserializer.deserialize_any(AnyForm)
    }
}

/// Which channel reads which cell, and what it makes of the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Channel {
    channel: u8,
    cell: u16,
    gain: Option<f64>,
    offset: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Borne {
    #[serde(default)]
    missing: u8,
    /// Seconds.
    #[serde(default)]
    missing_for: f64,
    least: f64,
    most: f64,
    change: f64,
    /// Seconds.
    frozen_for: Option<f64>,
}

/// Whom it hears.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heard {
    cells: Vec<u16>,
    spacing: f64,
    within: f64,
    /// Seconds.
    stale_after: f64,
    #[serde(default = "every_step")]
    says_every: u8,
}

fn every_step() -> u8 {
    1
}

/// A place, and the problem of the policy that runs there.
#[derive(Debug)]
pub struct PlaceFile {
    pub problem: String,
    pub place: Place,
}

/// The place that a file says.
pub fn read(path: &Path) -> Result<PlaceFile, BadFile> {
    let text = input::read_text(path, input::PLACE).map_err(|error| BadFile {
        path: path.to_owned(),
        line: None,
        what: format!("it cannot be read: {error}"),
    })?;
    said(path, &text)
}

/// The place that a text says, which stands in a file.
fn said(path: &Path, text: &str) -> Result<PlaceFile, BadFile> {
    let wrong = |at: Range<usize>, what: String| {
        let before = &text.as_bytes()[..at.start.min(text.len())];
        BadFile {
            path: path.to_owned(),
            line: Some(1 + before.iter().filter(|&&byte| byte == b'\n').count()),
            what,
        }
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        wrong(at, error.message().trim_end().replace('\n', ", "))
    })?;
    let sensors = file.sensors.get_ref();
    let mut order: Vec<&Said<Channel>> = sensors.iter().collect();
    order.sort_by_key(|sensor| sensor.get_ref().cell);
    let record = |sensor: &&Said<Channel>| {
        let sensor = sensor.get_ref();
        Sensor {
            channel: sensor.channel,
            cell: sensor.cell,
            calibration: match (sensor.gain, sensor.offset) {
                (Some(gain), Some(offset)) => Some(Calibration {
                    gain: gain as f32,
                    offset: offset as f32,
                }),
                _ => None,
            },
        }
    };
    let many = |at: Range<usize>, what: &str, most: usize| {
        wrong(at, format!("there are too many {what}: at most {most}"))
    };
    let sensors = order.iter().map(record).collect::<Vec<_>>();
    let sensors = heapless::Vec::from_slice(&sensors)
        .map_err(|_| many(file.sensors.span(), "sensors", place::record::SENSORS))?;
    let target = match file
        .target
        .as_ref()
        .map(|said| (said.get_ref(), said.span()))
    {
        None => Target::None,
        Some((Wanted::Constant(value), _)) => Target::Constant(*value as f32),
        Some((Wanted::Profile(values), at)) => {
            let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let values = heapless::Vec::from_slice(&values)
                .map_err(|_| many(at, "values of the target", place::record::CELLS))?;
            Target::Profile(values)
        }
        Some((Wanted::Schedule(course), _)) => Target::Schedule(schedule(course, &wrong)?),
    };
    let borne = file.tolerance.get_ref();
    let micros_at = |at: Range<usize>, seconds: f64, name: &str| match (seconds * 1e6).round() {
        us if (0.0..=f64::from(u32::MAX)).contains(&us) => Ok(us as u32),
        _ => {
            let what = format!("{name} = {seconds} is no time from 0 to 4294 seconds");
            Err(wrong(at, what))
        }
    };
    let micros = |seconds, name: &str| micros_at(file.tolerance.span(), seconds, name);
    let neighbours = file.neighbours.as_ref().map(|said| {
        let (at, heard) = (said.span(), said.get_ref());
        let cells = heard.cells.iter().try_fold(0, |all: u64, &cell| {
            let bit = 1u64.checked_shl(cell.into());
            bit.filter(|bit| all & bit == 0)
                .map(|bit| all | bit)
                .ok_or_else(|| {
                    let what = format!("cell {cell} is heard twice, or is not one of the first 64");
                    wrong(at.clone(), what)
                })
        });
        Ok(Neighbours {
            cells: cells?,
            spacing: heard.spacing as f32,
            within: heard.within as f32,
            stale_us: micros_at(at, heard.stale_after, "stale_after")?,
            every: heard.says_every,
        })
    });
    let frozen_us = borne
        .frozen_for
        .map(|seconds| micros(seconds, "frozen_for"));
    let position = match file.position.get_ref() {
        Stands::Line(x) => [*x, 0.0],
        Stands::Plane(position) => *<&[f64; 2]>::try_from(position.as_slice()).map_err(|_| {
            let what = "a position is a number, or in the plane a list of two";
            wrong(file.position.span(), what.to_owned())
        })?,
    };
    let place = Place {
        node: *file.node.get_ref(),
        position: position.map(|x| x as f32),
        second: file
            .second
            .as_ref()
            .map_or(1.0, |said| *said.get_ref() as f32),
        sensors,
        target,
        force: file.force.as_ref().map(|said| *said.get_ref() as f32),
        tolerance: Tolerance {
            missing: borne.missing,
            missing_us: micros(borne.missing_for, "missing_for")?,
            least: borne.least as f32,
            most: borne.most as f32,
            change: borne.change as f32,
            frozen_us: frozen_us.transpose()?,
        },
        neighbours: neighbours.transpose()?,
    };
    place.check().map_err(|fault| {
        let of = |wanted: &dyn Fn(&Channel) -> bool| {
            let mut found = order.iter().filter(|sensor| wanted(sensor.get_ref()));
            found.next_back().map_or(0..0, |sensor| sensor.span())
        };
        let at = match fault {
            Fault::Position => file.position.span(),
            Fault::Second => file.second.as_ref().map_or(0..0, Said::span),
            Fault::ChannelTwice { channel }
            | Fault::Uncalibrated { channel }
            | Fault::Calibration { channel } => of(&|sensor| sensor.channel == channel),
            Fault::CellTwice { cell } => of(&|sensor| sensor.cell == cell),
            Fault::Target | Fault::NoPoint | Fault::Times { .. } | Fault::Repeat => {
                (file.target.as_ref()).map_or(0..0, |said| {
                    said.get_ref().part(fault).unwrap_or(said.span())
                })
            }
            Fault::Force => file.force.as_ref().map_or(0..0, Said::span),
            Fault::NoSensor => file.sensors.span(),
            Fault::Spacing | Fault::Within | Fault::Stale | Fault::HeardAndRead { .. } => {
                file.neighbours.as_ref().map_or(0..0, Said::span)
            }
            _ => file.tolerance.span(),
        };
        wrong(at, fault.to_string())
    })?;
    let problem = file.problem.into_inner();
    Ok(PlaceFile { problem, place })
}

/// What a schedule goes through, in the milliseconds that it is kept in.
fn schedule(
    course: &Course,
    wrong: &dyn Fn(Range<usize>, String) -> BadFile,
) -> Result<Schedule, BadFile> {
    let millis = |at: Range<usize>, seconds: f64, name: &str| {
        let ms = (seconds * 1e3).round();
        // What a decimal fraction of a second is beside its nearest double.
        let is_whole = (seconds * 1e3 - ms).abs() <= 1e-9 * ms;
        match is_whole && (0.0..=f64::from(u32::MAX)).contains(&ms) {
            true => Ok(ms as u32),
            false => Err(wrong(
                at,
                format!(
                    "{name} {seconds} is no time from 0 to 4294967 seconds, in whole milliseconds"
                ),
            )),
        }
    };
    let point = |said: &Said<Vec<f64>>| {
        let &[seconds, value] = said.get_ref().as_slice() else {
            let what = "a point of the target is a time in seconds and a value: [60.0, 0.5]";
            return Err(wrong(said.span(), what.to_owned()));
        };
        Ok(Point {
            at_ms: millis(said.span(), seconds, "the time")?,
            value: value as f32,
        })
    };
    let points: Result<Vec<Point>, BadFile> = course.points.get_ref().iter().map(point).collect();
    let points = heapless::Vec::from_slice(&points?).map_err(|_| {
        let what = format!("there are too many points of the target: at most {POINTS}");
        wrong(course.points.span(), what)
    })?;
    let repeat_ms = match &course.repeat_every {
        None => 0,
        Some(said) => match millis(said.span(), *said.get_ref(), "repeat_every =")? {
            0 => {
                let what = "repeat_every must be positive: leave it out for a target that stays";
                return Err(wrong(said.span(), what.to_owned()));
            }
            ms => ms,
        },
    };
    Ok(Schedule { repeat_ms, points })
}

impl Wanted {
    /// Where that stands which is wrong with it, if it is in a part.
    fn part(&self, fault: Fault) -> Option<Range<usize>> {
        let Self::Schedule(course) = self else {
            return None;
        };
        let points = course.points.get_ref();
        match fault {
            Fault::Times { point } => points.get(usize::from(point)).map(Said::span),
            Fault::Target => {
                let is_none = |value: &f64| !(*value as f32).is_finite();
                let has_none = |said: &&Said<Vec<f64>>| said.get_ref().last().is_some_and(is_none);
                points.iter().find(has_none).map(Said::span)
            }
            Fault::Repeat => course.repeat_every.as_ref().map(Said::span),
            _ => Some(course.points.span()),
        }
    }
}

/// The places of as many nodes, no two of which may have one number or one position.
pub fn read_all(paths: &[impl AsRef<Path>]) -> anyhow::Result<Vec<PlaceFile>> {
    let mut places: Vec<PlaceFile> = Vec::new();
    for (k, path) in paths.iter().enumerate() {
        let path = path.as_ref();
        let file = read(path)?;
        let (node, position) = (file.place.node, file.place.position);
        for (other, before) in paths.iter().zip(&places).take(k) {
            let other = other.as_ref().display();
            if before.place.node == node {
                return Err(anyhow!(
                    "{}: node {node} is the one of {other} already: number each node once",
                    path.display()
                ));
            }
            if before.place.position == position {
                return Err(anyhow!(
                    "{}: node {node} stands where the node of {other} does",
                    path.display()
                ));
            }
        }
        places.push(file);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
problem = \"heat-1d\"
node = 3
position = 0.25
target = 0.5
force = 20.0

[[sensors]]
channel = 1
cell = 5
gain = 0.125
offset = -2.5

[[sensors]]
channel = 0
cell = 2
gain = 0.125
offset = -2.5

[tolerance]
missing = 1
missing_for = 0.05
least = -3.0
most = 3.0
change = 100.0
frozen_for = 2.0
";

    const NEIGHBOURS: &str = "
[neighbours]
cells = [1, 7]
spacing = 0.05
within = 0.005
stale_after = 0.02
";

    #[test]
    fn neighbours_are_read_and_what_is_wrong_with_them_is_named() {
        let text = GOOD.to_owned() + NEIGHBOURS;
        let file = said(Path::new("node.toml"), &text).unwrap();
        let heard = Neighbours {
            cells: 1 << 1 | 1 << 7,
            spacing: 0.05,
            within: 0.005,
            stale_us: 20_000,
            every: 1,
        };
        assert_eq!(file.place.neighbours, Some(heard));
        let wrong = |from: &str, to: &str| {
            let text = text.replacen(from, to, 1);
            said(Path::new("node.toml"), &text).unwrap_err().to_string()
        };
        let twice = wrong("[1, 7]", "[1, 5]");
        assert!(twice.starts_with("node.toml:27: cell 5 is both"), "{twice}");
        let far = wrong("[1, 7]", "[1, 64]");
        assert!(
            far.starts_with("node.toml:27: cell 64 is heard twice"),
            "{far}"
        );
        let wide = wrong("within = 0.005", "within = 0.03");
        assert!(wide.contains("less than half a spacing"), "{wide}");
        let plane = text.replacen("position = 0.25", "position = [0.25, 0.75]", 1);
        let file = said(Path::new("node.toml"), &plane).unwrap();
        assert_eq!(file.place.position, [0.25, 0.75]);
    }

    fn refused(from: &str, to: &str) -> String {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        said(Path::new("node.toml"), &text).unwrap_err().to_string()
    }

    #[test]
    fn a_place_is_read_with_its_sensors_in_the_order_of_their_cells() {
        let file = said(Path::new("node.toml"), GOOD).unwrap();
        let place = file.place;
        let cells: Vec<(u16, u8)> = place.sensors.iter().map(|s| (s.cell, s.channel)).collect();
        assert_eq!(cells, [(2, 0), (5, 1)]);
        assert_eq!((place.node, place.position), (3, [0.25, 0.0]));
        assert_eq!(place.tolerance.missing_us, 50_000);
        assert_eq!(place.tolerance.frozen_us, Some(2_000_000));
        assert_eq!(file.problem, "heat-1d");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let uncalibrated = refused("gain = 0.125\noffset = -2.5\n\n[[", "\n\n\n[[");
        assert!(
            uncalibrated.starts_with("node.toml:7: channel 1 is not calibrated"),
            "{uncalibrated}"
        );
        let zero = refused("gain = 0.125", "gain = 0.0");
        assert!(
            zero.starts_with("node.toml:7: the calibration of channel 1"),
            "{zero}"
        );
        let nowhere = refused("position = 0.25", "position = inf");
        assert!(
            nowhere.starts_with("node.toml:3: the position"),
            "{nowhere}"
        );
        let deep = refused("position = 0.25", "position = [0.25, 0.5, 0.75]");
        assert!(deep.starts_with("node.toml:3: a position"), "{deep}");
        let twice = refused("cell = 2", "cell = 5");
        assert!(
            twice.starts_with("node.toml:13: cell 5 is read twice"),
            "{twice}"
        );
        let narrow = refused("most = 3.0", "most = -3.0");
        assert!(narrow.starts_with("node.toml:19: the least"), "{narrow}");
        let limit = refused("force = 20.0", "force = -1.0");
        assert!(limit.starts_with("node.toml:5: the limit"), "{limit}");
        let long = refused("frozen_for = 2.0", "frozen_for = 1e9");
        assert!(
            long.contains("frozen_for = 1000000000 is no time"),
            "{long}"
        );
        let unknown = refused("force = 20.0", "farce = 20.0");
        assert!(
            unknown.starts_with("node.toml:5: unknown field `farce`"),
            "{unknown}"
        );
        let all = refused("missing = 1", "missing = 2");
        assert!(
            all.contains("of 2 sensors at least one must be left"),
            "{all}"
        );
    }

    /// With this in place of its target, which ends before the sensors.
    fn aims_at(target: &str) -> Result<Target, String> {
        let text = GOOD.replacen("target = 0.5\n", "", 1);
        let text = text.replacen("\n[[sensors]]", &format!("{target}\n[[sensors]]"), 1);
        let file = said(Path::new("node.toml"), &text).map_err(|error| error.to_string())?;
        Ok(file.place.target)
    }

    #[test]
    fn a_target_is_a_number_one_for_each_cell_or_a_schedule() {
        assert_eq!(aims_at("target = 1"), Ok(Target::Constant(1.0)));
        let profile = Target::Profile([0.0, 0.5].into_iter().collect());
        assert_eq!(aims_at("target = [0, 0.5]"), Ok(profile));
        let daily =
            "[target]\nrepeat_every = 86400.0\npoints = [[0, 0.2], [3600.0, 0.5], [3600.0, 0.1]]\n";
        let points = [(0, 0.2), (3_600_000, 0.5), (3_600_000, 0.1)];
        let points = points.map(|(at_ms, value)| Point { at_ms, value });
        let schedule = Schedule {
            repeat_ms: 86_400_000,
            points: points.into_iter().collect(),
        };
        assert_eq!(aims_at(daily), Ok(Target::Schedule(schedule)));
        let Ok(Target::Schedule(once)) = aims_at("target = { points = [[0.007, 1]] }") else {
            panic!("no schedule");
        };
        assert_eq!((once.repeat_ms, once.points[0].at_ms), (0, 7));
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_named_with_the_line_of_its_point() {
        let refused = |repeat: &str, points: &str| {
            let target = format!("[target]\n{repeat}\npoints = [\n{points}\n]\n");
            aims_at(&target).unwrap_err()
        };
        // The table begins on the fifth line, its points on the eighth.
        let none = refused("", "");
        assert!(
            none.starts_with("node.toml:7: the target has no points"),
            "{none}"
        );
        let missing = aims_at("[target]\nrepeat_every = 1\n").unwrap_err();
        assert!(
            missing.starts_with("node.toml:5: missing field `points`"),
            "{missing}"
        );
        let back = refused("", "[0, 1],\n[2, 1],\n[1, 1],");
        assert!(
            back.starts_with("node.toml:10: point 2 of the target"),
            "{back}"
        );
        let negative = refused("", "[0, 1],\n[-1, 1],");
        assert!(
            negative.starts_with("node.toml:9: the time -1 is no time"),
            "{negative}"
        );
        for time in ["nan", "inf", "5e6", "0.0005"] {
            let never = refused("", &format!("[0, 1],\n[{time}, 1],"));
            assert!(never.starts_with("node.toml:9: the time "), "{never}");
        }
        for value in ["nan", "inf", "1e39"] {
            let wrong = refused("", &format!("[0, 1],\n[1, {value}],"));
            assert!(
                wrong.starts_with("node.toml:9: the target is not a number"),
                "{wrong}"
            );
        }
        let short = refused("repeat_every = 0.5", "[0, 1],\n[1, 1],");
        assert!(
            short.starts_with("node.toml:6: the target begins again before"),
            "{short}"
        );
        let never = refused("repeat_every = 0", "[0, 1],");
        assert!(
            never.starts_with("node.toml:6: repeat_every must be positive"),
            "{never}"
        );
        let back = refused("repeat_every = -1", "[0, 1],");
        assert!(
            back.starts_with("node.toml:6: repeat_every = -1 is no time"),
            "{back}"
        );
        let many = refused("", &"[0, 1],\n".repeat(17));
        assert!(
            many.starts_with("node.toml:7: there are too many points"),
            "{many}"
        );
        let odd = refused("", "[0, 1, 2],");
        assert!(
            odd.starts_with("node.toml:8: a point of the target is a time"),
            "{odd}"
        );
        let unknown = refused("repeat = 1", "[0, 1],");
        assert!(
            unknown.starts_with("node.toml:6: unknown field `repeat`"),
            "{unknown}"
        );
        let text = aims_at("target = \"warm\"").unwrap_err();
        assert!(
            text.starts_with("node.toml:5:") && text.contains("a table with points"),
            "{text}"
        );
    }

    #[test]
    fn no_two_nodes_have_one_number_or_one_position() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let first = file("first.toml", GOOD.to_owned());
        let second = file("second.toml", GOOD.replace("0.25", "0.75"));
        let third = file("third.toml", GOOD.replace("node = 3", "node = 4"));
        let fourth = file(
            "fourth.toml",
            GOOD.replace("node = 3", "node = 4").replace("0.25", "0.75"),
        );
        let refused = |paths: [&Path; 2]| read_all(&paths).unwrap_err().to_string();
        assert!(refused([&first, &second]).contains("number each node once"));
        assert!(refused([&first, &third]).contains("stands where the node of"));
        assert_eq!(read_all(&[&first, &fourth]).unwrap().len(), 2);
    }
}
