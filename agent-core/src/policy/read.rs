//! The header's fields, read one after the other.
//!
//! The bytes are those that postcard writes, and the same bytes are refused. It is not postcard that
//! reads them, because serde's way of it takes four times as much of a node's flash.

use super::MAX_LAYERS;
use super::header::{
    Activation, Channel, Convolution, Dense, Disc, Encoding, Fusion, Governor, Header, Memory,
    Norm, Probe, Text,
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
        // Filled in where it is: built from its parts, each would be copied there.
        let mut header = Header::default();
        let Header {
            problem,
            sensing,
            network,
            limits,
            timing,
            workspace,
            provenance,
            probe,
        } = &mut header;
        *problem = self.text();
        sensing.axes = self.byte();
        sensing.window = self.number16();
        sensing.target = self.flag();
        self.list(&mut sensing.channels, Self::channel);
        sensing.samples = self.number16();
        sensing.error_limit = self.float();
        self.layers(&mut network.branch);
        self.list(&mut network.frequencies, Self::float);
        self.layers(&mut network.trunk);
        network.fusion = match self.variant(2) {
            0 => Fusion::Concatenate,
            _ => Fusion::Multiply,
        };
        self.layers(&mut network.head);
        limits.force = self.option(Self::float);
        limits.velocity = self.option(Self::float);
        limits.low = self.pair();
        limits.high = self.pair();
        timing.period_us = self.number32();
        timing.late_us = self.number32();
        timing.fail_safe_us = self.number32();
        *workspace = self.number32();
        provenance.tool = self.text();
        provenance.revision = self.text();
        provenance.seed = self.number(u64::BITS);
        provenance.steps = self.number(u64::BITS);
        if format > 1 {
            sensing.wide = self.option(|r| [r.byte(), r.byte()]);
            self.list(&mut limits.keep_out, Self::disc);
        }
        if format > 2 {
            self.list(&mut network.convolutions, Self::convolution);
            network.flatten = self.norm();
            network.encoding = match self.variant(2) {
                0 => Encoding::F32,
                _ => Encoding::Int8,
            };
            limits.force_rate = self.option(Self::float);
            limits.velocity_rate = self.option(Self::float);
            *probe = self.option(Self::probe);
        }
        if format > 3 {
            limits.governor = self.option(|r| Governor {
                growth: r.float(),
                floor: r.float(),
                band: 0.0,
            });
        }
        if format > 4 {
            network.memory = self.option(|r| Memory {
                floats: r.byte(),
                leak: r.float(),
                gain: r.float(),
            });
            limits.set_band(self.float());
        }
        header
    }

    #[inline(never)]
    fn layers(&mut self, layers: &mut Vec<Dense, MAX_LAYERS>) {
        self.list(layers, |r| Dense {
            inputs: r.number16(),
            outputs: r.number16(),
            norm: r.norm(),
            activation: r.activation(),
        });
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
    fn list<T, const N: usize>(&mut self, items: &mut Vec<T, N>, item: impl Fn(&mut Self) -> T) {
        for _ in 0..self.length() {
            // Bytes that have come to an end do not make a long list longer.
            if items.push(item(self)).is_err() || self.failed {
                self.failed = true;
                break;
            }
        }
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

    fn text(&mut self) -> Text<'a> {
        let length = self.length();
        let bytes = self.rest.split_off(..length);
        self.failed |= bytes.is_none();
        Text::of(bytes.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::super::header::{Extension, Extension3, Extension4, Extension5};
    use super::*;
    use proptest::prelude::*;
    use std::format;

    /// What serde makes of the same bytes, and what it leaves.
    fn by_serde(bytes: &[u8], format: u32) -> postcard::Result<(Header<'_>, &[u8])> {
        let (mut header, mut rest) = postcard::take_from_bytes::<Header>(bytes)?;
        if format > 1 {
            let (extension, left) = postcard::take_from_bytes::<Extension>(rest)?;
            header.sensing.wide = extension.wide;
            header.limits.keep_out = extension.keep_out;
            rest = left;
        }
        if format > 2 {
            let (extension, left) = postcard::take_from_bytes::<Extension3>(rest)?;
            header.network.convolutions = extension.convolutions;
            header.network.flatten = extension.flatten;
            header.network.encoding = extension.encoding;
            header.limits.force_rate = extension.force_rate;
            header.limits.velocity_rate = extension.velocity_rate;
            header.probe = extension.probe;
            rest = left;
        }
        if format > 3 {
            let (extension, left) = postcard::take_from_bytes::<Extension4>(rest)?;
            header.limits.governor = extension.governor;
            rest = left;
        }
        if format > 4 {
            let (extension, left) = postcard::take_from_bytes::<Extension5>(rest)?;
            header.network.memory = extension.memory;
            header.limits.set_band(extension.band);
            rest = left;
        }
        Ok((header, rest))
    }

    /// Something in every list and option, and numbers of every length.
    fn rich() -> Header<'static> {
        let dense = Dense {
            inputs: 300,
            outputs: u16::MAX,
            norm: Norm::Soft,
            activation: Activation::Relu,
        };
        let convolution = Convolution {
            inputs: 3,
            outputs: 200,
            stride: 2,
            padding: 1,
            activation: Activation::Tanh,
        };
        let disc = Disc {
            centre: [0.25, -0.5],
            radius: 0.125,
        };
        let mut header = Header {
            problem: Text::new("Wärme"),
            workspace: u32::MAX,
            ..Header::default()
        };
        header.sensing.window = 1000;
        header.sensing.target = true;
        header.sensing.channels = [Channel::Slope, Channel::Across].into_iter().collect();
        header.sensing.wide = Some([7, 255]);
        header.network.branch = [dense; MAX_LAYERS].into_iter().collect();
        header.network.frequencies = [1.0, 2.0, 4.0].into_iter().collect();
        header.network.trunk = [dense].into_iter().collect();
        header.network.fusion = Fusion::Multiply;
        header.network.convolutions = [convolution; 2].into_iter().collect();
        header.network.flatten = Norm::Soft;
        header.network.encoding = Encoding::Int8;
        header.limits.force = Some(40.0);
        header.limits.high = [1.0, 1.25];
        header.limits.keep_out = [disc; 3].into_iter().collect();
        header.limits.velocity_rate = Some(9.0);
        header.limits.governor = Some(Governor {
            growth: 1.5,
            floor: 0.25,
            band: 0.75,
        });
        header.network.memory = Some(Memory {
            floats: 2,
            leak: 0.1,
            gain: 0.2,
        });
        header.timing.late_us = 70_000;
        header.provenance.tool = Text::new("test");
        header.provenance.seed = u64::MAX;
        header.probe = Some(Probe {
            position: [0.3, 0.4],
            inside: [Span {
                first: 1,
                last: 300,
            }; 2],
            expected: [[1, 2, 3, 4]; 3],
        });
        header
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = rich();
        let mut buffer = [0; 512];
        let bytes = postcard::to_slice(&(&header, header.extensions()), &mut buffer).unwrap();
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.header(5), header);
        assert_eq!(reader.finish(), Some(&[][..]));
    }

    proptest! {
        /// Also what is refused: a header with some of its bytes changed, cut somewhere.
        #[test]
        fn any_bytes_are_read_as_serde_reads_them(
            format in 1u32..=5,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            length in any::<prop::sample::Index>(),
            whole in any::<bool>(),
        ) {
            let header = rich();
            let mut buffer = [0; 512];
            let bytes = postcard::to_slice(&(&header, header.extensions()), &mut buffer).unwrap();
            for (at, byte) in changes {
                bytes[at.index(bytes.len())] = byte;
            }
            let length = if whole { bytes.len() } else { length.index(bytes.len()) };
            let bytes = &bytes[..length];
            let mut reader = Reader::new(bytes);
            let header = reader.header(format);
            let read = reader.finish().map(|rest| (header, rest));
            // As text, in which NaN is like NaN.
            let expected = by_serde(bytes, format).ok();
            prop_assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        }
    }
}
