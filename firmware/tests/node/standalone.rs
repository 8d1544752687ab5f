//! A node that senses and acts by itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{Command, Patch, Report, Span},
    policy::Policy,
};
use ed25519_compact::{KeyPair, Seed};
use embassy_time::{Duration, Instant, Timer};
use firmware::{
    hardware::{Sensors, Station},
    keys::Keys,
};
use place::{
    Conduct, Place,
    aim::{Point, Schedule},
    conduct::Alone,
    record::{Calibration, RECORD, Sensor, Target, Tolerance},
};
use trust::{
    KeyId, Manifest, Rights,
    manifest::{SIGNED, Subject, signed_bytes},
};

use crate::{
    chip::{Chip, Cut, next},
    rig::{
        self, Host, Rig, TIMING, encoded_manifest, large_policy, parsed, policy, policy_for,
        policy_that_aims, policy_that_sees,
    },
    trust::{LINK, open},
};

/// What a channel reads when, if anything.
pub type Reads = Box<dyn FnMut(u8, Instant) -> Option<f32>>;

/// Four channels, which take their time.
pub struct Probes {
    pub reads: Rc<RefCell<Reads>>,
    pub takes: Rc<Cell<Duration>>,
}

impl Sensors for Probes {
    const CHANNELS: u8 = 4;
    const BUS: bool = true;

    async fn read(&mut self, channel: u8) -> Option<f32> {
        if self.takes.get() > Duration::MIN {
            Timer::after(self.takes.get()).await;
        }
        (self.reads.borrow_mut())(channel, Instant::now())
    }
}

/// A node with sensors, and the strings that they hang on.
struct Bench<const W: usize = 4, const E: usize = 4096> {
    rig: Rig<W, E, Probes>,
    reads: Rc<RefCell<Reads>>,
    takes: Rc<Cell<Duration>>,
}

impl<const W: usize, const E: usize> Bench<W, E> {
    fn new() -> Self {
        let reads: Reads = Box::new(field);
        let reads = Rc::new(RefCell::new(reads));
        let takes = Rc::new(Cell::new(Duration::MIN));
        let mut rig = Rig::with_sensors();
        rig.hardware.station = Some(Station {
            slots: [Chip::new(&rig.power), Chip::new(&rig.power)],
            sensors: Probes {
                reads: reads.clone(),
                takes: takes.clone(),
            },
            air: None,
        });
        Self { rig, reads, takes }
    }

    fn read(&self, reads: impl FnMut(u8, Instant) -> Option<f32> + 'static) {
        *self.reads.borrow_mut() = Box::new(reads);
    }

    /// What the actuator was told since it had been told so often.
    fn told(&self, from: usize) -> (&[Action], &[Instant]) {
        let told = &self.rig.hardware.actuator;
        (&told.0[from..], &told.1[from..])
    }
}

/// A wave that no two channels see alike.
fn field(channel: u8, now: Instant) -> Option<f32> {
    let phase = now.as_micros() as f32 * 1e-4 + f32::from(channel);
    Some(20.0 + phase.sin())
}

/// All four cells of the window, in degrees of which 20 are the field's zero.
fn place() -> Place {
    let sensor = |channel: u8| Sensor {
        channel,
        cell: channel.into(),
        calibration: Some(Calibration {
            gain: 1.0,
            offset: -20.0,
        }),
    };
    Place {
        node: 7,
        position: [0.5, 0.0],
        second: 1.0,
        sensors: (0..4).map(sensor).collect(),
        target: Target::None,
        force: None,
        tolerance: Tolerance {
            missing: 1,
            missing_us: 10_000,
            least: -4.0,
            most: 4.0,
            change: 1_000.0,
            frozen_us: None,
        },
        neighbours: None,
    }
}

pub fn bytes(place: &Place) -> Vec<u8> {
    place.encode(&mut [0; RECORD]).unwrap().to_vec()
}

