//! A policy on its way into the free slot.

use agent_core::message::Report;
use embassy_time::{Duration, Instant};
use embedded_storage::nor_flash::NorFlash;
use heapless::Vec;
use trust::manifest::MANIFEST;

use crate::{
    admit::Refusal,
    store::{RECORD_AREA, UNIT},
};

/// An upload that does not go on for this long is dropped: its host is gone.
pub const STALL: Duration = Duration::from_secs(5);

/// An upload under way.
///
/// Sectors are erased one by one as it reaches them, so that the node is never away from its agent
/// for longer than one of them takes.
pub(crate) struct Upload {
    /// What was said to come, and by whom.
    pub manifest: Vec<u8, MANIFEST>,
    pub signature: Vec<u8, 64>,
    length: u32,
    next: u32,
    /// Where in the slot the part that has not been erased begins.
    erased: u32,
    /// What came of a unit that the flash writes only whole.
    unit: [u8; UNIT],
    /// When it last went on.
    touched: Instant,
}

impl Upload {
    /// Erases the record; the blob's sectors follow when they are needed.
    pub fn begin<S: NorFlash>(
        flash: &mut S,
        manifest: Vec<u8, MANIFEST>,
        signature: Vec<u8, 64>,
        length: u32,
    ) -> Result<Self, S::Error> {
        log!(info, "upload of {=u32} bytes", length);
        let mut upload = Self {
            manifest,
            signature,
            length,
            next: 0,
            erased: 0,
            unit: [0xff; UNIT],
            touched: Instant::now(),
        };
        upload.erase_up_to(flash, RECORD_AREA as u32)?;
        Ok(upload)
    }

    /// Takes a chunk that continues the upload. Any other one (sent again because an answer was
    /// lost, or after a lost one) is not stored; the answer says where to go on.
    pub fn store<S: NorFlash>(
        &mut self,
        flash: &mut S,
        offset: u32,
        bytes: &[u8],
    ) -> Result<Report<'static>, S::Error> {
        self.touched = Instant::now();
        if offset == self.next {
            let left = (self.length - self.next) as usize;
            if bytes.len() > left {
                return Ok(Report::Rejected {
                    reason: "the chunk goes beyond the length announced",
                });
            }
            self.append(flash, bytes)?;
        }
        Ok(Report::Stored { next: self.next })
    }

    /// Whether so many bytes more need another sector.
    pub fn will_erase(&self, bytes: usize) -> bool {
        let end = RECORD_AREA + self.next as usize + bytes;
        end > self.erased as usize
    }

    /// The whole length, if all of it has come.
    pub fn length(&self) -> Result<u32, Refusal> {
        match self.next == self.length {
            true => Ok(self.length),
            false => Err(Refusal::Incomplete {
                stored: self.next,
                length: self.length,
            }),
        }
    }

    /// Where it goes on.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Takes note that its host is there.
    pub fn touch(&mut self) {
        self.touched = Instant::now();
    }

    /// Whether its host has not been heard of for too long.
    pub fn is_stalled(&self) -> bool {
        self.touched.elapsed() > STALL
    }

    fn append<S: NorFlash>(&mut self, flash: &mut S, mut bytes: &[u8]) -> Result<(), S::Error> {
        while !bytes.is_empty() {
            let at = self.next as usize % S::WRITE_SIZE;
            if at == 0 && bytes.len() >= S::WRITE_SIZE {
                let (units, rest) = bytes.split_at(bytes.len() - bytes.len() % S::WRITE_SIZE);
                self.write(flash, self.next, units)?;
                self.next += units.len() as u32;
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(S::WRITE_SIZE - at));
            for (to, from) in self.unit.iter_mut().skip(at).zip(part) {
                *to = *from;
            }
            let from = self.next - at as u32;
            self.next += part.len() as u32;
            bytes = rest;
            if at + part.len() == S::WRITE_SIZE || self.next == self.length {
                // What the blob's end leaves of the unit stays erased.
                let unit = core::mem::replace(&mut self.unit, [0xff; UNIT]);
                self.write(flash, from, unit.get(..S::WRITE_SIZE).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    fn write<S: NorFlash>(
        &mut self,
        flash: &mut S,
        offset: u32,
        units: &[u8],
    ) -> Result<(), S::Error> {
        let offset = RECORD_AREA as u32 + offset;
        self.erase_up_to(flash, offset + units.len() as u32)?;
        flash.write(offset, units)
    }

    fn erase_up_to<S: NorFlash>(&mut self, flash: &mut S, end: u32) -> Result<(), S::Error> {
        while self.erased < end {
            let sector_end = self.erased + S::ERASE_SIZE as u32;
            flash.erase(self.erased, sector_end)?;
            self.erased = sector_end;
        }
        Ok(())
    }
}
