//! Diffusion on a line, with or without growth.

use super::banded::banded_inverse;
use super::{Declaration, FieldKernel, one_step};
use problem::published::{fkpp_1d, heat_1d};
use problem::{NotImplemented, Problem};

/// The heat equation.
pub fn heat(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    Ok(Box::new(Line::heat(problem)))
}

/// Fisher's equation.
pub fn fisher(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    Ok(Box::new(Line::fisher(problem)))
}

/// A diffusion step on a line, `z⁺ = A⁻¹ (z + q D z + …)`, A being `1 + 2p` on its diagonal and `−p`
/// beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// q, the explicit share of the diffusion.
    pub explicit_ratio: f64,
    /// ρ of the reaction ρ z (1 − z).
    pub growth: f64,
    /// Whether densities are cut to 0..1.
    pub clipped: bool,
    /// Cells to each side of the diagonal that count.
    pub band: usize,
    /// A⁻¹, [offset + band, cell], zero on the walls.
    pub inverse: Vec<f64>,
}

impl Line {
    /// Crank–Nicolson for the heat equation.
    fn heat(problem: &Problem) -> Self {
        let heat_1d::Equation {
            diffusivity,
            spacing,
        } = heat_1d::equation(problem);
        let half = 0.5 * diffusivity * problem.control_interval / spacing.powi(2);
        let (band, inverse) = banded_inverse(problem.grid.len(), half);
        Self {
            explicit_ratio: half,
            growth: 0.0,
            clipped: false,
            band,
            inverse,
        }
    }

    /// Backward Euler for the diffusion of Fisher's equation, forward Euler for the rest.
    fn fisher(problem: &Problem) -> Self {
        let fkpp_1d::Equation {
            diffusivity,
            growth,
            spacing,
        } = fkpp_1d::equation(problem);
        let whole = diffusivity * problem.control_interval / spacing.powi(2);
        let (band, inverse) = banded_inverse(problem.grid.len(), whole);
        Self {
            explicit_ratio: 0.0,
            growth,
            clipped: true,
            band,
            inverse,
        }
    }
}

impl FieldKernel for Line {
    fn source(&self) -> &'static str {
        include_str!("wgsl/line.wgsl")
    }

    fn declare(&self, shader: &mut Declaration) {
        let (agents, cells, lanes) = (shader.agents(), shader.cells(), shader.lanes());
        shader.in_pool("WORK", cells);
        shader.number("EXPLICIT_RATIO", self.explicit_ratio);
        shader.number("GROWTH", self.growth);
        shader.flag("CLIPPED", self.clipped);
        shader.count("BAND", self.band);
        shader.table("INVERSE", &self.inverse);
        shader.in_pool("LANES", 2 * agents * lanes);
    }
}
