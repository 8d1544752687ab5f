//! The same blob and the same observations on the emulated board and on the host.

use agent_core::{
    agent::{Action, Agent},
    message::{Command, Report},
};
use anyhow::{Result, bail};
use artifacts::say;
use clap::{Args, value_parser};
use node_link::{BoardOptions, EmulatedBoard, Machine, Session, device_log::Decoder};
use std::{path::PathBuf, time::Duration};

use endurance::observations::{Blob, Scene};

/// Longest wait for one action.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most observations, beyond what anybody would wait for.
const MOST_OBSERVATIONS: i64 = 1_000_000;

/// What to run, and on what.
#[derive(Args)]
pub struct Options {
    /// The emulated board.
    #[arg(long, value_name = "NAME", default_value = "mps2-an386")]
    machine: Machine,
    /// The node's image.
    #[arg(long, value_name = "ELF")]
    image: PathBuf,
    /// The policy blob.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// How many observations to send.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = value_parser!(u32).range(1..=MOST_OBSERVATIONS))]
    observations: u32,
    /// Show the node's log, decoded.
    #[arg(long)]
    log: bool,
}

/// Runs the policy on both and prints what they do; an error if a bit differs.
pub fn run(options: &Options) -> Result<()> {
    let blob = Blob::read(&options.policy)?;
    blob.policy()?; // before anything is started
    let (board, mut node) = EmulatedBoard::start(&BoardOptions {
        machine: options.machine,
        ..BoardOptions::new(&options.image)
    })?;
    let outcome = compare(&mut node, &blob, options.observations);
    // Also, and above all, when something went wrong.
    if options.log {
        say!("\nthe node's log")?;
        for line in Decoder::new(&options.image)?.lines(&board.log()?) {
            say!("  {line}")?;
        }
    }
    outcome
}

fn compare(node: &mut Session, blob: &Blob, observations: u32) -> Result<()> {
    let policy = blob.policy()?;
    let mut workspace = vec![0.0; policy.workspace_len()];
    let mut on_host = Agent::new(policy.clone(), &mut workspace)?;
    let id = blob.offer().id;
    let hello = node.upload(&blob.offer(), &mut |_| ())?;
    if hello.policy != Some(id) {
        bail!("the node runs another policy than it was given: {hello:?}");
    }
    say!(
        "{}: {} bytes, SHA-256 {id:.16}, on the emulated board",
        policy.header().problem,
        policy.length()
    )?;
    say!(
        "{:>5} {:>10} {:>12} {:>12} {:>10}  same bits as on the host",
        "step",
        "position",
        "force",
        "velocity",
        "mode"
    )?;
    let axes = usize::from(policy.header().sensing.axes);
    let list = |values: &[f32], digits: usize| -> String {
        let each: Vec<String> = values.iter().map(|x| format!("{x:.digits$}")).collect();
        each.join(" ")
    };
    let mut differing = 0;
    for step in 0..observations {
        let scene = Scene::new(&policy, step, observations);
        let observation = scene.observation();
        let expected = on_host.step(&observation.patch, observation.position, observation.now_us);
        let action = match node.ask(&Command::Observe(observation), PATIENCE)? {
            Report::Action { action, .. } => action,
            report => bail!("observation {step} was answered by {report:?}"),
        };
        let same = bits(&action) == bits(&expected);
        differing += u32::from(!same);
        say!(
            "{step:>5} {:>10} {:>12.6} {:>12} {:>10}  {}",
            list(&observation.position[..axes], 4),
            action.force,
            list(&action.velocity[..axes], 6),
            format!("{:?}", action.mode),
            if same {
                "yes".to_owned()
            } else {
                format!("NO: {expected:?}")
            },
        )?;
    }
    if differing > 0 {
        bail!("{differing} of {observations} actions differ between board and host");
    }
    say!("{observations} actions, 0 differing bits")?;
    Ok(())
}

/// An action as what must be equal: every bit.
fn bits(action: &Action) -> ([u32; 3], u8) {
    let [x, y] = action.velocity;
    ([action.force, x, y].map(f32::to_bits), action.mode as u8)
}
