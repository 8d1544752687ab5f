//! Whom a node hears, and what of it may be used.
//!
//! There is room for two speakers in each cell that the place says is heard, and for nobody else: who says
//! that it stands elsewhere takes nobody's room, however much it says. Of two in one cell the one who was
//! there first is used until it falls silent.
//!
//! Numbers tell what came twice or out of order. Stamps tell what came late: a speaker's clock runs beside
//! this one's, so what has been longer under way than the quickest has a stamp that lags behind by that. The
//! first that a speaker says only introduces it: there is nothing yet by which it could be late.

use super::bulletin::{Bulletin, Field};
use super::grid::Grid;
use crate::record::{CELLS, Neighbours, Place, Tolerance};
use agent_core::policy::Header;
use serde::{Deserialize, Serialize};

/// Two clocks may go apart by one part in so many: what two RC oscillators do that are off by 1 %, one each way.
/// The one that loses is then behind the other's time by 1 - 0.99 / 1.01, which is one part in 50.5.
const DRIFT: u64 = 48;

/// What became of what was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The cells of which nothing fresh is known now, a bit each, of those that are heard.
    pub deaf: u64,
    /// Taken for what its cell measures.
    pub taken: u32,
    /// No bulletin: a wrong length, form, checksum or proof.
    pub damaged: u32,
    /// Of another field, or said by one who stands in no cell that is heard.
    pub elsewhere: u32,
    /// Not newer than what was heard of that speaker before.
    pub again: u32,
    /// Too long under way.
    pub late: u32,
    /// Out of range, or changed faster than the field does.
    pub implausible: u32,
    /// Said by another than the one who stands in that cell.
    pub rivals: u32,
    /// The first of a speaker, or of one that was started again.
    pub introduced: u32,
}

/// Why what was said is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// It is of another field, or nobody is heard there.
    Elsewhere,
    /// It is not newer than what was heard before.
    Again,
    /// It was too long under way.
    Late,
    /// It cannot be.
    Implausible,
    /// Another stands in that cell.
    Rival,
    /// It only introduces who said it.
    Introduced,
}

/// What of a place says whom to hear.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Post {
    field: Field,
    grid: Grid,
    position: [f32; 2],
    neighbours: Neighbours,
    tolerance: Tolerance,
}

/// Somebody who speaks.
#[derive(Debug, Clone, Copy)]
struct Voice {
    speaker: [u8; 8],
    start: u32,
    number: u64,
    /// By how much its clock is behind this one's, less the time that the quickest was under way,
    lag: u32,
    /// and when that was found.
    lag_us: u64,
    /// When something new was last heard of it.
    heard_us: u64,
    /// The last reading of it that was taken, and when that was measured by this node's clock.
    value: Option<f32>,
    measured_us: u64,
}

/// An option that is zeros where there is none: in a static nobody is then no part of an image.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Seat<T> {
    Empty = 0,
    Taken(T) = 1,
}

impl<T> Seat<T> {
    fn of(one: Option<T>) -> Self {
        one.map_or(Self::Empty, Self::Taken)
    }

    fn get(self) -> Option<T> {
        match self {
            Self::Empty => None,
            Self::Taken(one) => Some(one),
        }
    }
}

/// Who speaks in one cell: the first is used; the other would follow it.
type Voices = [Option<Voice>; 2];

/// The same, kept.
#[derive(Debug, Clone, Copy)]
struct Ear([Seat<Voice>; 2]);

impl Ear {
    const DEAF: Self = Self([Seat::Empty; 2]);
}

/// What a node hears.
pub struct Hearing {
    post: Seat<Post>,
    /// Whether bulletins prove who said them: numbers then never begin again without a new start, and no
    /// speaker is forgotten for being silent.
    proven: bool,
    ears: [Ear; CELLS],
    counts: Heard,
}

impl Default for Hearing {
    fn default() -> Self {
        Self::new()
    }
}

