//! What a host may do to a node.

use agent_core::message::Command;
use core::fmt;

/// A set of rights. What anybody may do without any, whatever keys a node has: ask who it is and how
/// it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// None.
    pub const NONE: Self = Self(0);
    /// Show it the field and have its agent act; say what the field should be.
    pub const OBSERVE: Self = Self(1);
    /// Give it policies and a place.
    pub const FLASH: Self = Self(2);
    /// Start it afresh.
    pub const RESTART: Self = Self(4);
    /// All of them.
    pub const ALL: Self = Self(7);

    /// Each right with its name.
    pub const NAMES: [(Self, &'static str); 3] = [
        (Self::OBSERVE, "observe"),
        (Self::FLASH, "flash"),
        (Self::RESTART, "restart"),
    ];

    /// The set that a byte stands for, if it does for one.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1..=7 => Some(Self(bits)),
            _ => None,
        }
    }

    /// The byte that stands for it.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `others` are among them.
    pub const fn include(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// What it takes to have a command carried out.
    pub fn needed_for(command: &Command) -> Self {
        match command {
            Command::Hello | Command::Status | Command::Conduct | Command::Open { .. } => {
                Self::NONE
            }
            Command::Reset | Command::Observe(_) | Command::Aim(_) => Self::OBSERVE,
            Command::PolicyBegin { .. }
            | Command::PolicyChunk { .. }
            | Command::PolicyCommit
            | Command::Configure { .. } => Self::FLASH,
            Command::Restart | Command::Provoke(_) => Self::RESTART,
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (right, name) in Self::NAMES {
            if self.include(right) {
                write!(f, "{between}{name}")?;
                between = ",";
            }
        }
        Ok(())
    }
}
