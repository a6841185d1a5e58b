//! Atomic changes of several parameters.

use super::param_key::full_key;
use super::wire::{ParamChange, RefusalKind, Refused, Setting};
use crate::backend::Backend;
use frit_core::params::Phase;
use frit_core::{Error, ParamInfo};
use frit_stack::layers::LayerKind;
use strum::VariantArray;

/// Changes parameters of a device to which the caller has exclusive access, either all of them or
/// none.
///
/// # Errors
/// The first invalid setting.
pub fn apply(device: &mut dyn Backend, settings: &[Setting]) -> Result<Vec<ParamChange>, Refused> {
    let before = device.params();
    let settings = settings.iter().map(|s| with_path(&before, s)).collect::<Result<Vec<_>, _>>()?;
    for (i, s) in settings.iter().enumerate() {
        allowed(&before, s)?;
        if settings[..i].iter().any(|other| other.key == s.key) {
            return Err(Refused::new(RefusalKind::Invalid, format!("{} is given twice", s.key)));
        }
    }
    let wanted: Vec<(&str, &str)> = settings.iter().map(|s| (&s.key[..], &s.value[..])).collect();
    device.set_params(&wanted).map_err(|e| refused(&e))?;
    let value = |key: &str, all: &[ParamInfo]| all.iter().find(|p| p.key == key).map(|p| p.value.clone());
    let after = device.params();
    let change = |s: &Setting| {
        let (old, new) = (value(&s.key, &before)?, value(&s.key, &after)?);
        (old != new).then(|| ParamChange { key: s.key.clone(), old, new })
    };
    Ok(settings.iter().filter_map(change).collect())
}

/// Returns a setting with the full path of its parameter.
fn with_path(params: &[ParamInfo], setting: &Setting) -> Result<Setting, Refused> {
    // An unknown parameter is refused below, with the names of those that can be changed.
    if !params.iter().any(|p| p.key.rsplit('.').next() == Some(&setting.key)) {
        return Ok(setting.clone());
    }
    let key = full_key(params.iter().map(|p| &*p.key), &setting.key)?.to_owned();
    Ok(Setting { key, ..setting.clone() })
}

/// Checks that a setting names a parameter that can be changed.
fn allowed(params: &[ParamInfo], setting: &Setting) -> Result<(), Refused> {
    let why = match params.iter().find(|p| p.key == setting.key) {
        Some(p) if p.live => return Ok(()),
        Some(p) if is_derived(&p.key) => format!(
            "{} follows from the media of the stack; `frit grow VOLUME --set media.NAME.KEY=VALUE` makes a medium \
             larger while the volume is not in use, for example media.nand.blocks_per_plane",
            setting.key
        ),
        Some(_) => format!(
            "{0} cannot change after the volume was created; `frit grow VOLUME --set {0}=VALUE` changes it \
             in the stack while the volume is not in use",
            setting.key
        ),
        None => {
            let live: Vec<&str> = params.iter().filter(|p| p.live).map(|p| &*p.key).collect();
            format!("unknown parameter '{}'; known parameters: {}", setting.key, live.join(", "))
        }
    };
    Err(Refused::new(RefusalKind::Invalid, why))
}

/// Returns `true` for a parameter that a layer takes from its media, so that a stack cannot set it
/// to another value. The size of the volume is no such parameter: it may be smaller than the media.
fn is_derived(path: &str) -> bool {
    // In a stack of several layers, the name of the layer comes first.
    let key = path.rsplit('.').next().unwrap_or(path);
    let of = |kind: &LayerKind| kind.parameters().iter().any(|p| p.key == key && p.phase == Phase::Derived);
    key != "capacity" && LayerKind::VARIANTS.iter().any(of)
}

/// Converts an error of the device to a refusal of the protocol.
fn refused(error: &Error) -> Refused {
    let kind = if matches!(error, Error::Param { .. }) { RefusalKind::Invalid } else { RefusalKind::Failed };
    Refused::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_a_command_that_can_succeed() {
        let info = |key: &'static str| ParamInfo {
            key: key.into(),
            live: false,
            ..LayerKind::Hfsl.defaults().remove(0)
        };
        let why = |key: &'static str| {
            let setting = Setting { key: key.into(), value: "1".into() };
            allowed(&[info(key)], &setting).unwrap_err().what
        };
        // `frit grow --set BLOCKNUM=1` is refused, because the media determine it.
        assert!(why("BLOCKNUM").contains("--set media.NAME.KEY=VALUE"), "{}", why("BLOCKNUM"));
        assert!(why("capacity").contains("--set capacity=VALUE"), "{}", why("capacity"));
        assert!(why("map_persist").contains("--set map_persist=VALUE"), "{}", why("map_persist"));
    }
}
