//! The `[media.<name>]` tables.

use crate::decode::{decode, keys_of, nearest, unknown_key};
use crate::error::{Problem, TextSpan};
use crate::tree::Table;
use frit_core::{Error, MediumKind};
use frit_media::object::ObjectUrl;
use frit_media::profile::KEYS;
use frit_media::{FileAccess, MediumConfig, MediumSpec, Profile};
use std::path::{Path, PathBuf};
use strum::IntoEnumIterator;

/// A medium of a stack.
#[derive(Clone, Debug)]
pub struct StackMedium {
    /// Name of the medium in the stack.
    pub name: String,
    /// Values that the stack gives.
    pub given: MediumConfig,
    /// Values that the stack gives, completed by those of the profile.
    pub complete: MediumConfig,
    /// Checked description of the medium.
    pub spec: MediumSpec,
    /// `true` if a layer uses the medium. Unused media are not built.
    pub used: bool,
    /// Path of the file or block device that holds the bytes of the medium in a volume, relative to
    /// the volume, if the stack names one. The location is not part of the stack's identity.
    pub path: Option<PathBuf>,
    /// The way in which a volume accesses that file or device. It is not part of the stack's identity.
    pub access: FileAccess,
    /// URL of the store that holds the objects of an object store in a volume, if the stack names one.
    /// It is not part of the stack's identity.
    pub url: Option<String>,
}

/// Key of [`StackMedium::path`].
const PATH: &str = "path";
/// Key of [`StackMedium::access`].
const ACCESS: &str = "access";
/// Key of [`StackMedium::url`].
const URL: &str = "url";

impl StackMedium {
    /// Returns the number of channels.
    #[must_use]
    pub fn channels(&self) -> u32 {
        match &self.spec {
            MediumSpec::Nand(c) => c.geometry.channels,
            MediumSpec::Pcm(c) => c.geometry.channels,
            MediumSpec::Dram(c) => c.channels,
            MediumSpec::Disk(_) | MediumSpec::Object(_) => 1,
        }
    }

    /// Returns the number of units that work in parallel: dies or planes of NAND, connections to an
    /// object store, units of a disk, otherwise channels.
    #[must_use]
    pub fn units(&self) -> u32 {
        match &self.spec {
            MediumSpec::Nand(c) => c.geometry.units(),
            MediumSpec::Disk(c) => c.drive.units(),
            MediumSpec::Object(c) => c.connections,
            _ => self.channels(),
        }
    }
}

/// Returns the keys of a kind of medium; those of all kinds if the kind is not known.
pub(crate) fn keys(kind: Option<MediumKind>) -> Vec<&'static str> {
    let kind_keys = KEYS.iter().filter(|k| kind.is_none_or(|m| k.media.contains(&m))).map(|k| k.name);
    let path = (kind != Some(MediumKind::Dram)).then_some(PATH);
    let url = kind.is_none_or(|k| k == MediumKind::Object).then_some(URL);
    let access = kind.is_none_or(|k| k == MediumKind::Disk).then_some(ACCESS);
    kind_keys.chain(path).chain(access).chain(url).collect()
}

