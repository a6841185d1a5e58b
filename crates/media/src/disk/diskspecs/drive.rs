//! The `disksim_disk` block: electronics, bus, cache, queue.

use super::block_reader::BlockReader;
use super::text::{ParameterBlock, ParameterValue, ValueKind};
use super::{DiskspecsError, LoadedDrive, model};
use crate::disk::geometry::{DiskGeometry, Zone};
use crate::disk::spec::{
    Background, Bus, CacheSpec, DiskSpec, DriveScheduler, ExtraDisconnect, MAX_WAIT, Mechanics,
    OverheadAfter, Overheads, ReadAhead, WriteBack,
};
use frit_core::Nanos;

/// Parameters that do not affect timing in this model, with the reason.
const IGNORED: [(&str, &str); 12] = [
    ("Print stats", ""),
    ("Calc sector by sector", ""),
    ("Avg sectors per cylinder", ""),
    ("Low (write) water mark", "the bus takes the data of a write in one piece"),
    ("Allow sneaky full read hits", "requests are served one after the other"),
    ("Allow sneaky partial read hits", "requests are served one after the other"),
    ("Allow sneaky intermediate read hits", "requests are served one after the other"),
    ("Allow write prebuffering", "requests are served one after the other"),
    ("Preseeking level", "the arm is free when its platter access ends"),
    ("Disconnect write if seek", "the drive is alone on the bus"),
    ("Write hit stop prefetch", "a write always stops the read-ahead"),
    ("Maximum number of write segments", "only one write stream is destaged at a time"),
];

/// Reads a `dm_disk` block alone: mechanics and layout, no cache, no overheads.
pub(super) fn from_model_only(block: &ParameterBlock) -> Result<LoadedDrive, DiskspecsError> {
    let mut notes = vec!["the file does not describe the electronics: no overheads, no cache".to_string()];
    let (geometry, mechanics) = model::model(block, &mut notes)?;
    let spec = DiskSpec {
        name: block.name.clone(),
        geometry,
        mechanics,
        overheads: Overheads::default(),
        bus: Bus::default(),
        cache: CacheSpec::default(),
        queue_depth: 1,
        scheduler: DriveScheduler::Fifo,
        max_wait: MAX_WAIT,
        background: Background::Yield,
    };
    Ok(LoadedDrive { spec, notes })
}

pub(super) fn disk(block: &ParameterBlock) -> Result<LoadedDrive, DiskspecsError> {
    let mut notes = Vec::new();
    let mut t = BlockReader::new(block);
    let model = match t.value("Model") {
        Some(ParameterValue { kind: ValueKind::Block(b), .. }) => b,
        Some(v) => return Err(v.at.error("'Model' should be a dm_disk block, or 'source FILE' with one")),
        None => {
            return Err(block.at.error("'Model' is missing: the dm_disk block, or 'source FILE' with one"));
        }
    };
    let (geometry, mechanics) = model::model(model, &mut notes)?;
    let mechanics = raise_head_switch(&geometry, mechanics, &mut notes);
    let overheads = overheads(&mut t)?;
    let cache = cache(&mut t)?;
    let bus = bus_of(&mut t)?;
    let scheduler = match t.value("Scheduler") {
        Some(ParameterValue { kind: ValueKind::Block(b), .. }) => scheduler(b, &mut notes)?,
        _ => DriveScheduler::Fifo,
    };
    let queue_depth = t.whole_number("Max queue length", 1 << 20)?.unwrap_or(1).max(1) as u32;
    for (key, why) in IGNORED {
        let text = match t.value(key) {
            Some(ParameterValue { kind: ValueKind::Text(v), .. }) => v.as_str(),
            _ => "0",
        };
        let on = text.parse() != Ok(0.0);
        let common = ["Maximum number of write segments", "Write hit stop prefetch"].contains(&key);
        if on && !why.is_empty() && !common {
            notes.push(format!("'{key}' is ignored: {why}"));
        }
    }
    t.note_unknown(&mut notes);
    let name = block.name.clone();
    let (max_wait, background) = (MAX_WAIT, Background::Yield);
    let spec = DiskSpec {
        name,
        geometry,
        mechanics,
        overheads,
        bus,
        cache,
        queue_depth,
        scheduler,
        max_wait,
        background,
    };
    Ok(LoadedDrive { spec, notes })
}

