//! Profiles of drives: values from data sheets, with the source of each.

use super::geometry::{DiskGeometry, Sparing, TrackOrder, Zone};
use super::seek::SeekCurve;
use super::spec::{
    Background, Bus, CacheSpec, DiskSpec, DriveScheduler, MAX_WAIT, Mechanics, OverheadAfter, Overheads,
    Positioning, ReadAhead, WriteBack,
};
use crate::profile::{ByteSize, Picos, name_of};
use frit_core::files::{self, TEXT_BYTES_MAX};
use frit_core::text::unknown_field;
use frit_core::{Error, Result, SECTOR_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const BUILTINS: [&str; 3] = [
    include_str!("../../profiles/disk/st3500320as-2008.toml"),
    include_str!("../../profiles/disk/wd1502faex-2010.toml"),
    include_str!("../../profiles/disk/exos-x18-2020.toml"),
];

/// A drive as its data sheet describes it. Zones have equal widths, and the capacity of their
/// tracks decreases from the first zone to the last.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveConfig {
    /// Sectors of 512 bytes that are visible to the host.
    pub sectors: u64,
    /// Number of surfaces with data.
    pub heads: u32,
    /// Number of zones.
    pub zones: u32,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Sustained rate of the first zone, in MB/s (10^6 bytes per second).
    pub outer_mb_per_s: f64,
    /// Sustained rate of the last zone, in MB/s.
    pub inner_mb_per_s: f64,
    /// Seek to the next cylinder, for reads.
    pub single_seek: Picos,
    /// Average seek, for reads.
    pub average_seek: Picos,
    /// Seek over all cylinders, for reads.
    pub full_seek: Picos,
    /// Additional seek time of writes.
    pub write_settle: Picos,
    /// Switch to another head.
    pub head_switch: Picos,
    /// Skew between the tracks of a cylinder, as a time.
    pub track_skew: Picos,
    /// Skew between cylinders, as a time.
    pub cylinder_skew: Picos,
    /// Command overhead before the arm or a transfer starts.
    pub command_overhead: Picos,
    /// Rate of the bus, in MB/s.
    pub bus_mb_per_s: f64,
    /// Size of the cache.
    pub cache_bytes: ByteSize,
    /// Number of segments into which the cache is divided for reads.
    pub cache_segments: u32,
    /// The drive reads ahead until a segment is full.
    pub read_ahead: bool,
    /// Writes are acknowledged from the cache.
    pub write_back: bool,
    /// Maximum size of the dirty data in the cache.
    pub dirty_bytes: ByteSize,
    /// Maximum number of requests that the drive accepts at a time.
    pub queue_depth: u32,
    /// Order in which the drive serves them.
    pub scheduler: DriveScheduler,
}

/// A named drive.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskProfile {
    /// Name of the profile.
    pub name: String,
    /// Description of the drive, and of the properties that are not known.
    pub about: String,
    /// Values of the drive.
    pub values: DriveConfig,
    /// Source of each value, by key.
    pub sources: BTreeMap<String, String>,
}

/// Page that lists all keys of a disk profile, for errors.
const KEYS_PAGE: &str = "docs/reference/disk.md lists the keys";

impl DiskProfile {
    /// Parses a profile from TOML.
    ///
    /// # Errors
    /// Text that is not a profile, with the line; a value without a source, or a source without a
    /// value.
    pub fn parse(text: &str) -> Result<DiskProfile> {
        let p: DiskProfile = toml::from_str(text)
            .map_err(|e| Error::param("disk profile", "", unknown_field(&e.to_string(), KEYS_PAGE)))?;
        let keys: Vec<String> = p.rows()?.into_iter().map(|r| r.0).collect();
        if let Some(key) = keys.iter().find(|k| !p.sources.contains_key(*k)) {
            return Err(Error::param(
                &format!("sources.{key}"),
                "",
                "is missing; state the source of the value",
            ));
        }
        if let Some(key) = p.sources.keys().find(|k| !keys.contains(k)) {
            return Err(Error::param(&format!("sources.{key}"), key, "is not a value of a disk"));
        }
        Ok(p)
    }

    /// Returns all built-in drives.
    ///
    /// # Errors
    /// None; a unit test parses all built-in drives.
    pub fn builtins() -> Result<Vec<DiskProfile>> {
        BUILTINS.iter().map(|t| DiskProfile::parse(t)).collect()
    }

    /// Returns a built-in drive.
    ///
    /// # Errors
    /// An unknown name; the message lists the built-in drives.
    pub fn builtin(name: &str) -> Result<DiskProfile> {
        let text = BUILTINS.iter().find(|text| name_of(text) == name).ok_or_else(|| {
            let names = BUILTINS.map(name_of).join(", ");
            let why =
                format!("no such disk; there are {names}, or give the path of a .toml or .diskspecs file");
            Error::param("disk", name, why)
        })?;
        DiskProfile::parse(text)
    }

