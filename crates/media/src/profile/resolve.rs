//! Resolution of the keys of a medium into a complete, checked device configuration.

use super::{ByteSize, CurvePoints, KEYS, MediumConfig, PageLatency, Picos, Profile};
use crate::disk::{Drive, DriveModel, SolidStateDrive, WriteBack};
use crate::object::DEFAULT_OBJECT_BYTES;
use crate::pcm::PcmGeometry;
use crate::{
    CommandCycles, DiskConfig, DramConfig, DramTiming, LatencyCurve, NandCells, NandConfig, NandFaults,
    NandGeometry, NandTiming, ObjectConfig, ObjectTiming, PcmConfig, PcmTiming, PlaneOps, SlcArea, SlcMode,
};
use frit_core::{Error, MediumKind, Nanos, Result, SECTOR_BYTES, size};
use std::path::Path;

/// Maximum number of profiles in a chain in which each refers to the next.
const CHAIN_MAX: usize = 8;

/// Largest size of a solid-state drive, in bytes: the commands of a disk have the number of a MiB in
/// 32 bits.
const SOLID_STATE_BYTES_MAX: u64 = 1 << 50;
/// Keys of a disk that only a solid-state drive has.
const SOLID_STATE_KEYS: [&str; 7] =
    ["units", "interleave_bytes", "t_read", "t_write", "t_flush", "read_mb_per_s", "write_mb_per_s"];
/// Keys of a disk that only a drive with a mechanism has.
const MECHANICAL_KEYS: [&str; 5] = ["write_back", "queue_depth", "order", "max_wait", "background"];

/// A complete and checked configuration of a medium.
#[derive(Clone, Debug)]
pub enum MediumSpec {
    /// NAND flash.
    Nand(NandConfig),
    /// PCM and other byte-addressable persistent memories.
    Pcm(PcmConfig),
    /// A DRAM buffer.
    Dram(DramConfig),
    /// A disk.
    Disk(DiskConfig),
    /// An object store.
    Object(ObjectConfig),
}

impl MediumSpec {
    /// Kind of the medium.
    #[must_use]
    pub fn kind(&self) -> MediumKind {
        match self {
            MediumSpec::Nand(_) => MediumKind::Nand,
            MediumSpec::Pcm(_) => MediumKind::Pcm,
            MediumSpec::Dram(_) => MediumKind::Dram,
            MediumSpec::Disk(_) => MediumKind::Disk,
            MediumSpec::Object(_) => MediumKind::Object,
        }
    }

    /// Size of the medium in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            MediumSpec::Nand(c) => c.geometry.bytes(),
            MediumSpec::Pcm(c) => c.geometry.bytes(),
            MediumSpec::Dram(c) => c.bytes,
            MediumSpec::Disk(c) => c.bytes,
            MediumSpec::Object(c) => c.bytes(),
        }
    }

    /// Size of the store that the medium needs, in bytes.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        match self {
            MediumSpec::Nand(c) => c.geometry.store_bytes(),
            MediumSpec::Pcm(c) => c.geometry.store_bytes(),
            MediumSpec::Dram(c) => c.bytes,
            MediumSpec::Disk(c) => c.store_bytes(),
            MediumSpec::Object(c) => c.store_bytes(),
        }
    }
}

