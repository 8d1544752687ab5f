//! Frames of many agents in one message.
//!
//! A record says which agent of the room it is for or from, how long it is, and what a cable to that
//! agent alone would carry. A swarm that takes a step is then one message to each room and one back,
//! however many agents there are.

/// A message that has grown to this goes out, and the rest in another.
pub const FULL: usize = 1 << 20;

/// Bytes before those of a record: the agent and their length.
const HEAD: usize = 6;

/// Adds what goes to or comes from an agent.
pub fn push(batch: &mut Vec<u8>, agent: u32, bytes: &[u8]) {
    for piece in bytes.chunks(usize::from(u16::MAX)) {
        batch.extend(agent.to_le_bytes());
        batch.extend((piece.len() as u16).to_le_bytes());
        batch.extend(piece);
    }
}

/// What a message holds, in order; what is no record ends it.
pub fn records(batch: &mut [u8]) -> impl Iterator<Item = (u32, &mut [u8])> {
    let mut rest = batch;
    std::iter::from_fn(move || {
        let (head, more) = std::mem::take(&mut rest).split_at_mut_checked(HEAD)?;
        let [a, b, c, d, short, long] = *head else {
            return None;
        };
        let length = usize::from(u16::from_le_bytes([short, long]));
        let (bytes, more) = more.split_at_mut_checked(length)?;
        rest = more;
        Some((u32::from_le_bytes([a, b, c, d]), bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn read(batch: &mut [u8]) -> Vec<(u32, Vec<u8>)> {
        records(batch)
            .map(|(a, bytes)| (a, bytes.to_vec()))
            .collect()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let mut batch = Vec::new();
        push(&mut batch, 7, &[1, 2, 3]);
        push(&mut batch, 0, &[]);
        push(&mut batch, u32::MAX, &[9]);
        let expected = [(7, vec![1, 2, 3]), (u32::MAX, vec![9])];
        assert_eq!(read(&mut batch), expected);
        // One that is cut ends the message.
        batch.pop();
        assert_eq!(read(&mut batch), expected[..1]);
    }

    #[test]
    fn any_bytes_are_records_or_the_end() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..2000 {
            let mut bytes = vec![0; rng.random_range(0..100)];
            rng.fill(&mut bytes[..]);
            let read: usize = read(&mut bytes)
                .iter()
                .map(|(_, bytes)| HEAD + bytes.len())
                .sum();
            assert!(read <= bytes.len());
        }
    }
}
