//! Reads one file of a tar archive as a stream. Truncated archives are normal: often only the head
//! of a large archive is distributed.

use super::state::{InputState, lock};
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex};
use tar::{EntryType, Header};

/// Size of a tar block in bytes.
pub(super) const BLOCK: usize = 512;

/// Returns `true` if a first block is a tar header: the magic is there and the checksum matches.
pub(super) fn is_tar(first: &[u8]) -> bool {
    first.len() == BLOCK && header(first).is_some()
}

/// Returns the header if its checksum matches.
fn header(block: &[u8]) -> Option<Header> {
    let mut h = Header::new_old();
    h.as_mut_bytes().copy_from_slice(block.get(..BLOCK)?);
    if &block[257..262] != b"ustar" {
        return None;
    }
    // The checksum is computed with its own field, bytes 148 to 155, filled with spaces.
    let spaced = h
        .as_bytes()
        .iter()
        .enumerate()
        .map(|(i, &b)| if (148..156).contains(&i) { 32 } else { u32::from(b) });
    (h.cksum().ok()? == spaced.sum::<u32>()).then_some(h)
}

/// Reader for one file of an archive.
pub(super) struct Member {
    inner: Box<dyn Read + Send>,
    shared: Arc<Mutex<InputState>>,
    name: String,
    left: u64,
    padding: u64,
    over: bool,
}

impl Member {
    /// Opens the first regular file that is not empty and whose name contains `wanted`.
    pub(super) fn open(
        inner: Box<dyn Read + Send>,
        wanted: Option<&str>,
        shared: Arc<Mutex<InputState>>,
    ) -> io::Result<Member> {
        let mut m = Member { inner, shared, name: String::new(), left: 0, padding: 0, over: false };
        let mut names = Vec::new();
        while let Some(name) = m.next()? {
            if m.left > 0 && wanted.is_none_or(|w| name.contains(w)) {
                lock(&m.shared).layers.push(format!("tar: {name}"));
                m.name = name;
                return Ok(m);
            }
            names.push(name);
        }
        let why = match wanted {
            Some(w) => {
                format!("no file of the tar archive has '{w}' in its name; it contains {}", names.join(", "))
            }
            None => "the tar archive contains no file that is not empty".into(),
        };
        Err(io::Error::new(ErrorKind::NotFound, why))
    }

    /// Advances to the next regular file and returns its name, or `None` at the end of the archive.
    fn next(&mut self) -> io::Result<Option<String>> {
        let (mut long_name, mut size) = (None, None);
        loop {
            // Skips the rest of the current file, and its padding to whole blocks.
            io::copy(&mut (&mut self.inner).take(self.left.saturating_add(self.padding)), &mut io::sink())?;
            (self.left, self.padding) = (0, 0);
            let mut block = Vec::with_capacity(BLOCK);
            (&mut self.inner).take(BLOCK as u64).read_to_end(&mut block)?;
            let Some(h) = header(&block) else { return Ok(None) };
            self.left = h.entry_size()?;
            self.padding = self.left.wrapping_neg() % BLOCK as u64;
            match h.entry_type() {
                EntryType::XHeader | EntryType::GNULongName if self.left <= 1 << 20 => {
                    let mut body = Vec::new();
                    (&mut self.inner).take(self.left).read_to_end(&mut body)?;
                    self.left = 0;
                    if h.entry_type() == EntryType::GNULongName {
                        long_name = Some(
                            String::from_utf8_lossy(body.trim_ascii_end()).trim_end_matches('\0').to_owned(),
                        );
                    }
                    for extension in tar::PaxExtensions::new(&body).flatten() {
                        match extension.key() {
                            Ok("path") => long_name = extension.value().ok().map(str::to_owned),
                            Ok("size") => size = extension.value().ok().and_then(|v| v.parse().ok()),
                            _ => {}
                        }
                    }
                }
                t if t.is_file() => {
                    if let Some(size) = size.take() {
                        self.left = size;
                        self.padding = self.left.wrapping_neg() % BLOCK as u64;
                    }
                    let own = || String::from_utf8_lossy(&h.path_bytes()).into_owned();
                    return Ok(Some(long_name.take().unwrap_or_else(own)));
                }
                _ => {}
            }
        }
    }

    /// Ends the member: adds a note if other files follow, and reads the rest of the archive if it
    /// has to be hashed.
    fn close(&mut self) -> io::Result<()> {
        self.over = true;
        let next = self.next()?;
        let mut shared = lock(&self.shared);
        if let Some(next) = next {
            let note = format!(
                "only {} was read; the next file of the archive is {next} (choose with --member)",
                self.name
            );
            shared.notes.push(note);
        }
        let drain = shared.drain;
        drop(shared);
        if drain {
            io::copy(&mut self.inner, &mut io::sink())?;
        }
        Ok(())
    }
}

impl Read for Member {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.over {
            return Ok(0);
        }
        if self.left == 0 {
            self.close()?;
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let n = self.inner.read(&mut into[..most])?;
        self.left -= n as u64;
        if n == 0 && !into.is_empty() {
            self.over = true;
            let what = format!("the tar archive ends {} bytes before the end of {}", self.left, self.name);
            lock(&self.shared).tar_truncation = Some(what);
        }
        Ok(n)
    }
}
