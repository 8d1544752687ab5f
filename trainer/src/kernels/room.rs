//! A density in a room, carried by fans.

use super::{Declaration, FieldKernel, Varying, no_kernels, one_step};
use problem::pde::density_2d::Transport;
use problem::published::density_2d::{Equation, GRID, equation};
use problem::{NotImplemented, Problem};
use std::borrow::Cow;

/// Rows that a workgroup has: fewer make it compute more of its neighbours' rows too, more leave
/// multiprocessors idle.
const STRIP: usize = 8;
/// Agents whose kernels are in a workgroup's memory together.
const TOGETHER: usize = 16;

// Strips are whole, and those beside walls have what repeats the last row before them.
const _: () = assert!(GRID[0].is_multiple_of(STRIP) && STRIP > 3);

/// The published scheme; there are no kernels for the form that conserves mass.
pub fn density(problem: &Problem) -> Result<Box<dyn FieldKernel>, NotImplemented> {
    one_step(problem)?;
    match transport(problem) {
        Some(transport) if problem.grid.points == GRID => Ok(Box::new(Room(transport))),
        _ => Err(no_kernels(problem)),
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

    fn strips(&self) -> Option<usize> {
        Some(GRID[0] / STRIP)
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
        let axes = grid.axes;
        shader.count("STRIP", STRIP);
        shader.count("STRIPS", rows / STRIP);
        shader.count("TOGETHER", TOGETHER);
        let each = (threads / TOGETHER).max(1);
        shader.count("EACH", each);
        let reading = (STRIP + 2) * columns;
        // Sums take the place of what pulls at a strip and the rows around it, before and after the cut.
        let pull = ((2 * STRIP + 10) * columns).max(4 * TOGETHER * each);
        for (name, size) in [
            ("WATCH", agents * axes),
            ("KERNELS", TOGETHER * (STRIP + 2 + columns)),
            ("VELOCITIES", TOGETHER * axes),
            ("WIND", 2 * reading),
            ("G_WIND", 2 * reading),
            ("CARRIED", reading),
            ("PULL", pull),
        ] {
            shader.in_pool(name, size);
        }
        for (name, size) in [
            ("G_FIELD", 2 * cells),
            ("CENTRES", 5 * horizon),
            ("SUMS", 4 * agents * (rows / STRIP)),
        ] {
            shader.in_scratch(name, size);
        }
    }
}
