//! The step in tensor operations: no adjoint to write, and it runs wherever Burn does.

use crate::equation::{Equation, response};
use burn::tensor::Device;
use problem::{NotImplemented, Problem};
use trainer::tensor_step::{Advance, constant};

/// `u⁺ = (u − ½Δt u² D + Δt f) A⁻¹`, D the central difference; see [`crate::equation`].
pub fn step(problem: &Problem, device: &Device) -> Result<Box<Advance>, NotImplemented> {
    let (dt, substeps) = problem.solver_steps(1);
    let equation = Equation::of(problem);
    let n = equation.points;
    // Rows are fields, so matrices stand on the right: [from, to].
    let difference = |from: usize, to: usize| match (from + n - to) % n {
        1 => 0.5 / equation.spacing,
        gap if gap == n - 1 => -0.5 / equation.spacing,
        _ => 0.0,
    };
    let matrix = |entry: &dyn Fn(usize, usize) -> f64| {
        let values = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        constant(values, [n, n], device)
    };
    let difference = matrix(&difference);
    let response = response(&equation, dt);
    let implicit = matrix(&|from, to| response[(to + n - from) % n]);
    Ok(Box::new(move |fields, forcing| {
        let push = forcing.squeeze_dim::<2>(1) * dt;
        (0..substeps).fold(fields, |u, _| {
            let square = u.clone() * u.clone();
            let steepened = u - square.matmul(difference.clone()) * (0.5 * dt);
            (steepened + push.clone()).matmul(implicit.clone())
        })
    }))
}
