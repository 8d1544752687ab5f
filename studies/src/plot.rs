//! Curves for pictures of studies.

use crate::cell::Figure;
use agent_sim::report::{RGBColor, Scored, Series, line};

/// Colours that can be told apart, in the order of their use. Grey is kept for no control.
pub const PALETTE: [RGBColor; 8] = [
    line::BLUE,
    line::ORANGE,
    line::GREEN,
    line::PURPLE,
    line::VERMILION,
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x80, 0x60, 0x20),
    RGBColor(0x20, 0x20, 0x70),
];

/// A curve through the means of figures with a band of one standard deviation.
pub fn banded(
    name: impl Into<String>,
    colour: RGBColor,
    points: impl IntoIterator<Item = (f64, Figure)>,
) -> Series {
    let points = points.into_iter().filter(|(_, figure)| figure.blown == 0);
    let scored = points.map(|(x, figure)| Scored {
        x,
        mean: figure.mean,
        low: figure.mean - figure.std,
        high: figure.mean + figure.std,
    });
    Series {
        name: name.into(),
        colour,
        points: scored.collect(),
    }
}
