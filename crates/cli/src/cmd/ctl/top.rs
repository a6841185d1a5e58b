//! `frit ctl top`: rates between two samples.

use super::show::time;
use crate::output::{print, print_raw, right, table, text};
use frit_core::size;
use frit_core::text::lines;
use frit_serve::metrics::Stat;
use miette::Result;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Escape sequence that clears a terminal and moves the cursor to the top.
const CLEAR: &str = "\x1b[H\x1b[J";

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Seconds between two samples.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Stop after this many intervals. [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.05..=86_400.0).contains(&s) => Ok(s),
        _ => Err("an interval is between 0.05 and 86400 seconds".into()),
    }
}

/// Prints rates until the count is reached or the server ends.
pub(super) fn run(args: &Args, look: &mut dyn FnMut() -> Result<Stat>) -> Result<()> {
    let interval = Duration::from_secs_f64(args.interval);
    let terminal = std::io::stdout().is_terminal();
    let mut before = (Instant::now(), look()?);
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        std::thread::sleep(interval.saturating_sub(before.0.elapsed()));
        let now = (Instant::now(), look()?);
        let rates = Rates::between(&before.1, &now.1, (now.0 - before.0).as_secs_f64());
        match terminal {
            true => print_raw(&format!("{CLEAR}{}", lines(&rates.page(&now.1))))?,
            false => print(&rates.line(&now.1))?,
        }
        before = now;
        left -= 1;
    }
    Ok(())
}

/// Rates per second.
#[derive(Debug, Default)]
struct Rates {
    /// Requests and bytes, by operation.
    ops: Vec<(String, f64, f64)>,
    /// Media commands, by medium and cause.
    commands: BTreeMap<(String, String), f64>,
    /// Flushes that the layer made for itself.
    space_flushes: f64,
}

impl Rates {
    fn between(a: &Stat, b: &Stat, seconds: f64) -> Rates {
        // A restarted server counts from zero; saturation avoids negative rates.
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds.max(1e-3);
        let op = |o: &frit_serve::metrics::OpStat| {
            let (requests, bytes) = a.op(&o.op).map_or((0, 0), |old| (old.requests, old.bytes));
            (o.op.clone(), rate(o.requests, requests), rate(o.bytes, bytes))
        };
        let mut commands = BTreeMap::new();
        for m in &b.media {
            for c in &m.commands {
                let old = a.media.iter().find(|x| x.name == m.name);
                let old = old.and_then(|x| x.commands.iter().find(|x| x.op == c.op && x.cause == c.cause));
                *commands.entry((m.kind.clone(), c.cause.clone())).or_default() +=
                    rate(c.commands, old.map_or(0, |x| x.commands));
            }
        }
        let flushes = |s: &Stat| s.layer_metric("space_flushes").unwrap_or(0.0);
        let space_flushes = (flushes(b) - flushes(a)).max(0.0) / seconds.max(1e-3);
        Rates { ops: b.requests.iter().map(op).collect(), commands, space_flushes }
    }

    fn op(&self, name: &str) -> (f64, f64) {
        self.ops.iter().find(|o| o.0 == name).map_or((0.0, 0.0), |o| (o.1, o.2))
    }

    /// Returns the rates as one line, for logs and pipes.
    fn line(&self, s: &Stat) -> String {
        let (read, write) = (self.op("read"), self.op("write"));
        let mut line = format!(
            "read {:.0}/s {:.1} MB/s  write {:.0}/s {:.1} MB/s  flush {:.0}/s",
            read.0,
            read.1 / 1e6,
            write.0,
            write.1 / 1e6,
            self.op("flush").0
        );
        if self.space_flushes > 0.0 {
            line += &format!("  flush for space {:.1}/s", self.space_flushes);
        }
        for ((kind, cause), rate) in self.commands.iter().filter(|c| *c.1 > 0.0) {
            line += &format!("  {kind}:{cause} {rate:.0}/s");
        }
        format!("{line}  {}\n", space(s))
    }

