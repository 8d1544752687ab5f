//! Boards from flags: where they are, what runs on them, how long they are waited for.

use super::key::{Terms, read_key, signed_offer};
use super::network_args::NetworkArgs;
use super::progress::Progress;
use crate::rig::{Absent, Boards, Images, Pace, Payload, Rig, Rooms, Setup};
use agent_core::policy::Policy;
use anyhow::{anyhow, bail};
use artifacts::output::tell;
use artifacts::policy_file::PolicyFile;
use clap::Args;
use node_link::keys::{self, PolicyKey, SignedManifest};
use node_link::{Offer, PlaceOffer, SharedLine};
use problem::{input, limit};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trust::Grant;
use trust::manifest::MANIFEST;

/// Which boards, and how they are treated.
#[derive(Args)]
pub struct RigArgs {
    /// Boards for the first agents (repeatable): qemu=6 or qemu=6:mps2-an500 (emulated),
    /// serial=/dev/ttyACM0[@BAUD], tcp=HOST:PORT, zenoh=KEY (all that hosts offer under keys which KEY
    /// matches, see agent-sim agents)
    #[arg(long = "link", value_name = "LINK")]
    pub links: Vec<String>,
    #[command(flatten)]
    network: NetworkArgs,
    /// Image for emulated boards [default: the one that `cargo xtask firmware build` made]
    #[arg(long, value_name = "ELF")]
    image: Option<PathBuf>,
    /// Folder where the flash of emulated boards is kept from run to run [default: a fresh one each
    /// time]
    #[arg(long, value_name = "DIR")]
    flash_dir: Option<PathBuf>,
    /// Seconds that a board is waited for before it counts as silent; one that keeps coming back and
    /// never answers gets a second more in all
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    patience: f64,
    /// Key of the boards' link, for boards that obey nobody else (see agent-sim key --link)
    #[arg(long, value_name = "FILE")]
    link_key: Option<PathBuf>,
    /// Secret key that signs the policy for boards that ask for a signature (see agent-sim key)
    #[arg(long, value_name = "FILE", conflicts_with = "manifest")]
    key: Option<PathBuf>,
    /// Manifest of the policy that was signed before, where the key is (see agent-sim sign)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fleet", "board", "counter"])]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    terms: Terms,
    /// Show what emulated boards log, line by line, and keep it beside the report
    #[arg(long)]
    pub node_log: bool,
}

impl RigArgs {
    /// The boards named.
    pub fn boards(&self) -> anyhow::Result<Vec<Boards>> {
        read_boards(&self.links)
    }

    /// How long a board is waited for.
    pub fn patience(&self) -> anyhow::Result<Duration> {
        let (least, most) = (limit::PATIENCE.start(), limit::PATIENCE.end());
        match limit::PATIENCE.contains(&self.patience) {
            true => Ok(Duration::from_secs_f64(self.patience)),
            false => bail!(
                "--patience {:?} is no time to wait for a board; give {least} to {most} seconds",
                self.patience
            ),
        }
    }

    /// The policy as boards get it.
    pub fn payload(&self, file: &PolicyFile, policy: &Policy<'_>) -> anyhow::Result<Payload> {
        let blob = file.bytes();
        let offer = match (&self.manifest, &self.key) {
            (Some(path), _) => read_manifest(path)?.offer(blob)?,
            (None, Some(key)) => signed_offer(key, &self.terms, blob, policy)?,
            (None, None) => Offer::unsigned_for(blob, &self.terms.fleet),
        };
        Ok(Payload::new(offer, policy))
    }

    /// A place as boards get it, for a policy of this problem; no bytes for none.
    pub fn place_offer(&self, place: &[u8], problem: &str) -> anyhow::Result<PlaceOffer> {
        if self.manifest.is_some() {
            bail!("--manifest is of a policy; a place is signed with --key where it is given");
        }
        let manifest = self.terms.manifest_for(place, problem)?;
        match &self.key {
            Some(key) => read_key(key, PolicyKey::parse)?.offer_place(place, &manifest),
            None => Ok(PlaceOffer {
                place: place.to_vec(),
                manifest: manifest.encode(&mut [0; MANIFEST])?.to_vec(),
                signature: Vec::new(),
            }),
        }
    }

