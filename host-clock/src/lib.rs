//! embassy's clock on a host, where the node's code runs without a chip.
//!
//! A program has one clock for embassy, chosen when it is linked, and what the packages of a workspace
//! ask for is linked into all of them: embassy's own clock for hosts and its mock exclude each other.
//! The mock is also one for all threads, where tests run side by side. This one is each thread's own: the
//! machine's, until the thread wants it to be [simulated](simulate).

use std::{
    cell::Cell,
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{self, Instant},
};

use embassy_time::Duration;
use embassy_time_driver::Driver;

/// When the machine's clock stood at zero.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// No alarm is set.
const NEVER: u64 = u64::MAX;

thread_local! {
    /// The time in microseconds, if it is simulated.
    static SIMULATED: Cell<Option<u64>> = const { Cell::new(None) };
    /// When the thread's task is to be woken next: there is only the one that [`block_on`] runs.
    static ALARM: Cell<u64> = const { Cell::new(NEVER) };
}

struct Clock;

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

impl Driver for Clock {
    fn now(&self) -> u64 {
        let machine = || START.elapsed().as_micros().try_into().unwrap_or(NEVER);
        SIMULATED.get().unwrap_or_else(machine)
    }

    fn schedule_wake(&self, at: u64, _: &Waker) {
        ALARM.set(ALARM.get().min(at));
    }
}

/// Simulates time on this thread from now on: it passes when [told to](pass), and while [`block_on`]'s
/// task waits, which takes no real time.
pub fn simulate() {
    if SIMULATED.get().is_none() {
        SIMULATED.set(Some(0));
    }
}

/// Lets simulated time pass, as if this thread had been busy for so long.
///
/// # Panics
/// If the thread's time is the machine's.
pub fn pass(time: Duration) {
    let now = SIMULATED.get().expect("the machine's clock is not ours");
    SIMULATED.set(Some(now + time.as_micros()));
}

/// Runs a task on this thread. Its timers ring; those of tasks that others run here do not.
///
/// # Panics
/// If time is simulated and the task waits for nothing that time would bring.
pub fn block_on<F: Future>(task: F) -> F::Output {
    let mut task = pin!(task);
    let woken = Arc::new(Woken {
        thread: thread::current(),
        flag: AtomicBool::new(false),
    });
    let waker = Waker::from(woken.clone());
    loop {
        if ALARM.get() <= CLOCK.now() {
            ALARM.set(NEVER);
        }
        if let Poll::Ready(output) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        if !woken.flag.swap(false, Ordering::AcqRel) {
            wait(ALARM.get());
        }
    }
}

/// Waits until the alarm; by the machine's clock at most until the thread is woken.
fn wait(alarm: u64) {
    match SIMULATED.get() {
        Some(now) => {
            assert_ne!(alarm, NEVER, "the task waits for nothing that will come");
            SIMULATED.set(Some(now.max(alarm)));
        }
        None if alarm == NEVER => thread::park(),
        None => thread::park_timeout(time::Duration::from_micros(
            alarm.saturating_sub(CLOCK.now()),
        )),
    }
}

struct Woken {
    thread: Thread,
    flag: AtomicBool,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embassy_time::{Timer, with_timeout};
    use std::future::{pending, poll_fn};

    #[test]
    fn simulated_years_take_no_time_and_end_when_they_should() {
        simulate();
        let (began, real) = (embassy_time::Instant::now(), Instant::now());
        let year = Duration::from_secs(365 * 24 * 3600);
        block_on(async {
            with_timeout(year, pending::<()>()).await.unwrap_err();
            pass(year);
            Timer::after(year).await;
        });
        assert_eq!(began.elapsed(), 3 * year);
        assert!(real.elapsed() < time::Duration::from_secs(60));
    }

    #[test]
    fn each_thread_has_its_own_time() {
        simulate();
        pass(Duration::from_secs(1_000_000));
        let elsewhere = thread::spawn(embassy_time::Instant::now).join().unwrap();
        assert!(elsewhere.as_secs() < 1_000_000);
    }

    #[test]
    #[should_panic(expected = "nothing that will come")]
    fn a_task_that_would_wait_for_ever_is_found_out() {
        simulate();
        block_on(pending::<()>());
    }

    #[test]
    fn by_the_machines_clock_timers_wait_and_other_threads_wake() {
        let real = Instant::now();
        block_on(Timer::after_millis(20));
        assert!(real.elapsed() >= time::Duration::from_millis(20));
        let called = Arc::new(AtomicBool::new(false));
        let mut other = None;
        block_on(poll_fn(|context| {
            let (caller, waker) = (called.clone(), context.waker().clone());
            other.get_or_insert_with(|| {
                thread::spawn(move || {
                    caller.store(true, Ordering::Release);
                    waker.wake();
                })
            });
            match called.load(Ordering::Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
    }
}
