//! Mixes that represent applications for which little data is published.
//!
//! The workloads of the BNVM-SSD paper (Kwon, IEEE Access 2019) are recordings of a Nexus 5 (Zhou
//! et al., "I/O Characteristics of Smartphone Applications and Their Implications for eMMC Design",
//! IISWC 2015). Published are the paper's description of each workload, and Zhou's finding that in
//! 15 of the 18 recordings 44.9 to 57.4 % of the requests have a size of one page of 4 KB. All
//! other properties are assumed, based on the recordings Booting and Installing: requests are
//! aligned to 4 KB; small ones update small databases and journals; large ones of up to 512 KB
//! write new files one after the other.
//!
//! The free properties are chosen so that the mixes do what the paper says of its traces: with
//! dynamic mapping A and B have fewer parallel writes than with static mapping, C, D and E have
//! more, and F has fewer that take longer. A new page prefers dynamic mapping, which places it on
//! the next chip. A log that is reused prefers static mapping: its pages, first written among pages
//! of other files, are on arbitrary chips with dynamic mapping, and are updated in sequence. What
//! the paper says of the mappings is therefore an input of these mixes, and not a result.

use super::spec::{GeneratorSpec, common, finish, parts};
use super::{Generator, RequestModel};
use crate::Result;
use crate::reading::FactSource;

/// A mix that represents an application.
#[derive(Debug)]
pub struct Recipe {
    /// Name of the recipe, as in `gen:NAME`.
    pub name: &'static str,
    /// Description of the workload that it represents.
    pub about: &'static str,
    /// Assumed composition.
    pub assumed: &'static str,
    mix: &'static str,
}

/// Range of the share of 4 KB requests in 15 of 18 recordings (Zhou et al., abstract).
pub const PAGE_SHARE: (f64, f64) = (0.449, 0.574);

/// All recipes: traces A, B, D, E and F of the BNVM-SSD paper.
pub static RECIPES: &[Recipe] = &[
    Recipe {
        name: "nexus-twitter",
        about: "music applications and Twitter: trace A of the BNVM-SSD paper, \"write-intensive\"",
        assumed: "9 of 10 requests write; 70 % to databases of 64 MiB (zipf 0.9), 25 % to a journal of 32 MiB that is not \
                  reused, 5 % new music",
        mix: "mix\
            +zipf,weight=70,span=64M,theta=0.9,read=0.1,size=4K:60/8K:40\
            +sequential,weight=25,base=256M,span=32M,read=0,size=4K:50/8K:20/32K:30\
            +sequential,weight=5,base=1G,span=4G,read=0.2,size=64K:5/128K:3/512K:2",
    },
    Recipe {
        name: "nexus-copy",
        about: "several copies of files: trace B of the BNVM-SSD paper, \"multiple copy operations\"",
        assumed: "each file is read and written in requests of 128 and 512 KiB (40 %), 60 % are metadata: inodes and bitmaps of \
                  4 MiB (zipf 0.8) and a journal of 32 MiB",
        mix: "mix\
            +sequential,weight=40,base=1G,span=16G,read=0.5,size=128K:1/512K:3\
            +zipf,weight=30,span=4M,theta=0.8,read=0.1,size=4K\
            +sequential,weight=30,base=64M,span=32M,read=0,size=4K:75/16K:25",
    },
    Recipe {
        name: "nexus-facebook",
        about: "the Facebook application: trace D of the BNVM-SSD paper, reads and writes",
        assumed: "30 % reads; 45 % of the requests to databases of 16 MiB (zipf 0.9), 25 % to write-ahead logs of 8 MiB that \
                  are reused, 30 % new pictures of 16 to 128 KiB",
        mix: "mix\
            +zipf,weight=45,span=16M,theta=0.9,read=0.3,size=4K:70/8K:18/16K:12\
            +sequential,weight=25,base=64M,span=8M,read=0,size=4K:60/16K:30/32K:10\
            +sequential,weight=30,base=1G,span=4G,read=0.5,size=16K:4/64K:4/128K:2",
    },
    Recipe {
        name: "nexus-maps",
        about: "Google Maps: trace E of the BNVM-SSD paper, reads and writes",
        assumed: "38 % reads; 50 % of the requests to tiles and their database of 40 MiB (zipf 0.7), 25 % to write-ahead logs of \
                  2 MiB that are reused, 25 % new tiles",
        mix: "mix\
            +zipf,weight=50,span=40M,theta=0.7,read=0.6,size=4K:65/16K:25/32K:10\
            +sequential,weight=25,base=512M,span=2M,read=0,size=4K:75/16K:25\
            +sequential,weight=25,base=1G,span=2G,read=0.3,size=4K:2/16K:4/64K:4",
    },
    Recipe {
        name: "nexus-web",
        about: "several activities in web browsers: trace F of the BNVM-SSD paper, reads and writes",
        assumed: "30 % reads; 32 % of the requests to databases of 24 MiB (zipf 0.9), 20 % to write-ahead logs of 5 MiB that are \
                  reused, 48 % new small files and their replacement in a cache of 256 MiB",
        mix: "mix\
            +zipf,weight=32,span=24M,theta=0.9,read=0.2,size=4K:70/8K:20/32K:10\
            +sequential,weight=20,base=64M,span=5M,read=0,size=4K:80/16K:20\
            +sequential,weight=30,base=1G,span=256M,read=0.4,size=4K:3/16K:4/64K:3\
            +hotcold,weight=18,base=2G,span=256M,space=0.2,traffic=0.6,read=0.6,size=4K:3/16K:5/32K:2",
    },
];

/// Builds a generator from a recipe. The user may change count, seed, arrival and rate.
pub(super) fn build(recipe: &Recipe, mut spec: GeneratorSpec) -> Result<Generator> {
    let common = common(&mut spec)?;
    let patterns = parts(&mut GeneratorSpec::parse(recipe.mix)?.into_parts(), common.seed)?;
    let mut g = finish(&spec, &common, RequestModel::Patterns(patterns), recipe.about)?;
    let published = format!(
        "{} to {} % of the requests are of 4 KB in 15 of 18 recordings",
        PAGE_SHARE.0 * 100.0,
        PAGE_SHARE.1 * 100.0
    );
    g.reading.fact("published", published, FactSource::Fixed);
    let why = "not published".into();
    g.reading.fact("mix, sizes, locality, arrival", recipe.assumed.to_owned(), FactSource::Assumed(why));
    Ok(g)
}
