//! `agent-sim agents`: a host of agents and boards on a Zenoh network, for runs elsewhere.

use super::network_args::NetworkArgs;
use super::{print, use_threads};
use crate::answering::Answering;
use crate::controller::ControllerKind;
use crate::rig::{Absent, Boards, Images, Pace, Rooms, Setup, Wire, wires};
use crate::scenario::Scenario;
use agent_core::message::PolicyId;
use agent_core::policy::Policy;
use anyhow::bail;
use artifacts::output::tell;
use artifacts::policy_file::PolicyFile;
use clap::Args;
use node_link::Offer;
use node_link::network::{Greeting, Network, Offered, batch};
use problem::{Problems, limit};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct AgentsArgs {
    /// The problem whose policy agents of this process run
    problem: Option<String>,
    /// The key that they are offered under, e.g. lab/plate/room-1
    #[arg(long, value_name = "KEY")]
    zenoh: String,
    #[command(flatten)]
    network: NetworkArgs,
    /// How many agents this process has [default: as published, or none without a problem]
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Policy blob [default: the one shipped for the problem]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Boards that are offered besides (repeatable): qemu=2, serial=/dev/ttyACM0[@BAUD], tcp=HOST:PORT
    #[arg(long = "link", value_name = "LINK")]
    links: Vec<String>,
    /// Image for emulated boards [default: the one that `cargo xtask firmware build` made]
    #[arg(long, value_name = "ELF")]
    image: Option<PathBuf>,
    /// Folder where the flash of emulated boards is kept [default: a fresh one each time]
    #[arg(long, value_name = "DIR")]
    flash_dir: Option<PathBuf>,
    /// Seconds after which this ends [default: when it is interrupted]
    #[arg(long = "for", value_name = "S")]
    seconds: Option<f64>,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// How long the network is waited for at the beginning.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often somebody who waits looks whether it is time to end.
const LOOK: Duration = Duration::from_millis(250);

/// What boards may be told before they have heard it; more is lost.
const UNHEARD: usize = 64;

/// How long a board is listened to after it was told something,
const TALK: Duration = Duration::from_secs(2);
/// and how long at a time before it can be told more.
const SLICE: Duration = Duration::from_millis(1);

/// Offers agents until it is time to end.
pub fn agents(args: &AgentsArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let ends = args.ends()?;
    let (file, count) = args.inside(problems)?;
    let network = Network::join(&args.network.settings()?, PATIENCE)?;
    let policy = file.as_ref().map(PolicyFile::parse).transpose()?;
    let id = file.as_ref().map(|file| Offer::unsigned(file.bytes()).id);
    let wires = args.wires()?;
    if count + wires.len() == 0 {
        bail!("there is nothing to offer: name a problem, or boards with --link");
    }
    let offered = network.offer(
        &args.zenoh,
        Greeting {
            policy: id.filter(|_| count > 0),
            inside: count as u32,
            boards: wires.iter().map(|wire| wire.name.clone()).collect(),
        },
    )?;
    print(&format!(
        "{} offers {}\n",
        args.zenoh,
        told(count, file.as_ref(), wires.len())
    ))?;
    if let Some(trouble) = network.trouble(PATIENCE) {
        tell(&format!(
            "warning: {trouble}\nnote: it is tried again and again"
        ));
    }
    let offered = Arc::new(offered);
    let boards = wires.into_iter().zip(count..);
    let boards = boards.map(|(wire, agent)| board(wire, agent as u32, offered.clone()));
    let boards: Vec<SyncSender<Told>> = boards.collect();
    let inside = policy.as_ref().zip(id);
    serve(&offered, inside, count, &boards, ends);
    Ok(())
}

impl AgentsArgs {
    /// When this ends.
    fn ends(&self) -> anyhow::Result<Option<Instant>> {
        match self.seconds {
            None => Ok(None),
            Some(seconds) if (0.0..=1e9).contains(&seconds) => {
                Ok(Some(Instant::now() + Duration::from_secs_f64(seconds)))
            }
            Some(seconds) => {
                bail!("--for {seconds:?} is no time to offer agents for; give seconds")
            }
        }
    }

    /// The policy of the agents of this process, and how many they are.
    fn inside(&self, problems: &Problems) -> anyhow::Result<(Option<PolicyFile>, usize)> {
        let Some(problem) = &self.problem else {
            if self.agents.is_some() || self.policy.is_some() {
                bail!(
                    "--agents and --policy are for agents of this process; name their problem too"
                );
            }
            return Ok((None, 0));
        };
        let scenario = Scenario {
            problem: problem.clone(),
            controller: Some(ControllerKind::POLICY),
            policy: self.policy.clone(),
            agents: self.agents,
            set: "fresh".to_owned(),
            ..Scenario::default()
        };
        let team = scenario.team(problems)?;
        Ok((team.policy, team.agents))
    }

    /// The boards at the links.
    fn wires(&self) -> anyhow::Result<Vec<Wire>> {
        let read = |text: &String| text.parse().map_err(anyhow::Error::new);
        let boards: Vec<Boards> = self.links.iter().map(read).collect::<anyhow::Result<_>>()?;
        limit::BOARDS.check(boards.iter().map(Boards::count).sum())?;
        if boards.iter().any(Boards::are_found) {
            bail!("agents that a network has are offered there already; leave --link zenoh out");
        }
        let setup = Setup {
            images: match &self.image {
                Some(file) => Images::File(file.clone()),
                None => Images::built(),
            },
            flash: self.flash_dir.clone(),
            rooms: Rooms::default(),
            link_key: None,
            payload: None,
            pace: Pace::lock_step(PATIENCE),
            bus: None,
            log: false,
            seed: 0,
        };
        wires(&boards, &setup).map_err(|Absent { name, why }| anyhow::anyhow!("{name}: {why}"))
    }
}

/// What is offered, in words.
fn told(count: usize, file: Option<&PolicyFile>, boards: usize) -> String {
    let inside = file.filter(|_| count > 0).map(|file| {
        let hash = file.hash();
        format!("{count} agents of policy {}", &hash[..12])
    });
    let boards = (boards > 0).then(|| format!("{boards} boards"));
    let parts: Vec<String> = inside.into_iter().chain(boards).collect();
    parts.join(" and ")
}

/// Lets agents and boards hear what comes, and answers.
fn serve(
    offered: &Offered,
    inside: Option<(&Policy<'_>, PolicyId)>,
    count: usize,
    boards: &[SyncSender<Told>],
    ends: Option<Instant>,
) {
    let mut agents = inside.map(|(policy, id)| Answering::new(policy, id, count));
    while ends.is_none_or(|end| Instant::now() < end) {
        let look = Instant::now() + LOOK;
        let until = ends.map_or(look, |end| end.min(look));
        let Some(mut arrival) = offered.next(until) else {
            continue;
        };
        let mut answers = Vec::new();
        let heard = batch::records(&mut arrival.batch).filter_map(|(agent, bytes)| {
            let agent = agent as usize;
            match agent.checked_sub(count) {
                None => Some((agent, bytes)),
                Some(board) => {
                    if let Some(board) = boards.get(board) {
                        // Who is told more than a board can hear tells it again.
                        let _ = board.try_send(Told {
                            driver: arrival.driver,
                            bytes: bytes.to_vec(),
                        });
                    }
                    None
                }
            }
        });
        match &mut agents {
            Some(agents) => agents.hear(heard, |agent, frame| {
                batch::push(&mut answers, agent as u32, frame);
            }),
            None => heard.for_each(drop),
        }
        offered.answer(arrival.driver, answers);
    }
}

/// What a driver says to a board.
struct Told {
    driver: u64,
    bytes: Vec<u8>,
}

/// Leads what is said to a board to it, and what it says back, on a thread of its own.
fn board(wire: Wire, agent: u32, offered: Arc<Offered>) -> SyncSender<Told> {
    let (sender, told) = mpsc::sync_channel(UNHEARD);
    thread::spawn(move || pass_on(wire, agent, &offered, &told));
    sender
}

fn pass_on(mut wire: Wire, agent: u32, offered: &Offered, told: &Receiver<Told>) {
    let mut buffer = [0; 1024];
    let mut quiet_from = Instant::now();
    let mut is_broken = false;
    loop {
        let now = Instant::now();
        let pause = if now < quiet_from {
            Duration::ZERO
        } else {
            LOOK
        };
        match told.recv_timeout(pause) {
            Ok(told) if offered.driver() == Some(told.driver) => {
                is_broken |= wire.line.send(&told.bytes).is_err();
                quiet_from = Instant::now() + TALK;
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        match wire.line.receive(&mut buffer, Instant::now() + SLICE) {
            Ok(0) => {}
            Ok(length) => {
                let mut said = Vec::new();
                batch::push(&mut said, agent, &buffer[..length]);
                if let Some(driver) = offered.driver() {
                    offered.answer(driver, said);
                }
            }
            Err(_) => is_broken = true,
        }
        if is_broken {
            // As often as a run looks for a silent node.
            thread::sleep(LOOK);
            is_broken = wire.line.reopen().is_err();
        }
    }
}
