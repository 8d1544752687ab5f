//! Freezing a trained policy into the blob that agents carry, and thawing one.

use crate::checkpoint::Checkpoint;
use crate::entry::Entries;
use crate::policy::{GAIN, LEAK, PolicyConfig, Shape, Sight};
use agent_core::net::unpack_dense;
use agent_core::policy::{
    Activation, Dense, DenseWeights, Governor, Header, Memory, Network, Norm, Policy, Provenance,
    Sensing, Text, encode,
};
use anyhow::{Context, Result, anyhow, bail, ensure};
use artifacts::fitting;
use artifacts::policy_file::{self, PolicyFile};
use burn::tensor::Device;
use problem::Problem;

/// The source revision that this program is built from, where it is known.
pub const REVISION: &str = match option_env!("SOURCE_REVISION") {
    Some(revision) => revision,
    None => "",
};

/// What exported policies get unless something else is asked for: eased outputs are whole again after
/// at most 700 steps without overshoot.
pub const GOVERNOR: Governor = governor(1.01, 0.0);

/// A governor of this growth and band. Its floor is so low that only a loop gain of a thousand would need
/// a lower one.
pub const fn governor(growth: f32, band: f32) -> Governor {
    Governor {
        growth,
        floor: 1.0 / 1024.0,
        band,
    }
}

/// What a blob says about its training.
#[derive(Debug, Clone, Copy)]
pub struct Training {
    /// Seed of the run.
    pub seed: u64,
    /// Optimiser steps.
    pub steps: u64,
}

/// The policy of a checkpoint as agents get it unless something else is asked for; `origin` is where it
/// comes from, for those who are told about it.
pub fn usual(checkpoint: Checkpoint, entries: &Entries, origin: String) -> Result<PolicyFile> {
    // Described fields are trained with memory and one size, of which a governor would cost more than it
    // gives.
    let governor = match problem::kit::is_file(&checkpoint.problem) {
        true => None,
        false => Some(GOVERNOR),
    };
    let blob = from_checkpoint(checkpoint, entries)
        .with_context(|| format!("cannot export '{origin}'"))?;
    Ok(PolicyFile::new(&blob, origin).governed(governor)?)
}

/// The blob of the policy in a checkpoint, without a governor.
pub fn from_checkpoint(checkpoint: Checkpoint, entries: &Entries) -> Result<Vec<u8>> {
    let problem = entries.by_name(&checkpoint.problem)?.problem;
    let training = Training {
        seed: checkpoint.config.seed,
        steps: checkpoint.step,
    };
    if let Some(seats) = checkpoint.policy.shape.seats {
        bail!(
            "it is one network that is told the whole field and decides for all of {seats} agents, so no agent can \
             carry it; run it with trainer eval {} --controller dpc --network, or train a policy without --centralised",
            checkpoint.problem
        );
    }
    let parameters = checkpoint.network(&Device::default())?.parameters();
    blob(problem, &checkpoint.policy, &parameters, training)
}

/// The blob of a policy given by its flat parameters.
pub fn blob(
    problem: &Problem,
    config: &PolicyConfig,
    parameters: &[f32],
    training: Training,
) -> Result<Vec<u8>> {
    let folded = fold_gains(config, parameters);
    let mut rest = folded.as_slice();
    let layers = config.shape.layers().map(|[inputs, outputs]| {
        let (weights, others) = rest.split_at(inputs * outputs);
        let (bias, others) = others.split_at(outputs);
        rest = others;
        DenseWeights { weights, bias }
    });
    let header = header(problem, config, training)?;
    // Weights may be padded, and the probe is run behind the blob: twice the parameters, some pages
    // for header and probe and the largest working memory are plenty.
    let mut buffer = vec![0u32; 2 * parameters.len() + (1 << 16)];
    let blob = encode(&header, &layers, &mut buffer)
        .map_err(|e| anyhow!("the policy cannot be written as a blob: {e}"))?;
    Ok(blob.to_vec())
}

/// The parameters with the constant factors on the inputs multiplied into the first layer.
fn fold_gains(config: &PolicyConfig, parameters: &[f32]) -> Vec<f32> {
    with_gains(config, parameters, |weight, gain| weight * gain)
}

