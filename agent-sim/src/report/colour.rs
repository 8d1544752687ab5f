//! Colours that everybody can tell apart.

use crate::trajectory::Trajectory;
use plotters::style::RGBColor;
use problem::{Episode, Problem};

/// Crameri's `vik` at eleven places from −1 to 1: diverging, perceptually uniform, and readable with
/// any kind of colour vision (F. Crameri, Scientific colour maps, doi:10.5281/zenodo.1243862).
const VIK: [(f64, [u8; 3]); 11] = [
    (-1.0, [0x00, 0x12, 0x61]),
    (-0.78, [0x03, 0x3e, 0x7d]),
    (-0.56, [0x1e, 0x6f, 0x9d]),
    (-0.33, [0x71, 0xa8, 0xc4]),
    (-0.11, [0xc9, 0xdd, 0xe7]),
    (0.0, [0xec, 0xe5, 0xe0]),
    (0.11, [0xea, 0xce, 0xbd]),
    (0.33, [0xd3, 0x97, 0x74]),
    (0.56, [0xbe, 0x65, 0x33]),
    (0.78, [0x8b, 0x27, 0x06]),
    (1.0, [0x59, 0x00, 0x08]),
];

/// `viridis` at eleven places from 0 to 1: sequential and perceptually uniform (S. van der Walt and
/// N. Smith, 2015, placed in the public domain).
const VIRIDIS: [(f64, [u8; 3]); 11] = [
    (0.0, [0x44, 0x01, 0x54]),
    (0.1, [0x48, 0x25, 0x76]),
    (0.2, [0x41, 0x44, 0x87]),
    (0.3, [0x35, 0x60, 0x8d]),
    (0.4, [0x2a, 0x78, 0x8e]),
    (0.5, [0x21, 0x90, 0x8c]),
    (0.6, [0x22, 0xa8, 0x84]),
    (0.7, [0x43, 0xbf, 0x71]),
    (0.8, [0x7a, 0xd1, 0x51]),
    (0.9, [0xbb, 0xdf, 0x27]),
    (1.0, [0xfd, 0xe7, 0x25]),
];

/// Share of a run's values that may lie beyond the deepest colours: a spike of a few cells must not
/// wash out all the rest.
const BEYOND: f64 = 0.005;
/// Part of its height that a field may dip below zero and still count as never negative: solvers
/// undershoot.
const UNDERSHOOT: f64 = 0.02;
/// Frames of a run that are looked at for its scale.
const FRAMES: usize = 24;

fn between(map: &[(f64, [u8; 3]); 11], value: f64) -> [u8; 3] {
    let value = value.clamp(map[0].0, map[10].0);
    let above = map.iter().position(|(place, _)| value <= *place);
    let above = above.unwrap_or(map.len() - 1).max(1);
    let ((low, from), (high, to)) = (map[above - 1], map[above]);
    let share = (value - low) / (high - low);
    std::array::from_fn(|c| {
        let (a, b) = (f64::from(from[c]), f64::from(to[c]));
        (a + share * (b - a)).round() as u8
    })
}

/// Which values have which colours: from −`high` to `high` around a pale zero, or from zero to `high`
/// for fields that are never negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    high: f64,
    signed: bool,
}

impl Scale {
    /// For the field in these runs of an episode.
    pub fn of_field(problem: &Problem, episode: &Episode, runs: &[&Trajectory]) -> Self {
        let parts = [&episode.initial, &episode.target];
        let ends = || parts.into_iter().flat_map(|state| problem.seen(state));
        let (low, high) = extremes(ends().copied(), 0.0);
        let on_the_way = runs.iter().flat_map(|run| {
            let shown = run.fields.len().min(FRAMES);
            (0..shown).flat_map(move |k| &run.fields[super::spread(k, shown, run.fields.len())])
        });
        let (lowest, highest) = extremes(on_the_way.copied(), BEYOND);
        Self::holding(low.min(lowest), high.max(highest))
    }

    /// For the field minus its target in runs of an episode: as far as they are apart at its start.
    pub fn of_error(problem: &Problem, episode: &Episode) -> Self {
        let gaps = problem.seen(&episode.initial).iter();
        let gaps = gaps.zip(problem.seen(&episode.target));
        let (low, high) = extremes(gaps.map(|(a, b)| a - b), 0.0);
        Self {
            high: round_up(high.max(-low)),
            signed: true,
        }
    }

