//! No node by itself: an image that cannot be one carries nothing of it.

use agent_core::policy::Policy;
use embassy_time::Instant;
use place::{Fault, conduct::Alone};

use crate::{
    air::Air,
    hardware::{Actuator, Sensors},
};

/// There is none.
pub(crate) enum Standing {}

impl Standing {
    pub fn due(&self) -> Instant {
        match *self {}
    }

    pub fn reset(&mut self) {
        match *self {}
    }

    pub fn aim_at(&mut self, _: Option<f32>) -> Result<(), Fault> {
        match *self {}
    }

    pub fn has_acted(&self) -> bool {
        match *self {}
    }

    pub fn conduct(&self, _: Option<&Air>) -> Alone {
        match *self {}
    }

    pub async fn step<N: Sensors>(
        &mut self,
        _: &Policy<'_>,
        _: &mut [f32],
        _: &mut N,
        _: Option<&Air>,
        _: &mut impl Actuator,
    ) {
        match *self {}
    }
}
