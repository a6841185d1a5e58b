//! Bytes of a trace. The first byte selects a format, or detection by content. Reading ends, without a
//! panic, and returns only valid requests.

#![no_main]

use frit_trace::{Columns, Options, Workload};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

const FORMATS: [&str; 12] = [
    "recorded", "fio3", "fio2", "vscsi", "msr", "spc", "blkparse", "fiu", "biotracer", "diskmon", "disksim", "csv",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, bytes)) = bytes.split_first() else { return };
    let mut options = Options::default();
    if let Some(format) = FORMATS.get(usize::from(form) % (FORMATS.len() + 4)) {
        options.format = Some((*format).into());
        if *format == "csv" {
            options.columns = "time=1:us,op=2,sector=3,sectors=4".parse::<Columns>().ok();
        }
    }
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut workload) = Workload::from_reader("fuzz", reader, &options) else { return };
    let mut batch = Vec::new();
    while let Ok(true) = workload.fill(&mut batch) {
        for r in &batch {
            assert!(r.sector.0.checked_add(u64::from(r.sectors)).is_some(), "{r:?}");
        }
    }
    let _ = workload.problems().sentences();
});
