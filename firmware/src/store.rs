//! Two slots of flash, of which one holds the policy that runs and the other is free for the next.
//!
//! A slot is a record area and, after it, the blob:
//!
//! ```text
//! 0        96      112      128      144      160        256
//! │ record │ proven │ tried  │ tried  │ tried  │ (blank) │ blob …
//! ```
//!
//! An upload erases the record first and writes it last, when the blob has been read back and has
//! passed every check; so whenever the power goes, a slot with a whole record holds a whole policy.
//! Marks are written once, each in a unit of its own: a mark that was cut short counts as made.
//!
//! A new policy is *on trial* until its first control step on a valid observation is complete. Each
//! start that begins such a step marks it tried; after three tries that came to no end the node goes
//! back to the policy before, if there still is one. A start at which nothing is asked of the policy
//! is no try.

use agent_core::{
    message::{CRC32, PolicyId, Report, Slot, SlotState},
    policy::Policy,
};
use heapless::Vec;
use serde::{Deserialize, Serialize};

use crate::{
    admit::{Refusal, admit},
    hardware::PolicyFlash,
    node::WORKSPACE,
    upload::Upload,
};

/// Bytes of a slot before its blob.
pub const RECORD_AREA: usize = 256;

/// How often a policy on trial may fail to complete a step.
pub const TRIES: usize = 3;

/// The most bytes that any flash writes at a time: everything in a slot starts on a multiple.
pub(crate) const UNIT: usize = 16;

/// First in every record.
const MAGIC: [u8; 4] = *b"SLOT";

/// Room for the record.
const RECORD: usize = 6 * UNIT;

/// What a slot says of its blob.
#[derive(Serialize, Deserialize)]
struct Record {
    magic: [u8; 4],
    /// Higher than that of the policy it replaced.
    generation: u32,
    policy: PolicyId,
    /// Ed25519, or empty.
    signature: Vec<u8, 64>,
}

impl Record {
    fn read(flash: &impl PolicyFlash) -> Option<Self> {
        let bytes = flash.bytes().get(..RECORD)?;
        let (record, _) = postcard::take_from_bytes_crc32::<Self>(bytes, CRC32.digest()).ok()?;
        (record.magic == MAGIC).then_some(record)
    }

    fn write<S: PolicyFlash>(&self, flash: &mut S) -> Option<()> {
        let mut bytes = [0xff; RECORD];
        postcard::to_slice_crc32(self, &mut bytes, CRC32.digest()).ok()?;
        flash.write(0, &bytes).ok()?;
        (flash.bytes().get(..RECORD)? == bytes).then_some(())
    }
}

/// The units after the record, in order.
#[derive(Clone, Copy)]
enum Mark {
    Proven,
    Tried(usize),
}

impl Mark {
    fn offset(self) -> usize {
        RECORD
            + match self {
                Self::Proven => 0,
                Self::Tried(nth) => (1 + nth) * UNIT,
            }
    }

    fn is_made(self, flash: &impl PolicyFlash) -> bool {
        let unit = flash.bytes().get(self.offset()..).unwrap_or_default();
        unit.iter().take(UNIT).any(|byte| *byte != 0xff)
    }

    fn make(self, flash: &mut impl PolicyFlash) {
        // A mark that cannot be made is made again at the next start.
        if flash.write(self.offset() as u32, &[0; UNIT]).is_err() {
            log!(error, "the policy memory takes no mark");
        }
    }
}

/// What is known of one slot.
#[derive(Clone, Copy)]
struct Known {
    slot: Slot,
    /// Zero where there is no record.
    generation: u32,
    tries: usize,
}

impl Known {
    const EMPTY: Self = Self::without_policy(SlotState::Empty);

    const fn without_policy(state: SlotState) -> Self {
        Self {
            slot: Slot {
                policy: None,
                state,
            },
            generation: 0,
            tries: 0,
        }
    }

