//! A line that loses, damages, repeats and reorders frames: a wrapper for any transport.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{OVERDUE, Transport};

/// What befalls a frame, each with its probability.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Faults {
    /// It is lost.
    pub drop: f64,
    /// Some of its bytes change, perhaps the zero at its end.
    pub corrupt: f64,
    /// It comes twice.
    pub duplicate: f64,
    /// It comes after one to three of those sent after it.
    pub reorder: f64,
}

impl Faults {
    /// All with the same probability.
    pub fn each(probability: f64) -> Self {
        Self {
            drop: probability,
            corrupt: probability,
            duplicate: probability,
            reorder: probability,
        }
    }
}

/// What has befallen the frames so far, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Befallen {
    /// Frames that were put in.
    pub frames: u64,
    /// Lost.
    pub dropped: u64,
    /// Changed.
    pub corrupted: u64,
    /// Doubled.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
}

/// Tells what has befallen the frames while somebody else has the line.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<Befallen>>);

impl Tally {
    /// So far.
    pub fn befallen(&self) -> Befallen {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, what: impl FnOnce(&mut Befallen)) {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A transport on which things go wrong, in both directions, the same ones for the same seed.
pub struct Unreliable {
    inner: Box<dyn Transport>,
    out: Direction,
    back: Direction,
    tally: Tally,
    /// What has come through and was not asked for yet.
    ready: VecDeque<u8>,
    passed: Vec<u8>,
}

impl Unreliable {
    /// Wraps a transport.
    pub fn new(inner: Box<dyn Transport>, faults: Faults, seed: u64) -> Self {
        let tally = Tally::default();
        let direction = |stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream);
            Direction {
                faults,
                rng,
                tally: tally.clone(),
                frame: Vec::new(),
                held: Vec::new(),
            }
        };
        Self {
            inner,
            out: direction(0),
            back: direction(1),
            tally,
            ready: VecDeque::new(),
            passed: Vec::new(),
        }
    }

    /// What befalls the frames.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }
}

impl Transport for Unreliable {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.passed.clear();
        self.out.pass(bytes, &mut self.passed);
        match self.passed.is_empty() {
            true => Ok(()),
            false => self.inner.send(&self.passed),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let mut overdue = 0;
        while self.ready.is_empty() && overdue < OVERDUE {
            let length = self.inner.receive(buffer, deadline)?;
            if length == 0 {
                return Ok(0);
            }
            self.passed.clear();
            self.back.pass(&buffer[..length], &mut self.passed);
            self.ready.extend(&self.passed);
            overdue += usize::from(Instant::now() >= deadline);
        }
        io::Read::read(&mut self.ready, buffer)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.inner.reopen()
    }
}

/// One direction of the line.
struct Direction {
    faults: Faults,
    rng: ChaCha8Rng,
    tally: Tally,
    /// A frame whose end has not come.
    frame: Vec<u8>,
    /// Frames held back, each with how many others pass before it.
    held: Vec<(u8, Vec<u8>)>,
}

impl Direction {
    /// Lets bytes through, frame by frame.
    fn pass(&mut self, bytes: &[u8], to: &mut Vec<u8>) {
        for byte in bytes {
            self.frame.push(*byte);
            if *byte == 0 {
                self.end_frame(to);
                self.frame.clear();
            }
        }
    }

    fn end_frame(&mut self, to: &mut Vec<u8>) {
        if self.frame.len() == 1 {
            to.push(0); // between two frames
            return;
        }
        self.tally.note(|all| all.frames += 1);
        let Faults {
            drop,
            corrupt,
            duplicate,
            reorder,
        } = self.faults;
        let mut chance = self.rng.random::<f64>();
        let mut falls = |probability: f64| {
            let hit = (0.0..probability).contains(&chance);
            chance -= probability;
            hit
        };
        if falls(drop) {
            self.tally.note(|all| all.dropped += 1);
        } else if falls(corrupt) {
            self.tally.note(|all| all.corrupted += 1);
            self.corrupt();
            to.extend(&self.frame);
        } else if falls(duplicate) {
            self.tally.note(|all| all.duplicated += 1);
            to.extend(&self.frame);
            to.extend(&self.frame);
        } else if falls(reorder) {
            self.tally.note(|all| all.reordered += 1);
            // One more, for itself.
            let others = self.rng.random_range(1..=3) + 1;
            self.held.push((others, self.frame.clone()));
        } else {
            to.extend(&self.frame);
        }
        self.held.retain_mut(|(others, frame)| {
            *others -= 1;
            if *others == 0 {
                to.extend(frame.iter());
            }
            *others > 0
        });
    }

