//! What a node remembers of itself when it restarts.
//!
//! A board keeps a [`BlackBox`] in RAM that no start-up code touches. It survives every reset but
//! not a loss of power, and a checksum tells the two apart. What brings a node down writes itself
//! down here, as the last thing it does; the next start reads it and counts.

use core::{
    fmt::{self, Write as _},
    mem,
};

use agent_core::message::{CRC32, History, ResetCause};

/// Longest last words, in bytes: a source file, a line, and some of a message.
pub const WORDS: usize = 96;

/// The memory. Words only, so that it has no padding and any bytes in RAM are a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct BlackBox {
    boots: u32,
    watchdog_bites: u32,
    panics: u32,
    faults: u32,
    /// Why the node last started,
    started: u32,
    /// and why it will start next, if it knows.
    ending: u32,
    length: u32,
    words: [u8; WORDS],
    checksum: u32,
}

/// [`BlackBox::ending`] while nothing has gone wrong.
const RUNNING: u32 = 0;

/// Every cause, in the order of their codes, from 1.
const CAUSES: [ResetCause; 7] = [
    ResetCause::PowerOn,
    ResetCause::Brownout,
    ResetCause::External,
    ResetCause::Command,
    ResetCause::Watchdog,
    ResetCause::Panic,
    ResetCause::Fault,
];

fn code(cause: ResetCause) -> u32 {
    let at = CAUSES.iter().position(|known| *known == cause);
    at.map_or(RUNNING, |at| at as u32 + 1)
}

fn cause(code: u32) -> Option<ResetCause> {
    let at = code.checked_sub(1)? as usize;
    CAUSES.get(at).copied()
}

impl BlackBox {
    /// A memory without memories.
    const BLANK: Self = Self {
        boots: 0,
        watchdog_bites: 0,
        panics: 0,
        faults: 0,
        started: RUNNING,
        ending: RUNNING,
        length: 0,
        words: [0; WORDS],
        checksum: 0,
    };

    /// Takes what lay in RAM when the node started and counts this start.
    ///
    /// `chip` is what the chip says about why it started, where it says anything. What the node
    /// wrote down itself is more exact: a reset after a panic is a software reset to the chip.
    #[must_use]
    pub fn at_start(found: Self, chip: Option<ResetCause>) -> Self {
        let survived = found.checksum == found.sum();
        let mut this = if survived { found } else { Self::BLANK };
        let written = cause(this.ending);
        let started = match (survived, written, chip) {
            (false, _, chip) => chip.unwrap_or(ResetCause::PowerOn),
            (true, Some(written), _) => written,
            // Memory that outlived it: the voltage was gone for a moment only.
            (true, None, Some(ResetCause::PowerOn)) => ResetCause::Brownout,
            (true, None, chip) => chip.unwrap_or(ResetCause::External),
        };
        let tally = match started {
            ResetCause::Watchdog => Some(&mut this.watchdog_bites),
            ResetCause::Panic => Some(&mut this.panics),
            ResetCause::Fault => Some(&mut this.faults),
            _ => None,
        };
        if let Some(tally) = tally {
            *tally = tally.saturating_add(1);
        }
        this.boots = this.boots.saturating_add(1);
        this.started = code(started);
        this.ending = RUNNING;
        this.checksum = this.sum();
        this
    }

    /// Writes down why the node ends now. The first cause stands: what goes wrong on the way down
    /// is a consequence.
    pub fn write_down(&mut self, cause: ResetCause, words: Option<fmt::Arguments<'_>>) {
        if self.ending != RUNNING {
            return;
        }
        self.ending = code(cause);
        if let Some(words) = words {
            self.length = 0;
            // What does not fit is cut off.
            let _ = self.write_fmt(words);
        }
        self.checksum = self.sum();
    }

    /// How the node has fared since its power came on.
    pub fn history(&self) -> History {
        History {
            reset: cause(self.started).unwrap_or(ResetCause::External),
            boots: self.boots,
            watchdog_bites: self.watchdog_bites,
            panics: self.panics,
            faults: self.faults,
        }
    }

    /// What the node said when it last came to grief.
    pub fn last_words(&self) -> &str {
        let written = self.words.get(..self.length as usize).unwrap_or_default();
        match str::from_utf8(written) {
            Ok(words) => words,
            // Cut inside a character.
            Err(error) => written
                .get(..error.valid_up_to())
                .and_then(|valid| str::from_utf8(valid).ok())
                .unwrap_or_default(),
        }
    }

