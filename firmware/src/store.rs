//! Two slots of flash, of which one holds the policy that runs and the other is free for the next.
//!
//! A slot is a record area and, after it, the blob:
//!
//! ```text
//! 0        288     304      320      336      352        512
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
use trust::{
    KeyId, Manifest,
    manifest::{MANIFEST, Subject},
};

use crate::{
    admit::{Refusal, Terms, name_of, try_out},
    hardware::PolicyFlash,
    journal::Journal,
    node::WORKSPACE,
    upload::Upload,
};

/// Bytes of a slot before its blob.
pub const RECORD_AREA: usize = 512;

/// How often a policy on trial may fail to complete a step.
pub const TRIES: usize = 3;

/// The most bytes that any flash writes at a time: everything in a slot starts on a multiple.
pub(crate) const UNIT: usize = 16;

/// First in every record.
const MAGIC: [u8; 4] = *b"SLT2";

/// Room for the record.
const RECORD: usize = 18 * UNIT;

/// What a slot says of its blob.
#[derive(Serialize, Deserialize)]
struct Record {
    magic: [u8; 4],
    /// Higher than that of the policy it replaced.
    generation: u32,
    /// What was taken.
    manifest: Vec<u8, MANIFEST>,
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
    /// Bytes of the policy.
    length: u32,
    /// Zero where there is no record.
    generation: u32,
    /// The manifest's, if that is one that the node would take; else zero.
    counter: u64,
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
            length: 0,
            generation: 0,
            counter: 0,
            tries: 0,
        }
    }

    /// Looks a slot through.
    async fn of(
        flash: &impl PolicyFlash,
        terms: &Terms,
        journal: Option<&Journal>,
        workspace: &mut [f32; WORKSPACE],
    ) -> Self {
        let Some(record) = Record::read(flash) else {
            let begun = flash.bytes().starts_with(&MAGIC);
            return Self::without_policy(match begun {
                true => SlotState::Refused,
                false => SlotState::Empty,
            });
        };
        let Ok(said) = Manifest::read(&record.manifest) else {
            return Self::without_policy(SlotState::Refused);
        };
        let blob = blob(flash, said.length);
        let is_whole = name_of(blob).await == said.policy;
        let is_revoked = |key| journal.is_some_and(|journal| journal.has_revoked(key));
        let checked = terms.manifest(
            Subject::Policy,
            &record.manifest,
            &record.signature,
            is_revoked,
        );
        let counter = checked.map_or(0, |manifest| manifest.counter);
        let tried = |nth: &usize| Mark::Tried(*nth).is_made(flash);
        let tries = (0..TRIES).filter(tried).count();
        let run = checked.and_then(|_| try_out(blob, said.problem, workspace));
        let state = match run {
            Ok(()) if !is_whole => SlotState::Refused,
            Ok(()) if Mark::Proven.is_made(flash) => SlotState::Proven,
            Ok(()) if tries == TRIES => SlotState::GivenUp,
            Ok(()) => SlotState::OnTrial,
            Err(refusal) => {
                log!(warn, "a policy in flash is refused: {}", refusal);
                SlotState::Refused
            }
        };
        Self {
            slot: Slot {
                policy: is_whole.then_some(said.policy),
                state,
            },
            length: said.length,
            generation: record.generation,
            counter,
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

/// Enters what follows from a manifest that was taken.
fn enter(
    journal: &mut Journal,
    flash: &mut impl PolicyFlash,
    counter: u64,
    revokes: Option<KeyId>,
) {
    let revoked = revokes.map_or(Some(()), |key| journal.revoke(flash, key));
    let taken = journal.take(flash, counter);
    if revoked.and(taken).is_none() {
        // Until the next start the slot's record stands for it.
        log!(error, "the journal takes no entry");
    }
}

/// The same for a slot's manifest, if power went before that.
fn catch_up(
    slot: &impl PolicyFlash,
    flash: &mut impl PolicyFlash,
    terms: &Terms,
    journal: &mut Journal,
) {
    let Some(record) = Record::read(slot) else {
        return;
    };
    let is_revoked = |key| journal.has_revoked(key);
    let is_news = |said: &Manifest| {
        said.counter > journal.counter() || said.revokes.is_some_and(|key| !is_revoked(key))
    };
    if Manifest::read(&record.manifest).is_ok_and(|said| is_news(&said))
        && terms.keys.guard_policies()
        && let Ok(said) = terms.manifest(
            Subject::Policy,
            &record.manifest,
            &record.signature,
            is_revoked,
        )
    {
        let (counter, revokes) = (said.counter, said.revokes);
        enter(journal, flash, counter, revokes);
    }
}

/// The first bytes of a slot's blob; fewer where the slot ends before.
fn blob(flash: &impl PolicyFlash, length: u32) -> &[u8] {
    let bytes = flash.bytes().get(RECORD_AREA..).unwrap_or_default();
    bytes.get(..length as usize).unwrap_or(bytes)
}

/// The used one and the free one of two.
fn arranged<T>(used: u8, [first, second]: &mut [T; 2]) -> (&mut T, &mut T) {
    match used {
        0 => (first, second),
        _ => (second, first),
    }
}

/// What lies in the two slots, and which of them the node uses.
pub(crate) struct Store {
    terms: Terms,
    /// Of a node that has keys.
    journal: Option<Journal>,
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
        journal_flash: &mut impl PolicyFlash,
        terms: Terms,
        mut journal: Option<Journal>,
        workspace: &mut [f32; WORKSPACE],
    ) -> Self {
        const {
            assert!(
                UNIT.is_multiple_of(S::WRITE_SIZE),
                "everything in a slot starts on a multiple of 16 bytes"
            );
        }
        if let Some(journal) = &mut journal {
            for slot in [first, second] {
                catch_up(slot, journal_flash, &terms, journal);
            }
        }
        let known = [
            Known::of(first, &terms, journal.as_ref(), workspace).await,
            Known::of(second, &terms, journal.as_ref(), workspace).await,
        ];
        Self {
            terms,
            journal,
            known,
            active: best(&known),
            upload: None,
            marked: false,
        }
    }

    /// What the next policy does not take the place of: what runs or, if nothing does, what is newer.
    fn used_slot(&self) -> u8 {
        let [first, second] = &self.known;
        self.active
            .unwrap_or(u8::from(first.generation <= second.generation))
    }

    /// The highest counter of a manifest that was taken.
    pub fn counter(&self) -> u64 {
        let [first, second] = &self.known;
        let taken = first.counter.max(second.counter);
        let entered = self.journal.as_ref().map_or(0, Journal::counter);
        entered.max(taken)
    }

    /// The slot that is used and the one that is free.
    pub fn arrange<'s, S>(&self, slots: &'s mut [S; 2]) -> (&'s mut S, &'s mut S) {
        arranged(self.used_slot(), slots)
    }

    /// Whether policies must be signed.
    pub fn wants_signatures(&self) -> bool {
        self.terms.keys.guard_policies()
    }

    /// The fleet that the node belongs to.
    pub fn fleet(&self) -> &'static str {
        self.terms.keys.fleet
    }

    /// The slot whose policy runs.
    pub fn active(&self) -> Option<u8> {
        self.active
    }

    /// What the node asks of manifests.
    #[cfg(any(feature = "standalone", not(target_os = "none")))]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether a key is trusted no more; all are where nobody can remember.
    #[cfg(any(feature = "standalone", not(target_os = "none")))]
    pub fn has_revoked(&self, key: KeyId) -> bool {
        (self.journal.as_ref()).map_or(self.wants_signatures(), |journal| journal.has_revoked(key))
    }

    /// What lies in the slots.
    pub fn slots(&self) -> [Slot; 2] {
        self.known.map(|known| known.slot)
    }

    /// The policy that runs.
    pub fn policy(&self) -> Option<PolicyId> {
        self.active?;
        self.used().slot.policy
    }

    fn used(&self) -> Known {
        let mut known = self.known;
        *arranged(self.used_slot(), &mut known).0
    }

    fn used_mut(&mut self) -> &mut Known {
        arranged(self.used_slot(), &mut self.known).0
    }

    fn spare_mut(&mut self) -> &mut Known {
        arranged(self.used_slot(), &mut self.known).1
    }

    /// The policy that runs, in place, which was admitted before. If it has gone bad since, another
    /// slot is active or none, and what was coming in is dropped.
    pub fn load<'s>(&mut self, used: &'s impl PolicyFlash) -> Option<Policy<'s>> {
        self.policy()?;
        let policy = Policy::parse(blob(used, self.used().length)).ok();
        if policy.is_none() {
            log!(error, "the policy has gone bad in its slot");
            *self.used_mut() = Known::without_policy(SlotState::Refused);
            self.active = best(&self.known);
            self.upload = None;
        }
        policy
    }

    /// Whether the next step is the first of a try that is to be marked.
    pub fn is_untried(&self) -> bool {
        self.is_on_trial() && !self.marked
    }

    /// Whether the policy that runs has yet to prove itself.
    pub fn is_on_trial(&self) -> bool {
        let unproven = [SlotState::OnTrial, SlotState::GivenUp];
        self.active.is_some() && unproven.contains(&self.used().slot.state)
    }

    /// Takes note in flash that the policy is about to take a step.
    pub fn begin_trial(&mut self, used: &mut impl PolicyFlash) {
        self.marked = true;
        let known = self.used_mut();
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
        self.used_mut().slot.state = SlotState::Proven;
        log!(info, "the policy is proven");
    }

    /// Checks what is offered; if the node would take it, clears the free slot's record and makes it
    /// ready. What is under way already goes on where it was.
    pub fn begin<S: PolicyFlash>(
        &mut self,
        used: &S,
        spare: &mut S,
        manifest: &[u8],
        signature: &[u8],
    ) -> Result<Report<'static>, Refusal> {
        if let Some(upload) = &mut self.upload
            && upload.manifest == manifest
            && upload.signature == signature
        {
            upload.touch();
            return Ok(Report::Stored {
                next: upload.next(),
            });
        }
        let journal = self.journal.as_ref();
        if self.terms.keys.guard_policies() && journal.is_none() {
            // Who cannot remember which keys are revoked takes nobody's word.
            return Err(Refusal::Flash);
        }
        let is_revoked = |key| journal.is_some_and(|journal| journal.has_revoked(key));
        let offered = self
            .terms
            .manifest(Subject::Policy, manifest, signature, is_revoked)?;
        if self.terms.keys.guard_policies() {
            let (counter, newest) = (offered.counter, self.counter());
            if counter <= newest {
                return Err(Refusal::Old { counter, newest });
            }
            if !offered.repurposes && self.active.is_some() {
                let record = Record::read(used).ok_or(Refusal::Flash)?;
                let runs = Manifest::read(&record.manifest).map_err(Refusal::Manifest)?;
                if runs.problem != offered.problem {
                    return Err(Refusal::Problem);
                }
            }
        }
        let capacity = spare.bytes().len().saturating_sub(RECORD_AREA);
        if offered.length as usize > capacity {
            return Err(Refusal::TooLong);
        }
        let (Ok(kept), Ok(signature)) = (Vec::from_slice(manifest), Vec::from_slice(signature))
        else {
            return Err(Refusal::Manifest(trust::ManifestFault::Unreadable));
        };
        self.upload = None;
        *self.spare_mut() = Known::EMPTY;
        let upload = Upload::begin(spare, kept, signature, offered.length);
        self.upload = Some(upload.map_err(|_| Refusal::Flash)?);
        Ok(Report::Stored { next: 0 })
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

    /// Whether what was uploaded is whole: all of what its manifest names.
    pub async fn check_whole(&mut self, spare: &impl PolicyFlash) -> Result<(), Refusal> {
        let upload = self.upload.as_ref().ok_or(Refusal::NoUpload)?;
        // Checked when the upload began.
        let offered = Manifest::read(&upload.manifest).map_err(Refusal::Manifest)?;
        if name_of(blob(spare, upload.length()?)).await != offered.policy {
            // Another attempt begins at its beginning.
            self.upload = None;
            return Err(Refusal::NotAsNamed);
        }
        Ok(())
    }

    /// Checks a [whole](Self::check_whole) upload and, if it is good, makes it the policy that runs: the free
    /// slot is the used one from now on.
    pub fn commit(
        &mut self,
        spare: &mut impl PolicyFlash,
        journal_flash: &mut impl PolicyFlash,
        workspace: &mut [f32],
    ) -> Result<(), Refusal> {
        let upload = self.upload.as_ref().ok_or(Refusal::NoUpload)?;
        let length = upload.length()?;
        let offered = Manifest::read(&upload.manifest).map_err(Refusal::Manifest)?;
        let uploaded = blob(spare, length);
        try_out(uploaded, offered.problem, workspace)?;
        let (policy, counter, revokes) = (offered.policy, offered.counter, offered.revokes);
        let [first, second] = &self.known;
        let generation = first.generation.max(second.generation).saturating_add(1);
        let record = Record {
            magic: MAGIC,
            generation,
            manifest: upload.manifest.clone(),
            signature: upload.signature.clone(),
        };
        // Whatever becomes of it, half a record cannot be written over.
        self.upload = None;
        record.write(spare).ok_or(Refusal::Flash)?;
        if let (Some(journal), true) = (&mut self.journal, self.terms.keys.guard_policies()) {
            enter(journal, journal_flash, counter, revokes);
        }
        let written = 1 - self.used_slot();
        *self.spare_mut() = Known {
            slot: Slot {
                policy: Some(policy),
                state: SlotState::OnTrial,
            },
            length,
            generation,
            counter,
            tries: 0,
        };
        self.active = Some(written);
        self.marked = false;
        log!(info, "runs {}", policy);
        Ok(())
    }
}

const NO_UPLOAD: Report<'static> = Report::Rejected {
    reason: "no upload under way: begin one first",
};
const FLASH: Report<'static> = Report::Rejected {
    reason: "the node's policy memory failed",
};