    fn holding(low: f64, high: f64) -> Self {
        Self {
            high: round_up(high.max(-low)),
            signed: low < -UNDERSHOOT * high,
        }
    }

    /// The value of the first colour.
    pub fn low(&self) -> f64 {
        if self.signed { -self.high } else { 0.0 }
    }

    /// The value of the last colour.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The colour at a share of the way from the first to the last.
    pub fn at(&self, share: f64) -> [u8; 3] {
        match self.signed {
            true => between(&VIK, 2.0 * share - 1.0),
            false => between(&VIRIDIS, share),
        }
    }

    /// How far a value is from the first to the last colour.
    pub fn share(&self, value: f32) -> f64 {
        ((f64::from(value) - self.low()) / (self.high - self.low())).clamp(0.0, 1.0)
    }

    /// The colour of a value.
    pub fn colour(&self, value: f32) -> [u8; 3] {
        self.at(self.share(value))
    }
}

/// The quantity's name for a colour bar.
pub fn error_name(problem: &Problem) -> String {
    format!("{} − target", problem.quantity)
}

/// The lowest and the highest of some values, less a share of outliers at either end.
fn extremes(values: impl Iterator<Item = f32>, outliers: f64) -> (f64, f64) {
    let mut values: Vec<f32> = values.filter(|v| v.is_finite()).collect();
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let last = values.len() - 1;
    let cut = (outliers * values.len() as f64) as usize;
    let (_, low, _) = values.select_nth_unstable_by(cut, f32::total_cmp);
    let low = f64::from(*low);
    let (_, high, _) = values.select_nth_unstable_by(last - cut, f32::total_cmp);
    (low, f64::from(*high))
}

/// The next round number: the colour bar ends there.
fn round_up(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(value.log10().floor());
    let round = [
        1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
    ];
    let least = value / decade * (1.0 - 1e-6);
    decade * round.into_iter().find(|&r| r >= least).unwrap_or(10.0)
}

/// The fill of agents that hold their last action or have failed safe.
pub const AMBER: [u8; 3] = [0xff, 0xb0, 0x00];

/// Line colours by Okabe and Ito, made for colour-blind readers.
pub mod line {
    use super::RGBColor;

    /// For runs without control.
    pub const GREY: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
    /// For proportional feedback.
    pub const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
    /// For the swarm.
    pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
    /// For the swarm under faults.
    pub const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
    /// For one more run.
    pub const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
    /// For yet another run.
    pub const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(initial: &[f32], target: &[f32]) -> Scale {
        let episode = Episode {
            initial: initial.to_vec(),
            target: target.to_vec(),
            ..Episode::default()
        };
        Scale::of_field(&problem::published::heat_1d::PROBLEM, &episode, &[])
    }

    #[test]
    fn maps_span_their_ends_and_clamp() {
        let signed = scale(&[-2.0], &[1.0]);
        assert_eq!((signed.low(), signed.high()), (-2.0, 2.0));
        assert_eq!(signed.colour(-2.0), VIK[0].1);
        assert_eq!(signed.colour(7.0), VIK[10].1);
        let middle = signed.colour(0.0);
        assert!(middle.iter().all(|&c| c > 200), "{middle:?} is pale");
    }

    #[test]
    fn fields_that_are_never_negative_get_the_sequential_map() {
        let density = scale(&[0.0, 0.93], &[-0.01, 0.5]);
        assert_eq!((density.low(), density.high()), (0.0, 1.0));
        assert_eq!(density.colour(0.0), VIRIDIS[0].1);
        assert_eq!(density.colour(1.0), VIRIDIS[10].1);
        assert_eq!(scale(&[0.0, 0.93], &[-0.1, 0.5]).low(), -1.0);
    }

    /// Of 400 values 0.5 % are two: the two out of all proportion, and 2 and 3 at the lower end.
    #[test]
    fn outliers_are_left_out_at_either_end() {
        let values = (0..400).map(|k| if k < 2 { 1e6 } else { k as f32 });
        assert_eq!(extremes(values, BEYOND), (4.0, 399.0));
    }

    #[test]
    fn scales_are_round() {
        assert_eq!([0.93, 1.0, 1.3].map(round_up), [1.0, 1.0, 1.4]);
        assert_eq!([0.0, 9.1, 27.0].map(round_up), [1.0, 10.0, 30.0]);
        assert_eq!(round_up(f64::NAN), 1.0);
    }
}
