//! What a campaign costs beside its runs: runs a second of the same episodes as `eval` makes them, and as
//! a campaign does, with a scenario read and checked for each and a requirement held.
//!
//! ```text
//! cargo bench -p agent-sim --bench campaign
//! ```

use agent_sim::campaign::{Points, Space};
use problem::Problems;
use rayon::prelude::*;
use std::time::Instant;

const SPACE: &str = "
problem = \"heat-1d\"
seed = 1
episode = { from = 0, to = 999 }
[campaign]
sampling = \"grid\"
[[require]]
what = \"error\"
below = 1.0
when = \"at the end\"
";
const ROUNDS: usize = 5;

fn main() {
    let problems = Problems::published();
    let space = Space::read(SPACE, &problems).expect("a space");
    let points: Vec<Vec<f64>> = Points::from(&space, 0).collect();
    let first = space.scenario(&points[0]).expect("a scenario");
    let team = first.team(&problems).expect("a team");
    let policy = team.parsed_policy();
    let experiment = team.experiment(policy.as_ref());
    let eval = || {
        let episodes = first.episodes(&team, Some(points.len())).expect("episodes");
        let scored = episodes.par_iter().map(|episode| {
            let score = experiment.run(episode, &mut |_| {});
            score.expect("a rod does not blow up").final_error
        });
        scored.sum::<f64>()
    };
    let campaign = || {
        let judged = points.par_iter().map(|point| {
            let scenario = space.scenario(point).expect("a scenario");
            let team = scenario.team(&problems).expect("a team");
            let episode = scenario.episode(&team).expect("an episode");
            team.judged(&episode, None, &mut |_| {}).1.judged[0].value
        });
        judged.sum::<f64>()
    };
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (best, work) in best.iter_mut().zip([&eval as &dyn Fn() -> f64, &campaign]) {
            let begun = Instant::now();
            std::hint::black_box(work());
            *best = best.min(begun.elapsed().as_secs_f64());
        }
    }
    let [eval, campaign] = best.map(|seconds| points.len() as f64 / seconds);
    println!(
        "heat-1d, 8 agents, 300 steps, {} runs, best of {ROUNDS} rounds",
        points.len()
    );
    println!("eval       {eval:8.1} runs/s");
    println!(
        "campaign   {campaign:8.1} runs/s   {:.2} x (bar: 0.9)",
        campaign / eval
    );
}
