//! What is trained of the published problems: for each its adjoint, its recipe and its kernels.

use crate::entry::{Entries, Entry};

macro_rules! declare {
    ($($file:ident)*) => {
        $(pub mod $file;)*

        /// All of them, in the order of the results table.
        pub static ENTRIES: &[&Entry] = &[$(&$file::ENTRY),*];
    };
}

problem::published!(declare);

/// All of them, to be found by name.
pub fn entries() -> Entries<'static> {
    Entries::new(ENTRIES).expect("each has a name of its own")
}