impl Hearing {
    /// Nobody is heard.
    pub const fn new() -> Self {
        Self {
            post: Seat::Empty,
            proven: false,
            ears: [Ear::DEAF; CELLS],
            counts: Heard {
                deaf: 0,
                taken: 0,
                damaged: 0,
                elsewhere: 0,
                again: 0,
                late: 0,
                implausible: 0,
                rivals: 0,
                introduced: 0,
            },
        }
    }

    /// Hears those whom the place says, for this policy, by bulletins that are proven or are not. What was
    /// heard before is forgotten, unless it is the same place.
    pub fn stand(&mut self, place: &Place, policy: &Header, proven: bool) {
        let post = place.neighbours.map(|neighbours| Post {
            field: Field::of(policy.problem.as_str()),
            grid: Grid::of(&policy.sensing),
            position: place.position,
            neighbours,
            tolerance: place.tolerance,
        });
        if self.post.get() != post || self.proven != proven {
            self.post = Seat::of(post);
            self.proven = proven;
            self.ears.fill(Ear::DEAF);
            self.counts = Heard::default();
        }
    }

    /// Counts bytes that are no bulletin.
    pub fn damaged(&mut self) {
        if self.post.get().is_some() {
            count(&mut self.counts.damaged);
        }
    }

    /// Takes what came at that time; in which cell of the window it was measured.
    pub fn hear(&mut self, bulletin: &Bulletin, now_us: u64) -> Result<u16, Unused> {
        let Some(post) = &self.post.get() else {
            return Err(Unused::Elsewhere);
        };
        let cell = post.cell(bulletin);
        let ear = cell.and_then(|cell| self.ears.get_mut(usize::from(cell)));
        let taken = match ear {
            Some(ear) => ear.hear(post, self.proven, bulletin, now_us),
            None => Err(Unused::Elsewhere),
        };
        let counts = &mut self.counts;
        count(match taken {
            Ok(()) => &mut counts.taken,
            Err(Unused::Elsewhere) => &mut counts.elsewhere,
            Err(Unused::Again) => &mut counts.again,
            Err(Unused::Late) => &mut counts.late,
            Err(Unused::Implausible) => &mut counts.implausible,
            Err(Unused::Rival) => &mut counts.rivals,
            Err(Unused::Introduced) => &mut counts.introduced,
        });
        taken.and(cell.ok_or(Unused::Elsewhere))
    }

    /// What is known of a cell, and how old that is.
    pub fn said(&self, cell: u16, now_us: u64) -> Option<(f32, u64)> {
        let Ear([voice, _]) = *self.ears.get(usize::from(cell))?;
        let voice = voice.get()?;
        Some((voice.value?, now_us.saturating_sub(voice.measured_us)))
    }

    /// What became of what was said.
    pub fn heard(&self, now_us: u64) -> Heard {
        let mut heard = self.counts;
        if let Some(post) = self.post.get() {
            let stale_us = u64::from(post.neighbours.stale_us);
            for cell in (0..64).filter(|cell| post.neighbours.hears(*cell)) {
                let said = self.said(cell, now_us);
                if said.is_none_or(|(_, age_us)| age_us > stale_us) {
                    heard.deaf |= 1 << cell;
                }
            }
        }
        heard
    }
}

impl Post {
    /// The cell in which the speaker is mounted, of those that are heard.
    fn cell(&self, bulletin: &Bulletin) -> Option<u16> {
        let neighbours = &self.neighbours;
        let stands_in = |cell: &u16| {
            let centre = (self.grid).centre(self.position, neighbours.spacing, *cell);
            let mut near = (bulletin.position.iter().zip(centre))
                .map(|(at, middle)| (at - middle).abs() <= neighbours.within);
            neighbours.hears(*cell) && near.all(|is_near| is_near)
        };
        if bulletin.field != self.field {
            return None;
        }
        (0..self.grid.cells()).find(stands_in)
    }
}

impl Ear {
    fn hear(
        &mut self,
        post: &Post,
        proven: bool,
        bulletin: &Bulletin,
        now_us: u64,
    ) -> Result<(), Unused> {
        let mut voices = self.0.map(Seat::get);
        let taken = Self::hear_among(&mut voices, post, proven, bulletin, now_us);
        self.0 = voices.map(Seat::of);
        taken
    }

