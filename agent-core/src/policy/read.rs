//! The header's fields, read one after the other.
//!
//! The bytes are those that postcard writes, and the same bytes are refused. It is not postcard that
//! reads them, because serde's way of it takes four times as much of a node's flash.

use super::MAX_LAYERS;
use super::header::{
    Activation, Channel, Convolution, Dense, Disc, Encoding, Fusion, Header, Limits, Network, Norm,
    Probe, Provenance, Sensing, Timing,
};
use crate::message::Span;
use heapless::Vec;

/// Reads from the start of bytes. What cannot be read is zero, or anything of its kind, and
/// [`finish`](Self::finish) tells: no field is looked at before.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            failed: false,
        }
    }

    /// The bytes that are left; none if something could not be read.
    pub(super) fn finish(self) -> Option<&'a [u8]> {
        (!self.failed).then_some(self.rest)
    }

    /// A header of so high a format.
    pub(super) fn header(&mut self, format: u32) -> Header<'a> {
        // Rust reads the fields in the order in which they stand here: that of the format.
        let mut header = Header {
            problem: self.text(),
            sensing: Sensing {
                axes: self.byte(),
                window: self.number16(),
                target: self.flag(),
                channels: self.list(Self::channel),
                samples: self.number16(),
                error_limit: self.float(),
                wide: None,
            },
            network: Network {
                branch: self.layers(),
                frequencies: self.list(Self::float),
                trunk: self.layers(),
                fusion: match self.variant(2) {
                    0 => Fusion::Concatenate,
                    _ => Fusion::Multiply,
                },
                head: self.layers(),
                ..Network::default()
            },
            limits: Limits {
                force: self.option(Self::float),
                velocity: self.option(Self::float),
                low: self.pair(),
                high: self.pair(),
                ..Limits::default()
            },
            timing: Timing {
                period_us: self.number32(),
                late_us: self.number32(),
                fail_safe_us: self.number32(),
            },
            workspace: self.number32(),
            provenance: Provenance {
                tool: self.text(),
                revision: self.text(),
                seed: self.number(u64::BITS),
                steps: self.number(u64::BITS),
            },
            probe: None,
        };
        if format > 1 {
            header.sensing.wide = self.option(|r| [r.byte(), r.byte()]);
            header.limits.keep_out = self.list(Self::disc);
        }
        if format > 2 {
            header.network.convolutions = self.list(Self::convolution);
            header.network.flatten = self.norm();
            header.network.encoding = match self.variant(2) {
                0 => Encoding::F32,
                _ => Encoding::Int8,
            };
            header.limits.force_rate = self.option(Self::float);
            header.limits.velocity_rate = self.option(Self::float);
            header.probe = self.option(Self::probe);
        }
        header
    }

    #[inline(never)]
    fn layers(&mut self) -> Vec<Dense, MAX_LAYERS> {
        self.list(|r| Dense {
            inputs: r.number16(),
            outputs: r.number16(),
            norm: r.norm(),
            activation: r.activation(),
        })
    }

    fn convolution(&mut self) -> Convolution {
        Convolution {
            inputs: self.number16(),
            outputs: self.number16(),
            stride: self.byte(),
            padding: self.byte(),
            activation: self.activation(),
        }
    }

    fn channel(&mut self) -> Channel {
        match self.variant(3) {
            0 => Channel::Error,
            1 => Channel::Slope,
            _ => Channel::Across,
        }
    }

    fn norm(&mut self) -> Norm {
        match self.variant(2) {
            0 => Norm::None,
            _ => Norm::Soft,
        }
    }

    fn activation(&mut self) -> Activation {
        match self.variant(3) {
            0 => Activation::Identity,
            1 => Activation::Tanh,
            _ => Activation::Relu,
        }
    }

    fn disc(&mut self) -> Disc {
        Disc {
            centre: self.pair(),
            radius: self.float(),
        }
    }

    fn probe(&mut self) -> Probe {
        Probe {
            position: self.pair(),
            inside: [self.span(), self.span()],
            expected: [self.word(), self.word(), self.word()],
        }
    }

    fn span(&mut self) -> Span {
        Span {
            first: self.number16(),
            last: self.number16(),
        }
    }

    fn pair(&mut self) -> [f32; 2] {
        [self.float(), self.float()]
    }

    /// A length, then as many items.
    fn list<T, const N: usize>(&mut self, item: impl Fn(&mut Self) -> T) -> Vec<T, N> {
        let mut items = Vec::new();
        let length = self.length();
        for _ in 0..length {
            let item = item(self);
            // Bytes that have come to an end do not make a long list longer.
            if items.push(item).is_err() || self.failed {
                self.failed = true;
                break;
            }
        }
        items
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| some(self))
    }

    /// The number of one of so many variants.
    fn variant(&mut self, count: u32) -> u32 {
        let number = self.number32();
        self.failed |= number >= count;
        number
    }

    fn text(&mut self) -> &'a str {
        let length = self.length();
        let bytes = self.rest.split_off(..length);
        match bytes.map(core::str::from_utf8) {
            Some(Ok(text)) => text,
            _ => {
                self.failed = true;
                ""
            }
        }
    }

    fn flag(&mut self) -> bool {
        let byte = self.byte();
        self.failed |= byte > 1;
        byte == 1
    }

    fn length(&mut self) -> usize {
        self.number(usize::BITS) as usize
    }

    fn number16(&mut self) -> u16 {
        self.number(u16::BITS) as u16
    }

    fn number32(&mut self) -> u32 {
        self.number(u32::BITS) as u32
    }

    /// A number of so many bits, seven in a byte, lowest first.
    #[inline(never)]
    fn number(&mut self, bits: u32) -> u64 {
        let mut number = 0;
        for shift in (0..bits).step_by(7) {
            let byte = self.byte();
            let part = u64::from(byte & 0x7f);
            self.failed |= part >> (bits - shift).min(7) != 0;
            number |= part << shift;
            if byte < 0x80 {
                return number;
            }
        }
        self.failed = true;
        0
    }

    fn float(&mut self) -> f32 {
        f32::from_le_bytes(self.word())
    }

    #[inline(never)]
    fn word(&mut self) -> [u8; 4] {
        match self.rest.split_first_chunk() {
            Some((word, rest)) => {
                self.rest = rest;
                *word
            }
            None => {
                self.failed = true;
                [0; 4]
            }
        }
    }

    #[inline(never)]
    fn byte(&mut self) -> u8 {
        match self.rest.split_off_first() {
            Some(byte) => *byte,
            None => {
                self.failed = true;
                0
            }
        }
    }
}