    /// The key of the boards' link, if one is given.
    fn grant(&self) -> anyhow::Result<Option<Grant>> {
        self.link_key
            .as_deref()
            .map(|path| read_key(path, keys::parse_link_key))
            .transpose()
    }

    /// Starts `boards` for a swarm of so many agents, or by themselves. Those that cannot be reached are
    /// named on standard error; an error if none is left and nobody else is in the swarm.
    pub fn start(&self, boards: &[Boards], start: Start) -> anyhow::Result<Rig> {
        let Start {
            images,
            payload,
            pace,
            seed,
            agents,
            talk,
        } = start;
        let known = boards.iter().filter(|boards| !boards.are_found());
        let known: usize = known.map(Boards::count).sum();
        let rooms = Rooms::find(
            boards,
            &self.network.settings()?,
            agents.unwrap_or(limit::BOARDS.most).saturating_sub(known),
            payload.as_ref().map(|payload| payload.offer.id),
            pace.patience,
        )?;
        let bus = talk.then(SharedLine::new).transpose()?.map(Arc::new);
        let setup = Setup {
            rooms,
            images: match &self.image {
                Some(file) => Images::File(file.clone()),
                None => images,
            },
            flash: self.flash_dir.clone(),
            link_key: self.grant()?,
            payload,
            pace,
            bus,
            log: self.node_log,
            seed,
        };
        if let Some(folder) = &setup.flash {
            std::fs::create_dir_all(folder)
                .map_err(|error| anyhow!("cannot make the folder {}: {error}", folder.display()))?;
        }
        let progress = Progress::new(known + setup.rooms.len(), "starting boards");
        let (rig, absent) = Rig::start(boards, &setup, &|| progress.tick());
        drop(progress);
        let mut told: Vec<&str> = Vec::new();
        for Absent { name, why } in &absent {
            // Thirty boards without an emulator have one reason.
            match told.contains(&why.as_str()) {
                true => tell(&format!("warning: {name} is not there: as above")),
                false => tell(&format!("warning: {name} is not there: {why}")),
            }
            told.push(why);
        }
        if agents.is_none_or(|agents| agents == rig.len()) && absent.len() == rig.len() {
            bail!(
                "none of the {} boards can be reached, and no other agents are left",
                rig.len()
            );
        }
        Ok(rig)
    }

    /// Whether emulated boards forget everything when they end.
    pub fn is_volatile(&self) -> bool {
        self.flash_dir.is_none()
    }
}

/// What boards are started for.
pub struct Start {
    /// What emulated ones run, unless people name an image.
    pub images: Images,
    /// The policy that all are to have.
    pub payload: Option<Payload>,
    pub pace: Pace,
    pub seed: u64,
    /// How many agents the swarm has whose first they are; none of boards by themselves.
    pub agents: Option<usize>,
    /// Whether emulated ones hear each other.
    pub talk: bool,
}

/// Boards as people write them.
pub fn read_boards(texts: &[String]) -> anyhow::Result<Vec<Boards>> {
    let read = |text: &String| text.parse().map_err(anyhow::Error::new);
    let boards: Vec<Boards> = texts.iter().map(read).collect::<anyhow::Result<_>>()?;
    limit::BOARDS.check(boards.iter().map(Boards::count).sum())?;
    Ok(boards)
}

fn read_manifest(path: &Path) -> anyhow::Result<SignedManifest> {
    let name = path.display();
    let bytes = input::read(path, input::KEY)
        .map_err(|error| anyhow!("cannot read the manifest {name}: {error}"))?;
    SignedManifest::decode(&bytes).map_err(|error| anyhow!("{name}: {error}"))
}
