//! Instructions of a step of a node that senses and acts by itself, its thermometers and their bus included.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use artifacts::say;
use node_link::{
    BoardOptions, Clock, EmulatedBoard, NodeConduct, PlaceOffer,
    emulated::{CHANNELS, THERMOMETERS},
};
use place::{
    Equipment, Place,
    record::{Calibration, RECORD, Sensor, Target, Tolerance},
};
use trust::{Manifest, manifest::MANIFEST};

use crate::instructions::{INSTRUCTIONS_PER_TICK, PATIENCE, SHIFT, STEPS, median};
use endurance::observations::Blob;

/// What the emulated board has.
const BOARD: Equipment = Equipment {
    channels: CHANNELS[CHANNELS.len() - 1] + 1,
    bus: false,
};

/// Ticks of a period, so that a step of any policy is over before the next is due.
const PERIOD_US: f32 = 1e6;

/// Degrees around which thermometers measure, and of a unit of the field.
const ZERO: f32 = 20.0;
const UNIT: f32 = 10.0;

/// Median instructions from the first reading to the action; none for a policy that no place is for.
pub fn measure(image: &Path, blob: &Blob) -> Result<Option<f64>> {
    let policy = blob.policy()?;
    let header = policy.header();
    let place = place(
        header.sensing.window,
        header.sensing.target,
        header.timing.period_us,
    );
    if place.fits(header, BOARD).is_err() {
        return Ok(None);
    }
    let (mut board, mut node) = EmulatedBoard::start(&BoardOptions {
        clock: Clock::Instructions { shift: SHIFT },
        thermometers: THERMOMETERS,
        ..BoardOptions::new(image)
    })?;
    node.upload(&blob.offer(), &mut |_| ())?;
    let bytes = place.encode(&mut [0; RECORD])?.to_vec();
    let offer = PlaceOffer {
        manifest: Manifest::unsigned(&bytes, header.problem.as_str())
            .encode(&mut [0; MANIFEST])?
            .to_vec(),
        place: bytes,
        signature: Vec::new(),
    };
    node.configure(&offer, PATIENCE)?;
    let mut counts = Vec::new();
    let mut before = 0;
    while counts.len() < STEPS as usize {
        let NodeConduct::Alone(alone) = node.conduct(PATIENCE)? else {
            bail!("the node does not stand by itself");
        };
        if alone.timing.steps != before {
            before = alone.timing.steps;
            counts.push(f64::from(alone.timing.latency_us) * INSTRUCTIONS_PER_TICK);
            // Something else to see in the next.
            let warm = |k: i32| ((ZERO * 1e3) as i32) + 625 * ((k + before as i32) % 8);
            let thousandths: Vec<i32> = (0..i32::from(THERMOMETERS)).map(warm).collect();
            board.set_temperatures(&thousandths)?;
        }
    }
    Ok(Some(median(counts)?))
}

/// Eight thermometers over the whole of a window.
fn place(window: u16, target: bool, period_us: u32) -> Place {
    let last = u16::from(THERMOMETERS) - 1;
    let sensor = |k: u16| Sensor {
        channel: CHANNELS[usize::from(k)],
        cell: k * window.saturating_sub(1) / last,
        calibration: Some(Calibration {
            gain: 1.0 / UNIT,
            offset: -ZERO / UNIT,
        }),
    };
    Place {
        node: 1,
        position: [0.5, 0.0],
        second: PERIOD_US / period_us as f32,
        sensors: (0..=last).map(sensor).collect(),
        target: match target {
            true => Target::Constant(0.1),
            false => Target::None,
        },
        force: None,
        tolerance: Tolerance {
            missing: 1,
            missing_us: u32::MAX,
            least: -5.0,
            most: 10.0,
            change: 1e9,
            frozen_us: None,
        },
        neighbours: None,
    }
}

/// Prints them beside steps that a host feeds.
pub fn tell(steps: &[(PathBuf, f64, f64)]) -> Result<()> {
    say!(
        "\n{:<22} {:>13} {:>13} {:>8}",
        "step by itself",
        "fed",
        "by itself",
        "ratio"
    )?;
    for (path, fed, alone) in steps {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        say!(
            "{:<22} {fed:>13.0} {alone:>13.0} {:>8.2}",
            name.to_string_lossy(),
            alone / fed
        )?;
    }
    say!(
        "\nBy itself: from the first reading of eight thermometers, over a bit-banged bus with a switch, to the \
         action. Fed: \
         the step with its observation's frame and its answer's."
    )?;
    Ok(())
}
