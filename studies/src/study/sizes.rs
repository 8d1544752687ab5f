//! Swarms of other sizes than the published one.

use problem::Problem;

/// Up to so many times the published number proportional feedback runs beside the policy: its agents
/// where they stir sense the whole plane each, which takes half a minute an episode at 128 times.
const FEEDBACK: f64 = 16.0;

/// The number of agents nearest to a multiple of the published one, by their ratio; on planes a
/// square, because swarms start on square lattices.
pub fn nearest(problem: &Problem, multiple: f64) -> usize {
    let wanted = multiple * problem.agents as f64;
    if problem.grid.axes == 1 {
        return (wanted.round() as usize).max(1);
    }
    let below = (wanted.sqrt() as usize).max(1);
    let (small, large) = (below * below, (below + 1) * (below + 1));
    match wanted / (small as f64) < large as f64 / wanted {
        true => small,
        false => large,
    }
}

/// [`nearest`] to each of the multiples, rising and each once.
pub fn sizes(problem: &Problem, multiples: impl IntoIterator<Item = f64>) -> Vec<usize> {
    let sizes = multiples.into_iter().map(|m| nearest(problem, m));
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// How many times the published number.
pub fn multiple(problem: &Problem, agents: usize) -> f64 {
    agents as f64 / problem.agents as f64
}

/// Whether proportional feedback is run with so many agents.
pub fn has_feedback(problem: &Problem, agents: usize) -> bool {
    multiple(problem, agents) <= FEEDBACK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_get_squares() {
        let named = |name| problem::published::by_name(name).unwrap();
        // 0.7 · 100 = 70 lies nearer to 64 than to 81 (1.09 and 1.16 times).
        assert_eq!(nearest(named("ks-2d"), 0.7), 64);
        assert_eq!(nearest(named("density-2d"), 0.01), 1);
        assert_eq!(nearest(named("heat-1d"), 0.7), 6);
        // Half and seven tenths of 16 are both nearest to nine.
        assert_eq!(sizes(named("heat-2d"), [1.0, 0.7, 0.5]), [9, 16]);
    }
}
