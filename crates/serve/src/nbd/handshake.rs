//! The fixed newstyle handshake, and the options before an export is selected.

use super::output::Output;
use super::wire::{
    MAGIC, OPTION_BYTES, OPTION_MAGIC, OPTION_REPLY_MAGIC, STRING_MAX, WireReader, export, handshake, info,
    option, reply,
};
use super::{Export, Exports};
use crate::device::REQUEST_BYTES_MAX;
use std::sync::Arc;

/// Maximum length of option data that is parsed. Longer data is discarded, and the option is
/// refused.
const OPTION_DATA_MAX: usize = 64 << 10;
/// Maximum length of option data that is discarded. The session of a client that sends more is
/// closed.
const OPTION_SKIPPED_MAX: usize = 16 << 20;
/// Maximum number of options of a client. More are treated as an attack.
const OPTIONS_MAX: u32 = 1024;

/// A metadata context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// `base:allocation`: holes and zeros.
    Allocation = 1,
    /// `frit:medium`: the medium that stores an extent.
    Medium = 2,
}

impl Context {
    const ALL: [Context; 2] = [Context::Allocation, Context::Medium];

    /// Returns the name of the context.
    pub fn name(self) -> &'static str {
        match self {
            Context::Allocation => "base:allocation",
            Context::Medium => "frit:medium",
        }
    }

    fn namespace(self) -> &'static [u8] {
        match self {
            Context::Allocation => b"base:",
            Context::Medium => b"frit:",
        }
    }
}

/// Settings negotiated by client and server.
#[derive(Clone, Default, Debug)]
pub struct Negotiated {
    /// Replies may be structured.
    pub structured: bool,
    /// Metadata contexts selected for BLOCK_STATUS.
    pub contexts: Vec<Context>,
    /// Address of the first byte of the export in its device.
    pub start: u64,
}

/// State of the handshake.
#[derive(Clone, Debug)]
pub(super) enum HandshakeState {
    /// The handshake continues.
    Negotiating,
    /// This export was selected; requests follow.
    ExportSelected(Arc<Export>),
    /// The session ends.
    Closed,
}

/// The server's side of the handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    greeted: bool,
    no_zeroes: bool,
    options: u32,
    /// Number of bytes of option data still to be discarded, and the option, which is then refused.
    skip: Option<(usize, u32)>,
    negotiated: Negotiated,
    /// Name of the export for which the contexts were selected.
    contexts_of: String,
}

