//! Sizes without measure and files that are none: one sentence each, at once.

use std::process::Command;

#[test]
fn sizes_have_an_end_and_policies_are_files() {
    for (command, facts) in [
        (
            "soak --frames 1000000000000",
            ["1000000000000", "1000000000"],
        ),
        (
            "torture --image none --frames 1000000000000",
            ["1000000000000", "1000000000"],
        ),
        (
            "compare --image none --policy none --observations 4000000000",
            ["4000000000", "1000000"],
        ),
        (
            "soak --policy /dev/zero",
            ["/dev/zero", "a device, not a file"],
        ),
        ("soak --policy /", ["cannot read /", "a folder, not a file"]),
    ] {
        let mut endurance = Command::new(env!("CARGO_BIN_EXE_endurance"));
        let output = endurance.args(command.split(' ')).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command}");
        for fact in facts {
            assert!(said.contains(fact), "{command}: {said}");
        }
    }
}
