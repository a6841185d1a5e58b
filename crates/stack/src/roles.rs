//! Assignment of media to the roles of a layer.

use crate::decode::{nearest, suggest};
use crate::error::Problem;
use crate::layers::{LayerKind, Role};
use crate::media::StackMedium;
use crate::tree::{Entry, Table};
use frit_core::MediumKind;

/// Value of a role that no medium fills.
pub(crate) const NO_MEDIUM: &str = "none";

/// Assigns the medium that the layer's table names, or else the only medium of the stack that fits.
pub(crate) fn read(
    path: &str,
    table: &Table,
    kind: LayerKind,
    media: &mut [StackMedium],
    problems: &mut Vec<Problem>,
) -> Option<Vec<(&'static Role, usize)>> {
    let before = problems.len();
    let mut on = Vec::new();
    for role in kind.roles() {
        let found = match table.get(role.key) {
            Some(entry) => named_medium(path, role, entry, media),
            None => only_medium(path, role, table, media),
        };
        match found {
            Ok(Some(i)) => {
                media[i].used = true;
                on.push((role, i));
            }
            Ok(None) => {}
            Err(p) => problems.push(*p),
        }
    }
    (problems.len() == before).then_some(on)
}

type RoleMedium = Result<Option<usize>, Box<Problem>>;

fn kind_name(kind: MediumKind) -> &'static str {
    kind.into()
}

fn named_medium(path: &str, role: &Role, entry: &Entry, media: &[StackMedium]) -> RoleMedium {
    let at = Some(entry.value.span.clone());
    let role_path = format!("`{path}.{}`", role.key);
    let Some(name) = entry.value.as_str() else {
        let p = Problem::new(format!("{role_path} has to name a medium")).at(at, "wrong kind of value");
        return Err(Box::new(p.help(role.help)));
    };
    if name == NO_MEDIUM && role.optional {
        return Ok(None);
    }
    let names: Vec<&str> =
        media.iter().filter(|m| m.spec.kind() == role.medium).map(|m| m.name.as_str()).collect();
    match media.iter().position(|m| m.name == name) {
        Some(i) if media[i].spec.kind() != role.medium => {
            let is = kind_name(media[i].spec.kind());
            let p = Problem::new(format!(
                "{role_path} needs a {} medium; '{name}' is {is}",
                kind_name(role.medium)
            ));
            Err(Box::new(p.at(at, "the wrong kind of medium").help(suggest(name, &names))))
        }
        Some(i) if media[i].used => {
            let p = Problem::new(format!("{role_path}: '{name}' is already in use"));
            Err(Box::new(p.at(at, "this medium").help("a medium serves one layer in one role")))
        }
        Some(i) => Ok(Some(i)),
        None => {
            let p =
                Problem::new(format!("{role_path}: there is no medium '{name}'")).at(at, "unknown medium");
            // A medium cannot have the name `none`.
            let add = match name {
                NO_MEDIUM => format!("the layer needs a {} medium; name one", kind_name(role.medium)),
                _ => format!("add [media.{name}], with a profile"),
            };
            let help = nearest(name, names).map_or(add, |n| format!("did you mean `{n}`?"));
            Err(Box::new(p.help(help)))
        }
    }
}

fn only_medium(path: &str, role: &Role, table: &Table, media: &[StackMedium]) -> RoleMedium {
    let fit: Vec<usize> =
        (0..media.len()).filter(|&i| media[i].spec.kind() == role.medium && !media[i].used).collect();
    let kind = kind_name(role.medium);
    let list = if role.medium == MediumKind::Disk { "frit disk list" } else { "frit profiles" };
    match fit[..] {
        [] if role.optional => Ok(None),
        [] => {
            let p = Problem::new(format!("`{path}` needs a {kind} medium, and the stack has none"))
                .at(Some(table.span.clone()), "this layer")
                .help(format!("add [media.{kind}] with a `profile`; `{list}` lists them"));
            Err(Box::new(p))
        }
        [one] => Ok(Some(one)),
        _ => {
            let names: Vec<String> = fit.iter().map(|&i| format!("\"{}\"", media[i].name)).collect();
            let p = Problem::new(format!("the stack has {} {kind} media, and `{path}` takes one", fit.len()))
                .at(Some(table.span.clone()), "this layer")
                .help(format!("name it: `{} = ` one of {}", role.key, names.join(", ")));
            Err(Box::new(p))
        }
    }
}
