//! Nothing: see `[patch]` in the manifest above.
