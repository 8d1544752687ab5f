//! Diffusion on a line, with or without growth.

use super::banded::{band_of_inverse, banded_inverse};
use super::{Declaration, FieldKernel, Varying, one_step};
use problem::published::{fkpp_1d, heat_1d};
use problem::{NotImplemented, Problem};
use std::borrow::Cow;

/// The heat equation.
pub fn heat(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    Line::of(problem, Scheme::heat, false)
}

/// Fisher's equation.
pub fn fisher(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    Line::of(problem, Scheme::fisher, true)
}

/// A diffusion step on a line, `z⁺ = A⁻¹ (z + q D z + …)`, A being `1 + 2p` on its diagonal and `−p`
/// beside it.
#[derive(Debug, Clone)]
pub struct Line {
    /// The numbers of a form of the problem.
    scheme: fn(&Problem) -> Scheme,
    /// Whether densities are cut to 0..1.
    clipped: bool,
    /// Cells to each side of the diagonal that count.
    band: usize,
}

/// A form of the problem in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scheme {
    /// p, the implicit share of the diffusion.
    implicit_ratio: f64,
    /// q, the explicit share.
    explicit_ratio: f64,
    /// ρ of the reaction ρ z (1 − z).
    growth: f64,
}

impl Scheme {
    /// Crank–Nicolson for the heat equation.
    fn heat(problem: &Problem) -> Self {
        let heat_1d::Equation {
            diffusivity,
            spacing,
        } = heat_1d::equation(problem);
        let half = 0.5 * diffusivity * problem.control_interval / spacing.powi(2);
        Self {
            implicit_ratio: half,
            explicit_ratio: half,
            growth: 0.0,
        }
    }

    /// Backward Euler for the diffusion of Fisher's equation, forward Euler for the rest.
    fn fisher(problem: &Problem) -> Self {
        let fkpp_1d::Equation {
            diffusivity,
            growth,
            spacing,
        } = fkpp_1d::equation(problem);
        Self {
            implicit_ratio: diffusivity * problem.control_interval / spacing.powi(2),
            explicit_ratio: 0.0,
            growth,
        }
    }
}

impl Line {
    fn of(
        problem: &Problem,
        scheme: fn(&Problem) -> Scheme,
        clipped: bool,
    ) -> Result<Box<dyn FieldKernel>, NotImplemented> {
        one_step(problem)?;
        let band = 0;
        let mut line = Self {
            scheme,
            clipped,
            band,
        };
        line.cover(problem);
        Ok(Box::new(line))
    }
}

impl FieldKernel for Line {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        include_str!("wgsl/line.wgsl").into()
    }

    /// A⁻¹ is [offset + band, cell], zero on the walls.
    fn varying(&self, form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        let Scheme {
            implicit_ratio,
            explicit_ratio,
            growth,
        } = (self.scheme)(form);
        let inverse = banded_inverse(form.grid.len(), implicit_ratio, self.band);
        Ok(vec![
            Varying::Number("explicit_ratio", explicit_ratio),
            Varying::Number("growth", growth),
            Varying::Table("inverse", inverse),
        ])
    }

    fn cover(&mut self, form: &Problem) {
        let band = band_of_inverse(form.grid.len(), (self.scheme)(form).implicit_ratio);
        self.band = self.band.max(band);
    }

    fn declare(&self, shader: &mut Declaration) {
        let (agents, cells, lanes) = (shader.agents(), shader.cells(), shader.lanes());
        shader.in_pool("WORK", cells);
        shader.flag("CLIPPED", self.clipped);
        shader.count("BAND", self.band);
        shader.in_pool("LANES", 2 * agents * lanes);
    }
}
