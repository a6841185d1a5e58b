//! Draws lines at random without a scan of the file: reads at random offsets.
//!
//! The argument is the number of lines and the seed of the draw, such as `100 7`. A draw is the line
//! that contains a random byte, so a long line is drawn more often than a short one. Lines have at
//! most 64 KiB.

mod frit;

use frit::{DONE, State, bytes, emit, fail, range, read_at};

const LINE_BYTES_MAX: u64 = 64 << 10;
const STEP_BYTES: u64 = 512;

/// Number of lines, and state of the generator.
static DRAW: State<(u64, u64)> = State::new((10, 0));

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[unsafe(no_mangle)]
extern "C" fn start(address: *const u8, len: usize) {
    let text = std::str::from_utf8(bytes(address, len)).unwrap_or_default();
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(lines)), Some(Ok(seed)), None) => *DRAW.get() = (lines, seed),
        _ => fail("the argument is the number of lines and the seed, such as \"100 7\""),
    }
}

fn byte_range(from: u64, to: u64) -> Vec<u8> {
    let mut data = vec![0; (to - from) as usize];
    read_at(from, &mut data);
    data
}

/// Returns the line that contains a byte, without its line feed.
fn line_at(at: u64) -> Vec<u8> {
    let range = range();
    let mut begin = at;
    let mut line = Vec::new();
    while begin > range.start && at - begin < LINE_BYTES_MAX {
        let from = begin.saturating_sub(STEP_BYTES).max(range.start);
        let data = byte_range(from, begin);
        let line_feed = data.iter().rposition(|byte| *byte == b'\n');
        let after = line_feed.map_or(0, |index| index + 1);
        line.splice(0..0, data[after..].iter().copied());
        begin = from;
        if line_feed.is_some() {
            break;
        }
    }
    let mut end = at;
    while end < range.end && line.len() as u64 <= LINE_BYTES_MAX {
        let to = (end + STEP_BYTES).min(range.end);
        let data = byte_range(end, to);
        let line_feed = data.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&data[..line_feed.unwrap_or(data.len())]);
        end = to;
        if line_feed.is_some() {
            break;
        }
    }
    if line.len() as u64 > LINE_BYTES_MAX {
        fail(&format!("the line at byte {at} has more than {LINE_BYTES_MAX} bytes"));
    }
    line
}

/// Draws all lines at the first call, and ends the scan.
#[unsafe(no_mangle)]
extern "C" fn scan(_address: *const u8, _len: usize, _offset: u64) -> i32 {
    let (lines, state) = DRAW.get();
    let range = range();
    for _ in 0..*lines {
        // The bias of the remainder is below 2^-20 for files below 16 TiB.
        let mut line = line_at(range.start + next(state) % (range.end - range.start));
        line.push(b'\n');
        if !emit(&line) {
            break;
        }
    }
    DONE
}
