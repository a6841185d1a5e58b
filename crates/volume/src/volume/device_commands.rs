//! Commands of devices that are more than a block device: caches, nameless-write devices, zoned devices.

use super::Volume;
use frit_core::nameless_access::{execute_nameless, nameless_info};
use frit_core::zone_access::{check_zone_read, report_zones};
use frit_core::{
    CacheCommand, CacheInfo, CacheReply, Hints, NamelessCommand, NamelessDevice, NamelessInfo, ReadTarget,
    Result as CoreResult, Sink, WriteData, ZoneCommand, ZoneInfo, ZonedInfo,
};

/// Returns the error of a command of a cache on another layer.
fn no_cache() -> frit_core::Error {
    let why =
        "the layer of this volume is no solid-state cache; use a stack whose upper layer has the kind `ssc`";
    frit_core::Error::param("cache command", "", why)
}

/// Returns the error of a command of a nameless-write device on another layer.
fn no_nameless() -> frit_core::Error {
    let why = "the layer of this volume is no nameless-write device; use a stack whose upper layer has the kind \
               `nameless-device`";
    frit_core::Error::param("nameless command", "", why)
}

/// Returns the error of a command of a zoned device on another layer.
fn no_zones() -> frit_core::Error {
    let why = "the layer of this volume has no zones; use a stack whose upper layer has the kind `zns`";
    frit_core::Error::param("zone command", "", why)
}

impl Volume {
    /// Returns the sizes and the state of a volume that is a solid-state cache.
    ///
    /// # Errors
    /// The layer of the volume is none.
    pub fn cache_info(&mut self) -> CoreResult<CacheInfo> {
        Ok(self.layer.cache_access().ok_or_else(no_cache)?.cache_info())
    }

    /// Gives a command to a volume that is a solid-state cache. Changes survive a power loss after
    /// [`Volume::flush`], or at once if [`CacheInfo::durable_on_ack`].
    ///
    /// # Errors
    /// The layer of the volume is none; the errors of [`frit_core::CacheAccess::execute`].
    pub fn cache_command(&mut self, command: CacheCommand<'_>) -> CoreResult<CacheReply> {
        if !matches!(command, CacheCommand::Read { .. } | CacheCommand::Exists { .. }) {
            self.writable()?;
        }
        let access = self.layer.cache_access().ok_or_else(no_cache)?;
        let done = access.execute(&mut self.sink, command);
        self.check_files_on_error(done)
    }

    /// Calls `access` with the nameless-write device that the layer of the volume is. Its changes survive a
    /// power loss after a flush: [`Volume::flush`], or that of the device. `changes` states that the access
    /// changes the device.
    ///
    /// # Errors
    /// The layer of the volume is none; changes of a volume that was opened read-only; the errors of
    /// `access`.
    pub fn nameless_device<R>(
        &mut self,
        changes: bool,
        access: impl FnOnce(&mut dyn NamelessDevice, &mut Sink) -> CoreResult<R>,
    ) -> CoreResult<R> {
        if changes {
            self.writable()?;
        }
        let device = self.layer.nameless_device().ok_or_else(no_nameless)?;
        let done = access(device, &mut self.sink);
        self.check_files_on_error(done)
    }

    /// Returns the sizes and the state of a volume that is a nameless-write device.
    ///
    /// # Errors
    /// The layer of the volume is none.
    pub fn nameless_info(&mut self) -> CoreResult<NamelessInfo> {
        self.nameless_device(false, |device, _| Ok(nameless_info(device)))
    }

    /// Gives a command to a volume that is a nameless-write device.
    ///
    /// # Errors
    /// The layer of the volume is none; the errors of [`frit_core::NamelessDevice`].
    pub fn nameless_command(&mut self, command: NamelessCommand<'_>) -> CoreResult<()> {
        self.nameless_device(command.changes(), |device, sink| execute_nameless(device, sink, command))
    }

    /// Returns the sizes and the limits of a volume that is a zoned device.
    ///
    /// # Errors
    /// The layer of the volume is none.
    pub fn zoned_info(&mut self) -> CoreResult<ZonedInfo> {
        Ok(self.layer.zone_access().ok_or_else(no_zones)?.zoned_info())
    }

    /// Returns zones of a volume that is a zoned device: those from `first` on, at most `most` of them.
    ///
    /// # Errors
    /// The layer of the volume is none; a zone that does not exist.
    pub fn zones(&mut self, first: u32, most: usize) -> CoreResult<Vec<ZoneInfo>> {
        report_zones(self.layer.zone_access().ok_or_else(no_zones)?, first, most)
    }

    /// Gives a command to a volume that is a zoned device. Appends survive a power loss after
    /// [`Volume::flush`], a finish and a reset at once.
    ///
    /// # Errors
    /// The layer of the volume is none; the errors of [`frit_core::ZoneAccess`] and of
    /// [`check_zone_read`].
    pub fn zone_command(&mut self, command: ZoneCommand<'_>) -> CoreResult<()> {
        if command.changes() {
            self.writable()?;
        }
        let access = self.layer.zone_access().ok_or_else(no_zones)?;
        let done = match command {
            ZoneCommand::Manage { zone, action } => access.manage(&mut self.sink, zone, action),
            ZoneCommand::Append { zone, data, at } => {
                let appended = access.append(&mut self.sink, zone, WriteData::Bytes(data));
                appended.map(|sector| *at = sector)
            }
            ZoneCommand::Read { at, into } => {
                check_zone_read(access, at, into.len())?;
                self.layer.read(&mut self.sink, at, ReadTarget::Bytes(into), Hints::NONE)
            }
        };
        self.check_files_on_error(done)
    }
}
