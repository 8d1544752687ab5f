//! No places: an image that cannot act by itself carries nothing of what keeps them.

use agent_core::policy::Policy;
use place::Equipment;

use crate::{admit::Refusal, hardware::PolicyFlash, standalone::Standing, store::Store};

/// There is none.
pub(crate) enum Places {}

impl Places {
    /// None.
    pub fn open<S: PolicyFlash>(_: &[S; 2], _: &Store) -> Option<Self> {
        None
    }

    pub fn load<S: PolicyFlash>(
        &self,
        _: &[S; 2],
        _: &Policy,
        _: Equipment,
        _: &mut Option<Standing>,
    ) -> Result<(), Refusal> {
        match *self {}
    }

    pub fn take<S: PolicyFlash>(
        &mut self,
        _: &mut [S; 2],
        _: &Store,
        _: Offer<'_>,
        _: &Policy,
        _: Equipment,
    ) -> Result<(), Refusal> {
        match *self {}
    }
}

/// A place as it comes.
#[expect(dead_code, reason = "it is refused unread")]
pub(crate) struct Offer<'a> {
    pub place: &'a [u8],
    pub manifest: &'a [u8],
    pub signature: &'a [u8],
}
