//! `frit cache`: simulates eviction policies alone, on the block accesses of a workload.

mod blocks;

use super::trace::ReadArgs;
use crate::output::{print, print_json, print_stderr, right, table, text};
use blocks::BlockTrace;
use frit_core::{Params, size};
use frit_layer::cache::BLOCK_BYTES;
use frit_layer::cache::policy::{Policy, PolicyConfig};
use frit_layer::cache::sim::{Sim, SimCounts, next_uses};
use frit_trace::DeviceMapping;
use indicatif::{ProgressBar, ProgressStyle};
use miette::{Result, miette};
use serde::Serialize;
use std::time::{Duration, Instant};
use strum::VariantNames;

/// Accesses between two updates of the progress bar.
const ACCESSES_PER_UPDATE: usize = 1 << 16;

/// Count hits and misses of eviction policies on a workload.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit cache mail.csv.zst
  frit cache pgbench.csv.zst --policy lru,arc,s3-fifo --size 64M,256M,1G
  frit cache Financial1.spc --policy halo,lru,wow --writes-only --json | jq '.[].destaged'
  frit cache gen:zipf,count=2M,span=4G --policy halo --set TH_BCOUNTS=32 --set halo_scan=1024

Blocks are 4 KiB; media and times are not modelled. docs/reference/cache-policies.md describes the policies and their \
parameters.")]
pub(crate) struct Args {
    /// Workload: a file, '-', or gen:NAME,key=value,…
    workload: String,
    /// Eviction policies. [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Policy::VARIANTS.to_vec())]
    policy: Vec<String>,
    /// Sizes of the cache.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "64M,256M,1G", value_parser = slots)]
    size: Vec<u32>,
    /// Do not allocate on reads; reads hit blocks that writes allocated.
    #[arg(long)]
    writes_only: bool,
    /// Override a parameter of a policy. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Parses a cache size. Returns blocks.
fn slots(text: &str) -> Result<u32, String> {
    match size::parse(text)? {
        bytes if bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES) && bytes / BLOCK_BYTES < 1 << 31 => {
            Ok((bytes / BLOCK_BYTES) as u32)
        }
        _ => Err("use a multiple of 4 KiB below 8T, such as 256M".into()),
    }
}

/// Result of one policy at one cache size.
#[derive(Serialize, Debug)]
struct PolicyResult {
    policy: String,
    /// Size of the cache, in bytes.
    size: u64,
    accesses: u64,
    hits: u64,
    miss_ratio: f64,
    writes: u64,
    write_hits: u64,
    /// Evicted blocks, those of them that are dirty and need a destage, and groups of blocks that
    /// were evicted together.
    evicted: u64,
    destaged: u64,
    evictions: u64,
    /// Evictions by reason, for `halo`: above both thresholds, above lowered thresholds, outdated, at
    /// the end of a search.
    #[serde(flatten)]
    reasons: Option<Reasons>,
    /// Memory of the directory and of the policy, in bytes.
    directory_bytes: u64,
    policy_bytes: u64,
    /// Duration of the simulation, in seconds.
    seconds: f64,
}

/// Evictions of `halo` by reason.
#[derive(Serialize, Debug)]
struct Reasons {
    evictions_thresholds: u64,
    evictions_lowered_thresholds: u64,
    evictions_outdated: u64,
    evictions_end_of_scan: u64,
}

/// Runs the command.
///
/// # Errors
/// An error message for the user.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut config = PolicyConfig::default();
    for set in &args.set {
        let (key, value) = set.split_once('=').ok_or_else(|| miette!("'{set}': write KEY=VALUE"))?;
        config.set(key.trim(), value.trim()).map_err(|e| miette!("{e}"))?;
    }
    let all: Vec<String> = Policy::VARIANTS.iter().map(|&v| v.to_owned()).collect();
    let policies = if args.policy.is_empty() { &all } else { &args.policy };
    let blocks = BlockTrace::read(&args.workload, &args.read.options(DeviceMapping::Concat))?;
    let bar = bar(blocks.accesses.len() * policies.len() * args.size.len());
    let mut rows = Vec::new();
    for policy in policies {
        config.policy.clone_from(policy);
        let future = (policy == "belady").then(|| next_uses(&blocks.accesses));
        for &slots in &args.size {
            bar.set_message(format!("{policy}, {}", size::format(u64::from(slots) * BLOCK_BYTES)));
            let sim = Sim::new(&config, slots, blocks.end, args.writes_only, future.as_ref());
            let mut sim = sim.map_err(|e| miette!("{e}"))?;
            let mut took = Duration::ZERO;
            for stretch in blocks.accesses.chunks(ACCESSES_PER_UPDATE) {
                let start = Instant::now();
                sim.run(stretch);
                took += start.elapsed();
                bar.inc(stretch.len() as u64);
            }
            rows.push(row(policy, slots, &sim, took));
        }
    }
    bar.finish_and_clear();
    for remark in &blocks.remarks {
        print_stderr(&format!("frit: {remark}\n"))?;
    }
    if args.json { print_json(&rows) } else { show(&blocks, &args.size, &rows, args.writes_only) }
}

fn row(policy: &str, slots: u32, sim: &Sim, took: Duration) -> PolicyResult {
    let SimCounts { accesses, hits, writes, write_hits, evicted, destaged, evictions } = sim.outcome();
    let (directory_bytes, policy_bytes) = sim.dram_bytes();
    PolicyResult {
        policy: policy.into(),
        size: u64::from(slots) * BLOCK_BYTES,
        accesses,
        hits,
        miss_ratio: sim.outcome().miss_ratio(),
        writes,
        write_hits,
        evicted,
        destaged,
        evictions,
        reasons: sim.reasons().map(|r| Reasons {
            evictions_thresholds: r.thresholds,
            evictions_lowered_thresholds: r.lowered_thresholds,
            evictions_outdated: r.outdated,
            evictions_end_of_scan: r.end_of_scan,
        }),
        directory_bytes,
        policy_bytes,
        seconds: took.as_secs_f64(),
    }
}

fn bar(accesses: usize) -> ProgressBar {
    let bar = ProgressBar::new(accesses as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn show(blocks: &BlockTrace, sizes: &[u32], rows: &[PolicyResult], writes_only: bool) -> Result<()> {
    let names: Vec<String> = sizes.iter().map(|&s| size::format(u64::from(s) * BLOCK_BYTES)).collect();
    let mut header = vec!["miss ratio"];
    header.extend(names.iter().map(String::as_str));
    let mut t = table(&header);
    for group in rows.chunks(sizes.len()) {
        let cells = group.iter().map(|r| format!("{:.2} %", 100.0 * r.miss_ratio));
        t.add_row(group.first().map(|r| r.policy.clone()).into_iter().chain(cells));
    }
    (1..=sizes.len()).for_each(|column| right(&mut t, column));
    let what = if writes_only { "writes allocate blocks" } else { "reads and writes allocate blocks" };
    print(&format!(
        "{}: {} accesses to {} different blocks of 4 KiB; {what}\n\n{}",
        blocks.name,
        blocks.accesses.len(),
        blocks.different,
        text(&t)
    ))
}
