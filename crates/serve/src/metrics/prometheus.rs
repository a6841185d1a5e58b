//! Encoding of a [`Stat`] as OpenMetrics text for Prometheus.

use super::{ChannelStat, LatencyStat, LayerStat, MediumStat, ServerStat, Stat};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text as openmetrics};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::{self, Error};

/// Returns all metrics of a served volume as text. docs/guide/control.md lists them.
///
/// # Errors
/// Never occurs in practice, since the text is written to memory.
pub fn text(stat: Stat) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("frit");
    registry.register_collector(Box::new(StatCollector(stat)));
    let mut text = String::new();
    openmetrics::encode(&mut text, &registry)?;
    Ok(text)
}

/// A snapshot of all values. The registry is created for one response, since the counters are kept
/// elsewhere.
#[derive(Debug)]
struct StatCollector(Stat);

type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Description of a metric.
struct MetricDesc {
    name: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
    help: &'static str,
}

/// Returns the description of a metric with a unit.
fn about(name: &'static str, unit: &'static str, kind: MetricType, help: &'static str) -> MetricDesc {
    MetricDesc { name, unit: Some(Unit::Other(unit.into())), kind, help }
}

fn counter(name: &'static str, unit: &'static str, help: &'static str) -> MetricDesc {
    about(name, unit, MetricType::Counter, help)
}

fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> MetricDesc {
    about(name, unit, MetricType::Gauge, help)
}

/// Encodes one metric with all its values.
fn family(
    to: &mut DescriptorEncoder<'_>,
    about: &MetricDesc,
    values: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    values(&mut to.encode_descriptor(about.name, about.help, about.unit.as_ref(), about.kind)?)
}

fn count<const N: usize>(to: &mut MetricEncoder<'_>, labels: &Labels<'_, N>, value: u64) -> fmt::Result {
    to.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn level<const N: usize>(to: &mut MetricEncoder<'_>, labels: &Labels<'_, N>, value: f64) -> fmt::Result {
    to.encode_family(labels)?.encode_gauge(&value)
}

impl Collector for StatCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let to = &mut encoder;
        self.volume(to)?;
        self.requests(to)?;
        media(to, &self.0.media)?;
        channels(to, &self.0.channels)?;
        for l in &self.0.layers {
            layer(to, l)?;
        }
        self.0.server.as_ref().map_or(Ok(()), |s| server(to, s))
    }
}

impl StatCollector {
    fn volume(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (s, v) = (&self.0, &self.0.volume);
        let info = MetricDesc {
            name: "volume",
            unit: None,
            kind: MetricType::Info,
            help: "the volume that is served",
        };
        family(to, &info, |m| m.encode_info(&[("path", &v.path[..]), ("stack", &v.stack[..])]))?;
        family(to, &gauge("volume_size", "bytes", "size of the volume"), |m| {
            m.encode_gauge(&(v.bytes as f64))
        })?;
        let refuses =
            gauge("volume_poisoned", "flag", "1 if writes are refused, for example after a media error");
        family(to, &refuses, |m| m.encode_gauge(&i64::from(v.refuses.is_some())))?;
        let all = s.residence();
        let placement = gauge("volume", "pages", "pages of the volume by placement");
        family(to, &placement, |m| {
            level(m, &[("place", "unmapped")], all.unmapped as f64)?;
            level(m, &[("place", "nand")], all.nand as f64)?;
            level(m, &[("place", "pcm-level")], all.pcm_level as f64)?;
            level(m, &[("place", "pcm-cache")], all.pcm_cache as f64)?;
            level(m, &[("place", "disk")], all.disk as f64)
        })?;
        let help = "bytes written to media for each byte that clients wrote";
        family(to, &gauge("write_amplification", "ratio", help), |m| {
            let a = s.write_amplification;
            for (kind, ratio) in [("nand", a.nand), ("pcm", a.pcm)] {
                ratio.map_or(Ok(()), |ratio| level(m, &[("medium", kind)], ratio))?;
            }
            Ok(())
        })
    }

