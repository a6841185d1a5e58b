//! Models fitted to published tables.
//!
//! Published are the write ratio, mean sizes and (HALO) the size of the data set. All other
//! properties of the requests are our assumptions, which each model states: the sizes behind the
//! mean, the addresses and the arrivals. All sizes are whole sectors; their mixture has exactly the
//! published mean in expectation.

use super::bijection::Bijection;
use super::place::{AddressDistribution, AddressLaw};
use super::sizes::SizeDistribution;
use super::spec::{GeneratorSpec, common, finish, span};
use super::zipf::Zipf;
use super::{Generator, Pattern, RequestModel};
use crate::reading::FactSource;
use crate::{Error, Result};
use frit_core::SECTOR_BYTES;

/// A table of sizes in sectors, with weights.
type SizeTable = &'static [(u32, f64)];

/// Distribution of addresses.
#[derive(Clone, Copy, Debug)]
enum Locality {
    Uniform,
    Zipf(f64),
}

/// A model of a published workload.
#[derive(Debug)]
pub struct WorkloadModel {
    /// Name of the model, as in `gen:NAME`.
    pub name: &'static str,
    /// Name of the workload, and the table to which the model is fitted.
    pub about: &'static str,
    /// Published: share of writes among all requests.
    pub write_ratio: f64,
    /// Published: mean size of a write, in KB of 1024 bytes.
    pub write_kb: f64,
    /// Published: mean size of a read, in KB; `None` if the table gives one mean for both.
    pub read_kb: Option<f64>,
    /// Published: data set in GiB, used as the span of addresses.
    pub data_set: Option<&'static str>,
    /// Description in the paper's words, and our assumptions based on it.
    pub assumed: &'static str,
    span: &'static str,
    small: SizeTable,
    large: SizeTable,
    sequential: f64,
    locality: Locality,
    align: u32,
}

/// 0.5–2 KB, mean 2.7 sectors: "smaller than 4 sectors" in HFSL's section 3.3.2.
const FINANCIAL_SMALL: SizeTable = &[(1, 0.1), (2, 0.4), (3, 0.2), (4, 0.3)];
const FINANCIAL_LARGE: SizeTable = &[(8, 0.5), (16, 0.3), (32, 0.2)];
const MSNFS_SMALL: SizeTable = &[(8, 0.3), (16, 0.7)];
const HEAVY: SizeTable = &[(64, 0.6), (128, 0.4)];
/// Half of the small requests have at most 2 KB: the paper has updates in MSNFS that vanish at this
/// SSW.
const MSNFS_UNALIGNED_SMALL: SizeTable = &[(1, 0.15), (2, 0.15), (4, 0.2), (8, 0.2), (16, 0.3)];
const MSNFS_UNALIGNED_LARGE: SizeTable = &[(63, 0.3), (64, 0.3), (127, 0.2), (128, 0.2)];
const MSNFS_UNALIGNED: &str = "\"sequential or large size\": 60 % sequential, the rest zipf 0.5 at any sector; half of \
the small requests have 0.5-2 KiB, the others 4-8 KiB; half of the large ones are a sector short of 32 or 64 KiB; span 32 GiB";
const RADIUS_SMALL: SizeTable = &[(1, 0.2), (2, 0.2), (4, 0.3), (8, 0.3)];
const RADIUS_LARGE: SizeTable = &[(16, 0.4), (32, 0.4), (64, 0.2)];
const DAP_SMALL: SizeTable = &[(16, 0.3), (64, 0.3), (128, 0.4)];
const DAP_LARGE: SizeTable = &[(256, 0.6), (512, 0.4)];
const EXCHANGE_SMALL: SizeTable = &[(8, 0.2), (16, 0.8)];
const TPCE_SMALL: SizeTable = &[(16, 1.0)];
const TPCE_LARGE: SizeTable = &[(32, 0.7), (128, 0.3)];
const PAGE: SizeTable = &[(8, 1.0)];

/// MSNFS at any sector.
const UNALIGNED_MSNFS: WorkloadModel = WorkloadModel {
    name: "hfsl-msnfs-unaligned",
    about: "MSNFS as in HFSL's Table 8, at any sector",
    write_ratio: 0.15,
    write_kb: 10.06,
    read_kb: Some(14.38),
    data_set: None,
    assumed: MSNFS_UNALIGNED,
    span: "32G",
    small: MSNFS_UNALIGNED_SMALL,
    large: MSNFS_UNALIGNED_LARGE,
    sequential: 0.6,
    locality: Locality::Zipf(0.5),
    align: 1,
};

