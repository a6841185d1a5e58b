#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use frit_isp::{Kernel, Searcher};
use rand::{Rng, SeedableRng};
use std::time::Instant;
fn text(bytes: usize) -> Vec<u8> {
    let mut rng = rand::rngs::SmallRng::seed_from_u64(1);
    let mut v = Vec::with_capacity(bytes + 64);
    let w = [
        "the",
        "of",
        "and",
        "storage",
        "memory",
        "phase",
        "change",
        "engine",
        "file",
        "system",
        "request",
        "data",
        "error",
        "a",
        "in",
        "to",
        "processing",
        "command",
        "warning",
    ];
    while v.len() < bytes {
        let m = if rng.random_bool(0.001) { w.len() } else { w.len() - 1 };
        let x = w[rng.random_range(0..m)];
        v.extend_from_slice(x.as_bytes());
        v.push(if rng.random_bool(0.1) { b'\n' } else { b' ' });
    }
    v.truncate(bytes);
    v
}
fn best(bytes: usize, mut f: impl FnMut() -> u64) -> f64 {
    let mut b = f64::MAX;
    for _ in 0..5 {
        let t = Instant::now();
        std::hint::black_box(f());
        b = b.min(t.elapsed().as_secs_f64());
    }
    bytes as f64 / b / 1e6
}
fn sum(b: &[u8]) -> u64 {
    b.chunks_exact(8).fold(0u64, |s, c| s.wrapping_add(u64::from_le_bytes(c.try_into().unwrap())))
}
fn main() {
    let n = 512 << 20;
    let t = text(n);
    for words in [
        vec!["error", "warning", "xylophone", "needle"],
        vec!["qux", "zebra", "xylophone", "needle"],
        vec!["error"],
        vec!["qzx"; 32],
    ] {
        println!("{words:?}");
        for k in Kernel::available() {
            let s = Searcher::with_kernel(&words, k);
            #[allow(unused)]
            let candidates = 0;
            let one = |b: &[u8], st: usize| {
                let mut c = 0;
                s.search(b, st, |_, _| c += 1);
                c
            };
            println!("{k:?} 1: {:.0}", best(n, || one(&t, n)));
            println!(
                "{k:?} 2: {:.0}",
                best(n, || std::thread::scope(|sc| {
                    let h = sc.spawn(|| one(&t[..n / 2 + 20], n / 2));
                    let a = one(&t[n / 2..], n / 2);
                    a + h.join().unwrap()
                }))
            );
        }
        let teddy = aho_corasick::packed::Searcher::new(&words).unwrap();
        let td = |b: &[u8]| {
            let mut at = 0;
            let mut c = 0;
            while let Some(m) = teddy.find_in(b, aho_corasick::Span { start: at, end: b.len() }) {
                c += 1;
                at = m.start() + 1;
            }
            c
        };
        println!("teddy 1: {:.0}", best(n, || td(&t)));
        println!(
            "teddy 2: {:.0}",
            best(n, || std::thread::scope(|sc| {
                let h = sc.spawn(|| td(&t[..n / 2 + 20]));
                let a = td(&t[n / 2..]);
                a + h.join().unwrap()
            }))
        );
    }
    println!("mem 1: {:.0}", best(n, || sum(&t)));
    println!(
        "mem 2: {:.0}",
        best(n, || std::thread::scope(|sc| {
            let h = sc.spawn(|| sum(&t[..n / 2]));
            let a = sum(&t[n / 2..]);
            a.wrapping_add(h.join().unwrap())
        }))
    );
}
