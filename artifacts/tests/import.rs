//! Networks as PyTorch, ONNX' helpers and Flax write them (`networks/make.py`), as policies.

use agent_core::policy::{Activation, Encoding, Fusion, Norm};
use artifacts::arrays::Arrays;
use artifacts::import::{Assumed, Imported, import};
use problem::published::by_name;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/networks")
        .join(name)
}

fn assumed() -> Assumed {
    Assumed {
        window: Some(8),
        ..Assumed::default()
    }
}

fn taken(name: &str, problem: &str, assumed: &Assumed) -> Imported {
    let imported = import(&path(name), by_name(problem).unwrap(), assumed);
    imported.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refused(name: &str, problem: &str, assumed: &Assumed) -> String {
    let imported = import(&path(name), by_name(problem).unwrap(), assumed);
    imported
        .err()
        .map(|error| error.to_string())
        .unwrap_or_else(|| panic!("{name} was taken"))
}

/// Of sums of a few dozen terms of order one in single precision, and of agent-core's tanh.
const CLOSE: f64 = 2e-6;

#[test]
fn what_pytorch_exports_is_taken_and_computes_the_same() {
    let line = taken("line.onnx", "heat-1d", &assumed());
    assert!(line.ends_in_tanh);
    assert!(line.difference.largest < CLOSE, "{}", line.difference);
    let described = Arrays::of(&line.file).unwrap().description.network;
    let norms: Vec<Norm> = described.branch.iter().map(|layer| layer.norm).collect();
    assert_eq!(norms, [Norm::Soft; 2]);
    assert_eq!((described.trunk.len(), described.head.len()), (1, 2));
    assert_eq!(described.head[1].activation, Activation::Identity);

    let plane = taken("plane.onnx", "heat-2d", &assumed());
    assert!(!plane.ends_in_tanh);
    assert!(plane.difference.largest < CLOSE, "{}", plane.difference);
    let described = Arrays::of(&plane.file).unwrap().description.network;
    assert_eq!(described.convolutions.len(), 2);
    assert_eq!(
        (
            described.convolutions[0].stride,
            described.convolutions[0].padding
        ),
        (2, 1)
    );
    assert_eq!(
        (
            described.branch.len(),
            described.trunk.len(),
            described.head.len()
        ),
        (1, 0, 1)
    );
}

#[test]
fn a_graph_by_hand_with_products_and_its_trunk_first_is_taken_too() {
    let by_hand = taken("by-hand.onnx", "heat-1d", &assumed());
    assert!(by_hand.difference.largest < CLOSE, "{}", by_hand.difference);
    let described = Arrays::of(&by_hand.file).unwrap().description.network;
    assert_eq!(described.fusion, Fusion::Multiply);
    assert_eq!(described.branch[0].activation, Activation::Relu);
}

#[test]
fn safetensors_of_pytorch_and_flax_make_the_policy_that_onnx_does() {
    let onnx = taken("line.onnx", "heat-1d", &assumed());
    for name in ["line.safetensors", "line-flax.safetensors"] {
        let found = taken(name, "heat-1d", &assumed());
        assert!(found.difference.largest < CLOSE, "{}", found.difference);
        assert!(found.file.bytes() == onnx.file.bytes(), "{name}");
    }
}

#[test]
fn what_int8_weights_cost_is_told() {
    let small = Assumed {
        encoding: Encoding::Int8,
        ..assumed()
    };
    let exact = taken("line.onnx", "heat-1d", &assumed());
    let found = taken("line.onnx", "heat-1d", &small);
    assert!(
        found.difference.largest > 10.0 * exact.difference.largest,
        "{}",
        found.difference
    );
    assert!(found.difference.largest < 0.05, "{}", found.difference);
}

#[test]
fn what_no_policy_has_is_refused_by_name() {
    let said = refused("sigmoid.onnx", "heat-1d", &assumed());
    assert!(
        said.contains("operator Sigmoid") && said.contains("Gemm"),
        "{said}"
    );
    let wider = Assumed {
        window: Some(10),
        ..assumed()
    };
    let said = refused("line.onnx", "heat-1d", &wider);
    assert!(
        said.contains("branch.0 is 16 × 12") && said.contains("gives 20"),
        "{said}"
    );
    let said = refused("line.onnx", "heat-2d", &assumed());
    assert!(said.contains("branch.0") && said.contains("64"), "{said}");
    let unlike = Assumed {
        activation: Some("gelu".to_owned()),
        ..assumed()
    };
    let said = refused("line.safetensors", "heat-1d", &unlike);
    assert!(said.contains("'gelu'") && said.contains("relu"), "{said}");
    let said = refused("make.py", "heat-1d", &assumed());
    assert!(said.contains(".onnx"), "{said}");
    let said = refused("none.onnx", "heat-1d", &assumed());
    assert!(said.contains("cannot read"), "{said}");
}

/// Files that were cut off or changed are refused or taken, and nothing else happens.
#[test]
fn damaged_files_end_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let problem = by_name("heat-1d").unwrap();
    for name in ["by-hand.onnx", "line.safetensors"] {
        let whole = std::fs::read(path(name)).unwrap();
        let file = folder.path().join(name);
        let try_it = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            let _ = import(&file, problem, &assumed());
        };
        for k in (0..whole.len()).step_by(61) {
            try_it(&whole[..k]);
            let mut changed = whole.clone();
            changed[k] ^= 1 << (k % 8);
            try_it(&changed);
            changed[k] = 0xff;
            try_it(&changed);
        }
    }
}