/// What nobody has signed, for that problem.
fn unsigned(place: &[u8], problem: &str) -> Vec<u8> {
    encoded_manifest(&Manifest::unsigned(place, problem))
}

/// What a node says to a place.
async fn give(host: &Host<'_>, place: &[u8], manifest: &[u8], signature: &[u8]) -> Answer {
    let configure = Command::Configure {
        place,
        manifest,
        signature,
    };
    host.ask(configure, answer).await
}

pub async fn configure(host: &Host<'_>, place: &Place) -> Answer {
    let bytes = bytes(place);
    give(host, &bytes, &unsigned(&bytes, "test"), &[]).await
}

async fn conduct(host: &Host<'_>) -> Answer {
    host.ask(Command::Conduct, answer).await
}

pub async fn alone(host: &Host<'_>) -> Alone {
    match conduct(host).await {
        Answer::Alone(alone) => alone,
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, PartialEq)]
pub enum Answer {
    Fed,
    Misplaced(String),
    Alone(Alone),
    Rejected(String),
}

impl Answer {
    /// Why the node does not do as it is told.
    fn reason(self) -> String {
        match self {
            Self::Rejected(reason) | Self::Misplaced(reason) => reason,
            other => panic!("{other:?}"),
        }
    }
}

fn answer(report: Report<'_>) -> Answer {
    match report {
        Report::Rejected { reason } => Answer::Rejected(reason.to_owned()),
        Report::Conduct { said } => match Conduct::read(said).unwrap() {
            Conduct::Fed => Answer::Fed,
            Conduct::Refused { reason } => Answer::Misplaced(reason.to_owned()),
            Conduct::Alone(alone) => Answer::Alone(alone),
        },
        other => panic!("{other:?}"),
    }
}

/// What an agent does that is shown this, at these times, and told that the field should be that.
fn shown(
    blob: &[u8],
    times: &[Instant],
    reads: impl Fn(u8, Instant) -> Option<f32>,
    aims: impl Fn(Instant) -> Option<f32>,
) -> Vec<Action> {
    parsed(blob, |policy: Policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        let each = times.iter().map(|&at| {
            let cell = |channel: u8| reads(channel, at).unwrap() - 20.0;
            let seen = [0.0, cell(0), cell(1), cell(2), cell(3), 0.0];
            let target: Vec<f32> =
                aims(at).map_or(vec![], |aim| vec![0.0, aim, aim, aim, aim, 0.0]);
            let patch = Patch::line(&seen, &target, Span { first: 1, last: 4 });
            agent.step(&patch, [0.5, 0.0], at.as_micros())
        });
        each.collect()
    })
}

#[test]
fn a_node_by_itself_does_at_each_period_what_an_agent_does_that_is_shown_the_same() {
    let mut bench = Bench::<4, 4096>::new();
    let began = bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        assert_eq!(conduct(host).await, Answer::Fed);
        let taken = configure(host, &place()).await;
        assert!(matches!(taken, Answer::Alone(_)), "{taken:?}");
        let began = Instant::now();
        Timer::after(Duration::from_micros(99_500)).await;
        let alone = alone(host).await;
        assert_eq!((alone.node, alone.mode, alone.blind), (7, Mode::Active, 0));
        assert_eq!(alone.timing.steps, 100);
        assert_eq!((alone.timing.jitter_us, alone.timing.overruns), (0, 0));
        began
    });
    // Told nothing when it started, when the policy took over, and when it took its place.
    let (actions, times) = bench.told(3);
    for (k, time) in times.iter().enumerate() {
        assert_eq!((*time - began).as_micros(), 1_000 * k as u64);
    }
    assert_eq!(actions, shown(&policy(), times, field, |_| None));
}

/// 10 ms from 0 to 1, then from -0.5 to 0.5 in as many, and 5 more there.
fn follows() -> Place {
    let points = [(0, 0.0), (10, 1.0), (10, -0.5), (20, 0.5)];
    let points = points.map(|(at_ms, value)| Point { at_ms, value });
    Place {
        target: Target::Schedule(Schedule {
            repeat_ms: 25,
            points: points.into_iter().collect(),
        }),
        ..place()
    }
}

