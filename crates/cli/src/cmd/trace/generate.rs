//! `frit trace generate`.

use super::convert::write;
use super::show;
use comfy_table::{Table, presets};
use frit_trace::generate::{MODELS, PAGE_SHARE, PATTERNS, PERSONALITIES, RECIPES};
use frit_trace::workload::GENERATOR_PREFIX;
use frit_trace::write::WriteFormat;
use frit_trace::{Options, Workload};
use miette::{IntoDiagnostic, Result, bail};
use std::fmt::Write as _;

/// Write a generated workload, or list the generators.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Keys of every generator: count (1M), seed (1), rate (1000 a second), arrival (poisson, fixed, none). \
Keys of patterns: span (1G), base (0), size (4K; 4K..64K; 4K:3/16K:1), rsize, wsize, align, ops (write; read) or read (0, the share of reads), \
meta (share of writes), flush (one after so many writes); zipf: theta (0.9); hotcold: space (0.2), traffic (0.8), scatter (yes). \
Keys of models: span.

Examples:
  frit trace generate --list
  frit trace generate uniform,ops=write,size=4K,count=1M,span=32G,seed=1 uniform.csv.zst
  frit trace generate mix,count=100k+zipf,weight=3,read=0.7+sequential,weight=1,size=128K mix.csv
  frit trace generate hfsl-fin1,count=500k --to spc fin1.spc"
)]
pub(super) struct Args {
    /// Generator: NAME,key=value,… (with or without gen:).
    #[arg(required_unless_present = "list")]
    generator: Option<String>,
    /// Output: a file (.gz and .zst compress), or '-'.
    #[arg(default_value = "-")]
    output: String,
    /// Output format: recorded (keeps everything), msr, disksim (ms), mqsim (ns), spc, fio2, fio3.
    #[arg(long, value_name = "FORMAT", default_value = "recorded")]
    to: WriteFormat,
    /// Overwrite the output.
    #[arg(long)]
    force: bool,
    /// List generators and models, with their published and assumed properties.
    #[arg(long)]
    list: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    if args.list {
        return show(&list());
    }
    let Some(generator) = &args.generator else { bail!("name a generator, or --list") };
    let spec = generator.strip_prefix(GENERATOR_PREFIX).unwrap_or(generator);
    let mut workload =
        Workload::open(&format!("{GENERATOR_PREFIX}{spec}"), &Options::default()).into_diagnostic()?;
    write(&mut workload, &args.output, args.to, false, args.force)
}

fn list() -> String {
    let mut out = String::from("Patterns\n");
    let mut t = Table::new();
    t.load_preset(presets::NOTHING);
    for (name, about) in PATTERNS {
        t.add_row([name, about]);
    }
    let _ = writeln!(out, "{t}\n\nModels, generated to published statistics");
    for m in MODELS {
        let reads = match m.read_kb {
            Some(kb) => format!("reads of {kb} KB"),
            None => "reads alike".into(),
        };
        let data = m.data_set.map_or(String::new(), |d| format!(", data set {d}"));
        let _ = writeln!(
            out,
            " {}: {}\n   published: {:.1} % writes of {} KB, {reads}{data}\n   assumed: {}",
            m.name,
            m.about,
            m.write_ratio * 100.0,
            m.write_kb,
            m.assumed
        );
    }
    out += "\nApplications, generated: little is published of them\n";
    for r in RECIPES {
        let _ = writeln!(
            out,
            " {}: {}\n   published: {} to {} % of the requests are of 4 KB (in 15 of 18 recordings)\n   assumed: {}",
            r.name,
            r.about,
            PAGE_SHARE.0 * 100.0,
            PAGE_SHARE.1 * 100.0,
            r.assumed
        );
    }
    out += "\nfilebench, on a model of a file system (docs/reference/filebench.md)\n";
    for p in PERSONALITIES {
        let size = frit_core::size::format(u64::from(p.mean_file_bytes));
        let _ = writeln!(out, " {}: {}; {} files of {size}, {} threads", p.name, p.about, p.files, p.threads);
    }
    out
}