fn with_gains(
    config: &PolicyConfig,
    parameters: &[f32],
    change: impl Fn(f32, f32) -> f32,
) -> Vec<f32> {
    let mut changed = parameters.to_vec();
    let [inputs, outputs] = config.shape.layers()[0];
    let rows = changed[..inputs * outputs].chunks_exact_mut(outputs);
    for (gain, row) in config.sight.gains(config.shape.axes).iter().zip(rows) {
        row.iter_mut().for_each(|w| *w = change(*w, *gain as f32));
    }
    changed
}

/// The flat parameters of a policy, to train it further: the reverse of [`blob`], but for rounding.
/// Refuses one with another view or other layers than `config` has.
pub fn thaw(policy: &Policy, problem: &Problem, config: &PolicyConfig) -> Result<Vec<f32>> {
    let theirs = policy.header();
    let training = Training { seed: 0, steps: 0 };
    let ours = header(problem, config, training)?;
    ensure!(
        theirs.network.encoding == ours.network.encoding,
        "its weights are {}; give the policy with f32 weights that it was made from",
        policy_file::name(theirs.network.encoding)
    );
    ensure!(
        theirs.sensing == ours.sensing,
        "its agents see something else: a window of {} cells, not {}; give --window {0}, or a policy of \
         this version's recipe",
        theirs.sensing.window,
        ours.sensing.window
    );
    ensure!(
        theirs.network.memory == ours.network.memory,
        "its agents remember {} numbers, not {}; give --memory {0}, or a policy of this version's recipe",
        theirs.network.remembered(),
        ours.network.remembered()
    );
    ensure!(
        theirs.network == ours.network,
        "its layers are others than those of this version's recipe"
    );
    let mut parameters = vec![0.0; policy.parameters_len()];
    let mut rest = parameters.as_mut_slice();
    for (inputs, outputs, packed) in policy.packed_layers() {
        let (layer, others) = rest.split_at_mut((inputs + 1) * outputs);
        let (weights, bias) = layer.split_at_mut(inputs * outputs);
        unpack_dense(packed, inputs, weights, bias);
        rest = others;
    }
    let parameters = with_gains(config, &parameters, |weight, gain| weight / gain);
    let mut held = config.shape.held().into_iter().flatten();
    ensure!(
        held.all(|k| parameters[k] == 0.0),
        "its agents act without an error; train it further without --rests"
    );
    Ok(parameters)
}

/// The network of a policy, to [`thaw`] it: one of two layers each, as this trainer makes them. What its
/// inputs are multiplied with is in its weights.
pub fn config(policy: &Policy, problem: &Problem) -> Result<PolicyConfig> {
    let Header {
        sensing, network, ..
    } = policy.header();
    let widths = |layers: &[Dense]| match layers {
        [first, second] => Ok([first, second].map(|layer| usize::from(layer.outputs))),
        _ => Err(anyhow!("its layers are others than this trainer makes")),
    };
    let (axes, memory) = (usize::from(sensing.axes), network.remembered());
    let others = vec![1.0; problem.also_seen().len()];
    let sight = Sight {
        window: usize::from(sensing.window),
        error_gain: 1.0,
        slope_gain: 1.0,
        wide: (sensing.wide.filter(|_| others.is_empty())).map(|cells| cells.map(usize::from)),
        wide_gain: 1.0,
        target: false,
        others,
    };
    let [fuse, outputs] = widths(&network.head)?;
    let shape = Shape {
        features: sight.features(axes),
        memory,
        branch: widths(&network.branch)?,
        axes,
        frequencies: network.frequencies.iter().copied().map(f64::from).collect(),
        trunk: widths(&network.trunk)?,
        fusion: network.fusion,
        rests: false,
        fuse,
        actions: outputs.saturating_sub(2 * memory),
        seats: None,
    };
    Ok(PolicyConfig { shape, sight })
}