    fn requests(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let ops = &self.0.requests;
        type Value = fn(&super::OpStat) -> u64;
        let counts: [(MetricDesc, Value); 3] = [
            (counter("client", "requests", "requests of clients, failed ones included"), |o| o.requests),
            (counter("client_data", "bytes", "bytes requested by clients"), |o| o.bytes),
            (counter("client", "errors", "requests of clients that failed"), |o| o.errors),
        ];
        for (about, value) in counts {
            family(to, &about, |m| ops.iter().try_for_each(|o| count(m, &[("op", &o.op)], value(o))))?;
        }
        type MarkedValue = fn(&super::HintStat) -> u64;
        let marked: [(MetricDesc, MarkedValue); 2] = [
            (counter("marked", "writes", "writes with a hint, by the source of the hint"), |h| h.requests),
            (counter("marked_data", "bytes", "bytes written with a hint, by the source of the hint"), |h| {
                h.bytes
            }),
        ];
        for (about, value) in marked {
            family(to, &about, |m| {
                self.0.hints.iter().try_for_each(|h| count(m, &[("by", &h.by), ("hint", &h.hint)], value(h)))
            })?;
        }
        let help = "service time of a request until its reply may be sent";
        let latency = about("client_latency", "seconds", MetricType::Histogram, help);
        family(to, &latency, |m| {
            ops.iter().filter(|o| o.requests > 0).try_for_each(|o| {
                let labels: Labels<'_, 1> = [("op", &o.op)];
                histogram(&mut m.encode_family(&labels)?, &o.latency)
            })
        })
    }
}

fn histogram(to: &mut MetricEncoder<'_>, l: &LatencyStat) -> fmt::Result {
    // `f64::MAX` is encoded as the bucket `+Inf`.
    let end = |ns: u64| if ns == u64::MAX { f64::MAX } else { ns as f64 / 1e9 };
    let buckets: Vec<(f64, u64)> = l.buckets.iter().map(|&(ns, n)| (end(ns), n)).collect();
    to.encode_histogram::<NoLabelSet>(l.sum_s, buckets.iter().map(|b| b.1).sum(), &buckets, None)
}

fn media(to: &mut DescriptorEncoder<'_>, media: &[MediumStat]) -> fmt::Result {
    type Value = fn(&super::CommandStat) -> u64;
    let counts: [(MetricDesc, Value); 2] = [
        (counter("media", "commands", "commands given to media"), |c| c.commands),
        (counter("media_data", "bytes", "payload of media commands"), |c| c.bytes),
    ];
    for (about, value) in counts {
        family(to, &about, |m| {
            for medium in media {
                for c in &medium.commands {
                    let labels: Labels<'_, 4> = [
                        ("medium", &medium.name),
                        ("kind", &medium.kind),
                        ("op", &c.op),
                        ("cause", &c.cause),
                    ];
                    count(m, &labels, value(c))?;
                }
            }
            Ok(())
        })?;
    }
    type Level = fn(&MediumStat) -> f64;
    let levels: [(MetricDesc, Level); 7] = [
        (gauge("media_size", "bytes", "size of the medium"), |m| m.bytes as f64),
        (gauge("wear_min", "cycles", "fewest cycles of a cell group (NAND: a block)"), |m| m.wear.min.into()),
        (gauge("wear_mean", "cycles", "mean cycles of cell groups"), |m| m.wear.mean),
        (gauge("wear_max", "cycles", "most cycles of a cell group"), |m| m.wear.max.into()),
        (gauge("wear_deviation", "cycles", "standard deviation of cycles"), |m| m.wear.deviation),
        (gauge("wear_limit", "cycles", "cycles that cells are specified for"), |m| m.wear.limit as f64),
        (
            gauge(
                "wear_bad",
                "groups",
                "NAND: blocks out of use; PCM: lines written beyond the endurance, still in use",
            ),
            |m| m.wear.bad.into(),
        ),
    ];
    for (about, value) in levels {
        family(to, &about, |m| {
            media.iter().try_for_each(|x| level(m, &[("medium", &x.name), ("kind", &x.kind)], value(x)))
        })?;
    }
    Ok(())
}

