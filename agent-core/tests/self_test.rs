//! The probe: a node that does not compute as the policy's maker did does not act.

use crate::sample;

use agent_core::agent::{Agent, AgentState, ArmError, Mode};
use agent_core::policy::{Encoding, PROLOGUE, Policy};
use sample::{
    Shown, blob, bytes, convolved, header, int8_header, int8_plane_header, layers, layers_for,
    plane, plane_layers, published, remembering, resealed,
};

/// One of each kind.
fn policies() -> [(Vec<u32>, usize); 6] {
    let remembering = remembering(header(20), 2);
    [
        blob(&remembering, &layers_for(&remembering, 6)),
        published(1),
        plane(2),
        convolved(3),
        blob(&int8_header(20), &layers(20, 4)),
        blob(&int8_plane_header(), &plane_layers(5)),
    ]
}

fn arm(blob: &(Vec<u32>, usize)) -> Result<(), ArmError> {
    let policy = Policy::parse(bytes(blob)).unwrap();
    // Whatever was in the memory before.
    let mut workspace = vec![f32::NAN; policy.workspace_len()];
    Agent::new(policy, &mut workspace).map(|_| ())
}

/// The blob with one bit changed that its checksum does not tell of.
fn flipped(blob: &(Vec<u32>, usize), byte: usize, bit: usize) -> (Vec<u32>, usize) {
    let mut words = blob.0.clone();
    bytemuck::cast_slice_mut::<u32, u8>(&mut words)[byte] ^= 1 << bit;
    resealed(words, blob.1)
}

/// Where a blob's probe ends with what is expected. Behind it the header says that there is no governor,
/// what memory there is, and no band.
fn probe_end(blob: &(Vec<u32>, usize)) -> usize {
    let policy = Policy::parse(bytes(blob)).unwrap();
    let memory = policy.header().network.memory.map_or(1, |_| 10);
    PROLOGUE + blob.0[3] as usize - 1 - memory - 4
}

#[test]
fn an_agent_whose_probe_gives_other_bits_is_refused() {
    for blob in policies() {
        assert_eq!(arm(&blob), Ok(()));
        // What is expected: the last bit of each output's significand, its sign, and the bits of
        // outputs that are not there.
        let end = probe_end(&blob);
        for output in 0..3 {
            for (byte, bit) in [(0, 0), (1, 3), (3, 7)] {
                let forged = flipped(&blob, end - 12 + 4 * output + byte, bit);
                assert_eq!(arm(&forged), Err(ArmError::SelfTest));
                // It is a policy nonetheless, which a host may look at.
                let policy = Policy::parse(bytes(&forged)).unwrap();
                let mut workspace = vec![0.0; policy.workspace_len()];
                let shown = Shown::all(&policy, 1.0);
                let observation = shown.at([0.8, 0.1], 1);
                let action = AgentState::new().step(&policy, &mut workspace, &observation);
                assert_eq!(action.mode, Mode::Active);
            }
        }
    }
}

#[test]
fn a_change_of_what_the_probe_is_shown_or_computed_with_is_found() {
    for blob in policies() {
        let (weights_at, weights) = (blob.0[4] as usize, blob.0[5] as usize);
        // The sign of what the agent sees in the middle of its patch.
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let sensing = &policy.header().sensing;
        let (side, centre) = (
            usize::from(sensing.window) + 2,
            usize::from(sensing.window / 2),
        );
        let middle = match sensing.axes {
            1 => centre + 1,
            _ => (centre + 1) * (side + 1),
        };
        let sample = weights_at + weights + 4 * middle;
        assert_eq!(arm(&flipped(&blob, sample + 3, 7)), Err(ArmError::SelfTest));
        // The sign of the first bias, which in a blob with 8-bit weights follows a word.
        let first = match policy.header().network.encoding {
            Encoding::F32 => weights_at,
            Encoding::Int8 => weights_at + 4,
        };
        assert_eq!(arm(&flipped(&blob, first + 3, 7)), Err(ArmError::SelfTest));
    }
}

#[test]
fn a_probe_that_is_no_observation_is_refused() {
    for blob in policies() {
        // The last cell inside along the first axis, 9 or 7, becomes one far beyond the patch.
        let forged = flipped(&blob, probe_end(&blob) - 12 - 3, 5);
        assert_eq!(arm(&forged), Err(ArmError::SelfTest));
        let nan = blob.0[4] as usize + blob.0[5] as usize;
        let mut words = blob.0.clone();
        words[nan / 4..blob.1 / 4].fill(f32::NAN.to_bits());
        assert_eq!(arm(&resealed(words, blob.1)), Err(ArmError::SelfTest));
    }
}

#[test]
fn blobs_of_formats_1_and_2_arm_without_a_probe() {
    let old: [&[u8]; 2] = [
        include_bytes!("golden/format-1.policy"),
        include_bytes!("golden/format-2-plane.policy"),
    ];
    for (format, file) in [1, 2].into_iter().zip(old) {
        let blob = sample::read(file);
        assert_eq!(blob.0[2], format);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        assert!(policy.probe().is_none());
        assert_eq!(arm(&blob), Ok(()));
    }
}