    /// Changes one to four bytes, by at least a bit each.
    fn corrupt(&mut self) {
        for _ in 0..self.rng.random_range(1..=4) {
            let at = self.rng.random_range(0..self.frame.len());
            self.frame[at] ^= self.rng.random_range(1..=255u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A line whose other end says what it hears.
    #[derive(Default)]
    struct Echo(VecDeque<u8>);

    impl Transport for Echo {
        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.extend(bytes);
            Ok(())
        }

        fn receive(&mut self, buffer: &mut [u8], _: Instant) -> io::Result<usize> {
            io::Read::read(&mut self.0, buffer)
        }

        fn reopen(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What comes back of `count` frames of two bytes, each with its number.
    fn come_back(faults: Faults, count: u8) -> (Vec<Vec<u8>>, Befallen) {
        let mut line = Unreliable::new(Box::new(Echo::default()), faults, 7);
        for number in 1..=count {
            line.send(&[number, number, 0]).unwrap();
        }
        let mut heard = Vec::new();
        let mut buffer = [0; 5];
        loop {
            match line.receive(&mut buffer, Instant::now()).unwrap() {
                0 => break,
                length => heard.extend(&buffer[..length]),
            }
        }
        let frames = heard.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        (frames.collect(), line.tally().befallen())
    }

    fn whole(count: u8) -> Vec<Vec<u8>> {
        let frames = (1..=count).map(|number| vec![number, number]);
        frames.chain([vec![]]).collect()
    }

    #[test]
    fn a_line_without_faults_is_none() {
        let (frames, befallen) = come_back(Faults::default(), 100);
        assert_eq!(frames, whole(100));
        // There and back.
        let expected = Befallen {
            frames: 200,
            ..Befallen::default()
        };
        assert_eq!(befallen, expected);
    }

    #[test]
    fn each_fault_does_what_its_name_says() {
        let (frames, _) = come_back(
            Faults {
                drop: 1.0,
                ..Faults::default()
            },
            9,
        );
        assert_eq!(frames, whole(0));

        let doubled = Faults {
            duplicate: 1.0,
            ..Faults::default()
        };
        let (frames, befallen) = come_back(doubled, 1);
        // Doubled there, and both doubled back.
        assert_eq!(
            frames,
            [vec![1, 1], vec![1, 1], vec![1, 1], vec![1, 1], vec![]]
        );
        assert_eq!(befallen.duplicated, 3);

        let corrupted = Faults {
            corrupt: 1.0,
            ..Faults::default()
        };
        assert_ne!(come_back(corrupted, 20).0, whole(20));

        let reordered = Faults {
            reorder: 0.2,
            ..Faults::default()
        };
        let (mut frames, befallen) = come_back(reordered, 100);
        assert!(befallen.reordered > 10);
        assert_ne!(frames, whole(100));
        // All there but for those that are still held back at the end.
        frames.sort();
        frames.dedup();
        assert!(frames.len() > 95, "{}", frames.len());
    }

    #[test]
    fn faults_come_as_often_as_asked_and_the_same_for_the_same_seed() {
        let faults = Faults::each(0.1);
        let counts = |befallen: Befallen| {
            [
                befallen.dropped,
                befallen.corrupted,
                befallen.duplicated,
                befallen.reordered,
            ]
        };
        let mut line = Unreliable::new(Box::new(Echo::default()), faults, 1);
        for _ in 0..10_000 {
            line.send(&[1, 2, 3, 0]).unwrap();
        }
        for count in counts(line.tally().befallen()) {
            // 1000 expected with a deviation of 30: five of them either way.
            assert!((850..1150).contains(&count), "{count}");
        }
        assert_eq!(come_back(faults, 200), come_back(faults, 200));
    }

    #[test]
    fn waiting_for_frames_that_are_all_lost_ends_at_the_deadline() {
        struct Silence;
        impl Transport for Silence {
            fn send(&mut self, _: &[u8]) -> io::Result<()> {
                Ok(())
            }
            fn receive(&mut self, _: &mut [u8], deadline: Instant) -> io::Result<usize> {
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                Ok(0)
            }
            fn reopen(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut line = Unreliable::new(Box::new(Silence), Faults::each(0.1), 1);
        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(line.receive(&mut [0; 8], deadline).unwrap(), 0);
    }
}
