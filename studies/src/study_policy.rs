//! Policies that were trained for one study alone: `policies/studies/<name>.policy`.

use artifacts::policy_file::PolicyFile;
use problem::Problem;
use std::path::Path;
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// A policy and the value of what was varied in its training.
#[derive(Clone)]
pub struct Varied {
    /// As in its file's name.
    pub value: f64,
    /// The policy.
    pub policy: Arc<PolicyFile>,
}

/// All policies `<prefix><value>.policy`, by rising value: those in `studies` of a folder of
/// policies, or those that are built in.
pub fn varied(
    folder: Option<&Path>,
    problem: &Problem,
    prefix: &str,
) -> anyhow::Result<Vec<Varied>> {
    let mut all = Vec::new();
    let mut add = |name: &str, file: &dyn Fn() -> anyhow::Result<PolicyFile>| {
        let value = name.strip_prefix(prefix).and_then(|v| v.parse().ok());
        let Some(value) = value else { return Ok(()) };
        let file = file()?;
        file.policy(problem)?;
        all.push(Varied {
            value,
            policy: Arc::new(file),
        });
        anyhow::Ok(())
    };
    match folder {
        None => {
            for (name, bytes) in BUILT_IN {
                let origin = format!("policies/studies/{name}.policy");
                add(name, &|| Ok(PolicyFile::new(bytes, origin.clone())))?;
            }
        }
        Some(folder) => {
            let entries = std::fs::read_dir(folder.join("studies"));
            for path in entries.into_iter().flatten().flatten().map(|e| e.path()) {
                let policy = path.extension().is_some_and(|e| e == "policy");
                if let (true, Some(name)) = (policy, path.file_stem().and_then(|s| s.to_str())) {
                    add(name, &|| Ok(PolicyFile::read(&path)?))?;
                }
            }
        }
    }
    all.sort_by(|a, b| a.value.total_cmp(&b.value));
    Ok(all)
}

/// A sentence that names the values that there is no policy for, with the command that trains one;
/// empty if none is missing.
pub fn missing(wanted: &[f64], there: &[f64], prefix: &str, flag: &str) -> String {
    let lacking = wanted.iter().filter(|value| !there.contains(value));
    let lacking: Vec<String> = lacking.map(f64::to_string).collect();
    match lacking.first() {
        None => String::new(),
        Some(first) => format!(
            "**Not measured, because there is no `policies/studies/{prefix}<value>.policy`: {}.** \
             `trainer train fkpp-1d {flag}{first} --out runs/{prefix}{first}`, then `trainer export \
             runs/{prefix}{first}/fkpp-1d/best -o policies/studies/{prefix}{first}.policy` makes the first.",
            lacking.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::fkpp_1d::PROBLEM;

    #[test]
    fn policies_of_a_folder_are_found_by_prefix_and_sorted_by_value() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            varied(Some(folder.path()), &PROBLEM, "x-")
                .unwrap()
                .is_empty()
        );
        let inside = folder.path().join("studies");
        std::fs::create_dir(&inside).unwrap();
        let shipped = PolicyFile::shipped(&PROBLEM).unwrap();
        for name in [
            "x-10.policy",
            "x-0.5.policy",
            "y-1.policy",
            "x-2.md",
            "x-.policy",
        ] {
            std::fs::write(inside.join(name), shipped.bytes()).unwrap();
        }
        let found = varied(Some(folder.path()), &PROBLEM, "x-").unwrap();
        let values: Vec<f64> = found.iter().map(|v| v.value).collect();
        assert_eq!(values, [0.5, 10.0]);
        std::fs::write(inside.join("x-3.policy"), b"nonsense").unwrap();
        assert!(varied(Some(folder.path()), &PROBLEM, "x-").is_err());
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let text = missing(&[0.1, 1.0], &[1.0], "fkpp-1d-effort-", "--weight effort=");
        assert!(text.contains("policy`: 0.1.**"), "{text}");
        assert!(text.contains("--weight effort=0.1"), "{text}");
        assert_eq!(missing(&[1.0], &[1.0], "", ""), "");
    }
}
