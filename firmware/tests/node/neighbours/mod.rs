//! Nodes that hear each other: their real code, on one bus.

mod controllers;
mod wire;

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    task::Poll,
};

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{Patch, Span},
    policy::{Policy, Timing},
};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer};
use firmware::{
    air::{self, Air},
    bus::{CanFd, ClassicCan, Serial},
    hardware::{Bus, Busy, MTU, Station},
    keys::Keys,
};
use place::{
    Place,
    conduct::Alone,
    neighbours::{
        Bulletin,
        bulletin::{Field, SEALED},
        hearing::Heard,
    },
    record::{Calibration, Neighbours, Sensor, Target, Tolerance},
};
use trust::BusKey;

use crate::{
    chip::{Chip, next},
    rig::{Host, Rig, parsed, policy_that_weighs},
    standalone::{Probes, Reads, alone, configure},
};
use controllers::{CanBus, Classic};
use wire::Wire;

/// How nodes stand, a tenth apart.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    /// Four on a line, whose windows of four cells cover two to the left and one to the right.
    Line,
    /// Three by three, whose windows of three by three cells cover those around.
    Plane,
}

/// What nodes measure: no two the same, and no two windows of them either.
const MEASURED: [f32; 9] = [0.5, -1.0, 0.75, 0.875, -0.25, 0.125, 1.0, -0.625, 0.375];

impl Lie {
    fn nodes(self) -> usize {
        match self {
            Self::Line => 4,
            Self::Plane => 9,
        }
    }

    /// Row and column of a node.
    fn of(self, node: usize) -> [usize; 2] {
        match self {
            Self::Line => [0, node],
            Self::Plane => [node / 3, node % 3],
        }
    }

    fn stands_at(self, node: usize) -> [f32; 2] {
        let [row, column] = self.of(node).map(|k| 0.2 + 0.1 * k as f32);
        match self {
            Self::Line => [column, 0.0],
            Self::Plane => [row, column],
        }
    }

    /// Rows and columns of a window, and the node's own.
    fn window(self) -> ([usize; 2], [usize; 2]) {
        match self {
            Self::Line => ([1, 4], [0, 2]),
            Self::Plane => ([3, 3], [1, 1]),
        }
    }

    /// Who stands in which cell of a node's window.
    fn around(self, node: usize) -> Vec<(u16, usize)> {
        let ([rows, columns], own) = self.window();
        let others = (0..self.nodes()).filter_map(|other| {
            let [row, column] =
                [0, 1].map(|k| (self.of(other)[k] + own[k]).checked_sub(self.of(node)[k]));
            let (row, column) = (row?, column?);
            let inside = row < rows && column < columns;
            inside.then_some(((row * columns + column) as u16, other))
        });
        others.collect()
    }
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    timing: Timing,
    stale_us: u32,
    /// A bulletin every so many steps.
    every: u8,
}

/// Says what it measures every four milliseconds.
const QUICK: Pace = Pace {
    timing: Timing {
        period_us: 1_000,
        late_us: 20_000,
        fail_safe_us: 60_000,
    },
    stale_us: 20_000,
    every: 4,
};

/// For buses of which next to nothing comes through.
const PATIENT: Pace = Pace {
    timing: Timing {
        period_us: 10_000,
        late_us: 400_000,
        fail_safe_us: 1_000_000,
    },
    stale_us: 1_000_000,
    every: 1,
};

fn place(lie: Lie, node: usize, pace: Pace) -> Place {
    let around = lie.around(node);
    let own = around.iter().find(|(_, other)| *other == node);
    let others = around.iter().filter(|(_, other)| *other != node);
    Place {
        node: node as u16,
        position: lie.stands_at(node),
        second: 1.0,
        sensors: [Sensor {
            channel: 0,
            cell: own.unwrap().0,
            calibration: Some(Calibration {
                gain: 1.0,
                offset: -20.0,
            }),
        }]
        .into_iter()
        .collect(),
        target: Target::None,
        force: None,
        tolerance: Tolerance {
            missing: 0,
            missing_us: 0,
            least: -4.0,
            most: 4.0,
            change: 1e6,
            frozen_us: None,
        },
        neighbours: Some(Neighbours {
            cells: others.fold(0, |all, (cell, _)| all | 1 << cell),
            spacing: 0.1,
            within: 0.01,
            stale_us: pace.stale_us,
            every: pace.every,
        }),
    }
}

