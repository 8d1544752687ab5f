//! NumPy's `.npy` files: little-endian float32 or float64, C order, any shape.
//!
//! Test sets have no other layout, and a reader for it is shorter than the glue around a general
//! one. Every way a file can be wrong has its own error, because test sets come from other people's
//! scripts.

use std::fmt;

/// An array as it stood in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// Values, last axis fastest; all finite. Those of a float64 file are rounded.
    pub values: Vec<f32>,
}

/// What is wrong with an `.npy` file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It does not begin with NumPy's magic bytes.
    #[error("this is not a NumPy .npy file (its first bytes are not \\x93NUMPY)")]
    NotNpy,
    /// A format version that does not exist yet.
    #[error("its .npy format version is {major}; this program reads versions 1 to 3")]
    Version {
        /// First byte of the version.
        major: u8,
    },
    /// The header ends early or lacks a field.
    #[error("its .npy header is damaged: {what}")]
    Header {
        /// What could not be read.
        what: String,
    },
    /// Values of another type.
    #[error(
        "its values have type '{found}'; save them as little-endian float32 or float64, e.g. array.astype('<f4')"
    )]
    Type {
        /// NumPy's name of the type in the file.
        found: String,
    },
    /// First axis fastest.
    #[error("it is stored in Fortran order; save it in C order (numpy.ascontiguousarray)")]
    FortranOrder,
    /// Fewer or more values than the shape says.
    #[error("its shape {shape} needs {expected} bytes of values but {found} follow the header")]
    Length {
        /// The shape in the header.
        shape: Shape,
        /// Bytes that the shape asks for.
        expected: u64,
        /// Bytes that follow the header.
        found: usize,
    },
    /// A NaN or an infinity.
    #[error("the value at {at} is {value}; values must be finite")]
    NotFinite {
        /// Index along each axis.
        at: Shape,
        /// NaN, inf or -inf.
        value: f64,
    },
    /// A float64 beyond the range of float32, which fields are kept in.
    #[error(
        "the value at {at} is {value:e}; the largest that can be used is {:e}",
        f32::MAX
    )]
    TooLarge {
        /// Index along each axis.
        at: Shape,
        /// What stands there.
        value: f64,
    },
}

/// A shape or an index, printed as `[50, 2, 100]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<usize>);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Parses the bytes of an `.npy` file.
///
/// ```
/// let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
/// let mut file = b"\x93NUMPY\x01\x00".to_vec();
/// file.extend((header.len() as u16).to_le_bytes());
/// file.extend(header.as_bytes());
/// file.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()));
/// let array = problem::npy::parse(&file)?;
/// assert_eq!((array.shape, array.values), (vec![2], vec![1.5, -2.0]));
/// # Ok::<_, problem::npy::NpyError>(())
/// ```
pub fn parse(bytes: &[u8]) -> Result<Array, NpyError> {
    let (header, data) = split_header(magic(bytes)?)?;
    let shape = header.shape;
    let expected = shape
        .iter()
        .try_fold(header.size as u64, |bytes, &axis| {
            bytes.checked_mul(axis as u64)
        })
        .unwrap_or(u64::MAX);
    if data.len() as u64 != expected {
        return Err(NpyError::Length {
            shape: Shape(shape),
            expected,
            found: data.len(),
        });
    }
    let values: Vec<f32> = match header.size {
        8 => bytes_of(data)
            .map(|b| f64::from_le_bytes(b) as f32)
            .collect(),
        _ => bytes_of(data).map(f32::from_le_bytes).collect(),
    };
    if let Some(flat) = values.iter().position(|v| !v.is_finite()) {
        let at = Shape(unflatten(flat, &shape));
        let value = match header.size {
            8 => bytes_of(data).nth(flat).map(f64::from_le_bytes),
            _ => None,
        };
        return Err(match value.unwrap_or(f64::from(values[flat])) {
            value if value.is_finite() => NpyError::TooLarge { at, value },
            value => NpyError::NotFinite { at, value },
        });
    }
    Ok(Array { shape, values })
}

