//! Flash of the emulated boards, which have none: memory plays it that the emulator can keep in a file,
//! so that policies outlive the emulator as they would a board's power.

use embassy_time::Duration;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};
use firmware::hardware::PolicyFlash;

/// RAM that behaves like flash: programming clears bits and only an erase sets them again.
pub struct PlayedFlash(&'static mut [u8]);

impl PlayedFlash {
    /// The two slots of the memory map.
    ///
    /// # Safety
    /// To be called once: a slot is the only one who writes to its memory.
    pub unsafe fn slots() -> [Self; 2] {
        unsafe extern "C" {
            static mut _slot_0: [u8; SLOT];
            static mut _slot_1: [u8; SLOT];
        }
        let slots = [&raw mut _slot_0, &raw mut _slot_1];
        // SAFETY: memory.x reserves them for this alone.
        slots.map(|slot| Self(unsafe { &mut *slot }))
    }

    /// What lies behind them.
    ///
    /// # Safety
    /// As of [`Self::slots`].
    pub unsafe fn journal() -> Self {
        unsafe extern "C" {
            static mut _journal: [u8; JOURNAL];
        }
        let journal = &raw mut _journal;
        // SAFETY: as above.
        Self(unsafe { &mut *journal })
    }

    /// Two sectors for what a node that acts by itself knows of its place.
    ///
    /// # Safety
    /// As of [`Self::slots`].
    #[cfg(feature = "standalone")]
    pub unsafe fn places() -> [Self; 2] {
        unsafe extern "C" {
            static mut _place_0: [u8; SECTOR];
            static mut _place_1: [u8; SECTOR];
        }
        let places = [&raw mut _place_0, &raw mut _place_1];
        // SAFETY: as above.
        places.map(|place| Self(unsafe { &mut *place }))
    }
}

/// Bytes of a slot, as in the memory map: the largest policy there is and a sector for its record.
const SLOT: usize = 260 * 1024;

const SECTOR: usize = 4096;

/// Bytes of the journal: two sectors.
const JOURNAL: usize = 2 * SECTOR;

impl ErrorType for PlayedFlash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for PlayedFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        check_read(self, offset, bytes.len())?;
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for PlayedFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = SECTOR;

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        check_write(self, offset, bytes.len())?;
        let cells = self.0[offset as usize..].iter_mut();
        cells.zip(bytes).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        check_erase(self, from, to)?;
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }
}

impl PolicyFlash for PlayedFlash {
    // Memory that plays flash is erased in no time.
    const STALL: Duration = Duration::from_ticks(0);

    fn bytes(&self) -> &[u8] {
        self.0
    }
}
