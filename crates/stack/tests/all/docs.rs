//! The examples in docs/reference/stacks.md are correct.

use frit_core::Null;
use frit_media::Profile;
use frit_stack::{Bytes, EngineKind, Stack, builtins};
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
                stack.build::<Null>(&Bytes::None).unwrap_or_else(|e| panic!("{e}\n{text}"));
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
    assert_eq!((stacks, profiles), (4, 1));
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
