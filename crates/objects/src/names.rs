//! Names of objects in a bucket.

use frit_core::ObjectId;

/// Prefix of the names of objects of writers. No name of a segment is greater.
pub(crate) const WRITER: &str = "writer-";

/// Returns the name of an object.
pub(crate) fn segment(id: ObjectId) -> String {
    format!("seg-{}-{}", id.epoch, id.number)
}

/// Returns the object of a name, if it has the form of [`segment`].
pub(crate) fn parse_segment(name: &str) -> Option<ObjectId> {
    let (epoch, number) = name.strip_prefix("seg-")?.split_once('-')?;
    let id = ObjectId { epoch: epoch.parse().ok()?, number: number.parse().ok()? };
    // Other spellings of a number, such as 007, are names of other programs.
    (segment(id) == name).then_some(id)
}

/// Returns the name of the object that a claim creates.
pub(crate) fn writer(epoch: u32) -> String {
    format!("{WRITER}{epoch}")
}

/// Returns the name of the object that a release creates.
pub(crate) fn closed(epoch: u32) -> String {
    format!("{WRITER}{epoch}.closed")
}

/// Returns the epoch of a name of a writer, and `true` if it is that of a release.
pub(crate) fn parse_writer(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix(WRITER)?;
    let (epoch, is_closed) = rest.strip_suffix(".closed").map_or((rest, false), |epoch| (epoch, true));
    let epoch = epoch.parse().ok()?;
    (name == if is_closed { closed(epoch) } else { writer(epoch) }).then_some((epoch, is_closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back_and_other_names_are_not() {
        let id = ObjectId { epoch: 3, number: 4_000_000_000 };
        assert_eq!(segment(id), "seg-3-4000000000");
        assert_eq!(parse_segment(&segment(id)), Some(id));
        for name in ["seg-3", "seg-3-", "seg-03-1", "seg-3-+1", "segs-3-1", "seg-3-4294967296", "writer-3"] {
            assert_eq!(parse_segment(name), None, "{name}");
        }
        assert_eq!(parse_writer("writer-7"), Some((7, false)));
        assert_eq!(parse_writer("writer-7.closed"), Some((7, true)));
        for name in ["writer-", "writer-07", "writer-7.close", "writer-7.closed.closed", "seg-1-1"] {
            assert_eq!(parse_writer(name), None, "{name}");
        }
        assert!(segment(ObjectId { epoch: u32::MAX, number: u32::MAX }).as_str() < WRITER);
    }
}