/// Reads the path at which a volume stores the bytes of the medium.
fn backing(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<PathBuf> {
    let entry = table.get(PATH)?;
    match entry.value.as_str() {
        Some(text) if !text.is_empty() && !text.contains('\0') => Some(text.into()),
        _ => {
            let what = "the path of a file or a block device, as a string";
            let problem = Problem::new(format!("`{path}.{PATH}` has to be {what}"));
            problems.push(problem.at(Some(entry.value.span.clone()), "no path"));
            None
        }
    }
}

/// Reads the way in which a volume accesses the file or device of a disk.
fn file_access(path: &str, table: &Table, problems: &mut Vec<Problem>) -> FileAccess {
    let Some(entry) = table.get(ACCESS) else { return FileAccess::default() };
    let access = entry.value.as_str().and_then(|text| text.parse().ok());
    access.unwrap_or_else(|| {
        let names: Vec<&str> = FileAccess::iter().map(Into::into).collect();
        let problem = Problem::new(format!("`{path}.{ACCESS}` has to be {}", names.join(", ")));
        problems.push(problem.at(Some(entry.value.span.clone()), "no kind of access"));
        FileAccess::default()
    })
}

/// Reads the URL of the store of an object store.
fn store_url(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<String> {
    let entry = table.get(URL)?;
    let parsed = match entry.value.as_str() {
        Some(text) => ObjectUrl::parse(text).map(|_| text.to_owned()),
        None => Err("has to be a string".into()),
    };
    let at = Some(entry.value.span.clone());
    match parsed {
        Ok(text) => {
            if table.get(PATH).is_some() {
                let problem =
                    Problem::new(format!("`{path}` has a `{PATH}` and a `{URL}`")).at(at, "this one");
                problems.push(problem.help("objects lie in one file, or in a store of objects"));
            }
            Some(text)
        }
        Err(why) => {
            let problem = Problem::new(format!("`{path}.{URL}`: {why}")).at(at, "no URL of a store");
            let help = "docs/reference/objects.md lists the forms and the options";
            problems.push(problem.help(help));
            None
        }
    }
}

/// Returns the kind of a medium as far as its table or its profile gives it.
pub(crate) fn kind(table: &Table, dir: &Path) -> Option<MediumKind> {
    match (table.text("medium"), table.text("profile")) {
        (Some(kind), _) => MediumKind::iter().find(|k| <&str>::from(*k) == kind),
        (None, Some(profile)) => Profile::find(profile, dir).ok().map(|p| p.medium),
        (None, None) => None,
    }
}

/// Reads one medium. `path` is `media.<name>`.
pub(crate) fn read(
    path: &str,
    name: &str,
    table: &Table,
    dir: &Path,
    problems: &mut Vec<Problem>,
) -> Option<StackMedium> {
    let before = problems.len();
    let kind = kind(table, dir);
    let known = keys(kind);
    for entry in table.entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
        let other = KEYS.iter().find(|k| k.name == entry.key);
        problems.push(match (other, kind) {
            (Some(_), Some(kind)) => {
                let kind = kind.with_article();
                Problem::new(format!("`{path}` is {kind} medium and has no key `{}`", entry.key))
                    .at(Some(entry.span.clone()), "a key of other media")
                    .help(format!("its keys are {}", known.join(", ")))
            }
            _ => unknown_key(path, entry, &known),
        });
    }
    check_profile(path, table, dir, problems);
    let backing = backing(path, table, problems);
    let access = file_access(path, table, problems);
    let url = store_url(path, table, problems);
    let given: MediumConfig = decode(path, table, keys_of::<MediumConfig>(), problems)?;
    if problems.len() > before {
        return None;
    }
    match given.resolve(name, dir) {
        Ok(spec) => {
            let complete = complete(given.clone(), dir);
            let name = name.into();
            Some(StackMedium { name, given, complete, spec, used: false, path: backing, access, url })
        }
        Err(e) => {
            problems.push(param_problem(path, table, "profile", e));
            None
        }
    }
}

/// Checks that the profile exists. If it does not, the most similar name is suggested.
fn check_profile(path: &str, table: &Table, dir: &Path, problems: &mut Vec<Problem>) {
    let Some(name) = table.text("profile") else { return };
    if let Err(e) = Profile::find(name, dir) {
        let near = nearest(name, Profile::builtin_names()).map(|p| format!("did you mean `{p}`?"));
        problems.push(param_problem(path, table, "profile", e).help(near.unwrap_or_default()));
    }
}

/// Completes a configuration with the values of its profile, and of that profile's base profiles.
/// [`MediumConfig::resolve`] has followed the chain before, so that all profiles exist and the
/// chain ends.
fn complete(mut config: MediumConfig, dir: &Path) -> MediumConfig {
    while let Some(base) = config.profile.take().and_then(|name| Profile::find(&name, dir).ok()) {
        config.medium = Some(base.medium);
        config = config.completed_by(base.values);
    }
    config
}

/// Returns the location of a parameter: its value if the table has it, else the key that supplies
/// the value (`source`), else the table.
pub(crate) fn span_of(table: &Table, key: &str, source: &str) -> (TextSpan, &'static str) {
    // Some errors name several keys.
    if let Some(e) = key.split(", ").find_map(|k| table.get(k)) {
        return (e.value.span.clone(), "this value");
    }
    match table.get(source) {
        Some(e) => (e.value.span.clone(), "its value comes from here"),
        None => (table.span.clone(), "not given in this table"),
    }
}

/// Turns an error about a parameter into a problem at its location in a table.
pub(crate) fn param_problem(path: &str, table: &Table, source: &str, error: Error) -> Problem {
    match error {
        Error::Param { key, value, why } => {
            let (span, label) = span_of(table, &key, source);
            let value = if value.is_empty() { value } else { format!(" = {value}") };
            Problem::new(format!("`{path}.{key}`{value}: {why}")).at(Some(span), label)
        }
        other => {
            let span = table.get(source).map_or(&table.span, |e| &e.value.span);
            Problem::new(format!("`{path}`: {other}")).at(Some(span.clone()), "from here")
        }
    }
}
