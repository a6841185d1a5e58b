//! `frit ctl query` and `frit ctl isp`: in-storage processing of a volume.

use super::{Args, ask, client, extents, offline, unexpected};
use crate::output::{print, print_bytes, right, table, text};
use frit_client::{IspResult, VolumeExtents, WordQuery, WordsFound};
use frit_isp::text::UniqueKeys;
use frit_serve::ctl::{ControlOperation, Success};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `query`.
#[derive(clap::Args, Debug)]
pub(super) struct QueryArgs {
    /// Words to count: up to 64, of up to 256 bytes.
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// First byte and length of an extent, such as 1M+64K. Can be given again: the data are the
    /// extents, one after the other. [default: the whole volume]
    #[arg(long = "extent", value_name = "OFFSET+LENGTH", value_parser = extents::extent)]
    extents: Vec<(u64, u64)>,
    /// Extents of a file, as `filefrag -e` prints them; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "extents")]
    filefrag: Option<PathBuf>,
    /// Name space that the addresses belong to. [default: the volume]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Number of positions to locate of each word.
    #[arg(long, value_name = "N", default_value_t = 1)]
    positions: usize,
    /// Fail if the bytes change during the scan.
    #[arg(long)]
    fail_if_changed: bool,
    /// Print the result in JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `isp`.
#[derive(clap::Args, Debug)]
pub(super) struct InstructionArgs {
    /// Instruction in JSON (docs/reference/isp.md), with the extents as
    /// "extents": [[OFFSET, LENGTH], …]. Without them, it is for the whole volume.
    instruction: String,
}

fn give(args: &Args, instruction: Value) -> Result<IspResult> {
    let answer = match client(args)? {
        Some(mut client) => {
            client.wait_without_limit().into_diagnostic()?;
            match ask(&mut client, ControlOperation::Isp { command: instruction })? {
                Success::Isp(answer) => answer,
                other => return Err(unexpected(&other)),
            }
        }
        None => offline::isp(&args.volume, &instruction)?,
    };
    answer.decode().map_err(|e| miette!("{e}"))
}

/// Gives an instruction, and prints the line of the result and its payload.
pub(super) fn instruction(args: &Args, what: &InstructionArgs) -> Result<ExitCode> {
    let UniqueKeys(instruction) = serde_json::from_str(&what.instruction).into_diagnostic().wrap_err(
        "the instruction is not valid JSON; one is {\"words\": [\"error\"], \"extents\": [[0, 4096]]}",
    )?;
    let IspResult { result, payload } = give(args, instruction)?;
    print_bytes(&[result.to_string().as_bytes(), b"\n", &payload].concat())?;
    Ok(if result["status"] == "ok" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts words, and prints the result.
pub(super) fn query(args: &Args, what: &QueryArgs) -> Result<ExitCode> {
    let list = match &what.filefrag {
        Some(path) => Some(extents::of_filefrag(path)?),
        None => Some(what.extents.clone()).filter(|list| !list.is_empty()),
    };
    let query = WordQuery {
        words: what.words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        extents: VolumeExtents { namespace: what.namespace.clone(), list },
        positions: what.positions,
        fail_if_changed: what.fail_if_changed,
    };
    let given = give(args, query.instruction())?;
    if what.json {
        print(&format!("{}\n", given.result))?;
        let done = given.result["status"] == "ok";
        return Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let found: WordsFound = given.parse().map_err(|e| miette!("{e}"))?;
    print(&shown(what, &found, given.result["wall_ns"].as_f64().unwrap_or(0.0) / 1e9))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the result as a table and a summary.
fn shown(what: &QueryArgs, found: &WordsFound, seconds: f64) -> String {
    let addressed = found.words.iter().any(|word| !word.addresses.is_empty());
    let titles = ["word", "count", "first positions", "addresses in the volume"];
    let mut t = table(if addressed { &titles } else { &titles[..3] });
    let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    for (word, count) in what.words.iter().zip(&found.words) {
        let mut row = vec![word.clone(), count.count.to_string(), list(&count.positions)];
        row.extend(addressed.then(|| list(&count.addresses)));
        t.add_row(row);
    }
    right(&mut t, 1);
    let rate = found.bytes_scanned as f64 / 1e6 / seconds.max(1e-9);
    let mut out = text(&t);
    out += &format!("{} bytes in {:.3} ms: {rate:.0} MB/s\n", found.bytes_scanned, seconds * 1e3);
    if found.truncated {
        out += "positions were cut at the limit of memory; counts are complete\n";
    }
    if found.changed {
        out += "bytes changed during the scan: the counts are of some mixture of their states\n";
    }
    out
}
