//! Files that are either complete or not there.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Writes `bytes` to `path` so that a reader, or a crash at any moment, meets the old content or
/// the new one: a temporary file in the same folder, synced, then renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path
        .file_name()
        .with_context(|| format!("'{}' names no file", path.display()))?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        // The rename itself lives in the folder; not every file system lets one sync that.
        File::open(folder).and_then(|f| f.sync_all()).ok();
        std::io::Result::Ok(())
    })();
    written
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| {
            format!(
                "cannot write '{}'; check that its folder exists and is writable",
                path.display()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("inside"), "x").unwrap();
        assert!(write_atomically(&taken, b"y").is_err());
        assert!(write_atomically(&folder.path().join("missing/file"), b"y").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