    #[inline(never)]
    fn sum(&self) -> u32 {
        let mut digest = CRC32.digest();
        let numbers = [
            self.boots,
            self.watchdog_bites,
            self.panics,
            self.faults,
            self.started,
            self.ending,
            self.length,
        ];
        // The layout's size, so that an image with another one does not take this for its own.
        digest.update(&(mem::size_of::<Self>() as u32).to_le_bytes());
        for number in numbers {
            digest.update(&number.to_le_bytes());
        }
        digest.update(&self.words);
        digest.finalize()
    }
}

impl fmt::Write for BlackBox {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.words.get_mut(self.length as usize..);
        let room = room.unwrap_or_default();
        let length = text.len().min(room.len());
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.length += length as u32;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ResetCause::{Brownout, Command, External, Fault, Panic, PowerOn, Watchdog};

    /// RAM after power came on: anything at all.
    const GARBAGE: BlackBox = BlackBox {
        boots: 7,
        length: 1 << 30,
        words: [0xa5; WORDS],
        ..BlackBox::BLANK
    };

    #[test]
    fn garbage_and_zeros_are_a_first_start() {
        for found in [GARBAGE, BlackBox::BLANK] {
            let first = BlackBox::at_start(found, None);
            let history = first.history();
            assert_eq!((history.reset, history.boots), (PowerOn, 1));
            assert_eq!(first.last_words(), "");
        }
    }

    #[test]
    fn every_cause_is_remembered_and_counted_once() {
        let mut memory = BlackBox::at_start(GARBAGE, None);
        for ended in [Panic, Fault, Watchdog, Command, Panic] {
            memory.write_down(ended, None);
            memory = BlackBox::at_start(memory, None);
            assert_eq!(memory.history().reset, ended);
        }
        // A reset that nobody announced.
        memory = BlackBox::at_start(memory, None);
        let expected = History {
            reset: External,
            boots: 7,
            watchdog_bites: 1,
            panics: 2,
            faults: 1,
        };
        assert_eq!(memory.history(), expected);
    }

    #[test]
    fn the_first_cause_stands_and_last_words_outlive_later_starts() {
        let mut memory = BlackBox::at_start(GARBAGE, None);
        memory.write_down(Panic, Some(format_args!("panic at {}:{}", "step.rs", 7)));
        memory.write_down(Fault, Some(format_args!("and then a fault")));
        memory = BlackBox::at_start(memory, None);
        assert_eq!(memory.history().reset, Panic);
        memory.write_down(Command, None);
        memory = BlackBox::at_start(memory, None);
        assert_eq!(memory.last_words(), "panic at step.rs:7");
    }

    #[test]
    fn what_the_chip_says_fills_in_what_the_node_could_not_write() {
        let running = BlackBox::at_start(GARBAGE, Some(PowerOn));
        // A watchdog that resets the chip without a word to the core.
        let bitten = BlackBox::at_start(running, Some(Watchdog));
        assert_eq!(bitten.history().reset, Watchdog);
        assert_eq!(bitten.history().watchdog_bites, 1);
        // Power that came back before the memory was lost.
        let dipped = BlackBox::at_start(bitten, Some(PowerOn));
        assert_eq!(
            (dipped.history().reset, dipped.history().boots),
            (Brownout, 3)
        );
        // A panic's reset is one by software to the chip, which says so.
        let mut panicked = dipped;
        panicked.write_down(Panic, None);
        let panicked = BlackBox::at_start(panicked, Some(External));
        assert_eq!(panicked.history().reset, Panic);
    }

    #[test]
    fn words_that_do_not_fit_are_cut_between_characters() {
        let mut memory = BlackBox::at_start(GARBAGE, None);
        // 95 bytes and a character of two: its first byte is the last that fits.
        let long = [b'x'; WORDS - 1];
        let long = str::from_utf8(&long).unwrap();
        memory.write_down(Panic, Some(format_args!("{long}äöü")));
        assert_eq!(BlackBox::at_start(memory, None).last_words(), long);
    }

    #[test]
    fn one_flipped_bit_is_noticed() {
        let mut memory = BlackBox::at_start(GARBAGE, None);
        memory.panics ^= 1 << 9;
        assert_eq!(BlackBox::at_start(memory, None).history().boots, 1);
    }
}
