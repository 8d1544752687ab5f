//! Boards where there can be none, because a browser has neither processes nor lines to them. Scenarios,
//! faults and the loop speak of boards as everywhere; nobody can make one.

mod diary;
mod link_kind;

pub use diary::{Diary, Event, State};
pub use link_kind::LinkKind;

use crate::fault::Fault;
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use std::convert::Infallible;

/// Boards at the end of links; see the native form.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Boards {}

impl Boards {
    /// The kind of their links.
    pub fn kind(&self) -> LinkKind {
        match *self {}
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        match *self {}
    }

    /// Whether a simulated field can reach their sensors and their actuators.
    pub fn can_be_wired(&self) -> bool {
        match *self {}
    }

    /// Whether nobody knows how many they are before they are looked for.
    pub fn are_found(&self) -> bool {
        match *self {}
    }
}

impl std::fmt::Display for Boards {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl<'de> serde::Deserialize<'de> for Boards {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        let why =
            "there are no boards in a browser; agent-sim on a machine of your own reaches them";
        Err(serde::de::Error::custom(why))
    }
}

/// The boards of a run.
pub enum Rig {}

impl Rig {
    /// The boards' number.
    pub fn len(&self) -> usize {
        match *self {}
    }

    /// Whether there are no boards.
    pub fn is_empty(&self) -> bool {
        match *self {}
    }

    /// The link to an agent that is on a board.
    pub fn link(&self, _: usize) -> Option<BoardLink> {
        match *self {}
    }

    /// A board.
    pub fn node(&self, _: usize) -> Box<Node> {
        match *self {}
    }

    /// Breaks and mends what is due before a step.
    pub fn before(&self, _: usize) {
        match *self {}
    }

    /// Does to a board what a fault does.
    pub fn begin(&self, _: &Fault, _: usize, _: String) {
        match *self {}
    }

    /// Undoes it.
    pub fn end(&self, _: &Fault, _: usize, _: String) {
        match *self {}
    }

    /// Keeps a policy that boards can be given on the way.
    pub fn shelve(&self, _: &str, _: Payload) {
        match *self {}
    }

    /// Waits for the end of a step.
    pub fn after(&self, _: usize) {
        match *self {}
    }

    /// The largest share of its stack that each board which answers has used.
    pub fn stack_shares(&self) -> Vec<f64> {
        match *self {}
    }
}

/// A board.
pub struct Node {
    /// What people call it.
    pub name: String,
    /// What became of it.
    pub diary: Diary,
    never: Infallible,
}

/// What is done to a board.
impl Node {
    pub(crate) fn kill(&mut self) {
        match self.never {}
    }

    pub(crate) fn hang(&mut self) {
        match self.never {}
    }

    pub(crate) fn resume(&mut self) {
        match self.never {}
    }

    pub(crate) fn restart(&mut self) {
        match self.never {}
    }

    pub(crate) fn brown_out(&mut self) {
        match self.never {}
    }

    pub(crate) fn pull_cable(&mut self) {
        match self.never {}
    }

    pub(crate) fn flood(&mut self) {
        match self.never {}
    }

    pub(crate) fn mend_cable(&mut self) {
        match self.never {}
    }

    pub(crate) fn flash(&mut self, _: &Payload) {
        match self.never {}
    }
}

/// A policy as boards are given it.
pub enum Payload {}

/// The link to an agent on a board.
pub enum BoardLink {}

impl Link for BoardLink {
    fn send(&mut self, _: &Observation<'_>) -> Result<(), LinkError> {
        match *self {}
    }

    fn receive(&mut self, _: u64) -> Result<Option<Action>, LinkError> {
        match *self {}
    }
}
