//! Runs what is not stored yet.

use crate::cell::{Cell, Outcome, Outcomes, Work};
use crate::findings::Findings;
use crate::provenance::Provenance;
use crate::shelf::{Draw, Shelf};
use crate::store::{Store, address};
use crate::study::ALL;
use crate::write::Pages;
use crate::{Scope, Study};
use anyhow::{Context, bail};
use artifacts::output::OutputFolder;
use artifacts::shard::Shard;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bar counts microseconds of work.
const UNIT: u64 = 1000;

/// Runs the studies one after the other, and writes each as it is done.
pub fn run(
    studies: &[&dyn Study],
    scope: &Scope,
    provenance: &Provenance,
    cache: &Path,
    pages: &Pages,
) -> anyhow::Result<()> {
    // Two that share their cells would compute them twice.
    let _claimed = OutputFolder::claim(cache).context("--cache")?;
    let store = Store::new(&cache.join("cells"))?;
    let mut shelf = Shelf::new(&cache.join("episodes"))?;
    // All is checked before the first cell is run.
    let all = all_cells(studies, scope)?;
    let mut counted = HashSet::new();
    let todo = all.iter().flat_map(|(_, cells)| missing(cells, &store));
    let todo: Vec<&Cell> = todo
        .filter(|cell| counted.insert(address(&*cell.work)))
        .collect();
    let bar = bar_for(&todo)?;
    for (study, cells) in all {
        let todo = missing(&cells, &store);
        tell(
            &bar,
            &format!(
                "{}: {} cells, {} of them stored",
                study.name(),
                cells.len(),
                cells.len() - todo.len()
            ),
        );
        let draws: Vec<Draw> = todo.iter().filter_map(|cell| cell.work.draw()).collect();
        draw(&mut shelf, &draws, &bar)?;
        bar.set_message(study.name());
        compute(&todo, &shelf, &store, &bar)?;
        let mut outcomes = Outcomes::default();
        for cell in &cells {
            let outcome = store.find(&*cell.work);
            let outcome = outcome.with_context(|| format!("{} got lost", cell.name))?;
            outcomes.insert(cell.name.clone(), outcome);
        }
        let findings: Findings = study
            .conclude(scope, &outcomes)
            .with_context(|| study.name())?;
        pages.write(study, &findings, provenance)?;
        tell(&bar, &format!("{}: {}", study.name(), findings.verdict()));
    }
    bar.finish_and_clear();
    // Pages of the published problems may be there from other runs.
    match provenance.file {
        None => pages.write_index(ALL, provenance),
        Some(_) => pages.write_index(studies, provenance),
    }
}

/// What a shard did.
pub struct ShardDone {
    /// Cells that are its own, and stored now.
    pub cells: usize,
    /// Cells of others that are not.
    pub missing: usize,
}

/// Computes a shard of the cells of all studies: the dearest are dealt first, one to each, so that shards
/// are about as long. Several may work at a time: a cell is stored whole, and whoever stores it stores the
/// same.
pub fn run_shard(
    studies: &[&dyn Study],
    scope: &Scope,
    cache: &Path,
    shard: Shard,
) -> anyhow::Result<ShardDone> {
    let _shared = OutputFolder::share(cache, shard).context("--cache")?;
    let store = Store::new(&cache.join("cells"))?;
    let mut shelf = Shelf::new(&cache.join("episodes"))?;
    let all = all_cells(studies, scope)?;
    let mut seen = HashSet::new();
    let cells = all.iter().flat_map(|(_, cells)| cells);
    let mut cells: Vec<&Cell> = cells
        .filter(|cell| seen.insert(address(&*cell.work)))
        .collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(whole_cost(cell)));
    let own = shard.parts().map_while(|part| cells.get(part).copied());
    let todo: Vec<&Cell> = own
        .filter(|cell| store.find(&*cell.work).is_none())
        .collect();
    let bar = bar_for(&todo)?;
    let draws: Vec<Draw> = todo.iter().filter_map(|cell| cell.work.draw()).collect();
    draw(&mut shelf, &draws, &bar)?;
    bar.set_message(format!("shard {shard}"));
    compute(&todo, &shelf, &store, &bar)?;
    bar.finish_and_clear();
    let missing = cells.iter().filter(|cell| !store.has(&*cell.work));
    Ok(ShardDone {
        cells: shard.count(cells.len()),
        missing: missing.count(),
    })
}

/// The cells of all studies.
fn all_cells<'s>(
    studies: &[&'s dyn Study],
    scope: &Scope,
) -> anyhow::Result<Vec<(&'s dyn Study, Vec<Cell>)>> {
    let mut all = Vec::new();
    for study in studies {
        let cells = study.cells(scope).with_context(|| study.name())?;
        let mut names = HashSet::new();
        if let Some(twice) = cells.iter().find(|cell| !names.insert(&cell.name)) {
            bail!("{}: two cells are called '{}'", study.name(), twice.name);
        }
        all.push((*study, cells));
    }
    Ok(all)
}

/// About how long a cell takes, in nanoseconds.
fn whole_cost(cell: &Cell) -> u64 {
    cell.work.cost() * cell.work.pieces() as u64
}

/// A bar for these cells.
fn bar_for(cells: &[&Cell]) -> anyhow::Result<ProgressBar> {
    let cost = |cell: &&Cell| cell.work.cost() / UNIT * cell.work.pieces() as u64;
    let bar = ProgressBar::new(cells.iter().map(cost).sum());
    bar.set_style(ProgressStyle::with_template(
        "{percent:>3} % {wide_bar} {eta} left · {msg}",
    )?);
    Ok(bar)
}