/// What a node's agent does that is shown this in its process.
fn shown(blob: &[u8], lie: Lie, node: usize, measured: [f32; 9]) -> Action {
    parsed(blob, |policy: Policy| {
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        let ([_, columns], _) = lie.window();
        let (mut field, mut inside) = (vec![0.0; 6], [Span::default(); 2]);
        let margin = usize::from(lie == Lie::Plane);
        field.resize(if lie == Lie::Plane { 25 } else { 6 }, 0.0);
        let (mut rows, mut along) = (Vec::new(), Vec::new());
        for (cell, other) in lie.around(node) {
            let (row, column) = (usize::from(cell) / columns, usize::from(cell) % columns);
            field[(row + margin) * (columns + 2) + column + 1] = measured[other];
            rows.push(row as u16 + 1);
            along.push(column as u16 + 1);
        }
        let span = |cells: &[u16]| Span {
            first: *cells.iter().min().unwrap(),
            last: *cells.iter().max().unwrap(),
        };
        match lie {
            Lie::Line => inside[0] = span(&along),
            Lie::Plane => inside = [span(&rows), span(&along)],
        }
        let patch = Patch {
            inside,
            ..Patch::line(&field, &[], Span::default())
        };
        agent.step(&patch, lie.stands_at(node), 0)
    })
}

/// A node on a bus.
struct Node {
    rig: Rig<4, 4096, Probes>,
    air: &'static Air,
    measured: Rc<Cell<f32>>,
}

impl Node {
    fn new(node: usize, key: Option<BusKey>) -> Self {
        let mut rig = Rig::with_sensors();
        rig.hardware.keys = Keys {
            bus: key,
            ..Keys::NONE
        };
        let air: &'static Air = Box::leak(Box::new(Air::new()));
        let measured = Rc::new(Cell::new(MEASURED[node]));
        let now = measured.clone();
        let reads: Reads = Box::new(move |_, _| Some(now.get() + 20.0));
        rig.hardware.station = Some(Station {
            slots: [Chip::new(&rig.power), Chip::new(&rig.power)],
            sensors: Probes {
                reads: Rc::new(RefCell::new(reads)),
                takes: Rc::new(Cell::new(Duration::MIN)),
            },
            air: Some(air),
        });
        Self { rig, air, measured }
    }

    /// Takes its place, and does what it does until the script is over.
    async fn live(
        &mut self,
        bus: &mut impl Bus,
        blob: &[u8],
        place: &Place,
        script: impl AsyncFnOnce(&Host),
    ) -> Alone {
        let air = self.air;
        let life = self.rig.alive(async |host, started| {
            if started.policy.is_none() {
                host.upload(blob).await;
                configure(host, place).await;
            }
            script(host).await;
            alone(host).await
        });
        match select(air::attend(bus, air), life).await {
            Either::First(never) => never,
            Either::Second(alone) => alone,
        }
    }

    /// What its actuator was told while its policy acted, and when.
    fn acted(&self) -> impl Iterator<Item = (Action, Instant)> {
        let told = &self.rig.hardware.actuator;
        let all = told.0.iter().copied().zip(told.1.iter().copied());
        all.filter(|(action, _)| action.mode == Mode::Active)
    }

    /// The longest that its watchdog was not fed.
    fn starved(&self) -> Duration {
        let fed = &self.rig.hardware.watchdog.0;
        fed.windows(2).map(|two| two[1] - two[0]).max().unwrap()
    }
}