impl MediumConfig {
    /// Returns the medium that these keys and their profile describe; `name` is its name in the
    /// stack. Relative paths of profiles start at `dir`.
    ///
    /// # Errors
    /// `Param` with the key, its value and the values that are allowed.
    pub fn resolve(&self, name: &str, dir: &Path) -> Result<MediumSpec> {
        let all = self.clone().with_profile(dir)?;
        let Some(medium) = all.medium else {
            return Err(missing(
                "profile",
                "name a profile (see `frit profiles`), or give medium and all of its keys",
            ));
        };
        for (key, value) in all.given_keys() {
            if !key.media.contains(&medium) {
                let kind = medium.with_article();
                let fit: Vec<&str> =
                    KEYS.iter().filter(|k| k.media.contains(&medium)).map(|k| k.name).collect();
                let why = format!("is not a key of {kind} medium; its keys are {}", fit.join(", "));
                return Err(Error::param(key.name, value, why));
            }
        }
        match medium {
            MediumKind::Nand => all.nand(name).map(MediumSpec::Nand),
            MediumKind::Pcm => all.pcm(name).map(MediumSpec::Pcm),
            MediumKind::Dram => all.dram(name).map(MediumSpec::Dram),
            MediumKind::Disk => all.disk(name).map(MediumSpec::Disk),
            MediumKind::Object => all.object(name).map(MediumSpec::Object),
        }
    }

    /// Fills in the missing values from the profile, and from the profiles that it refers to.
    ///
    /// # Errors
    /// An unknown profile, profiles of different kinds of media, and a cycle.
    pub fn with_profile(mut self, dir: &Path) -> Result<MediumConfig> {
        let mut chain: Vec<String> = Vec::new();
        while let Some(name) = self.profile.take() {
            let base = Profile::find(&name, dir)?;
            chain.push(name.clone());
            if chain.len() > CHAIN_MAX {
                let why = format!("the profiles form a cycle or too long a chain: {}", chain.join(" -> "));
                return Err(Error::param("profile", name, why));
            }
            if let Some(given) = self.medium.filter(|&m| m != base.medium) {
                let (given, is): (&str, &str) = (given.into(), base.medium.with_article());
                let why = format!("the profile '{}' describes {is} medium", base.name);
                return Err(Error::param("medium", given, why));
            }
            self.medium = Some(base.medium);
            self = self.completed_by(base.values);
        }
        Ok(self)
    }

    fn nand(&self, name: &str) -> Result<NandConfig> {
        let geometry = NandGeometry {
            channels: need("channels", self.channels)?,
            chips_per_channel: need("chips_per_channel", self.chips_per_channel)?,
            dies_per_chip: need("dies_per_chip", self.dies_per_chip)?,
            planes_per_die: need("planes_per_die", self.planes_per_die)?,
            blocks_per_plane: need("blocks_per_plane", self.blocks_per_plane)?,
            pages_per_block: need("pages_per_block", self.pages_per_block)?,
            page_bytes: bytes32("page_bytes", self.page_bytes)?,
            spare_bytes: bytes32("spare_bytes", self.spare_bytes)?,
            plane_ops: self.plane_ops.unwrap_or(PlaneOps::Single),
            program_pages: 1,
            record_copies: 1,
            slc: SlcArea::default(),
        };
        geometry.check()?;
        let slc = self.slc_times()?;
        let bits = self.cell.filter(|_| slc.is_some()).map_or(u32::MAX, |cell| cell as u32);
        let slc_area = SlcArea { blocks: 0, pages: geometry.pages_per_block / bits, dynamic: false };
        let geometry = NandGeometry { slc: slc_area, ..geometry };
        let bus = need("bus_per_byte", self.bus_per_byte)?;
        if bus.0 == 0 {
            return Err(Error::param(
                "bus_per_byte",
                bus,
                "has to be longer than zero; 1200 MT/s are \"833 ps\"",
            ));
        }
        let endurance = need("endurance", self.endurance)?;
        let endurance = u32::try_from(endurance)
            .ok()
            .filter(|&e| e > 0)
            .ok_or_else(|| Error::param("endurance", endurance, "has to be 1 to 4294967295 erases"))?;
        let slc = match slc {
            Some(times) => Some(SlcMode { times, endurance: self.slc_endurance(endurance)? }),
            None => None,
        };
        let faults = NandFaults {
            factory_bad: self.factory_bad.unwrap_or(0.0),
            program_fail: self.program_fail.unwrap_or(0.0),
            erase_fail: self.erase_fail.unwrap_or(0.0),
            seed: self.seed.unwrap_or(0),
        };
        faults.check()?;
        let timing = NandTiming {
            t_read: duration("t_read", MediumConfig::mean_latency(self.t_read.as_ref()))?,
            t_prog: duration("t_prog", MediumConfig::mean_latency(self.t_prog.as_ref()))?,
            t_erase: duration("t_erase", self.t_erase)?,
            bus_ps_per_byte: bus.0,
            t_command: self.command_cycles(),
            t_plane: self.plane_cycles(),
            t_cache_busy: self.t_cache_busy.map(Picos::nanos),
        };
        let cells = self.nand_cells(geometry.pages_per_block)?;
        if geometry.plane_ops == PlaneOps::Multi && cells.as_ref().is_some_and(|c| c.suspend.is_some()) {
            let why =
                "cannot be \"multi\" if reads suspend other operations; use \"independent\" or \"single\"";
            return Err(Error::param("plane_ops", "multi", why));
        }
        self.check_cache_programs(&geometry, cells.as_ref())?;
        Ok(NandConfig { name: name.into(), geometry, timing, cells, slc, endurance, faults, serial: 0 })
    }

