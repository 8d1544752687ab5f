//! What a field does by itself in one episode:
//!
//! ```text
//! cargo run -p problem --example step_a_field -- ks-1d
//! ```
//!
//! The problem is a published one or the path of a file that describes one. Nothing acts on the field,
//! not even the disturbances that such a file may have.

use problem::Problems;
use problem::random_field::episode_rng;
use std::error::Error;

/// How often the field is looked at.
const LOOKS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or("heat-1d".to_owned());
    let problem = Problems::published().by_name(&name)?;
    println!("{name}: {}", problem.summary);

    let episode = (problem.draw)(problem, &mut episode_rng(1, 0));
    let mut field: Vec<f64> = episode.initial.iter().map(|&z| z.into()).collect();
    let mut stepper = (problem.stepper)(problem, 1);
    let force = vec![0.0; field.len()];
    for step in 0..=problem.horizon {
        if step % problem.horizon.div_ceil(LOOKS) == 0 {
            let errors = field.iter().zip(&episode.target);
            let squares = errors.map(|(z, &aim)| (z - f64::from(aim)).powi(2));
            let mean = squares.sum::<f64>() / field.len() as f64;
            let time = step as f64 * problem.control_interval;
            println!("t = {time:<8.3} mean squared error {mean:.4e}");
        }
        stepper.step(&mut field, &force);
    }
    Ok(())
}
