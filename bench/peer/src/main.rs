//! A policy's network in TensorFlow Lite Micro, timed on the emulated board.
//!
//! The emulator loads a policy blob where a node has its slot. The image hands the same weights to
//! the library, lets it and agent-core act on the same observation, requires that they agree, and
//! prints how many nanoseconds of the board's clock the library's network took. Where that clock
//! counts instructions, so does the figure.
//!
//! Only the network is timed: features and the position's sines and cosines are written to its
//! inputs beforehand, its outputs are scaled to an action afterwards.

#![no_std]
#![no_main]

mod tflm;
mod weights;

use core::{f32::consts::PI, panic::PanicInfo, slice};

use agent_core::{
    agent::{Action, Agent, Mode},
    message::{Patch, Span},
    policy::{Channel, Dense, Fusion, Header, MAX_LAYERS, Policy, stated_length},
};
use cortex_m::{
    Peripherals,
    peripheral::{SYST, syst::SystClkSource},
    singleton,
};
use cortex_m_rt::entry;
use cortex_m_semihosting::{
    debug::{self, EXIT_FAILURE, EXIT_SUCCESS},
    hprintln,
};
use heapless::Vec;

use crate::{tflm::Network, weights::Layers};

/// One tick of the core's clock, 25 MHz on this board.
const TICK_NS: u32 = 40;
/// The clock has 24 bits.
const CLOCK_MAX: u32 = (1 << 24) - 1;

/// How far the two may differ, in units of the action's limit: they add up in another order and
/// have another tanh.
const TOLERANCE: f32 = 1e-4;

/// Floats of a policy that fills a node's slot, and of its working memory.
const WEIGHTS: usize = 256 * 1024 / 4;
const WORKSPACE: usize = 32 * 1024 / 4;

/// Room for the cells of a patch.
const PATCH: usize = 128;

/// Where the agent stands: off the middle, where no sine of its position vanishes.
const POSITION: f32 = 0.3;

#[entry]
fn main() -> ! {
    let blob = blob();
    let policy = Policy::parse(blob).expect("the emulator has loaded a policy");
    let header = policy.header().clone();

    // A field that bends, so that neither channel is constant.
    let cells = policy.patch_len();
    let bend = |k| {
        let x = k as f32 / cells as f32;
        0.5 + x - 2.0 * x * x
    };
    let patch: Vec<f32, PATCH> = (0..cells).map(bend).collect();
    let mut network = load(blob, &header);
    write_inputs(&header, &patch, &mut network);
    let (outputs, nanoseconds) = timed(|| network.run());

    compare(&header, outputs, act(policy, &patch));
    hprintln!("{}", nanoseconds);
    debug::exit(EXIT_SUCCESS);
    unreachable!("the emulator has ended")
}

/// The blob that the emulator has loaded.
fn blob() -> &'static [u8] {
    unsafe extern "C" {
        static _policy_start: u8;
        static _policy_end: u8;
    }
    // SAFETY: a region of its own, see memory.x, that nothing writes.
    let slot = unsafe {
        let start = &raw const _policy_start;
        let length = (&raw const _policy_end).offset_from_unsigned(start);
        slice::from_raw_parts(start, length)
    };
    let length = stated_length(slot).expect("the emulator has loaded a policy");
    &slot[..length]
}

/// Hands the policy's network to the library.
fn load(blob: &[u8], header: &Header) -> Network {
    let network = &header.network;
    assert_eq!(network.fusion, Fusion::Concatenate);
    let room = singleton!(: [f32; WEIGHTS] = [0.0; WEIGHTS]).expect("used once");
    let mut layers = Layers::new(blob, room);
    let mut chain = |part: &[Dense]| -> Vec<_, MAX_LAYERS> {
        part.iter().map(|dense| layers.next(dense)).collect()
    };
    let (branch, trunk) = (chain(&network.branch), chain(&network.trunk));
    Network::load(&branch, &trunk, &chain(&network.head))
}

/// Writes what the policy makes of a patch whose target is zero, all of it inside the domain.
fn write_inputs(header: &Header, patch: &[f32], network: &mut Network) {
    let sensing = &header.sensing;
    let window = usize::from(sensing.window);
    assert_eq!(sensing.axes, 1);
    assert_eq!(sensing.samples, sensing.window, "this does not resample");
    let (features, position) = network.inputs();
    for (channel, values) in sensing.channels.iter().zip(features.chunks_mut(window)) {
        for (around, value) in patch.windows(3).zip(values) {
            *value = match channel {
                Channel::Error => around[1],
                Channel::Slope => (around[2] - around[0]) / 2.0,
                Channel::Across => panic!("a line has no second axis"),
            };
        }
    }
    // An agent that has just begun remembers nothing.
    features[sensing.channels.len() * window..].fill(0.0);
    let (low, high) = (header.limits.low[0], header.limits.high[0]);
    let scaled = (POSITION - low) / (high - low);
    let (sines, cosines) = position.split_at_mut(header.network.frequencies.len());
    for ((frequency, sine), cosine) in header.network.frequencies.iter().zip(sines).zip(cosines) {
        (*sine, *cosine) = libm::sincosf(PI * frequency * scaled);
    }
}

/// What agent-core does with the same policy and patch.
fn act(policy: Policy, patch: &[f32]) -> Action {
    let target = [0.0; PATCH];
    let target = if policy.header().sensing.target {
        &target[..patch.len()]
    } else {
        &[]
    };
    let last = patch.len() as u16 - 1;
    let patch = Patch::line(patch, target, Span { first: 0, last });
    let workspace = singleton!(: [f32; WORKSPACE] = [0.0; WORKSPACE]).expect("used once");
    let mut agent = Agent::new(policy, workspace).expect("room for a node's policy");
    agent.step(&patch, [POSITION, 0.0], 0)
}

/// Ends the run unless the library's outputs give agent-core's action.
fn compare(header: &Header, outputs: &[f32], action: Action) {
    assert_eq!(action.mode, Mode::Active);
    let limits = [header.limits.force, header.limits.velocity];
    let ours = [action.force, action.velocity[0]];
    // Before them: what it would remember.
    let outputs = &outputs[2 * header.network.remembered()..];
    assert_eq!(outputs.len(), ours.len());
    for ((output, ours), limit) in outputs.iter().zip(ours).zip(limits) {
        let limit = limit.expect("a mobile agent with a force");
        let theirs = limit * libm::tanhf(*output);
        assert!(
            (theirs - ours).abs() <= TOLERANCE * limit,
            "the library's network answers {theirs}, agent-core's {ours}"
        );
    }
}

/// Runs something, and says how long it took.
fn timed<T>(run: impl FnOnce() -> T) -> (T, u32) {
    let mut clock = Peripherals::take().expect("taken once").SYST;
    clock.set_clock_source(SystClkSource::Core);
    clock.set_reload(CLOCK_MAX);
    clock.clear_current();
    clock.enable_counter();
    let start = SYST::get_current();
    let result = run();
    let end = SYST::get_current();
    assert!(
        !clock.has_wrapped(),
        "that took longer than the clock counts"
    );
    // It counts down, and stands at 0 until its first tick.
    (result, (start.wrapping_sub(end) & CLOCK_MAX) * TICK_NS)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    hprintln!("{}", info);
    debug::exit(EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