    /// Checks that cache programs are possible.
    fn check_cache_programs(&self, geometry: &NandGeometry, cells: Option<&NandCells>) -> Result<()> {
        let Some(busy) = self.t_cache_busy else { return Ok(()) };
        let suspends = cells.is_some_and(|c| c.suspend.is_some());
        let shortest = self.t_prog.iter().flat_map(PageLatency::times).chain(self.t_prog_slc).min();
        let why = match geometry.plane_ops {
            _ if shortest.is_some_and(|t| busy.0 >= t.0) => "has to be shorter than `t_prog`",
            PlaneOps::Multi => "cannot be combined with `plane_ops = \"multi\"`; use \"independent\"",
            _ if suspends => "cannot be combined with `suspend`; remove one of them",
            _ => return Ok(()),
        };
        Err(Error::param("t_cache_busy", busy, why))
    }

    /// Returns the cycles of a command of one plane.
    fn command_cycles(&self) -> CommandCycles {
        let read = self.t_command.map_or(Nanos::ZERO, Picos::nanos);
        CommandCycles {
            read,
            program: self.t_command_program.map_or(read, Picos::nanos),
            erase: self.t_command_erase.map_or(read, Picos::nanos),
        }
    }

    /// Returns the cycles of each further plane of a multi-plane command.
    fn plane_cycles(&self) -> CommandCycles {
        let first = self.command_cycles();
        CommandCycles {
            read: self.t_plane_read.map_or(first.read, Picos::nanos),
            program: self.t_plane_program.map_or(first.program, Picos::nanos),
            erase: self.t_plane_erase.map_or(first.erase, Picos::nanos),
        }
    }

    fn pcm(&self, name: &str) -> Result<PcmConfig> {
        let geometry = PcmGeometry {
            channels: need("channels", self.channels)?,
            chips_per_channel: need("chips_per_channel", self.chips_per_channel)?,
            groups: self.groups_per_channel.unwrap_or(1),
            chip_bytes: need("chip_bytes", self.chip_bytes)?.0,
            write_unit: bytes32("write_unit", self.write_unit)?,
            line_bytes: bytes32("line_bytes", self.line_bytes)?,
            interleave_bytes: bytes32("interleave_bytes", self.interleave_bytes)?,
        };
        geometry.check()?;
        let refresh_bytes = self.refresh_bytes.map(|b| bytes32("refresh_bytes", Some(b))).transpose()?;
        geometry.check_refresh(refresh_bytes)?;
        let endurance = need("endurance", self.endurance)?;
        if endurance == 0 {
            return Err(Error::param("endurance", endurance, "has to be at least 1 write"));
        }
        let floor = match self.floor_bytes {
            Some(b) => bytes32("floor_bytes", Some(b))?,
            None => geometry.write_unit,
        };
        let refresh = match refresh_bytes {
            Some(_) => duration("t_refresh", self.t_refresh)?,
            None => Nanos::ZERO,
        };
        let write_clean = self.write_clean.as_ref();
        let timing = PcmTiming {
            read: curve("read", self.read.as_ref(), floor)?,
            write: curve("write", self.write.as_ref(), floor)?,
            write_clean: write_clean.map(|p| curve("write_clean", Some(p), floor)).transpose()?,
            refresh,
            bus_ps_per_byte: self.bus_per_byte.map_or(0, |t| t.0),
            fence: self.t_fence.map_or(Nanos::ZERO, Picos::nanos),
        };
        Ok(PcmConfig { name: name.into(), geometry, timing, endurance, refresh_bytes, serial: 0 })
    }

