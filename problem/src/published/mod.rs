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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actuate::Kernel;
    use crate::test_set::EpisodeSet;

    /// The first test episode after five control steps under two agents that push against each other.
    fn pushed(problem: &Problem) -> Vec<f64> {
        let grid = &problem.grid;
        let place =
            |shares: [f64; 2]| [0, 1].map(|axis| grid.low[axis] + shares[axis] * grid.extent(axis));
        let half = 0.5 * problem.actuation.force_max;
        let mut force = vec![0.0; problem.components() * grid.len()];
        let mut kernel = Kernel::new(problem);
        kernel.add(&mut force, place([0.3, 0.6]), &[half, 0.25 * half]);
        kernel.add(&mut force, place([0.71, 0.2]), &[-half, half]);
        let episode = EpisodeSet::Table.episode(problem, 0, 0).unwrap();
        let mut field: Vec<f64> = episode.initial.iter().map(|&z| z.into()).collect();
        let mut stepper = (problem.stepper)(problem, 1);
        (0..5).for_each(|_| stepper.step(&mut field, &force));
        field
    }

    /// FNV-1a of the bits.
    fn digest(field: &[f64]) -> u64 {
        let bytes = field.iter().flat_map(|z| z.to_bits().to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Whatever the processor, its vectors, the system's library of functions and the compiler's mood.
    /// Who changes a scheme on purpose writes the new digests down.
    #[test]
    fn fields_have_the_same_bits_on_every_machine() {
        let expected = [
            ("heat-1d", 0x09a9_1c9b_6967_eb17),
            ("fkpp-1d", 0xcf3d_e459_9838_1210),
            ("heat-2d", 0x883a_5b18_3c58_742f),
            ("heat-2d-obstacles", 0x883a_5b18_3c58_742f),
            ("ks-1d", 0x48e8_adcd_633b_1d6c),
            ("ks-2d", 0x9833_867d_8ff8_c72b),
            ("turbulence-2d", 0x2c1a_ccc8_ca1a_7bef),
            ("density-2d", 0xce55_ac16_2692_df78),
        ];
        let found: Vec<_> = (ALL.iter())
            .map(|problem| (problem.name, digest(&pushed(problem))))
            .collect();
        assert_eq!(found, expected, "{found:#018x?}");
    }
}
