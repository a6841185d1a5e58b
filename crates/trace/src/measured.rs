//! Requests with the service times that the recorder of a trace measured.
//!
//! `biotracer`, `msr`, `diskmon` and `csv` (with the key `service`) have measured times. They are
//! kept only for [`MeasuredTrace::read`]; other readers of a trace do not store them.

use crate::source::{RequestSource, SourceKind, check_only};
use crate::{DeviceMapping, Error, Options, Problems, Reading, Request, Result, WorkloadIdentity};

/// The formats with measured times, for messages.
pub const MEASURED_FORMATS: &str =
    "biotracer, msr, diskmon, or csv with a column of service times (--columns …,service=COLUMN:us)";

/// Time from the issue of a request to its completion, in nanoseconds; negative if the clock of the
/// recorder ran backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ServiceTime(i64);

impl ServiceTime {
    #[inline]
    pub(crate) fn of(ns: u64) -> ServiceTime {
        ServiceTime(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// The time between two times of the same clock, in nanoseconds.
    #[inline]
    pub(crate) fn between(issued: u64, completed: u64) -> ServiceTime {
        let ServiceTime(distance) = ServiceTime::of(issued.abs_diff(completed));
        ServiceTime(if completed < issued { -distance } else { distance })
    }
}

/// A request with its measured time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredRequest {
    /// The request. Its time is that of the issue to the device, if the trace has it beside the time of
    /// the arrival.
    pub request: Request,
    /// Time from the issue to the completion, in nanoseconds, as the trace has it: it can be zero or
    /// negative.
    pub service_ns: i64,
    /// Number of the request in the trace, from 1.
    pub number: u64,
}

/// The measured requests of a trace, in order of issue.
#[derive(Clone, Debug)]
pub struct MeasuredTrace {
    /// Identity of the trace, with the hash of its uncompressed bytes.
    pub identity: WorkloadIdentity,
    /// Format, units and conventions used to read it.
    pub reading: Reading,
    /// Problems of the trace.
    pub problems: Problems,
    /// The requests that have a measured time.
    pub requests: Vec<MeasuredRequest>,
    /// Number of requests without a measured time.
    pub unmeasured: u64,
}

impl MeasuredTrace {
    /// Reads a whole trace into memory.
    ///
    /// # Errors
    /// As for [`crate::Workload::open`] and [`crate::Workload::fill`]; a generator; several devices,
    /// unless `options.devices` selects one or merges them.
    pub fn read(path: &str, options: &Options) -> Result<MeasuredTrace> {
        let mut source = RequestSource::open(path, options, true)?;
        match &mut source.kind {
            SourceKind::Trace(stream) => stream.keep_measured(),
            SourceKind::Generated(_) => {
                return Err(Error::spec(path, "a generated workload has no measured times"));
            }
        }
        let limit = options.limit.unwrap_or(u64::MAX);
        let (mut requests, mut unmeasured, mut number) = (Vec::new(), 0, 0);
        let mut batch = Vec::new();
        while number < limit && source.fill(&mut batch)? {
            let SourceKind::Trace(stream) = &mut source.kind else { break };
            let mut times = stream.take_measured().into_iter().peekable();
            let only = one_device(path, &source, &options.devices, &batch)?;
            for (i, request) in batch.iter().enumerate() {
                let time = times.next_if(|(of, _)| *of == i).map(|(_, t)| t);
                if only.is_some_and(|d| d != request.device) || number == limit {
                    continue;
                }
                number += 1;
                let Some(time) = time else {
                    unmeasured += 1;
                    continue;
                };
                requests.push(MeasuredRequest { request: *request, service_ns: time.0, number });
            }
        }
        check_only(&source, &options.devices, path)?;
        let sha256 = match &mut source.kind {
            SourceKind::Trace(stream) => stream.digest(),
            SourceKind::Generated(_) => None,
        };
        Ok(MeasuredTrace {
            identity: source.identity(path, sha256),
            reading: source.reading(),
            problems: source.problems(),
            requests,
            unmeasured,
        })
    }
}

/// Returns the device whose requests are kept; `None` if all are.
fn one_device(
    path: &str,
    source: &RequestSource,
    devices: &DeviceMapping,
    batch: &[Request],
) -> Result<Option<u16>> {
    match devices {
        DeviceMapping::Merge => Ok(None),
        DeviceMapping::Only(name) => {
            let index = source.devices().iter().position(|d| d == name);
            Ok(Some(index.and_then(|i| u16::try_from(i).ok()).unwrap_or(u16::MAX)))
        }
        DeviceMapping::Concat if batch.iter().all(|r| r.device == 0) => Ok(None),
        DeviceMapping::Concat | DeviceMapping::Ranges(_) => Err(Error::Devices {
            name: source.identity(path, None).name,
            why: format!(
                "its service times are those of several devices ({}); choose one with --devices only:NAME",
                source.devices().join(", ")
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(text: &str, options: &Options) -> Result<MeasuredTrace> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        MeasuredTrace::read(&file.path().display().to_string(), options)
    }

    fn times(t: &MeasuredTrace) -> Vec<(u64, u64, i64)> {
        t.requests.iter().map(|r| (r.number, r.request.at.0, r.service_ns)).collect()
    }

    #[test]
    fn biotracer_has_the_time_from_submission_to_the_end() {
        let line = |times: &str| format!("0\t8\t4096\t1\t{times}\n");
        let text = [
            line("1.000000000\t1.000001000\t1.000030000\t1.000800000"),
            line("1.000100000\t1.000100000\t1.000100500\t1.000100400"),
            // Issued in another order than they arrived in.
            line("1.000300000\t1.000300000\t1.000900000\t1.001000000"),
            line("1.000200000\t1.000200000\t1.001400000\t1.001500000"),
        ];
        let t = read(&text.concat(), &Options::default()).unwrap();
        let want = [(1, 0, 770_000), (2, 70_500, -100), (3, 870_000, 100_000), (4, 1_370_000, 100_000)];
        assert_eq!((times(&t), t.unmeasured), (want.to_vec(), 0));
        assert_eq!(t.identity.sha256.map(|s| s.len()), Some(64));
    }

    #[test]
    fn msr_has_response_times_and_lines_without_one_are_counted() {
        let text = "10000,web,3,Read,0,4096,35\n10010,web,3,Write,4096,512\n10030,web,3,Read,0,512,0\n";
        let t = read(text, &Options::default()).unwrap();
        assert_eq!((times(&t), t.unmeasured), (vec![(1, 0, 3500), (3, 3000, 0)], 1));
        let t = read(text, &Options { limit: Some(2), ..Options::default() }).unwrap();
        assert_eq!((t.requests.len(), t.unmeasured), (1, 1));
    }

    #[test]
    fn one_device_is_chosen_of_several() {
        let text = "1,a,0,Read,0,4096,35\n2,a,1,Read,0,4096,36\n3,a,0,Read,0,4096,37\n";
        let told = read(text, &Options::default()).unwrap_err().to_string();
        assert!(told.contains("--devices only:NAME"), "{told}");
        let only = |d: &str| Options { devices: DeviceMapping::Only(d.into()), ..Options::default() };
        let t = read(text, &only("a,1")).unwrap();
        assert_eq!(times(&t).iter().map(|t| t.2).collect::<Vec<_>>(), [3600]);
        assert!(read(text, &only("b")).is_err());
    }

    #[test]
    fn columns_can_name_a_service_time() {
        let columns = "time=t:us,op=o,sector=s,sectors=n,service=x:us".parse().unwrap();
        let options = Options { columns: Some(columns), ..Options::default() };
        let t = read("t,o,s,n,x\n5,R,0,8,70.25\n6,W,8,8,1\n", &options).unwrap();
        assert_eq!(times(&t), [(1, 0, 70_250), (2, 1000, 1000)]);
        let columns = "time=t:us,op=o,sector=s,sectors=n,service=x".parse::<crate::Columns>();
        assert!(columns.unwrap_err().to_string().contains("service has no unit"));
    }

    #[test]
    fn formats_without_times_and_generators_have_none() {
        let t = read("time_us,op,sector,sectors,flags\n1,R,0,8,\n2,F,0,0,\n", &Options::default()).unwrap();
        assert_eq!((t.requests.len(), t.unmeasured), (0, 2));
        assert!(MeasuredTrace::read("gen:uniform,count=5", &Options::default()).is_err());
    }
}
