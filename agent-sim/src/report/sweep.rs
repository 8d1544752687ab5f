//! Scores against what was varied: the number of agents, the share of them that fails.

use super::axis::{Axis, BELOW, BESIDE, Frame};
use super::curves::{draw_names, draw_title, room_for};
use super::svg::{self, DrawError, FINE};
use super::{RGBColor, font, footed, text_width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One line of a sweep.
#[derive(Debug, Clone)]
pub struct Series {
    /// Stands at its end.
    pub name: String,
    /// Its colour.
    pub colour: RGBColor,
    /// What was varied, in rising order, with the score.
    pub points: Vec<Scored>,
}

/// A score over many episodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// What was varied.
    pub x: f64,
    /// The mean.
    pub mean: f64,
    /// The lower end of the band: a quantile or the best episode.
    pub low: f64,
    /// The upper end of the band.
    pub high: f64,
}

/// A level to compare with.
#[derive(Debug, Clone)]
pub struct Reference {
    /// What it is.
    pub name: String,
    /// How high.
    pub y: f64,
}

/// What a sweep picture says.
#[derive(Debug, Clone, Default)]
pub struct Sweep<'a> {
    /// Stands above it.
    pub title: &'a str,
    /// What was varied, with its unit.
    pub x_label: &'a str,
    /// What was scored, with its unit.
    pub y_label: &'a str,
    /// The lines; the first comes out on top.
    pub series: &'a [Series],
    /// Dashed horizontal lines.
    pub references: &'a [Reference],
    /// Whether what was varied spans decades; scores always do.
    pub log_x: bool,
}

/// Scores against what was varied, with bands around the means.
pub fn sweep_picture(sweep: &Sweep<'_>, provenance: &str) -> Result<String, DrawError> {
    svg::render((900, 500), |surface, _| {
        draw(&footed(surface, provenance)?, sweep, None)
    })
}

/// One of several sweeps side by side.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// What it says.
    pub sweep: Sweep<'a>,
    /// A range of what was varied that is shaded, e.g. where somebody else's policy works.
    pub shaded: Option<[f64; 2]>,
}

