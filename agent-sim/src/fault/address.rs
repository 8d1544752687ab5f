//! For whom a fault is meant.

use super::BadFault;
use crate::rig::LinkKind;
use std::fmt;
use std::str::FromStr;

/// The agents that a fault addresses.
#[derive(Debug, Clone, PartialEq)]
pub enum Who {
    /// Every agent.
    All,
    /// This share of them, rounded to whole agents and drawn by the run's seed.
    Fraction(f64),
    /// This share of them, likewise, but together: one that is drawn by the run's seed and those that
    /// start nearest to it.
    Cluster(f64),
    /// These.
    Ids(Ids),
    /// Whoever is there at the moment. Agents move in and out.
    Region(Region),
    /// Agents on boards.
    Boards {
        /// At the end of a link of this kind; `None` for any.
        link: Option<LinkKind>,
        /// This many of them, drawn by the run's seed; `None` for all.
        count: Option<usize>,
    },
}

/// Numbers of agents, written `0+3+10..20`; a range includes both its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// First and last of each range, as written.
    ranges: Vec<[usize; 2]>,
}

impl Ids {
    /// Those of a swarm of `agents`, in ascending order and each once.
    pub fn within(&self, agents: usize) -> Vec<usize> {
        let mut ids: Vec<usize> = self
            .ranges
            .iter()
            .flat_map(|&[first, last]| first..last.saturating_add(1).min(agents))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Refuses numbers that no agent has.
    pub(crate) fn check(&self, agents: usize) -> Result<(), BadFault> {
        let unknown = self.ranges.iter().map(|range| range[1]);
        match unknown.max().filter(|last| *last >= agents) {
            None => Ok(()),
            Some(id) => Err(BadFault::UnknownAgent { id, agents }),
        }
    }
}

impl FromIterator<usize> for Ids {
    fn from_iter<I: IntoIterator<Item = usize>>(ids: I) -> Self {
        let mut ranges: Vec<[usize; 2]> = Vec::new();
        for id in ids {
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == id => *last = id,
                _ => ranges.push([id, id]),
            }
        }
        Self { ranges }
    }
}

impl FromStr for Ids {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let range = |part: &str| -> Option<[usize; 2]> {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let range = [first.parse().ok()?, last.parse().ok()?];
            (range[0] <= range[1]).then_some(range)
        };
        let ranges: Option<Vec<_>> = text.split('+').map(range).collect();
        ranges
            .map(|ranges| Self { ranges })
            .ok_or_else(|| BadFault::Unreadable {
                parameter: "ids",
                text: text.to_owned(),
                wanted: "numbers of agents such as 0+3+10..20",
            })
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, [first, last]) in self.ranges.iter().enumerate() {
            let plus = if i == 0 { "" } else { "+" };
            match first == last {
                true => write!(f, "{plus}{first}")?,
                false => write!(f, "{plus}{first}..{last}")?,
            }
        }
        Ok(())
    }
}

/// A box in the problem's coordinates, rim included, written `0.2..0.6` or `0.2..0.6x0.1..0.4`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    low: [f64; 2],
    high: [f64; 2],
    axes: usize,
}

impl Region {
    /// Number of axes that the box has sides along.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Whether `position` lies in the box. In f32, as agents' positions are: the rim at 0.6 is where
    /// an agent at 0.6 stands.
    pub fn contains(&self, position: [f32; 2]) -> bool {
        (0..self.axes)
            .all(|axis| (self.low[axis] as f32..=self.high[axis] as f32).contains(&position[axis]))
    }

    /// Refuses boxes that are not part of the domain.
    pub(crate) fn check(&self, axes: usize, low: [f64; 2], high: [f64; 2]) -> Result<(), BadFault> {
        let region = *self;
        if self.axes != axes {
            return Err(BadFault::RegionAxes { region, axes });
        }
        let inside = (0..axes).all(|k| self.low[k] >= low[k] && self.high[k] <= high[k]);
        match inside {
            true => Ok(()),
            false => Err(BadFault::RegionOutside {
                region,
                domain: Self { low, high, axes },
            }),
        }
    }
}

impl FromStr for Region {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let side = |part: &str| -> Option<[f64; 2]> {
            let (low, high) = part.split_once("..")?;
            let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
            (low.is_finite() && high.is_finite() && low <= high).then_some([low, high])
        };
        let sides: Option<Vec<_>> = text.split('x').map(side).collect();
        match sides.as_deref() {
            Some(&[[low, high]]) => Ok(Self {
                low: [low, 0.0],
                high: [high, 0.0],
                axes: 1,
            }),
            Some(&[x, y]) => Ok(Self {
                low: [x[0], y[0]],
                high: [x[1], y[1]],
                axes: 2,
            }),
            _ => Err(BadFault::Unreadable {
                parameter: "region",
                text: text.to_owned(),
                wanted: "a box such as 0.2..0.6 or 0.2..0.6x0.1..0.4, lower ends first",
            }),
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for axis in 0..self.axes {
            let by = if axis == 0 { "" } else { "x" };
            write!(f, "{by}{}..{}", self.low[axis], self.high[axis])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_agents_include_both_ends_and_count_nobody_twice() {
        let ids: Ids = "3+0+2..4".parse().unwrap();
        assert_eq!(ids.within(10), [0, 2, 3, 4]);
        assert_eq!(ids.check(5), Ok(()));
        assert_eq!(
            ids.check(4),
            Err(BadFault::UnknownAgent { id: 4, agents: 4 })
        );
        for text in ["", "a", "3..1", "1..", "-1", "1++2", "1,2"] {
            assert!(text.parse::<Ids>().is_err(), "{text}");
        }
    }

    #[test]
    fn regions_include_their_rim_and_ignore_unused_axes() {
        let line: Region = "0.2..0.6".parse().unwrap();
        assert!(line.contains([0.2, 9.0]) && line.contains([0.6, -9.0]));
        assert!(!line.contains([0.6001, 0.0]) && !line.contains([f32::NAN, 0.0]));
        let plane: Region = "0.2..0.6x-1..1e-1".parse().unwrap();
        assert!(plane.contains([0.4, 0.1]) && !plane.contains([0.4, 0.2]));
        assert!(!plane.contains([0.1, 0.0]));
        for text in [
            "",
            "0.5",
            "0.6..0.2",
            "0..1x",
            "0..1x0..1x0..1",
            "NaN..1",
            "0..inf",
        ] {
            assert!(text.parse::<Region>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_region_fits_a_domain_that_it_fills() {
        let whole: Region = "0..1x0..1.25".parse().unwrap();
        assert_eq!(whole.check(2, [0.0; 2], [1.0, 1.25]), Ok(()));
        assert!(whole.check(2, [0.0; 2], [1.0, 1.0]).is_err());
        assert!(whole.check(1, [0.0; 2], [1.0, 1.25]).is_err());
    }
}
