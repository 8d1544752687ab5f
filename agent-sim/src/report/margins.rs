//! How far runs were from failing: all of them, and each against what was varied.

use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::curves::draw_title;
use super::svg::{self, DrawError, FINE, Surface};
use super::{RGBColor, footed, line};
use plotters::prelude::*;

/// Margins below this are shown as this: how badly something fails matters less than where.
const LOWEST: f64 = -2.0;
/// Bars of a distribution.
const BARS: usize = 60;
/// Most dots of a panel.
const MOST_DOTS: usize = 3000;

/// One thing that was varied.
#[derive(Debug, Clone)]
pub struct Against<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its ends, and whether decades count.
    pub span: ([f64; 2], bool),
    /// What it was in each run.
    pub values: Vec<f64>,
}

/// Blue where something holds, and a colour that nobody takes for it where it fails.
fn colour(margin: f64) -> RGBColor {
    if margin < 0.0 {
        line::VERMILION
    } else {
        line::BLUE
    }
}

fn shown(margin: f64) -> f64 {
    margin.clamp(LOWEST, 1.0)
}

const AXIS: &str = "margin (share of the bound; below 0 it fails; −2 and less at −2)";

/// How many runs had which margin.
pub fn margins_picture(
    title: &str,
    margins: &[f64],
    provenance: &str,
) -> Result<String, DrawError> {
    let mut bars = [0usize; BARS];
    let width = (1.0 - LOWEST) / BARS as f64;
    for margin in margins {
        let bar = ((shown(*margin) - LOWEST) / width) as usize;
        bars[bar.min(BARS - 1)] += 1;
    }
    let most = bars.iter().copied().max().unwrap_or(0).max(1);
    svg::render((900, 360), |surface, _| {
        let area = footed(surface, provenance)?;
        let frame = frame(
            &area,
            Axis::linear(AXIS, LOWEST, 1.0),
            "runs",
            0.0,
            most as f64 * 1.05,
        );
        draw_title(&area, &frame, title)?;
        frame.draw_grid(&area)?;
        for (k, count) in bars.iter().enumerate() {
            let left = LOWEST + k as f64 * width;
            let corners = [
                frame.place(left, *count as f64),
                frame.place(left + width, 0.0),
            ];
            let colour = colour(left + width / 2.0);
            area.draw(&Rectangle::new(corners, colour.filled()))?;
        }
        finish(&area, &frame)
    })
}

/// The margin of every run against each thing that was varied: where failures are, and what was never tried.
pub fn coverage_picture(
    margins: &[f64],
    against: &[Against<'_>],
    provenance: &str,
) -> Result<String, DrawError> {
    let rows = against.len().div_ceil(2).max(1);
    // Failures are never left out, and come out on top.
    let mut order: Vec<usize> = (0..margins.len()).collect();
    order.sort_by(|a, b| margins[*b].total_cmp(&margins[*a]));
    let failed = margins.iter().filter(|margin| **margin < 0.0).count();
    let held = order.len() - failed;
    let every = held.div_ceil(MOST_DOTS).max(1);
    let dots: Vec<usize> = (order.iter().take(held).step_by(every))
        .chain(order.iter().skip(held).rev().take(MOST_DOTS).rev())
        .copied()
        .collect();
    svg::render((1200, 300 * rows as u32 + 30), |surface, _| {
        let area = footed(surface, provenance)?;
        for (against, area) in against.iter().zip(area.split_evenly((rows, 2))) {
            let ([low, high], log) = against.span;
            // Dots do not stand on the frame.
            let beyond = if high > low { 0.02 * (high - low) } else { 0.5 };
            let x = match log {
                true => Axis::logarithmic(against.name, low / 1.1, high * 1.1),
                false => Axis::linear(against.name, low - beyond, high + beyond),
            };
            let frame = frame(&area, x, "margin", LOWEST - 0.05, 1.05);
            frame.draw_grid(&area)?;
            for &run in &dots {
                let place = frame.place(against.values[run], shown(margins[run]));
                let dot = Circle::new(
                    place,
                    2 * FINE as i32,
                    colour(margins[run]).mix(0.6).filled(),
                );
                area.draw(&dot)?;
            }
            finish(&area, &frame)?;
        }
        Ok(())
    })
}

fn frame(area: &Surface<'_>, x: Axis, y: &str, low: f64, high: f64) -> Frame {
    let (width, height) = area.dim_in_pixel();
    Frame {
        x,
        y: Axis::linear(y, low, high),
        across: (BESIDE + 14 * FINE as i32, width as i32 - 20 * FINE as i32),
        down: (34 * FINE as i32, height as i32 - BELOW),
    }
}

fn finish(area: &Surface<'_>, frame: &Frame) -> Result<(), DrawError> {
    frame.draw_outline(area)?;
    frame.draw_x(area)?;
    frame.draw_y(area)
}
