//! Growing modes of a described equation, linearised about its target.

use problem::actuate::Kernel;
use problem::kit::MOST_FIELDS;
use problem::random_field::episode_rng;
use problem::{Episode, Problem};
use rand_distr::{Distribution, StandardNormal};

/// Most modes that are looked for.
const MOST: usize = 48;
/// Rounds of the iteration: each brings the space of those looked for closer to that of the fastest.
const ROUNDS: usize = 12;
/// Rounds within that space, which cost nothing: modes that grow nearly as fast as each other need many to
/// come apart.
const SMALL_ROUNDS: usize = 400;

/// What grows by itself, and how well agents reach it.
pub struct Growth {
    /// How fast the growing modes grow, fastest first, per time.
    pub rates: Vec<f64>,
    /// Whether there may be more than were looked for.
    pub perhaps_more: bool,
    /// Independent directions among them that the agents, as described, can push.
    pub reached: usize,
}

/// Finds them by letting small disturbances grow and keeping them apart: those that grow fastest remain.
pub fn growth(problem: &Problem, episode: &Episode) -> Growth {
    let size = problem.state_len();
    let count = MOST.min(size / 4).max(1);
    let base: Vec<f64> = episode.target.iter().map(|z| f64::from(*z)).collect();
    // Long enough for one round to tell, short enough to stay small.
    let intervals = (problem.horizon / 20).clamp(1, 20);
    let scale: Vec<f64> = (problem.kit.expect("a description").described.iter())
        .map(|field| 1e-5 * (field.range[1] - field.range[0]))
        .collect();
    let evolved = |start: &[f64]| -> Vec<f64> {
        let mut state = start.to_vec();
        let mut stepper = (problem.stepper)(problem, 1);
        let rest = vec![0.0; size];
        (0..intervals).for_each(|_| stepper.step(&mut state, &rest));
        state
    };
    let nodes = problem.grid.len();
    let unmoved = evolved(&base);
    let mut rng = episode_rng(0, 0);
    let mut modes: Vec<Vec<f64>> = (0..count)
        .map(|_| (0..size).map(|_| StandardNormal.sample(&mut rng)).collect())
        .collect();
    let grown = |modes: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let grown = |mode: &Vec<f64>| {
            let moved: Vec<f64> = (base.iter().zip(mode).enumerate())
                .map(|(k, (z, m))| z + scale[k / nodes] * m)
                .collect();
            let moved = evolved(&moved);
            (moved.iter().zip(&unmoved).enumerate())
                .map(|(k, (z, z0))| (z - z0) / scale[k / nodes])
                .collect()
        };
        modes.iter().map(grown).collect()
    };
    orthonormal(&mut modes);
    for _ in 0..ROUNDS {
        modes = grown(&modes);
        orthonormal(&mut modes);
    }
    let (factors, turned) = apart(&modes, &grown(&modes));
    let time = intervals as f64 * problem.control_interval;
    let rates: Vec<f64> = factors.iter().map(|factor| factor / time).collect();
    let growing = rates.iter().take_while(|&&rate| rate * time > 1e-3).count();
    let pushes = pushes(problem);
    let reached = rank(&turned[..growing], &pushes);
    Growth {
        rates: rates[..growing].to_vec(),
        perhaps_more: growing == count,
        reached,
    }
}

/// Brings the fastest of a space of modes to the front, from what became of an orthonormal basis of it: the
/// logarithms of what each grows by, and the basis turned accordingly.
fn apart(basis: &[Vec<f64>], grown: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = basis.len();
    // What becomes of each, in the basis.
    let images: Vec<Vec<f64>> = (grown.iter())
        .map(|image| basis.iter().map(|mode| dot(mode, image)).collect())
        .collect();
    let combined = |shares: &[f64], of: &[Vec<f64>]| -> Vec<f64> {
        let mut sum = vec![0.0; of[0].len()];
        for (share, vector) in shares.iter().zip(of) {
            sum.iter_mut()
                .zip(vector)
                .for_each(|(s, v)| *s += share * v);
        }
        sum
    };
    let unit = |k: usize| (0..count).map(|j| f64::from(u8::from(j == k))).collect();
    let mut turned: Vec<Vec<f64>> = (0..count).map(unit).collect();
    let mut logarithms = vec![0.0; count];
    for round in 0..SMALL_ROUNDS {
        turned = turned.iter().map(|v| combined(v, &images)).collect();
        let lengths = orthonormal(&mut turned);
        // Those that turn around each other grow by the same on average.
        if 2 * round >= SMALL_ROUNDS {
            for (sum, length) in logarithms.iter_mut().zip(lengths) {
                *sum += 2.0 * length.ln() / SMALL_ROUNDS as f64;
            }
        }
    }
    let modes = turned.iter().map(|v| combined(v, basis)).collect();
    (logarithms, modes)
}