    /// Returns the rates as a screen.
    fn page(&self, s: &Stat) -> String {
        let mut ops = table(&["requests", "1/s", "MB/s", "p50", "p99"]);
        for (name, requests, bytes) in &self.ops {
            let latency = s.op(name).map(|o| o.latency.clone()).unwrap_or_default();
            ops.add_row([
                name.clone(),
                format!("{requests:.0}"),
                format!("{:.1}", bytes / 1e6),
                time(latency.p50_ns),
                time(latency.p99_ns),
            ]);
        }
        let mut commands = table(&["medium", "cause", "commands/s"]);
        for ((kind, cause), rate) in &self.commands {
            commands.add_row([kind.clone(), cause.clone(), format!("{rate:.0}")]);
        }
        (1..5).for_each(|c| right(&mut ops, c));
        right(&mut commands, 2);
        let v = &s.volume;
        let mut page = format!("{} ({}), stack {}\n", v.path, size::format(v.bytes), v.stack);
        if let Some(why) = &v.refuses {
            page += &format!("refuses writes: {why}\n");
        }
        if self.space_flushes > 0.0 {
            page += &format!(
                "{:.1} flushes a second without a client's request: freed space can be reused only after a \
                 flush (docs/guide/control.md, \"Flushes for space\")\n",
                self.space_flushes
            );
        }
        format!(
            "{page}\n{}\n{}\n{}\nlatency is since the start; Ctrl-C ends\n",
            text(&ops),
            text(&commands),
            space(s)
        )
    }
}

/// Returns the free space and the use of PCM.
fn space(s: &Stat) -> String {
    let free = s.layer_metric("nand_free_blocks").unwrap_or(0.0);
    let r = s.residence();
    let pcm = r.pcm_level + r.pcm_cache;
    let slots = s.layer_metric("pcm_free_slots").unwrap_or(0.0);
    let busy = s.channels.iter().filter(|c| c.busy_units > 0).count();
    let channels = match s.channels.len() {
        0 => String::new(),
        all => format!("  channels busy {busy} of {all}"),
    };
    format!("free blocks {free:.0}  PCM pages {pcm}, free sub-pages {slots:.0}{channels}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_serve::metrics::{CommandStat, LayerMetric, LayerStat, MediumStat, OpStat};

    fn stat(requests: u64, commands: u64) -> Stat {
        let command = |op: &str| CommandStat { op: op.into(), cause: "gc".into(), commands, bytes: 0 };
        Stat {
            requests: vec![OpStat {
                op: "write".into(),
                requests,
                bytes: requests * 4096,
                ..OpStat::default()
            }],
            media: vec![MediumStat {
                kind: "nand".into(),
                commands: vec![command("nand-read"), command("nand-program")],
                ..MediumStat::default()
            }],
            ..Stat::default()
        }
    }

    #[test]
    fn flushes_that_the_layer_makes_for_itself_are_told() {
        let stat = |flushes: f64| {
            let m = LayerMetric { name: "space_flushes".into(), value: flushes, ..LayerMetric::default() };
            let layers = vec![LayerStat { name: "hfsl".into(), figures: vec![m], ..LayerStat::default() }];
            Stat { layers, ..Stat::default() }
        };
        let r = Rates::between(&stat(10.0), &stat(40.0), 2.0);
        assert!(r.line(&stat(40.0)).contains("flush for space 15.0/s"), "{}", r.line(&stat(40.0)));
        assert!(r.page(&stat(40.0)).contains("15.0 flushes a second without a client's request"));
        let none = Rates::between(&stat(40.0), &stat(40.0), 2.0);
        assert!(
            !none.line(&stat(40.0)).contains("flush for space")
                && !none.page(&stat(40.0)).contains("without")
        );
    }

    #[test]
    fn rates_are_differences_over_time() {
        let r = Rates::between(&stat(100, 10), &stat(300, 20), 2.0);
        assert_eq!(r.op("write"), (100.0, 409_600.0));
        assert_eq!(r.commands[&("nand".into(), "gc".into())], 10.0);
        let line = r.line(&stat(300, 20));
        assert!(line.contains("write 100/s 0.4 MB/s") && line.contains("nand:gc 10/s"), "{line}");
        let again = Rates::between(&stat(300, 20), &stat(5, 0), 1.0);
        assert_eq!(again.op("write").0, 0.0, "a restart is no negative rate");
    }
}
