//! The input of a run: a trace file, standard input, or a generator.

pub use crate::generate::GENERATOR_PREFIX;
pub use crate::source::STDIN;

use crate::devices::{DeviceLayout, check_end, range_of};
use crate::fit::Fitter;
use crate::identity::WorkloadIdentity;
use crate::input::TraceInput;
use crate::problems::Problems;
use crate::source::{RequestSource, SourceKind, check_only};
use crate::stream::TraceStream;
use crate::{DeviceMapping, Error, Fit, Options, Reading, Request, Result, Scan};
use std::io::Read;
use std::ops::Range;

/// A stream of requests in one address space.
///
/// ```no_run
/// use frit_trace::{Fit, Options, Scan, Workload};
/// let options = Options::default();
/// let scan = Scan::of("financial1.spc.zst", &options)?;
/// let mut workload = Workload::open_scanned("financial1.spc.zst", &options, &scan)?.fit(
///     Fit::Wrap,
///     1 << 21,
///     Some(&scan),
/// )?;
/// let mut batch = Vec::new();
/// while workload.fill(&mut batch)? {
///     for request in &batch {
///         println!("{request:?}");
///     }
/// }
/// # Ok::<(), frit_trace::Error>(())
/// ```
pub struct Workload {
    spec: String,
    options: Options,
    source: RequestSource,
    again: bool,
    only: Option<u16>,
    layout: Option<DeviceLayout>,
    /// Ranges of the devices so far, if the options give ranges.
    ranges: Vec<Range<u64>>,
    fitter: Option<Fitter>,
    left: u64,
    sha256: Option<String>,
    batch: Vec<Request>,
    next: usize,
}

impl Workload {
    /// Opens a workload: a path, `-` for standard input, or `gen:NAME,key=value,…`.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or is in no known format; a generator or option that
    /// is not valid.
    pub fn open(spec: &str, options: &Options) -> Result<Workload> {
        Ok(Workload::of(spec, options, RequestSource::open(spec, options, false)?, spec != STDIN))
    }

    /// Creates a workload from a reader, which is read once. Errors and the identity refer to it as
    /// `name`.
    ///
    /// # Errors
    /// As [`Workload::open`].
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>, options: &Options) -> Result<Workload> {
        let input = TraceInput::from_reader(name, reader, options, false)?;
        let kind = SourceKind::Trace(Box::new(TraceStream::of(name, input, options)?));
        let source = RequestSource::of(kind, options);
        Ok(Workload::of(name, options, source, false))
    }

    fn of(spec: &str, options: &Options, source: RequestSource, again: bool) -> Workload {
        Workload {
            spec: spec.into(),
            options: options.clone(),
            source,
            again,
            only: None,
            layout: None,
            ranges: Vec::new(),
            fitter: None,
            left: options.limit.unwrap_or(u64::MAX),
            sha256: None,
            batch: Vec::new(),
            next: 0,
        }
    }

    /// Opens a workload that was scanned: its devices need not be measured again, and its identity
    /// contains the hash.
    ///
    /// # Errors
    /// As [`Workload::open`].
    pub fn open_scanned(spec: &str, options: &Options, scan: &Scan) -> Result<Workload> {
        let mut w = Workload::open(spec, options)?;
        w.layout = Some(scan.layout.clone());
        w.sha256.clone_from(&scan.identity.sha256);
        Ok(w)
    }

    /// Fits the workload to a volume of `capacity` sectors. With a scan, a trace that does not fit
    /// is refused immediately, otherwise at the first request that does not fit.
    ///
    /// # Errors
    /// A trace larger than the volume (`Fit::Strict`), or whose chunks do not fit it (`Fit::Compact`).
    pub fn fit(mut self, fit: Fit, capacity: u64, scan: Option<&Scan>) -> Result<Workload> {
        self.fitter = Some(Fitter::new(&self.identity().name, fit, capacity, scan)?);
        Ok(self)
    }

    /// Replaces the contents of `out` by the next requests (some thousand); returns `false` at the
    /// end.
    ///
    /// # Errors
    /// A malformed line in strict mode, an input that fails, a trace without any request, a request
    /// outside the volume.
    pub fn fill(&mut self, out: &mut Vec<Request>) -> Result<bool> {
        loop {
            out.clear();
            if self.left == 0 {
                return Ok(false);
            }
            if !self.source.fill(out)? {
                out.clear();
                check_only(&self.source, &self.options.devices, &self.spec)?;
                return Ok(false);
            }
            self.place(out)?;
            out.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= out.len() as u64;
            if let Some(fitter) = &mut self.fitter {
                fitter.apply(out)?;
            }
            if !out.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Maps devices to one address space.
    fn place(&mut self, out: &mut Vec<Request>) -> Result<()> {
        match &self.options.devices {
            DeviceMapping::Merge => Ok(()),
            DeviceMapping::Only(name) => {
                if self.only.is_none() {
                    let at = self.source.devices().iter().position(|d| d == name);
                    self.only = at.and_then(|i| u16::try_from(i).ok());
                }
                out.retain(|r| Some(r.device) == self.only);
                Ok(())
            }
            DeviceMapping::Ranges(ranges) => {
                let refused = |why| Error::Devices { name: self.source.identity(&self.spec, None).name, why };
                for name in self.source.devices().iter().skip(self.ranges.len()) {
                    self.ranges.push(range_of(name, ranges).map_err(refused)?);
                }
                // A flush has no address.
                for r in out.iter_mut().filter(|r| r.sectors > 0) {
                    let Some(range) = self.ranges.get(usize::from(r.device)) else {
                        return Err(refused("its requests name no device, and so no name space".into()));
                    };
                    let name = &self.source.devices()[usize::from(r.device)];
                    check_end(name, r.end(), range).map_err(refused)?;
                    r.sector.0 += range.start;
                }
                Ok(())
            }
            DeviceMapping::Concat => {
                // The first device starts at sector 0, so a trace with one device needs no second
                // pass.
                if out.iter().all(|r| r.device == 0) {
                    return Ok(());
                }
                if self.layout.is_none() {
                    self.layout = Some(self.measure()?);
                }
                let layout = self.layout.as_ref();
                // A flush has no address.
                for r in out.iter_mut().filter(|r| r.sectors > 0) {
                    let base = layout.and_then(|l| l.base(r.device)).unwrap_or(u64::MAX);
                    let at = base.checked_add(r.sector.0).filter(|at| *at < crate::request::SECTOR_LIMIT);
                    r.sector.0 = at.ok_or_else(|| self.address_space_full())?;
                }
                Ok(())
            }
        }
    }

    fn address_space_full(&self) -> Error {
        Error::Devices {
            name: self.identity().name,
            why: "its devices, one after another, do not fit an address space of 2^64 bytes; use --devices merge or only:NAME".into(),
        }
    }

    /// Reads the whole trace to determine the size of each device.
    fn measure(&self) -> Result<DeviceLayout> {
        if !self.again {
            let why = format!(
                "there is more than one device ({}), and this input cannot be read twice, which is necessary to place them one after another; use \
                 --devices merge or only:NAME, or a file",
                self.source.devices().join(", ")
            );
            return Err(Error::Devices { name: self.identity().name, why });
        }
        crate::scan::layout(&self.spec, &self.options)
    }

    /// Returns the identity of the workload.
    #[must_use]
    pub fn identity(&self) -> WorkloadIdentity {
        self.source.identity(&self.spec, self.sha256.clone())
    }

    /// Returns format, units and conventions used to read the workload.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.source.reading()
    }

    /// Returns the problems so far.
    #[must_use]
    pub fn problems(&self) -> Problems {
        let mut problems = self.source.problems();
        problems.notes.extend(self.fitter.as_ref().and_then(Fitter::remark));
        problems
    }

    /// Returns the device names so far; a request's `device` is an index into them.
    #[must_use]
    pub fn devices(&self) -> &[String] {
        self.source.devices()
    }
}