/// What the field should be in the step that is that many periods, of a millisecond, after the first.
fn followed(step: u64) -> f32 {
    let tenths = |step: u64| step as f32 / 10.0;
    match step % 25 {
        phase @ 0..10 => tenths(phase),
        phase @ 10..20 => -0.5 + tenths(phase - 10),
        _ => 0.5,
    }
}

async fn aim(host: &Host<'_>, target: Option<f32>) -> Answer {
    host.ask(Command::Aim(target), answer).await
}

/// What a node said that it aims at, and whether it was told to.
fn aims(answer: Answer) -> (f32, bool) {
    match answer {
        Answer::Alone(alone) => (alone.target, alone.told),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_follows_its_schedule_and_what_it_is_told_as_an_agent_does_that_is_shown_the_same() {
    let mut bench = Bench::<4, 4096>::new();
    let began = bench.rig.live(async |host, _| {
        host.upload(&policy_that_aims()).await;
        let first = configure(host, &follows()).await;
        assert_eq!(aims(first), (0.0, false));
        let began = Instant::now();
        Timer::after(Duration::from_micros(7_500)).await;
        let (now, told) = aims(conduct(host).await);
        assert!((now - 0.75).abs() < 1e-6 && !told, "{now}");
        // Between steps 32 and 33, and between 57 and 58.
        Timer::after(Duration::from_micros(25_000)).await;
        assert_eq!(aims(aim(host, Some(0.7)).await), (0.7, true));
        Timer::after(Duration::from_micros(25_000)).await;
        assert_eq!(aims(conduct(host).await), (0.7, true));
        let (now, told) = aims(aim(host, None).await);
        assert!((now - 0.75).abs() < 1e-6 && !told, "{now}");
        Timer::after(Duration::from_micros(42_000)).await;
        began
    });
    let (actions, times) = bench.told(3);
    assert_eq!(times.len(), 100);
    let step = |at: Instant| (at - began).as_micros() / 1_000;
    let aims = |at: Instant| match step(at) {
        33..58 => Some(0.7),
        step => Some(followed(step)),
    };
    assert_eq!(actions, shown(&policy_that_aims(), times, field, aims));
    assert!(actions.iter().all(|action| action.mode == Mode::Active));
}

#[test]
fn what_a_node_was_told_to_aim_at_ends_with_its_place_and_with_its_power() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy_that_aims()).await;
        configure(host, &follows()).await;
        aim(host, Some(0.7)).await;
        // Its agent forgets what it did, not what it is to do.
        host.ask(Command::Reset, rig::hello).await;
        assert_eq!(aims(conduct(host).await), (0.7, true));
        assert_eq!(aims(configure(host, &follows()).await), (0.0, false));
        aim(host, Some(0.7)).await;
    });
    let before = bench.rig.hardware.actuator.0.len();
    bench.rig.live(async |host, _| {
        Timer::after(Duration::from_micros(30_500)).await;
        assert!(!aims(conduct(host).await).1);
    });
    // Its schedule has begun again too: its actuator is stopped at the start, and then there is a step each.
    let (actions, times) = bench.told(before + 1);
    let (actions, times) = (&actions[..30], &times[..30]);
    let aims = |at: Instant| Some(followed((at - times[0]).as_micros() / 1_000));
    assert_eq!(actions, shown(&policy_that_aims(), times, field, aims));
}

