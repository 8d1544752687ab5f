//! `trainer import`.

use crate::entry::Entries;
use agent_core::policy::Encoding;
use anyhow::{Result, ensure};
use artifacts::import::{Assumed, import};
use artifacts::output::write_whole;
use artifacts::{policy_file, say};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trainer import net.onnx --problem heat-1d -o my.policy
  trainer import net.safetensors --problem heat-1d --window 12 --activation relu -o my.policy
  trainer import net.onnx --problem my-plate.toml --weights int8 -o small.policy
docs/import.md says which networks can be taken.")]
pub struct Arguments {
    /// The network: a file of ONNX (.onnx) or of safetensors (.safetensors).
    network: PathBuf,
    /// The problem that it is for: a name, or the file of a described field.
    #[arg(long)]
    problem: String,
    /// The blob to write.
    #[arg(short, long)]
    output: PathBuf,
    /// Cells of the window that it looks at, along each axis [default: the problem's].
    #[arg(long, value_name = "CELLS")]
    window: Option<usize>,
    /// Cells of the coarse picture of the whole that it reads behind the window [default: none].
    #[arg(long, value_name = "ROWS[,COLUMNS]", value_delimiter = ',')]
    wide: Vec<u8>,
    /// Numbers that it remembers: read behind the rest, with a push and a gate for each before its outputs.
    #[arg(long, value_name = "NUMBERS", default_value_t = 0)]
    memory: u8,
    /// Of the waves of the position that its trunk reads [default: the file's, or 1,2,4,8].
    #[arg(long, value_name = "F,F…", value_delimiter = ',')]
    frequencies: Vec<f32>,
    /// How weights are stored, f32 or int8.
    #[arg(long, value_name = "FORM", default_value = "f32", value_parser = policy_file::encoding)]
    weights: Encoding,
    /// What the layers of a safetensors file end in: tanh, relu or identity [default: the file's, or tanh].
    #[arg(long)]
    activation: Option<String>,
    /// The norm of its branch's layers: none or soft [default: the file's, or none].
    #[arg(long)]
    norm: Option<String>,
    /// How its branch and trunk are joined: concatenate or multiply [default: the file's, or concatenate].
    #[arg(long)]
    fusion: Option<String>,
}

/// Writes the policy and says how far it is from the network.
pub fn run(arguments: &Arguments, entries: &Entries) -> Result<()> {
    let problem = entries.by_name(&arguments.problem)?.problem;
    let onnx = arguments
        .network
        .extension()
        .is_some_and(|kind| kind == "onnx");
    let words = [&arguments.activation, &arguments.norm, &arguments.fusion];
    ensure!(
        !onnx || words.iter().all(|word| word.is_none()),
        "ONNX says itself what its layers end in and what joins them; leave --activation, --norm and --fusion out"
    );
    let wide = match arguments.wide[..] {
        [] => None,
        [cells] => Some([cells, 1]),
        [rows, columns] => Some([rows, columns]),
        _ => anyhow::bail!("--wide has one or two numbers of cells, like 8,8"),
    };
    let assumed = Assumed {
        window: arguments.window,
        wide,
        memory: arguments.memory,
        frequencies: (!arguments.frequencies.is_empty()).then(|| arguments.frequencies.clone()),
        encoding: arguments.weights,
        activation: arguments.activation.clone(),
        norm: arguments.norm.clone(),
        fusion: arguments.fusion.clone(),
    };
    let imported = import(&arguments.network, problem, &assumed)?;
    let blob = imported.file.bytes();
    write_whole(&arguments.output, blob)?;
    let output = arguments.output.display();
    say!("{output}: {} bytes, {}", blob.len(), imported.difference)?;
    if !imported.ends_in_tanh {
        say!(
            "the network does not end in tanh; agents do: force and velocities are limit · tanh(output)"
        )?;
    }
    say!("look inside with: trainer inspect {output}")?;
    Ok(())
}
