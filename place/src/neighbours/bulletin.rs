//! What a node says: one reading, where and when it was taken, and a number, in 32 bytes with a checksum or 48
//! with a proof. Both are lengths of CAN FD frames.
//!
//! ```text
//!  0  form: 1 with a checksum, 2 with a proof
//!  1  field, 3 bytes: of what the reading is one
//!  4  start, u32: which time the speaker was started; 0 where it does not count
//!  8  number, u32: rises by one with each
//! 12  stamp, u32: when it was measured, in microseconds of the speaker's clock
//! 16  position, 2 × f32: the speaker's, in the policy's coordinates
//! 24  value, f32: in the field's units
//! 28  CRC-32 of all before, or 0, u32: how often the number has begun again
//! 32  ChaCha20-Poly1305's tag of all before, 16 bytes
//! ```
//!
//! All numbers are little-endian. Who speaks is told by where it stands: no two nodes stand in one place.

use agent_core::message::{CRC32, TAG};
use trust::BusKey;

/// Bytes of a bulletin with a checksum.
pub const PLAIN: usize = 32;

/// Bytes of a bulletin with a proof.
pub const SEALED: usize = PLAIN + TAG;

/// Bytes that both have in common.
const HEAD: usize = 28;

const FORM_PLAIN: u8 = 1;
const FORM_SEALED: u8 = 2;

/// Of what field a reading is one: the first bytes of the CRC-32 of the problem's name. It keeps apart what
/// shares a bus by mistake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Field([u8; 3]);

impl Field {
    /// The field of a problem.
    pub fn of(problem: &str) -> Self {
        let [a, b, c, _] = CRC32.checksum(problem.as_bytes()).to_le_bytes();
        Self([a, b, c])
    }
}

/// What a node says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bulletin {
    /// Of what the value is one.
    pub field: Field,
    /// Which time the speaker was started, where it counts that.
    pub start: u32,
    /// Its number since. With a checksum only 32 bits of it are said.
    pub number: u64,
    /// When it was measured, in microseconds of the speaker's clock.
    pub stamp_us: u32,
    /// Where the speaker stands.
    pub position: [f32; 2],
    /// What it measured.
    pub value: f32,
}

/// Why bytes are not taken for a bulletin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// They are too few or too many.
    Length,
    /// They have another form, or the one that is not asked for here.
    Form,
    /// Their checksum or their proof is wrong.
    Proof,
    /// A position or a value is no number.
    NotANumber,
}