    /// Reads a drive from a TOML file.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a profile.
    pub fn load(path: &Path) -> Result<DiskProfile> {
        let text = files::read_text(path, TEXT_BYTES_MAX).map_err(|source| Error::Io {
            what: format!("cannot read the disk {}", path.display()),
            source,
        })?;
        DiskProfile::parse(&text).map_err(|e| match e {
            Error::Param { key, why, .. } => Error::param(&key, path.display(), why),
            other => other,
        })
    }

    /// Keys, values as text, and sources, for tables.
    ///
    /// # Errors
    /// None for a profile that was parsed.
    pub fn rows(&self) -> Result<Vec<(String, String, String)>> {
        let table = toml::Table::try_from(&self.values)
            .map_err(|e| Error::param("disk profile", &self.name, e.to_string()))?;
        let row = |(key, value): (String, toml::Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let source = self.sources.get(&key).cloned().unwrap_or_default();
            (key, text, source)
        };
        Ok(table.into_iter().map(row).collect())
    }

    /// Returns the parameters of the drive.
    ///
    /// # Errors
    /// Values that no drive can have.
    pub fn spec(&self) -> Result<DiskSpec> {
        self.values.spec(&self.name)
    }
}

impl DriveConfig {
    /// Returns the parameters of the drive with these values; `name` becomes its name.
    ///
    /// # Errors
    /// Values that no drive can have.
    pub fn spec(&self, name: &str) -> Result<DiskSpec> {
        let v = self;
        v.check()?;
        let revolution_ps = (60e12 / f64::from(v.rpm)).round() as u64;
        let bus_ps = (SECTOR_BYTES as f64 * 1e6 / v.bus_mb_per_s).round() as u64;
        let after = OverheadAfter { read: v.command_overhead.nanos(), write: v.command_overhead.nanos() };
        let segment = v.cache_bytes.0 / SECTOR_BYTES / u64::from(v.cache_segments.max(1));
        let spec = DiskSpec {
            name: name.into(),
            geometry: v.geometry(revolution_ps)?,
            mechanics: Mechanics {
                positioning: Positioning::Full,
                revolution_ps,
                seek: SeekCurve::Curve {
                    single: v.single_seek.nanos(),
                    average: v.average_seek.nanos(),
                    full: v.full_seek.nanos(),
                },
                head_switch: v.head_switch.nanos(),
                write_settle_ns: v.write_settle.nanos().0 as i64,
            },
            overheads: Overheads {
                read_hit: after,
                read_miss: after,
                write_hit: after,
                write_miss: after,
                ..Overheads::default()
            },
            bus: Bus { read_ps: bus_ps, write_ps: bus_ps, watermark_of_request: true, ..Bus::default() },
            cache: CacheSpec {
                enabled: true,
                segments: v.cache_segments,
                segment_sectors: segment.clamp(1, 1 << 30) as u32,
                read_ahead: if v.read_ahead { ReadAhead::Segment } else { ReadAhead::Off },
                read_on_arrival: true,
                read_free_blocks: true,
                almost_hits: true,
                write_back: if v.write_back { WriteBack::Full } else { WriteBack::Off },
                dirty_sectors: (v.dirty_bytes.0 / SECTOR_BYTES).min(1 << 30) as u32,
                ..CacheSpec::default()
            },
            queue_depth: v.queue_depth,
            scheduler: v.scheduler,
            max_wait: MAX_WAIT,
            background: Background::Yield,
        };
        spec.check_buildable()?;
        Ok(spec)
    }

    fn check(&self) -> Result<()> {
        let rate = |key: &str, x: f64| {
            let fits = (0.1..=100_000.0).contains(&x);
            if fits { Ok(()) } else { Err(Error::param(key, x, "has to be 0.1 to 100000 MB/s")) }
        };
        rate("outer_mb_per_s", self.outer_mb_per_s)?;
        rate("inner_mb_per_s", self.inner_mb_per_s)?;
        rate("bus_mb_per_s", self.bus_mb_per_s)?;
        if !(1..=1000).contains(&self.zones) {
            return Err(Error::param("zones", self.zones, "has to be 1 to 1000"));
        }
        if !(1..=256).contains(&self.heads) {
            return Err(Error::param("heads", self.heads, "has to be 1 to 256"));
        }
        if !(100..=1_000_000).contains(&self.rpm) {
            return Err(Error::param("rpm", self.rpm, "has to be 100 to 1000000"));
        }
        if self.sectors == 0 || self.sectors > 1 << 44 {
            return Err(Error::param("sectors", self.sectors, "has to be 1 to 2^44"));
        }
        Ok(())
    }

