//! The header says what the library does: the compiler of the machine is asked.

use agent_core::agent::Mode;
use agent_core_c::layout::{AgentAction, AgentMemory, AgentPatch, AgentPolicy, AgentSpan};
use agent_core_c::status::Status;
use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// Compiles `source` against the header, without output; returns the compiler's messages if it
/// finds fault.
fn compile(source: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source");
    fs::write(&file, format!("#include \"agent_core.h\"\n{source}")).unwrap();
    let output = Command::new("cc")
        .args(["-x", "c", "-std=c99", "-fsyntax-only", "-pedantic"])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(&file)
        .output()
        .expect("a C compiler, with which this test was linked");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A line of C that compiles only if the condition is true.
fn assertion(condition: &str, number: usize) -> String {
    format!("typedef char check_{number}[({condition}) ? 1 : -1];\n")
}

fn check(conditions: &[String]) {
    let mut source = String::from("#include <stddef.h>\n");
    for (number, condition) in conditions.iter().enumerate() {
        source += &assertion(condition, number);
    }
    compile(&source).unwrap();
}

#[test]
fn the_header_is_plain_c99() {
    compile("int main(void) { return AGENT_OK; }").unwrap();
    // The check can fail.
    compile(&assertion("AGENT_OK == 1", 0)).unwrap_err();
}

#[test]
fn the_header_lays_out_memory_as_the_library_does() {
    macro_rules! layout {
        ($of:ty, $name:literal: $($field:ident)*) => {{
            [
                format!("sizeof(struct {}) == {}", $name, size_of::<$of>()),
                $(format!(
                    "offsetof(struct {}, {}) == {}",
                    $name, stringify!($field), offset_of!($of, $field)
                ),)*
            ]
        }};
    }
    check(&layout!(AgentMemory, "agent":));
    check(&layout!(AgentSpan, "agent_span": first last));
    check(
        &layout!(AgentPatch, "agent_patch": field field_length target target_length wide_field
        wide_field_length wide_target wide_target_length inside),
    );
    check(&layout!(AgentAction, "agent_action": force velocity mode));
    check(
        &layout!(AgentPolicy, "agent_policy": workspace_length patch_cells wide_cells target axes
        window period_us late_us fail_safe_us force_limit velocity_limit low high crc),
    );
}

/// `PolicyTruncated` is `AGENT_POLICY_TRUNCATED`.
fn constant(variant: impl std::fmt::Debug) -> String {
    let mut name = String::from("AGENT");
    for letter in format!("{variant:?}").chars() {
        if letter.is_uppercase() {
            name.push('_');
        }
        let _ = write!(name, "{}", letter.to_uppercase());
    }
    name
}

#[test]
fn the_headers_constants_are_the_librarys() {
    let statuses = Status::ALL.map(|s| format!("{} == {}", constant(s), s as i32));
    check(&statuses);
    let modes = [Mode::Waiting, Mode::Active, Mode::Holding, Mode::FailedSafe];
    check(&modes.map(|m| format!("{} == {}", constant(m), m as i32)));
}
