//! What a node costs the others, and how much more it may.
//!
//! In lock-step a node that does not answer keeps everybody waiting. One that has died does it once.
//! One that is broken, or means harm, comes back and does it again: answers when it is called and
//! never when it is asked, hangs up and calls again, starts and starts. So the waiting is counted.

use std::time::Duration;

/// What a node may cost beyond the patience that everybody has.
const GRACE: Duration = Duration::from_secs(1);

/// So many observations answered in a row make up for all that it has cost.
const MAKES_UP: usize = 100;

/// How often a node is taken back that has answered no observation in between.
const MOST_RETURNS: usize = 8;

/// The account of one node.
#[derive(Debug, Default)]
pub struct Account {
    /// Time waited for answers that did not come.
    in_vain: Duration,
    answered_in_a_row: usize,
    returns: usize,
}

impl Account {
    /// How long the next answer is waited for.
    pub fn left(&self, patience: Duration) -> Duration {
        let most = patience.saturating_add(GRACE);
        most.saturating_sub(self.in_vain).min(patience)
    }

    /// No answer came for so long.
    pub fn waited_in_vain(&mut self, time: Duration) {
        self.in_vain += time;
        self.answered_in_a_row = 0;
    }

    /// It has answered an observation.
    pub fn answered(&mut self) {
        self.returns = 0;
        self.answered_in_a_row += 1;
        if self.answered_in_a_row >= MAKES_UP {
            self.in_vain = Duration::ZERO;
        }
    }

    /// It has come back, or started anew. False if it has done so too often.
    pub fn comes_back(&mut self) -> bool {
        self.returns += 1;
        self.returns <= MOST_RETURNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn in_all_a_node_is_waited_for_a_second_longer_than_patience() {
        let mut account = Account::default();
        let mut waits = Vec::new();
        loop {
            let left = account.left(PATIENCE);
            if left.is_zero() {
                break;
            }
            waits.push(left);
            account.waited_in_vain(left);
            // A few answers do not make up for it.
            (1..MAKES_UP).for_each(|_| account.answered());
        }
        assert_eq!(waits, [PATIENCE, GRACE]);
        (0..MAKES_UP).for_each(|_| account.answered());
        assert_eq!(account.left(PATIENCE), PATIENCE);
    }

    #[test]
    fn whoever_comes_back_and_never_answers_is_not_taken_back_for_ever() {
        let mut account = Account::default();
        assert!((0..MOST_RETURNS).all(|_| account.comes_back()));
        assert!(!account.comes_back());
        account.answered();
        assert!(account.comes_back());
    }
}
