//! What of a policy follows from its problem: what agents are shown, what they may do, and when.

use agent_core::policy::{Channel, Disc, Header, Limits, Provenance, Sensing, Text, Timing};
use problem::Problem;
use problem::kit::Kit;

/// Errors beyond this are clamped by the agent: far outside anything seen in training, so that a
/// broken sensor cannot overflow the sums.
const ERROR_LIMIT: f32 = 1e3;
/// Periods without input after which an agent holds its action, and after which it gives up.
const LATE_PERIODS: u32 = 3;
const FAIL_SAFE_PERIODS: u32 = 20;

/// The header of a policy for this problem without a network. On a line agents see errors and their
/// slopes; on a plane the errors alone, from which a dense layer can form slopes itself.
pub fn header(problem: &Problem, window: usize) -> Header<'static> {
    let axes = problem.grid.axes;
    let period_us = problem.period_us();
    let [low, high] = problem.reach.map(|corner| corner.map(|v| v as f32));
    let limit = |max: f64| (max > 0.0).then_some(max as f32);
    let channels: &[Channel] = match axes {
        1 => &[Channel::Error, Channel::Slope],
        _ => &[Channel::Error],
    };
    let discs = problem.keep_out.iter().map(|disc| Disc {
        centre: disc.centre.map(|x| x as f32),
        radius: disc.radius as f32,
    });
    Header {
        problem: Text::new(problem.seen_as()),
        sensing: Sensing {
            axes: axes as u8,
            window: window as u16,
            target: problem.tracking,
            channels: channels.iter().copied().collect(),
            samples: window as u16,
            error_limit: problem.kit.map_or(ERROR_LIMIT, error_limit),
            wide: (problem.other_windows(window))
                .map(|cells| cells.map(|n| u8::try_from(n).unwrap_or(u8::MAX))),
        },
        limits: Limits {
            force: limit(problem.actuation.force_max),
            velocity: limit(problem.actuation.velocity_max),
            low,
            high,
            keep_out: discs.collect(),
            ..Limits::default()
        },
        timing: Timing {
            period_us,
            late_us: LATE_PERIODS * period_us,
            fail_safe_us: FAIL_SAFE_PERIODS * period_us,
        },
        provenance: Provenance {
            tool: Text::new(concat!("fieldswarm ", env!("CARGO_PKG_VERSION"))),
            ..Provenance::default()
        },
        ..Header::default()
    }
}

/// Of described fields some times as far as the file expects any that is seen.
fn error_limit(kit: &Kit) -> f32 {
    let extent = |k: usize| {
        let [low, high] = kit.described[k].range;
        high - low
    };
    (8.0 * kit.all_seen().map(extent).fold(0.0, f64::max)) as f32
}
