//! Everything a training needs to go on as if it had never stopped, in one file.
//!
//! The file is a magic word, a format number, a postcard record and its CRC-32. Policy and
//! optimiser state stand in it as Burn's own records.

use crate::learn::{History, TrainConfig};
use crate::policy::{PolicyConfig, PolicyModule};
use anyhow::{Context, Result, anyhow, bail, ensure};
use artifacts::output::write_whole;
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use problem::input;
use serde::{Deserialize, Serialize};
use std::path::Path;

const MAGIC: &[u8; 8] = b"TRAINING";
/// Changes with every change of the layout, also of the records in it: `tests/golden` holds a file of
/// each.
const FORMAT: u32 = 9;
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// A training, frozen between two steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version of the trainer that wrote it.
    pub version: String,
    /// The control problem.
    pub problem: String,
    /// Settings of the run.
    pub config: TrainConfig,
    /// The network.
    pub policy: PolicyConfig,
    /// Optimiser steps done.
    pub step: u64,
    /// How often the training had to go back.
    pub retreats: u32,
    /// Losses and validations so far.
    pub history: History,
    /// Seconds of training so far.
    pub seconds: f64,
    /// Burn's record of the policy.
    pub model: Vec<u8>,
    /// Burn's record of the optimiser.
    pub optimiser: Vec<u8>,
}

impl Checkpoint {
    /// Writes the file; whatever happens, a complete file stands there afterwards.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(write_whole(path, &self.to_bytes()?)?)
    }

    /// What such a file holds.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(postcard::to_stdvec_crc32(self, CRC.digest())?);
        Ok(bytes)
    }

    /// The network as it was, on a device.
    pub fn network(&self, device: &Device) -> Result<PolicyModule> {
        let unreadable = "the checkpoint's network or optimiser state cannot be read";
        let bytes = Bytes::from_bytes_vec(self.model.clone());
        let record = ModuleRecord::from_bytes(bytes).context(unreadable)?;
        let network = self.policy.init(self.config.seed, device);
        network.try_load_record(record).context(unreadable)
    }

    /// Reads a file written by [`Self::save`].
    pub fn load(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = input::read(path, input::CHECKPOINT).with_context(|| {
            format!("cannot read checkpoint '{shown}'; train first, or give the path of a run's 'latest' or 'best' file")
        })?;
        Self::from_bytes(&bytes, &shown.to_string())
    }

    /// Reads what a file holds, which is `shown` to people as this.
    pub fn from_bytes(bytes: &[u8], shown: &str) -> Result<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        let Some((format, body)) = rest.split_first_chunk::<4>().filter(|_| magic == MAGIC) else {
            bail!(
                "'{shown}' is not a training checkpoint; give the path of a run's 'latest' or 'best' file"
            );
        };
        let format = u32::from_le_bytes(*format);
        ensure!(
            format == FORMAT,
            "'{shown}' has checkpoint format {format}, this trainer reads {FORMAT}; go on with the trainer that wrote it, \
             or export its policy there and begin anew with --from"
        );
        let damaged = || {
            anyhow!(
                "'{shown}' is truncated or damaged; use the run's other checkpoint or train again"
            )
        };
        // Before anything is made of the rest: neither a length nor a record can be trusted else.
        let (record, sum) = body.split_last_chunk::<4>().ok_or_else(damaged)?;
        ensure!(CRC.checksum(record) == u32::from_le_bytes(*sum), damaged());
        match postcard::take_from_bytes(record) {
            Ok((checkpoint, [])) => Ok(checkpoint),
            _ => Err(damaged()),
        }
    }
}
