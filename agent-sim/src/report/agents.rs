//! How agents look in pictures.

use super::colour::AMBER;
use super::svg::{DrawError, FINE, Inlay, Surface};
use super::{font, text_width};
use crate::trajectory::Trajectory;
use agent_core::agent::Mode;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// What a picture tells about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It does its work or waits for it.
    Acting,
    /// It goes on without valid input, or has given up.
    Holding,
    /// Nothing was heard of it.
    Silent,
}

/// All looks, in the order in which they are drawn and explained.
const LOOKS: [Look; 3] = [Look::Acting, Look::Holding, Look::Silent];

impl Look {
    /// The look of an agent that reports this.
    pub fn of(mode: Option<Mode>) -> Self {
        match mode {
            Some(Mode::Waiting | Mode::Active) => Self::Acting,
            Some(Mode::Holding | Mode::FailedSafe) => Self::Holding,
            None => Self::Silent,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Acting => "agent",
            Self::Holding => "holding or failed safe",
            Self::Silent => "silent",
        }
    }
}

/// Draws agents at these places, in drawing units of the whole surface; discs have that radius.
pub fn draw_agents(inlay: &Inlay, agents: &[((f64, f64), Look)], radius: f64) {
    let [r, g, b] = AMBER;
    for look in LOOKS {
        let mut path = String::new();
        for ((x, y), _) in agents.iter().filter(|(_, its)| *its == look) {
            let arm = 1.1 * radius;
            let _ = match look {
                // A line of almost no length with round ends is a disc.
                Look::Acting | Look::Holding => write!(path, "M{x:.1} {y:.1}h.01"),
                Look::Silent => write!(
                    path,
                    "M{:.1} {:.1}l{d:.1} {d:.1}m0 -{d:.1}l-{d:.1} {d:.1}",
                    x - arm,
                    y - arm,
                    d = 2.0 * arm
                ),
            };
        }
        if path.is_empty() {
            continue;
        }
        let rim = (0.3 * radius).clamp(1.0, 2.0);
        let (disc, cased) = (2.0 * radius, 2.0 * (radius + rim));
        let (line, casing) = (0.55 * radius + 1.0, 0.9 * radius + 2.5);
        let (class, strokes) = match look {
            Look::Acting => ("acting", [("#000".into(), cased), ("#fff".into(), disc)]),
            Look::Holding => (
                "holding",
                [
                    ("#000".into(), cased),
                    (format!("#{r:02x}{g:02x}{b:02x}"), disc),
                ],
            ),
            Look::Silent => ("silent", [("#fff".into(), casing), ("#000".into(), line)]),
        };
        for (layer, (colour, width)) in ["casing", class].into_iter().zip(strokes) {
            inlay.mark(&format!(
                "<path class=\"{layer}\" d=\"{path}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"{width:.1}\" stroke-linecap=\"round\"/>"
            ));
        }
    }
}

/// The looks that occur in these frames of a run.
pub fn looks_in(run: &Trajectory, frames: &[usize]) -> Vec<Look> {
    let occurs = |look: &Look| {
        run.paths
            .iter()
            .any(|path| frames.iter().any(|&f| Look::of(path.modes[f]) == *look))
    };
    LOOKS.into_iter().filter(occurs).collect()
}

/// Explains looks in a row from the left, with the middle of the line at `y`.
pub fn draw_legend(
    area: &Surface<'_>,
    inlay: &Inlay,
    looks: &[Look],
    keep_out: bool,
    (mut x, y): (i32, i32),
) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let corner = area.get_base_pixel();
    let explain = |x: &mut i32, meaning: &str| -> Result<(), DrawError> {
        let style = font(12.0).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(meaning.to_owned(), (*x + 11 * fine, y), style))?;
        *x += text_width(meaning, 12.0) + 38 * fine;
        Ok(())
    };
    for look in looks {
        let place = (f64::from(x + corner.0), f64::from(y + corner.1));
        draw_agents(inlay, &[(place, *look)], 4.5 * f64::from(FINE));
        explain(&mut x, look.meaning())?;
    }
    if keep_out {
        draw_zone(inlay, (x + corner.0, y + corner.1), (6 * fine).into());
        explain(&mut x, "keep out")?;
    }
    Ok(())
}

/// A zone that agents must not enter: a dashed circle that shows on any colour.
pub fn draw_zone(inlay: &Inlay, (x, y): (i32, i32), radius: f64) {
    for (class, stroke, dash) in [
        ("casing", "#fff\" stroke-width=\"4", ""),
        (
            "keep-out",
            "#000\" stroke-width=\"2.5",
            " stroke-dasharray=\"9 6\"",
        ),
    ] {
        inlay.mark(&format!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius:.1}\" fill=\"none\" \
             stroke=\"{stroke}\"{dash}/>"
        ));
    }
}
