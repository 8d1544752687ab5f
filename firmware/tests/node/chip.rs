//! A NOR flash chip whose power can go in the middle of an operation.

use std::{cell::Cell, rc::Rc};

use embassy_time::Duration;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use firmware::hardware::PolicyFlash;

/// What all chips of a node are fed from.
#[derive(Default)]
pub struct Power {
    /// Operations until the cut, if one is to come.
    left: Cell<Option<(usize, Cut)>>,
    off: Cell<bool>,
    /// Operations begun since the power came on.
    operations: Cell<usize>,
}

/// How far the operation in which the power goes gets.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// It has done nothing.
    Before,
    /// So many of 256 parts are done, in order, and some bits of the byte after.
    Part(u8),
    /// Every bit is done or not, by chance.
    Scattered(u64),
    /// It has done all, but nobody was told.
    After,
}

impl Power {
    /// Switches it on, to go again in the operation after so many.
    pub fn on(&self, cut: Option<(usize, Cut)>) {
        self.left.set(cut);
        self.off.set(false);
        self.operations.set(0);
    }

    pub fn is_off(&self) -> bool {
        self.off.get()
    }

    pub fn operations(&self) -> usize {
        self.operations.get()
    }

    /// Whether an operation comes about, and how far it gets if not to its end.
    fn draw(&self) -> Result<Option<Cut>, PowerIsOff> {
        if self.off.get() {
            return Err(PowerIsOff);
        }
        self.operations.set(self.operations.get() + 1);
        match self.left.get() {
            Some((0, cut)) => {
                self.off.set(true);
                Ok(Some(cut))
            }
            Some((left, cut)) => {
                self.left.set(Some((left - 1, cut)));
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

/// A chip that writes units of `W` bytes, once each between two erasures, and erases sectors of `E`.
pub struct Chip<const W: usize, const E: usize> {
    /// On a multiple of 16 bytes.
    memory: Vec<u128>,
    power: Rc<Power>,
    /// The next write flips a bit here.
    pub weak_at: Option<usize>,
}

impl<const W: usize, const E: usize> Chip<W, E> {
    /// A chip of two sectors or 16 KiB, with what it left the factory with.
    pub fn new(power: &Rc<Power>) -> Self {
        Self {
            memory: vec![0; (2 * E).max(16384) / 16],
            power: power.clone(),
            weak_at: None,
        }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

/// Brings bytes from what they were to what they should be, or a part of the way.
fn change(bytes: &mut [u8], wanted: impl Fn(usize) -> u8, cut: Option<Cut>) {
    let done = match cut {
        None | Some(Cut::After) => bytes.len(),
        Some(Cut::Before) => return,
        Some(Cut::Part(part)) => bytes.len() * usize::from(part) / 256,
        Some(Cut::Scattered(mut seed)) => {
            for (k, byte) in bytes.iter_mut().enumerate() {
                *byte = mixed(*byte, wanted(k), next(&mut seed) as u8);
            }
            return;
        }
    };
    for (k, byte) in bytes.iter_mut().enumerate().take(done) {
        *byte = wanted(k);
    }
    if let Some(byte) = bytes.get_mut(done) {
        *byte = mixed(*byte, wanted(done), 0b0110_1001);
    }
}

/// The bits of the mask are done.
fn mixed(from: u8, to: u8, mask: u8) -> u8 {
    from & !mask | to & mask
}

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>.
pub fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[derive(Debug)]
pub struct PowerIsOff;

impl NorFlashError for PowerIsOff {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl<const W: usize, const E: usize> ErrorType for Chip<W, E> {
    type Error = PowerIsOff;
}

impl<const W: usize, const E: usize> ReadNorFlash for Chip<W, E> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, to: &mut [u8]) -> Result<(), PowerIsOff> {
        let offset = offset as usize;
        to.copy_from_slice(&self.bytes()[offset..offset + to.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes().len()
    }
}

impl<const W: usize, const E: usize> NorFlash for Chip<W, E> {
    const WRITE_SIZE: usize = W;
    const ERASE_SIZE: usize = E;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), PowerIsOff> {
        assert!(from.is_multiple_of(E as u32) && to.is_multiple_of(E as u32));
        for sector in (from as usize..to as usize).step_by(E) {
            let cut = self.power.draw()?;
            change(&mut self.bytes_mut()[sector..sector + E], |_| 0xff, cut);
            if cut.is_some() {
                return Err(PowerIsOff);
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, units: &[u8]) -> Result<(), PowerIsOff> {
        let offset = offset as usize;
        assert!(offset.is_multiple_of(W) && units.len().is_multiple_of(W));
        let cut = self.power.draw()?;
        let bytes = &mut self.bytes_mut()[offset..offset + units.len()];
        assert!(bytes.iter().all(|b| *b == 0xff), "written twice: {offset}");
        change(bytes, |k| units[k], cut);
        if let Some(at) = self.weak_at.take() {
            self.bytes_mut()[at] ^= 1;
        }
        cut.map_or(Ok(()), |_| Err(PowerIsOff))
    }
}

impl<const W: usize, const E: usize> PolicyFlash for Chip<W, E> {
    /// Large sectors are those of chips that cannot be read while they are erased.
    const STALL: Duration = Duration::from_millis(if E > 4096 { 1_000 } else { 0 });

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.memory)
    }
}
