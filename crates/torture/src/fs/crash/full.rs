//! Operations that leave a file system without a free block, and with files that can still be
//! changed.

use super::super::apply::ProgramSession;
use super::super::every::base;
use super::super::op::FsOp;
use super::super::text::parse;
use super::run::FsCuts;
use frit_fs::{AnyMedium, FileSystem, Fs, Mapped};
use std::sync::Arc;

/// Two files with one free slot for extents: `x` has an allocated extent after its six extents, `y`
/// a written one.
const PIECES: [(&str, &str); 2] =
    [("x", "root allocate x extend 81920 49152"), ("y", "root write y 81920 49152 7")];

impl FsCuts {
    /// Returns the base tree with more files, and a file that takes every free block.
    ///
    /// # Errors
    /// Errors of formatting the file system or of its usage statistics.
    pub fn full(&self) -> frit_fs::Result<Vec<FsOp>> {
        let mut ops = base();
        // The free blocks contain old data.
        let old = "root create file old 644 0\nroot write old 0 307200 3\nroot unlink old";
        ops.extend(parse(old).unwrap_or_default());
        for (name, last) in PIECES {
            let mut lines = format!("root create file {name} 644 0\n");
            for i in 0..6 {
                lines.push_str(&format!("root write {name} {} 4096 {}\n", 2 * i * 4096, i + 1));
            }
            ops.extend(parse(&format!("{lines}{last}")).unwrap_or_default());
        }
        ops.extend(parse("root create file all 644 0").unwrap_or_default());
        let fs = Fs::format(Arc::new(Mapped::anonymous(self.bytes)?) as AnyMedium, self.format())?;
        let mut session = ProgramSession::new(&fs);
        for op in &ops {
            let _ = session.apply(op);
        }
        let left = fs.usage()?.blocks_free * 4096;
        ops.extend(parse(&format!("root write all 0 {left} 5")).unwrap_or_default());
        Ok(ops)
    }
}
