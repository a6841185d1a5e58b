//! Devices of a trace in the name spaces of a stack.

use frit_core::SECTOR_BYTES;
use frit_stack::{Namespace, Stack};
use frit_trace::workload::GENERATOR_PREFIX;
use frit_trace::{DeviceMapping, DeviceRange};
use miette::{Result, miette};

/// Returns the mapping of each device to the name space of its name.
///
/// # Errors
/// A stack without name spaces, or with others than the first one; a generator, which has no devices.
pub(super) fn mapping(workloads: &[String], stacks: &[Stack]) -> Result<DeviceMapping> {
    if let Some(generator) = workloads.iter().find(|w| w.starts_with(GENERATOR_PREFIX)) {
        return Err(miette!("--namespaces needs a trace with devices, and {generator} has none"));
    }
    let mut of_first: &[Namespace] = &[];
    for (i, stack) in stacks.iter().enumerate() {
        if stack.namespaces().is_empty() {
            return Err(miette!(
                help = "add [[namespace]] with a name and a size for each device (docs/reference/stacks.md)",
                "--namespaces needs a stack with name spaces, and {} has none",
                stack.name()
            ));
        }
        if i == 0 {
            of_first = stack.namespaces();
        } else if stack.namespaces() != of_first {
            return Err(miette!(
                help = "give all stacks the same name spaces, or run them one after the other",
                "{} has other name spaces than {}",
                stack.name(),
                stacks[0].name()
            ));
        }
    }
    let range = |n: &Namespace| DeviceRange {
        name: n.name.clone(),
        sectors: n.range.start / SECTOR_BYTES..n.range.end / SECTOR_BYTES,
    };
    Ok(DeviceMapping::Ranges(of_first.iter().map(range).collect()))
}
