//! Properties of the generators: determinism, ratios, means, addresses.

use super::*;
use crate::{Options, Scan};

fn all(spec: &str) -> Vec<Request> {
    let mut g = Generator::parse(spec).unwrap();
    let (mut out, mut batch) = (Vec::new(), Vec::new());
    while g.fill(&mut batch) {
        out.extend_from_slice(&batch);
    }
    out
}

#[test]
fn the_same_seed_gives_the_same_requests_and_the_canonical_form_too() {
    for spec in [
        "uniform,count=5k",
        "zipf,count=5k,theta=1.0,read=0.3,size=512..64K",
        "sequential,count=5k,size=128K",
        "hotcold,count=5k,meta=0.1,flush=10",
        "mix,count=5k,seed=9+zipf,weight=3,size=4K:3/16K+sequential,weight=1,size=1M,read=1,base=1G",
        "hfsl-msnfs,count=5k",
        "nexus-twitter,count=5k",
    ] {
        let one = all(spec);
        let canonical = Generator::parse(spec).unwrap().canonical();
        assert_eq!(one, all(spec));
        assert_eq!(one, all(canonical.strip_prefix("gen:").unwrap()), "{canonical}");
        assert_ne!(
            one[10..],
            all(&spec.replace(",count=5k", ",count=5k,seed=7").replace(",seed=9", ""))[10..]
        );
    }
}

#[test]
fn the_first_requests_of_a_seed_are_pinned() {
    let got: Vec<(u64, u64)> = all("uniform,count=3,seed=1").iter().map(|r| (r.at.0, r.sector.0)).collect();
    assert_eq!(got, PINNED, "a change here is a change of VERSION");
}

/// First requests of `uniform,count=3,seed=1` in versions 1 and 2.
const PINNED: [(u64, u64); 3] = [(0, 1_409_528), (53_323, 1_785_776), (1_003_445, 1_581_552)];

#[test]
fn sizes_below_a_sector_give_requests_of_bytes() {
    let all = all("uniform,count=3k,read=0.5,size=64:2/100:1,align=4,span=64K,base=4K");
    assert!(all.iter().all(|r| [64, 100].contains(&r.bytes()) && r.offset() % 4 == 0));
    assert!(all.iter().all(|r| r.offset() >= 4096 && r.offset() + r.bytes() <= 68 << 10));
    assert!(all.iter().all(|r| r.end() * 512 >= r.offset() + r.bytes() && r.sectors <= 2));
    assert!(all.iter().any(|r| r.sectors == 2) && all.iter().any(|r| !r.is_whole()));
    let canonical = Generator::parse("uniform,size=96").unwrap().canonical();
    assert!(canonical.contains("align=32"), "{canonical}");
    // An alignment alone makes requests of bytes, too.
    assert!(self::all("uniform,count=100,size=512,align=8").iter().any(|r| r.sectors == 2));
}

#[test]
fn mistakes_are_named() {
    for (spec, why) in [
        ("unifrom", "there is no generator"),
        ("uniform,size", "no ="),
        ("uniform,colour=red", "there is no colour"),
        ("uniform,count=0", "count"),
        ("uniform,size=0", "not a multiple of 512"),
        ("uniform,size=100,align=0", "above 0"),
        ("uniform,span=4K,size=8K", "smaller"),
        ("uniform,ops=read,read=0.5", "contradicts"),
        ("uniform,seed=1,seed=2", "twice"),
        ("mix", "needs parts"),
        ("mix+mix", "cannot be part"),
        ("uniform+zipf", "only a mix"),
        ("zones,zone=1G,writers=2,span=1G", "has 1 zones"),
        ("zones,zone=2K,size=4K", "at least a request"),
        ("zipf,theta=-1", "exponent"),
        ("hfsl-fin1,size=4K", "there is no size"),
        ("uniform,rate=0", "more than 0"),
    ] {
        let e = Generator::parse(spec).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains(why), "{spec}: {e}");
    }
}

#[test]
fn models_have_the_published_statistics() {
    for m in MODELS {
        let s = Scan::of(&format!("gen:{},count=400k", m.name), &Options::default()).unwrap();
        let near = |got: f64, want: f64, what: &str| {
            assert!((got - want).abs() <= 0.02 * want, "{}: {what} {got}, published {want}", m.name);
        };
        near(s.write_ratio, m.write_ratio, "write ratio");
        near(s.writes.mean / 1024.0, m.write_kb, "mean write");
        if m.write_ratio < 0.99 {
            near(s.reads.mean / 512.0, m.read_sectors(), "mean read");
        }
        if let Some(set) = m.data_set {
            let bytes = frit_core::size::parse(set).unwrap();
            assert!(s.end_bytes() <= bytes, "{}", m.name);
        }
        assert!(s.reading.about.starts_with("generated") && s.identity.to_string().contains("generated"));
    }
}

#[test]
fn recipes_have_the_published_share_of_pages() {
    for r in RECIPES {
        let requests = all(&format!("{},count=100k", r.name));
        let share = |f: &dyn Fn(&Request) -> bool| requests.iter().filter(|r| f(r)).count() as f64 / 1e5;
        let pages = share(&|r| r.sectors == 8);
        assert!((PAGE_SHARE.0..=PAGE_SHARE.1).contains(&pages), "{}: {pages}", r.name);
        assert!(requests.iter().all(|r| r.sector.0 % 8 == 0 && r.end() * 512 <= 32 << 30), "{}", r.name);
        assert!(share(&|r| r.op == ReqOp::Write) > 0.5, "{}", r.name);
        let g = Generator::parse(r.name).unwrap();
        assert!(g.reading().about.starts_with("generated"), "{}", r.name);
    }
}

#[test]
fn patterns_go_where_they_should() {
    let scan = |spec: &str| Scan::of(spec, &Options::default()).unwrap();
    let s = scan("gen:sequential,count=10k,size=64K");
    assert!(s.sequential > 0.99, "{}", s.sequential);
    let s = scan("gen:uniform,count=20k,span=16M,ops=read");
    assert_eq!((s.writes.count, s.reads.count), (0, 20_000));
    assert!(s.footprint_pages > 4000 && s.footprint_pages <= 4096);
    // 80 % of the traffic goes to 20 % of the space: the hot pages (accessed more often than the
    // mean) get about 80 %.
    let mut hits = std::collections::HashMap::<u64, u32>::new();
    let rs = all("hotcold,count=100k,span=4M,space=0.2,traffic=0.8");
    rs.iter().for_each(|r| *hits.entry(r.sector.0).or_default() += 1);
    let hot: Vec<u32> = hits.values().copied().filter(|&h| h > 200).collect();
    assert_eq!(hot.len(), 205);
    assert!((f64::from(hot.iter().sum::<u32>()) / 1e5 - 0.8).abs() < 0.01);
    // One flush after every tenth write, and the mean rate.
    let s = scan("gen:uniform,count=20k,flush=10,rate=500,meta=0.25");
    assert_eq!(s.flushes, 2000);
    assert!((s.metadata as f64 / 2e4 - 0.25).abs() < 0.02);
    assert!((s.duration.as_secs() - 40.0).abs() < 1.5, "{}", s.duration);
}

#[test]
fn writers_of_zones_fill_them_in_turn() {
    let writes = all("zones,zone=12K,writers=2,span=60K,count=14");
    let at: Vec<u64> = writes.iter().map(|r| r.offset() / 4096).collect();
    assert_eq!(at, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, 0, 3], "four of five zones");
}