    fn dram(&self, name: &str) -> Result<DramConfig> {
        let config = DramConfig {
            name: name.into(),
            bytes: need("bytes", self.bytes)?.0,
            channels: need("channels", self.channels)?,
            interleave_bytes: bytes32("interleave_bytes", self.interleave_bytes)?,
            timing: DramTiming {
                latency: duration("latency", self.latency)?,
                ps_per_byte: need("per_byte", self.per_byte)?.0,
            },
        };
        config.check()?;
        Ok(config)
    }

    fn disk(&self, name: &str) -> Result<DiskConfig> {
        let solid_state = self.given_of(&SOLID_STATE_KEYS);
        let Some(drive) = &self.drive else {
            if solid_state.is_none() {
                let why = "is needed; name a drive of `frit disk list` or a solid-state drive of `frit profiles` \
                           as the profile";
                return Err(missing("drive", why));
            }
            return self.solid_state(name);
        };
        if let Some((key, value)) = solid_state {
            return Err(Error::param(key, value, "is not a key of a drive with a mechanism"));
        }
        let mut spec = drive.spec()?;
        if let Some(on) = self.write_back {
            // Enabling write-back keeps the kind of write-back that the drive has.
            spec.cache.write_back = match spec.cache.write_back {
                _ if !on => WriteBack::Off,
                WriteBack::Off => WriteBack::Full,
                kept => kept,
            };
        }
        spec.queue_depth = self.queue_depth.unwrap_or(spec.queue_depth);
        spec.scheduler = self.order.unwrap_or(spec.scheduler);
        spec.max_wait = self.max_wait.map_or(spec.max_wait, Picos::nanos);
        spec.background = self.background.unwrap_or(spec.background);
        spec.check()?;
        let all = Drive::new(&spec)?.sectors() * SECTOR_BYTES;
        let bytes = self.bytes.map_or(all, |b| b.0);
        if bytes == 0 || bytes > all || !bytes.is_multiple_of(SECTOR_BYTES) {
            let why = format!(
                "has to be whole sectors of 512 bytes, at least one, and at most the {} of the drive",
                size::format(all)
            );
            return Err(Error::param("bytes", size::format(bytes), why));
        }
        Ok(DiskConfig { name: name.into(), drive: DriveModel::Mechanical(Box::new(spec)), bytes, serial: 0 })
    }

    /// Returns the first of these keys that has a value, with the value as text.
    fn given_of(&self, keys: &[&str]) -> Option<(&'static str, String)> {
        self.given_keys().into_iter().find(|(k, _)| keys.contains(&k.name)).map(|(k, value)| (k.name, value))
    }

