//! Translation of block numbers into cylinders, heads and angles.
//!
//! A zone is divided into regions (tracks, cylinders, ranges, or the zone itself), each of which
//! ends or begins with its spares. A slipped sector shifts the blocks behind it by one sector,
//! within the region or to the end of the zone. Source of the schemes: the DiskSim 4.0 reference
//! manual, "Disk layout".

use super::geometry::{DiskGeometry, Sparing, TrackOrder, Zone};
use frit_core::{Error, Result};

/// Physical location of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockLocation {
    /// Index of the zone.
    pub zone: u32,
    /// Cylinder.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Sector on the track, counted without skew.
    pub sector: u32,
    /// Angle at which the sector begins, in picoseconds of a revolution.
    pub angle_ps: u64,
    /// Number of blocks, including this one, in adjacent sectors of this track.
    pub run: u32,
}

#[derive(Clone, Debug)]
struct ZoneLayout {
    first_block: u64,
    blocks: u64,
    first_cylinder: u32,
    sectors: u32,
    reserved: u64,
    region_blocks: u64,
    region_sectors: u64,
    region_front: u64,
    slips: Slips,
    defects: Vec<(u64, u64)>,
    offset_ps: u64,
    track_skew_ps: u64,
    cylinder_skew_ps: u64,
}

#[derive(Clone, Debug)]
enum Slips {
    None,
    /// `(sector, sector − slips before it in its region, slips before it in its region)`.
    Local(Vec<(u64, u64, u64)>),
    /// Slot numbers minus the number of slips before: each slip shifts all blocks that follow.
    Cumulative(Vec<u64>),
    /// Track numbers minus the number of slipped tracks before.
    Tracks(Vec<u64>),
}

/// The precomputed layout of a disk.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    bands: Vec<ZoneLayout>,
    heads: u32,
    mapping: TrackOrder,
    /// `true` if slips before a cylinder shift its angle.
    slips_skew: bool,
    /// `true` if slips before a track shift its angle.
    slips_skew_tracks: bool,
    period_ps: u64,
    blocks: u64,
}

impl Layout {
    pub(super) fn new(g: &DiskGeometry, period_ps: u64) -> Result<Layout> {
        g.check()?;
        let mut bands = Vec::with_capacity(g.zones.len());
        let mut first_block = 0;
        for (i, z) in g.zones.iter().enumerate() {
            let band = band(g, z, i, first_block, period_ps)?;
            first_block += band.blocks;
            bands.push(band);
        }
        let slips_skew = matches!(
            g.sparing,
            Sparing::CylinderEnd
                | Sparing::TrackEnd
                | Sparing::CylinderEndSlipOn
                | Sparing::CylinderFront
                | Sparing::CylinderFrontSlipOn
        );
        Ok(Layout {
            bands,
            heads: g.heads,
            mapping: g.mapping,
            slips_skew,
            slips_skew_tracks: g.sparing == Sparing::TrackEnd,
            period_ps,
            blocks: first_block,
        })
    }

    /// Number of blocks of the disk.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the first block and the number of blocks of a zone.
    pub(super) fn zone_blocks(&self, zone: usize) -> (u64, u64) {
        (self.bands[zone].first_block, self.bands[zone].blocks)
    }

    /// Returns the number of sectors per track of a zone.
    #[inline]
    pub(super) fn sectors(&self, zone: u32) -> u32 {
        self.bands[zone as usize].sectors
    }

    /// Returns the location of a block; a block past the end is treated as the last one.
    #[inline]
    pub(super) fn locate(&self, block: u64) -> BlockLocation {
        let block = block.min(self.blocks - 1);
        let zone = self.bands.partition_point(|b| b.first_block <= block) - 1;
        let band = &self.bands[zone];
        let (mut p, mut run) = band.sector_of(block - band.first_block);
        run = run.min(band.first_block + band.blocks - block);
        if !band.defects.is_empty() {
            (p, run) = band.remap(p, run);
        }
        let n = u64::from(band.sectors);
        let track = p / n;
        let sector = (p - track * n) as u32;
        let run = run.min(u64::from(band.sectors - sector)).max(1) as u32;
        let heads = u64::from(self.heads);
        let cylinder = track / heads;
        let turn = (track - cylinder * heads) as u32;
        let back = match self.mapping {
            TrackOrder::Cylinders => false,
            TrackOrder::SerpentineZone => cylinder % 2 == 1,
            TrackOrder::SerpentineDisk => (cylinder + u64::from(band.first_cylinder)) % 2 == 1,
        };
        BlockLocation {
            zone: zone as u32,
            cylinder: band.first_cylinder + cylinder as u32,
            head: if back { self.heads - 1 - turn } else { turn },
            sector,
            angle_ps: self.angle(band, cylinder, turn, sector),
            run,
        }
    }