    /// Looks a slot through.
    async fn of(
        flash: &impl PolicyFlash,
        key: Option<&[u8; 32]>,
        workspace: &mut [f32; WORKSPACE],
    ) -> Self {
        let Some(record) = Record::read(flash) else {
            let begun = flash.bytes().starts_with(&MAGIC);
            return Self::without_policy(match begun {
                true => SlotState::Refused,
                false => SlotState::Empty,
            });
        };
        let blob = blob(flash, record.policy.length);
        let tried = |nth: &usize| Mark::Tried(*nth).is_made(flash);
        let tries = (0..TRIES).filter(tried).count();
        let whole = |policy: &Policy| policy.id() == record.policy;
        let state = match admit(blob, &record.signature, key, workspace).await {
            Ok(policy) if !whole(&policy) => SlotState::Refused,
            Ok(_) if Mark::Proven.is_made(flash) => SlotState::Proven,
            Ok(_) if tries == TRIES => SlotState::GivenUp,
            Ok(_) => SlotState::OnTrial,
            Err(refusal) => {
                log!(warn, "a policy in flash is refused: {}", refusal);
                SlotState::Refused
            }
        };
        let is_whole = state != SlotState::Refused || Policy::parse(blob).is_ok_and(|p| whole(&p));
        Self {
            slot: Slot {
                policy: is_whole.then_some(record.policy),
                state,
            },
            generation: record.generation,
            tries,
        }
    }

    /// How gladly the node would run it, if at all: rather an old policy than one that has brought
    /// it down, rather that than none.
    fn rank(&self) -> Option<(bool, u32)> {
        match self.slot.state {
            SlotState::OnTrial | SlotState::Proven => Some((true, self.generation)),
            SlotState::GivenUp => Some((false, self.generation)),
            SlotState::Empty | SlotState::Refused => None,
        }
    }
}

/// The slot that the node would rather run.
fn best(known: &[Known; 2]) -> Option<u8> {
    let slots = known.iter().zip(0..);
    let ranked = slots.filter_map(|(known, slot)| known.rank().map(|rank| (rank, slot)));
    ranked.max().map(|(_, slot)| slot)
}

/// The first bytes of a slot's blob; fewer where the slot ends before.
fn blob(flash: &impl PolicyFlash, length: u32) -> &[u8] {
    let bytes = flash.bytes().get(RECORD_AREA..).unwrap_or_default();
    bytes.get(..length as usize).unwrap_or(bytes)
}

/// What lies in the two slots, and which of them the node uses.
pub(crate) struct Store {
    key: Option<[u8; 32]>,
    known: [Known; 2],
    active: Option<u8>,
    /// What comes into the free slot.
    upload: Option<Upload>,
    /// A try of the policy on trial has been marked in this life of the node.
    marked: bool,
}

impl Store {
    /// Looks both slots through and settles on the newest policy that is good.
    pub async fn open<S: PolicyFlash>(
        [first, second]: &[S; 2],
        key: Option<[u8; 32]>,
        workspace: &mut [f32; WORKSPACE],
    ) -> Self {
        const {
            assert!(
                UNIT.is_multiple_of(S::WRITE_SIZE),
                "everything in a slot starts on a multiple of 16 bytes"
            );
        }
        let known = [
            Known::of(first, key.as_ref(), workspace).await,
            Known::of(second, key.as_ref(), workspace).await,
        ];
        Self {
            key,
            known,
            active: best(&known),
            upload: None,
            marked: false,
        }
    }

