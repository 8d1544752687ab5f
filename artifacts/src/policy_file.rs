//! Policy blobs from files and from the program itself.

use agent_core::policy::{
    self, EncodeError, Encoding, FieldName, Governor, Header, Policy, PolicyError, recode,
};
use problem::{Problem, input};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};

/// The bytes of a policy, aligned so that agents can read the weights in place, a whole vector at a
/// time.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    words: Vec<u64>,
    /// Where in them the blob begins, in words.
    start: usize,
    length: usize,
    origin: String,
}

/// Bytes of a cache line, and of the widest vectors.
const LINE: usize = 64;
/// Where a blob says at which byte its weights begin (docs/policy-format.md).
const WEIGHTS_AT: std::ops::Range<usize> = 16..20;

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// The file cannot be read.
    #[error("cannot read the policy {}: {source}; check the path given to --policy", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No policy for this problem is built in.
    #[error(
        "no policy for {problem} is shipped with this build; train and export one \
         (trainer train {problem}) and give it with --policy, or use --controller proportional"
    )]
    NotShipped {
        /// Name of the problem.
        problem: &'static str,
    },
    /// The bytes are no policy this program can run.
    #[error("cannot use the policy {origin}: {source}{}{}", detail, remedy(source))]
    Blob {
        /// Where it comes from.
        origin: String,
        /// What is wrong with it.
        source: PolicyError,
        /// What a node leaves out.
        detail: String,
    },
    /// This machine does not compute what the policy's maker did.
    #[error(
        "the policy {origin} fails its self-test: this machine or this build does not compute what \
         its maker's did; {mismatch}; export it again with this version's trainer"
    )]
    SelfTest {
        /// Where it comes from.
        origin: String,
        /// What the probe should have given, and what it gave.
        mismatch: Mismatch,
    },
    /// The policy cannot be written in this form.
    #[error("the policy {origin} cannot be written with {} weights: {source}", name(*encoding))]
    Recode {
        /// Where it comes from.
        origin: String,
        /// The form asked for.
        encoding: Encoding,
        /// What stands against it.
        source: EncodeError,
    },
    /// The policy has no weights that it could be written anew from.
    #[error(
        "the policy {origin} has int8 weights and cannot be written anew; give the policy with f32 \
         weights that it was made from"
    )]
    NotF32 {
        /// Where it comes from.
        origin: String,
    },
    /// A policy for something else.
    #[error(
        "the policy {origin} was trained for {found}, not for {problem}; give --policy one for {problem}"
    )]
    OtherProblem {
        /// Where it comes from.
        origin: String,
        /// The problem in its header.
        found: String,
        /// The problem to be run.
        problem: &'static str,
    },
    /// A policy for windows whose cells are another way apart, or on other fields.
    #[error(
        "the policy {origin} was trained for windows as in {found}, not in {needed}, where the number behind \
         the slash is how many grid points their cells are apart (1 without), and names behind a plus are \
         fields that agents see besides; give [sensors] that spacing and those fields, or train it again"
    )]
    OtherWindows {
        /// Where it comes from.
        origin: String,
        /// What it was trained for.
        found: String,
        /// What it is to run on.
        needed: &'static str,
    },
    /// A policy that reads something else than the windows on the other fields.
    #[error(
        "the policy {origin} reads {found:?} values beside its window, where {problem} has windows of {needed:?} \
         on the fields that agents see besides; train it again"
    )]
    OtherCells {
        /// Where it comes from.
        origin: String,
        /// Rows and columns in its header.
        found: [u8; 2],
        /// Those of the windows.
        needed: [usize; 2],
        /// What it says it is for.
        problem: &'static str,
    },
    /// A policy for a field with another number of axes.
    #[error(
        "the policy {origin} is made for fields with {found} {} but {problem} has {axes}; train it again for {problem}",
        if *found == 1 { "axis" } else { "axes" }
    )]
    OtherAxes {
        /// Where it comes from.
        origin: String,
        /// Its axes.
        found: u8,
        /// The problem to be run.
        problem: &'static str,
        /// Axes of the problem.
        axes: usize,
    },
    /// A policy whose picture of the whole does not divide the problem's grid.
    #[error(
        "the policy {origin} looks at the whole in {} × {} blocks, into which the {grid} sensors of {problem} cannot be divided; train it again for this grid",
        blocks[0],
        blocks[1]
    )]
    UnevenBlocks {
        /// Where it comes from.
        origin: String,
        /// Cells of its picture along each axis.
        blocks: [u8; 2],
        /// The problem to be run.
        problem: &'static str,
        /// Grid of the problem's sensors.
        grid: String,
    },
    /// A policy whose observation does not fit the problem.
    #[error(
        "the policy {origin} looks at {found} cells but {problem} has a grid of {grid}; train it again for this grid"
    )]
    WindowTooWide {
        /// Where it comes from.
        origin: String,
        /// Its window.
        found: u16,
        /// The problem to be run.
        problem: &'static str,
        /// Grid points of the problem, along its shorter axis.
        grid: usize,
    },
}

