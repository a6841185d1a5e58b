//! Changes of the hints of a volume, while it is served and while it is not.

use super::wire::{HintList, ListedRange, ParamChange, RefusalKind, Refused};
use crate::device::Device;
use crate::hints::{HintFile, RANGES_MAX, SavedHints};
use frit_core::HintRange;

/// A change of hints. All parts are made, or none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HintChange {
    /// Ranges to add.
    pub add: Vec<HintRange>,
    /// Ranges to remove.
    pub remove: Vec<HintRange>,
    /// Switches the detector of metadata on or off; `None`: no change.
    pub detect: Option<bool>,
}

impl HintChange {
    /// Parses the texts of a request.
    ///
    /// # Errors
    /// The first text that is no rule.
    pub fn parse(add: &[String], remove: &[String], detect: Option<bool>) -> Result<HintChange, Refused> {
        let ranges = |texts: &[String]| texts.iter().map(|text| text.parse()).collect::<Result<_, _>>();
        let change = || Ok(HintChange { add: ranges(add)?, remove: ranges(remove)?, detect });
        change().map_err(invalid)
    }

    fn is_empty(&self) -> bool {
        *self == HintChange::default()
    }

    /// Checks the change against the ranges in effect and the size of the volume.
    fn check(&self, ranges: &[HintRange], bytes: u64) -> Result<(), Refused> {
        if let Some(range) = self.add.iter().find(|r| r.end() > bytes) {
            return Err(invalid(format!("{range} ends beyond the volume, which has {bytes} bytes")));
        }
        if let Some(range) = self.remove.iter().find(|r| !ranges.contains(r)) {
            let known = match ranges {
                [] => "there are no ranges".to_owned(),
                _ => "`frit ctl VOLUME hint list` shows the ranges".to_owned(),
            };
            return Err(invalid(format!("there is no range {range}; {known}")));
        }
        if ranges.len() + self.add.len() > RANGES_MAX {
            return Err(invalid(format!("a volume has at most {RANGES_MAX} ranges")));
        }
        Ok(())
    }

    /// Changes the rules that a volume keeps.
    fn save(&self, saved: &mut SavedHints) {
        saved.ranges.retain(|r| !self.remove.contains(r));
        saved.ranges.extend(&self.add);
        saved.ranges.sort_unstable();
        saved.ranges.dedup();
        saved.detect_metadata = self.detect.unwrap_or(saved.detect_metadata);
    }
}

fn invalid(why: String) -> Refused {
    Refused::new(RefusalKind::Invalid, why)
}

fn failed(file: &HintFile, e: &std::io::Error) -> Refused {
    Refused::new(RefusalKind::Failed, format!("{}: {e}", file.path().display()))
}

/// Returns a change of a rule, for the log.
fn switched(what: &str, on: bool) -> ParamChange {
    let state = |on: bool| if on { "on" } else { "off" }.to_owned();
    ParamChange { key: format!("hint {what}"), old: state(!on), new: state(on) }
}

/// Changes the hints of a device, and those that its volume keeps.
///
/// # Errors
/// A range outside the volume or an unknown one, a read-only volume, or a file that cannot be
/// written. Nothing was changed.
pub(super) fn apply_live(
    device: &Device,
    file: &HintFile,
    change: &HintChange,
) -> Result<(HintList, Vec<ParamChange>), Refused> {
    let mut saved = file.load().map_err(|e| failed(file, &e))?;
    let mut changed = Vec::new();
    if !change.is_empty() {
        if let Some(why) = device.read_only() {
            return Err(Refused::new(RefusalKind::Failed, why));
        }
        change.check(&device.hints().ranges, device.bytes())?;
        change.save(&mut saved);
        // The file is written first: what it keeps is durable before the answer.
        file.store(&saved).map_err(|e| failed(file, &e))?;
        let removed = change.remove.iter().filter(|r| device.remove_hint(**r));
        changed.extend(removed.map(|r| switched(&r.to_string(), false)));
        for range in &change.add {
            if device.add_hint(*range).map_err(invalid)? {
                changed.push(switched(&range.to_string(), true));
            }
        }
        if let Some(on) = change.detect.filter(|on| device.detect_metadata(*on)) {
            changed.push(switched("detect", on));
        }
    }
    let hints = device.hints();
    let listed = |r: &HintRange| ListedRange { rule: r.to_string(), saved: saved.ranges.contains(r) };
    let list = HintList {
        ranges: hints.ranges.iter().map(listed).collect(),
        detect: hints.detecting,
        detect_saved: saved.detect_metadata,
        file_systems: hints.file_systems,
    };
    Ok((list, changed))
}

/// Changes the hints that a volume keeps while it is not served. `bytes` is its size.
///
/// # Errors
/// As for a served volume.
pub fn apply_saved(
    file: &HintFile,
    bytes: u64,
    change: &HintChange,
) -> Result<(HintList, Vec<ParamChange>), Refused> {
    let mut saved = file.load().map_err(|e| failed(file, &e))?;
    let before = saved.clone();
    if !change.is_empty() {
        change.check(&saved.ranges, bytes)?;
        change.save(&mut saved);
        file.store(&saved).map_err(|e| failed(file, &e))?;
    }
    let removed = before.ranges.iter().filter(|r| !saved.ranges.contains(r));
    let mut changed: Vec<ParamChange> = removed.map(|r| switched(&r.to_string(), false)).collect();
    let added = saved.ranges.iter().filter(|r| !before.ranges.contains(r));
    changed.extend(added.map(|r| switched(&r.to_string(), true)));
    if saved.detect_metadata != before.detect_metadata {
        changed.push(switched("detect", saved.detect_metadata));
    }
    let list = HintList {
        ranges: saved.ranges.iter().map(|r| ListedRange { rule: r.to_string(), saved: true }).collect(),
        detect: saved.detect_metadata,
        detect_saved: saved.detect_metadata,
        file_systems: Vec::new(),
    };
    Ok((list, changed))
}
