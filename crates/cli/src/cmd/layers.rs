//! `frit layers`.

use crate::output::{print, print_json, table, text};
use frit_stack::layers::{Interface, LayerKind, RoleNames};
use miette::{Result, miette};
use serde::Serialize;

/// List the layers, or show one: its media, its parameters with defaults, its policies.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit layers                list all layers
  frit layers hfsl           parameters, defaults, policies by name
  frit layers hfsl --json

A stack has a layer as a table of its own, such as [hfsl]; see docs/reference/stacks.md.")]
pub(crate) struct Args {
    /// Name of a layer; without it, all layers are listed.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct LayerJson {
    name: &'static str,
    about: &'static str,
    on: Vec<RoleJson>,
    parameters: Vec<ParameterJson>,
}

#[derive(Serialize)]
struct RoleJson {
    key: &'static str,
    medium: &'static str,
    /// `true` if a layer can fill the role as well.
    layer: bool,
    optional: bool,
    /// `true` if the key takes a list of names.
    many: bool,
    /// `true` if the key takes a name without a list.
    single: bool,
    help: &'static str,
}

#[derive(Serialize)]
struct ParameterJson {
    key: &'static str,
    unit: &'static str,
    default: String,
    names: &'static [&'static str],
    range: Option<&'static [String; 2]>,
    live: bool,
    help: &'static str,
}

/// Runs the command.
///
/// # Errors
/// An unknown name.
pub(crate) fn run(args: &Args) -> Result<()> {
    let kinds = match &args.name {
        Some(name) => vec![find(name)?],
        None => LayerKind::all().to_vec(),
    };
    let layers: Vec<LayerJson> = kinds.into_iter().map(layer).collect();
    match (&layers[..], args.json, args.name.is_some()) {
        ([one], true, true) => print_json(one),
        (all, true, _) => print_json(&all),
        ([one], false, true) => print(&show(one)),
        (all, false, _) => print(&list(all)),
    }
}

fn find(name: &str) -> Result<LayerKind> {
    name.parse().map_err(|_| {
        let names: Vec<&str> = LayerKind::all().iter().map(|k| k.name()).collect();
        miette!("there is no layer '{name}'; there are {}", names.join(", "))
    })
}

fn layer(kind: LayerKind) -> LayerJson {
    let parameters = kind.defaults().into_iter().zip(kind.parameters()).map(|(p, def)| ParameterJson {
        key: def.key,
        unit: def.unit,
        default: p.value,
        names: def.names,
        range: def.range.as_ref(),
        live: p.live,
        help: p.help,
    });
    let role = |r: &frit_stack::layers::Role| RoleJson {
        key: r.key,
        medium: r.needs.medium().into(),
        layer: r.needs == Interface::Block,
        optional: r.optional,
        many: r.names != RoleNames::One,
        single: r.names.takes_one(),
        help: r.help,
    };
    LayerJson {
        name: kind.name(),
        about: kind.about(),
        on: kind.roles().iter().map(role).collect(),
        parameters: parameters.collect(),
    }
}

fn list(all: &[LayerJson]) -> String {
    let mut t = table(&["layer", "lies on", "about"]);
    for l in all {
        let on: Vec<String> =
            l.on.iter()
                .map(|r| match r {
                    RoleJson { optional: true, .. } => format!("[{}]", r.medium),
                    RoleJson { layer: true, many: true, .. } => "disks or layers".into(),
                    RoleJson { layer: true, .. } => "disk or layer".into(),
                    _ => r.medium.into(),
                })
                .collect();
        t.add_row([l.name, &on.join(" "), l.about]);
    }
    format!("{}\nfrit layers NAME shows all parameters and policies.\n", text(&t))
}

fn show(l: &LayerJson) -> String {
    let mut roles = table(&["key", "names", "", "for"]);
    for r in &l.on {
        let optional = if r.optional { "optional" } else { "needed" };
        let names = match (r.layer, r.many) {
            (true, true) => "disks or layers, as a list".to_owned(),
            (true, false) => "a disk or a layer".to_owned(),
            (false, false) => format!("a {} medium", r.medium),
            (false, true) => format!("a {0} medium, or a list of {0} media", r.medium),
        };
        roles.add_row([r.key, &names, optional, r.help]);
    }
    let mut t = table(&["parameter", "unit", "default", "range", "live", "meaning"]);
    for p in &l.parameters {
        let range = p.range.map_or(String::new(), |[least, largest]| format!("{least} to {largest}"));
        t.add_row([p.key, p.unit, &p.default, &range, if p.live { "yes" } else { "" }, p.help]);
    }
    let mut names = table(&["chosen by name", "there are"]);
    for p in l.parameters.iter().filter(|p| !p.names.is_empty()) {
        names.add_row([p.key, &p.names.join(", ")]);
    }
    let live = "live: can be changed while the layer runs";
    format!("{}: {}\n\n{}\n{}\n{}\n{live}\n", l.name, l.about, text(&roles), text(&t), text(&names))
}
