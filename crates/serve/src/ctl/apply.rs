//! Atomic changes of several parameters.

use super::wire::{ParamChange, RefusalKind, Refused, Setting};
use crate::backend::Backend;
use frit_core::{Error, ParamInfo};

/// Changes parameters of a device to which the caller has exclusive access, either all of them or
/// none.
///
/// # Errors
/// The first invalid setting.
pub fn apply(device: &mut dyn Backend, settings: &[Setting]) -> Result<Vec<ParamChange>, Refused> {
    let before = device.params();
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

/// Checks that a setting names a parameter that can be changed.
fn allowed(params: &[ParamInfo], setting: &Setting) -> Result<(), Refused> {
    let why = match params.iter().find(|p| p.key == setting.key) {
        Some(p) if p.live => return Ok(()),
        Some(_) => format!(
            "{0} cannot change after the volume was created; `frit grow VOLUME --set {0}=VALUE` changes it \
             in the stack while the volume is not in use",
            setting.key
        ),
        None => {
            let live: Vec<&str> = params.iter().filter(|p| p.live).map(|p| p.key).collect();
            format!("unknown parameter '{}'; known parameters: {}", setting.key, live.join(", "))
        }
    };
    Err(Refused::new(RefusalKind::Invalid, why))
}

/// Converts an error of the device to a refusal of the protocol.
fn refused(error: &Error) -> Refused {
    let kind = if matches!(error, Error::Param { .. }) { RefusalKind::Invalid } else { RefusalKind::Failed };
    Refused::new(kind, error.to_string())
}
