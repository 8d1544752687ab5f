//! What happens to boards and their cables.

use super::{Act, Descriptor, Group, Parameter, Presence, Sort, When, Whom};
use crate::rig::{Node, Payload};

/// How something is done to a board, not to a simulation of one.
pub struct BoardFault {
    /// Whether it takes power over the board itself, which only an emulator's process gives.
    pub needs_emulator: bool,
    /// Does it.
    pub begin: fn(&mut Node, &Deed<'_>),
    /// Undoes it at the fault's end.
    pub end: fn(&mut Node),
}

/// What there is to know of a fault when it begins.
pub struct Deed<'a> {
    /// Whether it has an end.
    pub ends: bool,
    /// The policy that it brings, if it brings one.
    pub policy: Option<&'a Payload>,
}

/// The board loses power for good: its emulator's process is killed.
pub static KILL: Descriptor = Descriptor {
    name: "kill",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::From,
    help: "its emulator is killed",
    caption: |_| "killed".to_owned(),
    act: Act::Board(BoardFault {
        needs_emulator: true,
        begin: |node, _| node.kill(),
        end: |_| (),
    }),
};

/// The board stops where it is (SIGSTOP), and goes on at the fault's end.
pub static HANG: Descriptor = Descriptor {
    name: "hang",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::Between,
    help: "its emulator is stopped; goes on at until=…",
    caption: |fault| fault.lasting("hung", "hung for a while"),
    act: Act::Board(BoardFault {
        needs_emulator: true,
        begin: |node, _| node.hang(),
        end: Node::resume,
    }),
};

/// The board loses power, and gets it back at the fault's end; without one at once.
pub static RESTART: Descriptor = Descriptor {
    name: "restart",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::Between,
    help: "loses power; gets it back at until=…, or at once",
    caption: |fault| fault.lasting("restarted", "without power for a while"),
    act: Act::Board(BoardFault {
        needs_emulator: true,
        begin: |node, deed| {
            node.kill();
            if !deed.ends {
                node.restart();
            }
        },
        end: Node::restart,
    }),
};

/// The cable is pulled in the middle of a frame, and plugged in again at the fault's end.
pub static CUT: Descriptor = Descriptor {
    name: "cut",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::Between,
    help: "its cable is pulled in the middle of a frame, and plugged in at until=…",
    caption: |fault| fault.lasting("cut off", "cut off for a while"),
    act: Act::Board(BoardFault {
        needs_emulator: false,
        begin: |node, _| node.pull_cable(),
        end: Node::mend_cable,
    }),
};

/// Noise fills the line before every observation.
pub static FLOOD: Descriptor = Descriptor {
    name: "flood",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::Between,
    help: "noise on its line before every observation",
    caption: |_| "flooded with noise".to_owned(),
    act: Act::Board(BoardFault {
        needs_emulator: false,
        begin: |node, _| node.flood(),
        end: Node::mend_cable,
    }),
};

/// The board is reset while it writes a policy to its flash.
pub static BROWNOUT: Descriptor = Descriptor {
    name: "brownout",
    group: Group::Board,
    parameters: &[],
    whom: Whom::Boards,
    when: When::From,
    help: "reset while it writes a policy to its flash",
    caption: |_| "reset while writing flash".to_owned(),
    act: Act::Board(BoardFault {
        needs_emulator: true,
        begin: |node, _| node.brown_out(),
        end: |_| (),
    }),
};

/// The board is given another policy, and goes on with that.
pub static FLASH: Descriptor = Descriptor {
    name: "flash",
    group: Group::Board,
    parameters: &[Parameter::new(
        "policy",
        Sort::File,
        Presence::Needed,
        "other.policy",
    )],
    whom: Whom::Boards,
    when: When::From,
    help: "is given another policy, and goes on with that",
    caption: |_| "given another policy".to_owned(),
    act: Act::Board(BoardFault {
        needs_emulator: false,
        begin: |node, deed| {
            if let Some(policy) = deed.policy {
                node.flash(policy);
            }
        },
        end: |_| (),
    }),
};
