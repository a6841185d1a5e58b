//! Assignment of media and layers to the roles of layers.

use crate::decode::{nearest, suggest};
use crate::error::{Problem, TextSpan};
use crate::layers::{Interface, LayerKind, Role, RoleNames};
use crate::media::StackMedium;
use crate::stack::Below;
use crate::tree::{Data, Entry, Table};
use frit_core::MediumKind;

/// Value of a role that nothing fills.
pub(crate) const NO_MEDIUM: &str = "none";

/// A layer's table, with its name and kind.
#[derive(Clone, Copy)]
pub(crate) struct LayerTable<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) table: &'a Table,
    pub(crate) kind: LayerKind,
}

impl LayerTable<'_> {
    fn name(&self) -> &str {
        &self.entry.key
    }
}

/// What fills the roles of a layer.
pub(crate) type Filled = Vec<(&'static Role, Below)>;

/// State of the assignment.
struct Roles<'a> {
    layers: &'a [LayerTable<'a>],
    media: &'a mut [StackMedium],
    /// For each layer, the role that it fills, as a path.
    taken: Vec<Option<String>>,
}

/// Assigns what the layers' tables name, and then, to roles without a name, the only medium of the
/// stack that fits. Returns what fills the roles of each layer, in the order of the tables.
pub(crate) fn read(
    layers: &[LayerTable<'_>],
    media: &mut [StackMedium],
    problems: &mut Vec<Problem>,
) -> Option<Vec<Filled>> {
    let before = problems.len();
    let mut roles = Roles { layers, media, taken: vec![None; layers.len()] };
    let mut filled: Vec<Filled> = vec![Vec::new(); layers.len()];
    // Names come first: a medium that one layer names is not the only one that fits for another.
    for (i, layer) in layers.iter().enumerate() {
        for role in layer.kind.roles() {
            let Some(entry) = layer.table.get(role.key) else { continue };
            match roles.named(i, role, entry) {
                Ok(found) => filled[i].extend(found.into_iter().map(|below| (role, below))),
                Err(p) => problems.push(*p),
            }
        }
    }
    for (i, layer) in layers.iter().enumerate() {
        for role in layer.kind.roles() {
            if layer.table.get(role.key).is_some() {
                continue;
            }
            match roles.only_medium(layer, role) {
                Ok(found) => filled[i].extend(found.map(|below| (role, below))),
                Err(p) => problems.push(*p),
            }
        }
        // The order is that of the kind of layer.
        let order = |role: &Role| layer.kind.roles().iter().position(|r| r.key == role.key);
        filled[i].sort_by_key(|(role, _)| order(role));
    }
    (problems.len() == before).then_some(filled)
}

type RoleResult<T> = Result<T, Box<Problem>>;

fn kind_name(kind: MediumKind) -> &'static str {
    kind.into()
}

/// Describes what a role needs, for messages.
pub(crate) fn describe(needs: Interface) -> String {
    match needs {
        Interface::Medium(kind) => format!("{} medium", kind.with_article()),
        Interface::Block => "a disk or a layer".into(),
    }
}