/// A probe that gave other bits than expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mismatch {
    /// The network's outputs where the policy was made.
    pub expected: [f32; 3],
    /// Those here; none if the probe is no valid observation.
    pub found: Option<[f32; 3]>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |values: [f32; 3]| {
            values
                .map(|v| format!("{v:e} ({:08x})", v.to_bits()))
                .join(", ")
        };
        write!(f, "its probe should give {}", shown(self.expected))?;
        match self.found {
            Some(found) => write!(f, " and gives {}", shown(found)),
            None => f.write_str(" and is no valid observation"),
        }
    }
}

/// What the policy's probe gives that it should not, if it has one.
pub fn self_test(policy: &Policy) -> Result<(), Mismatch> {
    let mut workspace = vec![0.0; policy.workspace_len()];
    match policy.probe() {
        Some((observation, probe)) if !policy.self_test(&mut workspace) => Err(Mismatch {
            expected: probe.expected.map(f32::from_le_bytes),
            found: policy.probed(&observation, &mut workspace),
        }),
        _ => Ok(()),
    }
}

/// That a policy expects to be asked at another pace than the problem asks it, in a sentence.
pub fn off_beat(policy: &Policy, problem: &Problem) -> Option<String> {
    let (its, ours) = (policy.header().timing.period_us, problem.period_us());
    (its != ours).then(|| {
        format!(
            "the policy was made for an observation every {its} µs and {} gives one every {ours} µs; \
             its rates and its envelope count its own",
            problem.name
        )
    })
}

/// How people call it.
pub fn name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::F32 => "f32",
        Encoding::Int8 => "int8",
    }
}

/// The reverse.
pub fn encoding(name: &str) -> Result<Encoding, &'static str> {
    match name {
        "f32" => Ok(Encoding::F32),
        "int8" => Ok(Encoding::Int8),
        _ => Err("weights are stored as f32 or int8"),
    }
}

/// What the error leaves out, because it is a node's too.
fn detail(error: &PolicyError, bytes: &[u8]) -> String {
    match error {
        PolicyError::Field { name, .. } if *name == FieldName::Workspace => {
            policy::workspace(bytes).map_or(String::new(), |[stated, needed]| {
                format!(": {stated} floats are stated, {needed} needed")
            })
        }
        _ => String::new(),
    }
}

/// What to do about an unusable blob, where the error does not say so itself.
fn remedy(error: &PolicyError) -> &'static str {
    match error {
        PolicyError::UnknownFormat { .. } => "",
        _ => "; copy it or export it again",
    }
}

impl PolicyFile {
    /// Reads a file; nothing is checked until [`policy`](Self::policy).
    pub fn read(path: &Path) -> Result<Self, PolicyFileError> {
        let bytes = input::read(path, input::POLICY).map_err(|source| PolicyFileError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::new(&bytes, path.display().to_string()))
    }

    /// The policy that this program was built with.
    pub fn shipped(problem: &Problem) -> Result<Self, PolicyFileError> {
        let name = problem.name;
        match problem.policy {
            Some(bytes) => Ok(Self::new(bytes, format!("policies/{name}.policy"))),
            None => Err(PolicyFileError::NotShipped { problem: name }),
        }
    }

