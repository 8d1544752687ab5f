//! Episodes that several tests begin with.

use problem::random_field::episode_rng;
use problem::{Episode, Problem};
use std::collections::BTreeMap;
use std::sync::Mutex;
use trainer::family::{Family, Spread};

/// The first `count` episodes of a seed. Each is drawn once, because a field that has to become turbulent
/// first takes seconds: forms of a problem on the same grid begin alike.
pub fn episodes(problem: &Problem, seed: u64, count: u64) -> Vec<Episode> {
    type Drawn = BTreeMap<(&'static str, [usize; 2], u64), Vec<Episode>>;
    static DRAWN: Mutex<Drawn> = Mutex::new(BTreeMap::new());
    let key = (problem.name, problem.grid.points, seed);
    let mut drawn = DRAWN.lock().unwrap();
    let episodes = drawn.entry(key).or_default();
    for k in episodes.len() as u64..count {
        episodes.push((problem.draw)(problem, &mut episode_rng(seed, k)));
    }
    episodes[..count as usize].to_vec()
}

/// The problem with every coefficient that leaves its domain alone between half and twice the published.
pub fn family(problem: &Problem) -> Family {
    let spread = |c: &problem::Coefficient| {
        let ends = [0.5, 2.0].map(|factor| factor * c.published);
        let form = problem.with_physics([(c.name, ends[1])]).unwrap();
        let text = format!("{}={}..{}", c.name, ends[0], ends[1]);
        (form.grid == problem.grid).then(|| text.parse().unwrap())
    };
    let spreads: Vec<Spread> = problem.coefficients.iter().filter_map(spread).collect();
    Family::new(problem, &spreads).unwrap()
}
