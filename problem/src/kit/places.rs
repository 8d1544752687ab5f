//! Where agents of a described problem are, or begin.

use super::domain::Domain;
use crate::placement::evenly;

/// Where agents are.
#[derive(Debug, Clone)]
pub enum Places {
    /// Even, between two corners.
    Lattice {
        /// How many along each axis in the described swarm.
        counts: [usize; 2],
        /// The corners.
        ranges: [[f64; 2]; 2],
    },
    /// One by one.
    List(Vec<[f64; 2]>),
}

impl Places {
    /// Agents in the described swarm.
    pub fn count(&self) -> usize {
        match self {
            Self::Lattice { counts, .. } => counts[0] * counts[1],
            Self::List(list) => list.len(),
        }
    }

    /// Whether there is room for the described swarm within the domain.
    pub fn fit(&self, domain: &Domain) -> bool {
        self.within(self.count(), domain).is_some()
    }

    /// Places for `agents` agents: those described where they are as many; otherwise some of them, or
    /// those of the smallest lattice that has room for all within the domain.
    pub fn of(&self, agents: usize, domain: &Domain) -> Vec<[f64; 2]> {
        self.within(agents, domain).unwrap_or_else(|| {
            // A corner of the domain with hardly any nodes has room for few: they share.
            let grid = domain.grid();
            let wet = (0..grid.len()).filter(|&node| domain.wet(node));
            spread(
                &wet.map(|node| grid.place(node)).collect::<Vec<_>>(),
                agents,
            )
        })
    }

    fn within(&self, agents: usize, domain: &Domain) -> Option<Vec<[f64; 2]>> {
        let axes = domain.grid().axes;
        let (ranges, shape) = match self {
            Self::List(list) if agents <= list.len() => return Some(spread(list, agents)),
            Self::List(_) => {
                let grid = domain.grid();
                let margin = |axis: usize| grid.extent(axis) / 12.0;
                let ranges = [0, 1].map(|a| [grid.low[a] + margin(a), grid.high[a] - margin(a)]);
                (ranges, [1.0; 2])
            }
            Self::Lattice { counts, ranges } if agents == self.count() => {
                let all = lattice(*counts, *ranges);
                if all.iter().all(|&place| is_inside(domain, place)) {
                    return Some(all);
                }
                (*ranges, counts.map(|n| n as f64))
            }
            Self::Lattice { counts, ranges } => (*ranges, counts.map(|n| n as f64)),
        };
        let mut side = 1;
        loop {
            // In the described shape as far as it goes.
            let along = |axis: usize| match axis < axes {
                true => (side as f64 * shape[axis] / shape[0].max(shape[axes - 1])).ceil() as usize,
                false => 1,
            };
            let room = along(0) * along(1);
            if room >= agents {
                let mut all = lattice([along(0), along(1)], ranges);
                all.retain(|&place| is_inside(domain, place));
                if all.len() >= agents {
                    return Some(spread(&all, agents));
                }
            }
            // Where so few of the places are within the domain, none may ever be.
            if room > 64 * agents + 4096 {
                return None;
            }
            side += 1 + side / 32;
        }
    }
}

/// So many of a list, evenly.
fn spread(list: &[[f64; 2]], agents: usize) -> Vec<[f64; 2]> {
    (0..agents)
        .map(|k| list[(2 * k + 1) * list.len() / (2 * agents)])
        .collect()
}

fn lattice(counts: [usize; 2], ranges: [[f64; 2]; 2]) -> Vec<[f64; 2]> {
    evenly(counts[0], ranges[0])
        .flat_map(|x| evenly(counts[1], ranges[1]).map(move |y| [x, y]))
        .collect()
}

/// Whether the node nearest to a place belongs to the domain.
pub fn is_inside(domain: &Domain, place: [f64; 2]) -> bool {
    let grid = domain.grid();
    let mut node = 0;
    for (axis, x) in place.into_iter().enumerate().take(grid.axes) {
        // On a ring the node nearest to the high end is the first.
        if !(grid.low[axis]..=grid.high[axis]).contains(&x) {
            return false;
        }
        let s = (x - grid.low[axis]) / grid.spacing(axis);
        node = node * grid.points[axis] + s.round() as usize % grid.points[axis];
    }
    domain.wet(node)
}
