//! One control step of heat-1d's shipped policy on this machine, one thread:
//!
//! - alone, against the same network in tract, a well-known runtime;
//! - for many agents, against the most that one core can multiply and add.
//!
//! `cargo xtask bench host` runs it. The machine's other load moves all figures; ours and tract's
//! are taken by turns, so that it moves both. With `--smoke` it measures next to nothing: CI sees that
//! it still works, and that agent-core and tract still agree.

mod ours;
mod peak;
mod theirs;

use anyhow::{Result, ensure};
use ours::{Blob, Desk, Scene};
use std::{hint::black_box, time::Instant};
use theirs::TractNetwork;

/// Bars: a step takes at most this, tract at least so many times as long, and both give the same
/// outputs, of at most 1, to within this.
const STEP_NS: f64 = 1500.0;
const TIMES_FASTER: f64 = 4.0;
const SAME: f32 = 1e-5;

/// Different things to see, taken in turn.
const SCENES: usize = 16;
/// Medians are of so many measurements, each of all scenes,
const MEASUREMENTS: usize = 2000;
/// and for many agents of so many.
const TURNS: usize = 101;
/// Agents that share a policy: their states and what they see fill the first caches.
const AGENTS: usize = 1024;

fn main() -> Result<()> {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let [measurements, turns] = match smoke {
        true => [1, 1],
        false => [MEASUREMENTS, TURNS],
    };
    let blob = Blob::shipped();
    let policy = blob.policy()?;
    let scenes: Vec<Scene> = (0..SCENES).map(|k| Scene::new(&policy, k)).collect();
    let mut tract = TractNetwork::new(&policy, &blob)?;
    let mut desk = Desk::new(&policy);

    let mut difference = 0.0f32;
    for scene in &scenes {
        let action = ours::as_outputs(&policy, &desk.first_step(scene));
        let outputs = tract.run(scene)?;
        // Before them stands what it would remember.
        let outputs = &outputs[2 * policy.header().network.remembered()..];
        for (a, b) in action.iter().zip(outputs) {
            difference = difference.max((a - b).abs());
        }
    }
    ensure!(
        difference <= SAME,
        "agent-core and tract differ by {difference:e}"
    );

    let (mut step, mut network) = (Vec::new(), Vec::new());
    for _ in 0..measurements {
        step.push(nanoseconds(|| {
            for scene in &scenes {
                black_box(desk.step(black_box(scene)));
            }
        }));
        network.push(nanoseconds(|| {
            for scene in &scenes {
                black_box(tract.run(black_box(scene)).ok());
            }
        }));
    }
    let [step, network] = [step, network].map(|all| median(all) / SCENES as f64);

    let macs = policy.macs();
    println!(
        "heat-1d, {macs} multiply-accumulates a step, compiled for {}",
        desk.vectors()
    );
    println!("\none agent, batch 1, median of {measurements}");
    println!(
        "  agent-core, whole step   {step:>8.0} ns   {:.2} of the bar of {STEP_NS:.0} ns",
        step / STEP_NS
    );
    println!("  tract, network alone     {network:>8.0} ns");
    println!(
        "  tract / agent-core       {:>8.1}      {:.2} times the bar of {TIMES_FASTER:.0}",
        network / step,
        network / step / TIMES_FASTER
    );
    println!(
        "  largest difference       {difference:>8.1e}      {:.2} of the bar of {SAME:e}",
        difference / SAME
    );

    let (swarm, peak) = many_agents(&mut desk, &scenes, turns);
    let rate = (AGENTS * macs) as f64 / swarm;
    println!("\n{AGENTS} agents, one policy, one thread");
    println!(
        "  agent-core, whole step   {:>8.0} ns an agent",
        swarm / AGENTS as f64
    );
    println!("  agent-core               {rate:>8.1} GMAC/s");
    println!(
        "  peak of the core         {peak:>8.1} GMAC/s  {} in registers",
        peak::name()
    );
    println!(
        "  share                    {:>8.1} %     at most 50: nothing is fused, so that a \
         Cortex-M4F gives the same bits",
        100.0 * rate / peak
    );
    Ok(())
}

/// Nanoseconds that all agents' steps take, and the core's multiply-accumulates per nanosecond.
fn many_agents(desk: &mut Desk, scenes: &[Scene], turns: usize) -> (f64, f64) {
    let mut states = vec![Default::default(); AGENTS];
    let shown = scenes.iter().cycle().map(Scene::observation);
    let observations: Vec<_> = shown.take(AGENTS).collect();
    let (mut swarm, mut peak) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        swarm.push(nanoseconds(|| desk.step_all(&mut states, &observations)));
        let mut done = 0;
        let elapsed = nanoseconds(|| done = peak::multiply_accumulates());
        peak.push(done as f64 / elapsed);
    }
    (median(swarm), median(peak))
}

fn nanoseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