/// Minimum duration of a head switch, as a fraction of the track skew. The manufacturer chose the
/// skew to cover a switch and its settling time; drives whose switch time was measured directly
/// need 0.42 to 0.66 of their smallest skew (HP C3323A, HP C2247A, HP C2490A, DEC RZ26, according
/// to their parameter files). Automatic extraction (DIXtrac) yields times down to 0.06 of the skew,
/// in which no head settles.
const SWITCH_OF_SKEW: f64 = 0.4;

/// Raises a head switch time that is too short for the track skew.
fn raise_head_switch(
    geometry: &DiskGeometry,
    mut mechanics: Mechanics,
    notes: &mut Vec<String>,
) -> Mechanics {
    let turn = mechanics.revolution_ps as f64 / 1000.0;
    let skew =
        |z: &Zone| z.track_skew.rem_euclid(f64::from(z.sectors_per_track)) / f64::from(z.sectors_per_track);
    let Some(least) = geometry.zones.iter().map(|z| (skew(z) * turn * SWITCH_OF_SKEW) as u64).min() else {
        return mechanics;
    };
    let given = mechanics.head_switch;
    // A skew of more than half a revolution does not stem from a head switch. A time of zero may be
    // intended by the file.
    if (1..least).contains(&given.0) && least < (turn * SWITCH_OF_SKEW / 2.0) as u64 {
        mechanics.head_switch = Nanos(least);
        notes.push(format!(
            "a head switch of {given} is short for the track skew; {} is used, {SWITCH_OF_SKEW} of the skew",
            mechanics.head_switch
        ));
    }
    mechanics
}

fn overheads(t: &mut BlockReader<'_>) -> Result<Overheads, DiskspecsError> {
    let scale = t.number("Time scale for overheads")?.unwrap_or(1.0);
    if !(0.0..=1000.0).contains(&scale) {
        return Err(t
            .block
            .at
            .error(format!("'Time scale for overheads' is {scale}; it should be 0 to 1000")));
    }
    let extra = ExtraDisconnect {
        command: t.time_or_zero("Extradisc command overhead")?,
        disconnect: t.time_or_zero("Extradisc disconnect overhead")?,
        between: t.time_or_zero("Extradisc inter-disconnect delay")?,
        disconnect_again: t.time_or_zero("Extradisc 2nd disconnect overhead")?,
        seek_delta: t.time_or_zero("Extradisc seek delta")?,
    };
    let o = Overheads {
        command: t.time_or_zero("Per-request overhead time")?,
        read_hit: t.after("Read hit over. after read", "Read hit over. after write")?,
        read_miss: t.after("Read miss over. after read", "Read miss over. after write")?,
        write_hit: t.after("Write hit over. after read", "Write hit over. after write")?,
        write_miss: t.after("Write miss over. after read", "Write miss over. after write")?,
        read_complete: t.time_or_zero("Read completion overhead")?,
        write_complete: t.time_or_zero("Write completion overhead")?,
        data_prepare: t.time_or_zero("Data preparation overhead")?,
        reselect_first: t.time_or_zero("First reselect overhead")?,
        reselect_other: t.time_or_zero("Other reselect overhead")?,
        read_disconnect: t.after("Read disconnect afterread", "Read disconnect afterwrite")?,
        write_disconnect: t.time_or_zero("Write disconnect overhead")?,
        extra: t.flag("Extra write disconnect")?.then_some(extra),
        seek_delay_min: t.time_or_zero("Minimum seek delay")?,
    };
    Ok(if scale == 1.0 { o } else { scaled(o, scale) })
}

/// Returns the overheads multiplied by a factor. The minimum seek delay is mechanical and stays.
fn scaled(o: Overheads, scale: f64) -> Overheads {
    let f = |t: Nanos| Nanos((t.0 as f64 * scale).round() as u64);
    let a = |t: OverheadAfter| OverheadAfter { read: f(t.read), write: f(t.write) };
    Overheads {
        command: f(o.command),
        read_hit: a(o.read_hit),
        read_miss: a(o.read_miss),
        write_hit: a(o.write_hit),
        write_miss: a(o.write_miss),
        read_complete: f(o.read_complete),
        write_complete: f(o.write_complete),
        data_prepare: f(o.data_prepare),
        reselect_first: f(o.reselect_first),
        reselect_other: f(o.reselect_other),
        read_disconnect: a(o.read_disconnect),
        write_disconnect: f(o.write_disconnect),
        extra: o.extra.map(|x| ExtraDisconnect {
            command: f(x.command),
            disconnect: f(x.disconnect),
            between: f(x.between),
            disconnect_again: f(x.disconnect_again),
            seek_delta: f(x.seek_delta),
        }),
        seek_delay_min: o.seek_delay_min,
    }
}

