//! Time of one control step of the two-dimensional pseudo-spectral solvers on grids of growing
//! size, and the power of the number of grid points that it grows with.
//!
//! ```text
//! cargo bench -p agent-sim --bench pde_step_time
//! cargo bench -p agent-sim --bench pde_step_time -- turbulence-2d f64 64
//! ```
//!
//! The second form times one of them and prints nothing but the nanoseconds of each of many steps,
//! for scripts. Both use all threads of the machine; set `RAYON_NUM_THREADS=1` for one.

use problem::pde::ks_2d::Stages;
use problem::pde::{Ks2d, Real, Stepper, Turbulence2d};
use problem::published::{ks_2d, turbulence_2d};
use std::f64::consts::TAU;
use std::time::Instant;

const SIZES: [usize; 3] = [64, 128, 256];

/// Nanoseconds of each of many control steps on `n` × `n` points, from rest but for a few waves.
fn step_times<T: Real>(solver: &str, n: usize) -> Vec<f64> {
    let points = [n, n];
    let (mut stepper, size): (Box<dyn Stepper<T>>, f64) = match solver {
        "ks-2d" => {
            use ks_2d::{LENGTH, SUBSTEP, SUBSTEPS};
            // Grids of the same spacing on a larger torus: the same physics, more of it.
            let length = LENGTH * n as f64 / ks_2d::GRID as f64;
            let ks = Ks2d::new(points, length, SUBSTEP, SUBSTEPS, Stages::Proper);
            (Box::new(ks), 3.0)
        }
        "turbulence-2d" => {
            use turbulence_2d::{CONTROL_INTERVAL, SUBSTEPS, VISCOSITY};
            // Finer grids need shorter steps; the cost of a step does not depend on its length.
            let dt = CONTROL_INTERVAL / SUBSTEPS as f64 * (turbulence_2d::GRID as f64 / n as f64);
            let turbulence = Turbulence2d::new(points, VISCOSITY, dt, SUBSTEPS, 1.0);
            (Box::new(turbulence), 10.0)
        }
        other => panic!("the solvers are ks-2d and turbulence-2d, not {other}"),
    };
    let value = |j: usize| {
        let [y, x] = [j / n, j % n].map(|i| TAU * i as f64 / n as f64);
        let waves = (2.0 * x).sin() * (3.0 * y).cos() + (x - y + 1.0).cos();
        T::from_f64(size * waves).expect("floats convert to floats")
    };
    let mut field: Vec<T> = (0..n * n).map(value).collect();
    let force = vec![T::zero(); n * n];
    let times = (0..20 + 200 * 64 * 64 / (n * n))
        .map(|_| {
            let start = Instant::now();
            stepper.step(&mut field, &force);
            start.elapsed().as_nanos() as f64
        })
        .collect();
    assert!(field.iter().all(|z| z.is_finite()), "{solver} blew up");
    times
}

fn times(solver: &str, precision: &str, n: usize) -> Vec<f64> {
    match precision {
        "f32" => step_times::<f32>(solver, n),
        "f64" => step_times::<f64>(solver, n),
        other => panic!("precisions are f32 and f64, not {other}"),
    }
}

fn main() {
    // Cargo adds `--bench`.
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let words: Vec<String> = words.collect();
    if let [solver, precision, n] = &words[..] {
        let n = n.parse().expect("a number of grid points per axis");
        for time in times(solver, precision, n) {
            println!("{time}");
        }
        return;
    }
    println!("µs per control step, best and median of many");
    for solver in ["turbulence-2d", "ks-2d"] {
        for precision in ["f64", "f32"] {
            print!("{solver:<14}{precision}");
            let best = SIZES.map(|n| {
                let mut times = times(solver, precision, n);
                times.sort_by(f64::total_cmp);
                let (best, median) = (times[0], times[times.len() / 2]);
                print!("  {n}²: {:.0} ({:.0})", 1e-3 * best, 1e-3 * median);
                best
            });
            println!("  exponent {:.2}", exponent(&best));
        }
    }
}

/// Slope of the straight line through (log points, log time).
fn exponent(times: &[f64; 3]) -> f64 {
    // Sizes double, so the logarithms are evenly spaced, two units of log₂ points apart.
    (times[2] / times[0]).log2() / 4.0
}
