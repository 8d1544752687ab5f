//! Where agents start: even lines and lattices.

/// `count` values evenly from `low` to `high`, both included; a lone one stands in the middle.
pub fn evenly(count: usize, [low, high]: [f64; 2]) -> impl Iterator<Item = f64> {
    (0..count).map(move |i| match count {
        1 => 0.5 * (low + high),
        _ => low + (high - low) * i as f64 / (count - 1) as f64,
    })
}

/// The smallest square lattice with room for `agents`, even from the low to the high end of each
/// axis' range, filled along axis 1 first; its last places stay empty if `agents` is not a square.
pub fn lattice(agents: usize, ranges: [[f64; 2]; 2]) -> Vec<[f64; 2]> {
    let side = (1..).find(|side| side * side >= agents).unwrap_or(1);
    evenly(side, ranges[0])
        .flat_map(|x| evenly(side, ranges[1]).map(move |y| [x, y]))
        .take(agents)
        .collect()
}

/// The first `agents` cell centres of the smallest square lattice that holds so many, on a square
/// with sides of `length`; axis 1 runs faster.
pub fn cell_centres(agents: usize, length: f64) -> Vec<[f64; 2]> {
    let side = (0..).find(|side| side * side >= agents).unwrap_or(0);
    (0..agents)
        .map(|i| [i / side, i % side].map(|cell| (cell as f64 + 0.5) / side as f64 * length))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lattice_reaches_both_ends_and_a_lone_agent_stands_in_the_middle() {
        let ranges = [[0.0, 1.0], [0.0, 3.0]];
        let four = [[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]];
        assert_eq!(lattice(4, ranges), four);
        assert_eq!(lattice(3, ranges), four[..3]);
        assert_eq!(lattice(1, ranges), [[0.5, 1.5]]);
        assert!(lattice(0, ranges).is_empty());
    }

    #[test]
    fn lattices_are_as_small_as_they_can_be() {
        // Ten agents need four to a side: neighbours a third of the range apart.
        let ten = lattice(10, [[0.0, 3.0]; 2]);
        assert_eq!((ten.len(), ten[1], ten[9]), (10, [0.0, 1.0], [2.0, 1.0]));
    }
}
