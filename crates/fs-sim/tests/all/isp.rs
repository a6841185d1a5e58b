//! In-storage processing: times by hand, what crosses the link, what the engine reads, and the rank of
//! the host.
//!
//! The board: rows of 64 B on two controllers in turn. A row is read in 181 ns, and 32 ns on the bus. A
//! unit of the engine takes 10 ns a byte: 640 ns a row. A transfer over the link takes 40 ns and 2.5 ns a
//! byte.

use frit_fs_sim::isp::{ForegroundLoad, IspMachine, IspOptions, IspReport, QueryRow, run};

const PAPER: &str = "lpddr2-nvm-ispfs-2018";
const BOARD: &str = "zedboard-2018";
const READ: u64 = 181 + 32;
const LINK_ROW: u64 = 40 + 160;
/// From the start register to the first read of contents: the decoder, and an inode, of which each
/// controller has two rows.
const BEFORE_CONTENTS: u64 = 1000 + 2 * READ;
/// Lookup of a name: 32 bytes of a directory, which are a burst over the link.
const LOOKUP: u64 = 181 + 16 + LINK_ROW;
const BURST: u64 = 64;
/// Bytes of an inode.
const INODE: u64 = 256;

fn options(host: &str, files: &[u64]) -> IspOptions {
    let machine = IspMachine { profile: PAPER.into(), host: host.into(), files: files.to_vec() };
    IspOptions { machines: vec![machine], size: Some(128 << 20), ..IspOptions::default() }
}

fn report(host: &str, files: &[u64]) -> IspReport {
    run(&options(host, files)).unwrap()
}

fn row(host: &str, file: u64) -> QueryRow {
    report(host, &[file]).rows.remove(0)
}

#[test]
fn the_engine_is_as_fast_as_the_slower_of_memory_and_comparison() {
    let file = 1 << 20;
    let rows_of_a_unit = file / 64 / 2;
    // Comparison is slower: reads hide behind it.
    let slow = row(BOARD, file);
    assert_eq!(slow.isp.engine_ns.0, BEFORE_CONTENTS + READ + rows_of_a_unit * 640);
    // 20 ns a byte: half the speed.
    let half = row(&format!("{BOARD},engine_cycle=20 ns"), file);
    assert_eq!(half.isp.engine_ns.0, BEFORE_CONTENTS + READ + rows_of_a_unit * 1280);
    // The memory is slower: one comparison of 64 ns is left after the last row.
    let fast = row(&format!("{BOARD},engine_bytes_per_cycle=10"), file);
    assert_eq!(fast.isp.engine_ns.0, BEFORE_CONTENTS + rows_of_a_unit * READ + 64);
    // With one buffer a row is read after the comparison of the one before.
    let single = row(&format!("{BOARD},engine_buffers=1"), file);
    assert_eq!(single.isp.engine_ns.0, BEFORE_CONTENTS + rows_of_a_unit * (READ + 640));
    assert!(slow.isp.engine_busy > 0.99 && fast.isp.memory_busy > 0.99);
}

#[test]
fn only_instruction_status_and_results_cross_the_link() {
    for file in [100 << 10, 10 << 20] {
        let r = row(BOARD, file);
        let (isp, polls) = (&r.isp, r.isp.polls);
        assert_eq!(isp.link_bytes, Some(BURST + 128 + 4 * polls + 64));
        let busy = LINK_ROW + 2 * LINK_ROW + polls * (40 + 10) + LINK_ROW;
        assert_eq!(isp.link_busy_ns.unwrap().0, busy, "{file} bytes");
        // The instruction takes 2 ms; the program polls every 100 ms, first at once.
        let calls = LOOKUP + 2_000_000 + busy - LINK_ROW;
        assert_eq!(isp.cpu_ns.0, calls);
        assert_eq!(isp.total_ns.0, calls + (polls - 1) * 100_000_000);
        assert!(isp.total_ns > isp.engine_ns);
        assert_eq!(isp.requests, 4 + polls);
        // Software reads all contents over the link, and waits for each block.
        assert_eq!(r.software.link_bytes, Some(BURST + file));
        let blocks = file.div_ceil(128 << 10);
        assert_eq!(r.software.requests, 2 + blocks + 1);
        assert_eq!(r.software.compare_ns.0, file * 61);
        let loads = blocks * READ + file / 64 * LINK_ROW;
        assert_eq!(r.software.total_ns.0, LOOKUP + loads + file * 61);
    }
}