    fn hear_among(
        voices: &mut Voices,
        post: &Post,
        proven: bool,
        bulletin: &Bulletin,
        now_us: u64,
    ) -> Result<(), Unused> {
        let stale_us = u64::from(post.neighbours.stale_us);
        let is_silent = |voice: &Voice| now_us.saturating_sub(voice.heard_us) > stale_us;
        let speaker = bulletin.speaker();
        let is_speaker =
            |voice: &Option<Voice>| voice.is_some_and(|voice| voice.speaker == speaker);
        let Some(at) = voices.iter().position(is_speaker) else {
            return Self::introduce(voices, bulletin, now_us, is_silent);
        };
        let taken = match voices.get_mut(at) {
            // Nothing proves that it is the one it was, and it may have been started again.
            Some(Some(voice)) if !proven && is_silent(voice) => {
                voice.begin_anew(bulletin, now_us);
                Err(Unused::Introduced)
            }
            Some(Some(voice)) => voice.hear(post, proven, bulletin, now_us),
            _ => Err(Unused::Elsewhere),
        };
        if at == 0 {
            return taken;
        }
        match (taken, &voices) {
            (Err(unused), _) => Err(unused),
            (Ok(()), [Some(first), _]) if !is_silent(first) => Err(Unused::Rival),
            (Ok(()), _) => {
                voices.swap(0, 1);
                Ok(())
            }
        }
    }

    /// Makes the acquaintance of somebody, if there is room.
    fn introduce(
        voices: &mut Voices,
        bulletin: &Bulletin,
        now_us: u64,
        is_silent: impl Fn(&Voice) -> bool,
    ) -> Result<(), Unused> {
        let voice = Voice::new(bulletin, now_us);
        match voices {
            [first @ None, _] => *first = Some(voice),
            [_, second @ None] => *second = Some(voice),
            [_, Some(second)] if is_silent(second) => *second = voice,
            _ => return Err(Unused::Rival),
        }
        Err(Unused::Introduced)
    }
}

impl Voice {
    fn new(bulletin: &Bulletin, now_us: u64) -> Self {
        Self {
            speaker: bulletin.speaker(),
            start: bulletin.start,
            number: bulletin.number,
            lag: (now_us as u32).wrapping_sub(bulletin.stamp_us),
            lag_us: now_us,
            heard_us: now_us,
            value: None,
            measured_us: 0,
        }
    }

    /// Makes its acquaintance again. What was last measured where it stands is known still, and as old as it is.
    fn begin_anew(&mut self, bulletin: &Bulletin, now_us: u64) {
        *self = Self {
            value: self.value,
            measured_us: self.measured_us,
            ..Self::new(bulletin, now_us)
        };
    }

    fn hear(
        &mut self,
        post: &Post,
        proven: bool,
        bulletin: &Bulletin,
        now_us: u64,
    ) -> Result<(), Unused> {
        let is_newer = match proven {
            true => (bulletin.start, bulletin.number) > (self.start, self.number),
            // Of these, 32 bits are said, and they may begin again.
            false => (bulletin.number as u32).wrapping_sub(self.number as u32) as i32 > 0,
        };
        if !is_newer {
            return Err(Unused::Again);
        }
        if bulletin.start != self.start {
            self.begin_anew(bulletin, now_us);
            return Err(Unused::Introduced);
        }
        self.number = bulletin.number;
        self.heard_us = now_us;
        let measured_us = now_us.saturating_sub(self.delay(bulletin.stamp_us, now_us));
        if now_us.saturating_sub(measured_us) > post.neighbours.stale_us.into() {
            return Err(Unused::Late);
        }
        let value = bulletin.value;
        let Tolerance {
            least,
            most,
            change,
            ..
        } = post.tolerance;
        if !(least..=most).contains(&value) {
            return Err(Unused::Implausible);
        }
        if let Some(before) = self.value {
            let passed = measured_us.saturating_sub(self.measured_us) as f32 * 1e-6;
            if (value - before).abs() > change * passed {
                return Err(Unused::Implausible);
            }
        }
        (self.value, self.measured_us) = (Some(value), measured_us);
        Ok(())
    }

