//! Fresh episodes, drawn once: some fields take most of a minute to spin up.

use anyhow::Context;
use artifacts::output::OutputFolder;
use artifacts::seal::checksum;
use problem::input;
use problem::test_set::EpisodeSet;
use problem::{Episode, Problem};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Fresh episodes that are needed, numbered from 0.
#[derive(Clone)]
pub struct Draw {
    /// Of this problem,
    pub problem: Problem,
    /// whose physics differ like this, empty if they do not.
    pub form: String,
    /// Under this seed,
    pub seed: u64,
    /// so many.
    pub count: usize,
}

impl Draw {
    /// What identifies an episode, but for its number.
    fn name(&self) -> String {
        let form: String = self
            .form
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
            .collect();
        let sources = &crate::provenance::SOURCES[..8];
        format!("{}-{form}-{}-{sources}", self.problem.name, self.seed)
    }
}

/// Episodes by name and number, in memory and in a folder.
pub struct Shelf {
    folder: OutputFolder,
    episodes: BTreeMap<(String, usize), Episode>,
}

impl Shelf {
    /// A shelf that keeps its episodes in `folder`.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            folder: OutputFolder::prepare(folder)?,
            episodes: BTreeMap::new(),
        })
    }

    /// Puts all that is needed on the shelf; `tick` is called for each episode that was not there.
    pub fn stock(&mut self, draws: &[Draw], tick: &(dyn Fn() + Sync)) -> anyhow::Result<()> {
        let mut missing = BTreeMap::new();
        for draw in draws {
            for index in 0..draw.count {
                let key = (draw.name(), index);
                if !self.episodes.contains_key(&key) {
                    missing.insert(key, draw);
                }
            }
        }
        let drawn = missing.into_par_iter().map(|((name, index), draw)| {
            let episode = self.episode(&name, index, draw)?;
            tick();
            Ok(((name, index), episode))
        });
        let drawn: Vec<_> = drawn.collect::<anyhow::Result<_>>()?;
        self.episodes.extend(drawn);
        Ok(())
    }

    /// How many episodes of these draws are not in memory.
    pub fn missing(&self, draws: &[Draw]) -> usize {
        let all = draws
            .iter()
            .flat_map(|draw| (0..draw.count).map(|index| (draw.name(), index)));
        let all: std::collections::BTreeSet<_> = all.collect();
        let here = all.iter().filter(|key| self.episodes.contains_key(key));
        all.len() - here.count()
    }

    /// An episode that is on the shelf.
    pub fn get(&self, draw: &Draw, index: usize) -> anyhow::Result<&Episode> {
        let key = (draw.name(), index);
        self.episodes
            .get(&key)
            .with_context(|| format!("episode {index} of {} was not asked for", key.0))
    }

    /// From the folder, or drawn and put there.
    fn episode(&self, name: &str, index: usize, draw: &Draw) -> anyhow::Result<Episode> {
        if draw.problem.kit.is_some() {
            // Files hold no goals and disturbances, and described episodes are quick to draw.
            return Ok(EpisodeSet::Fresh.episode(&draw.problem, draw.seed, index)?);
        }
        let file = format!("{name}-{index}.f32");
        let points = draw.problem.sensors.len();
        let kept = input::read(&self.folder.path().join(&file), input::EPISODES);
        // Values, and a checksum of them and of what they are for.
        if let Ok(bytes) = kept
            && let Some((values, sum)) = bytes.split_at_checked(8 * points)
            && sum == checksum(&file, values).as_bytes()
        {
            let values = values.chunks_exact(4);
            let values: Vec<f32> = values.map(bytemuck::pod_read_unaligned).collect();
            let (initial, target) = values.split_at(points);
            return Ok(Episode {
                initial: initial.to_vec(),
                target: target.to_vec(),
                ..Episode::default()
            });
        }
        let episode = EpisodeSet::Fresh.episode(&draw.problem, draw.seed, index)?;
        let values = [&episode.initial[..], &episode.target].concat();
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
        bytes.extend(checksum(&file, &bytes).into_bytes());
        self.folder.write(&file, &bytes)?;
        Ok(episode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let draw = Draw {
            problem: problem::published::heat_1d::PROBLEM,
            form: String::new(),
            seed: 3,
            count: 2,
        };
        let drawn = EpisodeSet::Fresh.episode(&draw.problem, 3, 1).unwrap();
        for round in 0..3 {
            if round == 2 {
                // A changed one is drawn again.
                for entry in std::fs::read_dir(folder.path()).unwrap() {
                    let path = entry.unwrap().path();
                    let mut bytes = std::fs::read(&path).unwrap();
                    bytes[5] ^= 1;
                    std::fs::write(&path, bytes).unwrap();
                }
            }
            let mut shelf = Shelf::new(folder.path()).unwrap();
            assert_eq!(shelf.missing(&[draw.clone(), draw.clone()]), 2);
            shelf.stock(std::slice::from_ref(&draw), &|| ()).unwrap();
            assert_eq!(shelf.get(&draw, 1).unwrap(), &drawn, "round {round}");
            assert!(shelf.get(&draw, 2).is_err());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
