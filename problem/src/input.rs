//! Files that are read whole: looked at first, so that no pipe is waited for, no device read to its
//! end and no file taken that is far longer than what it should be.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// What a file is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// What it is called in a refusal, with its article.
    what: &'static str,
    /// Bytes of the longest.
    longest: u64,
}

const MIB: u64 = 1 << 20;

/// A policy blob; the shipped ones have less than a hundredth of it.
pub const POLICY: Kind = Kind::new("a policy", 64 * MIB);
/// A scenario.
pub const SCENARIO: Kind = Kind::new("a scenario", MIB);
/// A described field.
pub const DESCRIPTION: Kind = Kind::new("a description", MIB);
/// A map or mask beside a described field.
pub const MAP: Kind = Kind::new("a map", 1024 * MIB);
/// An array of episodes.
pub const EPISODES: Kind = Kind::new("a set of episodes", 4096 * MIB);
/// An array of one observation.
pub const OBSERVATION: Kind = Kind::new("an observation", MIB);
/// A training.
pub const CHECKPOINT: Kind = Kind::new("a checkpoint", 1024 * MIB);
/// The steps of a recorded run, of which there are at most [`STEPS`](crate::limit::STEPS).
pub const LOG: Kind = Kind::new("the log of a run", 256 * MIB);
/// Figures of a sweep or a study that were kept.
pub const FIGURES: Kind = Kind::new("kept figures", 64 * MIB);
/// The runs of a campaign, of which there are at most [`RUNS`](crate::limit::RUNS).
pub const RUNS: Kind = Kind::new("the runs of a campaign", 16 * 1024 * MIB);
/// A key.
pub const KEY: Kind = Kind::new("a key", 4096);
/// The place of a node.
pub const PLACE: Kind = Kind::new("a place", MIB);
/// The image of a board.
pub const IMAGE: Kind = Kind::new("an image", 256 * MIB);

impl Kind {
    const fn new(what: &'static str, longest: u64) -> Self {
        Self { what, longest }
    }

    fn too_long(self, length: u64) -> io::Error {
        let Self { what, longest } = self;
        refusal(format!(
            "it has {length} bytes or more, and {what} has at most {longest}"
        ))
    }
}

/// The bytes of a file.
pub fn read(path: &Path, kind: Kind) -> io::Result<Vec<u8>> {
    let file = open(path, kind)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len() as usize);
    // Some files are longer than they say, and others grow.
    file.take(kind.longest + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        length if length > kind.longest => Err(kind.too_long(length)),
        _ => Ok(bytes),
    }
}

/// The text of a file.
pub fn read_text(path: &Path, kind: Kind) -> io::Result<String> {
    String::from_utf8(read(path, kind)?).map_err(|_| refusal("it is no text".to_owned()))
}

/// The first `most` bytes of a file, or all if it has fewer.
pub fn read_beginning(path: &Path, kind: Kind, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, kind)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file that is one, and not too long.
fn open(path: &Path, kind: Kind) -> io::Result<File> {
    // Before it is opened, which waits for a writer where it is a pipe.
    check(&std::fs::metadata(path)?, kind)?;
    let file = File::open(path)?;
    check(&file.metadata()?, kind)?;
    Ok(file)
}

fn check(data: &Metadata, kind: Kind) -> io::Result<()> {
    if !data.is_file() {
        let what = sort(data);
        return Err(refusal(format!("it is {what}, not a file")));
    }
    match data.len() {
        length if length > kind.longest => Err(kind.too_long(length)),
        _ => Ok(()),
    }
}

/// What stands under a name that is no file.
fn sort(data: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let sort = data.file_type();
        if sort.is_fifo() {
            return "a pipe";
        }
        if sort.is_socket() {
            return "a socket";
        }
        if sort.is_char_device() || sort.is_block_device() {
            return "a device";
        }
    }
    match data.is_dir() {
        true => "a folder",
        false => "something else",
    }
}

fn refusal(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &Path, kind: Kind) -> String {
        read(path, kind).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_read_if_it_is_not_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [b'x'; 4096]).unwrap();
        assert_eq!(read_text(&path, KEY).unwrap().len(), 4096);
        assert_eq!(read_beginning(&path, KEY, 10).unwrap(), [b'x'; 10]);
        std::fs::write(&path, [b'x'; 4097]).unwrap();
        assert_eq!(
            said(&path, KEY),
            "it has 4097 bytes or more, and a key has at most 4096"
        );
        assert!(read_beginning(&path, KEY, 10).is_err());
        std::fs::write(&path, [0xff]).unwrap();
        let refused = read_text(&path, KEY).unwrap_err();
        assert_eq!(refused.to_string(), "it is no text");
        // Sparse: nobody could wait for it to be read.
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        assert!(said(&path, CHECKPOINT).contains("4398046511104 bytes"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_named_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(said(folder.path(), POLICY), "it is a folder, not a file");
        let device = "it is a device, not a file";
        assert_eq!(said(Path::new("/dev/zero"), POLICY), device);
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(said(&socket, POLICY), "it is a socket, not a file");
        // Through a link too.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(said(&link, POLICY), device);
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(said(&pipe, POLICY), "it is a pipe, not a file");
    }
}
