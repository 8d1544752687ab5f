//! What is done to a board and its cable.

use super::Node;
use node_link::{BoardError, EmulatedBoard};

impl Node {
    /// It loses power.
    pub(crate) fn kill(&mut self) {
        self.power(EmulatedBoard::kill);
    }

    /// It stops where it is.
    pub(crate) fn hang(&mut self) {
        self.power(EmulatedBoard::hang);
    }

    /// It goes on from there.
    pub(crate) fn resume(&mut self) {
        self.power(EmulatedBoard::resume);
        self.await_answer();
    }

    /// It gets its power back.
    pub(crate) fn restart(&mut self) {
        let restarted = self.board.as_mut().map(EmulatedBoard::restart);
        self.diary.restarts += 1;
        self.must("restart", restarted);
        self.await_answer();
    }

    /// It is reset while it writes a policy to its flash.
    pub(crate) fn brown_out(&mut self) {
        if let Err(error) = self.begin_upload() {
            self.note(format!("no upload to interrupt: {error}"));
        }
        let reset = self.board.as_mut().map(EmulatedBoard::reset);
        self.must("brownout", reset);
        self.await_answer();
    }

    /// Its cable is pulled in the middle of a frame.
    pub(crate) fn pull_cable(&mut self) {
        self.plug.pull();
    }

    /// Noise fills its line.
    pub(crate) fn flood(&mut self) {
        self.plug.flood();
        if let Some((wires, board)) = self.wired() {
            wires.babble(board);
        }
    }

    /// Its cable is as it was.
    pub(crate) fn mend_cable(&mut self) {
        self.plug.mend();
        if let Some((wires, _)) = self.wired() {
            wires.hush();
        }
        self.await_answer();
    }

    fn power(&mut self, act: impl FnOnce(&mut EmulatedBoard)) {
        if let Some(board) = &mut self.board {
            act(board);
        }
    }

    fn must(&mut self, name: &str, done: Option<Result<(), BoardError>>) {
        if let Some(Err(error)) = done {
            self.note(format!("{name} failed: {error}"));
        }
    }
}
