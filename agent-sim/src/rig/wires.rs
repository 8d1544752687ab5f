//! A board whose sensors and actuator are the plant's: what its thermometers measure is set from outside, what
//! it has set its actuator to is read, and nobody shows it anything.

use crate::standing::Stand;
use agent_core::agent::Action;
use agent_core::message::Observation;
use node_link::EmulatedBoard;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often the actuator is looked at.
const LOOK: Duration = Duration::from_micros(500);

/// Bytes of noise that a board which babbles says in a step.
const NOISE: usize = 4096;

/// What the plant and a board know of each other.
#[derive(Debug)]
pub(super) struct Wires {
    stand: Stand,
    /// Whether the data line of its thermometers' bus is held low, once that was set.
    held: Option<bool>,
    /// When the board's surroundings last changed, and how often it had acted until then.
    changed: Option<(Instant, u32)>,
    /// Noise, and where it comes out, on the line on which boards hear each other.
    babble: Option<(ChaCha8Rng, UnixStream)>,
}

impl Wires {
    pub fn new(stand: Stand) -> Self {
        Self {
            stand,
            held: None,
            changed: None,
            babble: None,
        }
    }

    /// Has the board babble from now on: what it says to the others is noise besides.
    pub fn babble(&mut self, board: &EmulatedBoard) {
        let line = board.options().bus.as_ref().map(UnixStream::connect);
        if let Some(Ok(line)) = line
            && line.set_nonblocking(true).is_ok()
        {
            let noise = ChaCha8Rng::seed_from_u64(self.stand.place.node.into());
            self.babble = Some((noise, line));
        }
    }

    /// Ends that.
    pub fn hush(&mut self) {
        self.babble = None;
    }

    /// Lets the board's thermometers measure what is around it.
    pub fn surround(&mut self, board: &mut EmulatedBoard, observation: &Observation<'_>) {
        let sixteenths = self.stand.sixteenths(&observation.patch);
        let held = sixteenths.is_none();
        if self.held != Some(held) && board.hold_bus(held).is_ok() {
            self.held = Some(held);
        }
        let count = board.actuator().map_or(0, |set| set.count);
        if let Some(sixteenths) = sixteenths {
            let thousandths: Vec<i32> = sixteenths.into_iter().map(thousandths).collect();
            // One that is gone feels nothing.
            let _ = board.post_temperatures(&thousandths);
        }
        self.changed = Some((Instant::now(), count));
        if let Some((rng, line)) = &mut self.babble {
            let mut noise = [0; NOISE];
            rng.fill(&mut noise[..]);
            // A line that is full has enough of it.
            let _ = line.write(&noise);
        }
    }

    /// Waits until the board has acted on what is around it, or `until`. True if there is nothing more to wait
    /// for before the end of the step.
    pub fn await_action(
        &self,
        board: &mut EmulatedBoard,
        until: Instant,
        end: impl Fn(Instant) -> Instant,
    ) -> bool {
        let Some((changed, before)) = self.changed else {
            return true;
        };
        let end = end(changed);
        while board.is_running() {
            let acted = board.actuator().is_ok_and(|set| set.count != before);
            let now = Instant::now();
            if acted || now >= end {
                return true;
            }
            if now >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// What the actuator does, whether the board has set it anew in this step, and how long that took; none
    /// without power.
    pub fn action(&mut self, board: &mut EmulatedBoard) -> Option<(Action, bool, Duration)> {
        if !board.is_running() {
            return None;
        }
        let set = board.actuator().ok()?;
        let (changed, before) = self.changed.take()?;
        let action = Action {
            force: set.force,
            velocity: [0.0; 2],
            mode: set.mode,
        };
        Some((action, set.count != before, changed.elapsed()))
    }
}

/// Sixteenths of a degree as the emulator is told them: rounded away from zero, because it cuts.
fn thousandths(sixteenths: i32) -> i32 {
    (sixteenths * 125 + sixteenths.signum()) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_have_the_channels_that_their_places_name() {
        assert_eq!(crate::standing::CHANNELS, node_link::emulated::CHANNELS);
    }

    /// What QEMU's device makes of them: steps of 62.5 thousandths, cut towards zero.
    #[test]
    fn the_emulated_thermometer_reads_what_was_meant() {
        for sixteenths in -40 * 16..=125 * 16 {
            let read = thousandths(sixteenths) * 2048 / 128_000;
            assert_eq!(read, sixteenths);
        }
    }
}
