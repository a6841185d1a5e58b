//! `frit wear`: simulates the wear of PCM by a workload under each wear leveler.

use super::trace::ReadArgs;
use crate::output::{print, print_json, print_stderr, right, table, text};
use frit_core::size;
use frit_trace::{DeviceMapping, Options, ReqOp, Request, Workload};
use frit_wear::sim::{SimReport, Simulation};
use frit_wear::{LevelerKind, WearConfig};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, miette};
use serde::Serialize;
use std::collections::HashMap;
use std::str::FromStr;
use strum::VariantNames;

/// Size of a counted write, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// Measure the wear of PCM by a workload under each wear leveler: no media, no time, only writes.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Every block of 4 KiB that a write of the workload touches is one write of PCM; reads and discards do not count. \
A block beyond the PCM is an error. \
Each leveler gets the stripes that it leaves empty in addition to the PCM, so that all levelers get the same addresses. \
With --compact the written blocks are first packed in order of first touch, as a cache that fills up would place them.

Columns:
  life rate   mean writes of a bank over those of the most written one: 1 is perfect
              (HALO paper, section V.B)
  max/mean    the reciprocal
  extra       blocks written by moves, for each that the workload wrote
  lifetime    bytes written until the first block passes its endurance, extrapolated. A workload
              shorter than a round of the gaps is too short for a prediction: --repeat it
  of ideal    share of the lifetime if all blocks wear equally
  beyond      size of the leveler's own stripes, beyond the PCM that --pcm names

Examples:
  frit wear financial1.spc.gz --compact
  frit wear gen:uniform,count=4M,size=4K,span=2G,read=0 --leveler sfc,round-robin,start-gap
  frit wear fin1.trace --pcm 512M --compact --repeat 20 --json
  frit wear mail.csv.zst --compact --leveler sfc --interval 800 --stripe-size 64K --cubes 16

docs/reference/wear.md describes the levelers and their parameters."
)]
pub(crate) struct Args {
    /// Workload: a trace file, '-' for standard input, or gen:NAME,key=value,…
    workload: String,
    /// Levelers, separated by commas. [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = kind)]
    leveler: Vec<LevelerKind>,
    /// Size of the PCM.
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size::parse)]
    pcm: u64,
    /// Size of a stripe, the unit of moves.
    #[arg(long, value_name = "SIZE", default_value = "32K", value_parser = stripe)]
    stripe_size: u32,
    /// Number of ranks.
    #[arg(long, value_name = "N", default_value_t = 8)]
    ranks: u32,
    /// Number of banks in a rank.
    #[arg(long, value_name = "N", default_value_t = 16)]
    banks: u32,
    /// Number of cubes of the space-filling curve.
    #[arg(long, value_name = "N", default_value_t = 32)]
    cubes: u32,
    /// Use equation 1 of the HALO paper literally: cubes are not rotated relative to each other.
    #[arg(long)]
    no_turn: bool,
    /// Stripes in a region of start-gap and security refresh; 0: a bank.
    #[arg(long, value_name = "N", default_value_t = 0)]
    region_stripes: u32,
    /// Number of writes to a region between two of its moves.
    #[arg(long, value_name = "N", default_value_t = 100)]
    interval: u32,
    /// Endurance: number of writes to a cell until it wears out.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    endurance: u64,
    /// Seed of keys.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Pack the written blocks, in order of first write.
    #[arg(long)]
    compact: bool,
    /// Number of times to write the workload.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

fn kind(name: &str) -> Result<LevelerKind, String> {
    LevelerKind::from_str(name)
        .map_err(|_| format!("no such leveler; there are {}", LevelerKind::VARIANTS.join(", ")))
}

fn stripe(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text)?;
    u32::try_from(bytes).map_err(|_| "a stripe has at most 1 GiB".into())
}

#[derive(Serialize)]
struct WearJson {
    workload: String,
    pcm_bytes: u64,
    stripe_bytes: u32,
    ranks: u32,
    banks: u32,
    cubes: u32,
    turn: bool,
    region_stripes: u32,
    interval: u32,
    endurance: u64,
    seed: u64,
    compact: bool,
    repeat: u32,
    /// Number of blocks of the PCM.
    blocks: u64,
    levelers: Vec<SimReport>,
}

