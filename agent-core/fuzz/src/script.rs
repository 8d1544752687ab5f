//! The fuzzer's bytes, read as numbers.

/// What is left of the bytes; past their end all numbers are zero.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// Whether all bytes have been read.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `length` bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u8) -> u8 {
        self.u8() % bound
    }

    /// One in `times`.
    pub fn rarely(&mut self, times: u8) -> bool {
        self.below(times) == times - 1
    }

    /// A float: an ordinary one, an awkward one, or any bits at all.
    pub fn f32(&mut self) -> f32 {
        const AWKWARD: [f32; 12] = [
            0.0,
            -0.0,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1e-45,
            1e20,
            -1e-20,
            1e4,
        ];
        match self.u8() {
            // 0 to ±8, in steps of 2^-12.
            0..200 => f32::from(self.u16() as i16) / 4096.0,
            kind @ 200..224 => AWKWARD[usize::from(kind) % AWKWARD.len()],
            224.. => f32::from_bits(self.u32()),
        }
    }
}
