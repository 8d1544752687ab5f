//! One control step of a policy in a file:
//!
//! ```text
//! cargo run -p agent-core --example step -- policies/heat-1d.policy
//! ```
//!
//! The agent is shown what the policy's maker showed it last, the policy's probe, and does what it did
//! there.

use agent_core::agent::Agent;
use agent_core::policy::Policy;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which policy? Give a file")?;
    let bytes = std::fs::read(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
    // Words, because weights are read where they lie, from a 4-byte boundary.
    let mut words = vec![0u32; bytes.len().div_ceil(4)];
    let blob = &mut bytemuck::cast_slice_mut::<u32, u8>(&mut words)[..bytes.len()];
    blob.copy_from_slice(&bytes);

    let policy = Policy::parse(blob)?;
    let (shown, _) = policy.probe().ok_or("its format has no probe")?;
    println!(
        "a policy for {}: {} floats of working memory, {} cells a patch",
        policy.header().problem.as_str(),
        policy.workspace_len(),
        policy.patch_len()
    );
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut agent = Agent::new(policy, &mut workspace)?;
    let action = agent.step(&shown.patch, shown.position, shown.now_us);
    println!("{action:?}");
    Ok(())
}