/// Runs the command.
///
/// # Errors
/// The workload cannot be read, writes nothing, or writes beyond the PCM; the parameters do not fit.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut sims = args.simulations()?;
    let blocks = args.pcm / BLOCK_BYTES;
    if args.repeat > 1 && args.workload == "-" {
        return Err(miette!("standard input can be read only once; --repeat needs a file or a generator"));
    }
    let mut feed = BlockMapper { blocks, packed: args.compact.then(HashMap::new), out: Vec::new() };
    let options = args.read.options(DeviceMapping::Concat);
    let bar = spinner();
    for _ in 0..args.repeat {
        pass(&args.workload, &options, &mut feed, &mut sims, &bar)?;
    }
    bar.finish_and_clear();
    let levelers: Vec<SimReport> = sims.iter().map(|s| s.report(args.endurance)).collect();
    if levelers.iter().all(|l| l.writes == 0) {
        return Err(miette!("'{}' writes nothing", args.workload));
    }
    let report = args.report(&feed, levelers);
    if args.json { print_json(&report) } else { show(&report) }
}

impl Args {
    fn config(&self, leveler: LevelerKind) -> WearConfig {
        WearConfig {
            leveler,
            stripe_bytes: self.stripe_size,
            ranks: self.ranks,
            banks: self.banks,
            cubes: self.cubes,
            turn: !self.no_turn,
            region_stripes: self.region_stripes,
            interval: self.interval,
            seed: self.seed,
            over_files: false,
        }
    }

    fn simulations(&self) -> Result<Vec<Simulation>> {
        let all =
            || LevelerKind::VARIANTS.iter().filter_map(|name| LevelerKind::from_str(name).ok()).collect();
        let kinds: Vec<LevelerKind> = if self.leveler.is_empty() { all() } else { self.leveler.clone() };
        let of = |&kind: &LevelerKind| {
            let name: &str = kind.into();
            // The PCM itself has to be divisible, too: otherwise its size is not what it says.
            Simulation::new(&self.config(kind), self.pcm)
                .and_then(|_| Simulation::offering(&self.config(kind), self.pcm / BLOCK_BYTES))
                .map_err(|e| miette!("{name}: {e}"))
        };
        kinds.iter().map(of).collect()
    }

    fn report(&self, feed: &BlockMapper, levelers: Vec<SimReport>) -> WearJson {
        WearJson {
            workload: self.workload.clone(),
            pcm_bytes: self.pcm,
            stripe_bytes: self.stripe_size,
            ranks: self.ranks,
            banks: self.banks,
            cubes: self.cubes,
            turn: !self.no_turn,
            region_stripes: self.region_stripes,
            interval: self.interval,
            endurance: self.endurance,
            seed: self.seed,
            compact: self.compact,
            repeat: self.repeat,
            blocks: feed.blocks,
            levelers,
        }
    }
}

/// Converter of requests to blocks of the PCM.
struct BlockMapper {
    blocks: u64,
    /// Packed block of each block, in order of first write.
    packed: Option<HashMap<u64, u64>>,
    out: Vec<u32>,
}

impl BlockMapper {
    /// Converts the writes of a batch.
    ///
    /// # Errors
    /// A write touches a block beyond the PCM. Its address is not wrapped: that would join blocks
    /// that the workload keeps apart.
    fn take(&mut self, requests: &[Request]) -> Result<()> {
        self.out.clear();
        for r in requests.iter().filter(|r| r.op == ReqOp::Write) {
            let first = r.sector.bytes() / BLOCK_BYTES;
            for block in first..(r.sector.bytes() + r.bytes()).div_ceil(BLOCK_BYTES) {
                let block = match &mut self.packed {
                    Some(map) => {
                        let next = map.len() as u64;
                        *map.entry(block).or_insert(next)
                    }
                    None => block,
                };
                if block >= self.blocks {
                    return Err(self.beyond(r));
                }
                // The cast is lossless: the simulation keeps a counter for each block.
                self.out.push(block as u32);
            }
        }
        Ok(())
    }

