//! Flash that the chip maps into memory: slots and records on one controller, read where they lie.

use core::{array, cell::RefCell, slice};

use embassy_embedded_hal::flash::partition::{BlockingPartition, Error};
use embassy_sync::blocking_mutex::{Mutex, raw::CriticalSectionRawMutex};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use firmware::hardware::PolicyFlash;

/// The controller, as the slots share it. Interrupts are off while it works: most chips cannot
/// even fetch instructions then.
pub type Controller<F> = Mutex<CriticalSectionRawMutex, RefCell<F>>;

/// A part of it: a slot, the journal, a sector for a place.
pub struct MappedSlot<F: NorFlash + 'static> {
    part: BlockingPartition<'static, CriticalSectionRawMutex, F>,
    address: usize,
}

impl<F: NorFlash> MappedSlot<F> {
    /// So many parts of `size` bytes each, one behind the other: from `offset` for the controller, from
    /// `address` for the core.
    ///
    /// # Safety
    /// The flash must be mapped there, and hold nothing else.
    pub unsafe fn parts<const N: usize>(
        controller: &'static Controller<F>,
        offset: u32,
        address: usize,
        size: u32,
    ) -> [Self; N] {
        array::from_fn(|at| {
            let from = at as u32 * size;
            Self {
                part: BlockingPartition::new(controller, offset + from, size),
                address: address + from as usize,
            }
        })
    }
}

impl<F: NorFlash> ErrorType for MappedSlot<F> {
    type Error = Error<F::Error>;
}

impl<F: NorFlash> ReadNorFlash for MappedSlot<F> {
    const READ_SIZE: usize = F::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.part.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.part.capacity()
    }
}

impl<F: NorFlash> NorFlash for MappedSlot<F> {
    const WRITE_SIZE: usize = F::WRITE_SIZE;
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.part.write(offset, bytes)
    }

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        self.part.erase(from, to)
    }
}

impl<F: NorFlash> PolicyFlash for MappedSlot<F> {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `parts` was promised mapped flash; it changes only through this slot's `&mut`.
        unsafe { slice::from_raw_parts(self.address as *const u8, self.capacity()) }
    }
}