    /// Derives zones whose tracks yield the sustained rates, and enough cylinders for the capacity.
    fn geometry(&self, revolution_ps: u64) -> Result<DiskGeometry> {
        let heads = f64::from(self.heads);
        let turn = revolution_ps as f64 / 1e12;
        let seconds = |t: Picos| t.0 as f64 / 1e12;
        // The time of a cylinder is one revolution per head, plus the skews between them.
        let cylinder = heads * turn + (heads - 1.0) * seconds(self.track_skew) + seconds(self.cylinder_skew);
        let track = |mb: f64| mb * 1e6 * cylinder / heads / SECTOR_BYTES as f64;
        let (outer, inner) = (track(self.outer_mb_per_s), track(self.inner_mb_per_s));
        let last = f64::from(self.zones.max(2) - 1);
        let tracks: Vec<u32> = (0..self.zones)
            .map(|i| (outer + (inner - outer) * f64::from(i) / last).round().max(1.0) as u32)
            .collect();
        let per_cylinder: u64 = tracks.iter().map(|&n| u64::from(n) * u64::from(self.heads)).sum();
        let width = self.sectors.div_ceil(per_cylinder);
        let cylinders = width * u64::from(self.zones);
        if cylinders > u64::from(super::seek::CYLINDERS_MAX) {
            let why = format!("needs {cylinders} cylinders of these tracks; at most 4000000 are supported");
            return Err(Error::param("sectors", self.sectors, why));
        }
        let mut spare = width * per_cylinder - self.sectors;
        let mut zones: Vec<Zone> = Vec::with_capacity(tracks.len());
        // Surplus sectors become spares, from the innermost zone outward, so that the drive has
        // exactly the stated capacity.
        for (i, &n) in tracks.iter().enumerate().rev() {
            let all = width * u64::from(n) * u64::from(self.heads);
            let spares = spare.min(all - 1);
            spare -= spares;
            let skew = |t: Picos| seconds(t) / turn * f64::from(n);
            zones.push(Zone {
                first_cylinder: (i as u64 * width) as u32,
                last_cylinder: ((i as u64 + 1) * width - 1) as u32,
                sectors_per_track: n,
                track_skew: skew(self.track_skew),
                cylinder_skew: skew(self.cylinder_skew),
                spares,
                ..Zone::default()
            });
        }
        zones.reverse();
        Ok(DiskGeometry {
            heads: self.heads,
            cylinders: cylinders as u32,
            mapping: TrackOrder::Cylinders,
            sparing: Sparing::ZoneEnd,
            range_cylinders: 1,
            zones,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Drive, characteristics};

    #[test]
    fn builtins_are_the_drives_that_their_sheets_describe() {
        for (p, text) in DiskProfile::builtins().unwrap().into_iter().zip(BUILTINS) {
            assert_eq!(name_of(text), p.name);
            let spec = p.spec().unwrap();
            assert_eq!(Drive::new(&spec).unwrap().sectors(), p.values.sectors, "{}", p.name);
            let z = characteristics::zones(&spec).unwrap();
            let near = |zone: usize, mb: f64| (z[zone].bytes_per_second / mb / 1e6 - 1.0).abs() < 0.01;
            assert!(near(0, p.values.outer_mb_per_s), "{}", p.name);
            assert!(near(z.len() - 1, p.values.inner_mb_per_s), "{}", p.name);
            let average = characteristics::seeks(&spec).unwrap().average.0 as f64;
            assert!((average / p.values.average_seek.nanos().0 as f64 - 1.0).abs() < 0.01, "{}", p.name);
        }
    }

    #[test]
    fn every_value_needs_its_source() {
        let text = BUILTINS[0];
        let without: String =
            text.lines().filter(|l| !l.starts_with("zones = \"")).map(|l| format!("{l}\n")).collect();
        assert!(DiskProfile::parse(&without).unwrap_err().to_string().contains("sources.zones"));
        let more = format!("{text}\nwings = \"none\"\n");
        assert!(DiskProfile::parse(&more).unwrap_err().to_string().contains("sources.wings"));
        assert!(DiskProfile::builtin("st1").unwrap_err().to_string().contains("exos-x18-2020"));
    }

    #[test]
    fn impossible_values_are_refused() {
        let p = DiskProfile::builtin("wd1502faex-2010").unwrap();
        let refused = |f: fn(&mut DriveConfig)| {
            let mut p = p.clone();
            f(&mut p.values);
            p.spec().is_err()
        };
        assert!(refused(|v| v.rpm = 0));
        assert!(refused(|v| v.heads = 0));
        assert!(refused(|v| v.zones = 0));
        assert!(refused(|v| v.outer_mb_per_s = f64::NAN));
        assert!(refused(|v| v.sectors = u64::MAX));
        assert!(refused(|v| v.cache_segments = 0));
    }
}
