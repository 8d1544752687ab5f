//! Two sectors of flash, of which one holds what the node knows of its place and the other is free for the
//! next.
//!
//! A record is postcard with a CRC-32, like those of policies: the place, the manifest that it came with and
//! that one's signature. It is written into the sector that does not hold the newest, which stays until the
//! new one is whole; so whenever the power goes, the node has the old place or the new one. What is newest
//! outlives the rest, and with it the counter below which no manifest is taken.
//!
//! Nothing here is put in line: what a place needs of the stack is free again when the node runs its policy.

use agent_core::{message::CRC32, policy::Policy};
use heapless::Vec;
use place::{Equipment, Place, record::RECORD};
use serde::{Deserialize, Serialize};
use trust::{
    Manifest, ManifestFault,
    manifest::{MANIFEST, Subject},
};

use crate::{
    admit::Refusal,
    hardware::PolicyFlash,
    standalone::Standing,
    store::{Store, UNIT},
};

/// First in every record.
const MAGIC: [u8; 4] = *b"PLR1";

/// Room for the record: 560 bytes of the place, 192 of its manifest, 64 of its signature, 19 around them.
const ROOM: usize = 53 * UNIT;

/// What a slot says of a place.
#[derive(Serialize, Deserialize)]
struct Record {
    magic: [u8; 4],
    /// Higher than that of the place it replaced.
    generation: u32,
    /// None if it is empty: the node was told to act on what a host shows it.
    place: Vec<u8, RECORD>,
    /// What was taken.
    manifest: Vec<u8, MANIFEST>,
    /// Ed25519, or empty.
    signature: Vec<u8, 64>,
}

impl Record {
    #[inline(never)]
    fn read(flash: &impl PolicyFlash) -> Option<Self> {
        let bytes = flash.bytes().get(..ROOM)?;
        let (record, _) = postcard::take_from_bytes_crc32::<Self>(bytes, CRC32.digest()).ok()?;
        (record.magic == MAGIC).then_some(record)
    }

    #[inline(never)]
    fn write<S: PolicyFlash>(&self, flash: &mut S) -> Option<()> {
        let mut bytes = [0xff; ROOM];
        postcard::to_slice_crc32(self, &mut bytes, CRC32.digest()).ok()?;
        flash.erase(0, S::ERASE_SIZE as u32).ok()?;
        flash.write(0, &bytes).ok()?;
        (flash.bytes().get(..ROOM)? == bytes).then_some(())
    }

    /// Whether the node takes these words, and what counter they have.
    #[inline(never)]
    fn check(&self, store: &Store) -> Result<u64, Refusal> {
        let said = offered(store, &self.place, &self.manifest, &self.signature)?;
        Ok(said.counter)
    }
}

/// A place's manifest, if it is about these bytes and, where the node asks for that, signed by a key that is
/// trusted still.
#[inline(never)]
fn offered<'m>(
    store: &Store,
    place: &[u8],
    manifest: &'m [u8],
    signature: &[u8],
) -> Result<Manifest<'m>, Refusal> {
    let is_revoked = |key| store.has_revoked(key);
    let terms = store.terms();
    let said = terms.manifest(Subject::Place, manifest, signature, is_revoked)?;
    if said.policy != trust::policy_id(place) || said.length as usize != place.len() {
        return Err(Refusal::OtherPlace);
    }
    if said.revokes.is_some() {
        return Err(Refusal::PlaceRevokes);
    }
    Ok(said)
}

/// What is known of the two slots.
pub(crate) struct Places {
    /// Of the newest record: where it lies and how new it is.
    slot: usize,
    generation: u32,
    counter: u64,
}

impl Places {
    /// Looks both slots through: which is the newest record that the node takes.
    #[inline(never)]
    pub fn open<S: PolicyFlash>(slots: &[S; 2], store: &Store) -> Option<Self> {
        const {
            assert!(
                ROOM <= S::ERASE_SIZE && ROOM.is_multiple_of(S::WRITE_SIZE),
                "a record lies in one sector"
            );
        }
        let mut places = Self {
            slot: 1,
            generation: 0,
            counter: 0,
        };
        for (slot, flash) in slots.iter().enumerate() {
            let Some(record) = Record::read(flash) else {
                continue;
            };
            match record.check(store) {
                Ok(counter) if record.generation > places.generation => {
                    places = Self {
                        slot,
                        generation: record.generation,
                        counter,
                    };
                }
                Ok(_) => {}
                Err(refusal) => log!(warn, "a place in flash is refused: {}", refusal),
            }
        }
        Some(places)
    }

