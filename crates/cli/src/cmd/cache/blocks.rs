//! Block accesses of a workload.

use frit_core::convert::bounded_u32;
use frit_layer::cache::sim::BlockAccess;
use frit_layer::cache::{BLOCK_BYTES, Lbn};
use frit_trace::{Options, ReqOp, Workload};
use miette::{IntoDiagnostic, Result, miette};
use std::collections::HashSet;

const SECTORS: u64 = BLOCK_BYTES / frit_core::SECTOR_BYTES;

/// All accesses of a workload, in order.
pub(super) struct BlockTrace {
    pub(super) name: String,
    pub(super) accesses: Vec<BlockAccess>,
    /// Number of the block after the last accessed one.
    pub(super) end: u32,
    /// Number of different blocks.
    pub(super) different: usize,
    /// Notes about input that could not be parsed.
    pub(super) remarks: Vec<String>,
}

impl BlockTrace {
    /// Reads a workload. A request accesses every block that it touches; flushes and discards are
    /// ignored.
    pub(super) fn read(spec: &str, options: &Options) -> Result<BlockTrace> {
        let bar = crate::cmd::trace::spinner();
        let mut workload = Workload::open(spec, options).into_diagnostic()?;
        let (mut batch, mut accesses, mut end, mut requests) = (Vec::new(), Vec::new(), 0, 0);
        while workload.fill(&mut batch).into_diagnostic()? {
            for r in batch.iter().filter(|r| matches!(r.op, ReqOp::Read | ReqOp::Write)) {
                let (first, after) = (r.sector.0 / SECTORS, r.end().div_ceil(SECTORS));
                if after > u64::from(u32::MAX) {
                    bar.finish_and_clear();
                    return Err(miette!("{spec}: sector {} lies beyond 16 TiB", r.sector.0));
                }
                end = end.max(bounded_u32(after));
                let write = r.op == ReqOp::Write;
                let block = |lbn: u64| BlockAccess { lbn: Lbn::of_u64(lbn), write, begins: lbn == first };
                accesses.extend((first..after).map(block));
            }
            requests += batch.len() as u64;
            bar.set_position(requests);
        }
        bar.finish_and_clear();
        if accesses.is_empty() {
            return Err(miette!("{spec}: no request reads or writes"));
        }
        let different = accesses.iter().map(|a| a.lbn).collect::<HashSet<_>>().len();
        let (name, remarks) = (workload.identity().name, workload.problems().sentences());
        Ok(BlockTrace { name, accesses, end, different, remarks })
    }
}