fn header(problem: &Problem, config: &PolicyConfig, training: Training) -> Result<Header<'static>> {
    let layer = |[inputs, outputs]: [usize; 2], norm, activation| Dense {
        inputs: inputs as u16,
        outputs: outputs as u16,
        norm,
        activation,
    };
    let PolicyConfig { shape, sight } = config;
    let [b1, b2, t1, t2, fuse, head] = shape.layers();
    let list = |layers: [Dense; 2]| layers.into_iter().collect();
    let soft = |sizes| layer(sizes, Norm::Soft, Activation::Tanh);
    let plain = |sizes| layer(sizes, Norm::None, Activation::Tanh);
    let usual = fitting::header(problem, sight.window);
    Ok(Header {
        sensing: Sensing {
            wide: (sight.wide.map(|cells| cells.map(|n| n as u8))).or(usual.sensing.wide),
            ..usual.sensing
        },
        network: Network {
            branch: list([soft(b1), soft(b2)]),
            frequencies: shape.frequencies.iter().map(|&f| f as f32).collect(),
            trunk: list([plain(t1), plain(t2)]),
            fusion: shape.fusion,
            head: list([plain(fuse), layer(head, Norm::None, Activation::Identity)]),
            memory: (shape.memory > 0).then_some(Memory {
                floats: shape.memory as u8,
                leak: LEAK,
                gain: GAIN,
            }),
            ..Network::default()
        },
        provenance: Provenance {
            tool: Text::new(concat!("trainer ", env!("CARGO_PKG_VERSION"))),
            revision: Text::new(REVISION),
            seed: training.seed,
            steps: training.steps,
        },
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::heat_1d::ENTRY;
    use artifacts::policy_file::PolicyFile;
    use problem::published::heat_1d::PROBLEM;

    /// The shipped policy has the recipe's view and layers.
    #[test]
    fn a_policy_that_is_thawed_and_frozen_again_does_the_same() {
        let config = ENTRY.recipe.full(&PROBLEM).policy;
        let shipped = PolicyFile::shipped(&PROBLEM).unwrap();
        let policy = shipped.policy(&PROBLEM).unwrap();
        let parameters = thaw(&policy, &PROBLEM, &config).unwrap();
        let training = Training { seed: 0, steps: 0 };
        let again = blob(&PROBLEM, &config, &parameters, training).unwrap();
        let again = PolicyFile::new(&again, "again".to_owned());
        let again = thaw(&again.policy(&PROBLEM).unwrap(), &PROBLEM, &config).unwrap();
        for (a, b) in parameters.iter().zip(&again) {
            assert!((a - b).abs() <= 1e-6 * a.abs(), "{a} and {b}");
        }
    }

    #[test]
    fn the_network_of_a_policy_is_in_its_blob() {
        let mut config = ENTRY.recipe.full(&PROBLEM).policy;
        config.sight.window += 2;
        config.shape.features = config.sight.features(1);
        config.shape.memory = 3;
        config.shape = config.shape.resting();
        let parameters = config.init(1, &Device::default()).parameters();
        let training = Training { seed: 0, steps: 0 };
        let blob = blob(&PROBLEM, &config, &parameters, training).unwrap();
        let file = PolicyFile::new(&blob, "fresh".to_owned());
        let policy = file.policy(&PROBLEM).unwrap();
        let found = super::config(&policy, &PROBLEM).unwrap();
        config.shape.rests = false;
        assert_eq!(found.shape, config.shape);
        let thawed = thaw(&policy, &PROBLEM, &found).unwrap();
        assert_eq!(thawed.len(), parameters.len());
        // No gains: they are multiplied into the first layer.
        let gain = config.sight.error_gain as f32;
        assert_eq!(thawed[0], parameters[0] * gain);
    }

    #[test]
    fn a_policy_that_does_not_fit_is_refused_with_what_to_do() {
        let mut config = ENTRY.recipe.full(&PROBLEM).policy;
        let shipped = PolicyFile::shipped(&PROBLEM).unwrap();
        let int8 = shipped.recoded(agent_core::policy::Encoding::Int8).unwrap();
        let error = thaw(&int8.policy(&PROBLEM).unwrap(), &PROBLEM, &config).unwrap_err();
        assert!(error.to_string().contains("f32"), "{error}");
        config.sight.window += 1;
        let error = thaw(&shipped.policy(&PROBLEM).unwrap(), &PROBLEM, &config).unwrap_err();
        let window = config.sight.window - 1;
        assert!(
            error.to_string().contains(&format!("--window {window}")),
            "{error}"
        );
    }
}
