//! A file with the times of every measured request (`frit run --requests`).

use crate::host::{CLASSES, class};
use frit_core::{Nanos, SECTOR_BYTES};
use frit_engine::RequestTimes;
use frit_trace::Request;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};

/// Header of the file.
const HEADER: &str = "stack,workload,request,op,offset,bytes,arrival_ns,start_ns,end_ns\n";

/// Writes a line of comma-separated values for each measured request, in order of arrival.
///
/// Times are nanoseconds from the start of the measurement. A request *arrives* in the queue of the
/// host, *starts* when the layer is called, and *ends* with its acknowledgement. An error of the
/// output is kept, and returned by [`RequestLog::finish`].
pub struct RequestLog {
    out: Box<dyn Write>,
    failed: Option<io::Error>,
    /// The first two columns of the current run.
    names: String,
    base: Nanos,
    /// Requests that are not written yet, from number `first` on.
    pending: VecDeque<(Request, Option<RequestTimes>)>,
    first: u64,
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLog").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Returns a value as a field: in quotes if it contains a comma or a quote.
fn field(value: &str) -> String {
    if value.contains([',', '"', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.into()
    }
}

impl RequestLog {
    /// Creates a log that writes to `out`, beginning with the header.
    #[must_use]
    pub fn new(out: impl Write + 'static) -> RequestLog {
        let mut log = RequestLog {
            out: Box::new(io::BufWriter::with_capacity(1 << 16, out)),
            failed: None,
            names: String::new(),
            base: Nanos::ZERO,
            pending: VecDeque::new(),
            first: 0,
        };
        log.write(HEADER);
        log
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
                CLASSES[usize::from(class(request.op))],
                request.sector.0 * SECTOR_BYTES,
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

    /// Writes what is buffered.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Sector};
    use frit_trace::ReqOp;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_in_order_of_arrival() {
        let text = Shared::default();
        let mut log = RequestLog::new(text.clone());
        log.begin_run("a,gc=fifo", "mail", Nanos(1000));
        let request = |sector| Request {
            at: Nanos(0),
            sector: Sector(sector),
            sectors: 8,
            device: 0,
            op: ReqOp::Write,
            hints: Hints::NONE,
        };
        (0..3).for_each(|i| log.begin(request(i)));
        for (index, end) in [(1, 1300), (0, 1400), (2, 1350)] {
            let (arrived, admitted) = (Nanos(1000 + index), Nanos(1100));
            log.done(RequestTimes { index, arrived, admitted, acknowledged: Nanos(end) });
        }
        log.finish().unwrap();
        let text = String::from_utf8(text.0.borrow().clone()).unwrap();
        let want = [
            "\"a,gc=fifo\",mail,0,write,0,4096,0,100,400",
            "\"a,gc=fifo\",mail,1,write,512,4096,1,100,300",
            "\"a,gc=fifo\",mail,2,write,1024,4096,2,100,350",
        ];
        assert_eq!(text, format!("{HEADER}{}\n", want.join("\n")));
    }
}
