//! Operations for power losses under an image file.

use frit_torture::fs::apply::ProgramSession;
use frit_torture::fs::every::base;
use frit_torture::fs::op::Path;
use frit_torture::fs::op_generator::OpGenerator;
use frit_torture::fs::{Act, FsOp, ModelFs, OpTarget};

/// Returns random operations on the base tree that change it, without open files.
pub(crate) fn workload(seed: u64, len: usize) -> Vec<FsOp> {
    let model = ModelFs::with_command_files();
    let mut session = ProgramSession::new(&model);
    for op in base() {
        let _ = session.apply(&op);
    }
    let there: Vec<Path> = ["a", "b", "a/d", "a/f", "a/e", "s", "b/h", "b/p"].map(Path::new).to_vec();
    let mut drawer = OpGenerator::new(seed);
    drawer.limits = false;
    drawer.command_files = true;
    let mut ops = Vec::new();
    while ops.len() < len {
        let op = drawer.draw(&there);
        let slot = matches!(op.act.target(), Some(OpTarget::Slot(_)));
        let idle = matches!(op.act, Act::Open { .. } | Act::Close(_) | Act::Sync | Act::SyncFile { .. });
        // Most drawn operations fail or change nothing; only those that change the tree count.
        let before = frit_torture::fs::compare::digest(&model);
        if !slot && !idle && session.apply(&op).is_ok() && frit_torture::fs::compare::digest(&model) != before
        {
            ops.push(op);
        }
    }
    ops
}

/// Returns a number from the environment.
#[allow(dead_code)]
pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
