//! The `dm_disk` block: mechanics and layout.

use super::DiskspecsError;
use super::block_reader::{BlockReader, number};
use super::text::{ParameterBlock, ParameterValue, ValueKind, load, relative_to};
use crate::disk::geometry::{DiskGeometry, Sparing, TrackOrder, Zone};
use crate::disk::seek::SeekCurve;
use crate::disk::spec::{Mechanics, Positioning};
use frit_core::Nanos;

pub(super) fn model(
    block: &ParameterBlock,
    notes: &mut Vec<String>,
) -> Result<(DiskGeometry, Mechanics), DiskspecsError> {
    let mut t = BlockReader::new(block);
    let heads = t.required("Number of data surfaces")?;
    let cylinders = t.required("Number of cylinders")?;
    if !(1.0..=256.0).contains(&heads) || !(1.0..=4e6).contains(&cylinders) {
        return Err(block.at.error(format!(
            "{heads} surfaces and {cylinders} cylinders are invalid; there should be 1 to 256 and 1 to 4000000"
        )));
    }
    let part = |t: &mut BlockReader<'_>, key: &'static str| match t.block.find(key) {
        Some(ParameterValue { kind: ValueKind::Block(b), .. }) => Ok(b.clone()),
        Some(v) => Err(v.at.error(format!("'{key}' should be a block"))),
        None => Err(block.at.error(format!("'{key}' is missing in this block"))),
    };
    let mechanics = mechanics(&part(&mut t, "Mechanical Model")?, notes)?;
    let mut geometry = layout(&part(&mut t, "Layout Model")?, heads as u32, notes)?;
    geometry.cylinders = cylinders as u32;
    let stated = t.whole_number("Block count", 1 << 48)?;
    t.value("Mechanical Model");
    t.value("Layout Model");
    t.note_unknown(notes);
    let layout = crate::disk::layout::Layout::new(&geometry, mechanics.revolution_ps)
        .map_err(|e| block.at.error(e.to_string()))?;
    if let Some(stated) = stated.filter(|&s| s != layout.blocks()) {
        notes.push(format!("the layout has {} blocks, 'Block count' says {stated}", layout.blocks()));
    }
    Ok((geometry, mechanics))
}

fn mechanics(block: &ParameterBlock, notes: &mut Vec<String>) -> Result<Mechanics, DiskspecsError> {
    if block.kind != "dm_mech_g1" {
        return Err(block
            .at
            .error(format!("'{}' is not a supported mechanical model; dm_mech_g1 is", block.kind)));
    }
    let mut t = BlockReader::new(block);
    let positioning = match t.text("Access time type")?.unwrap_or("trackSwitchPlusRotation") {
        "constant" => {
            let none = || block.at.error("'Constant access time' is missing for access time type 'constant'");
            Positioning::Constant(t.time("Constant access time")?.ok_or_else(none)?)
        }
        "averageRotation" => Positioning::AverageRotation,
        "trackSwitchPlusRotation" => Positioning::Full,
        other => {
            let why = "constant, averageRotation or trackSwitchPlusRotation";
            return Err(block.at.error(format!("access time type '{other}' is not one of {why}")));
        }
    };
    let rpm = t.required("Rotation speed (in rpms)")?;
    if !(100.0..=1_000_000.0).contains(&rpm) {
        return Err(block.at.error(format!("{rpm} revolutions per minute; there should be 100 to 1000000")));
    }
    let settle = t.number("Add. write settling delay")?.unwrap_or(0.0);
    if settle.abs() > 1000.0 {
        return Err(block
            .at
            .error(format!("'Add. write settling delay' is {settle} ms, more than a second")));
    }
    let head_switch = t.time("Head switch time")?.unwrap_or(Nanos::ZERO);
    let seek = seek(&mut t)?;
    if t.number("Percent error in rpms")?.unwrap_or(0.0) != 0.0 {
        notes.push("'Percent error in rpms' is ignored: the speed is as given".into());
    }
    for key in [
        "Constant access time",
        "Single cylinder seek time",
        "Average seek time",
        "Full strobe seek time",
        "Full seek curve",
        "HPL seek equation values",
        "First ten seek times",
        "Constant seek time",
    ] {
        t.value(key);
    }
    t.note_unknown(notes);
    Ok(Mechanics {
        positioning,
        revolution_ps: (60e12 / rpm).round() as u64,
        seek,
        head_switch,
        write_settle_ns: (settle * 1e6).round() as i64,
    })
}

