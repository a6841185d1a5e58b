//! Modelled devices: the memory of a profile, and the devices of the host in front of it.

use crate::error::{Error, Result};
use crate::host::HostModel;
use frit_core::{Cause, ReadTarget, Sink, UnitId, WriteData, size};
use frit_media::{
    Dram, DramConfig, DramTiming, Hardware, MediumConfig, MediumSpec, MemoryStore, NoStore, Pcm, PcmConfig,
};
use std::path::Path;

/// Largest transfer over a link or copy, in bytes.
const TRANSFER_MAX: u64 = 1 << 32;

/// A device of the host that is busy for a time and stores nothing: a link, copying, software. The
/// engine treats it as volatile memory, so its commands are not durable.
#[derive(Debug)]
pub(crate) struct HostDevice(Dram<NoStore>);

impl HostDevice {
    fn new(name: &str, timing: DramTiming, hw: &mut Hardware) -> Result<Self> {
        let config =
            DramConfig { name: name.into(), bytes: TRANSFER_MAX, channels: 1, interleave_bytes: 1, timing };
        Dram::new(config, NoStore, hw).map(HostDevice).map_err(Error::Build)
    }

    /// Transfers bytes towards the processor.
    pub(crate) fn receive<S: Sink>(
        &mut self,
        sink: &mut S,
        len: u32,
        cause: Cause,
        after: S::Tok,
    ) -> frit_core::Result<S::Tok> {
        self.0.read(sink, 0, ReadTarget::Len(len), cause, after)
    }

    /// Transfers bytes away from the processor.
    pub(crate) fn send<S: Sink>(
        &mut self,
        sink: &mut S,
        len: u32,
        cause: Cause,
        after: S::Tok,
    ) -> frit_core::Result<S::Tok> {
        self.0.write(sink, 0, WriteData::Len(len), cause, after)
    }
}

/// Name of a unit of the hardware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitName {
    /// The unit.
    pub unit: UnitId,
    /// Name of the unit: `c0 g1` for group 1 of channel (controller) 0, `link` …
    pub name: String,
}

/// Devices of a [`SimMedium`](crate::SimMedium), without a sink for their commands.
#[derive(Debug)]
pub struct Devices {
    /// Host.
    pub host: HostModel,
    /// Devices, for an engine.
    pub hardware: Hardware,
    /// Size of the file system in bytes.
    pub bytes: u64,
    /// `true` if the file system has checksums of contents ([`frit_fs::FormatOptions::sums`]), which
    /// changes its layout.
    pub sums: bool,
    pub(crate) pcm: Pcm<MemoryStore>,
    pub(crate) link: Option<HostDevice>,
    pub(crate) copies: Option<HostDevice>,
    pub(crate) calls: Option<HostDevice>,
}

impl Devices {
    /// Creates the devices for the memory of a profile (a name, or the path of a TOML file) and a
    /// host. The file system has `bytes` of it, or all of it up to 1 GiB.
    ///
    /// # Errors
    /// A profile that does not exist, is not byte-addressable durable memory, or is too small.
    pub fn new(profile: &str, host: HostModel, bytes: Option<u64>) -> Result<Devices> {
        let keys = MediumConfig { profile: Some(profile.into()), ..MediumConfig::default() };
        let config = match keys.resolve("pcm", Path::new("."))? {
            MediumSpec::Pcm(config) => config,
            other => {
                let kind: &str = other.kind().into();
                let why =
                    format!("is a {kind} medium; a file system needs byte-addressable durable memory (pcm)");
                return Err(frit_core::Error::param("profile", profile, why).into());
            }
        };
        Devices::of(config, host, bytes)
    }

    /// Creates the devices for a given configuration of the memory.
    ///
    /// # Errors
    /// A configuration that is invalid or too small.
    pub fn of(config: PcmConfig, host: HostModel, bytes: Option<u64>) -> Result<Devices> {
        let all = config.geometry.bytes() / 4096 * 4096;
        let bytes = bytes.unwrap_or(all.min(1 << 30)) / 4096 * 4096;
        if bytes > all {
            let why = format!("is more than the {} of the profile", size::format(all));
            return Err(frit_core::Error::param("size", size::format(bytes), why).into());
        }
        let mut hardware = Hardware::new();
        let store = MemoryStore::new(config.geometry.store_bytes());
        let pcm = Pcm::new(config, store, &mut hardware).map_err(Error::Build)?;
        let mut carrier = |name: &str, timing: Option<DramTiming>| {
            timing.map(|timing| HostDevice::new(name, timing, &mut hardware)).transpose()
        };
        let link = carrier("link", host.values.link())?;
        let copies = carrier("copies", host.values.copies())?;
        let calls = carrier("software", host.values.calls())?;
        Ok(Devices { host, hardware, bytes, sums: false, pcm, link, copies, calls })
    }

    /// Returns the names of all units.
    #[must_use]
    pub fn units(&self) -> Vec<UnitName> {
        let g = *self.pcm.geometry();
        let mut units: Vec<UnitName> = (0..g.units())
            .map(|unit| {
                let (channel, group) = (unit % g.channels, unit / g.channels);
                let name = match g.groups {
                    1 => format!("c{channel}"),
                    _ => format!("c{channel} g{group}"),
                };
                UnitName { unit: self.pcm.unit_id(unit), name }
            })
            .collect();
        for device in 1..self.hardware.devices().len() {
            let unit = UnitId(g.units() as u16 + device as u16 - 1);
            units.push(UnitName { unit, name: self.hardware.devices()[device].name.clone() });
        }
        units
    }

    /// Returns the channels of the memory whose bus is modelled apart from its cells: their numbers
    /// in the hardware, and names.
    #[must_use]
    pub fn buses(&self) -> Vec<(usize, String)> {
        if self.pcm.config().timing.bus_ps_per_byte == 0 {
            return Vec::new();
        }
        (0..self.pcm.geometry().channels).map(|c| (c as usize, format!("c{c} bus"))).collect()
    }
}
