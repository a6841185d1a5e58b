//! Workloads of several clients: seeded requests, and their execution on a layer.

use crate::block::command_set::CommandSet;
use crate::block::history::History;
use crate::block::mirror_sources::MirrorSources;
use crate::block::self_describing::{self, PER_BLOCK, SECTOR};
use crate::block::violation::{Oracle, Violation};
use crate::block::zoned::{self, ZonedRequest};
use frit_core::split_mix::mix;
use frit_core::{
    ByteAccess, Error, Hints, ReadTarget, Sector, Sink, StackDevice, WriteData, ZoneAction, ZoneFault,
};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientRequestKind {
    /// A write.
    Write(Hints),
    /// A discard.
    Discard,
    /// A flush.
    Flush,
    /// A read, which must return the last written data.
    Read,
    /// Background work of about this many commands; not a request.
    Step(u32),
    /// A halt of the layer, which stays in use for the following requests; not a request.
    Halt,
}

impl ClientRequestKind {
    /// Returns `true` if its success makes all earlier acknowledged requests certain.
    #[must_use]
    pub fn makes_certain(self) -> bool {
        matches!(self, ClientRequestKind::Flush | ClientRequestKind::Halt)
    }

    /// Creates a request of this kind without a range.
    #[must_use]
    pub fn without_range(self) -> ClientRequest {
        ClientRequest { kind: self, first: 0, sectors: 0, client: 0 }
    }
}

/// A request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientRequest {
    /// The kind of the request.
    pub kind: ClientRequestKind,
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Number of the client.
    pub client: u8,
}

impl ClientRequest {
    /// Returns `true` for a write that has to be durable at its acknowledgement.
    #[must_use]
    pub fn is_fua(&self) -> bool {
        matches!(self.kind, ClientRequestKind::Write(h) if h.has(Hints::FUA))
    }
}

/// Removes the requests that a layer may lose which is durable after a flush only: those from
/// `flushed`, the last flush that succeeded, except FUA writes.
pub fn forget_unflushed(lasted: &mut CommandSet, requests: &[ClientRequest], flushed: usize) {
    (flushed..requests.len()).filter(|&n| !requests[n].is_fua()).for_each(|n| lasted.remove(n));
}

impl std::fmt::Display for ClientRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ClientRequest { first, sectors, client, .. } = self;
        match self.kind {
            ClientRequestKind::Write(h) if h.has(Hints::FUA) => {
                write!(f, "{client}: write {first}+{sectors} fua")
            }
            ClientRequestKind::Write(_) => write!(f, "{client}: write {first}+{sectors}"),
            ClientRequestKind::Discard => write!(f, "{client}: discard {first}+{sectors}"),
            ClientRequestKind::Flush => write!(f, "{client}: flush"),
            ClientRequestKind::Read => write!(f, "{client}: read {first}+{sectors}"),
            ClientRequestKind::Step(n) => write!(f, "step {n}"),
            ClientRequestKind::Halt => write!(f, "halt"),
        }
    }
}

/// Shape of a write that begins and ends inside a sector.
///
/// The sectors of the request receive their new version, as in a write of sectors. The bytes around
/// them are written with the contents that they have, so that every sector stays self-describing. A
/// write may also begin after the mark of its first sector, which is the same in all versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ByteShape {
    /// Bytes before the first sector, or -1 to -8: the first bytes of the sector are left out.
    before: i64,
    /// Bytes after the last sector.
    after: i64,
}

/// Bytes at the start of a sector that are equal in all its versions.
const MARK_BYTES: i64 = 8;

impl ClientRequest {
    /// Returns the shape of a write of bytes, for one write in four. It depends only on the
    /// request, so that a shorter list of requests keeps it.
    fn byte_shape(&self) -> Option<ByteShape> {
        let draw = mix(self.first ^ self.sectors << 40 ^ u64::from(self.client) << 56);
        let most = SECTOR as u64;
        let before = match draw >> 8 & 1 {
            0 => (draw >> 16) as i64 % most as i64,
            _ => -(1 + (draw >> 16 & 7) as i64),
        };
        let after = (draw >> 32) as i64 % most as i64;
        (draw & 3 == 0).then_some(ByteShape { before, after })
    }
}

