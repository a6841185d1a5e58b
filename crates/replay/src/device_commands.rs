//! Commands of a trace for a solid-state cache or a zoned device: they go to that interface of the
//! top layer.

use crate::verify::Verifier;
use frit_core::{
    CacheAccess, CacheCommand, CacheReply, Error, Result, SECTOR_BYTES, Sector, Sink, StackDevice, WriteData,
    ZoneAccess, ZoneAction,
};
use frit_trace::{CommandSet, DeviceCommand, Request};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of bytes in one write command of a cache, unless a block is larger: 1 MiB, as in the
/// parts of a request of NBD. Longer requests are several commands.
const BYTES_PER_WRITE_MAX: u32 = 1 << 20;

/// Requests with one command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CommandReport {
    /// Name of the command.
    pub command: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes that they cover.
    pub bytes: u64,
    /// Blocks that were present; `None` for commands that do not look for blocks.
    pub hits: Option<u64>,
    /// Blocks that were absent.
    pub misses: Option<u64>,
}

/// Effect of a command.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CommandEffect {
    /// Blocks that were present.
    pub(crate) hits: u64,
    /// Blocks that were absent.
    pub(crate) misses: u64,
    /// Number of bytes that were read.
    pub(crate) read_bytes: u64,
    /// First sector that was written; `None` if the command writes no data.
    pub(crate) written: Option<Sector>,
}

/// Counts of the commands of a phase, by command.
#[derive(Clone, Default, Debug)]
pub(crate) struct CommandCounts(BTreeMap<DeviceCommand, CommandCount>);

#[derive(Clone, Copy, Default, Debug)]
struct CommandCount {
    requests: u64,
    bytes: u64,
    hits: u64,
    misses: u64,
}

impl CommandCounts {
    /// Counts a request.
    pub(crate) fn count(&mut self, command: DeviceCommand, r: &Request, effect: &CommandEffect) {
        let c = self.0.entry(command).or_default();
        c.requests += 1;
        c.bytes += r.bytes();
        c.hits += effect.hits;
        c.misses += effect.misses;
    }

    /// Returns the commands that occurred.
    pub(crate) fn report(&self) -> Vec<CommandReport> {
        let row = |(&command, c): (&DeviceCommand, &CommandCount)| {
            let looks = matches!(command, DeviceCommand::ReadOrMiss | DeviceCommand::Exists);
            CommandReport {
                command: command.name(),
                requests: c.requests,
                bytes: c.bytes,
                hits: looks.then_some(c.hits),
                misses: looks.then_some(c.misses),
            }
        };
        self.0.iter().map(row).collect()
    }
}

/// Executes a command on the top layer of a stack.
///
/// # Errors
/// The layer has no such interface; the request has not whole blocks or zones; the errors of
/// [`CacheAccess`] and [`ZoneAccess`].
pub(crate) fn execute(
    layer: &mut dyn StackDevice,
    verifier: Option<&mut Verifier>,
    sink: &mut Sink,
    command: DeviceCommand,
    r: &Request,
) -> Result<CommandEffect> {
    let name = layer.info().name;
    match command.set() {
        CommandSet::Cache => match layer.cache_access() {
            Some(access) => Cache { access, sink, verifier }.execute(command, r),
            None => Err(unknown(name, command, &frit_stack::layers::with_cache_access())),
        },
        CommandSet::Zones => match layer.zone_access() {
            Some(access) => Zones { access, sink, verifier }.execute(command, r),
            None => Err(unknown(name, command, &frit_stack::layers::with_zone_access())),
        },
    }
}

/// Returns the error of a command that the top layer does not know.
#[cold]
fn unknown(layer: &str, command: DeviceCommand, known_by: &[&str]) -> Error {
    let why = format!(
        "the top layer {layer} does not know this command; layers that know it, as the top layer of a stack: {}",
        known_by.join(", ")
    );
    Error::param("command", command.name(), why)
}

/// A solid-state cache.
struct Cache<'a> {
    access: &'a mut dyn CacheAccess,
    sink: &'a mut Sink,
    verifier: Option<&'a mut Verifier>,
}

