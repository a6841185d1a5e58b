//! Exports of a volume: the whole of it, or its name spaces.

use super::Args;
use frit_serve::Device;
use frit_serve::nbd::{Export, Exports};
use frit_stack::Namespace;
use miette::{Result, miette};
use std::sync::Arc;

/// Returns the exports of a volume: one of the whole volume, or one for each name space.
///
/// # Errors
/// Options that would give clients of one name space access to others.
pub(super) fn of(args: &Args, device: &Arc<Device>, namespaces: &[Namespace]) -> Result<Exports> {
    let description = format!("frit volume {}", args.volume.display());
    if namespaces.is_empty() {
        return Ok(Arc::new(Export::new(Arc::clone(device), &args.export, &description)).into());
    }
    let names: Vec<&str> = namespaces.iter().map(|n| n.name.as_str()).collect();
    let names = names.join(", ");
    if !args.export.is_empty() {
        return Err(miette!(
            help = "leave out --export: each name space is an export under its own name",
            "--export names one export, and the volume has name spaces: {names}"
        ));
    }
    if args.frontends.any() {
        return Err(miette!(
            help = "serve it with --nbd alone: each name space is an export under its own name",
            "--fuse and --ublk serve a volume as a whole, and this one has name spaces: {names}"
        ));
    }
    let ranges: Vec<_> = namespaces.iter().map(|n| (n.name.clone(), n.range.clone())).collect();
    Ok(Exports::of_ranges(Arc::clone(device), &description, &ranges))
}