impl Bulletin {
    /// Its bytes, in `buffer`, with a proof if there is a key. With a key no two bulletins of one position may
    /// have the same start and number.
    pub fn encode<'b>(&self, key: Option<&BusKey>, buffer: &'b mut [u8; SEALED]) -> &'b [u8] {
        let (head, end) = buffer.split_at_mut(HEAD);
        let form = match key {
            Some(_) => FORM_SEALED,
            None => FORM_PLAIN,
        };
        let Field([a, b, c]) = self.field;
        let [x, y] = self.position;
        let words = [
            [form, a, b, c],
            self.start.to_le_bytes(),
            (self.number as u32).to_le_bytes(),
            self.stamp_us.to_le_bytes(),
            x.to_le_bytes(),
            y.to_le_bytes(),
            self.value.to_le_bytes(),
        ];
        for (to, word) in head.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word;
        }
        let last = match key {
            Some(_) => ((self.number >> 32) as u32).to_le_bytes(),
            None => CRC32.checksum(head).to_le_bytes(),
        };
        for (to, byte) in end.iter_mut().zip(last) {
            *to = byte;
        }
        let Some(key) = key else {
            return buffer.get(..PLAIN).unwrap_or_default();
        };
        let (said, room) = buffer.split_at_mut(PLAIN);
        let tag = key.tag(&self.speaker(), &self.nonce(), said);
        for (to, byte) in room.iter_mut().zip(tag) {
            *to = byte;
        }
        buffer
    }

    /// The bulletin that these bytes are: one with a proof where there is a key, else one with a checksum.
    pub fn read(bytes: &[u8], key: Option<&BusKey>) -> Result<Self, Damage> {
        let length = key.map_or(PLAIN, |_| SEALED);
        if bytes.len() != length {
            return Err(Damage::Length);
        }
        let (words, _) = bytes.as_chunks::<4>();
        let Some((&[head, start, number, stamp, x, y, value, last], proof)) =
            words.split_first_chunk::<8>()
        else {
            return Err(Damage::Length);
        };
        let [form, a, b, c] = head;
        let high = match key {
            Some(_) => u64::from(u32::from_le_bytes(last)) << 32,
            None => 0,
        };
        let bulletin = Self {
            field: Field([a, b, c]),
            start: u32::from_le_bytes(start),
            number: high | u64::from(u32::from_le_bytes(number)),
            stamp_us: u32::from_le_bytes(stamp),
            position: [x, y].map(f32::from_le_bytes),
            value: f32::from_le_bytes(value),
        };
        let said = bytes.get(..PLAIN).ok_or(Damage::Length)?;
        let (wanted, proven) = match (key, proof.as_flattened().first_chunk()) {
            (Some(key), Some(tag)) => {
                let (speaker, nonce) = (bulletin.speaker(), bulletin.nonce());
                (FORM_SEALED, key.is_tag(&speaker, &nonce, said, tag))
            }
            (Some(_), None) => return Err(Damage::Length),
            (None, _) => {
                let head = said.get(..HEAD).ok_or(Damage::Length)?;
                let sum = CRC32.checksum(head).to_le_bytes();
                (FORM_PLAIN, sum == last)
            }
        };
        if form != wanted {
            return Err(Damage::Form);
        }
        if !proven {
            return Err(Damage::Proof);
        }
        let Self {
            position: [x, y],
            value,
            ..
        } = bulletin;
        match x.is_finite() && y.is_finite() && value.is_finite() {
            true => Ok(bulletin),
            false => Err(Damage::NotANumber),
        }
    }

    /// Where it stands, bit for bit: who it is.
    pub(crate) fn speaker(&self) -> [u8; 8] {
        let [x, y] = self.position.map(f32::to_le_bytes);
        let mut speaker = [0; 8];
        let (first, second) = speaker.split_at_mut(4);
        first.copy_from_slice(&x);
        second.copy_from_slice(&y);
        speaker
    }

    /// New with each bulletin of a speaker, as long as its count of starts is.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = [0; 12];
        let (start, number) = nonce.split_at_mut(4);
        start.copy_from_slice(&self.start.to_le_bytes());
        number.copy_from_slice(&self.number.to_le_bytes());
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bulletin() -> Bulletin {
        Bulletin {
            field: Field::of("heat-1d"),
            start: 3,
            number: 0x0102_0304_0506,
            stamp_us: 1_000_000,
            position: [0.25, 0.5],
            value: -1.5,
        }
    }

    const KEY: BusKey = BusKey::new([9; 32]);

    /// The layout above, byte by byte; the checksum by zlib's `crc32`.
    #[test]
    fn a_bulletin_is_laid_out_as_is_said() {
        let mut room = [0xaa; SEALED];
        let bytes = bulletin().encode(None, &mut room);
        let mut expected = std::vec![1];
        expected.extend(&CRC32.checksum(b"heat-1d").to_le_bytes()[..3]);
        expected.extend([3, 0, 0, 0, 6, 5, 4, 3, 0x40, 0x42, 0x0f, 0]);
        expected.extend([0, 0, 0x80, 0x3e, 0, 0, 0, 0x3f, 0, 0, 0xc0, 0xbf]);
        expected.extend(CRC32.checksum(&expected).to_le_bytes());
        assert_eq!(bytes, expected);
        let mut room = [0xaa; SEALED];
        let sealed = bulletin().encode(Some(&KEY), &mut room);
        assert_eq!((sealed[0], &sealed[28..32]), (2, &[2, 1, 0, 0][..]));
    }

    #[test]
    fn a_bulletin_is_read_as_it_was_written_and_only_in_the_form_that_is_asked_for() {
        let mut room = [0; SEALED];
        let plain = bulletin().encode(None, &mut room).to_vec();
        let cut = Bulletin {
            number: 0x0304_0506,
            ..bulletin()
        };
        assert_eq!(Bulletin::read(&plain, None), Ok(cut));
        let sealed = bulletin().encode(Some(&KEY), &mut room).to_vec();
        assert_eq!(Bulletin::read(&sealed, Some(&KEY)), Ok(bulletin()));
        assert_eq!(Bulletin::read(&plain, Some(&KEY)), Err(Damage::Length));
        assert_eq!(Bulletin::read(&sealed, None), Err(Damage::Length));
        assert_eq!(Bulletin::read(&sealed[..PLAIN], None), Err(Damage::Form));
        let other = BusKey::new([8; 32]);
        assert_eq!(Bulletin::read(&sealed, Some(&other)), Err(Damage::Proof));
        let infinite = Bulletin {
            value: f32::INFINITY,
            ..bulletin()
        };
        let bytes = infinite.encode(None, &mut room);
        assert_eq!(Bulletin::read(bytes, None), Err(Damage::NotANumber));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_bulletin_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Bulletin::read(&bytes, None);
            prop_assert!(Bulletin::read(&bytes, Some(&KEY)).is_err());
        }

        /// Up to five of its bits: fewer than CRC-32 has ever let pass at this length.
        #[test]
        fn a_bulletin_with_wrong_bits_is_none(
            bits in proptest::collection::hash_set(0usize..8 * SEALED, 1..6), sealed: bool,
        ) {
            let key = sealed.then_some(&KEY);
            let mut room = [0; SEALED];
            let mut bytes = bulletin().encode(key, &mut room).to_vec();
            let before = bytes.clone();
            for bit in bits {
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            prop_assert!(bytes == before || Bulletin::read(&bytes, key).is_err());
        }
    }
}
