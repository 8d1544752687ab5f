//! Files that are either there and whole, or not there.

use std::path::{Path, PathBuf};

/// A folder that results go to, known to be writable.
#[derive(Debug, Clone)]
pub struct OutputFolder(PathBuf);

/// Results cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {}: {source}; choose another folder with --out", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: std::io::Error,
}

impl OutputFolder {
    /// Makes the folder if need be and checks that files can be written there: better now than
    /// after the run.
    pub fn prepare(path: &Path) -> Result<Self, OutputError> {
        let folder = Self(path.to_owned());
        std::fs::create_dir_all(path)
            .and_then(|()| {
                let probe = folder.temporary("probe");
                std::fs::write(&probe, b"")?;
                std::fs::remove_file(&probe)
            })
            .map_err(|source| folder.error(path.to_owned(), source))?;
        Ok(folder)
    }

    /// Writes a file in one stroke: under another name first, then renamed.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, OutputError> {
        let (temporary, path) = (self.temporary(name), self.0.join(name));
        let written =
            std::fs::write(&temporary, contents).and_then(|()| std::fs::rename(&temporary, &path));
        match written {
            Ok(()) => Ok(path),
            Err(source) => {
                // Best effort: the reason that counts is the one above.
                let _ = std::fs::remove_file(&temporary);
                Err(self.error(path, source))
            }
        }
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) -> Result<(), OutputError> {
        let path = self.0.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(self.error(path, source))
            }
            _ => Ok(()),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn temporary(&self, name: &str) -> PathBuf {
        self.0.join(format!(".{name}.{}.tmp", std::process::id()))
    }

    fn error(&self, path: PathBuf, source: std::io::Error) -> OutputError {
        OutputError { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = OutputFolder::prepare(&file.join("out")).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("file/out") && message.contains("--out"),
            "{message}"
        );
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let output = OutputFolder::prepare(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(output.write("taken", b"x").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
