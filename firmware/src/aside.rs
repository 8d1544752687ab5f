//! Sensors that are read in a task of their own.
//!
//! A node gives a reading up that does not come in time. A driver that is dropped in the middle of a transfer
//! may leave bytes behind that the next one takes for its own, or a controller that still writes to where its
//! buffer was. Here only the waiting is given up: the transfer goes on to its end, and what comes late is
//! thrown away.

use core::marker::PhantomData;

use embassy_sync::{blocking_mutex::raw::RawMutex, signal::Signal};

use crate::hardware::Sensors;

/// Where questions and answers are left: one of each at most.
pub struct Desk<M: RawMutex> {
    asked: Signal<M, u8>,
    answered: Signal<M, Option<f32>>,
}

impl<M: RawMutex> Default for Desk<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: RawMutex> Desk<M> {
    /// Nobody has asked.
    pub const fn new() -> Self {
        Self {
            asked: Signal::new(),
            answered: Signal::new(),
        }
    }

    /// Reads what is asked for, for ever.
    pub async fn serve(&self, mut sensors: impl Sensors) -> ! {
        loop {
            let channel = self.asked.wait().await;
            self.answered.signal(sensors.read(channel).await);
        }
    }
}

/// Sensors `N` that somebody serves at a desk.
pub struct Aside<'d, M: RawMutex, N> {
    desk: &'d Desk<M>,
    /// Whether a question is not answered, or its answer not taken.
    owed: bool,
    sensors: PhantomData<fn() -> N>,
}

impl<'d, M: RawMutex, N> Aside<'d, M, N> {
    /// Those at this desk, where nobody else may ask.
    pub const fn at(desk: &'d Desk<M>) -> Self {
        Self {
            desk,
            owed: false,
            sensors: PhantomData,
        }
    }
}

impl<M: RawMutex, N: Sensors> Sensors for Aside<'_, M, N> {
    const CHANNELS: u8 = N::CHANNELS;
    const BUS: bool = N::BUS;

    async fn read(&mut self, channel: u8) -> Option<f32> {
        if self.owed {
            self.desk.answered.wait().await;
        }
        self.owed = true;
        self.desk.asked.signal(channel);
        let reading = self.desk.answered.wait().await;
        self.owed = false;
        reading
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::{
        cell::Cell,
        future::poll_fn,
        pin::pin,
        task::{Context, Poll, Waker},
    };
    use embassy_sync::blocking_mutex::raw::NoopRawMutex;

    /// Reads its channel's number, and the first one only when it is let.
    struct Slow<'a>(&'a Cell<bool>);

    impl Sensors for Slow<'_> {
        const CHANNELS: u8 = 4;

        async fn read(&mut self, channel: u8) -> Option<f32> {
            poll_fn(|_| match channel == 0 && !self.0.get() {
                true => Poll::Pending,
                false => Poll::Ready(Some(f32::from(channel))),
            })
            .await
        }
    }

    fn polled<T>(future: core::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_reading_that_was_given_up_is_not_taken_for_the_next() {
        let (desk, let_go) = (Desk::<NoopRawMutex>::new(), Cell::new(false));
        let mut serving = pin!(desk.serve(Slow(&let_go)));
        let mut aside = Aside::<_, Slow<'_>>::at(&desk);
        {
            let mut given_up = pin!(aside.read(0));
            assert!(polled(given_up.as_mut()).is_pending());
            assert!(polled(serving.as_mut()).is_pending());
        }
        let mut next = pin!(aside.read(3));
        // The bus is not free yet.
        assert!(polled(next.as_mut()).is_pending());
        assert!(polled(serving.as_mut()).is_pending());
        let_go.set(true);
        let mut read = Poll::Pending;
        for _ in 0..4 {
            assert!(polled(serving.as_mut()).is_pending());
            read = polled(next.as_mut());
            if read.is_ready() {
                break;
            }
        }
        assert_eq!(read, Poll::Ready(Some(3.0)));
    }
}
