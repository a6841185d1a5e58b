//! The sink of a recorded run: a recorder that can omit edges, fences or acknowledgements on
//! purpose.

use crate::block::access_log::AccessLog;
use frit_core::{Cause, Cmd, Engine, Nanos, Op, Sink, Tok};
use frit_engine::record::{Recorder, Recording};
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
struct MutatedRecorder {
    record: Recorder,
    access_log: Arc<AccessLog>,
    on: bool,
    mutation: Option<Mutation>,
    /// Range of the map in PCM. The header lies before it.
    map: Range<u64>,
    /// The class of the last write, which decides about fences.
    last: Option<CommandClass>,
    fences: u32,
    /// What the acknowledgement waits for under [`Mutation::AckBeforeMeta`].
    data: Tok,
}

/// Returns a sink whose recorder is off: commands before [`start_recording`] count as complete. `map` is the
/// range of the map in PCM; the header lies before it.
#[must_use]
pub fn recording_sink(access_log: Arc<AccessLog>, mutation: Option<Mutation>, map: Range<u64>) -> Sink {
    let record = Recorder::default();
    Sink::new(MutatedRecorder {
        record,
        access_log,
        on: false,
        mutation,
        map,
        last: None,
        fences: 0,
        data: Tok::DONE,
    })
}

/// Starts the recording of a [`recording_sink`].
pub fn start_recording(sink: &mut Sink) {
    if let Some(recorder) = sink.engine_mut::<MutatedRecorder>() {
        recorder.on = true;
    }
}

/// Ends the open request, and returns what a [`recording_sink`] has recorded: nothing for another sink.
#[must_use]
pub fn recorded(mut sink: Sink) -> Recording {
    sink.end();
    let recorder: Option<MutatedRecorder> = sink.into_engine();
    recorder.map(|recorder| recorder.record.into_parts().0).unwrap_or_default()
}

impl MutatedRecorder {
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

impl Engine for MutatedRecorder {
    fn now(&self) -> Nanos {
        self.record.now()
    }

    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        if !self.on {
            return Tok::DONE;
        }
        if cmd.op == Op::PcmFence && self.drops_fence() {
            // A dropped fence passes on its dependencies.
            return after;
        }
        let class = self.class(&cmd);
        let after = match self.mutation {
            Some(Mutation::DropAfter(c)) if class == Some(c) => Tok::DONE,
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

    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        self.record.join(a, b)
    }

    fn decides_acks(&self) -> bool {
        self.mutation.is_some()
    }

    fn ack(&mut self, ack: Tok, tok: Tok) -> Tok {
        match self.mutation {
            Some(Mutation::AckAtOnce) => ack,
            Some(Mutation::AckBeforeMeta) => self.record.join(ack, self.data),
            _ => self.record.join(ack, tok),
        }
    }

    fn begin(&mut self) {
        self.data = Tok::DONE;
        if self.on {
            self.record.begin();
        }
    }

    fn end(&mut self, ack: Tok) -> Tok {
        self.record.end(ack)
    }
}
