//! Axes with round numbers, and the frame that two of them make.

use super::svg::{DrawError, FINE, Surface};
use super::{font, text_width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A quantity along one side of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is, with its unit.
    pub title: String,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// Even steps from `low` to `high`.
    pub fn linear(title: impl Into<String>, low: f64, high: f64) -> Self {
        let (low, high) = match low < high && (high - low).is_finite() {
            true => (low, high),
            false => (0.0, 1.0),
        };
        Self {
            title: title.into(),
            low,
            high,
            logarithmic: false,
        }
    }

    /// Even factors from `low` to `high`, both positive.
    pub fn logarithmic(title: impl Into<String>, low: f64, high: f64) -> Self {
        let (low, high) = match 0.0 < low && low < high && high.is_finite() {
            true => (low, high),
            false => (0.1, 1.0),
        };
        Self {
            title: title.into(),
            low,
            high,
            logarithmic: true,
        }
    }

    /// Whole decades around positive values, not below `floor`.
    pub fn decades(
        title: impl Into<String>,
        values: impl Iterator<Item = f64>,
        floor: f64,
    ) -> Self {
        let (low, high) = values
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, 0.0f64), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        let low = low.clamp(floor, 1e11).log10().floor();
        let high = (high.clamp(floor, 1e12).log10() - 1e-9).ceil();
        let high = 10f64.powf(high.max(low + 1.0));
        Self::logarithmic(title, 10f64.powf(low), high)
    }

    /// Where a value stands: 0 at the lower end, 1 at the upper; values beyond stand at the ends.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    /// At most about `most` round values with their labels.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match self.logarithmic {
            true => self.decimal_ticks(most),
            false => self.even_ticks(most),
        }
    }

    fn even_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let least = (self.high - self.low) / most.max(1) as f64;
        let decade = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|round| round * decade)
            .into_iter()
            .find(|step| *step >= least * (1.0 - 1e-9))
            .unwrap_or(10.0 * decade);
        let first = (self.low / step - 1e-6).ceil() as i64;
        let last = (self.high / step + 1e-6).floor() as i64;
        (first..=last)
            .map(|k| k as f64 * step)
            .map(|value| (value, decimal(value)))
            .collect()
    }

    fn decimal_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let first = (self.low.log10() + 1e-6).floor() as i32;
        let last = (self.high.log10() - 1e-6).ceil() as i32;
        let decades = (last - first).max(1) as usize;
        let span = (self.high / self.low).log10();
        let between: &[f64] = match span < 2.5 && most as f64 >= 3.0 * span {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let stride = decades.div_ceil(most.max(1)).max(1);
        let inside = self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9);
        let plain = self.low >= 0.99e-2 && self.high <= 1e5;
        (first..=last)
            .step_by(stride)
            .flat_map(|decade| between.iter().map(move |m| m * 10f64.powi(decade)))
            .filter(|value| inside.contains(value))
            .map(|value| match plain {
                true => (value, decimal(value)),
                false => (value, power(value)),
            })
            .collect()
    }
}

/// A round number with no more decimals than it needs and a true minus sign.
fn decimal(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".into(),
        _ => text.replace('-', "−"),
    }
}

/// `2e-4` as 2·10⁻⁴, `1e-4` as 10⁻⁴.
pub fn power(value: f64) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = (value.log10() + 1e-9).floor() as i32;
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised = exponent.unsigned_abs().to_string();
    let raised = raised.bytes().map(|b| digits[usize::from(b - b'0')]);
    let power = format!("10{sign}{}", raised.collect::<String>());
    match format!("{:.1}", value / 10f64.powi(exponent)).as_str() {
        "1.0" => power,
        mantissa => format!("{}·{power}", mantissa.trim_end_matches(".0")),
    }
}

/// Room for the numbers and the title below a frame, in drawing units.
pub const BELOW: i32 = 44 * FINE as i32;
/// Room for the numbers and the title beside a frame.
pub const BESIDE: i32 = 62 * FINE as i32;

/// A rectangle between two axes, in drawing units of its surface.
pub struct Frame {
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Its left and right side.
    pub across: (i32, i32),
    /// Its upper and lower side.
    pub down: (i32, i32),
}

impl Frame {
    /// Where a point stands.
    pub fn place(&self, x: f64, y: f64) -> (i32, i32) {
        let (left, right) = self.across;
        let (top, bottom) = self.down;
        (
            left + (self.x.share(x) * f64::from(right - left)).round() as i32,
            bottom + (self.y.share(y) * f64::from(top - bottom)).round() as i32,
        )
    }

    /// Its upper left and lower right corner.
    pub fn corners(&self) -> [(i32, i32); 2] {
        [(self.across.0, self.down.0), (self.across.1, self.down.1)]
    }

    /// How many numbers find room along the axes.
    fn room(&self) -> (usize, usize) {
        let along = (self.across.1 - self.across.0) / (80 * FINE as i32);
        let up = (self.down.1 - self.down.0) / (36 * FINE as i32);
        (along.max(2) as usize, up.max(2) as usize)
    }

