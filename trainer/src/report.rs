//! What a run leaves for people and scripts: `report.json` and `loss.svg`.

use crate::learn::{History, TrainConfig};
use crate::loss::Term;
use crate::policy::PolicyConfig;
use anyhow::{Result, anyhow};
use artifacts::output::write_whole;
use plotters::prelude::*;
use problem::Headline;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A run so far.
pub struct TrainingReport<'a> {
    /// The control problem.
    pub problem: &'a str,
    /// Settings.
    pub config: &'a TrainConfig,
    /// The network.
    pub policy: &'a PolicyConfig,
    /// Steps done.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// The figure by which policies are compared.
    pub headline: Headline,
    /// Losses and validations.
    pub history: &'a History,
}

impl TrainingReport<'_> {
    /// Writes both files into `folder`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json())? + "\n";
        write_whole(&folder.join("report.json"), text.as_bytes())?;
        if let Some(picture) = self.picture()? {
            write_whole(&folder.join("loss.svg"), picture.as_bytes())?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let terms = |values: &[f64]| -> Map<String, Value> {
            Term::ALL
                .iter()
                .zip(values)
                .map(|(t, v)| (t.name().to_owned(), json!(v)))
                .collect()
        };
        let validation =
            |v: &crate::learn::Validation| json!({ "step": v.step, "terms": terms(&v.terms) });
        json!({
            "problem": self.problem,
            "trainer": env!("CARGO_PKG_VERSION"),
            "step": self.step,
            "seconds": self.seconds,
            "config": self.config,
            "policy": self.policy,
            "parameters": self.policy.shape.parameters(),
            "best": self.history.best(self.headline).map(validation),
            "latest": self.history.validations.last().map(validation),
            "loss": self.history.stretches.iter().map(|s| json!({
                "step": s.step, "loss": s.loss, "terms": terms(&s.terms),
            })).collect::<Vec<_>>(),
            "validations": self.history.validations.iter().map(validation).collect::<Vec<_>>(),
        })
    }

    /// Loss and validation error over steps, on a logarithmic scale.
    fn picture(&self) -> Result<Option<String>> {
        let loss: Vec<(f64, f64)> = self
            .history
            .stretches
            .iter()
            .map(|s| (s.step as f64, s.loss))
            .collect();
        let track: Vec<(f64, f64)> = (self.history.stretches.iter())
            .map(|s| (s.step as f64, s.terms[Term::Track as usize]))
            .collect();
        let validation: Vec<(f64, f64)> = (self.history.validations.iter())
            .map(|v| (v.step as f64, v.score(self.headline)))
            .collect();
        let all = || {
            loss.iter()
                .chain(&track)
                .chain(&validation)
                .filter(|p| p.1 > 0.0)
        };
        if loss.is_empty() || all().count() == 0 {
            return Ok(None);
        }
        let last = all().fold(1.0f64, |m, p| m.max(p.0));
        let low = all().fold(f64::MAX, |m, p| m.min(p.1)) / 1.5;
        let high = all().fold(f64::MIN, |m, p| m.max(p.1)) * 1.5;
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (840, 480)).into_drawing_area();
            draw(
                &area,
                self.problem,
                [&loss, &track, &validation],
                last,
                low..high,
            )
            .map_err(|e| anyhow!("cannot draw the loss: {e}"))?;
        }
        Ok(Some(svg))
    }
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    problem: &str,
    curves: [&[(f64, f64)]; 3],
    last: f64,
    range: std::ops::Range<f64>,
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{problem}: training"), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..last, range.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("step")
        .y_label_formatter(&|v| format!("{v:.0e}"))
        .light_line_style(WHITE)
        .draw()?;
    let styles = [
        ("loss (training)", RGBColor(120, 120, 120)),
        (
            "mean squared error over the episode (training)",
            RGBColor(31, 119, 180),
        ),
        ("score (validation)", RGBColor(214, 39, 40)),
    ];
    for ((name, colour), points) in styles.into_iter().zip(curves) {
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    area.present()?;
    Ok(())
}
