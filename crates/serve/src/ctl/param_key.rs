//! Keys of parameters as users give them: with or without the name of the layer.

use super::wire::{RefusalKind, Refused};

/// Returns the full path of the parameter that a user names, among the paths of all parameters.
///
/// A key without a path is enough if only one layer of the stack has it, as in `--set`.
///
/// # Errors
/// No layer has the key, or several layers have it; the message lists their paths.
pub fn full_key<'a>(known: impl Iterator<Item = &'a str> + Clone, key: &str) -> Result<&'a str, Refused> {
    if let Some(exact) = known.clone().find(|&path| path == key) {
        return Ok(exact);
    }
    let of_layers: Vec<&str> =
        known.clone().filter(|path| path.split_once('.').is_some_and(|(_, last)| last == key)).collect();
    let why = match of_layers[..] {
        [one] => return Ok(one),
        [] => {
            format!("unknown parameter '{key}'; known parameters: {}", known.collect::<Vec<_>>().join(", "))
        }
        _ => format!("'{key}' is a parameter of several layers; use {}", of_layers.join(" or ")),
    };
    Err(Refused::new(RefusalKind::Invalid, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_path_is_that_of_the_only_layer_that_has_it() {
        let paths = ["cache.dirty_low", "a.SSW", "b.SSW", "far.write_us"];
        let of = |key| full_key(paths.into_iter(), key).map_err(|refused| refused.what);
        assert_eq!(of("a.SSW").unwrap(), "a.SSW");
        assert_eq!(of("write_us").unwrap(), "far.write_us");
        assert_eq!(of("dirty_low").unwrap(), "cache.dirty_low");
        assert_eq!(of("SSW").unwrap_err(), "'SSW' is a parameter of several layers; use a.SSW or b.SSW");
        assert!(
            of("far.SSW").unwrap_err().starts_with("unknown parameter 'far.SSW'; known parameters: cache.")
        );
    }
}