#[test]
fn a_target_that_is_none_here_is_refused_by_name_and_the_one_before_stays() {
    let mut bench = Bench::<4, 4096>::new();
    let refusal = async |host: &Host<'_>, target| aim(host, Some(target)).await.reason();
    bench.rig.live(async |host, _| {
        assert!(refusal(host, 0.5).await.contains("no place"));
        host.upload(&policy_that_aims()).await;
        assert!(refusal(host, 0.5).await.contains("no place"));
        let without = aim(host, None).await.reason();
        assert!(without.contains("no place"), "{without}");
        configure(host, &follows()).await;
        aim(host, Some(0.5)).await;
        for wrong in [f32::NAN, f32::INFINITY] {
            assert!(refusal(host, wrong).await.contains("not a number"));
        }
        // The place says from -4 to 4.
        let beyond = refusal(host, 4.1).await;
        assert!(beyond.contains("outside what the field can be"), "{beyond}");
        assert_eq!(aims(conduct(host).await), (0.5, true));
        // Another policy, which is shown no target, and for which the place is none.
        host.upload(&policy()).await;
        assert!(refusal(host, 0.5).await.contains("leave the target out"));
        assert!(
            configure(host, &follows())
                .await
                .reason()
                .contains("leave the target out")
        );
        configure(host, &place()).await;
        assert!(refusal(host, 0.0).await.contains("leave the target out"));
        assert_eq!(aims(conduct(host).await), (0.0, false));
        let fed = give(host, &[], &unsigned(&[], "test"), &[]).await;
        assert_eq!(fed, Answer::Fed);
        assert!(refusal(host, 0.5).await.contains("no place"));
    });
    rig::with_node(async |host| {
        assert!(refusal(host, 0.5).await.contains("standalone"));
    });
}

#[test]
fn a_target_that_comes_twice_is_taken_once() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy_that_aims()).await;
        configure(host, &follows()).await;
        let say = async |number, target| {
            host.send(number, &Command::Aim(Some(target))).await;
            host.receive(|answered, report| {
                assert_eq!(answered, number);
                aims(answer(report))
            })
            .await
        };
        assert_eq!(say(1_000, 0.7).await, (0.7, true));
        assert_eq!(say(1_001, 0.1).await, (0.1, true));
        // Answered as before, whatever it says now; older ones not at all.
        assert_eq!(say(1_001, 0.3).await, (0.1, true));
        host.send(1_000, &Command::Aim(Some(0.7))).await;
        assert_eq!(say(1_002, 0.1).await, (0.1, true));
        host.send(1_003, &Command::Status).await;
        let counters = host.receive(|_, report| match report {
            Report::Status(status) => status.counters,
            other => panic!("{other:?}"),
        });
        let counters = counters.await;
        assert_eq!((counters.repeated, counters.stale), (1, 1));
    });
}

#[test]
fn a_node_with_a_key_is_told_what_to_aim_at_by_whoever_may_show_it_the_field() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.hardware.keys.link = Some(LINK);
    bench.rig.live(async |host, _| {
        open(host, Rights::FLASH).await;
        host.upload(&policy_that_aims()).await;
        configure(host, &follows()).await;
        assert!(aim(host, Some(0.7)).await.reason().contains("right"));
        *host.session.borrow_mut() = None;
        assert!(aim(host, Some(0.7)).await.reason().contains("have a key"));
        assert!(aim(host, None).await.reason().contains("have a key"));
        assert!(!aims(conduct(host).await).1);
        open(host, Rights::OBSERVE).await;
        assert_eq!(aims(aim(host, Some(0.7)).await), (0.7, true));
    });
}

#[test]
fn a_place_outlives_a_restart_and_the_node_goes_on_by_itself() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
    });
    let before = bench.rig.hardware.actuator.0.len();
    bench.rig.live(async |host, _| {
        Timer::after(Duration::from_micros(9_500)).await;
        assert_eq!(alone(host).await.timing.steps, 10);
        // The link serves status, and shows it nothing.
        let seen = rig::observation(&[0.0; 6], 0);
        host.expect_rejection(Command::Observe(seen)).await;
        // Without a place it does nothing by itself, and is shown the field again.
        let fed = give(host, &[], &unsigned(&[], "test"), &[]).await;
        assert_eq!(fed, Answer::Fed);
        let steps = host.observe(seen).await;
        assert_eq!(steps.mode, Mode::Active);
    });
    assert!(bench.told(before).0.len() > 10);
}