/// The shape of the array in a file, of which the beginning is enough.
pub fn shape(beginning: &[u8]) -> Result<Vec<usize>, NpyError> {
    let (header, _) = split_header(magic(beginning)?)?;
    Ok(header.shape)
}

/// Most bytes before the first value of a file that NumPy wrote for an array of numbers.
pub const LONGEST_HEADER: u64 = 10 + u16::MAX as u64;

/// What a header says of an array that can be read.
struct Header {
    shape: Vec<usize>,
    /// Bytes of one value, 4 or 8.
    size: usize,
}

impl Header {
    fn parse(text: &str) -> Result<Self, NpyError> {
        let size = match quoted(field(text, "descr")?)? {
            "<f4" => 4,
            "<f8" => 8,
            other => {
                let found = other.to_owned();
                return Err(NpyError::Type { found });
            }
        };
        if !field(text, "fortran_order")?.starts_with("False") {
            return Err(NpyError::FortranOrder);
        }
        let shape = tuple(field(text, "shape")?)?;
        Ok(Self { shape, size })
    }
}

fn magic(bytes: &[u8]) -> Result<&[u8], NpyError> {
    bytes.strip_prefix(b"\x93NUMPY").ok_or(NpyError::NotNpy)
}

/// Whole values, byte by byte.
fn bytes_of<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> {
    data.as_chunks().0.iter().copied()
}

fn damaged(what: impl Into<String>) -> NpyError {
    NpyError::Header { what: what.into() }
}

/// Header and data, from what follows the magic bytes.
fn split_header(rest: &[u8]) -> Result<(Header, &[u8]), NpyError> {
    let short = || damaged("the file ends inside it");
    let (&[major, _minor], rest) = rest.split_first_chunk().ok_or_else(short)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return Err(NpyError::Version { major }),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| damaged("it is not text"))?;
    Ok((Header::parse(header)?, data))
}

/// The text that follows `'name':`.
fn field<'a>(header: &'a str, name: &str) -> Result<&'a str, NpyError> {
    let key = format!("'{name}':");
    header
        .split_once(&key)
        .map(|(_, value)| value.trim_start())
        .ok_or_else(|| damaged(format!("it has no field '{name}'")))
}

fn quoted(text: &str) -> Result<&str, NpyError> {
    text.strip_prefix('\'')
        .and_then(|t| t.split_once('\''))
        .map(|(value, _)| value)
        .ok_or_else(|| damaged("'descr' is not a plain type name"))
}

fn tuple(text: &str) -> Result<Vec<usize>, NpyError> {
    let bad = || damaged("'shape' is not a tuple of lengths");
    let (inside, _) = text
        .strip_prefix('(')
        .and_then(|t| t.split_once(')'))
        .ok_or_else(bad)?;
    inside
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty())
        .map(|axis| axis.parse().map_err(|_| bad()))
        .collect()
}

fn unflatten(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (axis, length) in shape.iter().enumerate().rev() {
        index[axis] = flat % length;
        flat /= length;
    }
    index
}

