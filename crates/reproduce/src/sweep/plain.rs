//! A workload without the host's hints.

use frit_core::Hints;
use frit_trace::{ReqOp, Workload};
use std::io::{self, Read};

/// Gives a workload as frit's own recorded CSV with all flags but FUA left out, so that it can be read again as a
/// workload: of hints, only metadata changes where a write goes.
pub(super) struct Plain {
    workload: Workload,
    batch: Vec<frit_trace::Request>,
    text: Vec<u8>,
    at: usize,
}

impl Plain {
    pub(super) fn new(workload: Workload) -> Plain {
        let text = b"time_us,op,sector,sectors,flags\n".to_vec();
        Plain { workload, batch: Vec::new(), text, at: 0 }
    }

    fn refill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.at = 0;
        if !self.workload.fill(&mut self.batch).map_err(io::Error::other)? {
            return Ok(false);
        }
        for r in &self.batch {
            let op = match r.op {
                ReqOp::Read => 'R',
                ReqOp::Write => 'W',
                ReqOp::Discard => 'D',
                ReqOp::Flush => 'F',
            };
            let fua = if r.hints.has(Hints::FUA) { "F" } else { "" };
            let line = format!("{},{op},{},{},{fua}\n", r.at.0 / 1000, r.sector.0, r.sectors);
            self.text.extend_from_slice(line.as_bytes());
        }
        Ok(true)
    }
}

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            if !self.refill()? {
                return Ok(0);
            }
        }
        let n = into.len().min(self.text.len() - self.at);
        into[..n].copy_from_slice(&self.text[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
