//! The policies that are shipped: what they cost a node.
#![cfg(not(miri))] // reads files

use crate::sample;

use agent_core::agent::Agent;
use agent_core::policy::{Encoding, Policy};
use sample::{blob, bytes, unpacked};

fn for_each(test: impl Fn(&str, &Policy)) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path());
    let mut seen = 0;
    for path in files.filter(|p| p.extension().is_some_and(|e| e == "policy")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let blob = sample::read(&std::fs::read(&path).unwrap());
        let policy = Policy::parse(bytes(&blob)).unwrap_or_else(|e| panic!("{name}: {e}"));
        test(name, &policy);
        seen += 1;
    }
    // One for each problem.
    assert!(seen >= 8, "{seen} policies");
}

#[test]
fn working_memory_is_at_most_2_kib_on_a_line_and_32_kib_in_the_plane() {
    for_each(|name, policy| {
        let bytes = 4 * policy.workspace_len();
        let most = match policy.header().sensing.axes {
            1 => 2_048,
            _ => 32_768,
        };
        assert!(bytes <= most, "{name}: {bytes} bytes");
    });
}

#[test]
fn as_int8_a_policy_takes_at_most_a_third_of_its_bytes_and_runs() {
    for_each(|name, policy| {
        let mut header = policy.header().clone();
        header.network.encoding = Encoding::Int8;
        let small = blob(&header, &unpacked(policy));
        let length = policy.length();
        assert!(3 * small.1 <= length, "{name}: {} of {length}", small.1);
        let small = Policy::parse(bytes(&small)).unwrap();
        let mut workspace = vec![0.0; small.workspace_len()];
        assert!(Agent::new(small, &mut workspace).is_ok(), "{name}");
    });
}