/// The bytes of an `.npy` file with these values.
///
/// # Panics
/// If the shape does not have as many values.
pub fn encode(shape: &[usize], values: &[f32]) -> Vec<u8> {
    assert_eq!(shape.iter().product::<usize>(), values.len());
    let mut bytes = beginning("<f4", shape);
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// What comes before the values of an `.npy` file, for writers that do not have all of them yet.
/// `kind` is NumPy's name of their type, e.g. `<f4` or `|u1`.
pub fn beginning(kind: &str, shape: &[usize]) -> Vec<u8> {
    beginning_of(kind, shape, 0)
}

/// The same, of so many bytes if it is shorter: in place of that of a larger array of the same type.
pub fn beginning_of(kind: &str, shape: &[usize], bytes: usize) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    // Magic, version and the header's length take 10 bytes; values begin at a multiple of 64.
    let length = (10 + header.len() + 1).next_multiple_of(64).max(bytes) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(header: &str, values: &[f32]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    }

    const GOOD: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3), }    \n";

    #[test]
    fn a_plain_array_is_read() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let array = parse(&file(GOOD, &values)).unwrap();
        assert_eq!(array.shape, [2, 1, 3]);
        assert_eq!(array.values, values);
    }

    #[test]
    fn a_nan_is_named_by_its_index() {
        let error = parse(&file(GOOD, &[0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value at [1, 0, 1] is NaN; values must be finite"
        );
    }

    fn wide_file(values: &[f64]) -> Vec<u8> {
        let mut bytes = file(&GOOD.replace("<f4", "<f8"), &[]);
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    }

    #[test]
    fn double_precision_is_rounded_and_what_does_not_fit_is_named() {
        let array = parse(&wide_file(&[0.1, -2.0, 3.0, 4.0, 5.0, 1e-300])).unwrap();
        assert_eq!(array.shape, [2, 1, 3]);
        assert_eq!(array.values, [0.1, -2.0, 3.0, 4.0, 5.0, 0.0]);
        let error = |value| parse(&wide_file(&[0.0, 0.0, 0.0, value, 0.0, 0.0])).unwrap_err();
        assert_eq!(
            error(f64::NEG_INFINITY).to_string(),
            "the value at [1, 0, 0] is -inf; values must be finite"
        );
        assert_eq!(
            error(1e40).to_string(),
            "the value at [1, 0, 0] is 1e40; the largest that can be used is 3.4028235e38"
        );
    }

    #[test]
    fn the_beginning_of_a_file_tells_its_shape() {
        let bytes = encode(&[3, 2], &[0.0; 6]);
        assert_eq!(shape(&bytes[..bytes.len() - 20]), Ok(vec![3, 2]));
        assert!(shape(&bytes[..20]).is_err());
    }

    #[test]
    fn each_wrong_file_has_its_sentence() {
        let six = [0.0; 6];
        let cases = [
            (b"PK\x03\x04".to_vec(), "not a NumPy"),
            (b"\x93NUMPY\x09\x00".to_vec(), "version is 9"),
            (b"\x93NUMPY\x01\x00\xff\x00{".to_vec(), "ends inside"),
            (file(&GOOD.replace("<f4", ">f4"), &six), "type '>f4'"),
            (file(&GOOD.replace("<f4", "<i8"), &six), "astype('<f4')"),
            (file(&GOOD.replace("False", "True"), &six), "Fortran"),
            (
                file(&GOOD.replace("'shape'", "'form'"), &six),
                "no field 'shape'",
            ),
            (file(&GOOD.replace("(2, 1, 3)", "six"), &six), "not a tuple"),
            (file(GOOD, &six[..5]), "needs 24 bytes of values but 20"),
            (file(GOOD, &[0.0; 7]), "needs 24 bytes of values but 28"),
            (
                file(&GOOD.replace("<f4", "<f8"), &six),
                "needs 48 bytes of values but 24",
            ),
        ];
        for (bytes, expected) in cases {
            let message = parse(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes: Vec<u8>, cut in 0usize..100, flip in 0usize..100) {
            let _ = parse(&bytes);
            let mut file = file(GOOD, &[0.0; 6]);
            let flip = flip % file.len();
            file[flip] ^= 1 << (cut % 8);
            let _ = (parse(&file), shape(&file));
            file.truncate(cut);
            let _ = (parse(&file), shape(&file));
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for shape in [vec![6], vec![2, 3], vec![1, 2, 3]] {
            let values = [0.5, -1.0, 3.0e-20, 7.0, 8.0, 9.0];
            let bytes = encode(&shape, &values);
            assert_eq!((bytes.len() - 24) % 64, 0);
            let expected = Array {
                shape,
                values: values.to_vec(),
            };
            assert_eq!(parse(&bytes), Ok(expected));
        }
    }
}
