//! `agent-sim key` and `agent-sim sign`: keys, and what is said of policies with them.

use super::print;
use agent_core::policy::Policy;
use anyhow::{Context, anyhow};
use artifacts::policy_file::PolicyFile;
use clap::Args;
use node_link::keys::{self, PolicyKey};
use problem::input;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trust::{KeyId, Manifest, Rights};

#[derive(Args)]
pub struct KeyArgs {
    /// File for the key; must not exist yet
    file: PathBuf,
    /// Make the key of a link instead of one that signs policies
    #[arg(long, conflicts_with_all = ["grant", "from"])]
    link: bool,
    /// Make a host's key with these rights from a link's: observe, flash, restart, with commas
    #[arg(long, value_name = "RIGHTS", requires = "from")]
    grant: Option<String>,
    /// The link's key that it is made from
    #[arg(long, value_name = "FILE", requires = "grant")]
    from: Option<PathBuf>,
}

pub fn key(args: &KeyArgs) -> anyhow::Result<()> {
    let name = args.file.display();
    if let (Some(rights), Some(from)) = (&args.grant, &args.from) {
        let rights = keys::parse_rights(rights)?;
        let grant = read_key(from, keys::parse_whole_link_key)?.grant(rights);
        keys::keep_grant(&args.file, &grant)?;
        return print(&format!(
            "host's key: {name} (who has it can {})\n",
            in_words(rights)
        ));
    }
    if args.link {
        keys::keep_new_link_key(&args.file)?;
        return print(&format!(
            "link key: {name} (keep it safe; who has it can do everything to nodes built with it)\n\
             for the image: LINK_KEY=$(cat {name}) cargo xtask firmware build\n"
        ));
    }
    let key = PolicyKey::generate();
    key.keep(&args.file)?;
    print(&format!(
        "secret key: {name} (keep it safe; who has it can sign policies)\nkey id:     {}\n\
         public key: {}\n",
        key.id(),
        key.public()
    ))
}

fn in_words(rights: Rights) -> String {
    let may = [
        (Rights::OBSERVE, "drive agents"),
        (Rights::FLASH, "offer policies"),
        (Rights::RESTART, "restart nodes"),
    ];
    let may = may.iter().filter(|(right, _)| rights.include(*right));
    may.map(|(_, what)| *what).collect::<Vec<_>>().join(", ")
}

#[derive(Args)]
pub struct SignArgs {
    /// The policy
    policy: PathBuf,
    /// The secret key (see agent-sim key)
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File for the manifest
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    terms: Terms,
    /// Let it take the place of a policy for another problem
    #[arg(long)]
    repurpose: bool,
    /// Trust this key no more, once the policy is taken: its id, as `agent-sim key` printed it
    #[arg(long, value_name = "KEY ID")]
    revoke: Option<String>,
}

/// For whom a policy is, and how new.
#[derive(Args)]
pub struct Terms {
    /// The fleet that the policy is for [default: nodes that belong to none]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub fleet: String,
    /// The board that it may run on [default: any]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub board: String,
    /// Its place in time: nodes take nothing whose counter is not above their last [default: the
    /// seconds since 1970]
    #[arg(long, value_name = "N")]
    pub counter: Option<u64>,
}

impl Terms {
    /// What is said of a policy on these terms.
    pub fn manifest<'a>(
        &'a self,
        blob: &[u8],
        policy: &'a Policy<'_>,
    ) -> anyhow::Result<Manifest<'a>> {
        self.manifest_for(blob, policy.header().problem.as_str())
    }

    /// What is said of these bytes on these terms: of a policy for this problem, or of the place of one.
    pub fn manifest_for<'a>(
        &'a self,
        bytes: &[u8],
        problem: &'a str,
    ) -> anyhow::Result<Manifest<'a>> {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let now = now.context("the clock is before 1970: give --counter")?;
        Ok(Manifest {
            board: &self.board,
            fleet: &self.fleet,
            counter: self.counter.unwrap_or(now.as_secs()),
            ..Manifest::unsigned(bytes, problem)
        })
    }
}

/// Signs what is said of a policy.
pub fn sign(args: &SignArgs) -> anyhow::Result<()> {
    let file = PolicyFile::read(&args.policy)?;
    let policy = Policy::parse(file.bytes())?;
    let manifest = Manifest {
        repurposes: args.repurpose,
        revokes: args.revoke.as_deref().map(key_id).transpose()?,
        ..args.terms.manifest(file.bytes(), &policy)?
    };
    let key = read_key(&args.key, PolicyKey::parse)?;
    key.sign(&manifest)?.write(&args.out)?;
    let or = |text: &str, otherwise: &str| match text {
        "" => otherwise.to_owned(),
        text => text.to_owned(),
    };
    print(&format!(
        "{}: policy {}\n  problem {}, board {}, fleet {}, counter {}, key {}{}{}\n",
        args.out.display(),
        manifest.policy,
        manifest.problem,
        or(manifest.board, "any"),
        or(manifest.fleet, "none"),
        manifest.counter,
        key.id(),
        if manifest.repurposes {
            ", repurposes"
        } else {
            ""
        },
        manifest
            .revokes
            .map_or(String::new(), |key| format!(", revokes {key}")),
    ))
}

/// What a file of a key says.
pub fn read_key<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let name = path.display();
    let text = input::read_text(path, input::KEY)
        .map_err(|error| anyhow!("cannot read the key {name}: {error}"))?;
    parse(&text).map_err(|error| anyhow!("{name}: {error:#}"))
}

fn key_id(text: &str) -> anyhow::Result<KeyId> {
    let id = u32::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 8);
    let id = id.ok_or_else(|| anyhow!("--revoke {text:?} is no key id: 8 hexadecimal digits"))?;
    Ok(KeyId(id.to_be_bytes()))
}

/// The offer of a policy, signed here and now.
pub fn signed_offer(
    key: &Path,
    terms: &Terms,
    blob: &[u8],
    policy: &Policy,
) -> anyhow::Result<node_link::Offer> {
    let manifest = terms.manifest(blob, policy)?;
    read_key(key, PolicyKey::parse)?
        .sign(&manifest)?
        .offer(blob)
}