#[test]
fn too_little_to_be_seen_ends_in_the_fail_safe_within_the_policys_time_and_the_sensors_return_out_of_it()
 {
    let mut bench = Bench::<4, 4096>::new();
    let lost = Rc::new(Cell::new(false));
    let gone = lost.clone();
    bench.read(move |channel, now| match gone.get() && channel < 2 {
        true => None,
        false => field(channel, now),
    });
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        Timer::after(Duration::from_micros(10_500)).await;
        lost.set(true);
        Timer::after(Duration::from_micros(5_000)).await;
        let seen = alone(host).await;
        assert_eq!((seen.mode, seen.blind), (Mode::Holding, 0b0011));
        // The last good look was at 10 ms; by then and no later than a period after that.
        let fail_safe = Duration::from_micros((TIMING.fail_safe_us - 6_000).into());
        Timer::after(fail_safe).await;
        assert_eq!(alone(host).await.mode, Mode::Holding);
        Timer::after(Duration::from_micros(1_000)).await;
        let failed = alone(host).await;
        assert_eq!((failed.mode, failed.force), (Mode::FailedSafe, 0.0));
        lost.set(false);
        Timer::after(Duration::from_micros(1_000)).await;
        let back = alone(host).await;
        assert_eq!((back.mode, back.blind), (Mode::Active, 0));
        assert_eq!(back.doubts.missing, 2 * (TIMING.fail_safe_us / 1_000));
    });
}

#[test]
fn one_sensor_may_be_missing_for_as_long_as_the_place_says() {
    let mut bench = Bench::<4, 4096>::new();
    let lost = Rc::new(Cell::new(false));
    let gone = lost.clone();
    bench.read(move |channel, _| match gone.get() && channel == 1 {
        true => None,
        // On a line, so that what is made up is what would have been read.
        false => Some(20.0 + f32::from(channel) * 0.5),
    });
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        Timer::after(Duration::from_micros(5_500)).await;
        let whole = alone(host).await;
        lost.set(true);
        Timer::after(Duration::from_micros(10_000)).await;
        let blind = alone(host).await;
        assert_eq!((blind.mode, blind.blind), (Mode::Active, 0b0010));
        assert_eq!(blind.force, whole.force);
        Timer::after(Duration::from_micros(1_000)).await;
        assert_eq!(alone(host).await.mode, Mode::Holding);
    });
}

#[test]
fn steps_that_take_longer_than_the_period_are_counted_and_none_is_made_up_for() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        // Four channels of a fifth of the period each leave time; of a half they do not.
        bench.takes.set(Duration::from_micros(200));
        Timer::after(Duration::from_micros(9_500)).await;
        let slow = alone(host).await.timing;
        assert_eq!((slow.latency_us, slow.overruns), (800, 0));
        bench.takes.set(Duration::from_micros(500));
        Timer::after(Duration::from_micros(20_000)).await;
        let late = alone(host).await;
        // What was not read when the next step was due counts as missing.
        assert_eq!(late.timing.longest_us, 1_000);
        assert!(late.timing.overruns >= 9, "{late:?}");
        assert!(late.doubts.missing >= 9, "{late:?}");
    });
}

