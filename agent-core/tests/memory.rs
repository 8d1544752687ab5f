//! What an agent keeps from one step to the next.

use crate::sample;

use agent_core::agent::{Action, Agent, AgentState, Mode};
use agent_core::policy::{Encoding, Header, MAX_MEMORY, Memory, Norm, Policy, encode};
use proptest::prelude::*;
use sample::{
    Layer, Random, Shown, blob, bytes, convolution, convolved_header, dense, header, int8_header,
    int8_plane_header, layers_for, plane_header, remembering,
};

const PERIOD_US: u64 = 1_000;
const FAIL_SAFE_US: u64 = 20_000;

/// An agent with one number, which its force tells; the first error that it sees pushes it, the second is
/// its gate.
fn integrator() -> (Vec<u32>, usize) {
    use agent_core::policy::{Activation, Channel};
    let mut header = header(8);
    header.sensing.channels = [Channel::Error].into_iter().collect();
    header.limits.velocity = None;
    let network = &mut header.network;
    network.branch.clear();
    network.trunk.clear();
    network.frequencies.clear();
    network.memory = Some(Memory {
        floats: 1,
        leak: 0.25,
        gain: 0.5,
    });
    // Eight errors and the memory in; push, gate and force out.
    network.branch = [dense(9, 9, Norm::None, Activation::Identity)]
        .into_iter()
        .collect();
    network.head = [dense(9, 3, Norm::None, Activation::Identity)]
        .into_iter()
        .collect();
    let mut same = Layer {
        inputs: 9,
        weights: vec![0.0; 81],
        bias: vec![0.0; 9],
    };
    (0..9).for_each(|k| same.weights[10 * k] = 1.0);
    let mut head = Layer {
        inputs: 9,
        weights: vec![0.0; 27],
        bias: vec![0.0; 3],
    };
    head.weights[0] = 1.0;
    head.weights[3 + 1] = 1.0;
    head.weights[24 + 2] = 1.0;
    blob(&header, &[same, head])
}

/// What the page says, in double precision.
fn updated(m: f64, push: f64, gate: f64) -> f64 {
    let next = m - 0.25 * (1.0 + gate.tanh()) * m + 0.5 * push.tanh();
    next.clamp(-1.0, 1.0)
}

/// Drives an agent with the policy of [`integrator`].
struct Driver<'a> {
    policy: Policy<'a>,
    agent: Agent<'a, 'a>,
    now_us: u64,
}

impl<'a> Driver<'a> {
    fn new(blob: &'a (Vec<u32>, usize), workspace: &'a mut Vec<f32>) -> Self {
        let policy = Policy::parse(bytes(blob)).unwrap();
        workspace.resize(policy.workspace_len(), f32::NAN);
        Self {
            agent: Agent::new(policy.clone(), workspace).unwrap(),
            policy,
            now_us: 0,
        }
    }

    /// One step later: the memory as it was before this step, told by the force.
    fn see(&mut self, push: f32, gate: f32) -> f64 {
        self.now_us += PERIOD_US;
        let mut shown = Shown::all(&self.policy, 0.0);
        // The window begins behind the halo.
        (shown.field[1], shown.field[2]) = (push, gate);
        let action = self.agent.step(&shown.patch(), [0.5, 0.0], self.now_us);
        assert_eq!(action.mode, Mode::Active);
        f64::from(action.force / 40.0).atanh()
    }
}

#[test]
fn the_memory_is_what_the_page_says() {
    let (blob, mut workspace) = (integrator(), Vec::new());
    let mut driver = Driver::new(&blob, &mut workspace);
    let mut random = Random(5);
    let mut expected = 0.0;
    for _ in 0..200 {
        let (push, gate) = (3.0 * random.next(), 2.0 * random.next());
        let found = driver.see(push, gate);
        assert!((found - expected).abs() < 2e-5, "{found} and {expected}");
        expected = updated(expected, push.into(), gate.into());
    }
}

#[test]
fn it_stays_while_the_agent_holds_and_goes_when_it_fails_safe() {
    let (blob, mut workspace) = (integrator(), Vec::new());
    let mut driver = Driver::new(&blob, &mut workspace);
    driver.see(0.7, -9.0);
    let kept = driver.see(0.0, -9.0);
    assert!(kept > 0.25, "{kept}");
    // Blind for a while, asked or not: one period less than it takes to fail safe.
    for blind in 1..FAIL_SAFE_US / PERIOD_US - 1 {
        driver.now_us += PERIOD_US;
        if blind % 2 == 0 {
            assert_eq!(driver.agent.idle(driver.now_us).mode, Mode::Holding);
        }
    }
    let still = driver.see(0.0, -9.0);
    assert!((still - kept).abs() < 2e-6, "{still} and {kept}");
    // What it cannot read changes nothing.
    let mut broken = Shown::all(&driver.policy, 0.5);
    broken.field[1] = f32::NAN;
    driver.now_us += PERIOD_US;
    let action = driver
        .agent
        .step(&broken.patch(), [0.5, 0.0], driver.now_us);
    assert_eq!(action.mode, Mode::Holding);
    let still = driver.see(0.0, -9.0);
    assert!((still - kept).abs() < 2e-6, "{still} and {kept}");
    // Blind for too long, without anyone asking meanwhile what it does.
    driver.now_us += FAIL_SAFE_US - PERIOD_US;
    assert_eq!(driver.see(0.7, -9.0), 0.0);
    assert!(driver.see(0.0, -9.0) > 0.25);
    driver.agent.reset();
    assert_eq!(driver.see(0.0, -9.0), 0.0);
}

