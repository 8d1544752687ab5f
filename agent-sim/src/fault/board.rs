//! What happens to boards and their cables.

/// Something that happens to a board, not to a simulation of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardFault {
    /// The board loses power for good: its emulator's process is killed.
    Kill,
    /// The board stops where it is (SIGSTOP), and goes on at the fault's end.
    Hang,
    /// The board loses power, and gets it back at the fault's end; without one at once.
    Restart,
    /// The cable is pulled in the middle of a frame, and plugged in again at the fault's end.
    Cut,
    /// Noise fills the line before every observation.
    Flood,
    /// The board is reset while it writes a policy to its flash.
    Brownout,
}

impl BoardFault {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Kill,
        Self::Hang,
        Self::Restart,
        Self::Cut,
        Self::Flood,
        Self::Brownout,
    ];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Hang => "hang",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Flood => "flood",
            Self::Brownout => "brownout",
        }
    }

    /// The fault of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether it takes power over the board itself, which only an emulator's process gives.
    pub fn needs_emulator(self) -> bool {
        !matches!(self, Self::Cut | Self::Flood)
    }

    pub(super) fn describe(self, ends: bool) -> &'static str {
        match (self, ends) {
            (Self::Kill, _) => "killed",
            (Self::Hang, false) => "hung",
            (Self::Hang, true) => "hung for a while",
            (Self::Restart, false) => "restarted",
            (Self::Restart, true) => "without power for a while",
            (Self::Cut, false) => "cut off",
            (Self::Cut, true) => "cut off for a while",
            (Self::Flood, _) => "flooded with noise",
            (Self::Brownout, _) => "reset while writing flash",
        }
    }
}