impl ByteShape {
    /// Returns the address and the data of a write of bytes, or `None` if the bytes around it
    /// cannot be read or are outside the volume.
    fn widened(
        self,
        request: &ClientRequest,
        data: &[u8],
        sectors: u64,
        access: &mut dyn ByteAccess,
        sink: &mut Sink,
    ) -> Option<(u64, Vec<u8>)> {
        let first = request.first * SECTOR as u64;
        let end = first + data.len() as u64;
        let around = |access: &mut dyn ByteAccess, sink: &mut Sink, at: u64, len: i64| {
            let mut bytes = vec![0; len as usize];
            access.read_bytes(sink, at, ReadTarget::Bytes(&mut bytes)).ok().map(|()| bytes)
        };
        if end + self.after as u64 > sectors * SECTOR as u64 || self.before > first as i64 {
            return None;
        }
        let tail = around(access, sink, end, self.after)?;
        if self.before >= 0 {
            let at = first - self.before as u64;
            let head = around(access, sink, at, self.before)?;
            return Some((at, [&head, data, &tail].concat()));
        }
        // An unwritten sector has no mark yet.
        let mark = around(access, sink, first, MARK_BYTES)?;
        let left_out = -self.before as usize;
        let same = mark[..left_out] == data[..left_out];
        same.then(|| (first + left_out as u64, [&data[left_out..], &tail].concat()))
    }
}

/// Parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadMix {
    /// Number of requests.
    pub requests: u32,
    /// Number of clients, which take turns at random.
    pub clients: u8,
    /// Number of blocks that receive most of the writes; 0 for a uniform distribution.
    pub hot_blocks: u64,
    /// Largest write in sectors.
    pub most_sectors: u64,
    /// Number of discards in 256 requests.
    pub discards: u8,
}

impl WorkloadMix {
    /// Draws the parameters. A `short` workload suits exhaustive cuts.
    pub fn draw(rng: &mut SmallRng, short: bool) -> WorkloadMix {
        let sizes = [4, 8, 16, 32, 128];
        // One in five is long, so that slots, descriptors and blocks are reused.
        let long = !short && rng.random_bool(0.2);
        if long {
            let hot_blocks = rng.random_range(0..24);
            let requests = rng.random_range(100..160);
            return WorkloadMix {
                requests,
                clients: 3,
                hot_blocks,
                most_sectors: 8,
                discards: rng.random_range(0..20),
            };
        }
        WorkloadMix {
            requests: if short { rng.random_range(1..5) } else { rng.random_range(12..48) },
            clients: rng.random_range(1..4),
            hot_blocks: if rng.random_bool(0.7) { rng.random_range(1..12) } else { 0 },
            most_sectors: *sizes.choose(rng).unwrap_or(&8),
            discards: rng.random_range(0..60),
        }
    }

    /// Draws requests for a volume of this many 4 KiB blocks.
    pub fn requests(&self, rng: &mut SmallRng, blocks: u64) -> Vec<ClientRequest> {
        (0..self.requests).map(|_| self.request(rng, blocks * PER_BLOCK as u64)).collect()
    }

    fn request(&self, rng: &mut SmallRng, sectors: u64) -> ClientRequest {
        let client = rng.random_range(0..self.clients.max(1));
        let draw = rng.random_range(0..=255u8);
        let nothing = |kind| ClientRequest { kind, first: 0, sectors: 0, client };
        match draw {
            0..10 => return nothing(ClientRequestKind::Flush),
            10..40 => return nothing(ClientRequestKind::Step(rng.random_range(1..40))),
            _ => {}
        }
        let (first, len) = self.range(rng, sectors);
        let kind = match draw {
            40..52 => ClientRequestKind::Read,
            d if u16::from(d) < 52 + u16::from(self.discards) => ClientRequestKind::Discard,
            _ => ClientRequestKind::Write(hints(rng)),
        };
        ClientRequest { kind, first, sectors: len, client }
    }