    fn angle(&self, band: &ZoneLayout, cylinder: u64, turn: u32, sector: u32) -> u64 {
        // Skew accumulates over all head switches and cylinder switches since the start of the
        // zone.
        let switches = u64::from(turn) + u64::from(self.heads - 1) * cylinder;
        let mut sector = u64::from(sector);
        if self.slips_skew {
            let within = if self.slips_skew_tracks { u64::from(turn) } else { 0 };
            let track = cylinder * u64::from(self.heads) + within;
            sector += band.slips.before(track * u64::from(band.sectors));
        }
        let within = sector * self.period_ps / u64::from(band.sectors);
        (band.offset_ps + switches * band.track_skew_ps + cylinder * band.cylinder_skew_ps + within)
            % self.period_ps
    }

    /// Returns the first block on the track of `block`, whose location is `location`.
    pub(super) fn track_first(&self, block: u64, location: &BlockLocation) -> u64 {
        let band = &self.bands[location.zone as usize];
        // Because of slips this is a lower bound; the first block that lies on the track is near
        // it.
        let mut first = block.saturating_sub(u64::from(location.sector)).max(band.first_block);
        while first < block {
            let s = self.locate(first);
            if (s.cylinder, s.head) == (location.cylinder, location.head) {
                break;
            }
            first += u64::from(s.run);
        }
        first.min(block)
    }

    /// Returns the block after the last one on the track of `block`.
    pub(super) fn track_end(&self, block: u64, location: &BlockLocation) -> u64 {
        let mut end = block + u64::from(location.run);
        while end < self.blocks {
            let s = self.locate(end);
            if (s.cylinder, s.head) != (location.cylinder, location.head) {
                break;
            }
            end += u64::from(s.run);
        }
        end.min(self.blocks)
    }
}

impl Slips {
    fn before(&self, sector: u64) -> u64 {
        match self {
            Slips::Local(s) => s.partition_point(|x| x.0 < sector) as u64,
            Slips::Cumulative(s) => {
                s.iter().enumerate().take_while(|&(i, &x)| x + i as u64 <= sector).count() as u64
            }
            Slips::None | Slips::Tracks(_) => 0,
        }
    }
}

impl ZoneLayout {
    /// Returns the sector of the zone that holds a block of the zone, and the number of blocks,
    /// including this one, that follow without a gap.
    #[inline]
    fn sector_of(&self, block: u64) -> (u64, u64) {
        let off = block + self.reserved;
        match &self.slips {
            Slips::Tracks(slips) => {
                let n = u64::from(self.sectors);
                let track = off / n;
                let sector = off - track * n;
                let slipped = slips.partition_point(|&s| s <= track) as u64;
                ((track + slipped) * n + sector, n - sector)
            }
            Slips::None => self.in_region(off),
            Slips::Cumulative(slips) => {
                let i = slips.partition_point(|&s| s <= off);
                let (p, run) = self.in_region(off + i as u64);
                let gap = slips.get(i).map_or(u64::MAX, |s| s - off);
                (p, run.min(gap))
            }
            Slips::Local(slips) => {
                let (p, run) = self.in_region(off);
                let i = slips.partition_point(|s| s.1 <= p);
                let base = p - p % self.region_sectors;
                let slipped = match i.checked_sub(1).map(|j| slips[j]) {
                    Some((sector, _, before)) if sector >= base => before + 1,
                    _ => 0,
                };
                let gap = slips.get(i).map_or(u64::MAX, |s| s.1 - p);
                (p + slipped, run.min(gap))
            }
        }
    }

    #[inline]
    fn in_region(&self, off: u64) -> (u64, u64) {
        let region = off / self.region_blocks;
        let within = off - region * self.region_blocks;
        (region * self.region_sectors + self.region_front + within, self.region_blocks - within)
    }

    fn remap(&self, p: u64, run: u64) -> (u64, u64) {
        let i = self.defects.partition_point(|d| d.0 < p);
        match self.defects.get(i) {
            Some(&(from, to)) if from == p => (to, 1),
            Some(&(from, _)) => (p, run.min(from - p)),
            None => (p, run),
        }
    }
}

