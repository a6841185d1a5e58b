//! Modelled devices: the memory of a profile, and the devices of the host in front of it.

use crate::error::{Error, Result};
use crate::host::HostModel;
use crate::isp::REQUEST_MAX;
use frit_core::{Cause, Counts, ReadTarget, Sink, Tok, UnitId, WriteData, size};
use frit_media::{
    Dram, DramConfig, DramTiming, Hardware, MediumConfig, MediumSpec, MemoryStore, NoStore, Pcm, PcmConfig,
};
use std::path::Path;

/// Reads a profile with changed values: `NAME,key=value,…`.
fn medium_config(spec: &str) -> Result<MediumConfig> {
    let mut parts = spec.split(',').map(str::trim);
    let mut text = toml::Table::new();
    text.insert("profile".into(), parts.next().unwrap_or_default().into());
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        let value = value.parse::<i64>().map_or_else(|_| toml::Value::from(value), toml::Value::from);
        text.insert(key.trim().into(), value);
    }
    let bad = |e: toml::de::Error| frit_core::Error::param("profile", spec, e.message());
    Ok(text.try_into::<MediumConfig>().map_err(bad)?)
}

/// Largest transfer over a link or copy, in bytes.
const TRANSFER_MAX: u64 = 1 << 32;

/// A device of the host that is busy for a time and stores nothing: a link, copying, software. The
/// engine treats it as volatile memory, so its commands are not durable.
#[derive(Debug)]
pub(crate) struct HostDevice(Dram);

impl HostDevice {
    fn new(name: &str, timing: DramTiming, hw: &mut Hardware) -> Result<Self> {
        let config =
            DramConfig { name: name.into(), bytes: TRANSFER_MAX, channels: 1, interleave_bytes: 1, timing };
        Dram::new(config, NoStore, hw).map(HostDevice).map_err(Error::Build)
    }

    /// Returns its command counts.
    pub(crate) fn counts(&self) -> &Counts {
        self.0.counts()
    }

    /// Transfers bytes towards the processor.
    pub(crate) fn receive(
        &mut self,
        sink: &mut Sink,
        len: u32,
        cause: Cause,
        after: Tok,
    ) -> frit_core::Result<Tok> {
        self.0.read(sink, 0, ReadTarget::Len(len), cause, after)
    }

    /// Transfers bytes away from the processor.
    pub(crate) fn send(
        &mut self,
        sink: &mut Sink,
        len: u32,
        cause: Cause,
        after: Tok,
    ) -> frit_core::Result<Tok> {
        self.0.write(sink, 0, WriteData::Len(len), cause, after)
    }
}

/// The engine of in-storage processing: a unit for each channel of the memory, which is busy for the
/// bytes that it processes.
#[derive(Debug)]
pub(crate) struct EngineUnits(Dram);

impl EngineUnits {
    fn new(units: u32, timing: DramTiming, hw: &mut Hardware) -> Result<Self> {
        let config = DramConfig {
            name: "engine".into(),
            bytes: u64::from(units) * REQUEST_MAX,
            channels: units,
            interleave_bytes: REQUEST_MAX as u32,
            timing,
        };
        Dram::new(config, NoStore, hw).map(EngineUnits).map_err(Error::Build)
    }

    /// Processes bytes on a unit.
    pub(crate) fn process(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        len: u32,
        after: Tok,
    ) -> frit_core::Result<Tok> {
        self.0.read(sink, u64::from(unit) * REQUEST_MAX, ReadTarget::Len(len), Cause::Isp, after)
    }

    /// Returns the units in the hardware.
    pub(crate) fn units(&self) -> impl Iterator<Item = UnitId> + '_ {
        let units = self.0.bytes() / REQUEST_MAX;
        (0..units).map(|unit| self.0.unit_of(unit * REQUEST_MAX))
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
    pub(crate) pcm: Pcm,
    pub(crate) link: Option<HostDevice>,
    pub(crate) copies: Option<HostDevice>,
    pub(crate) calls: Option<HostDevice>,
    pub(crate) engine: Option<EngineUnits>,
}

impl Devices {
    /// Creates the devices for the memory of a profile (a name, or the path of a TOML file, with
    /// changed values after commas: `dimm-optane-2019,channels=4`) and a host. The file system has
    /// `bytes` of it, or all of it up to 1 GiB.
    ///
    /// # Errors
    /// A profile that does not exist, is not byte-addressable durable memory, or is too small.
    pub fn new(profile: &str, host: HostModel, bytes: Option<u64>) -> Result<Devices> {
        let keys = medium_config(profile)?;
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
        // The last device, so that the units of the others have the same numbers without it.
        let channels = pcm.geometry().channels;
        let engine = host.isp.as_ref().map(|isp| isp.values.engine());
        let engine = engine.map(|timing| EngineUnits::new(channels, timing, &mut hardware)).transpose()?;
        Ok(Devices { host, hardware, bytes, sums: false, pcm, link, copies, calls, engine })
    }

    /// Returns the names of all units except those of the engine.
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
        for device in 1..self.hardware.devices().len() - usize::from(self.engine.is_some()) {
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
