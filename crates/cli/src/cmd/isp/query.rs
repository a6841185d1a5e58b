//! `frit isp query`.

use super::channel::{Answered, ImageArgs, RangeArgs, ask};
use crate::output::{print, print_bytes, right, table, text};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// File on a mounted file system of frit, or in an image (--image).
    file: PathBuf,
    /// Words to count: up to 64, of up to 256 bytes.
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Number of positions to locate of each word.
    #[arg(long, value_name = "N", default_value_t = 1)]
    positions: usize,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    image: ImageArgs,
    /// Print the result in JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct WordJson {
    word: Value,
    count: u64,
    positions: Vec<u64>,
}

#[derive(Deserialize)]
struct ResultJson {
    status: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    words: Vec<WordJson>,
    changed: bool,
    bytes_scanned: u64,
    wall_ns: u64,
    cpu_ns: u64,
    yields: u64,
}

/// Gives the query, and prints its result.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let name = args.file.file_name();
    let name = name.ok_or_else(|| miette!("{}: not the name of a file", args.file.display()))?;
    let directory = match args.file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // The directory of a mount is a file of another file system.
    if args.image.image.is_none() && args.file.is_dir() {
        return Err(miette!("{} is a directory; name a file in it", args.file.display()));
    }
    let mut instruction = Map::new();
    instruction.insert("words".into(), json!(args.words));
    instruction.insert("positions".into(), json!(args.positions));
    match name.to_str() {
        Some(name) => instruction.insert("file".into(), json!(name)),
        None => instruction.insert("inode".into(), json!(inode(args)?)),
    };
    args.range.add_to(&mut instruction);
    let answered = ask(directory, &Value::Object(instruction).to_string(), &args.image)?;
    let (line, _) = answered.parts();
    let result: ResultJson = serde_json::from_slice(line).into_diagnostic()?;
    if args.json {
        let mut all: Map<String, Value> = serde_json::from_slice(line).into_diagnostic()?;
        all.insert("caller_requests".into(), json!(answered.requests));
        all.insert("caller_cpu_ns".into(), json!(answered.cpu.as_nanos() as u64));
        print_bytes(format!("{}\n", Value::Object(all)).as_bytes())?;
    } else if result.status == "ok" {
        tell(args, &result, &answered)?;
    }
    match (result.status.as_str(), args.json) {
        ("ok", _) => Ok(ExitCode::SUCCESS),
        (_, true) => Ok(ExitCode::FAILURE),
        (_, false) => Err(miette!("{}", result.error)),
    }
}

/// Returns the inode number of the file, which names it in an instruction in JSON if its name is not UTF-8.
fn inode(args: &Args) -> Result<u64> {
    let shown = args.file.display();
    if args.image.image.is_some() {
        return Err(miette!(
            help = "mount the image: a mounted file may have any name",
            "{shown}: the name is not UTF-8, which an instruction for an image cannot contain"
        ));
    }
    let found = std::fs::symlink_metadata(&args.file).into_diagnostic();
    Ok(found.wrap_err_with(|| format!("cannot find {shown}"))?.ino())
}

fn tell(args: &Args, result: &ResultJson, answered: &Answered) -> Result<()> {
    let mut shown = table(&["word", "count", "first positions"]);
    for word in &result.words {
        let name = word.word.as_str().map_or_else(|| word.word.to_string(), str::to_owned);
        let positions: Vec<String> = word.positions.iter().map(u64::to_string).collect();
        shown.add_row([name, word.count.to_string(), positions.join(" ")]);
    }
    right(&mut shown, 1);
    let seconds = result.wall_ns as f64 / 1e9;
    let rate = result.bytes_scanned as f64 / 1e6 / seconds.max(1e-9);
    let cpu = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let mut out = text(&shown);
    out += &format!(
        "{} bytes of {} in {:.3} ms: {rate:.0} MB/s\nprocessor time: {} of the engine, {} of this program",
        result.bytes_scanned,
        args.file.display(),
        seconds * 1e3,
        cpu(Duration::from_nanos(result.cpu_ns)),
        cpu(answered.cpu),
    );
    if answered.requests > 0 {
        out += &format!(", in {} requests", answered.requests);
    }
    out += "\n";
    if result.yields > 0 {
        out += &format!("the engine waited {} times for other requests\n", result.yields);
    }
    if result.changed {
        out += "the file changed during the scan: the counts are of some mixture of its states\n";
    }
    print(&out)
}
