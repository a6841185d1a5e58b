//! A file with the times of every measured request (`frit run --requests`).

use frit_core::Nanos;
use frit_core::files::OutputFile;
use frit_engine::RequestTimes;
use frit_trace::Request;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;

/// Header of the file.
const HEADER: &str = "stack,workload,request,op,offset,bytes,arrival_ns,start_ns,end_ns\n";

/// Writes a line of comma-separated values for each measured request, in order of arrival.
///
/// Times are nanoseconds from the start of the measurement. A request *arrives* in the queue of the
/// host, *starts* when the layer is called, and *ends* with its acknowledgement. An error of the
/// output is kept, and returned by [`RequestLog::commit`].
#[derive(Debug)]
pub struct RequestLog {
    out: io::BufWriter<OutputFile>,
    failed: Option<io::Error>,
    /// The first two columns of the current run.
    names: String,
    base: Nanos,
    /// Requests that are not written yet, from number `first` on.
    pending: VecDeque<(Request, Option<RequestTimes>)>,
    first: u64,
}

/// Size of the buffer of a log.
const BUFFER_BYTES: usize = 1 << 16;

/// Returns a value as a field: in quotes if it contains a comma or a quote.
fn field(value: &str) -> String {
    if value.contains([',', '"', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.into()
    }
}

impl RequestLog {
    /// Creates a log, which replaces the file at `path` when it is committed.
    ///
    /// # Errors
    /// No file can be written at the path.
    pub fn create(path: &Path) -> io::Result<RequestLog> {
        let mut log = RequestLog {
            out: io::BufWriter::with_capacity(BUFFER_BYTES, OutputFile::create(path)?),
            failed: None,
            names: String::new(),
            base: Nanos::ZERO,
            pending: VecDeque::new(),
            first: 0,
        };
        log.write(HEADER);
        Ok(log)
    }

    /// Begins a run, whose measurement starts at `base`.
    pub(crate) fn begin_run(&mut self, stack: &str, workload: &str, base: Nanos) {
        self.names = format!("{},{}", field(stack), field(workload));
        self.base = base;
        self.first = 0;
        self.pending.clear();
    }

    /// Adds a request that the layer is called for.
    pub(crate) fn begin(&mut self, request: Request) {
        self.pending.push_back((request, None));
    }

    /// Adds the times of a request, and writes the requests that are complete.
    pub(crate) fn done(&mut self, times: RequestTimes) {
        if let Some(at) = times.index.checked_sub(self.first)
            && let Some(entry) = self.pending.get_mut(at as usize)
        {
            entry.1 = Some(times);
        }
        while let Some(&(request, Some(times))) = self.pending.front() {
            self.pending.pop_front();
            let since = |t: Nanos| t.since(self.base).0;
            let line = format!(
                "{},{},{},{},{},{},{},{}\n",
                self.names,
                self.first,
                request.op.name(),
                request.offset(),
                request.bytes(),
                since(times.arrived),
                since(times.admitted),
                since(times.acknowledged),
            );
            self.first += 1;
            self.write(&line);
        }
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }

    /// Writes what is buffered, and gives the file its name.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn commit(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Sector};
    use frit_trace::{ReqOp, SectorCut};

    #[test]
    fn lines_are_in_order_of_arrival() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("requests.csv");
        let mut log = RequestLog::create(&path).unwrap();
        log.begin_run("a,gc=fifo", "mail", Nanos(1000));
        let request = |sector| Request {
            at: Nanos(0),
            sector: Sector(sector),
            sectors: 8,
            device: 0,
            op: ReqOp::Write,
            hints: Hints::NONE,
            cut: SectorCut::NONE,
        };
        (0..3).for_each(|i| log.begin(request(i)));
        for (index, end) in [(1, 1300), (0, 1400), (2, 1350)] {
            let (arrived, admitted) = (Nanos(1000 + index), Nanos(1100));
            log.done(RequestTimes { index, arrived, admitted, acknowledged: Nanos(end) });
        }
        assert!(!path.exists(), "the file is complete or not there");
        log.commit().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let want = [
            "\"a,gc=fifo\",mail,0,write,0,4096,0,100,400",
            "\"a,gc=fifo\",mail,1,write,512,4096,1,100,300",
            "\"a,gc=fifo\",mail,2,write,1024,4096,2,100,350",
        ];
        assert_eq!(text, format!("{HEADER}{}\n", want.join("\n")));
    }
}
