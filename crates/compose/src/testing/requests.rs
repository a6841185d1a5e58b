//! Requests to a layer under test.

use crate::composed::{Composed, Composer};
use frit_core::{
    BlockLayer, CheckScope, Durable, Hints, ReadTarget, Result, Sector, Sink, StackView, WriteData,
};

/// Writes bytes from a sector on.
pub(crate) fn write_bytes<C: Composer>(l: &mut Composed<C>, at: u64, data: &[u8]) -> Result<()> {
    l.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(data), Hints::NONE)
}

/// Fills sectors with a byte.
pub(crate) fn write<C: Composer>(l: &mut Composed<C>, at: u64, sectors: u64, byte: u8) -> Result<()> {
    write_bytes(l, at, &vec![byte; (sectors * 512) as usize])
}

/// Reads sectors.
pub(crate) fn read<C: Composer>(l: &mut Composed<C>, at: u64, sectors: u64) -> Result<Vec<u8>> {
    let mut data = vec![0x77; (sectors * 512) as usize];
    l.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut data), Hints::NONE)?;
    Ok(data)
}

/// Returns a metric of the layer.
pub(crate) fn metric<C: Composer>(l: &Composed<C>, name: &str) -> f64 {
    let mut view = StackView::default();
    l.visible(&mut view);
    view.metric(name).unwrap()
}

/// Returns the findings of a check with all data, with their severity.
pub(crate) fn findings<C: Composer>(l: &mut Composed<C>) -> Vec<String> {
    let mut all = Vec::new();
    let scope = CheckScope { data: true, ..CheckScope::default() };
    l.check(&mut Sink::untimed(), scope, &mut |f| all.push(format!("{:?} {}", f.severity, f.kind))).unwrap();
    all
}