fn seek(t: &mut BlockReader<'_>) -> Result<SeekCurve, DiskspecsError> {
    let kind = t.text("Seek type")?.unwrap_or("extracted").to_string();
    let block = t.block;
    let missing = |key: &str| block.at.error(format!("'{key}' is missing for seek type '{kind}'"));
    let three = |t: &mut BlockReader<'_>| -> Result<[Nanos; 3], DiskspecsError> {
        let mut out = [Nanos::ZERO; 3];
        let keys = ["Single cylinder seek time", "Average seek time", "Full strobe seek time"];
        for (o, key) in out.iter_mut().zip(keys) {
            *o = t.time(key)?.ok_or_else(|| missing(key))?;
        }
        Ok(out)
    };
    match kind.as_str() {
        "constant" => Ok(SeekCurve::Constant(
            t.time("Constant seek time")?.ok_or_else(|| missing("Constant seek time"))?,
        )),
        "linear" => three(t).map(|[single, average, full]| SeekCurve::Linear { single, average, full }),
        "curve" => three(t).map(|[single, average, full]| SeekCurve::Curve { single, average, full }),
        "hpl" | "hplplus10" => {
            let v =
                list(t, "HPL seek equation values", 6)?.ok_or_else(|| missing("HPL seek equation values"))?;
            // The sixth value overrides the time of the shortest seek, unless it is negative.
            let first = if kind == "hplplus10" {
                let ms =
                    list(t, "First ten seek times", 10)?.ok_or_else(|| missing("First ten seek times"))?;
                ms.into_iter().map(|ms| Nanos::from_us(ms * 1e3)).collect()
            } else if v[5] >= 0.0 {
                vec![Nanos::from_us(v[5] * 1e3)]
            } else {
                Vec::new()
            };
            let division = v[0].clamp(0.0, f64::from(u32::MAX)) as u32;
            Ok(SeekCurve::TwoPiece { division, root_ms: (v[1], v[2]), line_ms: (v[3], v[4]), first })
        }
        "extracted" => match t.value("Full seek curve") {
            Some(ParameterValue { kind: ValueKind::Text(name), at }) => {
                points(&relative_to(&at.file, name), at)
            }
            Some(v) => Err(v.at.error("'Full seek curve' should be the name of a file")),
            None => Err(missing("Full seek curve")),
        },
        other => {
            let known = "constant, linear, curve, hpl, hplplus10 or extracted";
            Err(block.at.error(format!("seek type '{other}' is not one of {known}")))
        }
    }
}

fn list(
    t: &mut BlockReader<'_>,
    key: &'static str,
    least: usize,
) -> Result<Option<Vec<f64>>, DiskspecsError> {
    let Some(v) = t.value(key) else { return Ok(None) };
    let ValueKind::List(items) = &v.kind else { return Err(v.at.error(format!("'{key}' should be a list"))) };
    if items.len() < least {
        return Err(v.at.error(format!("'{key}' has {} numbers; it needs {least}", items.len())));
    }
    items.iter().map(|i| number(key, i)).collect::<Result<_, _>>().map(Some)
}

/// Reads a file with lines of `distance, time [, deviation]`, in cylinders and ms.
fn points(file: &std::path::Path, named: &super::text::Location) -> Result<SeekCurve, DiskspecsError> {
    if !file.is_file() {
        let why = format!("the seek curve '{}' is missing; put it into the same folder", file.display());
        return Err(named.error(why));
    }
    let mut points: Vec<(u32, Nanos)> = Vec::new();
    for (i, line) in load(file)?.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("Seek distances measured") {
            continue;
        }
        let mut fields = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty());
        let (distance, ms) =
            (fields.next().and_then(|f| f.parse().ok()), fields.next().and_then(|f| f.parse().ok()));
        let bad = |what: String| DiskspecsError { file: file.to_path_buf(), line: i + 1, what };
        let (Some(distance), Some(ms)) = (distance, ms) else {
            return Err(bad(format!("'{line}' is not a pair of a distance in cylinders and a time in ms")));
        };
        let ms: f64 = ms;
        if !(0.0..=4000.0).contains(&ms) {
            return Err(bad(format!("a seek of {ms} ms; there should be 0 to 4000")));
        }
        points.push((distance, Nanos::from_us(ms * 1e3)));
    }
    points.retain(|p| p.0 > 0);
    points.sort_by_key(|p| p.0);
    points.dedup_by_key(|p| p.0);
    if points.is_empty() {
        return Err(DiskspecsError { file: file.to_path_buf(), line: 0, what: "has no seek times".into() });
    }
    Ok(SeekCurve::Points(points))
}

