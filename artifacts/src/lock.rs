//! Folders that one program writes to at a time, or several that each have a shard of the work.
//!
//! The lock is the system's, on a file in the folder, so that it ends with the program that holds it,
//! however that ends. The file says who that is.

use crate::output::{ClaimError, OutputError};
use crate::shard::Shard;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = ".lock";
/// Most bytes of it that are shown.
const SHOWN: usize = 200;

/// Whom a lock lets in besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alone,
    /// Others of this kind.
    Shared,
}

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    kind: Kind,
    _file: File,
}

/// Another program holds the lock.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is being written to by {holder}; wait until it has ended, or choose another folder with --out",
    folder.display()
)]
pub struct InUse {
    folder: PathBuf,
    holder: String,
}

impl Lock {
    /// Takes a folder; `None` where the file system has no locks.
    pub(crate) fn whole(folder: &Path) -> Result<Option<Self>, ClaimError> {
        Self::take(folder, NAME, Kind::Alone)
    }

    /// Takes a shard's place in a folder that nobody has taken as a whole, and that nobody can as long as
    /// these are held.
    pub(crate) fn shard(folder: &Path, shard: Shard) -> Result<[Option<Self>; 2], ClaimError> {
        let own = format!("{NAME}-{}", shard.label());
        Ok([
            Self::take(folder, NAME, Kind::Shared)?,
            Self::take(folder, &own, Kind::Alone)?,
        ])
    }

    fn take(folder: &Path, name: &str, kind: Kind) -> Result<Option<Self>, ClaimError> {
        let path = folder.join(name);
        let error = |source| OutputError::new(&path, source);
        loop {
            let mut file = open(&path).map_err(error)?;
            let locked = match kind {
                Kind::Alone => file.try_lock(),
                Kind::Shared => file.try_lock_shared(),
            };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(InUse {
                        folder: folder.to_owned(),
                        holder: holder(&mut file),
                    }
                    .into());
                }
                Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {
                    return Ok(None);
                }
                Err(TryLockError::Error(source)) => return Err(error(source).into()),
            }
            // The holder before may have removed the file between our two calls: then the lock is one
            // that nobody else would meet.
            if !is_still(&path, &file).map_err(error)? {
                continue;
            }
            say_who(&mut file).map_err(error)?;
            return Ok(Some(Self {
                path,
                kind,
                _file: file,
            }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held. Who waits for this very file looks whether it is still there. What others hold
        // too stays: without it they would keep nobody out.
        if self.kind == Kind::Alone {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Opens the file, new or left by a program that was killed, without following links.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    match std::fs::symlink_metadata(path) {
        Ok(data) if !data.is_file() => {
            return Err(io::Error::other("it is no file that holds a lock"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match options.open(path) {
        // Removed just now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(path),
        opened => opened,
    }
}

/// Whether the file is the one under that name.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(is_same(&there, &file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
/// Open files cannot be removed there.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

fn say_who(file: &mut File) -> io::Result<()> {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default();
    let mut command = program.to_string_lossy().into_owned();
    for word in words {
        command += " ";
        command += &word;
    }
    file.set_len(0)?;
    writeln!(file, "process {} ({command})", std::process::id())
}

/// Who holds it by what the file says, and since when by its age.
fn holder(file: &mut File) -> String {
    let mut text = Vec::new();
    let said = file
        .rewind()
        .and_then(|()| file.take(SHOWN as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    // Anybody may have written it.
    let line: String = (text.lines().next().unwrap_or_default().chars())
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    let who = match said {
        Ok(_) if !line.is_empty() => line,
        _ => "another program".to_owned(),
    };
    let age = file.metadata().and_then(|data| data.modified()).ok();
    match age.and_then(|since| since.elapsed().ok()) {
        Some(age) => format!("{who} since {} s ago", age.as_secs()),
        None => who,
    }
}

#[cfg(test)]
mod tests {
    use crate::output::OutputFolder;

    #[test]
    fn a_folder_is_claimed_once_and_again_when_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let held = OutputFolder::claim(folder.path()).unwrap();
        let said = OutputFolder::claim(folder.path()).unwrap_err().to_string();
        let pid = format!("process {} (", std::process::id());
        for fact in [pid.as_str(), " s ago", "--out"] {
            assert!(said.contains(fact), "{said}");
        }
        // Single files are no matter of folders.
        OutputFolder::prepare(folder.path()).unwrap();
        drop(held);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        OutputFolder::claim(folder.path()).unwrap();
    }

    #[test]
    fn what_a_killed_program_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(super::NAME);
        std::fs::write(&path, "process 1 (long gone with a long name)\n").unwrap();
        let _held = OutputFolder::claim(folder.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("gone"), "{text}");
    }

    #[test]
    fn shards_share_a_folder_each_once_and_keep_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let shard = |text: &str| OutputFolder::share(folder.path(), text.parse().unwrap());
        let (first, second) = (shard("1/2").unwrap(), shard("2/2").unwrap());
        let said = shard("2/2").unwrap_err().to_string();
        assert!(said.contains("process "), "{said}");
        assert!(OutputFolder::claim(folder.path()).is_err());
        drop(first);
        assert!(OutputFolder::claim(folder.path()).is_err());
        let first = shard("1/2").unwrap();
        drop((first, second));
        let whole = OutputFolder::claim(folder.path()).unwrap();
        assert!(shard("1/2").is_err());
        drop(whole);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_under_its_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join(super::NAME)).unwrap();
        let said = OutputFolder::claim(folder.path()).unwrap_err().to_string();
        assert!(said.contains("no file that holds a lock"), "{said}");
        assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    }

    /// Of many that try at once again and again, no two ever hold it.
    #[test]
    fn letting_go_and_claiming_at_once_never_lets_two_in() {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        let folder = tempfile::tempdir().unwrap();
        let (inside, times) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Ok(held) = OutputFolder::claim(folder.path()) {
                            assert_eq!(inside.fetch_add(1, SeqCst), 0);
                            times.fetch_add(1, SeqCst);
                            inside.fetch_sub(1, SeqCst);
                            drop(held);
                        }
                    }
                });
            }
        });
        assert!(times.into_inner() > 0);
    }
}