    fn solid_state(&self, name: &str) -> Result<DiskConfig> {
        if let Some((key, value)) = self.given_of(&MECHANICAL_KEYS) {
            return Err(Error::param(key, value, "is not a key of a solid-state drive"));
        }
        let drive = SolidStateDrive {
            units: need("units", self.units)?,
            interleave_bytes: bytes32("interleave_bytes", self.interleave_bytes)?,
            t_read: duration("t_read", self.t_read.as_ref().map(|t| t.one("t_read")).transpose()?)?,
            t_write: duration("t_write", self.t_write)?,
            t_flush: duration("t_flush", self.t_flush)?,
            read_ps_per_byte: ps_per_byte("read_mb_per_s", self.read_mb_per_s)?,
            write_ps_per_byte: ps_per_byte("write_mb_per_s", self.write_mb_per_s)?,
        };
        drive.check()?;
        let bytes = need("bytes", self.bytes)?.0;
        if bytes == 0 || bytes > SOLID_STATE_BYTES_MAX || !bytes.is_multiple_of(SECTOR_BYTES) {
            let why = "has to be whole sectors of 512 bytes, at least one, and at most 1 PiB";
            return Err(Error::param("bytes", size::format(bytes), why));
        }
        Ok(DiskConfig { name: name.into(), drive: DriveModel::SolidState(drive), bytes, serial: 0 })
    }

    fn object(&self, name: &str) -> Result<ObjectConfig> {
        let object_bytes = match self.object_bytes {
            Some(b) => bytes32("object_bytes", Some(b))?,
            None => DEFAULT_OBJECT_BYTES,
        };
        let config = ObjectConfig {
            name: name.into(),
            object_bytes,
            objects: need("objects", self.objects)?,
            connections: need("connections", self.connections)?,
            timing: ObjectTiming {
                t_put: duration("t_put", self.t_put)?,
                t_get: duration("t_get", self.t_get)?,
                t_delete: duration("t_delete", self.t_delete)?,
                connection_ps_per_byte: ps_per_byte("connection_mb_per_s", self.connection_mb_per_s)?,
                link_ps_per_byte: ps_per_byte("link_mb_per_s", self.link_mb_per_s)?,
            },
            serial: 0,
        };
        config.check()?;
        Ok(config)
    }
}

fn missing(key: &str, why: &str) -> Error {
    Error::param(key, "(not given)", why)
}

fn need<T>(key: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| {
        let help = KEYS.iter().find(|k| k.name == key).map_or("", |k| k.help);
        missing(key, &format!("is needed, here or in the profile: {help}"))
    })
}

fn bytes32(key: &str, value: Option<ByteSize>) -> Result<u32> {
    let ByteSize(n) = need(key, value)?;
    u32::try_from(n)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| Error::param(key, size::format(n), "has to be at least 1 byte and less than 4 GiB"))
}

/// Returns the transfer time of a byte at a bandwidth in MB/s.
fn ps_per_byte(key: &str, mb_per_s: Option<f64>) -> Result<u64> {
    let mb_per_s = need(key, mb_per_s)?;
    if !(0.001..=1e6).contains(&mb_per_s) {
        return Err(Error::param(key, mb_per_s, "has to be 0.001 to 1 000 000 MB/s"));
    }
    Ok((1e6 / mb_per_s).round() as u64)
}

fn duration(key: &str, value: Option<Picos>) -> Result<Nanos> {
    let t = need(key, value)?;
    if t.nanos() == Nanos::ZERO {
        return Err(Error::param(key, t, "has to be at least 1 ns"));
    }
    Ok(t.nanos())
}

fn curve(key: &str, points: Option<&CurvePoints>, floor: u32) -> Result<LatencyCurve> {
    let points = need(key, points)?;
    let mut at = Vec::with_capacity(points.len());
    for &(size, time) in points {
        at.push((bytes32(key, Some(size))?, duration(key, Some(time))?));
    }
    let shown = || format!("{} points", points.len());
    if at.windows(2).any(|w| w[0].1 > w[1].1) {
        return Err(Error::param(key, shown(), "a larger access cannot take less time than a smaller one"));
    }
    LatencyCurve::new(at, floor).map_err(|why| Error::param(key, shown(), why))
}