    /// Faint lines at the axes' numbers.
    pub fn draw_grid(&self, area: &Surface<'_>) -> Result<(), DrawError> {
        self.draw_upright_grid(area)?;
        for (value, _) in self.y.ticks(self.room().1) {
            let (_, y) = self.place(self.x.low, value);
            let ends = [(self.across.0, y), (self.across.1, y)];
            area.draw(&PathElement::new(ends, BLACK.mix(0.12).stroke_width(1)))?;
        }
        Ok(())
    }

    /// Those at the horizontal axis' alone.
    pub fn draw_upright_grid(&self, area: &Surface<'_>) -> Result<(), DrawError> {
        for (value, _) in self.x.ticks(self.room().0) {
            let (x, _) = self.place(value, self.y.low);
            let ends = [(x, self.down.0), (x, self.down.1)];
            area.draw(&PathElement::new(ends, BLACK.mix(0.12).stroke_width(1)))?;
        }
        Ok(())
    }

    /// The outline.
    pub fn draw_outline(&self, area: &Surface<'_>) -> Result<(), DrawError> {
        area.draw(&Rectangle::new(self.corners(), BLACK.stroke_width(1)))?;
        Ok(())
    }

    /// The horizontal axis' numbers and title, below.
    pub fn draw_x(&self, area: &Surface<'_>) -> Result<(), DrawError> {
        let fine = FINE as i32;
        let bottom = self.down.1;
        for (value, text) in self.x.ticks(self.room().0) {
            let (x, _) = self.place(value, self.y.low);
            let tick = [(x, bottom), (x, bottom + 4 * fine)];
            area.draw(&PathElement::new(tick, BLACK.stroke_width(1)))?;
            let style = font(12.0).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(text, (x, bottom + 7 * fine), style))?;
        }
        let middle = (self.across.0 + self.across.1) / 2;
        let style = font(13.0).pos(Pos::new(HPos::Center, VPos::Top));
        let place = (middle, bottom + 25 * fine);
        area.draw(&Text::new(self.x.title.clone(), place, style))?;
        Ok(())
    }

    /// The vertical axis' numbers and title, to the left.
    pub fn draw_y(&self, area: &Surface<'_>) -> Result<(), DrawError> {
        let fine = FINE as i32;
        let left = self.across.0;
        let mut widest = 0;
        for (value, text) in self.y.ticks(self.room().1) {
            let (_, y) = self.place(self.x.low, value);
            let tick = [(left - 4 * fine, y), (left, y)];
            area.draw(&PathElement::new(tick, BLACK.stroke_width(1)))?;
            widest = widest.max(text_width(&text, 12.0));
            let style = font(12.0).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(text, (left - 7 * fine, y), style))?;
        }
        let middle = (self.down.0 + self.down.1) / 2;
        let place = (left - 14 * fine - widest, middle);
        draw_upwards(area, &self.y.title, place)
    }
}

/// Text that reads upwards, with the middle of its foot at `place`.
pub fn draw_upwards(area: &Surface<'_>, text: &str, place: (i32, i32)) -> Result<(), DrawError> {
    let style = font(13.0)
        .transform(FontTransform::Rotate270)
        .pos(Pos::new(HPos::Center, VPos::Bottom));
    area.draw(&Text::new(text.to_owned(), place, style))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, most: usize) -> Vec<String> {
        axis.ticks(most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn even_steps_are_round() {
        let labels = |low, high| labels(&Axis::linear("", low, high), 5);
        assert_eq!(labels(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(-2.0, 2.0), ["−2", "−1", "0", "1", "2"]);
        assert_eq!(labels(0.0, 1.25), ["0", "0.5", "1"]);
        assert_eq!(labels(0.0, 22.0), ["0", "5", "10", "15", "20"]);
    }

    #[test]
    fn decades_are_labelled_apart() {
        let narrow = Axis::decades("", [1.5, 2.0].into_iter(), 1e-12);
        assert_eq!(labels(&narrow, 6), ["1", "2", "5", "10"]);
        let wide = Axis::decades("", [3e-9, 2.0].into_iter(), 1e-12);
        assert_eq!(
            labels(&wide, 5),
            ["10⁻⁹", "10⁻⁷", "10⁻⁵", "10⁻³", "10⁻¹", "10¹"]
        );
        let agents = Axis::logarithmic("", 7.0, 1100.0);
        assert_eq!(labels(&agents, 5), ["10", "100", "1000"]);
        let all = ["10", "20", "50", "100", "200", "500", "1000"];
        assert_eq!(labels(&agents, 9), all);
    }

    #[test]
    fn powers_of_ten_are_raised() {
        assert_eq!(power(1e-12), "10⁻¹²");
        assert_eq!(power(10.0), "10¹");
        assert_eq!(power(2.04e-4), "2·10⁻⁴");
    }

    #[test]
    fn axes_without_extent_are_still_axes() {
        assert_eq!(Axis::linear("", 3.0, 3.0).share(0.5), 0.5);
        assert_eq!(Axis::linear("", f64::NAN, 1.0).share(0.5), 0.5);
        assert_eq!(Axis::logarithmic("", 0.0, 1.0).share(0.1), 0.0);
    }
}
