//! `agent-sim live`: a run in the browser, with hands on it.

use super::replay;
use super::run::{StageArgs, rig};
use super::{print, say_beforehand, use_threads};
use crate::live::Hub;
use crate::live::play::{Show, play};
use crate::live::serve::Server;
use crate::scenario::Scenario;
use anyhow::{anyhow, bail};
use artifacts::output::{OutputFolder, tell};
use artifacts::policy_file::PolicyFile;
use clap::Args;
use problem::Problems;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where the page is, unless somebody else is there.
const PORT: u16 = 7878;

/// Where the page is, and for whom.
#[derive(Args)]
pub struct PageArgs {
    /// Port of the page; 0 for any that is free [default: 7878, or any if that is taken]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Let others look too: the address to listen on, e.g. 0.0.0.0; the page then asks for the token
    /// that is printed
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// The token that others must know [default: a random one]
    #[arg(long, value_name = "TOKEN", requires = "listen")]
    token: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

#[derive(Args)]
pub struct LiveArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// A recorded run, to look at and to change: the folder that `agent-sim run` wrote
    #[arg(long, value_name = "DIR", conflicts_with = "scenario")]
    replay: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Begin standing still
    #[arg(long)]
    paused: bool,
    /// Folder for scenarios that are saved [default: out/live-<problem>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn live(args: &LiveArgs, problems: &Problems) -> anyhow::Result<()> {
    use_threads(args.threads)?;
    let (mut scenario, recorded) = match &args.replay {
        None => (args.stage.scenario()?, None),
        Some(folder) => {
            let (scenario, episode) = replay::recorded(folder, problems)?;
            (args.stage.settle(scenario)?, Some(episode))
        }
    };
    if scenario.links.is_empty() && scenario.realtime.take().is_some() {
        tell("note: without boards the page says how fast the run goes; --realtime is left out");
    }
    let patience = args.stage.rig.patience()?;
    let team = scenario.team(problems)?;
    let episode = scenario.episode(&team)?;
    if team.standing.is_some() {
        bail!(
            "hands reach fields, targets and agents, and places are given beforehand; leave --standalone out, \
             or watch it with agent-sim run --live"
        );
    }
    say_beforehand(&scenario, &team, scenario.resampled(&team)?.as_ref());

    let (hub, orders) = Hub::new();
    let server = args.page.listen()?;
    let url = server.url()?;
    server.start(hub.clone())?;
    print(&format!("{} live at {url}\n", team.problem.name))?;
    args.page.open(&url);
    tell("Ctrl-C ends it");

    let plant = args.stage.plant.open(&scenario, &team.problem)?;
    let policy = team.parsed_policy();
    let rig = rig(&args.stage.rig, patience, &team, policy.as_ref(), &episode)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| format!("out/live-{}", team.problem.name).into());
    let saved = Cell::new(0);
    let save = |scenario: &Scenario| -> anyhow::Result<String> {
        let folder = OutputFolder::claim(&out)?;
        // What was saved before, in this session or another, is somebody's work.
        let free = |number: &usize| !folder.path().join(name(*number)).exists();
        let number = (saved.get() + 1..).find(free).unwrap_or(1);
        saved.set(number);
        let path = folder.write(&name(number), scenario.to_toml().as_bytes())?;
        Ok(path.display().to_string())
    };
    let payload = |file: &PolicyFile| {
        let policy = file.policy(&team.problem)?;
        args.stage.rig.payload(file, &policy)
    };
    let show = Show {
        scenario,
        recorded,
        problems,
        rig: rig.as_ref(),
        payload: &payload,
        plant: plant.as_ref(),
        playing: !args.paused,
        save: &save,
    };
    play(show, &hub, &orders)
}

fn name(number: usize) -> String {
    format!("scenario-{number}.toml")
}

impl PageArgs {
    /// Whether anything was said about the page.
    pub fn is_given(&self) -> bool {
        self.port.is_some() || self.listen.is_some() || self.no_open
    }

    /// Listens where it was asked for, or where there is room.
    pub fn listen(&self) -> anyhow::Result<Server> {
        let address = self.listen.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let token = match (self.listen, &self.token) {
            (None, _) => None,
            (Some(_), Some(token)) if token.len() < 8 => {
                bail!("--token '{token}' is soon guessed; give 8 characters or more")
            }
            (Some(_), Some(token)) if !token.chars().all(|c| c.is_ascii_alphanumeric()) => {
                bail!("--token goes into an address; give letters and digits only")
            }
            (Some(_), Some(token)) => Some(token.clone()),
            (Some(_), None) => Some(random_token()?),
        };
        match self.port {
            Some(port) => Server::bind(SocketAddr::new(address, port), token),
            None => Server::bind(SocketAddr::new(address, PORT), token.clone())
                .or_else(|_| Server::bind(SocketAddr::new(address, 0), token)),
        }
    }

    /// Opens the page that people were told of.
    pub fn open(&self, url: &str) {
        if self.listen.is_some() {
            tell(
                "note: whoever has this address, with its token, can see the run, and change a live one",
            );
        }
        if !self.no_open && open::that_detached(url).is_err() {
            tell(&format!(
                "note: no browser could be opened; open {url} yourself"
            ));
        }
    }
}

fn random_token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no token can be drawn: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