/// What each agent does to the whole state.
fn pushes(problem: &Problem) -> Vec<Vec<f64>> {
    let mut kernel = Kernel::new(problem);
    let mut amplitudes = [0.0; MOST_FIELDS];
    amplitudes[problem.driven_field()] = 1.0;
    (problem.placement)(problem, problem.agents)
        .into_iter()
        .enumerate()
        .map(|(agent, place)| {
            let mut push = vec![0.0; problem.state_len()];
            kernel.act(&mut push, agent, place, &amplitudes);
            push
        })
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Makes vectors orthonormal, one after the other; returns how long each was when its turn came.
fn orthonormal(vectors: &mut [Vec<f64>]) -> Vec<f64> {
    let mut lengths = Vec::new();
    for k in 0..vectors.len() {
        let (done, rest) = vectors.split_at_mut(k);
        let vector = &mut rest[0];
        // Twice is enough.
        for _ in 0..2 {
            for other in &*done {
                let share = dot(vector, other);
                vector
                    .iter_mut()
                    .zip(other)
                    .for_each(|(v, o)| *v -= share * o);
            }
        }
        let length = dot(vector, vector).sqrt();
        vector
            .iter_mut()
            .for_each(|v| *v /= length.max(f64::MIN_POSITIVE));
        lengths.push(length);
    }
    lengths
}

/// Independent directions among `modes` that `pushes` have a part in that counts.
fn rank(modes: &[Vec<f64>], pushes: &[Vec<f64>]) -> usize {
    let mut seen: Vec<Vec<f64>> = (pushes.iter())
        .map(|push| modes.iter().map(|mode| dot(mode, push)).collect())
        .collect();
    let longest = seen.iter().map(|s| dot(s, s)).fold(0.0, f64::max);
    // The one with most left goes next, as in a factorisation with pivots.
    let mut rank = 0;
    while rank < modes.len() {
        let most = seen
            .iter()
            .map(|s| dot(s, s))
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((k, left)) = most.filter(|(_, left)| *left > 1e-6 * longest && *left > 0.0) else {
            break;
        };
        let pivot = seen.swap_remove(k);
        for other in &mut seen {
            let share = dot(other, &pivot) / left;
            other
                .iter_mut()
                .zip(&pivot)
                .for_each(|(o, p)| *o -= share * p);
        }
        rank += 1;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    /// u_t = −u_xx − u_xxxx on a ring of 22: waves of q = 2π k/22 grow at q² − q⁴, which is 0.220 for
    /// k = 2, 0.195 for k = 3 and 0.0749 for k = 1, two each; all others die.
    #[test]
    fn waves_grow_at_their_rates_fastest_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ks.toml");
        let text = "name = \"ks\"\n[domain]\nunit = \"1\"\nsize = [22]\ngrid = [128]
[time]\nunit = \"1\"\ninterval = 0.1\nsteps = 200
[fields.u]\nunit = \"1\"\nrange = [-4, 4]\ndiffusion = -1\nhyperdiffusion = 1\nedges = { all = \"periodic\" }
[actuators]\nwidth = 1\nforce = 1\nplaces = { lattice = [8], low = [0], high = [19.25] }\n[sensors]\nwindow = 8\n";
        std::fs::write(&path, text).unwrap();
        let problem = problem::kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
        let episode = (problem.draw)(problem, &mut episode_rng(0, 0));
        let Growth { rates, reached, .. } = growth(problem, &episode);
        let spacing = problem.grid.spacing(0);
        let expected = [2.0, 2.0, 3.0, 3.0, 1.0, 1.0].map(|k: f64| {
            // As differences see it.
            let q = 2.0 / spacing * (std::f64::consts::PI * k * spacing / 22.0).sin();
            q * q - q.powi(4)
        });
        assert_eq!((rates.len(), reached), (6, 6), "{rates:?}");
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate / expected - 1.0).abs() < 0.01, "{rates:?} {expected}");
        }
    }
}