impl Cache<'_> {
    fn execute(&mut self, command: DeviceCommand, r: &Request) -> Result<CommandEffect> {
        let block_bytes = self.access.cache_info().block_bytes;
        let blocks = blocks_of(r, block_bytes)?;
        match command {
            DeviceCommand::WriteDirty | DeviceCommand::WriteClean => {
                self.write(command == DeviceCommand::WriteClean, blocks, block_bytes)?;
                return Ok(CommandEffect { written: Some(r.sector), ..CommandEffect::default() });
            }
            DeviceCommand::Evict => {
                self.access.execute(self.sink, CacheCommand::Evict(blocks))?;
                if let Some(v) = &mut self.verifier {
                    v.removed(r.sector, u64::from(r.sectors));
                }
            }
            DeviceCommand::Clean => {
                self.access.execute(self.sink, CacheCommand::Clean(blocks))?;
                if let Some(v) = &mut self.verifier {
                    v.cleaned(r.sector, u64::from(r.sectors));
                }
            }
            DeviceCommand::Exists => return self.exists(blocks),
            _ => return self.read(blocks, block_bytes),
        }
        Ok(CommandEffect::default())
    }

    fn write(&mut self, clean: bool, blocks: Range<u32>, block_bytes: u32) -> Result<()> {
        let most = (BYTES_PER_WRITE_MAX / block_bytes).max(1);
        let mut buffer = Vec::new();
        for first in blocks.clone().step_by(most as usize) {
            let n = most.min(blocks.end - first);
            let at = sector_of(first, block_bytes);
            buffer.resize(n as usize * block_bytes as usize, 0);
            if let Some(v) = &mut self.verifier {
                v.generate(at, &mut buffer);
            }
            let data = &buffer[..];
            let command = match clean {
                true => CacheCommand::WriteClean { first, data },
                false => CacheCommand::WriteDirty { first, data },
            };
            self.access.execute(self.sink, command)?;
            if let Some(v) = &mut self.verifier {
                v.written(at, buffer.len(), clean);
            }
        }
        Ok(())
    }

    fn read(&mut self, blocks: Range<u32>, block_bytes: u32) -> Result<CommandEffect> {
        let mut effect = CommandEffect::default();
        let mut buffer = vec![0; block_bytes as usize];
        for block in blocks {
            let at = sector_of(block, block_bytes);
            if self.verifier.is_some() {
                Verifier::poison(&mut buffer);
            }
            let command = CacheCommand::Read { block, into: &mut buffer };
            let hit = self.access.execute(self.sink, command)? == CacheReply::Done;
            effect.hits += u64::from(hit);
            effect.misses += u64::from(!hit);
            if let Some(v) = &mut self.verifier {
                v.read_or_miss(at, hit, &buffer);
            }
        }
        effect.read_bytes = effect.hits * u64::from(block_bytes);
        Ok(effect)
    }

    fn exists(&mut self, blocks: Range<u32>) -> Result<CommandEffect> {
        let asked = u64::from(blocks.end - blocks.start);
        let mut found = Vec::new();
        self.access.execute(self.sink, CacheCommand::Exists { blocks, found: &mut found })?;
        let hits = found.len() as u64;
        Ok(CommandEffect { hits, misses: asked - hits, ..CommandEffect::default() })
    }
}

/// A zoned device.
struct Zones<'a> {
    access: &'a mut dyn ZoneAccess,
    sink: &'a mut Sink,
    verifier: Option<&'a mut Verifier>,
}

impl Zones<'_> {
    fn execute(&mut self, command: DeviceCommand, r: &Request) -> Result<CommandEffect> {
        let zone_sectors = self.access.zoned_info().zone_sectors;
        let first = zone_at(r, zone_sectors)?;
        let Some(action) = command.zone_action() else {
            return self.append(first, r);
        };
        if !u64::from(r.sectors).is_multiple_of(zone_sectors) {
            let why = format!("has to be whole zones of {zone_sectors} sectors");
            return Err(Error::param("sectors", r.sectors, why));
        }
        // A length of 32 bits divided by at least one.
        let zones = (u64::from(r.sectors) / zone_sectors) as u32;
        for zone in first..first.saturating_add(zones) {
            self.access.manage(self.sink, zone, action)?;
            if let (ZoneAction::Reset, Some(v)) = (action, &mut self.verifier) {
                v.removed(Sector(u64::from(zone) * zone_sectors), zone_sectors);
            }
        }
        Ok(CommandEffect::default())
    }

    fn append(&mut self, zone: u32, r: &Request) -> Result<CommandEffect> {
        let len = u32::try_from(r.bytes()).map_err(|_| {
            Error::param("append", format!("{} bytes", r.bytes()), "has to be less than 4 GiB")
        })?;
        let at = match (&mut self.verifier, self.access.zone(zone)) {
            (Some(v), Some(info)) => {
                // The contents name their sector, which the device chooses: the write pointer.
                let mut buffer = vec![0; len as usize];
                v.generate(info.write_pointer, &mut buffer);
                let at = self.access.append(self.sink, zone, WriteData::Bytes(&buffer))?;
                v.written(at, buffer.len(), false);
                at
            }
            _ => self.access.append(self.sink, zone, WriteData::Len(len))?,
        };
        Ok(CommandEffect { written: Some(at), ..CommandEffect::default() })
    }
}

/// Returns the blocks of a request.
fn blocks_of(r: &Request, block_bytes: u32) -> Result<Range<u32>> {
    let sectors = u64::from(block_bytes) / SECTOR_BYTES;
    if !r.sector.0.is_multiple_of(sectors) || !u64::from(r.sectors).is_multiple_of(sectors) {
        let why = format!(
            "a command has whole blocks of the cache, which have {sectors} sectors ({block_bytes} bytes)"
        );
        return Err(Error::param("request", format!("{} sectors at sector {}", r.sectors, r.sector.0), why));
    }
    let block = |sector: u64| {
        u32::try_from(sector / sectors)
            .map_err(|_| Error::param("sector", sector, "is behind the last block"))
    };
    Ok(block(r.sector.0)?..block(r.end())?)
}

fn sector_of(block: u32, block_bytes: u32) -> Sector {
    Sector(u64::from(block) * (u64::from(block_bytes) / SECTOR_BYTES))
}

/// Returns the zone that begins at the first sector of a request.
fn zone_at(r: &Request, zone_sectors: u64) -> Result<u32> {
    if !r.sector.0.is_multiple_of(zone_sectors) {
        let why = format!("has to be the first sector of a zone; zones have {zone_sectors} sectors");
        return Err(Error::param("sector", r.sector.0, why));
    }
    u32::try_from(r.sector.0 / zone_sectors)
        .map_err(|_| Error::param("sector", r.sector.0, "is behind the last zone"))
}
