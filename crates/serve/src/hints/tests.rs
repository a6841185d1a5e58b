use super::*;
use frit_core::Hints;

const PAGE: u64 = 4096;

fn rules(ranges: &[&str]) -> HintRules {
    let mut rules = HintRules::new(1 << 20, 512);
    ranges.iter().for_each(|r| assert_eq!(rules.add(r.parse().unwrap()), Ok(true)));
    rules
}

/// Returns the parts of a write: pages or bytes, and hints.
fn parts(rules: &mut HintRules, at: u64, len: usize, client: ClientHints) -> Vec<(usize, Hints)> {
    let mut parts = Vec::new();
    rules.mark(at, &vec![1; len], client, &mut parts);
    parts.iter().map(|p| (p.len, p.marks.hints())).collect()
}

#[test]
fn ranges_split_a_write_at_pages() {
    let mut rules = rules(&["5000+1=metadata", "8K+4K=hot"]);
    let none = ClientHints::default();
    assert_eq!(
        parts(&mut rules, 0, 5 * PAGE as usize, none),
        [(4096, Hints::NONE), (4096, Hints::METADATA), (4096, Hints::HOT), (8192, Hints::NONE)]
    );
    // Writes that are not aligned to pages: the first and the last part are parts of pages.
    assert_eq!(parts(&mut rules, 3584, 1024, none), [(512, Hints::NONE), (512, Hints::METADATA)]);
    assert_eq!(parts(&mut rules, 1 << 16, 512, none), [(512, Hints::NONE)]);
    // Hints of the protocol and of the process are those of all parts.
    let client = ClientHints { own: Hints::METADATA.with(Hints::FUA), process: Hints::COLD };
    let both = Hints::METADATA.with(Hints::COLD);
    assert_eq!(parts(&mut rules, 4096, 8192, client), [(4096, both), (4096, both.with(Hints::HOT))]);
}

#[test]
fn ranges_are_added_once_and_removed() {
    let mut rules = rules(&["0+4K=hot", "0+4K=cold"]);
    let hot: HintRange = "0+4K=hot".parse().unwrap();
    assert_eq!(rules.add(hot), Ok(false));
    assert!(rules.add("1M+1=hot".parse().unwrap()).unwrap_err().contains("beyond the volume"));
    assert!(rules.remove(hot) && !rules.remove(hot));
    assert_eq!(parts(&mut rules, 0, 512, ClientHints::default()), [(512, Hints::COLD)]);
    assert!(!rules.is_empty() && rules.remove("0+4K=cold".parse().unwrap()) && rules.is_empty());
    assert!(rules.detect(true) && !rules.detect(true) && !rules.is_empty());
    assert!(rules.detect(false) && rules.is_empty());
}

#[test]
fn the_number_of_ranges_is_limited() {
    let mut rules = HintRules::new(1 << 40, 4096);
    for i in 0..RANGES_MAX as u64 {
        rules.ranges.push(HintRange::new(i * PAGE, PAGE, frit_core::HintKind::Hot).unwrap());
    }
    assert!(rules.add("1G+1=hot".parse().unwrap()).unwrap_err().contains("maximum"));
}
