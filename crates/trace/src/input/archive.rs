//! One file out of a tar archive, as a stream. An archive that ends too early is normal: people ship heads of
//! large ones.

use super::peel::{Shared, lock};
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex};
use tar::{EntryType, Header};

/// Bytes of a tar block.
pub(super) const BLOCK: usize = 512;

/// Whether a first block is a tar header: the magic, and a checksum that holds.
pub(super) fn is_tar(first: &[u8]) -> bool {
    first.len() == BLOCK && header(first).is_some()
}

/// A header whose checksum holds.
fn header(block: &[u8]) -> Option<Header> {
    let mut h = Header::new_old();
    h.as_mut_bytes().copy_from_slice(block.get(..BLOCK)?);
    if &block[257..262] != b"ustar" {
        return None;
    }
    let spaced = h
        .as_bytes()
        .iter()
        .enumerate()
        .map(|(i, &b)| if (148..156).contains(&i) { 32 } else { u32::from(b) });
    (h.cksum().ok()? == spaced.sum::<u32>()).then_some(h)
}

/// One file of an archive.
pub(super) struct Member {
    inner: Box<dyn Read + Send>,
    shared: Arc<Mutex<Shared>>,
    name: String,
    left: u64,
    padding: u64,
    over: bool,
}

impl Member {
    /// Finds the first regular file that is not empty and whose name contains `wanted`.
    pub(super) fn open(
        inner: Box<dyn Read + Send>,
        wanted: Option<&str>,
        shared: Arc<Mutex<Shared>>,
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
                format!("no file of the tar archive has '{w}' in its name; it holds {}", names.join(", "))
            }
            None => "the tar archive holds no file with anything in it".into(),
        };
        Err(io::Error::new(ErrorKind::NotFound, why))
    }

    /// Goes to the next regular file and returns its name; `None` at the archive's end.
    fn next(&mut self) -> io::Result<Option<String>> {
        let (mut long_name, mut size) = (None, None);
        loop {
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

    /// The member is through: tells of others, and reads on to the end when the hash wants it.
    fn close(&mut self) -> io::Result<()> {
        self.over = true;
        let next = self.next()?;
        let mut shared = lock(&self.shared);
        if let Some(next) = next {
            let note = format!(
                "only {} was read; the archive goes on with {next} (choose with --member)",
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
            lock(&self.shared).tar_cut = Some(what);
        }
        Ok(n)
    }
}
