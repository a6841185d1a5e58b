//! Options for reading a trace, shared by `frit trace` and `frit run`.

use clap::Args;
use frit_core::{Nanos, size};
use frit_trace::{BlktraceEvent, Columns, DeviceMapping, Options, ReadDigit, SizeUnit, TimeUnit};

/// Options for reading a trace. Each has a default, and the detected format is reported.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArgs {
    /// Format, instead of detecting it: recorded, fio3, fio2, vscsi, msr, spc, blkparse, fiu,
    /// biotracer, diskmon, disksim, csv.
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Unit of times (DiskSim ASCII): s, ms, us or ns.
    #[arg(long, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Unit of sizes (DiskSim ASCII): sectors, pages (4 KiB), bytes, or a size such as 2K.
    #[arg(long, value_name = "UNIT")]
    pub(crate) size_unit: Option<SizeUnit>,
    /// Unit of addresses (DiskSim ASCII): sectors, bytes, or a size such as 4K.
    #[arg(long, value_name = "UNIT")]
    pub(crate) address_unit: Option<SizeUnit>,
    /// Digit that marks a read (DiskSim ASCII): 1 as in DiskSim and MQSim, or 0.
    #[arg(long, value_name = "DIGIT")]
    pub(crate) read_digit: Option<ReadDigit>,
    /// Columns of any other text: time=ts:us,op=type,sector=lba,bytes=len (names of the header, or
    /// numbers from 1).
    #[arg(long, value_name = "SPEC")]
    pub(crate) columns: Option<Columns>,
    /// Letter of the blktrace event that stands for a request: Q, I, D or C.
    #[arg(long, value_name = "LETTER")]
    pub(crate) event: Option<BlktraceEvent>,
    /// Mapping of several devices to one address space: concat (one after another), merge (all
    /// share it), only:NAME.
    #[arg(long, value_name = "HOW")]
    pub(crate) devices: Option<DeviceMapping>,
    /// Part of the name of the file to read in a tar archive.
    #[arg(long, value_name = "PART")]
    pub(crate) member: Option<String>,
    /// Stop at the first malformed line, and at a truncated input.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Take only the first N requests.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Shorten every pause between requests to at most this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_gap: Option<Nanos>,
    /// Make sizes multiples of 4 KiB: a sector that a driver added is removed, other sizes are
    /// rounded up.
    #[arg(long)]
    pub(crate) whole_pages: bool,
    /// Widen requests of bytes to whole sectors, for layers without a byte interface.
    #[arg(long)]
    pub(crate) whole_sectors: bool,
}

/// Parses a time in seconds, such as 0.5.
fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..1e9).contains(&s) => Ok(Nanos((s * 1e9).round() as u64)),
        _ => Err("use seconds, such as 0.5".into()),
    }
}

/// Parses a size that is a multiple of the sector size. Returns sectors.
pub(super) fn sectors(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes > 0 && bytes % 512 == 0 => Ok(bytes / 512),
        _ => Err("use a multiple of 512 bytes, such as 8G".into()),
    }
}

impl ReadArgs {
    /// Returns the options of the library. `devices` is the default mapping of devices.
    #[must_use]
    pub(crate) fn options(&self, devices: DeviceMapping) -> Options {
        Options {
            format: self.format.clone(),
            time_unit: self.time_unit,
            size_unit: self.size_unit,
            address_unit: self.address_unit,
            read_digit: self.read_digit,
            columns: self.columns.clone(),
            event: self.event,
            devices: self.devices.clone().unwrap_or(devices),
            member: self.member.clone(),
            strict: self.strict,
            limit: self.limit,
            max_gap: self.max_gap,
            whole_pages: self.whole_pages,
            whole_sectors: self.whole_sectors,
        }
    }
}
