//! Files that are either there and whole, or not there.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes `bytes` to `path` so that a reader, or a crash at any moment, meets the old content or the
/// new one: a temporary file in the same folder, synced, then renamed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    replace(folder, path, bytes).map_err(|source| OutputError {
        path: path.to_owned(),
        source,
    })
}

fn replace(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Removed again if anything fails on the way.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    permit(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename itself lives in the folder; not every file system lets one sync that.
    File::open(folder).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Temporary files are their owner's alone; results are as readable as any file.
#[cfg(unix)]
fn permit(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}
#[cfg(not(unix))]
fn permit(_: &File) -> io::Result<()> {
    Ok(())
}

/// A folder that results go to, known to be writable.
#[derive(Debug, Clone)]
pub struct OutputFolder(PathBuf);

/// Results cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write to {}: {source}; check that its folder exists and is writable, or choose another with --out",
    path.display()
)]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

impl OutputFolder {
    /// Makes the folder if need be and checks that files can be written there: better now than
    /// after the run.
    pub fn prepare(path: &Path) -> Result<Self, OutputError> {
        let folder = Self(path.to_owned());
        std::fs::create_dir_all(path)
            .and_then(|()| NamedTempFile::new_in(path).map(drop))
            .map_err(|source| folder.error(path.to_owned(), source))?;
        Ok(folder)
    }

    /// Writes a file whole, see [`write_whole`].
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.0.join(name);
        write_whole(&path, contents)?;
        Ok(path)
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
        assert!(write_whole(&folder.path().join("missing/file"), b"x").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
