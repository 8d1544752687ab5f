//! What `reproduce` refuses: sizes without measure, files that are none, folders that others write to.

use artifacts::output::OutputFolder;
use std::path::Path;
use std::process::Command;

/// What a command in a folder says that must fail.
fn refused(folder: &Path, command: &str) -> String {
    let mut reproduce = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    reproduce.args(command.split(' ')).current_dir(folder);
    let output = reproduce.output().unwrap();
    assert!(!output.status.success(), "{command}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn sizes_have_an_end_and_fields_are_files() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), "--threads 1000000");
    assert!(
        said.contains("1000000 threads") && said.contains("1024"),
        "{said}"
    );
    std::fs::create_dir(folder.path().join("field.toml")).unwrap();
    let said = refused(folder.path(), "--problem field.toml");
    assert!(
        said.contains("field.toml") && said.contains("a folder, not a file"),
        "{said}"
    );
}

#[test]
fn two_programs_share_neither_results_nor_cells() {
    let folder = tempfile::tempdir().unwrap();
    for held in ["out", "cache"] {
        let _held = OutputFolder::claim(&folder.path().join(held)).unwrap();
        let said = refused(folder.path(), "--quick cardinality --out out --cache cache");
        let holder = format!(
            "{held} is being written to by process {}",
            std::process::id()
        );
        assert!(said.contains(&holder), "{said}");
    }
}