    /// The slot that is used and the one that is free. With no policy to run any slot is free.
    pub fn arrange<'s, S>(&self, [first, second]: &'s mut [S; 2]) -> (&'s mut S, &'s mut S) {
        match self.active {
            Some(0) => (first, second),
            _ => (second, first),
        }
    }

    /// The slot whose policy runs.
    pub fn active(&self) -> Option<u8> {
        self.active
    }

    /// What lies in the slots.
    pub fn slots(&self) -> [Slot; 2] {
        self.known.map(|known| known.slot)
    }

    /// The policy that runs.
    pub fn policy(&self) -> Option<PolicyId> {
        self.active?;
        let [first, second] = self.known;
        let used = if self.active == Some(0) {
            first
        } else {
            second
        };
        used.slot.policy
    }

    fn used(&mut self) -> &mut Known {
        let [first, second] = &mut self.known;
        if self.active == Some(0) {
            first
        } else {
            second
        }
    }

    fn spare(&mut self) -> &mut Known {
        let [first, second] = &mut self.known;
        if self.active == Some(0) {
            second
        } else {
            first
        }
    }

    /// The policy that runs, in place, which was admitted before. If it has gone bad since, another
    /// slot is active or none, and what was coming in is dropped.
    pub fn load<'s>(&mut self, used: &'s impl PolicyFlash) -> Option<Policy<'s>> {
        let id = self.policy()?;
        let policy = Policy::parse(blob(used, id.length)).ok();
        if policy.is_none() {
            log!(error, "the policy has gone bad in its slot");
            *self.used() = Known::without_policy(SlotState::Refused);
            self.active = best(&self.known);
            self.upload = None;
        }
        policy
    }

    /// Whether the next step is the first of a try that is to be marked.
    pub fn is_untried(&mut self) -> bool {
        self.is_on_trial() && !self.marked
    }

    /// Whether the policy that runs has yet to prove itself.
    pub fn is_on_trial(&mut self) -> bool {
        let unproven = [SlotState::OnTrial, SlotState::GivenUp];
        self.active.is_some() && unproven.contains(&self.used().slot.state)
    }

    /// Takes note in flash that the policy is about to take a step.
    pub fn begin_trial(&mut self, used: &mut impl PolicyFlash) {
        self.marked = true;
        let known = self.used();
        if known.tries < TRIES {
            Mark::Tried(known.tries).make(used);
            known.tries += 1;
        }
        log!(
            info,
            "on trial: try {=usize} of {=usize}",
            known.tries,
            TRIES
        );
    }

    /// Takes note in flash that the policy has taken a step.
    pub fn prove(&mut self, used: &mut impl PolicyFlash) {
        Mark::Proven.make(used);
        self.used().slot.state = SlotState::Proven;
        log!(info, "the policy is proven");
    }

    /// Clears the free slot's record and makes it ready for a policy of so many bytes.
    pub fn begin(&mut self, spare: &mut impl PolicyFlash, length: u32) -> Report<'static> {
        self.upload = None;
        let capacity = spare.bytes().len().saturating_sub(RECORD_AREA);
        if length as usize > capacity {
            return TOO_LONG;
        }
        *self.spare() = Known::EMPTY;
        match Upload::begin(spare, length) {
            Ok(upload) => {
                self.upload = Some(upload);
                Report::Stored { next: 0 }
            }
            Err(_) => FLASH,
        }
    }

    /// Takes a chunk of the upload under way.
    pub fn chunk(
        &mut self,
        spare: &mut impl PolicyFlash,
        offset: u32,
        bytes: &[u8],
    ) -> Report<'static> {
        let Some(upload) = &mut self.upload else {
            return NO_UPLOAD;
        };
        upload.store(spare, offset, bytes).unwrap_or_else(|_| {
            self.upload = None;
            FLASH
        })
    }

    /// Whether so many bytes more need another sector.
    pub fn will_erase(&self, bytes: usize) -> bool {
        (self.upload.as_ref()).is_some_and(|upload| upload.will_erase(bytes))
    }

    /// Drops an upload whose host is gone.
    pub fn drop_stalled(&mut self) {
        if self.upload.take_if(|upload| upload.is_stalled()).is_some() {
            log!(warn, "upload dropped: its host is gone");
        }
    }

    /// Checks what was uploaded and, if it is good, makes it the policy that runs: the free slot is
    /// the used one from now on. What is refused stays, to be committed with another signature.
    pub async fn commit(
        &mut self,
        spare: &mut impl PolicyFlash,
        signature: &[u8],
        workspace: &mut [f32; WORKSPACE],
    ) -> Result<(), Refusal> {
        let upload = self.upload.as_ref().ok_or(Refusal::NoUpload)?;
        let length = upload.length()?;
        let key = self.key.as_ref();
        let blob = blob(spare, length);
        let policy = admit(blob, signature, key, workspace).await?.id();
        let Ok(signature) = Vec::from_slice(signature) else {
            return Err(Refusal::Signature(crate::signature::Fault::Length {
                found: signature.len(),
            }));
        };
        let [first, second] = &self.known;
        let generation = first.generation.max(second.generation).saturating_add(1);
        let record = Record {
            magic: MAGIC,
            generation,
            policy,
            signature,
        };
        if record.write(spare).is_none() {
            // Half a record cannot be written over.
            self.upload = None;
            return Err(Refusal::Flash);
        }
        *self.spare() = Known {
            slot: Slot {
                policy: Some(policy),
                state: SlotState::OnTrial,
            },
            generation,
            tries: 0,
        };
        self.active = Some(if self.active == Some(0) { 1 } else { 0 });
        self.upload = None;
        self.marked = false;
        log!(info, "runs {}", policy);
        Ok(())
    }
}

const NO_UPLOAD: Report<'static> = Report::Rejected {
    reason: "no upload under way: begin one first",
};
const TOO_LONG: Report<'static> = Report::Rejected {
    reason: "the policy does not fit the node's slot",
};
const FLASH: Report<'static> = Report::Rejected {
    reason: "the node's policy memory failed",
};
