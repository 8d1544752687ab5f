//! A small policy that works, so that tests need no trained one.
#![allow(dead_code)] // Each test file uses its own part of this.

use agent_core::policy::{
    Activation, Channel, Dense, DenseWeights, Fusion, Header, Limits, Network, Norm, Provenance,
    Sensing, Timing, encode,
};

/// A blob by hand for `problem`: `u = 40 tanh(−2.5 e)` and `v = 2 tanh(e)` with the mean error `e`
/// of the two cells around the agent.
pub fn policy_for(problem: &str) -> Vec<u8> {
    let dense = |inputs, outputs| Dense {
        inputs,
        outputs,
        norm: Norm::None,
        activation: Activation::Identity,
    };
    let header = Header {
        problem,
        sensing: Sensing {
            axes: 1,
            window: 8,
            target: true,
            channels: heapless::Vec::from_slice(&[Channel::Error]).unwrap(),
            samples: 8,
            error_limit: 100.0,
        },
        network: Network {
            branch: heapless::Vec::from_slice(&[dense(8, 1)]).unwrap(),
            frequencies: heapless::Vec::new(),
            trunk: heapless::Vec::new(),
            fusion: Fusion::Concatenate,
            head: heapless::Vec::from_slice(&[dense(1, 2)]).unwrap(),
        },
        limits: Limits {
            force: Some(40.0),
            velocity: Some(2.0),
            low: [0.0; 2],
            high: [1.0; 2],
        },
        timing: Timing {
            period_us: 1_000,
            late_us: 3_000,
            fail_safe_us: 20_000,
        },
        workspace: 0,
        provenance: Provenance {
            tool: "by hand",
            revision: "",
            seed: 0,
            steps: 0,
        },
    };
    let layers = [
        DenseWeights {
            weights: &[0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
            bias: &[0.0],
        },
        DenseWeights {
            weights: &[-2.5, 1.0],
            bias: &[0.0, 0.0],
        },
    ];
    let mut buffer = vec![0; 4096];
    encode(&header, &layers, &mut buffer).unwrap().to_vec()
}

/// The policy above for heat-1d.
pub fn policy() -> Vec<u8> {
    policy_for("heat-1d")
}