fn bus_of(t: &mut BlockReader<'_>) -> Result<Bus, DiskspecsError> {
    let sector = t.time_or_zero("Bulk sector transfer time")?;
    Ok(Bus {
        read_ps: sector.0 * 1000,
        write_ps: sector.0 * 1000,
        never_disconnects: t.flag("Never disconnect")?,
        holds_reads: t.flag("Hold bus entire read xfer")?,
        holds_writes: t.flag("Hold bus entire write xfer")?,
        read_watermark: t.number("High (read) water mark")?.unwrap_or(0.0),
        watermark_of_request: t.flag("Set watermark by reqsize")?,
    })
}

fn cache(t: &mut BlockReader<'_>) -> Result<CacheSpec, DiskspecsError> {
    let read_ahead = match t.whole_number("Buffer continuous read", 4)?.unwrap_or(0) {
        0 => ReadAhead::Off,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::NextTrack,
    };
    let write_back = match t.whole_number("Fast write level", 2)?.unwrap_or(0) {
        0 => WriteBack::Off,
        _ => WriteBack::Stream,
    };
    let sectors = |t: &mut BlockReader<'_>, key| {
        Ok::<_, DiskspecsError>(t.whole_number(key, 1 << 30)?.unwrap_or(0) as u32)
    };
    let c = CacheSpec {
        enabled: t.flag("Enable caching in buffer")?,
        segments: t.whole_number("Number of buffer segments", 4096)?.unwrap_or(1).max(1) as u32,
        segment_sectors: sectors(t, "Segment size (in blks)")?.max(1),
        write_segment: t.flag("Use separate write segment")?,
        read_ahead,
        read_ahead_min: sectors(t, "Minimum read-ahead (blks)")?,
        read_ahead_max: sectors(t, "Maximum read-ahead (blks)")?,
        read_ahead_on_hit: t.flag("Read-ahead on idle hit")?,
        read_free_blocks: t.flag("Read any free blocks")?,
        read_on_arrival: t.flag("Immediate buffer read")?,
        write_on_arrival: t.flag("Immediate buffer write")?,
        almost_hits: t.flag("Allow almost read hits")?,
        discards_read: t.number("Read-ahead over requested")?.is_some_and(|x| x < 0.0),
        hits_on_writes: t.flag("Allow read hits on write data")?,
        stops_in_sector: t.flag("Stop prefetch in sector")?,
        write_back,
        dirty_sectors: 0,
        combines_writes: t.flag("Combine seq writes")?,
    };
    // Keys of segment management that make no difference in this model.
    for key in ["Read directly to buffer", "Immed transfer partial hit"] {
        t.value(key);
    }
    Ok(c)
}

/// Maps DiskSim's numbers of scheduling policies to the schedulers that exist here.
fn scheduler(b: &ParameterBlock, notes: &mut Vec<String>) -> Result<DriveScheduler, DiskspecsError> {
    let n = BlockReader::new(b).whole_number("Scheduling policy", 64)?.unwrap_or(1);
    Ok(match n {
        1 => DriveScheduler::Fifo,
        2 | 3 => DriveScheduler::Scan,
        4 | 5 => DriveScheduler::CLook,
        6 | 7 => DriveScheduler::Sstf,
        8..=20 => DriveScheduler::Sptf,
        _ => {
            notes.push(format!("scheduling policy {n} is not known; FIFO is used"));
            DriveScheduler::Fifo
        }
    })
}

/// Takes the transfer times of the buses for a drive that does not state them.
pub(super) fn bus(blocks: &[ParameterBlock], loaded: &mut LoadedDrive) -> Result<(), DiskspecsError> {
    let bus = &mut loaded.spec.bus;
    for b in blocks.iter().filter(|b| b.kind == "disksim_bus") {
        let mut t = BlockReader::new(b);
        let read = t.time_or_zero("Read block transfer time")?.0 * 1000;
        let write = t.time_or_zero("Write block transfer time")?.0 * 1000;
        bus.read_ps = bus.read_ps.max(read);
        bus.write_ps = bus.write_ps.max(write);
    }
    Ok(())
}
