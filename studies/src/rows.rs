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

/// A row's columns; the last may have commas in it.
pub(crate) fn columns<const N: usize>(line: &'static str) -> anyhow::Result<[&'static str; N]> {
    let columns: Vec<&str> = line.splitn(N, ',').collect();
    let found = columns.len();
    let columns = columns.try_into().ok();
    columns.with_context(|| format!("{found} columns instead of {N}"))
}

/// A finite number above zero.
pub(crate) fn positive(text: &str, what: &'static str) -> anyhow::Result<f64> {
    let value: f64 = text.parse().context(what)?;
    ensure!(
        value.is_finite() && value > 0.0,
        "{what}: not finite and above zero"
    );
    Ok(value)
}

/// The same, or nothing where it is not known.
pub(crate) fn positive_if_known(text: &str, what: &'static str) -> anyhow::Result<Option<f64>> {
    match text {
        "" => Ok(None),
        text => positive(text, what).map(Some),
    }
}

/// A mean error: infinite where a field blew up.
pub(crate) fn error(text: &str) -> anyhow::Result<f64> {
    match text {
        "inf" => Ok(f64::INFINITY),
        text => positive(text, "error"),
    }
}

/// What is wrong with rows that are read in a test.
#[cfg(test)]
pub(crate) fn complaint<T: std::fmt::Debug>(
    read: impl Fn(&'static str) -> anyhow::Result<Vec<T>>,
    head: &str,
    rows: &str,
) -> String {
    let text: &'static str = format!("{head}\n{rows}\n").leak();
    format!("{:#}", read(text).expect_err(rows))
}
