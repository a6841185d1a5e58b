//! Division of a disk's surfaces: zones, tracks, sectors, skews, spares.

use frit_core::{Error, Result};

/// Order in which block numbers follow the tracks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TrackOrder {
    /// All heads of a cylinder from the first to the last, then the next cylinder.
    #[default]
    Cylinders,
    /// Every second cylinder of a zone from the last head to the first, so that a cylinder switch
    /// does not change the head.
    SerpentineZone,
    /// As [`TrackOrder::SerpentineZone`], counted from the first cylinder of the disk.
    SerpentineDisk,
}

/// Location of spare sectors, and the effect of slipped sectors on them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sparing {
    /// No spares.
    #[default]
    None,
    /// Whole tracks at the end of a zone; slips and defects are track numbers.
    Tracks,
    /// Sectors at the end of each cylinder.
    CylinderEnd,
    /// Sectors at the end of each track.
    TrackEnd,
    /// Sectors at the end of each cylinder that slips do not use: slips shift all blocks that
    /// follow.
    CylinderEndSlipOn,
    /// Sectors at the front of each cylinder.
    CylinderFront,
    /// Sectors at the front of each cylinder that slips do not use.
    CylinderFrontSlipOn,
    /// Sectors at the end of the disk.
    DiskEnd,
    /// Sectors at the end of each range of cylinders.
    Range,
    /// Sectors at the end of each zone.
    ZoneEnd,
    /// Sectors at the end of each zone that slips do not use.
    ZoneEndSlipOn,
}

/// A range of cylinders with the same number of sectors per track.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors of 512 bytes per track.
    pub sectors_per_track: u32,
    /// Angle of the first sector of the zone, in sectors.
    pub offset: f64,
    /// Number of sectors at the front of the zone that hold no blocks.
    pub reserved: u64,
    /// Angle from the end of a track to the start of the next one in the same cylinder, in sectors.
    pub track_skew: f64,
    /// Angle from the end of a cylinder to the start of the next one, in sectors.
    pub cylinder_skew: f64,
    /// Number of spare sectors (or tracks) in each region that has spares according to [`Sparing`].
    pub spares: u64,
    /// Sectors (or tracks) of the zone that are skipped, in ascending order.
    pub slips: Vec<u64>,
    /// Sectors (or tracks) of the zone that are remapped within it: `(original location, new
    /// location)`.
    pub defects: Vec<(u64, u64)>,
}

/// Geometry of a disk.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct DiskGeometry {
    /// Number of surfaces with data.
    pub heads: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Order of blocks.
    pub mapping: TrackOrder,
    /// Location of spares.
    pub sparing: Sparing,
    /// Cylinders per range, for [`Sparing::Range`].
    pub range_cylinders: u32,
    /// The zones from the outermost on.
    pub zones: Vec<Zone>,
}

impl DiskGeometry {
    /// Checks that the geometry is possible.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        if self.heads == 0 || self.heads > 256 {
            return Err(Error::param("heads", self.heads, "has to be 1 to 256"));
        }
        if self.cylinders == 0 || self.cylinders > super::seek::CYLINDERS_MAX {
            return Err(Error::param("cylinders", self.cylinders, "has to be 1 to 4000000"));
        }
        if self.zones.is_empty() {
            return Err(Error::param("zones", "none", "has to be at least one"));
        }
        if self.sparing == Sparing::Range && self.range_cylinders == 0 {
            return Err(Error::param("range for sparing", 0, "has to be at least one cylinder"));
        }
        let mut next = 0;
        for (i, z) in self.zones.iter().enumerate() {
            z.check(i, self, next)?;
            next = z.last_cylinder + 1;
        }
        Ok(())
    }
}

impl Zone {
    /// Number of cylinders in the zone.
    #[must_use]
    pub fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }

    fn check(&self, index: usize, geometry: &DiskGeometry, next: u32) -> Result<()> {
        let at = |what: &str| format!("{what} of zone {index}");
        if self.first_cylinder < next {
            let why = format!("overlaps the zone before it, which ends at cylinder {}", next - 1);
            return Err(Error::param(&at("first cylinder"), self.first_cylinder, why));
        }
        // One cylinder more is accepted: the validated DiskSim model of the HP C2490A counts its
        // last cylinder so.
        if self.last_cylinder < self.first_cylinder || self.last_cylinder > geometry.cylinders {
            let why =
                format!("has to be {} to {}", self.first_cylinder, geometry.cylinders.saturating_sub(1));
            return Err(Error::param(&at("last cylinder"), self.last_cylinder, why));
        }
        if !(1..=1 << 20).contains(&self.sectors_per_track) {
            return Err(Error::param(
                &at("sectors per track"),
                self.sectors_per_track,
                "has to be 1 to 1048576",
            ));
        }
        let turns = |x: f64| x.is_finite() && x.abs() <= 16.0 * f64::from(self.sectors_per_track);
        for (what, x) in
            [("offset", self.offset), ("track skew", self.track_skew), ("cylinder skew", self.cylinder_skew)]
        {
            if !turns(x) {
                return Err(Error::param(&at(what), x, "is more than 16 revolutions"));
            }
        }
        Ok(())
    }
}