/// One policy of each kind, all with a memory.
fn kinds() -> Vec<Header<'static>> {
    use agent_core::policy::Activation::{Relu, Tanh};
    let convolutions = [
        convolution(3, 4, [1, 1], Relu),
        convolution(4, 5, [2, 0], Tanh),
    ];
    vec![
        remembering(header(20), 2),
        remembering(plane_header(), 16),
        remembering(convolved_header(6, &convolutions), 3),
        remembering(int8_header(20), 2),
        remembering(int8_plane_header(), 5),
    ]
}

/// The output of a policy with a memory depends on it, and its probe sees whether it is read.
#[test]
fn every_kind_of_policy_reads_what_it_remembers() {
    for header in kinds() {
        let blob = blob(&header, &layers_for(&header, 3));
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let mut workspace = vec![f32::NAN; policy.workspace_len()];
        assert!(policy.self_test(&mut workspace));
        let shown = Shown::noise(&policy, 1.0, &mut Random(9));
        let observation = shown.at([0.4, 0.3], 0);
        let mut output = |memory: f32| {
            let mut memory = [memory; MAX_MEMORY];
            let outputs = policy
                .outputs(&observation, &mut memory, &mut workspace)
                .unwrap();
            (outputs, memory)
        };
        let (empty, after) = output(0.0);
        let (full, _) = output(1.0);
        assert_ne!(empty, full);
        let floats = policy.header().network.remembered();
        assert!(after[..floats].iter().all(|m| *m != 0.0), "{after:?}");
        assert!(after[floats..].iter().all(|m| *m == 0.0), "{after:?}");
    }
}

/// 8-bit weights change what is remembered, but not by much.
#[test]
fn int8_remembers_nearly_what_f32_does() {
    let int8 = remembering(int8_header(20), 2);
    let mut plain = int8.clone();
    plain.network.encoding = Encoding::F32;
    let layers = layers_for(&int8, 4);
    let [int8, plain] = [int8, plain].map(|header| blob(&header, &layers));
    let [int8, plain] = [&int8, &plain].map(|blob| Policy::parse(bytes(blob)).unwrap());
    let mut workspace = vec![f32::NAN; int8.workspace_len().max(plain.workspace_len())];
    let mut memories = [[0.0; MAX_MEMORY]; 2];
    let mut random = Random(8);
    for _ in 0..50 {
        let shown = Shown::noise(&plain, 1.0, &mut random);
        let observation = shown.at([0.4, 0.0], 0);
        for (policy, memory) in [&int8, &plain].into_iter().zip(&mut memories) {
            policy
                .outputs(&observation, memory, &mut workspace)
                .unwrap();
        }
        let [a, b] = &memories;
        assert!(
            a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.1),
            "{a:?} {b:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    /// Whatever weights a policy has that is not refused, and whatever it is shown for however long.
    #[test]
    fn it_is_bounded(
        seed in any::<u64>(),
        scale in -3i32..8,
        kind in 0usize..5,
        leak in 0.0f32..=0.5,
        gain in 0.0f32..=1.0,
    ) {
        let mut header = kinds().swap_remove(kind);
        let memory = header.network.memory.as_mut().unwrap();
        (memory.leak, memory.gain) = (leak, gain);
        let mut layers = layers_for(&header, seed);
        for layer in &mut layers {
            layer.weights.iter_mut().chain(&mut layer.bias).for_each(|w| *w *= 10f32.powi(scale));
        }
        let numbers: Vec<_> = layers.iter().map(Layer::weights).collect();
        let mut buffer = vec![0; 1 << 16];
        // Some weights are too large for any policy.
        let Ok(blob) = encode(&header, &numbers, &mut buffer) else {
            return Ok(());
        };
        let policy = Policy::parse(blob).unwrap();
        let mut workspace = vec![f32::NAN; policy.workspace_len()];
        let mut memory = [0.0; MAX_MEMORY];
        let mut state = AgentState::new();
        let mut random = Random(seed);
        for step in 0..40 {
            let shown = Shown::noise(&policy, 10f32.powi(step % 9), &mut random);
            let observation = shown.at([0.4, 0.3], PERIOD_US * step as u64);
            if policy.outputs(&observation, &mut memory, &mut workspace).is_some() {
                prop_assert!(memory.iter().all(|m| m.abs() <= 1.0), "{:?}", memory);
            }
            let Action { force, velocity: [x, y], .. } = state.step(&policy, &mut workspace, &observation);
            prop_assert!([force, x, y].iter().all(|v| v.is_finite()));
        }
    }
}