#[test]
fn a_channel_that_never_answers_does_not_keep_the_node_from_its_host() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        bench.takes.set(Duration::from_secs(3600));
        Timer::after(Duration::from_micros(200_000)).await;
        assert_eq!(alone(host).await.mode, Mode::FailedSafe);
    });
    let fed = &bench.rig.hardware.watchdog.0;
    assert!(fed.len() > 90, "{}", fed.len());
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_the_place_before_stays() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        assert!(
            configure(host, &place())
                .await
                .reason()
                .contains("no policy")
        );
        host.upload(&policy()).await;
        configure(host, &place()).await;
        let refusal = async |change: &dyn Fn(&mut Place)| {
            let mut place = place();
            change(&mut place);
            configure(host, &place).await.reason()
        };
        let beyond = refusal(&|place| place.sensors[3].cell = 4).await;
        assert!(beyond.contains("no cell 4"), "{beyond}");
        let outside = refusal(&|place| place.position[0] = 1.5).await;
        assert!(outside.contains("outside the policy's domain"), "{outside}");
        let raw = refusal(&|place| place.sensors[2].calibration = None).await;
        assert!(raw.contains("channel 2 is not calibrated"), "{raw}");
        let channel = refusal(&|place| place.sensors[3].channel = 4).await;
        assert!(channel.contains("no channel 4"), "{channel}");
        let garbage = give(host, b"PLC1", &unsigned(b"PLC1", "test"), &[]).await;
        assert!(garbage.reason().contains("no place"));
        let bytes = bytes(&place());
        let other = give(host, &bytes, &unsigned(&bytes, "another"), &[]).await;
        assert!(other.reason().contains("another problem"));
        let mixed = give(host, &bytes, &unsigned(b"else", "test"), &[]).await;
        assert!(mixed.reason().contains("another place"));
        assert_eq!(alone(host).await.node, 7);
    });
}

#[test]
fn an_image_without_sensors_says_so() {
    rig::with_node(async |host| {
        host.upload(&policy()).await;
        assert!(
            configure(host, &place())
                .await
                .reason()
                .contains("standalone")
        );
        assert!(conduct(host).await.reason().contains("standalone"));
    });
}

#[test]
fn a_new_policy_comes_while_the_node_acts_and_is_told_if_the_place_is_none_for_it() {
    let mut bench = Bench::<4, 4096>::new();
    let wide = policy_that_sees(8);
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        host.upload(&large_policy(0.1)).await;
        Timer::after(Duration::from_micros(5_000)).await;
        assert_eq!(alone(host).await.mode, Mode::Active);
        // Four sensors in the first half of its window: its own cell is beyond them.
        host.upload(&wide).await;
        let misplaced = conduct(host).await.reason();
        assert!(misplaced.contains("own cell, 4"), "{misplaced}");
        let seen = rig::observation(&[0.0; 6], 0);
        host.expect_rejection(Command::Observe(seen)).await;
    });
    // And at its next start.
    bench.rig.live(async |host, _| {
        assert!(conduct(host).await.reason().contains("own cell, 4"));
    });
    let (_, times) = bench.told(0);
    assert!(times.len() > 10, "it acted while it was flashed");
}

#[test]
fn a_policy_that_proves_itself_by_itself_is_proven() {
    let mut bench = Bench::<4, 4096>::new();
    let slots = bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        Timer::after(Duration::from_micros(2_500)).await;
        host.slots().await
    });
    assert_eq!(slots.1[0], agent_core::message::SlotState::Proven);
}

#[test]
fn a_policy_for_another_problem_takes_the_node_from_its_place() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.live(async |host, _| {
        host.upload(&policy()).await;
        configure(host, &place()).await;
        let other = policy_for("elsewhere");
        let manifest = encoded_manifest(&Manifest::unsigned(&other, "elsewhere"));
        host.begin_signed(&other, &manifest, &[]).await;
        host.ask(Command::PolicyCommit, rig::hello).await;
        assert!(conduct(host).await.reason().contains("another problem"));
    });
}

fn pair(seed: u8) -> KeyPair {
    KeyPair::from_seed(Seed::new([seed; 32]))
}

/// A place's manifest with a counter and its signature by this key, as that of something.
fn signed(place: &[u8], counter: u64, seed: u8, subject: Subject) -> (Vec<u8>, Vec<u8>) {
    let manifest = encoded_manifest(&Manifest {
        counter,
        key: KeyId::of(&pair(seed).pk),
        ..Manifest::unsigned(place, "test")
    });
    let mut room = [0; SIGNED];
    let bytes = signed_bytes(subject, &manifest, &mut room).unwrap();
    let signature = pair(seed).sk.sign(bytes, None).to_vec();
    (manifest, signature)
}