/// Cells that are not stored, each once, the dearest first: cheap ones fill the gaps at the end.
fn missing<'a>(cells: &'a [Cell], store: &Store) -> Vec<&'a Cell> {
    let mut seen = HashSet::new();
    let mut todo: Vec<&Cell> = cells
        .iter()
        .filter(|cell| store.find(&*cell.work).is_none() && seen.insert(address(&*cell.work)))
        .collect();
    todo.sort_by_key(|cell| std::cmp::Reverse(cell.work.cost()));
    todo
}

fn draw(shelf: &mut Shelf, draws: &[Draw], bar: &ProgressBar) -> anyhow::Result<()> {
    let missing = shelf.missing(draws);
    let drawn = AtomicUsize::new(0);
    shelf.stock(draws, &|| {
        let drawn = 1 + drawn.fetch_add(1, Ordering::Relaxed);
        bar.set_message(format!("episodes {drawn}/{missing}"));
    })
}

/// Runs all pieces of the cells, in order and on all cores, and stores each cell with its last piece.
fn compute(cells: &[&Cell], shelf: &Shelf, store: &Store, bar: &ProgressBar) -> anyhow::Result<()> {
    struct Open<'a> {
        work: &'a dyn Work,
        rows: Vec<Option<Option<Vec<f64>>>>,
        left: usize,
    }
    let open: Vec<Mutex<Open<'_>>> = cells
        .iter()
        .map(|cell| {
            let pieces = cell.work.pieces();
            Mutex::new(Open {
                work: &*cell.work,
                rows: vec![None; pieces],
                left: pieces,
            })
        })
        .collect();
    let pieces = cells.iter().enumerate();
    let pieces: Vec<(usize, usize)> = pieces
        .flat_map(|(cell, c)| (0..c.work.pieces()).map(move |piece| (cell, piece)))
        .collect();
    let next = AtomicUsize::new(0);
    // Not a parallel iterator over the pieces: that would begin at many cells and finish all of
    // them late.
    (0..rayon::current_num_threads())
        .into_par_iter()
        .try_for_each(|_| -> anyhow::Result<()> {
            while let Some(&(cell, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let work = &*cells[cell].work;
                let row = work
                    .run(piece, shelf)
                    .with_context(|| cells[cell].name.clone())?;
                // Infinite and undefined figures cannot be stored, and say no more than this.
                let row = row.filter(|row| row.iter().all(|figure| figure.is_finite()));
                bar.inc(work.cost() / UNIT);
                let mut open = open[cell].lock().expect("nobody panics while holding it");
                open.rows[piece] = Some(row);
                open.left -= 1;
                if open.left == 0 {
                    let rows = std::mem::take(&mut open.rows);
                    let outcome = Outcome {
                        figures: open.work.figures(),
                        rows: rows.into_iter().flatten().collect(),
                    };
                    store.keep(open.work, &outcome)?;
                }
            }
            Ok(())
        })
}

/// Writes a line above the bar; without a terminal the bar is hidden and the line all there is.
fn tell(bar: &ProgressBar, line: &str) {
    // A reader that has gone away must not end a run.
    bar.suspend(|| {
        let _ = writeln!(std::io::stderr(), "{line}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Counts how often it is run; fails in its last piece while `broken`.
    struct Counted {
        key: u64,
        runs: Arc<AtomicUsize>,
        broken: bool,
    }

    impl Work for Counted {
        fn key(&self) -> serde_json::Value {
            self.key.into()
        }
        fn pieces(&self) -> usize {
            3
        }
        fn cost(&self) -> u64 {
            // The first ones are dearer and come first.
            10_000 - self.key
        }
        fn figures(&self) -> Vec<String> {
            vec!["value".to_owned()]
        }
        fn run(&self, piece: usize, _: &Shelf) -> anyhow::Result<Option<Vec<f64>>> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            anyhow::ensure!(!(self.broken && piece == 2), "out of luck");
            Ok(Some(vec![(10 * self.key) as f64 + piece as f64]))
        }
    }

    #[test]
    fn an_interrupted_run_goes_on_with_the_cells_that_are_not_finished() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("cells")).unwrap();
        let shelf = Shelf::new(&folder.path().join("episodes")).unwrap();
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let one_thread = one_thread.unwrap();
        let run = |broken: Option<u64>| {
            let runs = Arc::new(AtomicUsize::new(0));
            let cell = |key: u64| {
                let runs = runs.clone();
                let broken = broken == Some(key);
                Cell::new(format!("cell {key}"), Counted { key, runs, broken })
            };
            // The last one is the first once more.
            let cells: Vec<Cell> = [0, 1, 2, 0].map(cell).into();
            let todo = missing(&cells, &store);
            let done =
                one_thread.install(|| compute(&todo, &shelf, &store, &ProgressBar::hidden()));
            (done, runs.load(Ordering::Relaxed), cells)
        };
        let (done, runs, _) = run(Some(1));
        let message = format!("{:#}", done.unwrap_err());
        assert!(
            message.contains("cell 1") && message.contains("out of luck"),
            "{message}"
        );
        assert_eq!(runs, 6);
        let (done, runs, cells) = run(None);
        done.unwrap();
        assert_eq!(runs, 6, "two cells were left");
        let outcome = store.find(&*cells[2].work).unwrap();
        assert_eq!(outcome.values("value"), [20.0, 21.0, 22.0]);
        assert_eq!(run(None).1, 0);
    }
}