#[test]
fn the_engine_reads_the_file_once_and_counts_as_software_does() {
    for file in [0, 1, 63, 64, 65, 4096, 100_001, 3 << 20] {
        let r = row(BOARD, file);
        assert_eq!((r.isp.contents_bytes, r.isp.metadata_bytes), (file, INODE), "{file}");
        assert_eq!(r.isp.command_bytes, file + INODE, "{file}");
        assert_eq!(r.isp.commands, file.div_ceil(64) + INODE / 64, "{file}");
        assert_eq!(r.isp.counts, r.software.counts, "{file}");
    }
    let r = row(BOARD, 3 << 20);
    assert!(r.isp.counts.iter().all(|n| *n > 100), "{:?}", r.isp.counts);
    // The words of the text are those of the query, so other words are not found.
    let mut other = options(BOARD, &[1 << 20]);
    other.words[0] = "tor".into();
    other.words[1] = "the system".into();
    let counts = run(&other).unwrap().rows[0].isp.counts;
    assert!(counts[0] > 100 && counts[1] > 100, "{counts:?}");
}

#[test]
fn a_read_of_the_host_waits_for_one_row_of_the_engine_at_most() {
    let mut options = options(BOARD, &[2 << 20]);
    // So few that they do not wait for each other: a read takes at most 0.5 us.
    options.foreground = Some(ForegroundLoad { read_bytes: 64, reads_per_second: 50_000 });
    let f = run(&options).unwrap().rows.remove(0).foreground.unwrap();
    let (idle, running) = (f.idle.unwrap(), f.running.unwrap());
    assert_eq!(idle.reads, running.reads);
    assert!(running.reads > 300, "{}", running.reads);
    assert_eq!(idle.p50_ns, READ + LINK_ROW);
    // The row in service, and no other: its cells and its transfer.
    let waited = running.p99_ns - idle.p50_ns;
    assert!(waited > 0 && waited <= READ, "p99 waits for {waited} ns");
    assert!(
        running.p50_ns >= idle.p50_ns && running.max_ns <= idle.max_ns + 2 * READ,
        "{running:?} {idle:?}"
    );
}

#[test]
fn the_engine_delays_pages_of_the_host_by_less_than_a_fifth() {
    let mut options = options(BOARD, &[4 << 20]);
    options.foreground = Some(ForegroundLoad { read_bytes: 4096, reads_per_second: 10_000 });
    let f = run(&options).unwrap().rows.remove(0).foreground.unwrap();
    let ratio = f.p99_ratio().unwrap();
    assert!(ratio > 1.0 && ratio <= 1.2, "p99 is {ratio} of the idle one: {f:?}");
}

#[test]
fn a_query_that_ends_before_the_first_read_has_no_response_times() {
    let mut options = options(BOARD, &[64]);
    options.foreground = Some(ForegroundLoad { read_bytes: 64, reads_per_second: 1 });
    let f = run(&options).unwrap().rows.remove(0).foreground.unwrap();
    assert_eq!((f.idle, f.running, f.p99_ratio()), (None, None, None));
}

#[test]
fn equal_seeds_give_equal_results() {
    let mut options = options(BOARD, &[1 << 20]);
    options.foreground = Some(ForegroundLoad { read_bytes: 512, reads_per_second: 100_000 });
    let first = run(&options).unwrap();
    assert_eq!(first, run(&options).unwrap());
    options.seed += 1;
    let other = run(&options).unwrap();
    assert_ne!(first.rows[0].isp.counts, other.rows[0].isp.counts);
    assert_ne!(first.rows[0].foreground, other.rows[0].foreground);
    assert_eq!(first.rows[0].isp.engine_ns, other.rows[0].isp.engine_ns);
}

#[test]
fn a_modern_machine_has_an_engine_for_each_module() {
    let mut machine = IspMachine::modern();
    machine.files = vec![1 << 20];
    let options = IspOptions { machines: vec![machine], size: Some(64 << 20), ..IspOptions::default() };
    let r = run(&options).unwrap().rows.remove(0);
    assert_eq!(r.isp.counts, r.software.counts);
    // A module reads 1 KiB in 450 ns: four have 9.1 GB/s, and the engine's units 16 GB/s each.
    assert!(r.isp.mb_s > 8_500.0 && r.isp.mb_s < 9_110.0, "{}", r.isp.mb_s);
}

#[test]
fn wrong_options_are_refused() {
    for (spec, part) in
        [("direct", "no engine"), ("zedboard-2018,engine_request_bytes=128", "at most the 64 B")]
    {
        let e = run(&options(spec, &[4096])).unwrap_err().to_string();
        assert!(e.contains(part), "{spec}: {e}");
    }
    let mut options = options(BOARD, &[4096]);
    options.words[3] = "more than sixteen".into();
    assert!(run(&options).unwrap_err().to_string().contains("16 bytes"));
    options.words[3] = "w".into();
    options.machines[0].profile = format!("{PAPER},chanels=1");
    assert!(run(&options).unwrap_err().to_string().contains("chanels"));
}
