//! Every claim about the shipped policies, measured again by one command: `cargo xtask reproduce`.
//!
//! 1. A [`Study`] lists its [`Cell`](cell::Cell)s: pieces of work that each give a few figures, e.g.
//!    the errors of one swarm in fifty episodes. Most are a [`SwarmWork`](swarm_work::SwarmWork): a problem in some
//!    [`Setting`](swarm_work::Setting), a controller, a number of agents, faults, episodes.
//! 2. The [`runner`] draws the episodes ([`shelf`]), runs what is not in the [`store`] yet, by episode
//!    on all cores, and stores each finished cell under a hash of all that decides it. So an
//!    interrupted run goes on, and a second one computes only what has changed.
//! 3. The study turns the cells' [`Outcome`](cell::Outcome)s into [`Findings`](findings::Findings):
//!    tables, CSV, pictures, and [`Bar`](findings::Bar)s that are met or missed. [`write`](mod@write)
//!    makes files of them, with their [`provenance`].
//!
//! # How to add a study
//!
//! Write `study/<name>.rs` with a unit struct that implements [`Study`] and add it to [`study::ALL`].
//! `cells` gives every cell a name of its own, by which `conclude` finds its outcome:
//!
//! ```
//! use studies::cell::{Cell, Outcomes};
//! use studies::findings::{Bar, Findings, Table};
//! use studies::swarm_work::{Controls, Setting, SwarmWork};
//! use studies::{Scope, Study};
//!
//! struct Halved;
//!
//! impl Study for Halved {
//!     fn name(&self) -> &'static str {
//!         "halved"
//!     }
//!     fn title(&self) -> &'static str {
//!         "Half as many agents"
//!     }
//!     fn cells(&self, scope: &Scope) -> anyhow::Result<Vec<Cell>> {
//!         let trial = SwarmWork {
//!             agents: 4,
//!             ..SwarmWork::fresh(scope, Setting::named("heat-1d")?, Controls::Nobody)
//!         };
//!         Ok(vec![Cell::new("heat-1d, 4", trial)])
//!     }
//!     fn conclude(&self, _: &Scope, outcomes: &Outcomes) -> anyhow::Result<Findings> {
//!         let error = outcomes.of("heat-1d, 4")?.figure("headline");
//!         let mut findings = Findings::default();
//!         findings.tables.push(Table::new("Errors", &["agents", "error"], vec![vec!["4".into(), error.text()]]));
//!         findings.bars.push(Bar::at_most("heat-1d", error.mean, 1e-3).because("four are too few"));
//!         Ok(findings)
//!     }
//! }
//! ```
//!
//! Work that is no trial implements [`Work`](cell::Work). Its key must name all that decides its
//! figures; the sources of the simulator are added to it, those of this crate are not: work with
//! arithmetic of its own puts a revision into its key, to be raised with every change.
#![forbid(unsafe_code)]

pub mod cell;
pub mod findings;
pub mod fit;
pub mod known;
pub mod oracle;
pub mod paper;
pub mod plot;
pub mod provenance;
mod rows;
pub mod runner;
pub mod shelf;
pub mod store;
pub mod study;
pub mod study_policy;
pub mod swarm_work;
pub mod write;

pub use study::{Mode, Scope, Study};
