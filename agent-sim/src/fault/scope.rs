//! When and where a fault holds for one agent.

use super::Region;
use agent_core::message::Observation;

/// The time and the region in which a fault holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scope {
    from_us: u64,
    until_us: u64,
    region: Option<Region>,
    /// Whether the agent was last seen where the fault holds.
    inside: bool,
}

impl Scope {
    /// From `from_us` on, until just before `until_us`; `None` for good.
    pub fn new(from_us: u64, until_us: Option<u64>, region: Option<Region>) -> Self {
        Self {
            from_us,
            until_us: until_us.unwrap_or(u64::MAX),
            region,
            inside: region.is_none(),
        }
    }

    /// The time before it, in the same region.
    pub fn before(&self) -> Self {
        Self::new(0, Some(self.from_us), self.region)
    }

    /// Whether the fault holds for the agent that makes this observation. Every observation that
    /// passes must be shown here: a region knows agents only by the positions in them.
    pub fn covers(&mut self, observation: &Observation<'_>) -> bool {
        if let Some(region) = self.region {
            self.inside = region.contains(observation.position);
        }
        self.holds(observation.now_us)
    }

    /// Whether the fault holds at `now_us` for the agent where it was last seen.
    pub fn holds(&self, now_us: u64) -> bool {
        self.inside && self.from_us <= now_us && now_us < self.until_us
    }

    /// Whether the fault's time is over.
    pub fn is_over(&self, now_us: u64) -> bool {
        now_us >= self.until_us
    }

    /// The share of the time from the fault's beginning to `end_us` that has passed.
    pub fn progress(&self, now_us: u64, end_us: u64) -> f64 {
        let passed = now_us.saturating_sub(self.from_us) as f64;
        let whole = end_us.saturating_sub(self.from_us).max(1) as f64;
        (passed / whole).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::probe::observe;

    #[test]
    fn a_fault_begins_with_its_step_and_is_over_at_its_end() {
        let scope = Scope::new(2000, Some(4000), None);
        let held: Vec<bool> = (0..6).map(|k| scope.holds(1000 * k)).collect();
        assert_eq!(held, [false, false, true, true, false, false]);
        assert!(!scope.is_over(3999) && scope.is_over(4000));
        assert!(!Scope::new(0, None, None).is_over(u64::MAX - 1));
    }

    #[test]
    fn a_region_follows_a_moving_agent() {
        let region = "0.4..0.6".parse().unwrap();
        let mut scope = Scope::new(0, None, Some(region));
        assert!(!scope.holds(0), "nobody has been seen there yet");
        let covered: Vec<bool> = [0.3, 0.4, 0.6, 0.7, 0.5]
            .into_iter()
            .map(|x| scope.covers(&observe(0, x, &[])))
            .collect();
        assert_eq!(covered, [false, true, true, false, true]);
        assert!(scope.holds(0), "between observations it is where it was");
    }
}
