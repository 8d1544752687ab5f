//! Figures that were measured elsewhere, as rows of a CSV in `data`.

use anyhow::{Context, ensure};

/// What `row` makes of every line below the head; an error names the line.
pub(crate) fn read<T>(
    text: &'static str,
    head: &str,
    row: impl Fn(&'static str) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut lines = text.lines();
    ensure!(lines.next() == Some(head), "the head is not '{head}'");
    lines
        .map(|line| row(line).with_context(|| line.to_owned()))
        .collect()
}