    /// How much longer it was under way than the quickest of this speaker's.
    fn delay(&mut self, stamp_us: u32, now_us: u64) -> u64 {
        let lag = (now_us as u32).wrapping_sub(stamp_us);
        // The quickest may be as late as this by now, if its clock is slow.
        let drift = now_us.saturating_sub(self.lag_us) / DRIFT;
        let quickest = self.lag.wrapping_add(drift as u32);
        let delay = lag.wrapping_sub(quickest) as i32;
        if delay <= 0 {
            self.lag = lag;
            self.lag_us = now_us;
        }
        delay.max(0).unsigned_abs().into()
    }
}

fn count(events: &mut u32) {
    *events = events.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbours::bulletin::SEALED;
    use crate::record::tests::{heard, policy};
    use proptest::prelude::*;
    use std::vec::Vec;
    use trust::BusKey;

    /// Cell 0 of a window of four is heard, at 0.3; what is older than 10 ms is stale.
    fn hearing(proven: bool) -> Hearing {
        let mut hearing = Hearing::new();
        hearing.stand(&heard(), &policy(), proven);
        hearing
    }

    const LEFT: [f32; 2] = [0.3, 0.0];

    /// A bulletin by a clock that began 5 ms before this node's.
    fn said(number: u64, at_us: u64, value: f32) -> Bulletin {
        Bulletin {
            field: Field::of(policy().problem.as_str()),
            start: 1,
            number,
            stamp_us: (at_us + 5_000) as u32,
            position: LEFT,
            value,
        }
    }

    #[test]
    fn a_neighbour_is_introduced_and_then_taken_once_each_and_in_order() {
        for proven in [false, true] {
            let mut ear = hearing(proven);
            assert_eq!(
                ear.hear(&said(1, 1_000, 1.0), 1_200),
                Err(Unused::Introduced)
            );
            assert_eq!((ear.said(0, 1_200), ear.heard(1_200).deaf), (None, 0b1));
            assert_eq!(ear.hear(&said(2, 2_000, 1.005), 2_200), Ok(0));
            assert_eq!(ear.hear(&said(2, 2_000, 1.005), 2_300), Err(Unused::Again));
            assert_eq!(ear.hear(&said(1, 1_000, 1.0), 2_400), Err(Unused::Again));
            assert_eq!(ear.said(0, 2_700), Some((1.005, 500)));
            assert_eq!(ear.heard(2_700).deaf, 0);
            assert_eq!(ear.heard(12_201).deaf, 0b1);
            assert_eq!((ear.heard(0).taken, ear.heard(0).again), (1, 2));
        }
    }

    #[test]
    fn what_was_long_under_way_is_as_old_as_it_is_and_late_when_it_is_stale() {
        let mut ear = hearing(true);
        let _ = ear.hear(&said(1, 1_000, 1.0), 1_100);
        // 4 ms more under way than the quickest.
        assert_eq!(ear.hear(&said(2, 2_000, 1.005), 6_100), Ok(0));
        // Less what the clocks may have gone apart in 5 ms.
        assert_eq!(ear.said(0, 6_100), Some((1.005, 3_896)));
        assert_eq!(ear.hear(&said(3, 3_000, 1.005), 13_400), Err(Unused::Late));
        // A quicker one shows that all before were late by 50 microseconds more than was known.
        assert_eq!(ear.hear(&said(4, 14_000, 1.005), 14_050), Ok(0));
        assert_eq!(ear.hear(&said(5, 15_000, 1.005), 15_550), Ok(0));
        assert_eq!(ear.said(0, 15_550), Some((1.005, 469)));
    }

    #[test]
    fn clocks_that_go_apart_are_followed() {
        let mut ear = hearing(true);
        let mut now = 0;
        for k in 0..100_000u64 {
            // A hundred in a million slow, over 1000 s.
            now = k * 10_000;
            let bulletin = said(k, now - now / 10_000, 1.0);
            let heard = ear.hear(&bulletin, now);
            assert!(k == 0 || heard == Ok(0), "{k}: {heard:?}");
        }
        assert_eq!(ear.said(0, now), Some((1.0, 0)));
    }

    #[test]
    fn nobody_pushes_out_who_stands_in_a_cell() {
        for proven in [false, true] {
            let mut ear = hearing(proven);
            for k in 0..1_000u64 {
                let now = k * 1_000;
                let own = ear.hear(&said(k, now, 1.0), now);
                assert!(k == 0 || own == Ok(0), "{k}: {own:?}");
                for rival in 0..50 {
                    let shift = 0.0001 * (rival as f32 - 20.0);
                    let babble = Bulletin {
                        position: [0.3 + shift, 0.0],
                        ..said(k * 100 + rival, now, -1.0)
                    };
                    if babble.position != LEFT {
                        assert!(ear.hear(&babble, now).is_err());
                    }
                    let elsewhere = Bulletin {
                        position: [rival as f32 * 0.02, 0.0],
                        ..babble
                    };
                    if (elsewhere.position[0] - 0.3).abs() > 0.01 {
                        assert_eq!(ear.hear(&elsewhere, now), Err(Unused::Elsewhere));
                    }
                }
                assert_eq!(
                    ear.said(0, now).map(|(value, _)| value),
                    (k > 0).then_some(1.0)
                );
            }
            assert!(ear.heard(0).rivals > 1_000);
        }
    }

    #[test]
    fn who_follows_a_neighbour_that_died_is_taken_when_that_is_silent() {
        let mut ear = hearing(true);
        let second = |number, at_us| Bulletin {
            position: [0.305, 0.0],
            ..said(number, at_us, 2.0)
        };
        let _ = ear.hear(&said(1, 0, 1.0), 0);
        assert_eq!(ear.hear(&said(2, 1_000, 1.0), 1_000), Ok(0));
        assert_eq!(ear.hear(&second(1, 2_000), 2_000), Err(Unused::Introduced));
        assert_eq!(ear.hear(&second(2, 11_000), 11_000), Err(Unused::Rival));
        assert_eq!(ear.hear(&second(3, 12_000), 12_000), Ok(0));
        assert_eq!(ear.said(0, 12_000), Some((2.0, 0)));
        // What the first has said is not heard again, however long it was silent.
        assert_eq!(ear.hear(&said(2, 1_000, 1.0), 30_000), Err(Unused::Again));
    }

    #[test]
    fn a_neighbour_that_starts_again_is_taken_and_what_it_said_before_is_not() {
        let mut proven = hearing(true);
        let _ = proven.hear(&said(70, 0, 1.0), 0);
        assert_eq!(proven.hear(&said(71, 1_000, 1.0), 1_000), Ok(0));
        let again = |number, at_us| Bulletin {
            start: 2,
            ..said(number, at_us, 1.0)
        };
        assert_eq!(
            proven.hear(&again(1, 1_900), 2_000),
            Err(Unused::Introduced)
        );
        assert_eq!(proven.hear(&again(2, 3_000), 3_000), Ok(0));
        // Recorded, and played when the neighbour is long gone.
        for number in 72..100 {
            let replayed = said(number, number * 1_000, -1.0);
            assert_eq!(
                proven.hear(&replayed, 1_000_000 + number),
                Err(Unused::Again)
            );
        }
        // Without a proof there is no start to count: it is silent first.
        let mut plain = hearing(false);
        let _ = plain.hear(&said(70, 0, 1.0), 0);
        assert_eq!(plain.hear(&said(0, 1_000, 1.0), 1_000), Err(Unused::Again));
        assert_eq!(
            plain.hear(&said(1, 10_001, 1.0), 10_001),
            Err(Unused::Introduced)
        );
        assert_eq!(plain.hear(&said(2, 11_000, 1.0), 11_000), Ok(0));
    }

    #[test]
    fn what_the_field_cannot_be_is_not_taken() {
        let mut ear = hearing(true);
        let _ = ear.hear(&said(1, 0, 1.0), 0);
        assert_eq!(
            ear.hear(&said(2, 1_000, 5.1), 1_000),
            Err(Unused::Implausible)
        );
        assert_eq!(ear.hear(&said(3, 2_000, 1.0), 2_000), Ok(0));
        // Ten a second is 0.01 in a millisecond.
        assert_eq!(
            ear.hear(&said(4, 3_000, 1.02), 3_000),
            Err(Unused::Implausible)
        );
        assert_eq!(ear.hear(&said(5, 4_100, 1.02), 4_100), Ok(0));
        let other = Bulletin {
            field: Field::of("another"),
            ..said(6, 5_000, 1.02)
        };
        assert_eq!(ear.hear(&other, 5_000), Err(Unused::Elsewhere));
    }

    /// An hour in which one clock gains 1 % and the other loses it. What is said every 10 ms is under way for up to
    /// 12 ms, and every twentieth for 0.2 ms only.
    #[test]
    fn clocks_that_are_off_by_a_hundredth_make_nothing_late_and_nothing_stale_fresh() {
        for [speaker, listener] in [[1.01, 0.99], [0.99, 1.01]] {
            let by = |clock: f64, us: u64| (us as f64 * clock) as u64;
            let mut ear = hearing(true);
            let mut post = ear.post.get().unwrap();
            post.neighbours.stale_us = 30_000;
            let stale_us = 30_000;
            ear.post = Seat::Taken(post);
            // Since the last of the quickest, which is 21 periods ago at most, the allowance has grown by one part in
            // 48 of the listener's time, and the lag has shrunk by 1.01 / 0.99 - 1 of it where the speaker gains. By
            // that and by the 0.2 ms of the quickest what is said may be older than it is taken for. Its age is in
            // time of the listener, which may lose a hundredth; 2 us are rounding.
            let unnoticed =
                200.0 + 21.0 * 10_000.0 * 1.01 * (1.0 / 48.0 + (1.01 / 0.99 - 1.0)) + 2.0;
            let most = stale_us as f64 / 0.99 + unnoticed;
            let (mut measured, mut oldest) = (std::collections::VecDeque::new(), 0.0f64);
            for number in 0..360_000u64 {
                let at = 10_000 * number;
                let under_way = match number % 20 {
                    0 => 200,
                    k => 600 * (k * 7 % 20),
                };
                let value = (number % 64) as f32 / 64.0 / 1e3;
                measured.push_back((value, at));
                if measured.len() > 20 {
                    measured.pop_front();
                }
                let heard = ear.hear(
                    &said(number + 1, by(speaker, at), value),
                    by(listener, at + under_way),
                );
                assert_eq!(heard.is_ok(), number > 0, "{number}: {heard:?}");
                // Until just before the next is heard: somebody has fallen silent for a while.
                for later in [0, 9_000, 20_000, 40_000] {
                    let now = at + under_way + later;
                    if let Some((value, age_us)) = ear.said(0, by(listener, now))
                        && age_us <= stale_us
                    {
                        let (_, at) = measured
                            .iter()
                            .rev()
                            .find(|(said, _)| *said == value)
                            .unwrap();
                        oldest = oldest.max((now - at) as f64);
                        assert!((now - at) as f64 <= most, "{number}: {} {most}", now - at);
                    }
                }
            }
            assert_eq!((ear.heard(0).late, ear.heard(0).taken), (0, 359_999));
            std::println!("oldest that was used: {oldest} us of at most {most} us");
        }
    }

    /// What comes over the bus.
    #[derive(Debug, Clone)]
    enum Comes {
        /// Of the one who stands there, after so many microseconds.
        True { delay: u64 },
        /// One of those once more.
        Again { which: usize },
        /// One of those with wrong bits.
        Wrong { which: usize, bits: Vec<usize> },
        /// By one who stands elsewhere, or in the same cell, or has another key or another field.
        Other { how: u8, x: f32, value: f32 },
        /// Anything.
        Bytes(Vec<u8>),
        /// Nothing.
        Silence { us: u64 },
    }

    fn comes() -> impl Strategy<Value = Comes> {
        prop_oneof![
            6 => prop_oneof![0u64..300, 0u64..30_000].prop_map(|delay| Comes::True { delay }),
            2 => any::<usize>().prop_map(|which| Comes::Again { which }),
            2 => (any::<usize>(), proptest::collection::vec(0usize..8 * SEALED, 1..40))
                .prop_map(|(which, bits)| Comes::Wrong { which, bits }),
            2 => (0u8..3, 0.0f32..1.0, -5.0f32..5.0)
                .prop_map(|(how, x, value)| Comes::Other { how, x, value }),
            1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Comes::Bytes),
            1 => (0u64..20_000).prop_map(|us| Comes::Silence { us }),
        ]
    }

    proptest! {
        /// Whatever comes in whatever order: what is used of a cell was said by the one who stands in it, and
        /// is no older than it may be and than the quickest that was heard of it was under way.
        #[test]
        fn no_wrong_cell_is_used(events in proptest::collection::vec(comes(), 1..120)) {
            let key = BusKey::new([3; 32]);
            let mut ear = hearing(true);
            // Ten a second is slower than these values change with their number.
            let mut post = ear.post.get().unwrap();
            post.tolerance.change = 1e9;
            ear.post = Seat::Taken(post);
            let (mut now, mut number) = (100_000u64, 0u64);
            let mut sent: Vec<(Vec<u8>, u64, f32)> = Vec::new();
            // When each comes, and what; and the least that one was under way that was heard in order.
            let mut under_way: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut quickest = u64::MAX;
            for event in events {
                now += 700;
                let encoded = |bulletin: &Bulletin, key: &BusKey| {
                    bulletin.encode(Some(key), &mut [0; SEALED]).to_vec()
                };
                match event {
                    Comes::True { delay } => {
                        number += 1;
                        let value = number as f32 / 64.0;
                        let bytes = encoded(&said(number, now, value), &key);
                        sent.push((bytes.clone(), now, value));
                        under_way.push((now + delay, bytes));
                    }
                    Comes::Again { which } if !sent.is_empty() => {
                        under_way.push((now, sent[which % sent.len()].0.clone()));
                    }
                    Comes::Wrong { which, bits } if !sent.is_empty() => {
                        let mut bytes = sent[which % sent.len()].0.clone();
                        bits.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
                        if bytes != sent[which % sent.len()].0 {
                            under_way.push((now, bytes));
                        }
                    }
                    Comes::Other { how, x, value } => {
                        let mut other = Bulletin { value, ..said(number + 5, now, value) };
                        let mut with = key.clone();
                        match how {
                            0 if (x - 0.3).abs() > 0.01 => other.position[0] = x,
                            1 => with = BusKey::new([4; 32]),
                            _ => other.field = Field::of("another"),
                        }
                        under_way.push((now, encoded(&other, &with)));
                    }
                    Comes::Bytes(bytes) => under_way.push((now, bytes)),
                    Comes::Silence { us } => now += us,
                    _ => {}
                }
                under_way.sort_by_key(|(at, _)| *at);
                while under_way.first().is_some_and(|(at, _)| *at <= now) {
                    let (at, bytes) = under_way.remove(0);
                    let Ok(bulletin) = Bulletin::read(&bytes, Some(&key)) else {
                        continue;
                    };
                    let heard = ear.hear(&bulletin, at);
                    if !matches!(heard, Err(Unused::Again | Unused::Elsewhere)) {
                        let (_, measured_us, _) = sent.iter().find(|(b, ..)| *b == bytes).unwrap();
                        quickest = quickest.min(at - measured_us);
                    }
                }
                if let Some((value, age_us)) = ear.said(0, now) {
                    let true_one = sent.iter().find(|(_, _, said)| *said == value);
                    prop_assert!(true_one.is_some(), "{value} was never said");
                    let (_, measured_us, _) = true_one.unwrap();
                    let apart = (now - 100_000) / DRIFT + 1;
                    prop_assert!(now - measured_us <= age_us + quickest + apart);
                }
                for cell in 1..64 {
                    prop_assert!(ear.said(cell, now).is_none());
                }
            }
        }
    }
}
