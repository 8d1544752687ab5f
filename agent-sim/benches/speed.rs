//! `cargo bench -p agent-sim`: the figures of `agent-sim bench`, in plain lines; some minutes.

use agent_sim::bench::{
    BenchError, Effort, Machine, growth_with_agents, growth_with_points, speed,
};

fn main() -> Result<(), BenchError> {
    // `cargo test --all-targets` starts benchmarks too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    println!("{}", Machine::here());
    for &problem in problem::published::ALL {
        println!("{}", speed(problem, &Effort::FULL)?);
        println!("{}", growth_with_points(problem, &Effort::FULL)?);
    }
    println!(
        "{}",
        growth_with_agents(problem::published::ALL[0], &Effort::FULL)?
    );
    Ok(())
}