/// All models: HFSL's Table 8 (Fusion storage, 2016) and HALO's Table II (2012).
pub static MODELS: &[WorkloadModel] = &[
    WorkloadModel {
        name: "hfsl-fin1",
        about: "Financial1 as in HFSL's Table 8",
        write_ratio: 0.59,
        write_kb: 2.91,
        read_kb: Some(2.48),
        data_set: None,
        assumed: "\"random or small\": 5 % sequential, the rest zipf 0.9 at any sector; mostly 1-4 sectors; span 8 GiB",
        span: "8G",
        small: FINANCIAL_SMALL,
        large: FINANCIAL_LARGE,
        sequential: 0.05,
        locality: Locality::Zipf(0.9),
        align: 1,
    },
    WorkloadModel {
        name: "hfsl-fin2",
        about: "Financial2 as in HFSL's Table 8",
        write_ratio: 0.84,
        write_kb: 2.49,
        read_kb: Some(0.27),
        data_set: None,
        assumed: "\"many repeated writes\": zipf 1.1 at any sector; mostly 1-4 sectors; span 8 GiB; the published mean read of 0.27 KB \
                  is less than a sector, which is not possible: reads are 1 sector",
        span: "8G",
        small: FINANCIAL_SMALL,
        large: FINANCIAL_LARGE,
        sequential: 0.0,
        locality: Locality::Zipf(1.1),
        align: 1,
    },
    WorkloadModel {
        name: "hfsl-msnfs",
        about: "MSNFS as in HFSL's Table 8",
        write_ratio: 0.15,
        write_kb: 10.06,
        read_kb: Some(14.38),
        data_set: None,
        assumed: "\"sequential or large size\": 60 % sequential, the rest zipf 0.5 at 4 KiB; 4-8 KiB and 32-64 KiB; span 32 GiB",
        span: "32G",
        small: MSNFS_SMALL,
        large: HEAVY,
        sequential: 0.6,
        locality: Locality::Zipf(0.5),
        align: 8,
    },
    UNALIGNED_MSNFS,
    WorkloadModel {
        name: "hfsl-msnfs-writes",
        about: "MSNFS as in HFSL's section 3.3.6, which has no reads, with the writes of its Table 8 at any sector",
        write_ratio: 1.0,
        read_kb: None,
        ..UNALIGNED_MSNFS
    },
    WorkloadModel {
        name: "hfsl-radius",
        about: "RADIUS as in HFSL's Table 8",
        write_ratio: 0.91,
        write_kb: 7.20,
        read_kb: Some(6.58),
        data_set: None,
        assumed: "\"a mix of small and large\": 0.5-4 KiB and 8-32 KiB; 20 % sequential, the rest zipf 0.8 at any sector; span 16 GiB",
        span: "16G",
        small: RADIUS_SMALL,
        large: RADIUS_LARGE,
        sequential: 0.2,
        locality: Locality::Zipf(0.8),
        align: 1,
    },
    WorkloadModel {
        name: "halo-fin1",
        about: "Fin1 as in HALO's Table II",
        write_ratio: 0.846,
        write_kb: 3.38,
        read_kb: None,
        data_set: Some("18G"),
        assumed: "5 % sequential, the rest zipf 0.9 at any sector; mostly 1-4 sectors",
        span: "18G",
        small: FINANCIAL_SMALL,
        large: FINANCIAL_LARGE,
        sequential: 0.05,
        locality: Locality::Zipf(0.9),
        align: 1,
    },
    WorkloadModel {
        name: "halo-fin2",
        about: "Fin2 as in HALO's Table II",
        write_ratio: 0.215,
        write_kb: 2.4,
        read_kb: None,
        data_set: Some("8.85G"),
        assumed: "5 % sequential, the rest zipf 0.9 at any sector; mostly 1-4 sectors",
        span: "8.85G",
        small: FINANCIAL_SMALL,
        large: FINANCIAL_LARGE,
        sequential: 0.05,
        locality: Locality::Zipf(0.9),
        align: 1,
    },
    WorkloadModel {
        name: "halo-dap",
        about: "Dap (display advertisement platform) as in HALO's Table II",
        write_ratio: 0.549,
        write_kb: 77.0,
        read_kb: None,
        data_set: Some("84.2G"),
        assumed: "\"repeatability and temporal locality is very poor\": 30 % sequential, the rest uniform at 4 KiB; 8-64 KiB and 128-256 KiB",
        span: "84.2G",
        small: DAP_SMALL,
        large: DAP_LARGE,
        sequential: 0.3,
        locality: Locality::Uniform,
        align: 8,
    },
    WorkloadModel {
        name: "halo-exchange",
        about: "Exchange 2007 as in HALO's Table II",
        write_ratio: 0.74,
        write_kb: 13.65,
        read_kb: None,
        data_set: Some("163.8G"),
        assumed: "10 % sequential, the rest zipf 0.8 at 4 KiB; 4-8 KiB and 32-64 KiB",
        span: "163.8G",
        small: EXCHANGE_SMALL,
        large: HEAVY,
        sequential: 0.1,
        locality: Locality::Zipf(0.8),
        align: 8,
    },
    WorkloadModel {
        name: "halo-tpce",
        about: "TPC-E as in HALO's Table II",
        write_ratio: 0.998,
        write_kb: 10.48,
        read_kb: None,
        data_set: Some("13.2G"),
        assumed: "zipf 0.6 at 8 KiB; mostly 8 KiB, some 16 and 64 KiB",
        span: "13.2G",
        small: TPCE_SMALL,
        large: TPCE_LARGE,
        sequential: 0.0,
        locality: Locality::Zipf(0.6),
        align: 16,
    },
    WorkloadModel {
        name: "halo-mail",
        about: "FIU mail as in HALO's Table II",
        write_ratio: 0.901,
        write_kb: 4.0,
        read_kb: None,
        data_set: Some("85G"),
        assumed: "\"most of write requests are sequential\": 80 % sequential, the rest zipf 0.9 at 4 KiB; all 4 KiB",
        span: "85G",
        small: PAGE,
        large: PAGE,
        sequential: 0.8,
        locality: Locality::Zipf(0.9),
        align: 8,
    },
    WorkloadModel {
        name: "halo-randw",
        about: "Randw (IOmeter) as in HALO's section IV: 4 KB, 100 % random, 100 % write, 5.9 GB",
        write_ratio: 1.0,
        write_kb: 4.0,
        read_kb: None,
        data_set: Some("5.9G"),
        assumed: "only the arrival",
        span: "5.9G",
        small: PAGE,
        large: PAGE,
        sequential: 0.0,
        locality: Locality::Uniform,
        align: 8,
    },
];

