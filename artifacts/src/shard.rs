//! Work that several programs share, each with a number of its own and none knowing of the others.

use problem::limit::{SHARDS, TooMany};
use std::fmt;
use std::str::FromStr;

/// One of several equal shares of a piece of work: of its parts, counted from 0, every so-manieth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

/// Why something is no shard.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadShard {
    /// Not two numbers.
    #[error("'{0}' is no shard; write its number and how many there are, like 3/16")]
    Malformed(String),
    /// There is none of that number.
    #[error("there is no shard {number} of {of}: they are numbered from 1 to {of}")]
    NotThere {
        /// The number that was given.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// Of none nobody can be one.
    #[error("work in 0 shards is done by nobody; give 1 or more, like 1/1")]
    OfNone,
    /// More than are taken.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// The shard of that number, from 1 on, of so many.
    pub fn new(number: usize, of: usize) -> Result<Self, BadShard> {
        if of == 0 {
            return Err(BadShard::OfNone);
        }
        SHARDS.check(of)?;
        match (1..=of).contains(&number) {
            true => Ok(Self { number, of }),
            false => Err(BadShard::NotThere { number, of }),
        }
    }

    /// How many share the work.
    pub fn of(self) -> usize {
        self.of
    }

    /// Whether a part is this shard's.
    pub fn has(self, part: usize) -> bool {
        part % self.of == self.number - 1
    }

    /// Its parts in order.
    pub fn parts(self) -> impl Iterator<Item = usize> + Clone {
        (self.number - 1..).step_by(self.of)
    }

    /// How many of so many parts are its own.
    pub fn count(self, parts: usize) -> usize {
        (parts + self.of - self.number) / self.of
    }

    /// What it is called where a name may have no slash.
    pub fn label(self) -> String {
        format!("{}-of-{}", self.number, self.of)
    }

    /// The shard of that [`label`](Self::label).
    pub fn labelled(label: &str) -> Option<Self> {
        let (number, of) = label.split_once("-of-")?;
        let shard = Self::new(number.parse().ok()?, of.parse().ok()?).ok()?;
        // One name for each: `03-of-16` is somebody else's.
        (shard.label() == label).then_some(shard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = BadShard;

    fn from_str(text: &str) -> Result<Self, BadShard> {
        let malformed = || BadShard::Malformed(text.to_owned());
        let number = |part: &str| part.parse::<usize>().map_err(|_| malformed());
        let (of_it, of) = text.split_once('/').ok_or_else(malformed)?;
        Self::new(number(of_it)?, number(of)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_one_shards_and_no_others() {
        for of in 1..6 {
            let shards: Vec<Shard> = (1..=of).map(|n| Shard::new(n, of).unwrap()).collect();
            for parts in 0..20 {
                for part in 0..parts {
                    assert_eq!(shards.iter().filter(|s| s.has(part)).count(), 1);
                }
                for shard in &shards {
                    let own: Vec<usize> = shard.parts().take_while(|p| *p < parts).collect();
                    assert_eq!(shard.count(parts), own.len(), "{shard} of {parts} parts");
                    assert!(own.iter().all(|part| shard.has(*part)));
                }
            }
        }
    }

    #[test]
    fn shards_are_read_as_they_are_written_and_nothing_else_is() {
        let shard: Shard = "3/16".parse().unwrap();
        assert_eq!(shard, Shard::new(3, 16).unwrap());
        assert_eq!(
            (shard.to_string(), shard.label()),
            ("3/16".into(), "3-of-16".into())
        );
        assert_eq!(Shard::labelled("3-of-16"), Some(shard));
        for other in ["03-of-16", "0-of-16", "17-of-16", "3-of-", "3/16", ""] {
            assert_eq!(Shard::labelled(other), None, "{other}");
        }
        for (text, said) in [
            ("0/16", "no shard 0 of 16: they are numbered from 1 to 16"),
            ("17/16", "no shard 17 of 16"),
            ("1/0", "0 shards"),
            ("3", "'3' is no shard"),
            ("3/", "like 3/16"),
            ("-1/4", "no shard"),
            ("a/b", "'a/b'"),
            ("1/10001", "at most 10000"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