impl Handshake {
    /// Starts the handshake and writes the server's greeting.
    pub(super) fn new(out: &mut Output) -> Handshake {
        out.u64(MAGIC);
        out.u64(OPTION_MAGIC);
        out.u16(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        Handshake {
            greeted: false,
            no_zeroes: false,
            options: 0,
            skip: None,
            negotiated: Negotiated::default(),
            contexts_of: String::new(),
        }
    }

    /// Returns the negotiated settings.
    pub(super) fn negotiated(&mut self) -> Negotiated {
        std::mem::take(&mut self.negotiated)
    }

    /// Processes one message of the input. Returns the number of bytes consumed, the minimum number
    /// of bytes needed if none were consumed, and the state of the handshake.
    pub(super) fn process(
        &mut self,
        on: &Exports,
        input: &[u8],
        out: &mut Output,
    ) -> (usize, usize, HandshakeState) {
        if !self.greeted {
            let mut r = WireReader(input);
            let Some(flags) = r.u32() else { return (0, 4, HandshakeState::Negotiating) };
            return (4, 0, self.client_flags(flags));
        }
        if let Some((left, option)) = self.skip {
            let n = left.min(input.len());
            self.skip = (n < left).then_some((left - n, option));
            if n == left {
                error(out, option, reply::ERR_TOO_BIG, "the option's data is longer than 64 KiB");
            }
            return (n, usize::from(n == 0 && left > 0), HandshakeState::Negotiating);
        }
        let mut r = WireReader(input);
        let (Some(magic), Some(option), Some(len)) = (r.u64(), r.u32(), r.u32()) else {
            return (0, OPTION_BYTES, HandshakeState::Negotiating);
        };
        let len = len as usize;
        self.options += 1;
        if magic != OPTION_MAGIC || len > OPTION_SKIPPED_MAX || self.options > OPTIONS_MAX {
            return (OPTION_BYTES, 0, HandshakeState::Closed);
        }
        if len > OPTION_DATA_MAX {
            // EXPORT_NAME has no error reply, so the session ends.
            let over = option == option::EXPORT_NAME;
            self.skip = Some((len, option));
            return (
                OPTION_BYTES,
                0,
                if over { HandshakeState::Closed } else { HandshakeState::Negotiating },
            );
        }
        let Some(data) = r.bytes(len) else {
            // The option is counted when it is complete.
            self.options -= 1;
            return (0, OPTION_BYTES + len, HandshakeState::Negotiating);
        };
        (OPTION_BYTES + len, 0, self.option(on, option, data, out))
    }

    fn client_flags(&mut self, flags: u32) -> HandshakeState {
        let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        self.greeted = true;
        self.no_zeroes = flags & u32::from(handshake::NO_ZEROES) != 0;
        if flags & !known == 0 { HandshakeState::Negotiating } else { HandshakeState::Closed }
    }

    fn option(&mut self, on: &Exports, option: u32, data: &[u8], out: &mut Output) -> HandshakeState {
        if on.device().is_stopping() && option != option::ABORT {
            error(out, option, reply::ERR_SHUTDOWN, "the server is stopping");
            return if option == option::EXPORT_NAME {
                HandshakeState::Closed
            } else {
                HandshakeState::Negotiating
            };
        }
        match option {
            option::EXPORT_NAME => return self.export_name(on, data, out),
            option::ABORT => {
                option_reply(out, option, reply::ACK, &[]);
                return HandshakeState::Closed;
            }
            option::LIST if data.is_empty() => {
                for export in on.all() {
                    let name = export.name().as_bytes();
                    let len = (name.len() as u32).to_be_bytes();
                    option_reply(out, option, reply::SERVER, &[&len, name]);
                }
                option_reply(out, option, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.negotiated.structured = true;
                option_reply(out, option, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => {
                error(out, option, reply::ERR_INVALID, "this option has no data");
            }
            option::STARTTLS => error(out, option, reply::ERR_UNSUP, "TLS is not offered"),
            option::INFO | option::GO => return self.info(on, option, data, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(on, option, data, out),
            _ => error(out, option, reply::ERR_UNSUP, "this option is not known"),
        }
        HandshakeState::Negotiating
    }

    fn export_name(&mut self, on: &Exports, name: &[u8], out: &mut Output) -> HandshakeState {
        let Some(on) = on.find(name) else { return HandshakeState::Closed };
        out.u64(on.bytes());
        out.u16(flags(on, self.negotiated.structured));
        if !self.no_zeroes {
            out.space(124).fill(0);
        }
        self.select(on)
    }

    /// Ends the handshake. Contexts that were selected for another export do not apply.
    fn select(&mut self, on: &Arc<Export>) -> HandshakeState {
        if self.contexts_of != on.name() {
            self.negotiated.contexts.clear();
        }
        self.negotiated.start = on.start();
        HandshakeState::ExportSelected(Arc::clone(on))
    }

    fn info(&mut self, on: &Exports, option: u32, data: &[u8], out: &mut Output) -> HandshakeState {
        let Some((name, wanted)) = parse_info(data) else {
            error(out, option, reply::ERR_INVALID, "the lengths inside the option do not fit its data");
            return HandshakeState::Negotiating;
        };
        let Some(on) = on.find(name) else {
            error(out, option, reply::ERR_UNKNOWN, "there is no such export");
            return HandshakeState::Negotiating;
        };
        let info_reply = |out: &mut Output, what: u16, parts: &[&[u8]]| {
            let what = what.to_be_bytes();
            let all: Vec<&[u8]> = std::iter::once(&what[..]).chain(parts.iter().copied()).collect();
            option_reply(out, option, reply::INFO, &all);
        };
        let size = on.bytes().to_be_bytes();
        let flags = flags(on, self.negotiated.structured).to_be_bytes();
        info_reply(out, info::EXPORT, &[&size, &flags]);
        for what in wanted {
            match what {
                info::NAME => info_reply(out, what, &[on.name().as_bytes()]),
                info::DESCRIPTION => info_reply(out, what, &[on.description().as_bytes()]),
                info::BLOCK_SIZE => {
                    let device = on.device();
                    let preferred = device.page_bytes().max(4096);
                    let sizes = [device.write_unit_bytes(), preferred, REQUEST_BYTES_MAX];
                    info_reply(
                        out,
                        what,
                        &sizes.each_ref().map(|s| s.to_be_bytes()).each_ref().map(|s| &s[..]),
                    );
                }
                _ => {}
            }
        }
        option_reply(out, option, reply::ACK, &[]);
        if option == option::GO { self.select(on) } else { HandshakeState::Negotiating }
    }

    fn contexts(&mut self, on: &Exports, option: u32, data: &[u8], out: &mut Output) {
        let sets = option == option::SET_META_CONTEXT;
        if sets {
            // Every SET_META_CONTEXT discards the earlier selection, even if it fails.
            self.negotiated.contexts.clear();
        }
        if !self.negotiated.structured {
            return error(out, option, reply::ERR_INVALID, "contexts need structured replies");
        }
        let Some((name, queries)) = parse_contexts(data) else {
            return error(
                out,
                option,
                reply::ERR_INVALID,
                "the lengths inside the option do not fit its data",
            );
        };
        let Some(on) = on.find(name) else {
            return error(out, option, reply::ERR_UNKNOWN, "there is no such export");
        };
        if sets {
            self.contexts_of = on.name().to_owned();
        }
        let chosen = |c: &Context| {
            // SET requires full names, while LIST also accepts a namespace.
            let meant = |q: &[u8]| q == c.name().as_bytes() || (!sets && q == c.namespace());
            (!sets && queries.is_empty()) || queries.iter().any(|q| meant(q))
        };
        for context in Context::ALL.into_iter().filter(chosen) {
            let id = if sets { context as u32 } else { 0 };
            option_reply(out, option, reply::META_CONTEXT, &[&id.to_be_bytes(), context.name().as_bytes()]);
            if sets {
                self.negotiated.contexts.push(context);
            }
        }
        option_reply(out, option, reply::ACK, &[]);
    }
}

/// Returns the transmission flags of an export.
fn flags(on: &Export, structured: bool) -> u16 {
    let mut flags = export::HAS_FLAGS
        | export::SEND_FLUSH
        | export::SEND_FUA
        | export::SEND_TRIM
        | export::SEND_WRITE_ZEROES
        | export::CAN_MULTI_CONN
        | export::SEND_CACHE
        | export::SEND_FAST_ZERO;
    // DF concerns the chunks of structured replies only.
    if structured {
        flags |= export::SEND_DF;
    }
    if on.device().read_only().is_some() {
        flags |= export::READ_ONLY;
    }
    flags
}

fn parse_info(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut r = WireReader(data);
    let name = r.string()?;
    let n = r.u16()?;
    let wanted = (0..n).map(|_| r.u16()).collect::<Option<Vec<u16>>>()?;
    r.0.is_empty().then_some((name, wanted))
}

fn parse_contexts(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut r = WireReader(data);
    let name = r.string()?;
    let n = r.u32()? as usize;
    // Each query has at least the four bytes of its length. The check prevents large allocations.
    if n > r.0.len() / 4 {
        return None;
    }
    let queries = (0..n).map(|_| r.string()).collect::<Option<Vec<&[u8]>>>()?;
    r.0.is_empty().then_some((name, queries))
}

fn option_reply(out: &mut Output, option: u32, kind: u32, parts: &[&[u8]]) {
    out.u64(OPTION_REPLY_MAGIC);
    out.u32(option);
    out.u32(kind);
    out.u32(parts.iter().map(|p| p.len() as u32).sum());
    for part in parts {
        out.put(part);
    }
}

fn error(out: &mut Output, option: u32, kind: u32, message: &str) {
    debug_assert!(message.len() <= STRING_MAX && kind >= reply::ERR_UNSUP);
    option_reply(out, option, kind, &[message.as_bytes()]);
}