fn band(g: &DiskGeometry, z: &Zone, index: usize, first_block: u64, period_ps: u64) -> Result<ZoneLayout> {
    let n = u64::from(z.sectors_per_track);
    let per_cylinder = n * u64::from(g.heads);
    let cylinders = u64::from(z.cylinders());
    let all = per_cylinder * cylinders;
    let (region_sectors, spares) = match g.sparing {
        Sparing::None | Sparing::Tracks => (all, 0),
        Sparing::TrackEnd => (n, z.spares),
        Sparing::CylinderEnd
        | Sparing::CylinderEndSlipOn
        | Sparing::CylinderFront
        | Sparing::CylinderFrontSlipOn
        | Sparing::DiskEnd => (per_cylinder, z.spares),
        Sparing::Range => (per_cylinder * u64::from(g.range_cylinders), z.spares),
        Sparing::ZoneEnd | Sparing::ZoneEndSlipOn => (all, z.spares),
    };
    let refuse = |what: &str| {
        let why = format!("leaves no blocks of {all} sectors; give fewer {what}");
        Err(Error::param(&format!("{what} of zone {index}"), z.spares, why))
    };
    let Some(region_blocks) = region_sectors.checked_sub(spares).filter(|&b| b > 0) else {
        return refuse("spares");
    };
    let (cylinder, slipped) = (z.spares.saturating_mul(cylinders), z.slips.len() as u64);
    let lost = match g.sparing {
        Sparing::None => 0,
        Sparing::Tracks => z.spares.saturating_mul(n),
        Sparing::TrackEnd => cylinder.saturating_mul(u64::from(g.heads)),
        Sparing::CylinderEnd | Sparing::CylinderFront => cylinder,
        Sparing::CylinderEndSlipOn | Sparing::CylinderFrontSlipOn | Sparing::DiskEnd => {
            cylinder.saturating_add(slipped)
        }
        Sparing::Range => z.spares.saturating_mul(cylinders / u64::from(g.range_cylinders)),
        Sparing::ZoneEnd => z.spares,
        Sparing::ZoneEndSlipOn => z.spares.saturating_add(slipped),
    };
    let Some(blocks) = all.checked_sub(lost).and_then(|b| b.checked_sub(z.reserved)).filter(|&b| b > 0)
    else {
        return refuse("spares and reserved sectors");
    };
    let front = matches!(g.sparing, Sparing::CylinderFront | Sparing::CylinderFrontSlipOn);
    let region_front = if front { spares } else { 0 };
    let ps = |sectors: f64| {
        let turns = sectors / f64::from(z.sectors_per_track);
        ((turns - turns.floor()) * period_ps as f64).round() as u64
    };
    let mut defects = z.defects.clone();
    if g.sparing == Sparing::Tracks {
        defects = defects.iter().flat_map(|&(a, b)| (0..n).map(move |i| (a * n + i, b * n + i))).collect();
    }
    defects.retain(|d| d.0 != d.1 && d.0 < all && d.1 < all);
    defects.sort_unstable();
    Ok(ZoneLayout {
        first_block,
        blocks,
        first_cylinder: z.first_cylinder,
        sectors: z.sectors_per_track,
        reserved: z.reserved,
        region_blocks,
        region_sectors,
        region_front,
        slips: slips(g.sparing, z, region_sectors, region_blocks, region_front),
        defects,
        offset_ps: ps(z.offset),
        track_skew_ps: ps(z.track_skew),
        cylinder_skew_ps: ps(z.cylinder_skew),
    })
}

