//! The eight problems of the paper. Each file says everything about its problem that is a fact.

use crate::{NoProblem, Problem};

/// Hands the names of the published problems' files to the macro `$then`, in the order of the results
/// table: the one list of them, which this crate declares its modules from, and the trainer its own.
#[macro_export]
macro_rules! published {
    ($then:ident) => {
        $then! {
            heat_1d
            fkpp_1d
            heat_2d
            heat_2d_obstacles
            ks_1d
            ks_2d
            turbulence_2d
            density_2d
        }
    };
}

macro_rules! declare {
    ($($file:ident)*) => {
        $(pub mod $file;)*

        /// All of them, in the order of the results table.
        pub static ALL: &[&Problem] = &[$(&$file::PROBLEM),*];
    };
}

published!(declare);

/// Those that can be measured: with a test set, tuned feedback and a policy that ships.
pub fn measured() -> impl Iterator<Item = &'static Problem> {
    let complete = |p: &Problem| p.test_set.is_some() && p.baseline.is_some() && p.policy.is_some();
    ALL.iter().copied().filter(move |problem| complete(problem))
}

/// The published problem of that name.
pub fn by_name(name: &str) -> Result<&'static Problem, NoProblem> {
    crate::Problems::published().by_name(name)
}