    /// Draws a range that is aligned to blocks, to sectors, or not at all. Small ranges are more
    /// frequent than large ones.
    fn range(&self, rng: &mut SmallRng, sectors: u64) -> (u64, u64) {
        let most = self.most_sectors.min(sectors).max(1);
        let per = PER_BLOCK as u64;
        let len = match rng.random_range(0..4u8) {
            0 => rng.random_range(1..=most.min(4)),
            1 => per.min(most),
            2 => (rng.random_range(1..=most.div_ceil(per)) * per).min(most),
            _ => rng.random_range(1..=most),
        };
        let hot = self.hot_blocks > 0 && rng.random_bool(0.8);
        let among = if hot { (self.hot_blocks * per).min(sectors) } else { sectors };
        let mut first = rng.random_range(0..among);
        if rng.random_bool(0.6) {
            first -= first % per;
        }
        (first.min(sectors - len), len)
    }
}

fn hints(rng: &mut SmallRng) -> Hints {
    let mut h = Hints::NONE;
    for (hint, chance) in [(Hints::FUA, 0.15), (Hints::METADATA, 0.1), (Hints::HOT, 0.1), (Hints::COLD, 0.1)]
    {
        if rng.random_bool(chance) {
            h = h.with(hint);
        }
    }
    h
}

/// Reason for which a request failed.
#[derive(Debug)]
pub enum RequestFailure {
    /// An error of the layer.
    Error(Error),
    /// Wrong data from the layer.
    Violation(Violation),
}

/// Clients of a layer, with the contents that they expect.
#[derive(Debug)]
pub struct Clients {
    /// Allowed contents of the volume.
    pub history: History,
    /// Version of the last request; the next one writes the version after it.
    pub version: u32,
    /// Planted bug: FUA writes are not flushed.
    pub ignore_fua: bool,
    /// Requests that failed: their changes may be present or not.
    pub uncertain_requests: Vec<u32>,
    buffer: Vec<u8>,
}

impl Clients {
    /// Creates clients of a volume with the contents of a history.
    #[must_use]
    pub fn new(history: History, version: u32) -> Clients {
        Clients { history, version, ignore_fua: false, uncertain_requests: Vec::new(), buffer: Vec::new() }
    }

    /// Performs a request. The changes of a failed one are possible but not certain.
    ///
    /// # Errors
    /// An error of the layer, or wrong data from it.
    pub fn perform(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        request: &ClientRequest,
        number: u32,
    ) -> Result<(), RequestFailure> {
        let at = Sector(request.first);
        let bytes = request.sectors as usize * SECTOR;
        sink.begin();
        self.version += 1;
        let of_zones = zoned::zoned(layer, request);
        let done = match request.kind {
            ClientRequestKind::Write(_) | ClientRequestKind::Discard if let Some(of_zones) = of_zones => {
                self.perform_in_zones(layer, sink, request, number, of_zones)
            }
            ClientRequestKind::Write(hints) => {
                self.buffer.resize(bytes, 0);
                self_describing::fill_all(request.first, self.version, &mut self.buffer[..bytes]);
                self.history.change(number, request.first, request.sectors, self.version);
                let written = self.write(layer, sink, request, hints);
                // As in a volume, the layer receives the hint, but only a flush makes the write
                // durable.
                match written {
                    Ok(()) if hints.has(Hints::FUA) && !self.ignore_fua => layer.flush(sink),
                    other => other,
                }
            }
            ClientRequestKind::Discard => {
                self.history.change(number, request.first, request.sectors, 0);
                layer.discard(sink, at, request.sectors)
            }
            ClientRequestKind::Flush => layer.flush(sink),
            ClientRequestKind::Step(n) => layer.step(sink, n).map(|_| ()),
            ClientRequestKind::Halt => layer.halt(sink),
            ClientRequestKind::Read => {
                self.buffer.resize(bytes, 0);
                layer.read(sink, at, ReadTarget::Bytes(&mut self.buffer[..bytes]), Hints::NONE)
            }
        };
        sink.end();
        if let Err(e) = done {
            self.uncertain_requests.push(number);
            return Err(RequestFailure::Error(e));
        }
        if request.kind == ClientRequestKind::Read {
            let now = self.history.sources_now(layer);
            self.compare(request, &now).map_err(RequestFailure::Violation)
        } else {
            Ok(())
        }
    }

