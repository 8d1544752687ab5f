//! Errors over time, on a logarithmic scale.

use super::svg::{DrawError, FINE, Surface};
use super::{MAX_POINTS, font, label, spread};
use crate::problem::Problem;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One run's error.
pub struct Curve<'a> {
    /// Stands at its end.
    pub name: &'a str,
    /// Its colour.
    pub colour: RGBColor,
    /// After 0, 1, … steps.
    pub errors: &'a [f64],
}

/// Something that happened at a step.
pub struct Event {
    /// When.
    pub step: usize,
    /// What.
    pub name: String,
}

/// Smallest error that the scale goes down to.
const FLOOR: f64 = 1e-12;
const NAMES: u32 = 168 * FINE;

/// Draws errors over time.
pub fn draw_curves(
    area: &Surface<'_>,
    problem: &Problem,
    title: &str,
    curves: &[Curve<'_>],
    events: &[Event],
) -> Result<(), DrawError> {
    let dt = problem.control_interval;
    let steps = curves.iter().map(|c| c.errors.len()).max().unwrap_or(0);
    let end = steps.saturating_sub(1).max(1) as f64 * dt;
    let (low, high) = decades(curves);
    let (width, height) = area.dim_in_pixel();
    let plot = area.clone().shrink((0, 0), (width - NAMES, height));
    area.draw(&Text::new(
        title.to_owned(),
        (
            (width - NAMES) as i32 / 2 + 34 * FINE as i32,
            8 * FINE as i32,
        ),
        label(15.0).pos(Pos::new(HPos::Center, VPos::Top)),
    ))?;
    let corner = area.get_base_pixel();
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(34 * FINE)
        .margin_left(8 * FINE)
        .x_label_area_size(42 * FINE)
        .y_label_area_size(68 * FINE)
        .build_cartesian_2d(0.0..end, (low..high).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("time")
        .y_desc("mean squared error")
        .x_labels(7)
        .y_labels(8)
        .x_label_formatter(&|t| format!("{t:.2}"))
        .y_label_formatter(&|e| power_of_ten(*e))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12).stroke_width(1))
        .label_style(font(12.0))
        .axis_desc_style(font(13.0))
        .draw()?;
    for event in events {
        let t = event.step as f64 * dt;
        let style = BLACK.mix(0.6).stroke_width(2);
        chart.draw_series(DashedLineSeries::new(
            [(t, low), (t, high)],
            6 * FINE,
            4 * FINE,
            style,
        ))?;
        let place = chart.backend_coord(&(t, high));
        area.draw(&Text::new(
            event.name.clone(),
            (
                place.0 - corner.0 + 5 * FINE as i32,
                place.1 - corner.1 + 5 * FINE as i32,
            ),
            label(12.0).pos(Pos::new(HPos::Left, VPos::Top)),
        ))?;
    }
    // The first curve comes out on top: runs that are the same up to an event coincide until then.
    for curve in curves.iter().rev() {
        let count = curve.errors.len();
        let shown = count.min(MAX_POINTS);
        let steps = (0..shown).map(|k| spread(k, shown, count));
        chart.draw_series(LineSeries::new(
            steps.map(|step| (step as f64 * dt, curve.errors[step].max(low))),
            curve.colour.stroke_width(2 * FINE),
        ))?;
    }
    let ends: Vec<i32> = curves
        .iter()
        .map(|c| {
            let last = c.errors.last().copied().unwrap_or(low).max(low);
            chart.backend_coord(&(end, last)).1 - corner.1
        })
        .collect();
    for (curve, y) in curves.iter().zip(apart(&ends, 17 * FINE as i32)) {
        area.draw(&Text::new(
            curve.name.to_owned(),
            ((width - NAMES + 8 * FINE) as i32, y),
            label(13.0)
                .color(&curve.colour)
                .pos(Pos::new(HPos::Left, VPos::Center)),
        ))?;
    }
    Ok(())
}

/// Whole decades around all values.
fn decades(curves: &[Curve<'_>]) -> (f64, f64) {
    let values = curves.iter().flat_map(|c| c.errors.iter());
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), &e| {
        (low.min(e), high.max(e))
    });
    let low = low.clamp(FLOOR, 1e11).log10().floor();
    let high = high.clamp(FLOOR, 1e12).log10().ceil();
    (10f64.powf(low), 10f64.powf(high.max(low + 1.0)))
}

/// `1e-4` as 10⁻⁴.
fn power_of_ten(value: f64) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = value.log10().round() as i32;
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised = exponent.unsigned_abs().to_string();
    let raised = raised.bytes().map(|b| digits[usize::from(b - b'0')]);
    format!("10{sign}{}", raised.collect::<String>())
}

/// Heights near the given ones, at least `gap` from each other, in the same order.
fn apart(heights: &[i32], gap: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by_key(|&i| heights[i]);
    let mut placed = heights.to_vec();
    for _ in 0..100 {
        for pair in order.windows(2) {
            let overlap = gap - (placed[pair[1]] - placed[pair[0]]);
            if overlap > 0 {
                placed[pair[0]] -= overlap / 2;
                placed[pair[1]] += overlap - overlap / 2;
            }
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_raised() {
        assert_eq!(power_of_ten(1e-12), "10⁻¹²");
        assert_eq!(power_of_ten(10.0), "10¹");
    }

    #[test]
    fn names_do_not_overlap() {
        let placed = apart(&[100, 101, 300, 102], 20);
        assert!(placed[1] - placed[0] >= 20 && placed[3] - placed[1] >= 20);
        assert_eq!(placed[2], 300);
    }
}
