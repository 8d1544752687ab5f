//! The observations that a node may still answer.

use std::collections::VecDeque;

/// How many are remembered. What is older than so many steps is too old for any actuator.
const MOST: usize = 32;

/// The last observations: the number of each and its time.
#[derive(Debug, Default)]
pub struct Recent(VecDeque<(u32, u64)>);

impl Recent {
    /// An observation of `at_us` went out.
    pub fn push(&mut self, number: u32, at_us: u64) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((number, at_us));
    }

    /// The time of the observation that an answer with this number is to; none for an answer that was
    /// had before, or after that to a newer one, or to nothing that was asked.
    pub fn take(&mut self, number: u32) -> Option<u64> {
        let place = self.0.iter().position(|(sent, _)| *sent == number)?;
        self.0.drain(..=place).next_back().map(|(_, at_us)| at_us)
    }

    /// Whoever was asked has forgotten it.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_and_with_the_time_of_its_question() {
        let mut recent = Recent::default();
        for number in 1..=100 {
            recent.push(number, 1000 * u64::from(number));
        }
        assert_eq!(recent.take(68), None, "too old");
        assert_eq!(recent.take(70), Some(70_000));
        assert_eq!(recent.take(70), None, "had before");
        assert_eq!(recent.take(69), None, "older than one that was had");
        assert_eq!(recent.take(101), None, "never asked");
        assert_eq!(recent.take(100), Some(100_000));
    }
}
