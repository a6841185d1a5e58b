//! The text behind the options of `frit COMMAND --help` fits the width to which clap breaks lines.

use crate::Cli;
use clap::{Command, CommandFactory};

/// Width of the help where no terminal has another one (clap).
const WIDTH: usize = 100;

/// Returns the commands below a command with the text behind their options.
fn texts(command: &Command, name: &str) -> Vec<(String, String)> {
    let own = [command.get_after_help(), command.get_after_long_help()];
    let own = own.into_iter().flatten().map(|text| (name.to_owned(), text.to_string()));
    let below =
        command.get_subcommands().flat_map(|below| texts(below, &format!("{name} {}", below.get_name())));
    own.chain(below).collect()
}

#[test]
fn lines_of_help_are_broken_where_they_are_meant_to_be() {
    let mut wrong = Vec::new();
    let texts = texts(&Cli::command(), "frit");
    assert!(texts.len() > 30, "{}", texts.len());
    for (name, text) in texts {
        let lines: Vec<&str> = text.lines().collect();
        for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
            let is_prose = !line.is_empty() && !line.starts_with(' ');
            let is_title = line.ends_with(':') && next.starts_with(' ');
            if is_prose && !is_title && !next.is_empty() {
                wrong.push(format!("{name}: a paragraph is one line: {line}"));
            } else if line.starts_with(' ') && line.chars().count() > WIDTH {
                wrong.push(format!("{name}: {} characters: {line}", line.chars().count()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
