//! `agent-sim new`: a description to begin with.

use super::print;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;

#[derive(Args)]
pub struct NewArgs {
    /// The name of the field, e.g. my-plate: writes my-plate.toml
    name: String,
    /// What it is most like
    #[arg(long, value_enum, default_value_t = Like::Heat2d)]
    like: Like,
    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// What descriptions there are to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Like {
    /// A plate with a hole, heated and cooled from fixed places
    #[value(name = "heat-2d")]
    Heat2d,
    /// A population on a line that grows by itself, mobile agents
    Reaction,
    /// Something that a flow carries past an obstacle
    Channel,
    /// Two coupled fields in which waves run
    Excitable,
}

impl Like {
    fn text(self) -> &'static str {
        match self {
            Self::Heat2d => include_str!("templates/heat-2d.toml"),
            Self::Reaction => include_str!("templates/reaction.toml"),
            Self::Channel => include_str!("templates/channel.toml"),
            Self::Excitable => include_str!("templates/excitable.toml"),
        }
    }
}

pub fn new(args: &NewArgs) -> anyhow::Result<()> {
    let name = args.name.strip_suffix(".toml").unwrap_or(&args.name);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        bail!("'{name}' is no name for a field; take at most 32 letters, digits and dashes");
    }
    let file_name = format!("{name}.toml");
    let path = match args.out.as_os_str() == "." {
        true => PathBuf::from(file_name),
        false => args.out.join(file_name),
    };
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            anyhow::anyhow!(
                "{} is there already; choose another name, or remove it first",
                path.display()
            )
        }
        _ => anyhow::anyhow!("cannot write {}: {error}", path.display()),
    })?;
    file.write_all(args.like.text().replace("NAME", name).as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    let shown = path.display();
    print(&format!(
        "wrote {shown}\n\n  Every line of it is explained. Change it, then:\n  agent-sim check {shown}     is it sound?\n  agent-sim run {shown}       see what it does\n  trainer train {shown}       learn to control it\n"
    ))
}