    /// Bytes from elsewhere; `origin` names them in messages.
    pub fn new(bytes: &[u8], origin: String) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8) + LINE / 8];
        let weights_at = bytes
            .get(WEIGHTS_AT)
            .and_then(|field| field.try_into().ok())
            .map_or(0, u32::from_le_bytes);
        // For speed alone: vectors that cross cache lines cost a tenth of a control step. (A clone
        // may lie elsewhere and be slower.)
        let weights = words.as_ptr() as usize + weights_at as usize;
        let start = (LINE - weights % LINE) % LINE / 8;
        bytemuck::cast_slice_mut::<u64, u8>(&mut words[start..])[..bytes.len()]
            .copy_from_slice(bytes);
        Self {
            words,
            start,
            length: bytes.len(),
            origin,
        }
    }

    /// The blob.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words[self.start..])[..self.length]
    }

    /// Where it comes from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// SHA-256 of the blob in hexadecimal: the name under which results cite it.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The same policy with its weights stored in another way, from f32 ones, as the newest format
    /// has it.
    pub fn recoded(&self, encoding: Encoding) -> Result<Self, PolicyFileError> {
        let origin = format!("{} with {} weights", self.origin, name(encoding));
        self.rewritten(origin, |header| header.network.encoding = encoding)
    }

    /// The same policy with this governor, or with none; for f32 weights.
    pub fn governed(&self, governor: Option<Governor>) -> Result<Self, PolicyFileError> {
        let with = if governor.is_some() {
            "with"
        } else {
            "without"
        };
        let origin = format!("{} {with} a governor", self.origin);
        self.rewritten(origin, |header| header.limits.governor = governor)
    }

    /// The same weights under a changed header.
    fn rewritten(
        &self,
        name: String,
        change: impl FnOnce(&mut Header),
    ) -> Result<Self, PolicyFileError> {
        let origin = || self.origin.clone();
        let policy = self.parse()?;
        if policy.header().network.encoding != Encoding::F32 {
            return Err(PolicyFileError::NotF32 { origin: origin() });
        }
        let mut header = policy.header().clone();
        change(&mut header);
        let mut scratch = vec![0.0; policy.parameters_len()];
        let mut buffer = vec![0u32; policy.recode_room()];
        let blob = recode(&policy, &header, &mut scratch, &mut buffer).map_err(|source| {
            PolicyFileError::Recode {
                origin: origin(),
                encoding: header.network.encoding,
                source,
            }
        })?;
        Ok(Self::new(blob, name))
    }

    /// The policy, whatever it is for and whether or not it passes its self-test.
    pub fn parse(&self) -> Result<Policy<'_>, PolicyFileError> {
        Policy::parse(self.bytes()).map_err(|source| PolicyFileError::Blob {
            origin: self.origin.clone(),
            source,
            detail: detail(&source, self.bytes()),
        })
    }

    /// The policy, if it is one for this problem and this machine computes what its maker's did.
    pub fn policy(&self, problem: &Problem) -> Result<Policy<'_>, PolicyFileError> {
        let origin = || self.origin.clone();
        let policy = self.parse()?;
        let header = policy.header();
        let (found, needed) = (header.problem.as_str(), problem.seen_as());
        if found != needed {
            let plain = |name: &str| name.split(['/', '+']).next().map(str::to_owned);
            return Err(match plain(found).as_deref() == Some(problem.name) {
                true => PolicyFileError::OtherWindows {
                    origin: origin(),
                    found: found.to_owned(),
                    needed,
                },
                false => PolicyFileError::OtherProblem {
                    origin: origin(),
                    found: found.to_owned(),
                    problem: needed,
                },
            });
        }
        let sensors = &problem.sensors;
        if usize::from(header.sensing.axes) != sensors.axes {
            return Err(PolicyFileError::OtherAxes {
                origin: origin(),
                found: header.sensing.axes,
                problem: problem.name,
                axes: sensors.axes,
            });
        }
        let wide = header.sensing.wide;
        let others = problem.other_windows(header.sensing.window.into());
        if others.is_some() && others != wide.map(|cells| cells.map(usize::from)) {
            return Err(PolicyFileError::OtherCells {
                origin: origin(),
                found: wide.unwrap_or_default(),
                needed: others.unwrap_or_default(),
                problem: needed,
            });
        }
        let blocks = wide.filter(|_| others.is_none()).unwrap_or([1, 1]);
        let divides = |(points, blocks): (&usize, u8)| points.is_multiple_of(usize::from(blocks));
        if !sensors.points.iter().zip(blocks).all(divides) {
            return Err(PolicyFileError::UnevenBlocks {
                origin: origin(),
                blocks,
                problem: problem.name,
                grid: sensors.to_string(),
            });
        }
        let grid = sensors.shape().iter().copied().min().unwrap_or(0);
        if problem.sensing.spacing * usize::from(header.sensing.window) > grid {
            return Err(PolicyFileError::WindowTooWide {
                origin: origin(),
                found: header.sensing.window,
                problem: problem.name,
                grid,
            });
        }
        match self_test(&policy) {
            Ok(()) => Ok(policy),
            Err(mismatch) => Err(PolicyFileError::SelfTest {
                origin: origin(),
                mismatch,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped_bytes(problem: &Problem) -> Vec<u8> {
        PolicyFile::shipped(problem).unwrap().bytes().to_vec()
    }

    /// Makes the checksum right again after a change.
    fn reseal(bytes: &mut [u8]) {
        let mut digest = agent_core::message::CRC32.digest();
        digest.update(&bytes[..28]);
        digest.update(&bytes[32..]);
        let crc = digest.finalize().to_le_bytes();
        bytes[28..32].copy_from_slice(&crc);
    }

    #[test]
    fn every_shipped_policy_fits_the_problem_it_is_named_after() {
        for problem in problem::published::measured() {
            let file = PolicyFile::shipped(problem).unwrap();
            file.policy(problem).unwrap();
        }
    }

    #[test]
    fn a_policy_keeps_its_governor_with_other_weights_and_can_lose_it() {
        let problem = problem::published::by_name("heat-1d").unwrap();
        let shipped = PolicyFile::shipped(problem).unwrap();
        let governor = |file: &PolicyFile| file.policy(problem).unwrap().header().limits.governor;
        let given = Some(Governor {
            growth: 1.25,
            floor: 0.5,
            band: 0.2,
        });
        let governed = shipped.governed(given).unwrap();
        assert_eq!(governor(&governed), given);
        let small = governed.recoded(Encoding::Int8).unwrap();
        assert_eq!(governor(&small), given);
        let freed = governed.governed(None).unwrap();
        assert_eq!(governor(&freed), None);
        let same = shipped.governed(governor(&shipped)).unwrap();
        assert_eq!(
            same.bytes(),
            shipped.recoded(Encoding::F32).unwrap().bytes()
        );
        let refused = small.governed(None).unwrap_err().to_string();
        assert!(
            refused.contains("int8") && refused.contains("f32"),
            "{refused}"
        );
    }

    #[test]
    fn a_failed_self_test_says_what_was_expected_and_what_came() {
        let problem = problem::published::by_name("heat-1d").unwrap();
        let shipped = PolicyFile::shipped(problem).unwrap();
        let policy = shipped.policy(problem).unwrap();
        let (observation, probe) = policy.probe().unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let found = policy.probed(&observation, &mut workspace).unwrap();
        // Another first output, under a right checksum.
        let mut bytes = shipped_bytes(problem);
        let mut at = (0..bytes.len()).filter(|&k| bytes[k..].starts_with(&probe.expected[0]));
        let at = at.next().unwrap();
        bytes[at] ^= 1;
        reseal(&mut bytes);
        let error = PolicyFile::new(&bytes, "forged".to_owned())
            .policy(problem)
            .unwrap_err();
        let expected = f32::from_bits(found[0].to_bits() ^ 1);
        let said = error.to_string();
        for value in [expected, found[0]] {
            let value = format!("{value:e} ({:08x})", value.to_bits());
            assert!(said.contains(&value), "{said}");
        }
    }

    #[test]
    fn a_policy_of_another_pace_is_noticed() {
        let problem = problem::published::by_name("heat-1d").unwrap();
        let shipped = PolicyFile::shipped(problem).unwrap();
        let slower = shipped.rewritten("slower".to_owned(), |header| header.timing.period_us *= 2);
        let slower = slower.unwrap();
        assert_eq!(off_beat(&shipped.policy(problem).unwrap(), problem), None);
        let said = off_beat(&slower.policy(problem).unwrap(), problem).unwrap();
        assert!(
            said.contains("2000 µs") && said.contains("1000 µs"),
            "{said}"
        );
    }

    #[test]
    fn bytes_survive_alignment_and_have_the_known_hash() {
        let file = PolicyFile::new(b"abc", "here".into());
        assert_eq!(file.bytes(), b"abc");
        // FIPS 180-2, appendix B.1.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(file.hash(), known);
    }
}