/// Encodes the channels of a modelled device.
fn channels(to: &mut DescriptorEncoder<'_>, all: &[ChannelStat]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let numbers: Vec<String> = all.iter().map(|c| c.channel.to_string()).collect();
    let labels = |i: usize| -> Labels<'_, 2> { [("medium", &all[i].medium), ("channel", &numbers[i])] };
    let busy =
        gauge("channel_busy", "units", "--pace model: units behind the channel that have work; 0: idle");
    family(to, &busy, |m| {
        all.iter().enumerate().try_for_each(|(i, c)| level(m, &labels(i), f64::from(c.busy_units)))
    })?;
    let help = "--pace model: time of transfers over the channel";
    family(to, &counter("channel_transfer", "seconds", help), |m| {
        all.iter().enumerate().try_for_each(|(i, c)| {
            let seconds = c.busy_ns as f64 / 1e9;
            m.encode_family(&labels(i))?.encode_counter::<NoLabelSet, _, f64>(&seconds, None)
        })
    })
}

/// Encodes the metrics of a layer. Their type is unknown here; the help text says if a metric is a
/// counter or a gauge.
fn layer(to: &mut DescriptorEncoder<'_>, l: &LayerStat) -> fmt::Result {
    for f in &l.figures {
        // OpenMetrics requires the unit at the end of the name.
        let unit = f.unit.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let bare = f.name.strip_suffix(&unit).and_then(|n| n.strip_suffix('_')).unwrap_or(&f.name);
        let name = format!("{}_{bare}", l.name);
        // A metric named like its unit would repeat it, so it gets the name of the layer alone.
        let (name, unit) = match unit == f.name {
            true => (l.name.clone(), unit),
            false => (name, unit),
        };
        let unit = Unit::Other(unit);
        let mut metric = to.encode_descriptor(&name, &f.help, Some(&unit), MetricType::Unknown)?;
        metric.encode_gauge(&f.value)?;
    }
    Ok(())
}

fn server(to: &mut DescriptorEncoder<'_>, s: &ServerStat) -> fmt::Result {
    let info =
        MetricDesc { name: "server", unit: None, kind: MetricType::Info, help: "the process that serves" };
    family(to, &info, |m| m.encode_info(&[("version", &s.version[..])]))?;
    family(to, &gauge("server_uptime", "seconds", "uptime of the server"), |m| m.encode_gauge(&s.uptime_s))?;
    let clients: [(MetricDesc, u64); 3] = [
        (counter("accepted", "connections", "clients that connected"), s.connections_accepted),
        (
            counter("refused", "connections", "clients refused because too many were connected"),
            s.connections_refused,
        ),
        (
            counter(
                "dropped",
                "connections",
                "clients disconnected by the server: too slow, or idle while all slots were occupied",
            ),
            s.connections_dropped,
        ),
    ];
    family(to, &gauge("open", "connections", "clients that are connected"), |m| {
        m.encode_gauge(&(s.connections as f64))
    })?;
    for (about, value) in clients {
        family(to, &about, |m| m.encode_counter::<NoLabelSet, _, u64>(&value, None))?;
    }
    let Some(pace) = &s.pace else { return Ok(()) };
    let help = "relative error of the reply time against the model";
    family(to, &gauge("pace_error", "ratio", help), |m| {
        for p in pace {
            for (quantile, error) in [("0.5", p.p50_error), ("0.99", p.p99_error)] {
                level(m, &[("op", &p.op), ("quantile", quantile)], error)?;
            }
        }
        Ok(())
    })
}
