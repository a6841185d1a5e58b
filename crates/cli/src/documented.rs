//! Every `frit` command in the README and in the pages is one that the program accepts.

mod not_run;

use crate::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

/// A command in a page.
struct Documented {
    /// Path from the root of the repository.
    page: String,
    /// The command with its arguments.
    words: Vec<String>,
    /// `true` if it is a line of a fenced block, which readers copy as a whole. Others are mentions
    /// in the text, which may leave out arguments.
    whole: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the paths of the README and of all pages, from the root of the repository.
fn pages() -> Vec<String> {
    let mut all = vec!["README.md".to_owned(), "docs/README.md".to_owned()];
    for dir in ["guide", "reference", "reference/composers", "design", "results"] {
        for entry in std::fs::read_dir(root().join("docs").join(dir)).expect("a directory of pages") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
            all.extend(name.ends_with(".md").then(|| format!("docs/{dir}/{name}")));
        }
    }
    all.sort();
    all
}

/// Returns the commands of all pages.
fn documented_commands() -> Vec<Documented> {
    let read = |page: &String| std::fs::read_to_string(root().join(page)).expect("a page");
    pages().iter().flat_map(|page| commands(page, &read(page))).collect()
}

/// Splits a command into words as a shell does. It ends at an operator of the shell, at a comment,
/// or at two spaces, after which pages describe it.
fn words(line: &str) -> Vec<String> {
    let line = line.trim();
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => {
                all.extend(word.take());
                if chars.peek() == Some(&' ') {
                    return all;
                }
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    let operator =
        |w: &String| w.starts_with('#') || ["|", ">", ">>", "<", "&", "&&", "||", "2>"].contains(&w.as_str());
    let end = all.iter().position(operator).unwrap_or(all.len());
    all.truncate(end);
    all
}

/// Returns the command of a line, or `None` if it has none, or is a synopsis with omissions.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let rest = ["frit ", "target/release/frit "].iter().find_map(|start| line.strip_prefix(start))?;
    let words: Vec<String> = ["frit".to_owned()].into_iter().chain(words(rest)).collect();
    let synopsis = |w: &String| w.contains('…') || w.contains("...") || w.starts_with(['[', '<', '(']);
    let named = words.get(1)?.starts_with(|c: char| c.is_ascii_lowercase() || c == '-');
    (named && !words.iter().any(synopsis)).then_some(words)
}

/// Returns the commands of a page: lines of fenced blocks, and code spans in the text.
fn commands(page: &str, text: &str) -> Vec<Documented> {
    let mut all = Vec::new();
    let mut add = |line: &str, whole| {
        all.extend(command(line).map(|words| Documented { page: page.to_owned(), words, whole }));
    };
    let (mut fenced, mut prose, mut part) = (false, String::new(), String::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            // A backslash continues a command on the next line.
            part += line.trim();
            match part.strip_suffix('\\') {
                Some(begun) => part = begun.to_owned(),
                None => add(&std::mem::take(&mut part), true),
            }
        } else {
            prose.push_str(line);
            // A span may continue on the next line.
            prose.push(if line.is_empty() { '`' } else { ' ' });
            if line.is_empty() && prose.matches('`').count() % 2 == 1 {
                prose.push('`');
            }
        }
    }
    for span in prose.split('`').skip(1).step_by(2) {
        add(span, false);
    }
    all
}

/// Returns the reason why the program does not accept a command.
fn refused(c: &Documented) -> Option<String> {
    let error = Cli::try_parse_from(&c.words).err()?;
    // A word in capitals stands for a value.
    let placeholder = |w: &String| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let incomplete = !c.whole || c.words.iter().any(placeholder);
    let accepted = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => false,
        _ => incomplete,
    };
    (!accepted).then(|| format!("{}: `{}`: {error}", c.page, c.words.join(" ")))
}

#[test]
fn commands_in_the_pages_are_accepted() {
    let all = documented_commands();
    let whole = all.iter().filter(|c| c.whole).count();
    assert!(whole > 80 && all.len() > 150, "{whole} lines and {} commands were found", all.len());
    let wrong: Vec<String> = all.iter().filter_map(refused).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_ends_where_a_shell_or_a_page_ends_it() {
    let of = |line: &str| command(line).map(|words| words.join("|"));
    assert_eq!(of("frit run a 'b c' # text").unwrap(), "frit|run|a|b c");
    assert_eq!(of("frit check vol   superblock, map").unwrap(), "frit|check|vol");
    assert_eq!(of("sudo frit export vol - | zstd").unwrap(), "frit|export|vol|-");
    assert_eq!(of("frit trace generate NAME,key=value,… OUT"), None);
    assert_eq!(of("frit: warning: other users"), None);
}
