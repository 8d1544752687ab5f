//! The network in TensorFlow Lite Micro: the safe side of network.cc.

use core::{
    ffi::{CStr, c_char},
    slice,
};

use agent_core::policy::{Activation, Dense, Norm};
use cortex_m_semihosting::hprint;

/// One dense layer; the same in network.cc.
#[repr(C)]
pub struct Layer {
    inputs: u32,
    outputs: u32,
    soft_normalised: bool,
    tanh: bool,
    weights: *const f32,
    bias: *const f32,
}

impl Layer {
    /// A layer with its weights as `[outputs][inputs]`.
    pub fn new(dense: &Dense, weights: &'static [f32], bias: &'static [f32]) -> Self {
        assert_ne!(dense.activation, Activation::Relu, "no policy has it");
        assert_eq!(bias.len(), usize::from(dense.outputs));
        assert_eq!(weights.len(), usize::from(dense.inputs) * bias.len());
        Self {
            inputs: dense.inputs.into(),
            outputs: dense.outputs.into(),
            soft_normalised: dense.norm == Norm::Soft,
            tanh: dense.activation == Activation::Tanh,
            weights: weights.as_ptr(),
            bias: bias.as_ptr(),
        }
    }
}

/// Layers one after the other; the same in network.cc.
#[repr(C)]
struct Chain {
    layers: *const Layer,
    count: u32,
}

impl Chain {
    fn new(layers: &[Layer]) -> Self {
        Self {
            layers: layers.as_ptr(),
            count: layers.len() as u32,
        }
    }
}

unsafe extern "C" {
    fn network_load(branch: Chain, trunk: Chain, head: Chain) -> bool;
    fn network_input(index: u32) -> *mut f32;
    fn network_run() -> *const f32;
}

/// The loaded network; there is one.
pub struct Network {
    features: &'static mut [f32],
    position: &'static mut [f32],
    outputs: usize,
}

impl Network {
    /// Hands the layers to the library. To be called once: the library's memory is static.
    pub fn load(branch: &[Layer], trunk: &[Layer], head: &[Layer]) -> Self {
        let inputs = |chain: &[Layer]| chain.first().expect("a layer").inputs as usize;
        let outputs = head.last().expect("a layer").outputs as usize;
        // SAFETY: each chain is as long as it says, each layer has as many weights as it says and
        // they stay; each input is as long as the layer that reads it, and handed out once.
        unsafe {
            let loaded = network_load(Chain::new(branch), Chain::new(trunk), Chain::new(head));
            assert!(loaded, "the library refused the network");
            Self {
                features: slice::from_raw_parts_mut(network_input(0), inputs(branch)),
                position: slice::from_raw_parts_mut(network_input(1), inputs(trunk)),
                outputs,
            }
        }
    }

    /// What the network reads: features, then the position's sines and cosines.
    pub fn inputs(&mut self) -> (&mut [f32], &mut [f32]) {
        (self.features, self.position)
    }

    /// Runs the network on its inputs.
    pub fn run(&mut self) -> &[f32] {
        // SAFETY: the network is loaded.
        let outputs = unsafe { network_run() };
        assert!(!outputs.is_null(), "the library failed to run the network");
        // SAFETY: as many as the last layer has, and they stay until the next run.
        unsafe { slice::from_raw_parts(outputs, self.outputs) }
    }
}

/// Where the library puts its messages, piece by piece.
#[unsafe(no_mangle)]
extern "C" fn DebugLog(piece: *const c_char) {
    // SAFETY: the library passes strings that end.
    let piece = unsafe { CStr::from_ptr(piece) };
    hprint!("{}", piece.to_str().unwrap_or("?"));
}

/// Where C++ ends that cannot go on.
#[unsafe(no_mangle)]
extern "C" fn abort() -> ! {
    panic!("the library gave up")
}
