//! Any text of a file or an override gives a stack or an error, never a panic.

use frit_stack::{Stack, builtins};
use proptest::prelude::*;

/// Reads a stack and renders its errors. Rendering must also work for unusual source locations.
fn read(text: &str, sets: &[String]) {
    match Stack::parse("fuzz", text, sets) {
        Ok(stack) => assert_eq!(stack.identity().sha256.len(), 64),
        Err(e) => {
            assert!(!e.problems().is_empty() && e.problems().iter().all(|p| !p.message().is_empty()));
            let mut shown = String::new();
            miette::GraphicalReportHandler::new().render_report(&mut shown, &e).unwrap();
            assert!(!shown.is_empty());
        }
    }
}

fn valid() -> impl Strategy<Value = String> {
    (0..builtins().len()).prop_map(|i| builtins()[i].text.to_owned())
}

/// Returns fragments that are valid somewhere in a stack file, for insertion at wrong positions.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[hfsl]\n".to_owned()),
        Just("[media.nand]\n".to_owned()),
        Just("[engine]\n".to_owned()),
        Just("[[hfsl]]\n".to_owned()),
        Just("profile = \"dram-ddr4\"\n".to_owned()),
        Just("kind = \"hfsl\"\n".to_owned()),
        Just("nand = \"pcm\"\n".to_owned()),
        Just("channels = 0xFFFF_FFFF_FFFF_FFFF\n".to_owned()),
        Just("SSW = nan\n".to_owned()),
        Just("read = [[1, 2], []]\n".to_owned()),
        Just("\"\" = 1\n".to_owned()),
        Just("scheduler = \"hfsl\"\n".to_owned()),
        Just("\u{1F4BE}\n".to_owned()),
        "[a-z_]{1,12} = [0-9\"\\[\\]{}.,-]{0,8}\n",
    ]
}

/// Returns the first character boundary at or after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn truncated_stacks_are_answered(text in valid(), at in 0usize..900) {
        read(&text[..boundary(&text, at)], &[]);
    }

    #[test]
    fn stacks_with_pieces_in_odd_places_are_answered(
        text in valid(), pieces in prop::collection::vec((piece(), 0usize..900), 1..4)
    ) {
        let mut text = text;
        for (piece, at) in pieces {
            // Mostly between lines, so that the rest of the text still parses.
            let at = boundary(&text, at);
            let at = if at.is_multiple_of(4) { at } else { text[at..].find('\n').map_or(text.len(), |n| at + n + 1) };
            text.insert_str(at, &piece);
        }
        read(&text, &[]);
    }

    #[test]
    fn stacks_with_changed_characters_are_answered(
        text in valid(), changes in prop::collection::vec((0usize..900, any::<char>()), 1..6)
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, c) in changes {
            let n = chars.len();
            chars[at % n] = c;
        }
        read(&chars.into_iter().collect::<String>(), &[]);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}") {
        read(&text, &[]);
    }

    #[test]
    fn any_override_is_answered(
        text in valid(),
        key in prop_oneof!["[a-zA-Z_.]{0,16}", Just("hfsl.SSW".to_owned()), Just("media.nand.channels".to_owned()),
            Just("engine.scheduler".to_owned()), Just("media".to_owned()), Just("read".to_owned())],
        value in prop_oneof!["\\PC{0,16}", "-?[0-9]{1,22}", Just("[[1, \"2 us\"]]".to_owned()), Just("{}".to_owned())],
        eq in prop::bool::weighted(0.95),
    ) {
        read(&text, &[format!("{key}{}{value}", if eq { "=" } else { "" })]);
    }
}
