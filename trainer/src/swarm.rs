//! How many agents the episodes of a training have.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Most agents that a swarm may have in training.
pub const MOST: usize = 4096;

/// A swarm's size: a number, or one that every episode draws anew. The logarithm of it is drawn evenly:
/// between 4 and 64 as many episodes have fewer than 16 agents as have more. On a plane, where agents
/// stand in squares, it is the square of a number that is drawn so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    least: usize,
    most: usize,
}

impl Size {
    /// Always this many.
    pub const fn of(agents: usize) -> Self {
        Self::between(agents, agents)
    }

    /// Always these many, each.
    pub const fn each<const N: usize>(agents: [usize; N]) -> [Self; N] {
        let (mut sizes, mut k) = ([Self::of(1); N], 0);
        while k < N {
            sizes[k] = Self::of(agents[k]);
            k += 1;
        }
        sizes
    }

    /// From `least` to `most`, both included.
    pub const fn between(least: usize, most: usize) -> Self {
        assert!(0 < least && least <= most && most <= MOST);
        Self { least, most }
    }

    /// Whether all draw the same.
    pub fn is_one_number(self) -> bool {
        self.least == self.most
    }

    /// The largest that is drawn.
    pub fn most(self) -> usize {
        self.most
    }

    /// Whether it may be drawn.
    pub fn contains(self, agents: usize) -> bool {
        (self.least..=self.most).contains(&agents)
    }

    /// The sizes that tell most about a policy: the ends, and `usual` if it lies between them.
    pub fn telling(self, axes: usize, usual: usize) -> Vec<usize> {
        let (low, high) = self.bases(axes);
        let ends = [low, high].map(|n| n.pow(self.power(axes)));
        let mut all = vec![ends[0], ends[1]];
        all.extend(Some(usual).filter(|&n| self.contains(n)));
        all
    }

    /// One for an episode on a line or a plane.
    pub fn draw(self, axes: usize, rng: &mut impl Rng) -> usize {
        let (low, high) = self.bases(axes);
        // Every number from `low` to `high` has the part of the scale up to the next one.
        let (from, to) = ((low as f64).ln(), ((high + 1) as f64).ln());
        let drawn = rng.random_range(from..to).exp() as usize;
        drawn.clamp(low, high).pow(self.power(axes))
    }

    /// Refuses a range without a size for this many axes.
    pub fn check(self, axes: usize) -> Result<(), NotASize> {
        let (low, high) = self.bases(axes);
        match low <= high {
            true => Ok(()),
            false => Err(NotASize(format!(
                "{self} holds no square number, and agents on a plane stand in squares; try {}",
                Self::between(high * high, low * low)
            ))),
        }
    }

    /// A single size is taken as it is; ranges on a plane hold squares.
    fn power(self, axes: usize) -> u32 {
        if axes == 2 && self.least < self.most {
            2
        } else {
            1
        }
    }

    fn bases(self, axes: usize) -> (usize, usize) {
        match self.power(axes) {
            1 => (self.least, self.most),
            _ => {
                let low = self.least.isqrt();
                (low + usize::from(low * low < self.least), self.most.isqrt())
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.is_one_number() {
            true => write!(f, "{}", self.least),
            false => write!(f, "{}..{}", self.least, self.most),
        }
    }
}

/// Why something is no swarm size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotASize(String);

impl FromStr for Size {
    type Err = NotASize;

    fn from_str(text: &str) -> Result<Self, NotASize> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
        let size = match text.split_once("..") {
            Some((least, most)) => number(least).zip(number(most)),
            None => number(text).map(|n| (n, n)),
        };
        match size.filter(|(least, most)| least <= most) {
            Some((least, most)) => Ok(Self { least, most }),
            None => Err(NotASize(format!(
                "a swarm has 1 to {MOST} agents; give a number or a range, such as 8 or 3..64"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for text in ["8", "3..64", "1..4096"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["", "0", "4097", "8..", "64..3", "3..4097", "-1", "3.5", "a"] {
            let error = text.parse::<Size>().unwrap_err().to_string();
            assert!(error.contains("3..64"), "{text}: {error}");
        }
    }

    /// 4000 draws: the halves of a logarithmic scale within 4 standard deviations of 2000 each.
    #[test]
    fn a_range_is_drawn_evenly_on_a_logarithmic_scale_to_its_ends() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut draw = |size: Size, axes| -> Vec<usize> {
            (0..4000).map(|_| size.draw(axes, &mut rng)).collect()
        };
        let line = draw(Size::between(3, 63), 1);
        assert_eq!(
            (line.iter().min(), line.iter().max()),
            (Some(&3), Some(&63))
        );
        // 3 to 64 in logarithms: half way is the root of 192.
        let few = line.iter().filter(|&&n| n < 14).count();
        let share = (14.0f64 / 3.0).ln() / (64.0f64 / 3.0).ln();
        assert!((few as f64 - 4000.0 * share).abs() < 130.0, "{few}");
        let plane = draw(Size::between(5, 50), 2);
        assert!(plane.iter().all(|n| [9, 16, 25, 36, 49].contains(n)));
        assert!([9, 49].iter().all(|n| plane.contains(n)));
        assert_eq!(draw(Size::of(5), 2), [5; 4000]);
    }

    #[test]
    fn a_plane_needs_a_square() {
        let size = Size::between(17, 24);
        assert!(size.check(1).is_ok());
        let error = size.check(2).unwrap_err().to_string();
        assert!(
            error.contains("17..24") && error.contains("16..25"),
            "{error}"
        );
    }
}
