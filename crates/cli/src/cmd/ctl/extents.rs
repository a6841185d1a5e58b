//! Extents of a volume on the command line, and in the output of `filefrag`.

use frit_core::size;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::Read;
use std::path::Path;

/// Maximum length of the output of `filefrag` that is read.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Parses `OFFSET+LENGTH`.
pub(super) fn extent(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('+').or_else(|| text.split_once(','));
    let (at, len) = parts.ok_or("write OFFSET+LENGTH, such as 1M+64K")?;
    Ok((size::parse(at)?, size::parse(len)?))
}

/// Reads the extents of a file from the output of `filefrag -e`. `-` is standard input.
///
/// # Errors
/// The output cannot be read, or is not that of one file.
pub(super) fn of_filefrag(path: &Path) -> Result<Vec<(u64, u64)>> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(TABLE_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(TABLE_BYTES_MAX).read_to_string(&mut text))
    };
    read.into_diagnostic().wrap_err_with(|| format!("cannot read {}", path.display()))?;
    parse_filefrag(&text).map_err(|what| {
        miette!(help = "write: filefrag -e FILE | frit ctl VOLUME query --filefrag - WORD", "{what}")
    })
}

/// Returns the extents of a file in the order of its bytes. The last one ends with the file.
fn parse_filefrag(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let (mut extents, mut file) = (Vec::new(), None);
    for line in text.lines() {
        if let Some(size) = line.strip_prefix("File size of ") {
            if file.replace(file_size(size).ok_or_else(|| format!("{line:?} has no size"))?).is_some() {
                return Err("there are extents of several files; give those of one".into());
            }
        } else if let Some(row) = row(line) {
            let (size, block) = file.ok_or("the line \"File size of …\" is missing before the extents")?;
            let first: u64 = extents.iter().map(|&(_, length)| length).sum();
            if row.logical * block != first {
                return Err(format!(
                    "the file has a hole before its byte {}, which is not on the volume; fill it, or name extents \
                     with --extent",
                    row.logical * block
                ));
            }
            check_flags(line)?;
            let length = (row.blocks * block).min(size.saturating_sub(first));
            extents.push((row.physical * block, length));
        }
    }
    let (size, _) = file.ok_or("this is not the output of filefrag -e")?;
    let found: u64 = extents.iter().map(|&(_, length)| length).sum();
    if found != size {
        return Err(format!(
            "the extents have {found} bytes of a file of {size} bytes; it has a hole at its end"
        ));
    }
    Ok(extents)
}

/// Reads `NAME is SIZE (N blocks of BLOCK bytes)`.
fn file_size(line: &str) -> Option<(u64, u64)> {
    let (name, blocks) = line.rsplit_once(" (")?;
    let size = name.rsplit_once(" is ")?.1.parse().ok()?;
    let block = blocks.split_once(" of ")?.1.split_once(" byte")?.0.parse().ok()?;
    Some((size, block)).filter(|_| block > 0)
}

/// Extent in a line, in blocks.
struct Row {
    logical: u64,
    physical: u64,
    blocks: u64,
}

/// Reads `  0:  0..  7:  34048..  34055:  8:  …`. Other lines are titles or the summary.
fn row(line: &str) -> Option<Row> {
    let mut fields = line.split(':');
    fields.next()?.trim().parse::<u64>().ok()?;
    let first = |field: &str| field.split_once("..")?.0.trim().parse().ok();
    let (logical, physical) = (first(fields.next()?)?, first(fields.next()?)?);
    let blocks = fields.next()?.trim().parse().ok()?;
    Some(Row { logical, physical, blocks })
}

/// Refuses extents whose bytes are not those of the file.
fn check_flags(line: &str) -> Result<(), String> {
    let unusable =
        ["delalloc", "unwritten", "inline", "encoded", "unknown_loc", "not_aligned", "encrypted", "tail"];
    match unusable.into_iter().find(|flag| line.contains(flag)) {
        None => Ok(()),
        Some(flag) => Err(format!(
            "an extent is {flag}, so its bytes are not on the volume as they are; sync the file first"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Filesystem type is: ef53
File size of /mnt/a is b (1 of 2) is 30000 (8 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       3:      34048..     34051:      4:            
   1:        4..       7:        100..       103:      4:      34052: last,eof
/mnt/a is b (1 of 2): 2 extents found
";

    #[test]
    fn the_table_of_filefrag_has_the_bytes_of_a_file() {
        let extents = parse_filefrag(TABLE).unwrap();
        assert_eq!(extents, [(34048 * 4096, 16384), (409_600, 30000 - 16384)]);
        for (from, to, why) in [
            ("4..       7:", "5..       8:", "hole"),
            ("is 30000 ", "is 40000 ", "hole at its end"),
            ("File size", "size", "missing"),
            ("last,eof", "last,unwritten,eof", "unwritten"),
        ] {
            let wrong = parse_filefrag(&TABLE.replace(from, to)).unwrap_err();
            assert!(wrong.contains(why), "{wrong}");
        }
        assert!(parse_filefrag("").unwrap_err().contains("not the output"));
        assert!(parse_filefrag(&TABLE.repeat(2)).unwrap_err().contains("several files"));
    }

    #[test]
    fn extents_are_offsets_and_lengths() {
        assert_eq!(extent("1M+64K"), Ok((1 << 20, 65536)));
        assert_eq!(extent("0,1"), Ok((0, 1)));
        assert!(extent("12").unwrap_err().contains("OFFSET+LENGTH"));
    }
}
