//! Diffusion on a square plate.

use super::banded::{band_of_inverse, banded_inverse};
use super::{Declaration, FieldKernel, Varying, no_kernels, one_step};
use problem::published::heat_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use std::borrow::Cow;

/// The heat equation, on a grid that is the same along both axes.
pub fn heat(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    let ([rows, columns], Equation { spacing, .. }) = (problem.grid.points, equation(problem));
    if rows != columns || spacing[0] != spacing[1] {
        return Err(no_kernels(problem));
    }
    let mut plate = Plate { band: 0 };
    plate.cover(problem);
    Ok(Box::new(plate))
}

/// One step of the heat equation on a plate, `z⁺ = P (z P + W) + W` with `W = Δt/2 · f A⁻¹`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plate {
    /// Cells to each side of the diagonals that count.
    pub band: usize,
}

/// Half of what a step diffuses, along one axis.
fn half(problem: &Problem) -> f64 {
    let Equation {
        diffusivity,
        spacing: [_, dx],
    } = equation(problem);
    0.5 * diffusivity * problem.control_interval / (dx * dx)
}

impl FieldKernel for Plate {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        include_str!("wgsl/plate.wgsl").into()
    }

    /// P and A⁻¹ of Peaceman and Rachford's scheme, [offset + band, point], zero on the edges.
    fn varying(&self, form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        let (n, band) = (form.grid.points[1], self.band);
        let inverse = banded_inverse(n, half(form), band);
        // A = 1 − q D and C = 1 + q D, so P = C A⁻¹ = 2 A⁻¹ − 1.
        let mut step: Vec<f64> = inverse.iter().map(|x| 2.0 * x).collect();
        for x in &mut step[band * n + 1..(band + 1) * n - 1] {
            *x -= 1.0;
        }
        Ok(vec![
            Varying::Table("half_step", step),
            Varying::Table("inverse", inverse),
        ])
    }

    fn cover(&mut self, form: &Problem) {
        let band = band_of_inverse(form.grid.points[1], half(form));
        self.band = self.band.max(band);
    }

    fn declare(&self, shader: &mut Declaration) {
        let cells = shader.cells();
        shader.in_pool("WORK", cells);
        shader.count("BAND", self.band);
        shader.in_pool("FORCING", cells);
        shader.in_pool("PULLED", cells);
        let side = shader.agents() * shader.problem().grid.points[1];
        shader.in_scratch("ACROSS", side);
        shader.in_scratch("ALONG", side);
        shader.in_scratch("SPREAD", 3 * side);
    }
}
