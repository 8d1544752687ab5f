//! `agent-sim problems` and `agent-sim faults`: what there is.

use super::print;
use crate::table::table;
use artifacts::policy_file::PolicyFile;
use problem::Problems;

pub fn problems(problems: &Problems) -> anyhow::Result<()> {
    let head = [
        "problem", "grid", "agents", "steps", "interval", "policy", "the task",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut variants = String::new();
    let mut physics = String::new();
    for problem in problems.iter() {
        rows.push(vec![
            problem.name.to_owned(),
            problem.grid.to_string(),
            problem.agents.to_string(),
            problem.horizon.to_string(),
            format!("{}", problem.control_interval),
            match PolicyFile::shipped(problem) {
                Ok(_) => "shipped".to_owned(),
                Err(_) => "–".to_owned(),
            },
            problem.summary.to_owned(),
        ]);
        for variant in problem.variants {
            variants += &format!(
                "  {} --variant {}: {}\n",
                problem.name, variant.name, variant.summary
            );
        }
        for (coefficient, published) in problem.coefficients.iter().zip(problem.physics) {
            let [low, high] = coefficient.range;
            physics += &format!(
                "  {} --physics {}={published}: {}, from {low} to {high}\n",
                problem.name, coefficient.name, coefficient.meaning
            );
        }
    }
    print(&format!(
        "{}\nVariants:\n{variants}\nPhysics that can be changed, as published:\n{physics}",
        table(&rows)
    ))
}

const FAULTS: &str = "\
A fault is KIND,PARAMETER=VALUE,…; give --fault several times to combine them. The first is nearest to
the agent. In a scenario file: [[fault]] kind = \"crash\" fraction = 0.3 at = 0.5.

  the agent
    crash                       falls silent; with until=… it comes back with its memory lost
    join                        is not there before at=…
    clock,rate=0.02,phase=1     acts by its own clock: fast or slow by up to rate, up to phase periods late
  its actuator
    stuck[,value=U][,speed=V]   goes on doing what it did, or pushes with U, or moves on at V
    gain,factor=0.5[,drift=true]    forces come out multiplied, at once or more and more
    bias,value=5[,drift=true]       forces come out shifted
    invert                      force and velocity come out with the wrong sign
    actuator-noise,std=0.1      Gaussian noise on every force
  its sensor
    noise,std=0.1               Gaussian noise on every cell
    sensor-bias,value=0.5       every cell is off by the same amount
    dropout,p=0.1               cells read NaN
    freeze                      shows what it saw when the fault began
  the line to it
    loss,p=0.2                  observations get lost
    delay,steps=2[,jitter=1]    observations come late; with jitter perhaps out of order
    duplicate,p=0.1             observations arrive twice
    reorder,p=0.1               observations change places with the next one
    corrupt,p=0.1               bytes of the frame change on the way; the checksum catches them
    blackout,region=…           nothing gets through, either way, inside a region
  a board, for real (who: link=qemu, count=2 drawn by the seed, or ids=…)
    kill                        its emulator is killed
    hang                        its emulator is stopped; goes on at until=…
    restart                     loses power; gets it back at until=…, or at once
    cut                         its cable is pulled in the middle of a frame, and plugged in at until=…
    flood                       noise on its line before every observation
    brownout                    reset while it writes a policy to its flash

  who    fraction=0.3 (drawn by the seed), cluster=0.3 (one drawn by the seed and those that start
         nearest to it), ids=0+3+10..20, region=0.2..0.6 or 0.2..0.6x0.1..0.4 (where agents are at
         the time); otherwise everybody
  when   at=0.5, until=0.8: shares of the run; otherwise all of it
";

pub fn faults() -> anyhow::Result<()> {
    print(FAULTS)
}
