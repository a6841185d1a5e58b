//! Division of written bytes into instructions.

use crate::binary::{self, NAME_OF_FORM, STRUCTURE_BYTES};
use crate::instructions::Instruction;
use crate::outcome::Failure;
use crate::text::{self, LINE_BYTES_MAX};

/// Form of an instruction, and of its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A line of JSON.
    Json,
    /// The structure as it was written.
    Binary(Vec<u8>),
}

/// Result of adding bytes.
pub(super) enum Next {
    /// An instruction is complete, or was found to be wrong.
    Instruction(Form, Result<Instruction, Failure>),
    /// All bytes were used, and an instruction is not complete.
    Incomplete,
}

/// Bytes of an instruction that is not complete.
#[derive(Default)]
pub(super) struct Input(Vec<u8>);

impl Input {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds bytes up to the end of an instruction. Returns their number.
    pub(super) fn add(&mut self, bytes: &[u8]) -> (usize, Next) {
        let mut used = 0;
        if self.0.is_empty() {
            used = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        // The first bytes decide the form. Another version of the binary form is answered as this one.
        while self.0.len() < NAME_OF_FORM.len() && used < bytes.len() && NAME_OF_FORM.starts_with(&self.0) {
            self.0.push(bytes[used]);
            used += 1;
        }
        let rest = &bytes[used..];
        if NAME_OF_FORM.starts_with(&self.0[..self.0.len().min(NAME_OF_FORM.len())]) {
            let taken = rest.len().min(STRUCTURE_BYTES - self.0.len());
            self.0.extend_from_slice(&rest[..taken]);
            if self.0.len() < STRUCTURE_BYTES {
                return (used + taken, Next::Incomplete);
            }
            let structure = std::mem::take(&mut self.0);
            let parsed = binary::parse(&structure);
            return (used + taken, Next::Instruction(Form::Binary(structure), parsed));
        }
        let (taken, next) = self.add_text(rest);
        (used + taken, next)
    }

    /// Adds bytes of a line. It ends with a line feed, or with the bytes of a write if they complete a
    /// value of JSON, so `printf` without a line feed is enough.
    fn add_text(&mut self, bytes: &[u8]) -> (usize, Next) {
        let in_head = memchr::memchr(b'\n', &self.0).is_some();
        let line_feed = if in_head { Some(0) } else { memchr::memchr(b'\n', bytes).map(|at| at + 1) };
        let wanted = line_feed.unwrap_or(bytes.len());
        let taken = wanted.min(LINE_BYTES_MAX + 1 - self.0.len().min(LINE_BYTES_MAX));
        self.0.extend_from_slice(&bytes[..taken]);
        if self.0.len() > LINE_BYTES_MAX && line_feed.is_none_or(|end| end > taken) {
            // The rest of an instruction that is too long is not kept. It is not understood either.
            let line = std::mem::take(&mut self.0);
            return (bytes.len(), Next::Instruction(Form::Json, text::parse(&line)));
        }
        let complete = line_feed.is_some() || self.0.ends_with(b"}") && is_json(&self.0);
        if !complete {
            return (taken, Next::Incomplete);
        }
        let line = std::mem::take(&mut self.0);
        (taken, Next::Instruction(Form::Json, text::parse(line.trim_ascii())))
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends an instruction that is not complete.
    pub(super) fn give_up(&mut self) -> Option<(Form, Failure)> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        if bytes.starts_with(&NAME_OF_FORM) {
            let failure = Failure::invalid(format!(
                "the instruction has {} bytes; write all {STRUCTURE_BYTES} before a read",
                bytes.len()
            ));
            return Some((Form::Binary(bytes), failure));
        }
        let failure = text::parse(&bytes).err();
        Some((Form::Json, failure.unwrap_or_else(|| Failure::invalid("the instruction is not complete"))))
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