fn layout(
    block: &ParameterBlock,
    heads: u32,
    notes: &mut Vec<String>,
) -> Result<DiskGeometry, DiskspecsError> {
    if !["dm_layout_g1", "dm_layout_g1_old"].contains(&block.kind.as_str()) {
        return Err(block.at.error(format!(
            "'{}' is not a supported layout; dm_layout_g1 with zones is (g2 and g4 need DiskSim's own maps)",
            block.kind
        )));
    }
    let mut t = BlockReader::new(block);
    let mapping = match t.whole_number("LBN-to-PBN mapping scheme", 2)?.unwrap_or(0) {
        0 => TrackOrder::Cylinders,
        1 => TrackOrder::SerpentineZone,
        _ => TrackOrder::SerpentineDisk,
    };
    let sparing = match t.whole_number("Sparing scheme used", 10)?.unwrap_or(0) {
        0 => Sparing::None,
        1 => Sparing::Tracks,
        2 => Sparing::CylinderEnd,
        3 => Sparing::TrackEnd,
        4 => Sparing::CylinderEndSlipOn,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontSlipOn,
        7 => Sparing::DiskEnd,
        8 => Sparing::Range,
        9 => Sparing::ZoneEnd,
        _ => Sparing::ZoneEndSlipOn,
    };
    let range_cylinders = t.whole_number("Rangesize for sparing", 1 << 30)?.unwrap_or(1) as u32;
    let turns = units(&mut t)?.unwrap_or(false);
    let zones = match t.value("Zones") {
        Some(ParameterValue { kind: ValueKind::List(l), .. }) => l,
        Some(v) => return Err(v.at.error("'Zones' should be a list of blocks")),
        None => return Err(block.at.error("'Zones' is missing in this block")),
    };
    let mut out = Vec::with_capacity(zones.len());
    for z in zones {
        let ValueKind::Block(b) = &z.kind else { return Err(z.at.error("a zone should be a block")) };
        out.push(zone(b, turns, notes)?);
    }
    t.note_unknown(notes);
    Ok(DiskGeometry { heads, cylinders: 0, mapping, sparing, range_cylinders, zones: out })
}

/// Returns `true` if skews are in revolutions, `false` if they are in sectors, and `None` if the
/// block does not state it.
fn units(t: &mut BlockReader<'_>) -> Result<Option<bool>, DiskspecsError> {
    match t.text("Skew units")? {
        None => Ok(None),
        Some("sectors") => Ok(Some(false)),
        Some("revolutions") => Ok(Some(true)),
        Some(other) => {
            Err(t.block.at.error(format!("skew units '{other}' are neither sectors nor revolutions")))
        }
    }
}

fn zone(block: &ParameterBlock, turns: bool, notes: &mut Vec<String>) -> Result<Zone, DiskspecsError> {
    let mut t = BlockReader::new(block);
    let need = |x: Option<u64>, key: &str| {
        x.ok_or_else(|| block.at.error(format!("'{key}' is missing in this zone")))
    };
    let first = need(t.whole_number("First cylinder number", 4_000_000)?, "First cylinder number")?;
    let last = need(t.whole_number("Last cylinder number", 4_000_000)?, "Last cylinder number")?;
    let sectors = need(t.whole_number("Blocks per track", 1 << 20)?, "Blocks per track")?;
    let turns = units(&mut t)?.unwrap_or(turns);
    let unit = if turns { sectors as f64 } else { 1.0 };
    let slips = whole_list(&mut t, "slips")?;
    let pairs = whole_list(&mut t, "defects")?;
    if pairs.len() % 2 != 0 {
        return Err(block.at.error("'defects' should be pairs: original and new sector"));
    }
    let zone = Zone {
        first_cylinder: first as u32,
        last_cylinder: last as u32,
        sectors_per_track: sectors as u32,
        offset: t.number("Offset of first block")?.unwrap_or(0.0) * unit,
        reserved: t.whole_number("Empty space at zone front", 1 << 40)?.unwrap_or(0),
        track_skew: t.number("Skew for track switch")?.unwrap_or(0.0) * unit,
        cylinder_skew: t.number("Skew for cylinder switch")?.unwrap_or(0.0) * unit,
        spares: t.whole_number("Number of spares", 1 << 40)?.unwrap_or(0),
        slips,
        defects: pairs.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
    };
    t.note_unknown(notes);
    Ok(zone)
}

fn whole_list(t: &mut BlockReader<'_>, key: &'static str) -> Result<Vec<u64>, DiskspecsError> {
    let at = t.block.find(key).map(|v| v.at.clone());
    let all = list(t, key, 0)?.unwrap_or_default();
    if let (Some(x), Some(at)) = (all.iter().find(|x| **x < 0.0 || x.fract() != 0.0 || **x > 1e15), at) {
        return Err(at.error(format!("'{key}' has {x}; there should be whole numbers of sectors or tracks")));
    }
    Ok(all.into_iter().map(|x| x as u64).collect())
}