async fn all<'a, T>(tasks: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>) -> Vec<T> {
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (task, None)).collect();
    poll_fn(|context| {
        for (task, outcome) in &mut tasks {
            if outcome.is_none()
                && let Poll::Ready(done) = task.as_mut().poll(context)
            {
                *outcome = Some(done);
            }
        }
        match tasks.iter().all(|(_, outcome)| outcome.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    tasks
        .into_iter()
        .filter_map(|(_, outcome)| outcome)
        .collect()
}

/// All nodes on a bus whose values change every 50 ms: in the second half of that each node does bit for bit
/// what an agent does that is shown all of them.
fn agree<B: Bus>(lie: Lie, key: Option<BusKey>, taps: impl FnMut() -> B) {
    let blob = policy_that_weighs(lie == Lie::Plane, QUICK.timing);
    let mut nodes: Vec<Node> = (0..lie.nodes())
        .map(|k| Node::new(k, key.clone()))
        .collect();
    let mut buses: Vec<B> = std::iter::repeat_with(taps).take(lie.nodes()).collect();
    // In eighths, which reading and calibration leave as they are.
    let plateau = |k: u32| MEASURED.map(|value| value - 0.125 * k as f32);
    let began = Instant::now() + Duration::from_millis(100);
    let at = |k: u32| began + Duration::from_millis(50 * u64::from(k));
    let lives = nodes.iter_mut().zip(&mut buses).enumerate();
    let lives = lives.map(|(k, (node, bus))| {
        let blob = &blob;
        Box::pin(async move {
            let (place, measured) = (place(lie, k, QUICK), node.measured.clone());
            let script = async |_: &Host| {
                for plateau_of in 0..8 {
                    Timer::at(at(plateau_of)).await;
                    measured.set(plateau(plateau_of)[k]);
                }
                Timer::at(at(8)).await;
            };
            node.live(bus, blob, &place, script).await
        }) as Pin<Box<dyn Future<Output = Alone>>>
    });
    let said = host_clock::block_on(all(lives.collect()));
    for (k, (node, said)) in nodes.iter().zip(said).enumerate() {
        let heard = said.heard.unwrap();
        assert_eq!((said.mode, heard.deaf), (Mode::Active, 0), "{k}: {heard:?}");
        for plateau_of in 0..8 {
            let expected = shown(&blob, lie, k, plateau(plateau_of));
            let settled = at(plateau_of) + Duration::from_millis(25)..at(plateau_of + 1);
            let acted = node.acted().filter(|(_, at)| settled.contains(at));
            let mut compared = 0;
            for (action, _) in acted {
                assert_eq!(
                    action.force.to_bits(),
                    expected.force.to_bits(),
                    "{k}, {plateau_of}"
                );
                compared += 1;
            }
            assert_eq!(compared, 25, "a step each millisecond");
        }
        assert_eq!(said.timing.overruns, 0);
    }
}

#[test]
fn nodes_on_one_serial_line_do_what_agents_do_that_are_shown_what_all_measure() {
    for key in [None, Some(BusKey::new([5; 32]))] {
        host_clock::simulate();
        let wire = Wire::new(3_000_000, 0.0, 1);
        agree(Lie::Line, key, || {
            let (input, output) = wire.tap();
            Serial::new(input, output, 3_000_000)
        });
        let traffic = wire.traffic();
        assert!(traffic.frames > 4 * 100, "{traffic:?}");
    }
}

#[test]
fn nodes_on_can_fd_do_what_agents_do_that_are_shown_what_all_measure() {
    for key in [None, Some(BusKey::new([5; 32]))] {
        host_clock::simulate();
        let bus = CanBus::new(0.0, 1);
        agree(Lie::Line, key, || {
            CanFd::new(bus.controller(), Duration::from_micros(100)).unwrap()
        });
    }
}

/// Nine of them say something every 4 ms: of the 293 µs that each takes that is two thirds of the bus.
#[test]
fn nodes_in_a_plane_do_what_agents_do_that_are_shown_what_all_measure() {
    host_clock::simulate();
    let bus = CanBus::new(0.0, 1);
    agree(Lie::Plane, None, || {
        CanFd::new(bus.controller(), Duration::from_micros(100)).unwrap()
    });
}

#[test]
fn classic_can_is_refused_by_name() {
    let refused = CanFd::new(Classic, Duration::from_micros(100)).err();
    assert_eq!(refused, Some(ClassicCan));
    assert!(ClassicCan.to_string().contains("need CAN FD"));
}

/// Nodes on a line.
const NODES: usize = 4;

/// What a bus was like, and what became of the nodes on it.
struct Outcome {
    nodes: Vec<Node>,
    said: Vec<Alone>,
    blob: Vec<u8>,
}

impl Outcome {
    /// No wrong cell: whenever a policy acted, it acted as one that is shown what all measure. And nobody was
    /// left so long that its watchdog would have bitten.
    fn check(&self) -> [u64; 2] {
        let (mut acted, mut steps) = (0, 0);
        for (k, node) in self.nodes.iter().enumerate() {
            let expected = shown(&self.blob, Lie::Line, k, MEASURED).force;
            for (action, at) in node.acted() {
                assert_eq!(
                    action.force.to_bits(),
                    expected.to_bits(),
                    "node {k} at {at}"
                );
                acted += 1;
            }
            assert!(
                node.starved() <= Duration::from_millis(250),
                "{:?}",
                node.starved()
            );
        }
        for said in &self.said {
            steps += u64::from(said.timing.steps);
            assert_eq!(said.timing.overruns, 0);
        }
        [acted, steps]
    }

    fn heard(&self) -> Heard {
        let mut all = Heard::default();
        for said in &self.said {
            let heard = said.heard.unwrap();
            all.taken += heard.taken;
            all.damaged += heard.damaged;
            all.elsewhere += heard.elsewhere;
            all.again += heard.again;
            all.late += heard.late;
            all.implausible += heard.implausible;
            all.rivals += heard.rivals;
            all.introduced += heard.introduced;
        }
        all
    }
}

/// Somebody on the bus who never stops: other nodes' positions without their key, its key at other positions,
/// garbage, what it has recorded a while ago, what it has just heard, twice.
async fn babble(bus: &mut impl Bus, key: Option<&BusKey>, seed: u64) {
    let (mut seed, mut recorded) = (seed, Vec::<Vec<u8>>::new());
    let other = BusKey::new([6; 32]);
    let mut frame = [0; MTU];
    loop {
        let chance = next(&mut seed);
        let forged = Bulletin {
            field: Field::of("test"),
            start: (chance >> 8) as u32 % 4,
            number: next(&mut seed) >> 40,
            stamp_us: Instant::now().as_micros() as u32,
            position: Lie::Line.stands_at((chance >> 16) as usize % NODES),
            value: (chance >> 32) as f32 / 2f32.powi(31) - 1.0,
        };
        let elsewhere = Bulletin {
            position: [forged.position[0] + 0.05, 0.0],
            ..forged
        };
        let mut room = [0; SEALED];
        let said: Vec<u8> = match (chance % 5, recorded.is_empty()) {
            (0, _) => (0..48).map(|_| next(&mut seed) as u8).collect(),
            (1, _) => elsewhere.encode(key, &mut room).to_vec(),
            // Without a key nobody can tell who says what: then it is of another field.
            (2, _) => match key {
                Some(_) => forged.encode(Some(&other), &mut room).to_vec(),
                None => Bulletin {
                    field: Field::of("another"),
                    ..forged
                }
                .encode(None, &mut room)
                .to_vec(),
            },
            (_, true) => continue,
            (3, false) => recorded[recorded.len() - 1].clone(),
            (_, false) => match key {
                Some(_) => recorded[(chance >> 20) as usize % recorded.len()].clone(),
                None => recorded[recorded.len() - 1].clone(),
            },
        };
        loop {
            let Err(Busy { until }) = bus.send(&said).await else {
                break;
            };
            let listening = async {
                loop {
                    let length = bus.receive(&mut frame).await;
                    if Bulletin::read(&frame[..length], key).is_ok() {
                        recorded.push(frame[..length].to_vec());
                        if recorded.len() > 1_000 {
                            recorded.remove(0);
                        }
                    }
                }
            };
            select(Timer::at(until), listening).await;
        }
    }
}

/// Nodes and one who babbles, for so long. The last of the nodes dies in the middle.
fn full_bus<B: Bus>(lasts: Duration, key: Option<BusKey>, taps: impl FnMut() -> B) -> Outcome {
    let blob = policy_that_weighs(false, PATIENT.timing);
    let mut nodes: Vec<Node> = (0..NODES).map(|k| Node::new(k, key.clone())).collect();
    let mut buses: Vec<B> = std::iter::repeat_with(taps).take(NODES + 1).collect();
    let (babbler, buses) = buses.split_first_mut().unwrap();
    let ends = Instant::now() + lasts;
    let dies = ends - lasts / 4;
    let lives = nodes.iter_mut().zip(buses).enumerate();
    let lives = lives.map(|(k, (node, bus))| {
        let blob = &blob;
        Box::pin(async move {
            let until = if k == NODES - 1 { dies } else { ends };
            let script = async |_: &Host| Timer::at(until).await;
            node.live(bus, blob, &place(Lie::Line, k, PATIENT), script)
                .await
        }) as Pin<Box<dyn Future<Output = Alone>>>
    });
    let babbling = babble(babbler, key.as_ref(), 3);
    let said = match host_clock::block_on(select(all(lives.collect()), babbling)) {
        Either::First(said) => said,
        Either::Second(()) => unreachable!(),
    };
    // Those who heard it act no longer than what it said is fresh.
    let [.., beside, _] = &nodes[..] else {
        unreachable!()
    };
    let fresh = dies + Duration::from_micros(PATIENT.stale_us.into()) + Duration::from_millis(15);
    assert!(beside.acted().all(|(_, at)| at <= fresh));
    Outcome { nodes, said, blob }
}

/// A serial line at full load, with a key.
fn full_line(baud: u32, lasts: Duration, wrong: f64) {
    host_clock::simulate();
    let wire = Wire::new(baud.into(), wrong, 7);
    let outcome = full_bus(lasts, Some(BusKey::new([5; 32])), || {
        let (input, output) = wire.tap();
        Serial::new(input, output, baud)
    });
    let ([acted, steps], heard, traffic) = (outcome.check(), outcome.heard(), wire.traffic());
    println!(
        "serial, {baud} baud, {} s, {wrong} of bits wrong: {traffic:?}, {acted} of {steps} steps acted, {heard:?}",
        lasts.as_secs()
    );
    assert!(
        acted > 0 && heard.damaged > heard.taken,
        "{acted} {heard:?}"
    );
    assert!(heard.again > 0 && heard.elsewhere > 0, "{heard:?}");
}

/// CAN FD at full load, without a key.
fn full_can(lasts: Duration, wrong: f64) {
    host_clock::simulate();
    let bus = CanBus::new(wrong, 7);
    let outcome = full_bus(lasts, None, || {
        CanFd::new(bus.controller(), Duration::from_micros(200)).unwrap()
    });
    let ([acted, steps], heard, (frames, busy)) = (outcome.check(), outcome.heard(), bus.traffic());
    println!(
        "CAN FD, {} s, {wrong} of bits wrong: {frames} frames, taken for {busy:?}, {acted} of {steps} steps \
         acted, {heard:?}",
        lasts.as_secs()
    );
    assert!(
        acted > 0 && heard.damaged > heard.taken,
        "{acted} {heard:?}"
    );
    assert!(heard.again > 0 && heard.elsewhere > 0, "{heard:?}");
}

#[test]
fn on_a_full_bus_with_wrong_bits_no_wrong_cell_is_used_and_nobody_is_reset() {
    full_line(1_000_000, Duration::from_secs(6), 0.01);
    full_can(Duration::from_secs(6), 0.01);
}

/// `cargo test --release -p firmware --test node ten_minutes -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn ten_minutes_of_a_full_bus_with_wrong_bits() {
    full_line(1_000_000, Duration::from_secs(600), 0.01);
    full_can(Duration::from_secs(600), 0.01);
}
