//! Lines that lose, double and delay.

use agent_core::{
    agent::Agent,
    message::{Command, Counters, Report, encode_frame},
};

use crate::rig::{self, Host, observation, parsed, policy, with_node};

async fn counters(host: &Host<'_>, number: u32) -> Counters {
    host.send(number, &Command::Status).await;
    host.receive(|_, report| match report {
        Report::Status(status) => status.counters,
        other => panic!("{other:?}"),
    })
    .await
}

#[test]
fn a_command_that_comes_again_is_answered_with_the_same_bits_and_takes_no_second_step() {
    let blob = policy();
    parsed(&blob, |policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        with_node(async |host| {
            host.upload(&blob).await;
            for k in 0..10u32 {
                let field = [0.1 * k as f32; 6];
                let seen = observation(&field, u64::from(k) * 1_000);
                let expected = agent.step(&seen.patch, seen.position, seen.now_us);
                let mut answers = Vec::new();
                for _ in 0..3 {
                    host.send(100 + k, &Command::Observe(seen)).await;
                    let look = |number, report: Report| {
                        assert_eq!(number, 100 + k);
                        match report {
                            Report::Action { action, ticks } => (action, ticks),
                            other => panic!("{other:?}"),
                        }
                    };
                    answers.push(host.receive(look).await);
                }
                assert_eq!(answers, [answers[0]; 3]);
                assert_eq!(answers[0].0, expected);
            }
            let counted = counters(host, 200).await;
            assert_eq!((counted.steps, counted.repeated), (10, 20));
        });
    });
}

#[test]
fn a_commit_that_comes_again_is_answered_as_before() {
    let (old, new) = (policy(), rig::large_policy(0.1));
    with_node(async |host| {
        host.upload(&old).await;
        host.begin(&new).await;
        for _ in 0..2 {
            host.send(500, &Command::PolicyCommit).await;
            let taken = host.receive(|_, report| rig::hello(report)).await;
            assert_eq!(taken.policy, Some(rig::id(&new)));
        }
    });
}

#[test]
fn a_command_older_than_the_last_is_dropped_and_counted() {
    with_node(async |host| {
        host.upload(&policy()).await;
        let field = [1.0; 6];
        for number in [1000, 999, 1, 998] {
            host.send(number, &Command::Observe(observation(&field, 0)))
                .await;
        }
        // The only action is the first one's; the next answer is to the next question.
        host.receive(|number, _| assert_eq!(number, 1000)).await;
        let counted = counters(host, 1001).await;
        assert_eq!((counted.steps, counted.stale), (1, 3));
    });
}

#[test]
fn numbers_go_on_past_the_end_of_their_range() {
    with_node(async |host| {
        for number in [u32::MAX - 1, u32::MAX, 1, 2] {
            host.send(number, &Command::Status).await;
            host.receive(|answered, _| assert_eq!(answered, number))
                .await;
        }
        assert_eq!(counters(host, 3).await.stale, 0);
    });
}

#[test]
fn a_greeting_starts_a_new_count_even_with_the_last_commands_number() {
    with_node(async |host| {
        host.upload(&policy()).await;
        host.send(1000, &Command::Observe(observation(&[1.0; 6], 0)))
            .await;
        host.receive(|_, _| ()).await;
        // Another host takes over the line.
        for number in [1000, 1] {
            host.send(number, &Command::Hello).await;
            let policy = host.receive(|_, report| rig::hello(report).policy).await;
            assert!(policy.is_some());
        }
        host.send(2, &Command::Observe(observation(&[1.0; 6], 0)))
            .await;
        host.receive(|number, report| {
            assert_eq!(number, 2);
            assert!(matches!(report, Report::Action { .. }));
        })
        .await;
    });
}

#[test]
fn frames_that_are_no_commands_are_counted() {
    with_node(async |host| {
        let mut buffer = [0; 64];
        let unasked = encode_frame(0, &Command::Hello, &mut buffer)
            .unwrap()
            .to_vec();
        let mut damaged = encode_frame(1, &Command::Hello, &mut buffer)
            .unwrap()
            .to_vec();
        damaged[2] ^= 4;
        host.to_node.write_all(&unasked).await;
        host.to_node.write_all(&damaged).await;
        host.to_node.write_all(&[7; 6000]).await;
        host.to_node.write_all(&[0]).await;
        let counted = counters(host, 1).await;
        assert_eq!((counted.commands, counted.rejected), (1, 3));
    });
}
