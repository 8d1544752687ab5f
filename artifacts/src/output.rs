//! Files that are either there and whole, or not there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

use crate::lock::{InUse, Lock};
use crate::shard::Shard;

/// Writes `bytes` to `path` so that a reader, or a crash at any moment, meets the old content or the
/// new one: a temporary file in the same folder, synced, then renamed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = WholeFile::create(path)?;
    file.write(bytes)?;
    file.finish().map(drop)
}

/// A file that is written bit by bit and appears when it is finished, see [`write_whole`]. Dropped
/// before that, it leaves nothing.
pub struct WholeFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl WholeFile {
    /// Begins a file: fails now if it could not be written later.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let error = |source| OutputError::new(path, source);
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(error(io::ErrorKind::IsADirectory.into()));
        };
        // A device or a pipe would be replaced, not written to.
        if path.exists() && !path.is_file() {
            return Err(error(io::Error::other("it is no file")));
        }
        // What a killed program leaves can be told from results.
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".part-");
        // Under a name that nobody can know beforehand, and only if nothing has it: links that were
        // laid there are not followed.
        let mut builder = tempfile::Builder::new();
        permit(builder.prefix(&prefix));
        let file = builder.tempfile_in(folder_of(path));
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file.map_err(error)?),
        })
    }

    /// Adds bytes at the end.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| OutputError::new(&self.path, source))
    }

    /// Replaces the file's first bytes.
    pub fn overwrite(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut replace = || {
            self.file.rewind()?;
            self.file.write_all(bytes)?;
            self.file.seek(SeekFrom::End(0))
        };
        let replaced = replace().map(drop);
        replaced.map_err(|source| OutputError::new(&self.path, source))
    }

    /// Puts the file in its place, over what was there.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        let Self { path, file } = self;
        match replace(&path, file) {
            Ok(()) => Ok(path),
            Err(source) => Err(OutputError::new(&path, source)),
        }
    }
}

/// For programs that write files of their own kind.
impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for WholeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn replace(path: &Path, file: BufWriter<NamedTempFile>) -> io::Result<()> {
    // Removed again if anything fails on the way.
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename itself lives in the folder; not every file system lets one sync that.
    let folder = File::open(folder_of(path));
    folder.and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Temporary files are their owner's alone; results are as readable as the user's mask has it.
#[cfg(unix)]
fn permit(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}
#[cfg(not(unix))]
fn permit(_: &mut tempfile::Builder<'_, '_>) {}

/// A folder that results go to, known to be writable.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// Held as long as results may come.
    _locks: Vec<Lock>,
}

/// Results cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write to {}: {source}; check that its folder exists and is writable, or choose another with {option}",
    path.display()
)]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
    option: &'static str,
}

/// A folder cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It cannot be written to.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Another program writes there.
    #[error(transparent)]
    InUse(#[from] InUse),
}

impl OutputError {
    pub(crate) fn new(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            source,
            option: "--out",
        }
    }

    /// The same about a path that was given with another option than `--out`.
    pub fn of(self, option: &'static str) -> Self {
        Self { option, ..self }
    }
}

impl OutputFolder {
    /// Makes the folder if need be and checks that files can be written there: better now than
    /// after the run.
    pub fn prepare(path: &Path) -> Result<Self, OutputError> {
        std::fs::create_dir_all(path)
            .and_then(|()| NamedTempFile::new_in(path).map(drop))
            .map_err(|source| OutputError::new(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            _locks: Vec::new(),
        })
    }

    /// The same for a folder whose files belong together: as long as this is held, no other program
    /// claims it.
    pub fn claim(path: &Path) -> Result<Self, ClaimError> {
        let folder = Self::prepare(path)?;
        let lock = Lock::whole(path)?;
        Ok(Self {
            _locks: Vec::from_iter(lock),
            ..folder
        })
    }

    /// The same for one of several programs that share the work, and write files of their own or the same
    /// ones alike: as long as this is held, no other program is this shard or claims the folder.
    pub fn share(path: &Path, shard: Shard) -> Result<Self, ClaimError> {
        let folder = Self::prepare(path)?;
        let locks = Lock::shard(path, shard)?;
        Ok(Self {
            _locks: locks.into_iter().flatten().collect(),
            ..folder
        })
    }

    /// Writes a file whole, see [`write_whole`].
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.path.join(name);
        write_whole(&path, contents)?;
        Ok(path)
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) -> Result<(), OutputError> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(OutputError::new(&path, source))
            }
            _ => Ok(()),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Prints a result. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes());
    match printed.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a line to standard error. A reader that has gone away (`2>&1 | head`) must not end what is at work;
/// `eprintln!` would panic.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A line of a result, see [`print()`]; `println!` would panic where nobody reads on.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {
        $crate::output::print(&(format!($($words)*) + "\n"))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, other) = (folder.path().join("result"), folder.path().join("other"));
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"mine");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        // And what is no file is neither written to nor replaced.
        let error = write_whole(Path::new("/dev/null"), b"x").unwrap_err();
        assert!(error.to_string().contains("it is no file"), "{error}");
    }

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

    #[test]
    fn a_file_appears_when_it_is_finished_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        std::fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write(b"new ").unwrap();
        file.write(b"text").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(file.finish().unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), b"new text");
        drop(WholeFile::create(&path).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = WholeFile::create(folder.path()).err().unwrap();
        assert!(error.of("--rows").to_string().contains("--rows"));
    }
}