#[test]
fn a_node_with_keys_takes_signed_places_only_and_none_that_is_older() {
    let mut bench = Bench::<4, 4096>::new();
    bench.rig.hardware.keys = Keys {
        policy: [Some(*pair(1).pk), None],
        link: None,
        bus: None,
        fleet: "",
    };
    let bytes = bytes(&place());
    bench.rig.live(async |host, _| {
        let (manifest, signature) = signed(&policy(), 1, 1, Subject::Policy);
        host.begin_signed(&policy(), &manifest, &signature).await;
        host.ask(Command::PolicyCommit, rig::hello).await;
        let bare = give(host, &bytes, &unsigned(&bytes, "test"), &[]).await;
        assert!(bare.reason().contains("not signed"));
        for (seed, subject) in [(2, Subject::Place), (1, Subject::Policy)] {
            let (manifest, signature) = signed(&bytes, 5, seed, subject);
            let foreign = give(host, &bytes, &manifest, &signature).await;
            assert!(foreign.reason().contains("another key"));
        }
        let (manifest, signature) = signed(&bytes, 5, 1, Subject::Place);
        let taken = give(host, &bytes, &manifest, &signature).await;
        assert!(matches!(taken, Answer::Alone(Alone { counter: 5, .. })));
        assert!(matches!(
            give(host, &bytes, &manifest, &signature).await,
            Answer::Rejected(reason) if reason.contains("counter is 5")
        ));
    });
    bench.rig.live(async |host, _| {
        assert_eq!(alone(host).await.counter, 5);
        let (manifest, signature) = signed(&bytes, 4, 1, Subject::Place);
        let old = give(host, &bytes, &manifest, &signature).await;
        assert!(old.reason().contains("counter is 4"));
    });
}

/// Cuts the power in each operation of a configuration, in every way: the node has the old place or the
/// new one, and takes another.
fn at_every_operation<const W: usize, const E: usize>(configured: u16) -> usize {
    let cuts = [
        Cut::Before,
        Cut::Part(0),
        Cut::Part(1),
        Cut::Part(85),
        Cut::Part(255),
        Cut::Scattered(1),
        Cut::Scattered(2),
        Cut::After,
    ];
    let numbered = |node: u16| Place { node, ..place() };
    let mut tested = 0;
    // A configuration is an erasure and a record.
    for operation in 0..2 {
        for cut in cuts {
            let mut bench = Bench::<W, E>::new();
            bench.rig.live(async |host, _| {
                host.upload(&policy()).await;
                for node in 1..=configured {
                    configure(host, &numbered(node)).await;
                }
                // The policy has proven itself: nothing else is written.
                Timer::after(Duration::from_micros(2_500)).await;
            });
            bench.rig.power.on(Some((operation, cut)));
            bench
                .rig
                .live(async |host, _| configure(host, &numbered(99)).await);
            assert!(bench.rig.power.is_off(), "{operation} {cut:?}");
            bench.rig.power.on(None);
            bench.rig.live(async |host, _| {
                let node = match conduct(host).await {
                    Answer::Alone(alone) => alone.node,
                    Answer::Fed => 0,
                    other => panic!("{other:?}"),
                };
                assert!(
                    node == configured || node == 99,
                    "{operation} {cut:?}: {node}"
                );
                assert_eq!(node == 99, operation == 1 && node != configured);
                let later = configure(host, &numbered(100)).await;
                assert!(matches!(later, Answer::Alone(Alone { node: 100, .. })));
            });
            let last = bench.rig.live(async |host, _| alone(host).await.node);
            assert_eq!(last, 100);
            tested += 1;
        }
    }
    tested
}

#[test]
fn a_cut_at_every_operation_of_a_configuration_leaves_the_old_place_or_the_new() {
    for configured in 0..4 {
        assert_eq!(at_every_operation::<4, 4096>(configured), 16);
        assert_eq!(at_every_operation::<1, 16384>(configured), 16);
        assert_eq!(at_every_operation::<16, 4096>(configured), 16);
    }
}