/// Several sweeps in one picture, two to a row.
pub fn sweep_panels(panels: &[Panel<'_>], provenance: &str) -> Result<String, DrawError> {
    let rows = panels.len().div_ceil(2).max(1);
    svg::render((1200, 300 * rows as u32 + 30), |surface, _| {
        let area = footed(surface, provenance)?;
        for (panel, area) in panels.iter().zip(area.split_evenly((rows, 2))) {
            draw(&area, &panel.sweep, panel.shaded)?;
        }
        Ok(())
    })
}

fn draw(
    area: &svg::Surface<'_>,
    sweep: &Sweep<'_>,
    shaded: Option<[f64; 2]>,
) -> Result<(), DrawError> {
    let (width, height) = area.dim_in_pixel();
    let series = sweep.series;
    let frame = Frame {
        x: x_axis(sweep),
        y: y_axis(sweep),
        across: (
            BESIDE + 14 * FINE as i32,
            width as i32 - room_for(series.iter().map(|s| s.name.as_str())),
        ),
        down: (34 * FINE as i32, height as i32 - BELOW),
    };
    draw_title(area, &frame, sweep.title)?;
    if let Some(ends) = shaded {
        let [left, right] = ends.map(|x| frame.place(x, 1.0).0);
        let corners = [(left, frame.down.0), (right, frame.down.1)];
        area.draw(&Rectangle::new(corners, BLACK.mix(0.07).filled()))?;
    }
    frame.draw_grid(area)?;
    // All bands first, so that none veils a line.
    for series in series {
        draw_band(area, &frame, series)?;
    }
    for series in series.iter().rev() {
        draw_series(area, &frame, series)?;
    }
    for reference in sweep.references {
        draw_reference(area, &frame, reference)?;
    }
    frame.draw_outline(area)?;
    frame.draw_x(area)?;
    frame.draw_y(area)?;
    let ends = series.iter().filter_map(|s| {
        let last = s.points.last()?;
        Some((s.name.as_str(), s.colour, frame.place(last.x, last.mean).1))
    });
    draw_names(area, &frame, &ends.collect::<Vec<_>>())
}

/// All that was varied, with a margin so that points do not stand on the frame.
fn x_axis(sweep: &Sweep<'_>) -> Axis {
    let all = sweep.series.iter().flat_map(|s| &s.points).map(|p| p.x);
    let all = all.filter(|x| x.is_finite() && (!sweep.log_x || *x > 0.0));
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    match sweep.log_x {
        true => Axis::logarithmic(sweep.x_label, low / 1.2, high * 1.2),
        false => {
            let margin = match high > low {
                true => 0.03 * (high - low),
                false => 0.5,
            };
            Axis::linear(sweep.x_label, low - margin, high + margin)
        }
    }
}

/// All scores; bands may reach three decades below the lowest mean, no further.
fn y_axis(sweep: &Sweep<'_>) -> Axis {
    let points = || sweep.series.iter().flat_map(|s| &s.points);
    let means = points().map(|p| p.mean).filter(|m| *m > 0.0);
    let floor = means.fold(f64::INFINITY, f64::min) * 1e-3;
    let floor = if floor.is_finite() {
        floor.max(1e-12)
    } else {
        1e-12
    };
    let values = points().flat_map(|p| [p.mean, p.low, p.high]);
    let values = values.chain(sweep.references.iter().map(|r| r.y));
    Axis::decades(sweep.y_label, values.filter(|v| *v > 0.0), floor)
}

fn draw_band(area: &svg::Surface<'_>, frame: &Frame, series: &Series) -> Result<(), DrawError> {
    let points = &series.points;
    if points.len() < 2 {
        return Ok(());
    }
    let upper = points.iter().map(|p| frame.place(p.x, p.high));
    let lower = points.iter().rev().map(|p| frame.place(p.x, p.low));
    let band: Vec<(i32, i32)> = upper.chain(lower).collect();
    area.draw(&Polygon::new(band, series.colour.mix(0.15)))?;
    Ok(())
}

fn draw_series(area: &svg::Surface<'_>, frame: &Frame, series: &Series) -> Result<(), DrawError> {
    let points = &series.points;
    for p in points {
        let bar = [frame.place(p.x, p.low), frame.place(p.x, p.high)];
        let style = series.colour.mix(0.6).stroke_width(FINE);
        area.draw(&PathElement::new(bar, style))?;
    }
    let means: Vec<(i32, i32)> = points.iter().map(|p| frame.place(p.x, p.mean)).collect();
    let style = series.colour.stroke_width(2 * FINE);
    area.draw(&PathElement::new(means.clone(), style))?;
    for place in means {
        let radius = 4 * FINE as i32;
        area.draw(&Circle::new(place, radius, WHITE.filled()))?;
        area.draw(&Circle::new(place, radius - 1, series.colour.filled()))?;
    }
    Ok(())
}

/// A dashed line across a frame, with its name.
pub fn draw_reference(
    area: &svg::Surface<'_>,
    frame: &Frame,
    reference: &Reference,
) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let (left, right) = frame.across;
    let (_, y) = frame.place(0.0, reference.y);
    let (dash, gap) = (7 * fine, 5 * fine);
    for from in (left..right).step_by((dash + gap) as usize) {
        let ends = [(from, y), ((from + dash).min(right), y)];
        area.draw(&PathElement::new(ends, BLACK.mix(0.6).stroke_width(2)))?;
    }
    let long = text_width(&reference.name, 12.0);
    let behind = [
        (right - long - 10 * fine, y - 18 * fine),
        (right - 4 * fine, y - 2 * fine),
    ];
    area.draw(&Rectangle::new(behind, WHITE.mix(0.7).filled()))?;
    area.draw(&Text::new(
        reference.name.clone(),
        (right - 7 * fine, y - 3 * fine),
        font(12.0).pos(Pos::new(HPos::Right, VPos::Bottom)),
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::line;

    fn falling(points: usize) -> Series {
        let scored = |k: usize| {
            let x = 8.0 * 2f64.powi(k as i32);
            let mean = 0.1 / x;
            Scored {
                x,
                mean,
                low: mean / 2.0,
                high: mean * 2.0,
            }
        };
        Series {
            name: "swarm <1>".into(),
            colour: line::BLUE,
            points: (0..points).map(scored).collect(),
        }
    }

    fn picture(series: &[Series]) -> String {
        let sweep = Sweep {
            title: "error & number of agents",
            x_label: "agents",
            y_label: "final mean squared error",
            series,
            references: &[Reference {
                name: "no control".into(),
                y: 0.4,
            }],
            log_x: true,
        };
        sweep_picture(&sweep, "here").unwrap()
    }

    #[test]
    fn every_point_has_a_mark_and_all_text_is_escaped() {
        let text = picture(&[falling(8)]);
        assert_eq!(text.matches("<circle").count(), 2 * 8);
        assert!(text.contains("swarm &lt;1&gt;") && text.contains("error &amp; number"));
        assert!(text.contains("no control"));
        assert_eq!(text, picture(&[falling(8)]), "same input, same bytes");
    }

    #[test]
    fn panels_hold_each_their_own_sweep() {
        let series = [falling(4)];
        let panel = |title| Panel {
            sweep: Sweep {
                title,
                series: &series,
                log_x: true,
                ..Sweep::default()
            },
            shaded: Some([8.0, 16.0]),
        };
        let text = sweep_panels(&[panel("one"), panel("two"), panel("three")], "here").unwrap();
        assert_eq!(text.matches("<circle").count(), 3 * 2 * 4);
        assert!(["one", "two", "three"].iter().all(|t| text.contains(t)));
    }

    #[test]
    fn empty_and_single_sweeps_are_drawn() {
        assert!(picture(&[]).contains("</svg>"));
        assert_eq!(picture(&[falling(1)]).matches("<circle").count(), 2);
        let mut hopeless = falling(2);
        hopeless.points[1].mean = f64::NAN;
        hopeless.points[0].low = 0.0;
        assert!(picture(&[hopeless]).contains("</svg>"));
    }
}
