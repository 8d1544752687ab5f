//! Runs what is not stored yet.

use crate::cell::{Cell, Outcome, Outcomes, Work};
use crate::findings::Findings;
use crate::provenance::Provenance;
use crate::shelf::{Draw, Shelf};
use crate::store::{Store, address};
use crate::write::Pages;
use crate::{Scope, Study};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bar counts thousands of operations: what a whole run takes must fit its arithmetic.
const UNIT: u64 = 1000;

/// Runs the studies one after the other, and writes each as it is done.
pub fn run(
    studies: &[&dyn Study],
    scope: &Scope,
    provenance: &Provenance,
    cache: &Path,
    pages: &Pages,
) -> anyhow::Result<()> {
    let store = Store::new(&cache.join("cells"))?;
    let mut shelf = Shelf::new(&cache.join("episodes"))?;
    // All is checked before the first cell is run.
    let mut all = Vec::new();
    let mut total = 0;
    let mut counted = HashSet::new();
    for study in studies {
        let cells = study.cells(scope).with_context(|| study.name())?;
        for cell in missing(&cells, &store) {
            if counted.insert(address(&*cell.work)) {
                total += cell.work.cost() / UNIT * cell.work.pieces() as u64;
            }
        }
        all.push((*study, cells));
    }
    let bar = ProgressBar::new(total);
    bar.set_style(ProgressStyle::with_template(
        "{percent:>3} % {wide_bar} {eta} left · {msg}",
    )?);
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
            outcomes.insert(cell.name.clone(), outcome)?;
        }
        let findings: Findings = study
            .conclude(scope, &outcomes)
            .with_context(|| study.name())?;
        pages.write(study, &findings, provenance)?;
        tell(&bar, &format!("{}: {}", study.name(), findings.verdict()));
    }
    bar.finish_and_clear();
    pages.write_index(provenance)
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
    bar.suspend(|| eprintln!("{line}"));
}
