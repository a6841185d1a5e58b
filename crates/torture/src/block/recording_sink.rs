//! The sink of a recorded run: a recorder that can omit edges, fences or acknowledgements on
//! purpose.

use crate::block::access_log::AccessLog;
use frit_core::{Cause, Cmd, Nanos, Op, RequestScope, Sink, UnitId, UnitState, UntimedSink};
use frit_engine::record::{Recorder, RecorderToken, Recording};
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;
use strum::{EnumIter, IntoStaticStr};

/// Command class, as far as a sink can determine it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumIter, IntoStaticStr, Serialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum CommandClass {
    /// A write to the header of PCM: redo record, state.
    Head,
    /// A write to the map in PCM.
    MapEntry,
    /// A write of other metadata in PCM: descriptors.
    PcmMeta,
    /// A write of user data to PCM.
    PcmData,
    /// The erase of a block after garbage collection.
    Erase,
}

/// A planted bug that needs no change in the layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutation {
    /// Commands of the class wait for no other command.
    DropAfter(CommandClass),
    /// Fences directly after a write of the class are omitted.
    DropFence(CommandClass),
    /// All fences are omitted.
    DropFences,
    /// One fence is omitted of each group of this size.
    DropEvery(u32),
    /// Requests are acknowledged immediately.
    AckAtOnce,
    /// FUA writes are not flushed. The flush is made by the clients, as by a volume.
    IgnoreFua,
    /// Requests are acknowledged before their metadata is durable.
    AckBeforeMeta,
}

/// A recorder that also counts commands for its [`AccessLog`].
#[derive(Debug)]
pub struct RecordingSink {
    record: Recorder<UntimedSink>,
    access_log: Arc<AccessLog>,
    on: bool,
    mutation: Option<Mutation>,
    /// Range of the map in PCM. The header lies before it.
    map: Range<u64>,
    /// The class of the last write, which decides about fences.
    last: Option<CommandClass>,
    fences: u32,
    data: RecorderToken<()>,
}

impl RecordingSink {
    /// Creates a recorder that is off: commands before [`RecordingSink::start_recording`] count as complete.
    #[must_use]
    pub fn new(access_log: Arc<AccessLog>, mutation: Option<Mutation>, map: Range<u64>) -> RecordingSink {
        let (record, data) = (Recorder::default(), RecorderToken::default());
        RecordingSink { record, access_log, on: false, mutation, map, last: None, fences: 0, data }
    }

    /// Starts the recording.
    pub fn start_recording(&mut self) {
        self.on = true;
    }

    /// Begins a request.
    pub fn begin(&mut self) {
        self.data = RecorderToken::default();
        if self.on {
            self.record.begin_request();
        }
    }

    /// Ends a request: it has issued all its commands.
    pub fn end(&mut self) {
        self.record.end_request();
    }

    /// Returns the recording.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.record.finish().0
    }

    fn class(&self, cmd: &Cmd) -> Option<CommandClass> {
        match cmd.op {
            Op::NandErase => Some(CommandClass::Erase),
            Op::PcmWrite | Op::PcmWriteClean if cmd.addr < self.map.start => Some(CommandClass::Head),
            Op::PcmWrite | Op::PcmWriteClean if cmd.addr < self.map.end => Some(CommandClass::MapEntry),
            Op::PcmWrite | Op::PcmWriteClean if cmd.cause == Cause::Meta => Some(CommandClass::PcmMeta),
            Op::PcmWrite | Op::PcmWriteClean => Some(CommandClass::PcmData),
            _ => None,
        }
    }

    fn drops_fence(&mut self) -> bool {
        self.fences += 1;
        match self.mutation {
            Some(Mutation::DropFence(class)) => self.last == Some(class),
            Some(Mutation::DropFences) => true,
            Some(Mutation::DropEvery(n)) => self.fences % n == 1,
            _ => false,
        }
    }
}

impl Sink for RecordingSink {
    type Tok = RecorderToken<()>;

    fn now(&self) -> Nanos {
        self.record.now()
    }

    fn start(&self) -> Self::Tok {
        Sink::start(&self.record)
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.record.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Self::Tok) -> Self::Tok {
        if !self.on {
            return Sink::start(&self.record);
        }
        if cmd.op == Op::PcmFence && self.drops_fence() {
            // A dropped fence passes on its dependencies.
            return after;
        }
        let class = self.class(&cmd);
        let after = match self.mutation {
            Some(Mutation::DropAfter(c)) if class == Some(c) => Sink::start(&self.record),
            _ => after,
        };
        // Fences belong to writes of PCM, so an erase does not change the class that decides about
        // them.
        if class.is_some_and(|c| c != CommandClass::Erase) {
            self.last = class;
        }
        match cmd.op {
            Op::NandCopyback => self.access_log.copyback(cmd.len as usize),
            _ => self.access_log.command(),
        }
        let done = self.record.emit(cmd, after);
        let data =
            class == Some(CommandClass::PcmData) || matches!(cmd.op, Op::NandProgram | Op::NandCopyback);
        if data && self.mutation == Some(Mutation::AckBeforeMeta) {
            self.data = self.record.join(self.data, done);
        }
        done
    }

    fn join(&mut self, a: Self::Tok, b: Self::Tok) -> Self::Tok {
        self.record.join(a, b)
    }

    fn ack(&mut self, tok: Self::Tok) {
        match self.mutation {
            Some(Mutation::AckAtOnce) => {}
            Some(Mutation::AckBeforeMeta) => self.record.ack(self.data),
            _ => self.record.ack(tok),
        }
    }

    fn scope(&mut self) -> &mut RequestScope<Self::Tok> {
        self.record.scope()
    }
}
