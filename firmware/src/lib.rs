//! Firmware.