/// Iterates over single requests; [`Workload::fill`] is faster.
impl Iterator for Workload {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Result<Request>> {
        if self.next == self.batch.len() {
            let mut batch = std::mem::take(&mut self.batch);
            let more = self.fill(&mut batch);
            self.batch = batch;
            self.next = 0;
            match more {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => {
                    // After an error, the stream has ended.
                    self.left = 0;
                    self.batch.clear();
                    return Some(Err(e));
                }
            }
        }
        self.next += 1;
        self.batch.get(self.next - 1).copied().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceRange;
    use std::io::Write;

    fn sectors(text: &str, ranges: &[(&str, Range<u64>)], scanned: bool) -> Result<Vec<u64>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let range = |(name, sectors): &(&str, Range<u64>)| DeviceRange {
            name: (*name).to_owned(),
            sectors: sectors.clone(),
        };
        let columns = "time=1:us,device=2,op=3,sector=4,sectors=5".parse().unwrap();
        let devices = DeviceMapping::Ranges(ranges.iter().map(range).collect());
        let options = Options { devices, columns: Some(columns), ..Options::default() };
        if !scanned {
            return Workload::open(path, &options)?.map(|r| r.map(|r| r.sector.0)).collect();
        }
        let scan = Scan::of(path, &options)?;
        assert!(scan.end_sector <= 300, "{}", scan.end_sector);
        let workload = Workload::open_scanned(path, &options, &scan)?.fit(Fit::Strict, 300, Some(&scan))?;
        workload.map(|r| r.map(|r| r.sector.0)).collect()
    }

    #[test]
    fn devices_lie_in_the_ranges_of_their_names() {
        let ranges = [("a", 0..100), ("b", 100..300)];
        let two = "1,b,W,8,8\n2,a,W,16,8\n3,b,R,192,8\n4,a,R,92,8\n";
        for scanned in [false, true] {
            assert_eq!(sectors(two, &ranges, scanned).unwrap(), [108, 16, 292, 92]);
            let refused = |text: &str| sectors(text, &ranges, scanned).unwrap_err().to_string();
            let past = refused("1,b,W,8,8\n2,a,W,96,8\n");
            assert!(past.contains("'a'") && past.contains("100 sectors"), "{past}");
            let other = refused("1,b,W,8,8\n2,c,W,8,8\n");
            assert!(other.contains("'c'") && other.contains("a, b"), "{other}");
        }
    }
}