impl Roles<'_> {
    /// Returns what a key names.
    fn named(&mut self, of: usize, role: &Role, entry: &Entry) -> RoleResult<Vec<Below>> {
        let at = Some(entry.value.span.clone());
        let path = format!("`{}.{}`", self.layers[of].name(), role.key);
        let least = role.names.least_in_list();
        let names: Vec<String> = match &entry.value.data {
            Data::Plain(toml::Value::String(name)) if role.names.takes_one() => vec![name.clone()],
            Data::Plain(toml::Value::Array(all))
                if least.is_some() && all.iter().all(toml::Value::is_str) =>
            {
                all.iter().filter_map(|v| v.as_str()).map(str::to_owned).collect()
            }
            _ => {
                let p = Problem::new(format!("{path} has to be {} of {}", value_of(role), plural(role)));
                return Err(Box::new(p.at(at, "wrong kind of value").help(role.help)));
            }
        };
        if names == [NO_MEDIUM] && role.optional {
            return Ok(Vec::new());
        }
        if let Some(least) = least.filter(|&least| names.len() < least) {
            let p = Problem::new(format!("{path} names {} and needs at least {least}", names.len()));
            return Err(Box::new(p.at(at, "too few devices").help(role.help)));
        }
        names.iter().map(|name| self.find(of, role, &path, name, at.clone())).collect()
    }

    /// Returns the medium or the layer of a name, and marks it as used.
    fn find(
        &mut self,
        of: usize,
        role: &Role,
        path: &str,
        name: &str,
        at: Option<TextSpan>,
    ) -> RoleResult<Below> {
        let err = |p: Problem| Err(Box::new(p));
        let layer = self.layers.iter().position(|l| l.name() == name);
        let medium = self.media.iter().position(|m| m.name == name);
        match (medium, layer) {
            (Some(_), Some(_)) => err(Problem::new(format!("{path}: '{name}' is a medium and a layer"))
                .at(at, "ambiguous")
                .help("give the medium or the layer another name")),
            (Some(i), None) if self.media[i].spec.kind() != role.needs.medium() => {
                let is = kind_name(self.media[i].spec.kind());
                let names = self.fitting(role);
                let p = Problem::new(format!("{path} needs {}; '{name}' is {is}", describe(role.needs)));
                err(p.at(at, "the wrong kind of medium").help(suggest(name, &names)))
            }
            (Some(i), None) if self.media[i].used => {
                let p = Problem::new(format!("{path}: '{name}' is already in use"));
                err(p.at(at, "this medium").help("a medium serves one layer in one role"))
            }
            (Some(i), None) => {
                self.media[i].used = true;
                Ok(Below::Medium(i))
            }
            (None, Some(_)) if role.needs != Interface::Block => {
                let p = Problem::new(format!("{path} needs {}; '{name}' is a layer", describe(role.needs)));
                err(p
                    .at(at, "a layer offers blocks, and this role needs a medium")
                    .help(suggest(name, &self.fitting(role))))
            }
            (None, Some(i)) if i == of => {
                err(Problem::new(format!("{path}: a layer cannot be below itself"))
                    .at(at, "the layer itself"))
            }
            (None, Some(i)) => {
                if let Some(other) = &self.taken[i] {
                    let p = Problem::new(format!("{path}: '{name}' is already in use, as {other}"));
                    return err(p.at(at, "this layer").help("a layer serves one layer in one role"));
                }
                self.taken[i] = Some(path.to_owned());
                Ok(Below::Layer(i))
            }
            (None, None) => {
                let (what, unknown) = match role.needs {
                    Interface::Medium(_) => ("medium", "unknown medium"),
                    Interface::Block => ("medium or layer", "unknown name"),
                };
                let p = Problem::new(format!("{path}: there is no {what} '{name}'")).at(at, unknown);
                // A medium cannot have the name `none`.
                let add = match name {
                    NO_MEDIUM => format!("the layer needs {}; name one", describe(role.needs)),
                    _ => format!("add [media.{name}], with a profile"),
                };
                let help = nearest(name, self.fitting(role)).map_or(add, |n| format!("did you mean `{n}`?"));
                err(p.help(help))
            }
        }
    }

    /// Returns the names that could fill a role.
    fn fitting(&self, role: &Role) -> Vec<&str> {
        let media = self.media.iter().filter(|m| m.spec.kind() == role.needs.medium());
        let layers = self.layers.iter().filter(|_| role.needs == Interface::Block);
        media.map(|m| m.name.as_str()).chain(layers.map(LayerTable::name)).collect()
    }

    /// Returns the only medium that can fill a role without a name, and marks it as used.
    fn only_medium(&mut self, layer: &LayerTable<'_>, role: &Role) -> RoleResult<Option<Below>> {
        let path = layer.name();
        let at = Some(layer.table.span.clone());
        let wanted = role.needs.medium();
        let fit: Vec<usize> = (0..self.media.len())
            .filter(|&i| self.media[i].spec.kind() == wanted && !self.media[i].used)
            .collect();
        let kind = kind_name(wanted);
        let list = if wanted == MediumKind::Disk { "frit disk list" } else { "frit profiles" };
        match fit[..] {
            _ if role.names == RoleNames::List => {
                let p = Problem::new(format!("`{path}` has no devices")).at(at, "this layer");
                Err(Box::new(p.help(format!("name them: `{} = [\"a\", \"b\"]`", role.key))))
            }
            [] if role.optional => Ok(None),
            [] => {
                let taken = self.media.iter().any(|m| m.spec.kind() == wanted);
                let why = if taken { "other layers use those of the stack" } else { "the stack has none" };
                let or = match role.needs {
                    Interface::Block => format!(", or name a layer: `{} = \"…\"`", role.key),
                    Interface::Medium(_) => String::new(),
                };
                let p = Problem::new(format!("`{path}` needs {}, and {why}", describe(role.needs)))
                    .at(at, "this layer")
                    .help(format!("add [media.{kind}] with a `profile`; `{list}` lists them{or}"));
                Err(Box::new(p))
            }
            [one] => {
                self.media[one].used = true;
                Ok(Some(Below::Medium(one)))
            }
            _ => {
                let names: Vec<String> = fit.iter().map(|&i| format!("\"{}\"", self.media[i].name)).collect();
                let (key, names) = (role.key, names.join(", "));
                let (takes, or_all) = match role.names {
                    RoleNames::One => ("takes one", String::new()),
                    _ => ("names none", format!(", or all: `{key} = [{names}]`")),
                };
                let p =
                    Problem::new(format!("the stack has {} {kind} media, and `{path}` {takes}", fit.len()))
                        .at(at, "this layer")
                        .help(format!("name it: `{key} = ` one of {names}{or_all}"));
                Err(Box::new(p))
            }
        }
    }
}

/// Describes the form of a role's value.
fn value_of(role: &Role) -> &'static str {
    match role.names {
        RoleNames::One => "a name",
        RoleNames::OneOrList => "a name or a list of names",
        RoleNames::List => "a list of names",
    }
}

fn plural(role: &Role) -> &'static str {
    match (role.needs, role.names) {
        (Interface::Medium(_), RoleNames::One) => "a medium",
        (Interface::Medium(_), _) => "media",
        (Interface::Block, RoleNames::One) => "a disk or a layer",
        (Interface::Block, _) => "disks or layers",
    }
}
