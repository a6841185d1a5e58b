//! Environment variables by which `frit exec` tells the library what to do.

use std::ffi::CStr;

/// Devices of the mounts, as hexadecimal numbers separated by commas.
pub const DEVICES: &CStr = c"FRIT_DIRECT";
/// Asks for a report at the end of each process.
pub const REPORT: &CStr = c"FRIT_DIRECT_REPORT";
