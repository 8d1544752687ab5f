//! What a node must not forget, whatever is flashed and whenever the power goes: how often it has
//! started, how new its newest policy was, and which keys are trusted no more.
//!
//! Entries of 16 bytes, one after the other. When a page is nearly full the next one is erased and what
//! counts is written there again, the start last: a page without a start is none. A board whose flash
//! has but one sector to spare erases what it reads from, once in a thousand starts; power that goes
//! just then takes the journal with it.

use agent_core::message::CRC32;
use trust::KeyId;

use crate::hardware::PolicyFlash;

/// Bytes of an entry; any flash writes them at once.
const ENTRY: usize = 16;

/// Entries that are kept free at a start, for what may happen until the next.
const SPARE: usize = 16;

/// Most keys that can be revoked: an image knows two.
const KEYS: usize = 2;

/// What is in the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Known {
    starts: u64,
    counter: u64,
    revoked: [Option<KeyId>; KEYS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Start(u64),
    Counter(u64),
    Revoked(KeyId),
}

impl Entry {
    fn encode(self) -> [u8; ENTRY] {
        let (kind, value) = match self {
            Self::Start(starts) => (1, starts),
            Self::Counter(counter) => (2, counter),
            Self::Revoked(KeyId(id)) => (3, u32::from_be_bytes(id).into()),
        };
        let mut bytes = [0; ENTRY];
        bytes[0] = kind;
        bytes[4..12].copy_from_slice(&u64::to_le_bytes(value));
        let sum = CRC32.checksum(&bytes[..12]);
        bytes[12..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// None for what was cut short, or is no entry.
    fn read(bytes: &[u8; ENTRY]) -> Option<Self> {
        let (said, sum) = bytes.split_last_chunk()?;
        if CRC32.checksum(said) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (head, value) = said.split_last_chunk()?;
        let value = u64::from_le_bytes(*value);
        match head.first()? {
            1 => Some(Self::Start(value)),
            2 => Some(Self::Counter(value)),
            3 => Some(Self::Revoked(KeyId((value as u32).to_be_bytes()))),
            _ => None,
        }
    }
}

impl Known {
    fn learn(&mut self, entry: Entry) {
        match entry {
            Entry::Start(starts) => self.starts = self.starts.max(starts),
            Entry::Counter(counter) => self.counter = self.counter.max(counter),
            Entry::Revoked(key) => {
                let free = |place: &&mut Option<KeyId>| place.is_none() || **place == Some(key);
                if let Some(place) = self.revoked.iter_mut().find(free) {
                    *place = Some(key);
                }
            }
        }
    }
}

/// The journal, and where in it the next entry goes.
pub(crate) struct Journal {
    known: Known,
    page: usize,
    next: usize,
}

fn entries(flash: &impl PolicyFlash, page: usize, size: usize) -> &[[u8; ENTRY]] {
    let bytes = flash.bytes().get(page * size..).unwrap_or_default();
    bytes.get(..size).unwrap_or_default().as_chunks().0
}

fn is_erased(entry: &[u8; ENTRY]) -> bool {
    entry.iter().all(|byte| *byte == 0xff)
}

impl Journal {
    /// Reads it and enters a start. None if the flash does not take it.
    pub fn open<S: PolicyFlash>(flash: &mut S) -> Option<Self> {
        const { assert!(ENTRY.is_multiple_of(S::WRITE_SIZE)) };
        let pages = flash.bytes().len() / S::ERASE_SIZE;
        let mut journal = Self {
            known: Known::default(),
            page: pages.checked_sub(1)?,
            // As if it were full.
            next: S::ERASE_SIZE / ENTRY,
        };
        for page in 0..pages {
            let entries = entries(flash, page, S::ERASE_SIZE);
            let used = entries.len() - entries.iter().rev().take_while(|e| is_erased(e)).count();
            let before = journal.known.starts;
            let written = entries.iter().take(used);
            written
                .filter_map(Entry::read)
                .for_each(|entry| journal.known.learn(entry));
            if journal.known.starts > before {
                (journal.page, journal.next) = (page, used);
            }
        }
        let start = journal.known.starts.checked_add(1)?;
        if journal.next + SPARE > S::ERASE_SIZE / ENTRY {
            journal.turn_over(flash, pages)?;
        }
        journal.enter(flash, Entry::Start(start))?;
        Some(journal)
    }

    /// Goes on in the next page.
    fn turn_over<S: PolicyFlash>(&mut self, flash: &mut S, pages: usize) -> Option<()> {
        self.page = (self.page + 1) % pages;
        self.next = 0;
        let from = self.page * S::ERASE_SIZE;
        let erased = flash.erase(from as u32, (from + S::ERASE_SIZE) as u32);
        erased.ok()?;
        let Known {
            counter, revoked, ..
        } = self.known;
        self.enter(flash, Entry::Counter(counter))?;
        for key in revoked.into_iter().flatten() {
            self.enter(flash, Entry::Revoked(key))?;
        }
        Some(())
    }

    fn enter<S: PolicyFlash>(&mut self, flash: &mut S, entry: Entry) -> Option<()> {
        if self.next >= S::ERASE_SIZE / ENTRY {
            return None;
        }
        let offset = self.page * S::ERASE_SIZE + self.next * ENTRY;
        // Whatever becomes of it: an entry is written once.
        self.next += 1;
        let bytes = entry.encode();
        flash.write(offset as u32, &bytes).ok()?;
        (flash.bytes().get(offset..offset + ENTRY)? == bytes).then_some(())?;
        self.known.learn(entry);
        Some(())
    }

    /// How often the node has started, this time included: never the same twice.
    pub fn starts(&self) -> u64 {
        self.known.starts
    }

    /// The highest counter that was ever taken.
    pub fn counter(&self) -> u64 {
        self.known.counter
    }

    /// Whether a key is trusted no more.
    pub fn has_revoked(&self, key: KeyId) -> bool {
        self.known.revoked.contains(&Some(key))
    }

    /// Enters that a policy with this counter was taken. None if the flash does not take it.
    pub fn take(&mut self, flash: &mut impl PolicyFlash, counter: u64) -> Option<()> {
        match counter > self.known.counter {
            true => self.enter(flash, Entry::Counter(counter)),
            false => Some(()),
        }
    }

    /// Enters that a key is trusted no more. None if the flash does not take it.
    pub fn revoke(&mut self, flash: &mut impl PolicyFlash, key: KeyId) -> Option<()> {
        match self.has_revoked(key) {
            true => Some(()),
            false => self.enter(flash, Entry::Revoked(key)),
        }
    }
}
