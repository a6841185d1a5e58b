//! `frit check`.

mod show;
mod tree;

use super::volume::check::{CheckOptions, check as check_volume};
use crate::output::{print, print_json, report, table, text};
use frit_stack::{Problem, Stack, StackError, StackSummary, builtins};
use miette::{Report, Result, miette};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Check stacks and show their properties, or check volumes; without a target, list the built-in
/// stacks.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit check                                     list the built-in stacks
  frit check hfsl-paper                          a built-in stack
  frit check mine.toml theirs.toml               files
  frit check mine.toml --set hfsl.SSW=1024       with an override
  frit check mine.toml --set channels=4 --json   for programs
  frit check hfsl-paper --print > mine.toml      print the file of a stack
  frit check vol                                 a volume: superblock, map, spare areas, descriptors
  frit check vol --data --repair                 all of its data as well, with repair

Exits with 1 when a stack cannot be used, or when findings are left in a volume; with 2 when a volume cannot be opened. \
Without --repair a volume is not changed. See docs/reference/stacks.md and docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// Stack files, names of built-in stacks, or volumes.
    #[arg(value_name = "TARGET")]
    stacks: Vec<String>,
    /// Override a key of the stack: hfsl.SSW=1024, media.pcm.channels=4, or SSW=1024 where only one table
    /// has the key. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print JSON: one object for each stack, with its errors or its properties, or for each volume,
    /// with its findings.
    #[arg(long)]
    json: bool,
    /// Print the files of built-in stacks instead.
    #[arg(long, conflicts_with_all = ["set", "json"], requires = "stacks")]
    print: bool,
    /// Also show every value of every medium with its source, and the meaning of each parameter.
    #[arg(long, short, conflicts_with = "json")]
    all: bool,
    /// Volumes: read and verify all data.
    #[arg(long)]
    data: bool,
    /// Volumes: repair damage where possible.
    #[arg(long)]
    repair: bool,
    /// Volumes, with --repair: replace a lost page by an older version if there is one. The page
    /// then reads without an error, but its latest data is lost.
    #[arg(long, requires = "repair")]
    older: bool,
}

/// Returns `true` if a target is a volume: a directory, unless a built-in stack has its name.
fn is_volume(target: &str) -> bool {
    let path = Path::new(target);
    let builtin = builtins().iter().any(|b| b.name == target);
    path.is_dir() && (!builtin || path.join(frit_volume::superblock::FILE_NAME).exists())
}

/// Checks volumes, one after another. Returns the worst exit code.
fn volumes(args: &Args) -> Result<ExitCode> {
    if let Some(stack) = args.stacks.iter().find(|t| !is_volume(t)) {
        return Err(miette!(
            "'{stack}' is not a directory, and other targets are volumes: check stacks and volumes separately"
        ));
    }
    if !args.set.is_empty() || args.print || args.all {
        return Err(miette!("--set, --print and --all are for stacks"));
    }
    let how = CheckOptions { data: args.data, repair: args.repair, older: args.older, json: args.json };
    let (mut worst, mut outcomes) = (0, Vec::new());
    for volume in &args.stacks {
        worst = worst.max(check_volume(Path::new(volume), how, &mut outcomes)?);
    }
    if args.json {
        print_json(&outcomes)?;
    }
    Ok(ExitCode::from(worst))
}

/// Result for one stack.
#[derive(Serialize)]
struct StackCheckJson<'a> {
    stack: &'a str,
    ok: bool,
    errors: Vec<ProblemJson<'a>>,
    warnings: Vec<ProblemJson<'a>>,
    summary: Option<&'a StackSummary>,
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    message: &'a str,
    hint: Option<&'a str>,
    /// Source of the text: the file, the built-in stack, or "--set".
    text: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
}

type StackCheck = std::result::Result<(StackSummary, Vec<Problem>), StackError>;

/// Runs the command.
///
/// # Errors
/// The output cannot be written. An invalid stack is reported by the exit code.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.stacks.is_empty() {
        list()?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.stacks.iter().any(|t| is_volume(t)) {
        return volumes(args);
    }
    if args.data || args.repair {
        return Err(miette!("--data and --repair are for volumes: name a volume's directory"));
    }
    if args.print {
        print_texts(&args.stacks)?;
        return Ok(ExitCode::SUCCESS);
    }
    let checked: Vec<StackCheck> =
        args.stacks.iter().map(|name| Stack::load(name, &args.set).and_then(|s| s.summary())).collect();
    let ok = checked.iter().all(std::result::Result::is_ok);
    if args.json {
        let outcomes: Vec<StackCheckJson<'_>> = args.stacks.iter().zip(&checked).map(outcome).collect();
        print_json(&outcomes)?;
    } else {
        for (i, result) in checked.into_iter().enumerate() {
            if i > 0 {
                print("\n")?;
            }
            match result {
                Ok((summary, warnings)) => {
                    print(&show::summary(&summary, args.all))?;
                    for w in warnings {
                        report(&Report::new(w))?;
                    }
                }
                Err(e) => report(&Report::new(e))?,
            }
        }
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn outcome<'a>((stack, checked): (&'a String, &'a StackCheck)) -> StackCheckJson<'a> {
    let places = |all: &'a [Problem]| all.iter().map(place).collect();
    match checked {
        Ok((summary, warnings)) => StackCheckJson {
            stack,
            ok: true,
            errors: Vec::new(),
            warnings: places(warnings),
            summary: Some(summary),
        },
        Err(e) => StackCheckJson {
            stack,
            ok: false,
            errors: places(e.problems()),
            warnings: Vec::new(),
            summary: None,
        },
    }
}

fn place(p: &Problem) -> ProblemJson<'_> {
    let (line, column) = p.line_column().unzip();
    ProblemJson { message: p.message(), hint: p.hint(), text: p.text(), line, column }
}

fn list() -> Result<()> {
    let mut t = table(&["stack", "what it is"]);
    for b in builtins() {
        let stack = Stack::builtin(b.name, &[])?;
        t.add_row([b.name, stack.about()]);
    }
    print(&format!("{}\nfrit check NAME shows one; frit check NAME --print prints its file.\n", text(&t)))
}

fn print_texts(names: &[String]) -> Result<()> {
    for name in names {
        let found = builtins().iter().find(|b| b.name == name);
        print(found.ok_or_else(|| miette!("'{name}' is no builtin stack; `frit check` lists them"))?.text)?;
    }
    Ok(())
}