/// What may befall a sensor.
#[derive(Debug, Clone, Copy)]
enum Ill {
    Dies,
    Freezes,
    Drifts,
    Jumps,
    SticksLow,
    SticksHigh,
    NotANumber,
    Infinite,
    Flickers,
    Noisy,
}

const ILLS: [Ill; 10] = [
    Ill::Dies,
    Ill::Freezes,
    Ill::Drifts,
    Ill::Jumps,
    Ill::SticksLow,
    Ill::SticksHigh,
    Ill::NotANumber,
    Ill::Infinite,
    Ill::Flickers,
    Ill::Noisy,
];

impl Ill {
    /// What an ill channel reads so long after it fell ill.
    fn reads(self, well: f32, passed: Duration, frozen: f32, chance: u64) -> Option<f32> {
        let share = chance as f32 / u64::MAX as f32;
        match self {
            Self::Dies => None,
            Self::Freezes => Some(frozen),
            // 1000 a second is what the place takes for plausible; 4 from zero what it takes for the field.
            Self::Drifts => Some(well + passed.as_micros() as f32 * 5e-4),
            Self::Jumps => Some(well + 3.0),
            Self::SticksLow => Some(0.0),
            Self::SticksHigh => Some(256.0),
            Self::NotANumber => Some(f32::NAN),
            Self::Infinite => Some(f32::INFINITY),
            Self::Flickers => (share > 0.5).then_some(well),
            Self::Noisy => Some(well + 100.0 * (share - 0.5)),
        }
    }

    /// Whether it can be told from what the field may do.
    fn is_seen(self) -> bool {
        !matches!(self, Self::Jumps)
    }
}

/// Ten kinds, a hundred times each, two sensors of four: more than the place tolerates.
#[test]
fn whatever_befalls_its_sensors_a_node_stays_within_its_limits_fails_safe_in_time_and_recovers() {
    for ill in ILLS {
        for seed in 0..100 {
            let mut bench = Bench::<4, 4096>::new();
            let fell = Rc::new(Cell::new(None::<Instant>));
            let (since, mut chance) = (fell.clone(), seed);
            let first = (next(&mut chance) % 3) as u8;
            let mut frozen = [0.0; 4];
            bench.read(move |channel, now| {
                let well = field(channel, now)?;
                let held = &mut frozen[usize::from(channel)];
                match since.get() {
                    Some(at) if channel == first || channel == first + 1 => {
                        ill.reads(well, now - at, *held, next(&mut chance))
                    }
                    _ => {
                        *held = well;
                        Some(well)
                    }
                }
            });
            let limit = 0.4;
            let place = Place {
                force: Some(limit),
                tolerance: Tolerance {
                    frozen_us: Some(5_000),
                    ..place().tolerance
                },
                ..place()
            };
            bench.rig.live(async |host, _| {
                host.upload(&policy()).await;
                configure(host, &place).await;
                Timer::after(Duration::from_micros(5_500 + 100 * seed)).await;
                assert_eq!(alone(host).await.mode, Mode::Active);
                fell.set(Some(Instant::now()));
                Timer::after(Duration::from_micros(95_000)).await;
                let ill_now = alone(host).await;
                let flickers = matches!(ill, Ill::Flickers | Ill::Noisy);
                if ill.is_seen() && !flickers {
                    assert_eq!(ill_now.mode, Mode::FailedSafe, "{ill:?} {seed}");
                    assert_eq!(ill_now.force, 0.0);
                }
                fell.set(None);
                // What drifted away slowly is far off only for as long as the field could have come back.
                Timer::after(Duration::from_micros(20_000)).await;
                let back = alone(host).await;
                assert_eq!((back.mode, back.blind), (Mode::Active, 0), "{ill:?} {seed}");
            });
            let (actions, _) = bench.told(0);
            assert!(actions.iter().all(|action| action.force.abs() <= limit));
            assert!(actions.iter().all(|action| action.velocity == [0.0; 2]));
        }
    }
}
