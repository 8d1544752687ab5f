//! A density in a room, carried by fans.

use super::{Declaration, FieldKernel, Varying, no_kernels, one_step};
use problem::pde::density_2d::Transport;
use problem::published::density_2d::{Equation, equation};
use problem::{NotImplemented, Problem};
use std::borrow::Cow;

/// The published scheme; there are no kernels for the form that conserves mass.
pub fn density(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    match transport(problem) {
        Some(transport) => Ok(Box::new(Room(transport))),
        None => Err(no_kernels(problem)),
    }
}

/// What one step does, where it carries the density.
fn transport(problem: &Problem) -> Option<Transport> {
    match equation(problem) {
        Equation::Carried(rates) => Some(rates.within(problem.control_interval)),
        Equation::Conserved { .. } => None,
    }
}

/// The published scheme. Of what a step does only the mixing changes with coefficients.
#[derive(Debug, Clone, PartialEq)]
struct Room(Transport);

impl FieldKernel for Room {
    fn source(&self, _near: bool) -> Cow<'static, str> {
        include_str!("wgsl/room.wgsl").into()
    }

    fn keeps_field_in_pool(&self, _room: usize) -> bool {
        false
    }

    fn varying(&self, form: &Problem) -> Result<Vec<Varying>, NotImplemented> {
        let mixing = transport(form).expect("forms of this kernel").mixing;
        Ok(vec![
            Varying::Number("staying", 1.0 - 4.0 * mixing),
            Varying::Number("mixing", mixing),
        ])
    }

    fn declare(&self, shader: &mut Declaration) {
        let Self(transport) = self;
        let grid = shader.problem().grid;
        let ([rows, columns], cells) = (grid.points, grid.len());
        shader.number("SPACING_1", grid.spacing(1));
        for axis in 0..2 {
            let cells_per_length = grid.spacing(axis).recip();
            shader.number(
                &format!("CELLS_PER_VELOCITY_{axis}"),
                cells_per_length * transport.coupling,
            );
            shader.number(
                &format!("DRIFT_{axis}"),
                cells_per_length * transport.drift[axis],
            );
        }
        shader.number("LONGEST", transport.displacement_max);
        shader.number("DENSITY_MAX", transport.density_max);
        let (agents, horizon, threads) = (shader.agents(), shader.horizon(), shader.threads());
        shader.in_pool("WORK", 0);
        shader.in_pool("TOTAL", 3 * threads);
        for (name, size) in [
            ("G_FIELD", cells),
            ("KERNELS", agents * (rows + columns)),
            ("CARRIED", cells),
            ("G_CARRIED", cells),
            ("MOMENTS", 3 * (horizon + 1)),
            ("WAY", 2 * cells),
            ("G_WIND", 2 * cells),
            ("LINES", 4 * agents * rows),
        ] {
            shader.in_scratch(name, size);
        }
    }
}
