//! What the fuzz targets share: the fuzzer's bytes as a [`script`], an agent that [`play`]s it, and
//! the [`oracle`] that says what no input may make an agent do.
//!
//! `parse` is about policies, `step` about what good policies are shown, `frame` about what comes
//! over a line. `cargo xtask fuzz` runs them; `cargo fuzz run parse` in `agent-core` does too.

pub mod blobs;
pub mod oracle;
pub mod play;
#[path = "../../tests/sample/mod.rs"]
pub mod sample;
pub mod script;
