//! The examples in docs/reference/stacks.md are correct.

use frit_core::params::Phase;
use frit_core::{ParamDef, ParamTable};
use frit_layer::cache::policy::PolicyConfig;
use frit_media::Profile;
use frit_stack::layers::LayerKind;
use frit_stack::{Bytes, EngineKind, Stack, builtins};
use frit_wear::WearKeys;
use strum::VariantNames;

const DOC: &str = include_str!("../../../../docs/reference/stacks.md");

/// Returns the fenced blocks of the document: info string and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    let mut rest = DOC;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (info, after) = after.split_once('\n').unwrap();
        let (text, after) = after.split_once("```\n").unwrap();
        all.push((info, text));
        rest = after;
    }
    all
}

#[test]
fn stacks_and_profiles_in_the_manual_are_good() {
    let (mut stacks, mut profiles) = (0, 0);
    for (info, text) in blocks() {
        match info {
            "toml" => {
                let stack = Stack::parse("docs", text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
                stack.build(&Bytes::None).unwrap_or_else(|e| panic!("{e}\n{text}"));
                stacks += 1;
            }
            "toml profile" => {
                Profile::parse(text).unwrap();
                profiles += 1;
            }
            "toml wrong" | "text" => {}
            other => panic!("a block of kind '{other}' that no test looks at"),
        }
    }
    assert_eq!((stacks, profiles), (5, 1));
}

#[test]
fn the_error_in_the_manual_is_what_is_said() {
    let all = blocks();
    let i = all.iter().position(|(info, _)| *info == "toml wrong").unwrap();
    let e = Stack::parse("mine.toml", all[i].1, &[]).unwrap_err();
    let mut shown = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    miette::GraphicalReportHandler::new_themed(theme).render_report(&mut shown, &e).unwrap();
    assert_eq!(shown.trim_end(), all[i + 1].1.trim_end());
}

#[test]
fn the_manual_lists_what_there_is() {
    for b in builtins() {
        assert!(DOC.contains(&format!("\n| `{}` |", b.name)), "the stack {} is not listed", b.name);
    }
    for name in EngineKind::VARIANTS.iter().chain(frit_engine::AnyScheduler::VARIANTS) {
        assert!(DOC.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn overrides_in_the_manual_work() {
    let mut seen = 0;
    for line in DOC.lines().skip_while(|l| *l != "## Overrides").take_while(|l| *l != "## Errors") {
        let Some(cell) = line.strip_prefix("| `") else { continue };
        let keys = cell.split('`').step_by(2).take_while(|k| !k.starts_with(" |"));
        for set in keys.filter(|k| k.contains('=')) {
            let mut sets = vec![set.to_owned()];
            if set == "hfsl.pcm=none" {
                sets.push("FUSION_METHOD=none".into());
            }
            Stack::builtin("hfsl-small", &sets).unwrap_or_else(|e| panic!("{set}: {e}"));
            seen += 1;
        }
    }
    assert_eq!(seen, 8);
}

/// Returns the row of a parameter in the page of its layer.
fn row(def: &ParamDef, default: &str) -> String {
    let values = match &def.range {
        Some([least, largest]) => format!("{least} to {largest}"),
        None => def.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let live = if def.phase == Phase::Live { "yes" } else { "" };
    let cells = [&format!("`{}`", def.key), def.unit, default, &values, live, def.help];
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the table of the layer's own parameters. Those of eviction policies and of wear leveling
/// have pages of their own.
fn parameters(kind: LayerKind) -> String {
    let others = [PolicyConfig::defs(), WearKeys::defs()].concat();
    let of_other = |key: &str| {
        matches!(kind, LayerKind::Cache | LayerKind::Ntl) && others.iter().any(|def| def.key == key)
    };
    let mut text =
        String::from("| name | unit | default | values | live | meaning |\n|---|---|---|---|---|---|\n");
    for (def, info) in kind.parameters().iter().zip(kind.defaults()) {
        if !of_other(def.key) {
            text += &row(def, &info.value);
        }
    }
    text
}

fn path(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

fn page(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

/// With `UPDATE_DOCS=1` the test writes the tables into the pages.
#[test]
fn tables_of_parameters_are_those_of_the_code() {
    for &kind in LayerKind::all() {
        let name = match kind.is_composer() {
            true => format!("composers/{}.md", kind.name()),
            false => format!("{}.md", kind.name()),
        };
        let text = page(&name);
        let (head, rest) = text.split_once("<!-- parameters -->\n").unwrap();
        let (_, tail) = rest.split_once("<!-- end of parameters -->\n").unwrap();
        let right =
            format!("{head}<!-- parameters -->\n{}<!-- end of parameters -->\n{tail}", parameters(kind));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path(&name), &right).unwrap();
        } else {
            assert!(text == right, "{name} is out of date; UPDATE_DOCS=1 cargo test -p frit-stack writes it");
        }
    }
}
