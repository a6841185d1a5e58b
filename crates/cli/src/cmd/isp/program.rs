//! `frit isp program`.

use super::channel::{ImageArgs, RangeArgs, ask};
use crate::output::print_bytes;
use frit_core::size;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::{Map, Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Module of WebAssembly, on the same mounted file system as the file, or in the same image (--image).
    module: PathBuf,
    /// File that the program processes.
    file: PathBuf,
    /// Argument for the program.
    #[arg(long, value_name = "TEXT")]
    argument: Option<String>,
    /// Limit of fuel: about one unit for each instruction of WebAssembly. [default: none]
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Limit of the memory of the program, and of its results. [default: 16M]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    memory: Option<u64>,
    /// Limit of processor time, in milliseconds. [default: 10000]
    #[arg(long, value_name = "MS")]
    time_ms: Option<u64>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    image: ImageArgs,
    /// Print the line of the result in JSON before the bytes of the program.
    #[arg(long)]
    json: bool,
}

/// Runs the program, and prints what it emits.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (module, file) = if args.image.image.is_some() {
        (args.module.clone(), args.file.clone())
    } else {
        let found = (absolute(&args.module)?, absolute(&args.file)?);
        check_same_mount(&found.0, &found.1)?;
        found
    };
    let (directory, module, file) = relative_to_common(&module, &file)?;
    let mut instruction = Map::new();
    let optional = [
        ("argument", args.argument.as_ref().map(|text| json!(text))),
        ("fuel", args.fuel.map(|number| json!(number))),
        ("memory", args.memory.map(|bytes| json!(bytes))),
        ("time_ms", args.time_ms.map(|ms| json!(ms))),
    ];
    instruction.insert("program".into(), json!(module));
    instruction.insert("file".into(), json!(file));
    args.range.add_to(&mut instruction);
    instruction.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let answered = ask(&directory, &Value::Object(instruction).to_string(), &args.image)?;
    let (line, payload) = answered.parts();
    let result: Value = serde_json::from_slice(line).into_diagnostic()?;
    let done = result["status"] == "ok";
    if args.json {
        print_bytes(&answered.bytes)?;
    } else if done {
        print_bytes(payload)?;
    } else {
        return Err(miette!("{}", result["error"].as_str().unwrap_or("the instruction failed")));
    }
    if result["truncated"] == true && !args.json {
        return Err(miette!(help = "raise --memory", "the results were cut at the limit of memory"));
    }
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Absolute path of a file. Only its directory is resolved: the engine follows links inside of the file system.
fn absolute(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| miette!("{}: not the name of a file", path.display()))?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let directory = directory
        .canonicalize()
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot find the directory of {}", path.display()))?;
    Ok(directory.join(name))
}

/// Fails if two absolute paths are on different file systems: they have no command file in common.
fn check_same_mount(module: &Path, file: &Path) -> Result<()> {
    let device = |path: &Path| path.parent().and_then(|above| above.metadata().ok()).map(|found| found.dev());
    match (device(module), device(file)) {
        (Some(one), Some(other)) if one != other => Err(miette!(
            help = "copy the module to the file system of the file",
            "{} and {} are on different file systems: module and file must be on the same mounted file system \
             of frit",
            module.display(),
            file.display()
        )),
        _ => Ok(()),
    }
}

fn directories(path: &Path) -> Vec<Component<'_>> {
    path.parent().map(|parent| parent.components().collect()).unwrap_or_default()
}

/// Divides two paths into their deepest common directory and the rests.
fn relative_to_common(one: &Path, other: &Path) -> Result<(PathBuf, String, String)> {
    let common: PathBuf = directories(one)
        .into_iter()
        .zip(directories(other))
        .take_while(|(one, other)| one == other)
        .map(|(part, _)| part)
        .collect();
    let rest = |path: &Path| {
        let rest = path.strip_prefix(&common).ok().and_then(Path::to_str);
        rest.map(str::to_owned).ok_or_else(|| miette!("the path {} is not UTF-8", path.display()))
    };
    let (one, other) = (rest(one)?, rest(other)?);
    Ok((common, one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_their_common_directory() {
        for (one, other, expected) in [
            ("/mnt/a.wasm", "/mnt/f", ("/mnt", "a.wasm", "f")),
            ("/mnt/bin/a.wasm", "/mnt/logs/f", ("/mnt", "bin/a.wasm", "logs/f")),
            ("/mnt/a.wasm", "/mnt/logs/x/f", ("/mnt", "a.wasm", "logs/x/f")),
            ("a.wasm", "logs/f", ("", "a.wasm", "logs/f")),
            ("/mnt/f/a.wasm", "/mnt/f", ("/mnt", "f/a.wasm", "f")),
        ] {
            let found = relative_to_common(Path::new(one), Path::new(other)).unwrap();
            assert_eq!((found.0.to_str().unwrap(), &*found.1, &*found.2), expected);
        }
    }
}