    /// Performs a request as a host of zones gives it.
    fn perform_in_zones(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        request: &ClientRequest,
        number: u32,
        of_zones: ZonedRequest,
    ) -> Result<(), Error> {
        if let Some(zone) = of_zones.activate {
            zoned::finish_others(layer, sink, zone)?;
        }
        if let Some(zone) = of_zones.close_before {
            zoned::manage(layer, sink, zone, ZoneAction::Close)?;
        }
        if let Some((zone, sectors)) =
            of_zones.reset.zip(layer.zone_access().map(|a| a.zoned_info().zone_sectors))
        {
            let first = u64::from(zone) * sectors;
            self.history.change(number, first, sectors, 0);
            layer.discard(sink, Sector(first), sectors)?;
        }
        if let Some(zone) = of_zones.open {
            zoned::manage(layer, sink, zone, ZoneAction::Open)?;
        }
        // A worn-out device may take a zone offline at its reset.
        if let Some((first, sectors)) = of_zones.write.filter(|w| zoned::is_usable(layer, w.0)) {
            self.buffer.resize(sectors as usize * SECTOR, 0);
            self_describing::fill_all(first, self.version, &mut self.buffer);
            let written = layer.write(sink, Sector(first), WriteData::Bytes(&self.buffer), Hints::NONE);
            // A zone that has become read-only has a part of the data, and keeps it.
            let sectors = match &written {
                Err(Error::Zone { fault: ZoneFault::IsReadOnly, .. }) => zoned::sectors_from(layer, first),
                _ => sectors,
            };
            self.history.change(number, first, sectors, self.version);
            match written {
                Err(Error::Zone { fault: ZoneFault::IsReadOnly, .. }) => {}
                other => other?,
            }
        }
        if let Some((zone, action)) = of_zones.after {
            zoned::manage(layer, sink, zone, action)?;
        }
        if request.is_fua() && !self.ignore_fua { layer.flush(sink) } else { Ok(()) }
    }

    /// Writes the buffer of a request: as bytes if the layer has a byte interface and the request
    /// is one of those, otherwise as sectors.
    fn write(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        request: &ClientRequest,
        hints: Hints,
    ) -> Result<(), Error> {
        let bytes = request.sectors as usize * SECTOR;
        let sectors = layer.info().sectors.min((self.history.len() * PER_BLOCK) as u64);
        if let Some(shape) = request.byte_shape()
            && let Some(access) = layer.byte_access()
            && let Some((at, data)) = shape.widened(request, &self.buffer[..bytes], sectors, access, sink)
        {
            return access.write_bytes(sink, at, WriteData::Bytes(&data), hints);
        }
        layer.write(sink, Sector(request.first), WriteData::Bytes(&self.buffer[..bytes]), hints)
    }

    /// Verifies that a read returned the last written data.
    fn compare(&self, request: &ClientRequest, now: &MirrorSources) -> Result<(), Violation> {
        for (i, s) in self.buffer[..request.sectors as usize * SECTOR].chunks_exact(SECTOR).enumerate() {
            let sector = request.first + i as u64;
            let got = self_describing::version(sector, s);
            let (block, at) = ((sector / PER_BLOCK as u64) as usize, sector as usize % PER_BLOCK);
            let sure = |r: u32| !self.uncertain_requests.contains(&r);
            let want = self.history.after(block, sure)[at];
            if !got.is_ok_and(|v| self.history.may_show(block, at, v, &sure, now)) {
                let what =
                    format!("{request}: sector {sector} gave {got:?}, version {want} was written last");
                return Err(Violation { oracle: Oracle::Content, what });
            }
        }
        Ok(())
    }
}

/// Returns large write requests that fill a volume, for preparation.
#[must_use]
pub fn fill_requests(blocks: u64) -> Vec<ClientRequest> {
    let all = blocks * PER_BLOCK as u64;
    (0..all.div_ceil(64))
        .map(|i| ClientRequest {
            kind: ClientRequestKind::Write(Hints::NONE),
            first: i * 64,
            sectors: (all - i * 64).min(64),
            client: 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn requests_lie_inside_and_come_again_with_the_seed() {
        let draw = |seed| {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mix = WorkloadMix::draw(&mut rng, false);
            mix.requests(&mut rng, 10)
        };
        for seed in 0..50 {
            let all = draw(seed);
            assert_eq!(all, draw(seed));
            assert!(all.iter().all(|r| r.first + r.sectors <= 80), "{all:?}");
        }
        assert_ne!(draw(1), draw(2));
        assert_eq!(fill_requests(10).iter().map(|r| r.sectors).sum::<u64>(), 80);
    }
}
