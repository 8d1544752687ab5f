//! Consistent overhead byte stuffing (COBS), a run of bytes at a time and in place.
//!
//! A block is a code and the bytes up to the next zero, which the code stands for: one more than
//! there are bytes. 255 says that 254 bytes follow and no zero after them.

/// Bytes of a full block.
const BLOCK: usize = 254;

/// How far from a buffer's start bytes must lie, at least, so that [`stuff`] can write their frame
/// over them from there.
pub const fn head_room(buffer: usize) -> usize {
    buffer / BLOCK + 2
}

/// Short runs are looked at byte by byte.
const NEAR: usize = 8;

/// Moves `run` bytes from `from` to `to`, which does not lie above it.
///
/// Not by `copy_within`, which can move up as well: nothing else in an image needs that, and on a board it
/// takes 1.5 kB of flash.
fn move_down(buffer: &mut [u8], from: usize, run: usize, to: usize) -> Option<()> {
    let pieces = run - run % NEAR;
    for k in (0..pieces).step_by(NEAR) {
        let piece: [u8; NEAR] = *buffer.get(from + k..)?.first_chunk()?;
        *buffer.get_mut(to + k..)?.first_chunk_mut()? = piece;
    }
    for k in pieces..run {
        *buffer.get_mut(to + k)? = *buffer.get(from + k)?;
    }
    Some(())
}

/// Turns the bytes from `start` to `end` of the buffer into blocks from its start on, with a zero
/// after the last; `None` if there is no room. Returns the length.
pub fn stuff(buffer: &mut [u8], start: usize, end: usize) -> Option<usize> {
    let (mut from, mut to) = (start, 0);
    loop {
        // What has been read is overwritten only.
        if to + 1 > from {
            return None;
        }
        let rest = buffer.get(from..end)?;
        // Zeros come in numbers: cells beyond a wall are nothing else.
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            buffer.get_mut(to..to + zeros)?.fill(1);
            from += zeros;
            to += zeros;
            continue;
        }
        let most = rest.get(..BLOCK).unwrap_or(rest);
        // Most runs are short, or as long as they can be: looking for a zero far away costs more
        // than finding a near one.
        let near = most.get(..NEAR).unwrap_or(most);
        let run = match near.iter().position(|byte| *byte == 0) {
            Some(run) => run,
            None => memchr::memchr(0, most).unwrap_or(most.len()),
        };
        *buffer.get_mut(to)? = run as u8 + 1;
        move_down(buffer, from, run, to + 1)?;
        from += run;
        to += run + 1;
        if from == end {
            break;
        }
        if run < BLOCK {
            from += 1; // the zero
        }
    }
    *buffer.get_mut(to)? = 0;
    Some(to + 1)
}

/// Turns blocks, with or without a zero at their end, back into what they were made from, at the
/// buffer's start; `None` if they are none. Returns the length.
pub fn unstuff(frame: &mut [u8]) -> Option<usize> {
    let end = match frame.split_last()? {
        (0, blocks) => blocks.len(),
        _ => frame.len(),
    };
    if memchr::memchr(0, frame.get(..end)?).is_some() {
        return None;
    }
    let (mut from, mut to) = (0, 0);
    while from < end {
        let empty = frame.get(from..end)?.iter().take_while(|code| **code == 1);
        let empty = empty.count();
        if empty > 0 {
            from += empty;
            // No zero follows the last block.
            let zeros = empty - usize::from(from == end);
            frame.get_mut(to..to + zeros)?.fill(0);
            to += zeros;
            continue;
        }
        let code = *frame.get(from)?;
        let run = usize::from(code).checked_sub(1)?;
        let next = from + 1 + run;
        if next > end {
            return None;
        }
        move_down(frame, from + 1, run, to)?;
        from = next;
        to += run;
        if from < end && run < BLOCK {
            *frame.get_mut(to)? = 0;
            to += 1;
        }
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn stuffed(plain: &[u8]) -> Vec<u8> {
        let mut buffer = std::vec![0x55; plain.len() + plain.len() / 100 + 8];
        let start = head_room(buffer.len());
        buffer[start..start + plain.len()].copy_from_slice(plain);
        let length = stuff(&mut buffer, start, start + plain.len()).unwrap();
        buffer.truncate(length);
        buffer
    }

    /// More than a block; Miri takes seconds for a hundred drawn bytes.
    const LONGEST: usize = if cfg!(miri) { 300 } else { 1200 };

    /// Every 256th is zero, so blocks of all lengths occur.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 1..LONGEST)
    }

    #[test]
    fn the_examples_of_the_paper_come_out() {
        // Cheshire and Baker, "Consistent Overhead Byte Stuffing", 1999, and the ends of blocks.
        assert_eq!(stuffed(&[]), [1, 0]);
        assert_eq!(stuffed(&[0]), [1, 1, 0]);
        assert_eq!(
            stuffed(&[0x45, 0, 0, 0x2c, 0x4c]),
            [2, 0x45, 1, 3, 0x2c, 0x4c, 0]
        );
        let full = [7; BLOCK];
        assert_eq!(stuffed(&full)[..2], [255, 7]);
        assert_eq!(stuffed(&full).len(), 256);
        let mut more = full.to_vec();
        more.push(0);
        assert_eq!(stuffed(&more)[255..], [1, 1, 0]);
    }

    #[test]
    fn a_buffer_without_head_room_is_refused_not_garbled() {
        let mut buffer = [1u8; 300];
        assert_eq!(stuff(&mut buffer, 0, 100), None);
        // Room for the code of one block, and there are two.
        assert_eq!(stuff(&mut buffer, 1, 290), None);
        // None for the zero.
        assert_eq!(stuff(&mut buffer[..101], 1, 101), None);
    }

    proptest! {
        #[test]
        fn another_reader_reads_it_and_what_another_writer_wrote_is_read(plain in any_bytes()) {
            let mut ours = stuffed(&plain);
            let mut theirs = std::vec![0; cobs::max_encoding_length(plain.len())];
            let length = cobs::encode(&plain, &mut theirs);
            theirs.truncate(length);
            prop_assert_eq!(unstuff(&mut ours.clone()), Some(plain.len()));
            let length = cobs::decode_in_place(&mut ours).unwrap();
            prop_assert_eq!(&ours[..length], &plain);
            let length = unstuff(&mut theirs).unwrap();
            prop_assert_eq!(&theirs[..length], &plain);
        }

        #[test]
        fn any_bytes_are_blocks_or_not(mut bytes in proptest::collection::vec(any::<u8>(), 0..LONGEST / 2)) {
            let long = bytes.len();
            if let Some(length) = unstuff(&mut bytes) {
                prop_assert!(length < long.max(1));
            }
        }
    }
}
