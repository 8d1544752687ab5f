//! What feeds the watchdog: completed control steps, and nothing else.

use agent_core::{
    agent::Mode,
    message::{Command, Mishap},
};
use embassy_time::{Duration, Instant, Timer};
use firmware::{hardware::HEARTBEAT, link::WRITE_TIMEOUT};

use crate::rig::{Rig, Told, observation, policy, policy_that_waits};

/// What any board's watchdog gives at least.
const BITE: Duration = Duration::from_millis(4 * HEARTBEAT.as_millis());

/// The longest time without food, up to now.
fn longest_hunger(rig: &Rig<4, 4096>, from: Instant) -> Duration {
    let fed = rig.hardware.watchdog.0.iter().copied();
    let ends = fed.clone().chain([Instant::now()]);
    let starts = [from].into_iter().chain(fed);
    starts.zip(ends).map(|(a, b)| b - a).max().unwrap()
}

#[test]
fn a_node_with_nothing_to_do_is_well_with_and_without_a_policy() {
    let mut rig = Rig::<4, 4096>::new();
    let start = Instant::now();
    rig.live(async |host, _| {
        Timer::after(BITE).await;
        host.upload(&policy()).await;
        Timer::after(BITE).await;
        host.observe(observation(&[1.0; 6], 0)).await;
        Timer::after(BITE).await;
    });
    assert!(longest_hunger(&rig, start) < BITE);
    // One heartbeat after another, not one after each byte: 12 in three times four heartbeats, some
    // 40 looks while the agent held for fail_safe_us, and the step.
    let fed = rig.hardware.watchdog.0.len();
    assert!((12..100).contains(&fed), "{fed}");
}

#[test]
fn garbage_and_questions_without_end_neither_feed_it_nor_starve_it() {
    let mut rig = Rig::<4, 4096>::new();
    let start = Instant::now();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.observe(observation(&[1.0; 6], 0)).await;
        let mut number = 1000;
        while start.elapsed() < BITE {
            // No zero in it: a frame that never ends, at 1 Mbit/s.
            host.to_node.write_all(&[7; 512]).await;
            host_clock::pass(Duration::from_millis(5));
        }
        host.to_node.write_all(&[0]).await;
        while start.elapsed() < 2 * BITE {
            number += 1;
            host_clock::pass(Duration::from_millis(1));
            host.send(number, &Command::Status).await;
            host.receive(|_, _| ()).await;
        }
        assert!(number > 1100, "{number}");
    });
    assert!(longest_hunger(&rig, start) < BITE);
    let fed = rig.hardware.watchdog.0.len();
    assert!(fed < 100, "{fed}: fed by commands");
    let last = rig.hardware.actuator.0.last().unwrap();
    assert_eq!(
        last.mode,
        Mode::FailedSafe,
        "a flood keeps nobody from failing safe"
    );
}

#[test]
fn a_step_that_does_not_end_is_not_fed() {
    let mut rig = Rig::<4, 4096>::new();
    rig.hardware.provoke = Some(|mishap| {
        assert_eq!(mishap, Mishap::Hang);
        host_clock::pass(BITE + Duration::from_millis(100));
    });
    let start = Instant::now();
    rig.live(async |host, _| {
        host.upload(&policy()).await;
        host.expect_rejection(Command::Provoke(Mishap::Hang)).await;
    });
    assert!(longest_hunger(&rig, start) > BITE);
}

/// The agent fails safe 6 ms after its last observation, the report is given up after 100.
#[test]
fn a_host_that_does_not_read_keeps_nobody_from_failing_safe() {
    let mut rig = Rig::<4, 4096>::new();
    rig.live(async |host, _| {
        host.upload(&policy_that_waits(2, 6)).await;
        // The policy is proven now: the next step is one like all others.
        host.observe(observation(&[1.0; 6], 0)).await;
        let room = host.from_node.free_capacity();
        host.from_node.write_all(&vec![1; room]).await;
        host.send(1000, &Command::Observe(observation(&[1.0; 6], 1_000)))
            .await;
        Timer::after(2 * WRITE_TIMEOUT).await;
    });
    let Told(actions, when, _) = &rig.hardware.actuator;
    let last = |mode| actions.iter().rposition(|action| action.mode == mode);
    let (acted, safe) = (last(Mode::Active).unwrap(), last(Mode::FailedSafe).unwrap());
    assert!(when[safe] > when[acted]);
    let blind = when[safe] - when[acted];
    assert!(blind < WRITE_TIMEOUT, "{} us", blind.as_micros());
}