    /// Puts the node at its place, for this policy on a board that has this: none if it acts on what a
    /// host shows it.
    #[inline(never)]
    pub fn load<S: PolicyFlash>(
        &self,
        slots: &[S; 2],
        policy: &Policy,
        board: Equipment,
        standing: &mut Option<Standing>,
    ) -> Result<(), Refusal> {
        *standing = None;
        if self.generation == 0 {
            return Ok(());
        }
        let mut place = None;
        self.read(slots, policy, board, &mut place)?;
        if let Some(place) = &place {
            Standing::put(standing, place, self.counter, policy);
        }
        Ok(())
    }

    /// Reads the newest record's place, if it is one for this policy.
    #[inline(never)]
    fn read<S: PolicyFlash>(
        &self,
        slots: &[S; 2],
        policy: &Policy,
        board: Equipment,
        place: &mut Option<Place>,
    ) -> Result<(), Refusal> {
        let record = slots.get(self.slot).and_then(Record::read);
        let record = record.ok_or(Refusal::Flash)?;
        let said = Manifest::read(&record.manifest).map_err(Refusal::Manifest)?;
        *place = fitting(&record.place, &said, policy, board)?;
        Ok(())
    }

    /// Takes a place from now on. Whatever is wrong with it, the one before stays.
    #[inline(never)]
    pub fn take<S: PolicyFlash>(
        &mut self,
        slots: &mut [S; 2],
        store: &Store,
        offer: Offer<'_>,
        policy: &Policy,
        board: Equipment,
    ) -> Result<(), Refusal> {
        let said = offered(store, offer.place, offer.manifest, offer.signature)?;
        let (counter, newest) = (said.counter, self.counter);
        if store.wants_signatures() && counter <= newest {
            return Err(Refusal::Old { counter, newest });
        }
        check(offer.place, &said, policy, board)?;
        let generation = self.generation.checked_add(1).ok_or(Refusal::Flash)?;
        let slot = 1 - self.slot.min(1);
        let flash = slots.get_mut(slot).ok_or(Refusal::Flash)?;
        keep(flash, generation, offer)?;
        *self = Self {
            slot,
            generation,
            counter,
        };
        Ok(())
    }
}

/// Whether [`fitting`] would give a place, or none was meant.
#[inline(never)]
fn check(bytes: &[u8], said: &Manifest, policy: &Policy, board: Equipment) -> Result<(), Refusal> {
    fitting(bytes, said, policy, board).map(|_| ())
}

/// Writes what was taken.
#[inline(never)]
fn keep<S: PolicyFlash>(flash: &mut S, generation: u32, offer: Offer<'_>) -> Result<(), Refusal> {
    let unreadable = Refusal::Manifest(ManifestFault::Unreadable);
    let too_long = Refusal::Place(place::Fault::TooLong);
    let record = Record {
        magic: MAGIC,
        generation,
        place: Vec::from_slice(offer.place).map_err(|_| too_long)?,
        manifest: Vec::from_slice(offer.manifest).map_err(|_| unreadable)?,
        signature: Vec::from_slice(offer.signature).map_err(|_| unreadable)?,
    };
    record.write(flash).ok_or(Refusal::Flash)
}

/// A place as it comes.
#[derive(Clone, Copy)]
pub(crate) struct Offer<'a> {
    /// Empty for none.
    pub place: &'a [u8],
    /// What is said of it,
    pub manifest: &'a [u8],
    /// and by whom.
    pub signature: &'a [u8],
}

/// The place in these bytes, if it is one for this policy and a board that has this.
fn fitting(
    bytes: &[u8],
    said: &Manifest,
    policy: &Policy,
    board: Equipment,
) -> Result<Option<Place>, Refusal> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if policy.header().problem.as_str() != said.problem {
        return Err(Refusal::PlaceOfOther);
    }
    let place = Place::read(bytes).map_err(Refusal::Place)?;
    let fits = place.fits(policy.header(), board);
    fits.map_err(Refusal::Place)?;
    Ok(Some(place))
}
