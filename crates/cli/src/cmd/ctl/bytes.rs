//! `frit ctl peek` and `frit ctl poke`: bytes of a volume, or of a medium by physical address.

use super::{Args, ask, client, offline, unexpected};
use crate::output::{print, print_bytes};
use frit_core::size;
use frit_serve::ctl::wire::{PEEK_BYTES_MAX, POKE_BYTES_MAX, from_hex, to_hex};
use frit_serve::ctl::{ControlOperation, RawMedium, Success};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;

/// Number of bytes in a line of output.
const LINE_BYTES: usize = 16;

/// Arguments of `peek`.
#[derive(clap::Args, Debug)]
pub(super) struct PeekArgs {
    /// First byte and number of bytes, for example 4096+64 or 1M+4K.
    #[arg(value_name = "OFFSET+LENGTH", value_parser = range)]
    range: (u64, u32),
    /// Write the bytes themselves to standard output.
    #[arg(long)]
    binary: bool,
    /// Medium of which the offset is a physical address. Only for users that raw_access names.
    #[arg(long, value_name = "MEDIUM")]
    raw: Option<Medium>,
}

/// Arguments of `poke`.
#[derive(clap::Args, Debug)]
pub(super) struct PokeArgs {
    /// First byte, for example 4100 or 1M.
    #[arg(value_name = "OFFSET", value_parser = size::parse)]
    at: u64,
    /// The bytes in hexadecimal digits, or @FILE for the contents of a file.
    #[arg(value_name = "HEX|@FILE")]
    data: String,
    /// Medium of which the offset is a physical address: pcm. Only for users that raw_access names.
    #[arg(long, value_name = "MEDIUM")]
    raw: Option<Medium>,
}

/// A medium with physical addresses.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Medium {
    /// NAND: reads within a page.
    Nand,
    /// PCM.
    Pcm,
}

impl From<Medium> for RawMedium {
    fn from(medium: Medium) -> RawMedium {
        match medium {
            Medium::Nand => RawMedium::Nand,
            Medium::Pcm => RawMedium::Pcm,
        }
    }
}

/// Parses `OFFSET+LENGTH`.
fn range(text: &str) -> Result<(u64, u32), String> {
    let (at, len) = text.split_once('+').ok_or("write OFFSET+LENGTH, such as 4096+64")?;
    let len = size::parse(len)?;
    match u32::try_from(len) {
        Ok(n) if n > 0 && n <= PEEK_BYTES_MAX => Ok((size::parse(at)?, n)),
        _ => Err(format!("the length is from 1 to {PEEK_BYTES_MAX} bytes")),
    }
}

/// Shows bytes.
pub(super) fn peek(args: &Args, what: &PeekArgs) -> Result<()> {
    let ((at, len), raw) = (what.range, what.raw.map(RawMedium::from));
    let bytes = match client(args)? {
        Some(mut client) => match ask(&mut client, ControlOperation::Peek { at, len, raw })? {
            Success::Bytes(hex) => from_hex(&hex).map_err(|e| miette!("the server sent no bytes: {e}"))?,
            other => return Err(unexpected(&other)),
        },
        None => offline::peek(&args.volume, at, len, raw)?,
    };
    if what.binary { print_bytes(&bytes) } else { print(&dump(at, &bytes)) }
}

/// Writes bytes.
pub(super) fn poke(args: &Args, what: &PokeArgs) -> Result<()> {
    let (at, raw) = (what.at, what.raw.map(RawMedium::from));
    let data = match what.data.strip_prefix('@') {
        Some(path) => {
            let mut data = Vec::new();
            // One byte more than a request may have, so that a longer file is refused.
            let read =
                File::open(path).and_then(|file| file.take(POKE_BYTES_MAX as u64 + 1).read_to_end(&mut data));
            read.into_diagnostic().wrap_err_with(|| format!("cannot read {path}"))?;
            if data.len() > POKE_BYTES_MAX {
                return Err(miette!("{path} has more than {POKE_BYTES_MAX} bytes, which is the limit"));
            }
            to_hex(&data)
        }
        None => what.data.clone(),
    };
    let written = match client(args)? {
        Some(mut client) => match ask(&mut client, ControlOperation::Poke { at, data, raw })? {
            Success::Written(n) => n,
            other => return Err(unexpected(&other)),
        },
        None => offline::poke(&args.volume, at, &data, raw)?,
    };
    print(&format!("{written} bytes at {at}\n"))
}

/// Formats bytes as lines: address, hexadecimal digits, and the printable characters.
fn dump(at: u64, bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, line) in bytes.chunks(LINE_BYTES).enumerate() {
        let hex: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        let shown: String =
            line.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { b as char } else { '.' }).collect();
        let address = at + (i * LINE_BYTES) as u64;
        let _ = writeln!(text, "{address:>12}  {:<47}  {shown}", hex.join(" "));
    }
    text
}
