//! Colours that everybody can tell apart.

use plotters::style::RGBColor;

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

/// The colour of `value` on a scale from −1 (deep blue) over 0 (pale) to 1 (deep brown).
pub fn diverging(value: f64) -> [u8; 3] {
    let value = value.clamp(-1.0, 1.0);
    let above = VIK.iter().position(|(place, _)| value <= *place);
    let above = above.unwrap_or(VIK.len() - 1).max(1);
    let ((low, from), (high, to)) = (VIK[above - 1], VIK[above]);
    let share = (value - low) / (high - low);
    std::array::from_fn(|c| {
        let (a, b) = (f64::from(from[c]), f64::from(to[c]));
        (a + share * (b - a)).round() as u8
    })
}

/// Line colours by Okabe and Ito, made for colour-blind readers.
pub mod line {
    use super::RGBColor;

    /// For runs without control.
    pub const GREY: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
    /// For proportional feedback.
    pub const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
    /// For the swarm.
    pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
    /// For the swarm without the faults that it is shown with.
    pub const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
    /// For the swarm under faults.
    pub const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_spans_its_ends_and_clamps() {
        assert_eq!(diverging(-1.0), VIK[0].1);
        assert_eq!(diverging(7.0), VIK[10].1);
        let middle = diverging(0.0);
        assert!(middle.iter().all(|&c| c > 200), "{middle:?} is pale");
    }
}
