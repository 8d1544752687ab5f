//! The promises between crates; see `tests/`.