impl WorkloadModel {
    /// Returns the mean size of a write, in sectors.
    #[must_use]
    pub fn write_sectors(&self) -> f64 {
        self.write_kb * 2.0
    }

    /// Returns the mean size of a read, in sectors: the published value, but at least one.
    #[must_use]
    pub fn read_sectors(&self) -> f64 {
        (self.read_kb.unwrap_or(self.write_kb) * 2.0).max(1.0)
    }

    fn sizes(&self, mean: f64) -> SizeDistribution {
        match (self.small, self.large) {
            // A mixture of two equal sizes would divide by zero in `with_mean`.
            ([(n, _)], [(m, _)]) if n == m => SizeDistribution::Fixed(*n),
            _ if mean <= 1.0 => SizeDistribution::Fixed(1),
            (small, large) => SizeDistribution::with_mean(mean, small, large),
        }
    }

    fn pattern(&self, weight: f64, span: u64, law: AddressLaw) -> Pattern {
        let align = u64::from(self.align);
        Pattern {
            weight,
            unit: SECTOR_BYTES as u32,
            place: AddressDistribution { base: 0, span, align, law },
            read: 1.0 - self.write_ratio,
            reads: self.sizes(self.read_sectors()),
            writes: self.sizes(self.write_sectors()),
            metadata: 0.0,
            flush_every: 0,
            writes_done: 0,
        }
    }
}

/// Builds a generator from a model. The user may change count, seed, arrival, rate and span.
pub(super) fn build(model: &WorkloadModel, mut spec: GeneratorSpec) -> Result<Generator> {
    let common = common(&mut spec)?;
    let align = u64::from(model.align);
    // Published data sets are not whole sectors, but a span must be. It is rounded down to whole
    // MiB.
    let default = frit_core::size::parse(model.span).map_err(|why| Error::spec(model.span, why))? >> 20 << 20;
    let span = span(&mut spec, &default.to_string())? / align * align;
    let largest = model.sizes(model.read_sectors()).max().max(model.sizes(model.write_sectors()).max());
    if span < u64::from(largest) {
        return Err(spec.bad("the span is smaller than the largest request"));
    }
    let n = AddressDistribution::slots(span, align);
    let random = match model.locality {
        Locality::Uniform => AddressLaw::Uniform,
        Locality::Zipf(theta) => AddressLaw::Zipf(Zipf::new(n, theta), Bijection::new(n, common.seed)),
    };
    let mut patterns = vec![model.pattern(1.0 - model.sequential, span, random)];
    if model.sequential > 0.0 {
        // The second element is the start of the writes: the middle of the span.
        let law = AddressLaw::Sequential([0, span / 2 / align * align]);
        patterns.push(model.pattern(model.sequential, span, law));
    }
    let mut g = finish(&spec, &common, RequestModel::Patterns(patterns), model.about)?;
    let reads = match model.read_kb {
        Some(kb) => format!("reads of {kb} KB"),
        None => "reads of the same size".into(),
    };
    let data = model.data_set.map_or(String::new(), |d| format!(", data set {d}"));
    let published =
        format!("{:.1} % writes of {} KB, {reads}{data}", model.write_ratio * 100.0, model.write_kb);
    g.reading.fact("published", published, FactSource::Fixed);
    let why = "not published".into();
    g.reading.fact(
        "locality, sizes, arrival",
        format!("{}; poisson arrival", model.assumed),
        FactSource::Assumed(why),
    );
    Ok(g)
}
