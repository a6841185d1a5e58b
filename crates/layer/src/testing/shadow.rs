//! Random requests, each read compared with a plain byte array, for property tests of block layers.

use frit_core::{
    BlockLayer, CheckScope, DurabilityPoint, Durable, Error, Hints, Quiesce, ReadTarget, Recovery, Result,
    SECTOR_BYTES, Sector, Sink, WriteData,
};
use proptest::prelude::*;
use std::ops::Range;

/// Hints of writes, by the number of the action.
const HINTS: [Hints; 5] = [Hints::NONE, Hints::HOT, Hints::NONE, Hints::COLD, Hints::METADATA];

/// A request, or an event.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Write { at: u64, sectors: u64 },
    Read { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    Flush,
    Step,
    Restart,
    Crash,
}

/// Up to `count` actions on ranges of up to `most` sectors that begin before sector `end`.
pub(crate) fn actions(end: u64, most: u64, count: usize) -> impl Strategy<Value = Vec<Action>> {
    let range = move || (0..end, 1..most);
    let action = prop_oneof![
        20 => range().prop_map(|(at, sectors)| Action::Write { at, sectors }),
        8 => range().prop_map(|(at, sectors)| Action::Read { at, sectors }),
        3 => range().prop_map(|(at, sectors)| Action::Discard { at, sectors }),
        2 => Just(Action::Flush),
        4 => Just(Action::Step),
        1 => Just(Action::Restart),
        1 => Just(Action::Crash),
    ];
    prop::collection::vec(action, 1..count)
}

impl Action {
    /// Byte range that a write or a discard changes in a volume of so many sectors; else an empty one.
    pub(crate) fn changes(&self, volume: u64) -> Range<usize> {
        match *self {
            Action::Write { at, sectors } | Action::Discard { at, sectors } => clip(at, sectors, volume),
            _ => 0..0,
        }
    }
}

/// Byte range of a request in a volume of so many sectors.
fn clip(at: u64, len: u64, volume: u64) -> Range<usize> {
    let (at, sector) = (at % volume, SECTOR_BYTES as usize);
    at as usize * sector..(at + len.min(volume - at)) as usize * sector
}

/// Reads sectors.
pub(crate) fn read(layer: &mut impl BlockLayer, at: u64, sectors: u64) -> Result<Vec<u8>> {
    let mut out = vec![0xEE; (sectors * SECTOR_BYTES) as usize];
    layer.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut out), Hints::NONE).map(|()| out)
}

/// Executes the action with number `n` on a layer and on its shadow. `true` if the layer is to be opened
/// again: after a halt, or as after a crash, before which everything is durable.
pub(crate) fn act<L>(layer: &mut L, shadow: &mut [u8], n: usize, action: &Action) -> Result<bool>
where
    L: BlockLayer + Durable + Quiesce,
{
    let sink = &mut Sink::untimed();
    let volume = shadow.len() as u64 / SECTOR_BYTES;
    let range = action.changes(volume);
    let first = Sector(range.start as u64 / SECTOR_BYTES);
    match *action {
        Action::Write { .. } => {
            let data: Vec<u8> = (0..range.len()).map(|i| (n * 31 + i / 512 * 7 + i) as u8).collect();
            layer.write(sink, first, WriteData::Bytes(&data), HINTS[n % HINTS.len()])?;
            shadow[range].copy_from_slice(&data);
        }
        Action::Read { at, sectors } => {
            let range = clip(at, sectors, volume);
            let out = read(layer, range.start as u64 / SECTOR_BYTES, range.len() as u64 / SECTOR_BYTES)?;
            assert!(out == shadow[range], "action {n}");
        }
        Action::Discard { .. } => {
            layer.discard(sink, first, range.len() as u64 / SECTOR_BYTES)?;
            shadow[range].fill(0);
        }
        Action::Crash if layer.write_guarantee().durable_at == DurabilityPoint::OnAck => {}
        Action::Crash | Action::Flush => layer.flush(sink)?,
        Action::Step => drop(layer.step(sink, 4)?),
        Action::Restart => layer.halt(sink)?,
    }
    Ok(matches!(action, Action::Restart | Action::Crash))
}

/// Checks the contents of a layer that refuses writes because too many blocks went bad. Those of the
/// refused action are not known.
fn check_refusing(layer: &mut impl BlockLayer, shadow: &[u8], action: &Action) {
    let volume = shadow.len() as u64 / SECTOR_BYTES;
    let unknown = action.changes(volume);
    let all = read(layer, 0, volume).unwrap();
    for (i, (a, b)) in all.iter().zip(shadow).enumerate() {
        assert!(a == b || unknown.contains(&i), "byte {i}");
    }
}

/// Executes actions on a new layer, audits its tables after each, and checks it at the end. `reopen`
/// opens the store of a layer again. A layer that `wears_out` can refuse writes from some action on.
pub(crate) fn run<L>(
    mut layer: L,
    actions: &[Action],
    wears_out: bool,
    reopen: impl Fn(L) -> (L, Recovery),
    audit: impl Fn(&L),
) where
    L: BlockLayer + Durable + Quiesce,
{
    let sink = &mut Sink::untimed();
    layer.format(sink).unwrap();
    let mut shadow = vec![0u8; (layer.info().sectors * SECTOR_BYTES) as usize];
    for (n, action) in actions.iter().enumerate() {
        match act(&mut layer, &mut shadow, n, action) {
            Ok(false) => {}
            Ok(true) => {
                let (next, recovery) = reopen(layer);
                let clean = matches!(action, Action::Restart);
                assert!((recovery.clean || !clean) && recovery.losses() == 0, "{recovery:?}");
                layer = next;
            }
            Err(Error::ReadOnly { .. }) if wears_out => {
                return check_refusing(&mut layer, &shadow, action);
            }
            Err(e) => panic!("action {n}: {e}"),
        }
        audit(&layer);
    }
    let all = read(&mut layer, 0, shadow.len() as u64 / SECTOR_BYTES).unwrap();
    assert!(all == shadow, "the contents differ at the end");
    match layer.flush(sink) {
        Err(Error::ReadOnly { .. }) if wears_out => return,
        flushed => flushed.unwrap(),
    }
    let scope = CheckScope { data: true, ..CheckScope::default() };
    layer.check(sink, scope, &mut |f| panic!("{f:?}")).unwrap();
}