    /// Returns the error for a write that ends beyond the PCM.
    fn beyond(&self, r: &Request) -> miette::Report {
        let pcm = size::format(self.blocks * BLOCK_BYTES);
        match self.packed {
            Some(_) => {
                miette!("the workload writes more different blocks than fit into {pcm}; use a larger --pcm")
            }
            None => miette!(
                "the write of {} sectors at sector {} ends beyond the PCM of {pcm}; use a larger --pcm, or \
                 --compact, which packs the written blocks",
                r.sectors,
                r.sector.0
            ),
        }
    }
}

fn pass(
    workload: &str,
    options: &Options,
    feed: &mut BlockMapper,
    sims: &mut [Simulation],
    bar: &ProgressBar,
) -> Result<()> {
    let mut stream = Workload::open(workload, options).into_diagnostic()?;
    let mut batch = Vec::new();
    while stream.fill(&mut batch).into_diagnostic()? {
        feed.take(&batch)?;
        for s in &mut *sims {
            s.write(&feed.out).map_err(|e| miette!("{e}"))?;
        }
        bar.inc(batch.len() as u64);
    }
    for line in stream.problems().sentences() {
        bar.suspend(|| print_stderr(&format!("frit: {line}\n")))?;
    }
    Ok(())
}

/// Returns a spinner that shows the progress; it is hidden when standard error is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} requests, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn show(r: &WearJson) -> Result<()> {
    let mut t = table(&["leveler", "life rate", "max/mean", "extra", "lifetime", "of ideal", "beyond"]);
    for l in &r.levelers {
        let lifetime = l.lifetime_writes.map_or("-".into(), |w| bytes(w * BLOCK_BYTES as f64));
        t.add_row([
            l.leveler.to_owned(),
            format!("{:.4}", l.life_rate),
            format!("{:.2}", l.bank_max_over_mean),
            format!("{:.1} %", 100.0 * l.extra_writes),
            lifetime,
            l.lifetime_share.map_or("-".into(), |s| format!("{:.2} %", 100.0 * s)),
            size::format(l.pcm_bytes - r.pcm_bytes.min(l.pcm_bytes)),
        ]);
    }
    for column in 1..7 {
        right(&mut t, column);
    }
    let writes = r.levelers.first().map_or(0, |l| l.writes);
    print(&format!(
        "{writes} writes of 4 KiB to {} of PCM; endurance {}\n\n{}",
        size::format(r.pcm_bytes),
        r.endurance,
        text(&t)
    ))
}

/// Formats a number of bytes that may exceed 64 bits, as lifetimes do.
fn bytes(n: f64) -> String {
    if n < (1u64 << 60) as f64 {
        size::format(n as u64)
    } else {
        format!("{:.1} EiB", n / (1u64 << 60) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Nanos, Sector};

    fn request(op: ReqOp, sector: u64, sectors: u32) -> Request {
        Request {
            at: Nanos(0),
            sector: Sector(sector),
            sectors,
            device: 0,
            op,
            hints: Hints::NONE,
            cut: frit_trace::SectorCut::NONE,
        }
    }

    #[test]
    fn blocks_that_writes_touch_are_packed_or_have_to_be_in_the_pcm() {
        let requests = [
            request(ReqOp::Write, 8, 9),
            request(ReqOp::Read, 0, 8),
            request(ReqOp::Write, 8 * 105, 8),
            request(ReqOp::Write, 15, 1),
        ];
        let feed = |blocks, packed| {
            let mut f = BlockMapper { blocks, packed, out: Vec::new() };
            f.take(&requests).map(|()| f.out).map_err(|e| e.to_string())
        };
        assert_eq!(feed(106, None).unwrap(), vec![1, 2, 105, 1]);
        let beyond = feed(105, None).unwrap_err();
        assert!(beyond.contains("8 sectors at sector 840") && beyond.contains("--compact"), "{beyond}");
        assert_eq!(feed(3, Some(HashMap::new())).unwrap(), vec![0, 1, 2, 0]);
        assert!(feed(2, Some(HashMap::new())).unwrap_err().contains("more different blocks"));
    }
}