fn slips(sparing: Sparing, z: &Zone, region_sectors: u64, region_blocks: u64, front: u64) -> Slips {
    let mut sectors = z.slips.clone();
    sectors.sort_unstable();
    sectors.dedup();
    if sectors.is_empty() {
        return Slips::None;
    }
    let less_index = |v: Vec<u64>| v.into_iter().enumerate().map(|(i, s)| s - (i as u64).min(s)).collect();
    match sparing {
        Sparing::Tracks => Slips::Tracks(less_index(sectors)),
        Sparing::CylinderEndSlipOn
        | Sparing::CylinderFrontSlipOn
        | Sparing::DiskEnd
        | Sparing::ZoneEndSlipOn => {
            // Only slips among data sectors shift blocks; slips among spares have no effect.
            let slot = |s: u64| {
                let within = (s % region_sectors).checked_sub(front).filter(|&w| w < region_blocks)?;
                Some(s / region_sectors * region_blocks + within)
            };
            Slips::Cumulative(less_index(sectors.into_iter().filter_map(slot).collect()))
        }
        _ => {
            let mut out: Vec<(u64, u64, u64)> = Vec::with_capacity(sectors.len());
            for s in sectors {
                let before = match out.last() {
                    Some(l) if l.0 / region_sectors == s / region_sectors => l.2 + 1,
                    _ => 0,
                };
                out.push((s, s - before, before));
            }
            Slips::Local(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const TURN: u64 = 8_333_333_333;

    fn schemes() -> impl Strategy<Value = Sparing> {
        use Sparing::*;
        prop::sample::select(vec![
            None,
            Tracks,
            CylinderEnd,
            TrackEnd,
            CylinderEndSlipOn,
            CylinderFront,
            CylinderFrontSlipOn,
            DiskEnd,
            Range,
            ZoneEnd,
            ZoneEndSlipOn,
        ])
    }

    fn mappings() -> impl Strategy<Value = TrackOrder> {
        prop::sample::select(vec![
            TrackOrder::Cylinders,
            TrackOrder::SerpentineZone,
            TrackOrder::SerpentineDisk,
        ])
    }

    /// Two zones with at most as many slips in a region as it has spares.
    fn geometries() -> impl Strategy<Value = DiskGeometry> {
        (schemes(), mappings(), 1_u32..5, prop::collection::btree_set(0_u64..40, 0..3), 0_u64..5).prop_map(
            |(sparing, mapping, heads, slips, reserved)| {
                let zone = |first: u32, n: u32| Zone {
                    first_cylinder: first,
                    last_cylinder: first + 5,
                    sectors_per_track: n,
                    reserved,
                    spares: if matches!(sparing, Sparing::None | Sparing::DiskEnd) { 0 } else { 3 },
                    slips: match sparing {
                        Sparing::None => vec![],
                        Sparing::Tracks => slips.iter().map(|s| s % 5).collect(),
                        _ => slips.iter().copied().collect(),
                    },
                    track_skew: 2.5,
                    cylinder_skew: 4.0,
                    ..Zone::default()
                };
                let zones = vec![zone(0, 17), zone(7, 11)];
                DiskGeometry { heads, cylinders: 13, mapping, sparing, range_cylinders: 2, zones }
            },
        )
    }

    proptest! {
        /// No two blocks share a sector, and the blocks of a run lie in adjacent sectors.
        #[test]
        fn blocks_have_places_of_their_own(g in geometries()) {
            let layout = Layout::new(&g, TURN).unwrap();
            let mut taken = HashSet::new();
            for b in 0..layout.blocks() {
                let s = layout.locate(b);
                let z = &g.zones[s.zone as usize];
                prop_assert!((z.first_cylinder..=z.last_cylinder).contains(&s.cylinder), "{b}: {s:?}");
                prop_assert!(s.head < g.heads && s.sector < z.sectors_per_track);
                prop_assert!(taken.insert((s.cylinder, s.head, s.sector)), "{b} shares {s:?}");
                prop_assert!(s.angle_ps < TURN && s.run >= 1);
                if s.run > 1 && b + 1 < layout.blocks() {
                    let next = layout.locate(b + 1);
                    prop_assert_eq!((next.cylinder, next.head, next.sector), (s.cylinder, s.head, s.sector + 1));
                }
            }
        }

        /// The first and the last block of a track are on the track, and the blocks around them are
        /// not.
        #[test]
        fn tracks_end_where_their_blocks_do(g in geometries(), at in 0.0..1.0) {
            let layout = Layout::new(&g, TURN).unwrap();
            let b = (layout.blocks() as f64 * at) as u64;
            let s = layout.locate(b);
            let same = |x: u64| { let t = layout.locate(x); (t.cylinder, t.head) == (s.cylinder, s.head) };
            let (first, end) = (layout.track_first(b, &s), layout.track_end(b, &s));
            prop_assert!(first <= b && b < end && end <= layout.blocks());
            prop_assert!((first..end).all(same), "{first}..{end}");
            prop_assert!(end == layout.blocks() || !same(end));
        }
    }

    #[test]
    fn skews_turn_tracks_and_cylinders() {
        let zone = Zone {
            last_cylinder: 1,
            sectors_per_track: 10,
            offset: 1.0,
            track_skew: 2.0,
            cylinder_skew: 4.0,
            ..Zone::default()
        };
        let g = DiskGeometry {
            heads: 2,
            cylinders: 2,
            zones: vec![zone],
            range_cylinders: 1,
            ..DiskGeometry::default()
        };
        let layout = Layout::new(&g, 10_000).unwrap();
        let angle = |b| layout.locate(b).angle_ps / 1000;
        // Offset 1; one head switch: + 2; then a cylinder switch: + 4; then a head switch: + 2.
        assert_eq!((angle(0), angle(10), angle(20), angle(30)), (1, 3, 7, 9));
        assert_eq!(angle(35), 4);
    }

    #[test]
    fn a_defect_lies_where_it_was_moved_to() {
        let zone = Zone {
            last_cylinder: 0,
            sectors_per_track: 10,
            spares: 2,
            defects: vec![(3, 19)],
            ..Zone::default()
        };
        let g = DiskGeometry {
            heads: 2,
            cylinders: 1,
            zones: vec![zone],
            sparing: Sparing::ZoneEnd,
            ..DiskGeometry::default()
        };
        let layout = Layout::new(&g, 10_000).unwrap();
        assert_eq!(layout.blocks(), 18);
        let place = |b| {
            let s = layout.locate(b);
            (s.head, s.sector, s.run)
        };
        assert_eq!((place(2), place(3), place(4)), ((0, 2, 1), (1, 9, 1), (0, 4, 6)));
    }
}
