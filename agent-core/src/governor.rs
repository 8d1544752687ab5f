//! The governor: an agent eases off when what it does comes back with the other sign.
//!
//! No agent knows how many others there are, and yet the loop gain grows with their number: what
//! settles the field in one step where eight act overshoots tenfold where eighty do, and is then
//! corrected as wildly. An agent can tell from its own outputs alone. In a loop of gain `k` an output
//! is followed by `1 − k` times itself; so one that changes its sign by the share `over` of what it was
//! says that the gain is `1 + over`, and dividing by that makes it 1. The ease grows back slowly, so that
//! agents that are left alone do the work of those that are gone.
//!
//! Small outputs change sign for other reasons: policies with memory do as they settle. So the share is
//! one of what the output was and of a band, against which they hardly count.

use crate::policy::Governor;

/// What is remembered of one output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Easing {
    /// The output of the last valid step as a share of its limit, before it was eased.
    last: f32,
    /// What is left of outputs: above 0, at most 1.
    ease: f32,
}

impl Easing {
    /// Nothing seen yet, nothing eased.
    pub(crate) const NONE: Self = Self {
        last: 0.0,
        ease: 1.0,
    };

    /// An output, as a share within ± 1 of its limit, eased. Bit for bit itself as long as no two in
    /// a row have had opposite signs.
    #[cfg_attr(target_arch = "x86_64", inline(always))]
    pub(crate) fn next(&mut self, governor: &Governor, share: f32) -> f32 {
        self.ease = match share * self.last < 0.0 {
            // Then neither is 0, and the quotient is a number or infinite.
            true => {
                let over = (share.abs() / (self.last.abs() + governor.band)).min(1.0);
                (self.ease / (1.0 + over)).max(governor.floor)
            }
            false => (self.ease * governor.growth).min(1.0),
        };
        self.last = share;
        share * self.ease
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOVERNOR: Governor = Governor {
        growth: 1.01,
        floor: 1.0 / 1024.0,
        band: 0.0,
    };

    #[test]
    fn what_does_not_change_sign_keeps_its_bits() {
        let mut easing = Easing::NONE;
        for share in [
            0.0, -0.0, 1e-45, 0.3, 1.0, 0.7, 0.0, -1e-30, -1.0, -0.0, 0.5,
        ] {
            let eased = easing.next(&GOVERNOR, share);
            assert_eq!(eased.to_bits(), share.to_bits(), "{share}");
        }
    }

    /// What is left of `x` after each of so many steps of a loop of this gain, which saturates at ± 1.
    fn settle(gain: f32, governor: Option<&Governor>, steps: usize) -> std::vec::Vec<f32> {
        let mut easing = Easing::NONE;
        let mut x = 1.0f32;
        let step = |_| {
            let share = (-x).clamp(-1.0, 1.0);
            x += gain * governor.map_or(share, |governor| easing.next(governor, share));
            x.abs()
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_loop_of_any_gain_settles() {
        for growth in [1.0, 1.002, 1.01, 1.1] {
            let governor = Governor { growth, ..GOVERNOR };
            for gain in [0.1, 0.5, 1.0, 1.5, 1.99, 2.01, 3.0, 8.0, 30.0, 100.0] {
                let left = settle(gain, Some(&governor), 300)[299];
                assert!(left < 1e-6, "{left} at a gain of {gain}, growth {growth}");
            }
        }
        // Without one it goes from side to side: after two steps it is where it was.
        for gain in [2.01, 100.0] {
            assert!(settle(gain, None, 300)[299] > 0.99, "{gain}");
        }
    }

    /// As a policy with memory does.
    #[test]
    fn what_swings_within_the_band_as_it_settles_stays_nearly_whole() {
        let left = |band| {
            let governor = Governor { band, ..GOVERNOR };
            let mut easing = Easing::NONE;
            let mut share = 0.01;
            for _ in 0..60 {
                easing.next(&governor, share);
                share *= -0.7;
            }
            easing.ease
        };
        // It loses 1 + 0.01 · 0.7ⁿ / 0.2 a step at most: together e to the 0.01 · 0.7 / 0.3 / 0.2.
        assert!(left(0.2) > 0.88, "{}", left(0.2));
        assert_eq!(left(0.0), GOVERNOR.floor);
    }

    /// Within it agents may swing, but no further: what grows is eased as soon as it counts.
    #[test]
    fn a_loop_of_high_gain_stays_within_about_the_band() {
        for (growth, band) in [
            (1.0, 0.2),
            (1.002, 0.2),
            (1.005, 0.2),
            (1.01, 0.2),
            (1.005, 0.05),
        ] {
            let governor = Governor {
                growth,
                band,
                ..GOVERNOR
            };
            for gain in [2.01, 3.0, 8.0, 30.0, 100.0] {
                let steps = if cfg!(miri) { 600 } else { 4000 };
                let left = settle(gain, Some(&governor), steps);
                let most = left[500..].iter().copied().fold(0.0, f32::max);
                assert!(
                    most < 1.5 * band,
                    "{most} at a gain of {gain}, growth {growth}, band {band}"
                );
            }
        }
    }

    #[test]
    fn overshoot_is_a_share_of_what_was_and_of_the_band() {
        let banded = Governor {
            band: 0.5,
            ..GOVERNOR
        };
        let mut easing = Easing::NONE;
        easing.next(&banded, 0.5);
        assert_eq!(easing.next(&banded, -0.25), -0.25 / 1.25);
        // Never more than all of it.
        assert_eq!(easing.next(&banded, 1.0), 1.0 / 1.25 / 2.0);
    }

    /// A sign that changes by half says a gain of 3/2.
    #[test]
    fn one_overshoot_is_enough_to_know_the_gain() {
        let mut easing = Easing::NONE;
        easing.next(&GOVERNOR, 0.5);
        assert_eq!(easing.next(&GOVERNOR, -0.25), -0.25 / 1.5);
        // One that comes back larger than it was says no more than that.
        assert_eq!(easing.next(&GOVERNOR, 1.0), 1.0 / 1.5 / 2.0);
    }

    #[test]
    fn easing_ends_at_the_floor_and_is_forgotten_in_time() {
        let mut easing = Easing::NONE;
        let mut share = 1.0;
        for _ in 0..100 {
            share = -share;
            easing.next(&GOVERNOR, share);
        }
        assert_eq!(easing.ease, GOVERNOR.floor);
        // 1.01ⁿ = 1024 at n = ln 1024 / ln 1.01 = 696.6.
        for step in 1..=700 {
            let whole = easing.next(&GOVERNOR, share) == share;
            assert_eq!(whole, step >= 697, "step {step}");
        }
    }

    #[test]
    fn a_floor_of_one_eases_nothing() {
        let idle = Governor {
            floor: 1.0,
            ..GOVERNOR
        };
        let mut easing = Easing::NONE;
        for share in [1.0, -1.0, 0.5, -0.5] {
            assert_eq!(easing.next(&idle, share), share);
        }
    }

    /// Down to the smallest numbers there are, of which the product is 0 and the quotient infinite.
    fn any_share() -> impl Strategy<Value = f32> {
        prop_oneof![
            -1.0f32..=1.0,
            proptest::sample::select(std::vec![
                0.0,
                -0.0,
                1e-45,
                -1e-45,
                f32::MIN_POSITIVE,
                1.0,
                -1.0
            ]),
        ]
    }

    proptest! {
        #[test]
        fn what_is_eased_is_never_more_and_never_turned_round(
            shares in proptest::collection::vec(any_share(), 1..50),
            growth in 1.0f32..=2.0,
            floor in prop_oneof![Just(1e-45f32), f32::MIN_POSITIVE..=1.0],
            band in prop_oneof![Just(0.0f32), Just(1e-45f32), 0.0f32..=1.0],
        ) {
            let governor = Governor { growth, floor, band };
            let mut easing = Easing::NONE;
            for share in shares {
                let eased = easing.next(&governor, share);
                prop_assert!(eased.abs() <= share.abs());
                prop_assert!(eased.is_sign_positive() == share.is_sign_positive());
                prop_assert!((floor..=1.0).contains(&easing.ease));
            }
        }

        /// As formats before 5 had it.
        #[test]
        fn without_a_band_overshoot_is_the_ratio_of_two_outputs(
            last in any_share(),
            share in any_share(),
        ) {
            let mut easing = Easing { last, ease: 1.0 };
            easing.next(&GOVERNOR, share);
            let over = match share * last < 0.0 {
                true => (-share / last).min(1.0),
                false => 0.0,
            };
            prop_assert_eq!(easing.ease.to_bits(), (1.0 / (1.0 + over)).to_bits());
        }
    }
}
