//! `reproduce`: every claim, measured again.

use anyhow::{Context, bail};
use artifacts::output::print;
use artifacts::shard::Shard;
use clap::Parser;
use problem::limit;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use studies::provenance::{Provenance, revision};
use studies::runner::ShardDone;
use studies::study::ALL;
use studies::study::own_field::OwnField;
use studies::write::Pages;
use studies::{Mode, Scope, Study, runner};

/// Measures every claim about the shipped policies again and writes tables, CSV and pictures.
///
/// Can be interrupted at any time: it goes on where it stopped, and computes only what has changed.
#[derive(Parser)]
#[command(
    name = "reproduce",
    version,
    after_help = "\
Examples:
  reproduce --quick                          all studies with few episodes: under a minute
  reproduce --full                           all studies, into docs/results: nine minutes on 16 cores
  reproduce --full cardinality failure       these two
  reproduce --full --shard 3/16              the third of sixteen shards of their cells; without it, the pages
  reproduce --quick --policies runs/new      other policies: PROBLEM.policy in that folder
  reproduce --full regret --policies runs/new --out out/new
                                             their errors, cell by cell beside the best known
  reproduce --problem my-plate.toml          a field of your own: swarm sizes, failures, noise
  reproduce --problem my-plate.toml --policy my.policy --full failure
                                             one of these, with a policy that lies elsewhere"
)]
struct Cli {
    /// Few points and episodes (default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All points, 50 episodes each
    #[arg(long)]
    full: bool,
    /// Studies to make [default: all]
    #[arg(value_name = "STUDY", value_parser = named)]
    studies: Vec<Named>,
    /// Folder for the results [default: docs/results, out/results-quick with --quick,
    /// out/results-NAME with --problem]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder for finished cells and drawn episodes
    #[arg(long, value_name = "DIR", default_value = "out/reproduce")]
    cache: PathBuf,
    /// Compute only these cells, e.g. 3/16: the third of sixteen shards, which may all share a --cache at a
    /// time; the same command without --shard then writes the pages
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Folder with PROBLEM.policy of each problem [default: the shipped policies]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// File that describes a field of your own, to study in place of the published problems:
    /// cardinality, failure, noise
    #[arg(long, value_name = "FILE", conflicts_with = "policies")]
    problem: Option<PathBuf>,
    /// Its policy [default: the one beside the file, if there is one]
    #[arg(long, value_name = "FILE", requires = "problem")]
    policy: Option<PathBuf>,
    /// Seed of fresh episodes and of faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Revision that results name [default: that of the source tree, if it is there]
    #[arg(long, value_name = "HASH")]
    commit: Option<String>,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy)]
struct Named(&'static dyn Study);

fn named(name: &str) -> Result<Named, String> {
    let found = ALL.iter().find(|study| study.name() == name);
    found.map(|study| Named(*study)).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|study| study.name()).collect();
        format!("there is no such study; choose among: {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    match cli.threads {
        None => {}
        Some(0) => bail!("--threads 0 leaves nobody to work; give 1 or more"),
        Some(count) => {
            limit::THREADS.check(count)?;
            let threads = rayon::ThreadPoolBuilder::new().num_threads(count);
            threads
                .build_global()
                .with_context(|| format!("cannot start {count} threads; give --threads fewer"))?;
        }
    }
    let commit = cli.commit.clone().unwrap_or_else(revision);
    if let Some(file) = &cli.problem {
        return run_own(cli, file, commit);
    }
    let (mode, out) = match cli.full {
        true => (Mode::Full, "docs/results"),
        false => (Mode::Quick, "out/results-quick"),
    };
    let out = cli.out.clone().unwrap_or_else(|| out.into());
    let chosen: Vec<&dyn Study> = ALL
        .iter()
        .copied()
        .filter(|study| {
            let asked = cli.studies.iter();
            cli.studies.is_empty() || asked.clone().any(|Named(s)| s.name() == study.name())
        })
        .collect();
    let scope = Scope::new(mode, cli.seed, cli.policies.clone(), commit);
    if let Some(shard) = cli.shard {
        return run_shard(cli, shard, &chosen, &scope);
    }
    let provenance = Provenance::here(&scope)?;
    let pages = Pages::new(&out)?;
    runner::run(&chosen, &scope, &provenance, &cli.cache, &pages)?;
    print(&format!("{}\n", out.join("README.md").display()))?;
    Ok(())
}

/// The studies of a field of one's own.
fn run_own(cli: &Cli, file: &Path, commit: String) -> anyhow::Result<()> {
    let field = OwnField::read(file, cli.policy.as_deref())?;
    let asked: Vec<&str> = cli
        .studies
        .iter()
        .map(|Named(study)| study.name())
        .collect();
    let studies = field.studies(&asked)?;
    let chosen: Vec<&dyn Study> = studies.iter().map(|study| &**study).collect();
    let mode = match cli.full {
        true => Mode::Full,
        false => Mode::Quick,
    };
    let scope = Scope::new(mode, cli.seed, None, commit);
    if let Some(shard) = cli.shard {
        return run_shard(cli, shard, &chosen, &scope);
    }
    let provenance = Provenance::of_file(&scope, &file.display().to_string(), &field);
    let usual = PathBuf::from(format!("out/results-{}", field.problem().name));
    let out = cli.out.clone().unwrap_or(usual);
    let pages = Pages::new(&out)?;
    runner::run(&chosen, &scope, &provenance, &cli.cache, &pages)?;
    print(&format!("{}\n", out.join("README.md").display()))?;
    Ok(())
}

/// A shard of the studies' cells; pages are for who has all of them.
fn run_shard(cli: &Cli, shard: Shard, studies: &[&dyn Study], scope: &Scope) -> anyhow::Result<()> {
    let ShardDone { cells, missing } = runner::run_shard(studies, scope, &cli.cache, shard)?;
    let left = match missing {
        0 => "all cells are there: the same command without --shard writes the pages".to_owned(),
        _ => format!("{missing} cells are missing, which are other shards' to compute"),
    };
    let cache = cli.cache.display();
    print(&format!(
        "shard {shard}: {cells} cells in {cache}\n{left}\n"
    ))?;
    Ok(())
}
