//! `frit profiles`.

use crate::output::{print, print_json, right, table, text};
use frit_core::Error;
use frit_media::profile::ProfileRow;
use frit_media::{MediumConfig, Profile};
use miette::{Result, miette};
use serde::Serialize;
use std::path::Path;

/// List the profiles of media, or show every value of one with its source.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit profiles                      list all profiles
  frit profiles pcm-p8p-2016         every value with its source
  frit profiles ./mine.toml --json   a profile of your own

A stack names a profile under [media.<name>]; see docs/reference/stacks.md.")]
pub(crate) struct Args {
    /// Profile name, or the path of a TOML file; without it, all profiles are listed.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ProfileJson<'a> {
    name: &'a str,
    medium: &'a str,
    bytes: Option<u64>,
    about: &'a str,
    values: Vec<ProfileValueJson>,
}

#[derive(Serialize)]
struct ProfileValueJson {
    key: &'static str,
    value: String,
    source: String,
    help: &'static str,
}

/// Runs the command.
///
/// # Errors
/// The name is unknown, or the file is not a profile.
pub(crate) fn run(args: &Args) -> Result<()> {
    let profiles = match &args.name {
        Some(name) => vec![Profile::find(name, Path::new("")).map_err(|e| report(name, &e))?],
        None => Profile::builtins().map_err(|e| miette!("{e}"))?,
    };
    match (&profiles[..], args.json) {
        ([one], true) if args.name.is_some() => print_json(&json(one)),
        (all, true) => print_json(&all.iter().map(json).collect::<Vec<_>>()),
        ([one], false) if args.name.is_some() => print(&show(one)),
        (all, false) => print(&list(all)),
    }
}

fn report(name: &str, e: &Error) -> miette::Report {
    let Error::Param { key, why, .. } = e else { return miette!("{e}") };
    if key == "profile" { miette!("'{name}': {why}") } else { miette!("'{name}': {key}: {why}") }
}

fn bytes(p: &Profile) -> Option<u64> {
    let whole = MediumConfig { medium: Some(p.medium), ..p.values.clone() };
    whole.resolve(&p.name, Path::new("")).ok().map(|spec| spec.bytes())
}

fn json(p: &Profile) -> ProfileJson<'_> {
    let value =
        |r: ProfileRow| ProfileValueJson { key: r.key, value: r.value, source: r.source, help: r.help };
    ProfileJson {
        name: &p.name,
        medium: p.medium.into(),
        bytes: bytes(p),
        about: p.about.trim(),
        values: p.rows().into_iter().map(value).collect(),
    }
}

fn list(all: &[Profile]) -> String {
    let mut t = table(&["profile", "medium", "size", "about"]);
    for p in all {
        let medium: &str = p.medium.into();
        let size = bytes(p).map(frit_core::size::format).unwrap_or_default();
        // Only the first sentence is listed; `frit profiles NAME` shows all.
        let about = p.about.trim();
        let about = about.split_once(". ").map_or(about, |(first, _)| first);
        t.add_row([p.name.as_str(), medium, &size, about.trim_end_matches('.')]);
    }
    right(&mut t, 2);
    format!(
        "{}\nfrit profiles NAME shows every value with its source; frit disk list has the drives, which a disk \
         medium takes as its profile.\n",
        text(&t)
    )
}

fn show(p: &Profile) -> String {
    let medium: &str = p.medium.into();
    let mut t = table(&["key", "value", "source"]);
    for r in p.rows() {
        t.add_row([r.key, &r.value, &r.source]);
    }
    let size = bytes(p).map(|b| format!(", {}", frit_core::size::format(b))).unwrap_or_default();
    format!("{} ({medium}{size})\n{}\n\n{}", p.name, p.about.trim(), text(&t))
}
