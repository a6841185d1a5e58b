//! A stack of several layers, whose parameters have paths.

use frit_core::{
    BlockLayer, BlockingMedium, Buffer, ByteAccess, CheckCounts, CheckScope, CrashKind, Deferred, Durable,
    Extent, Finding, Hints, Info, ParamInfo, Params, Precondition, Preconditioning, Progress, Quiesce,
    RawAccess, ReadTarget, Recovery, RequestIntent, Result, Sector, Sink, StackDevice, StackView, WriteData,
    WriteGuarantee,
};
use std::sync::Arc;

/// The top layer of a stack of several layers.
///
/// The parameters of all layers have paths: the name of the layer, a dot, and the name of the
/// parameter. A name without a dot is a parameter of the top layer. All other calls go to the top
/// layer.
pub struct Tree {
    name: String,
    top: Box<dyn StackDevice>,
    /// The parameters as of the last call of [`BlockLayer::params`] or [`Params::set`].
    listed: Vec<ParamInfo>,
}

impl Tree {
    /// Wraps a top layer. `name` is that of the layer in its stack.
    #[must_use]
    pub fn new(name: &str, top: Box<dyn StackDevice>) -> Tree {
        Tree { name: name.into(), top, listed: Vec::new() }
    }

    fn each_layer(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        let info = self.top.info();
        each(&self.name, &info, self.top.params());
        self.top.each_layer_below(each);
    }

    fn list_again(&mut self) {
        let mut listed = Vec::new();
        self.each_layer(&mut |layer, _, params| {
            let path = |p: ParamInfo| ParamInfo { key: format!("{layer}.{}", p.key).into(), ..p };
            listed.extend(params.list().into_iter().map(path));
        });
        self.listed = listed;
    }
}

impl Params for Tree {
    fn list(&self) -> Vec<ParamInfo> {
        self.listed.clone()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let Some((of, key)) = key.split_once('.') else { return self.top.params().set(key, value) };
        let mut answer = None;
        let mut names = Vec::new();
        self.each_layer(&mut |layer, _, params| {
            names.push(layer.to_owned());
            if layer == of {
                answer = Some(params.set(key, value));
            }
        });
        self.list_again();
        answer.unwrap_or_else(|| {
            let why = format!("the stack has no layer '{of}'; there are {}", names.join(", "));
            Err(frit_core::Error::param(&format!("{of}.{key}"), value, why))
        })
    }
}

impl BlockLayer for Tree {
    fn info(&self) -> Info {
        self.top.info()
    }
    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.top.prefetch(next);
    }
    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        self.top.read(sink, at, into, hints)
    }
    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()> {
        self.top.write(sink, at, data, hints)
    }
    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.top.flush(sink)
    }
    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        self.top.discard(sink, at, sectors)
    }
    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        self.top.step(sink, budget)
    }
    fn defer(&mut self, on: bool) -> bool {
        self.top.defer(on)
    }
    fn would_block(&self, what: RequestIntent, at: Sector, sectors: u64) -> bool {
        self.top.would_block(what, at, sectors)
    }
    fn deferred(&mut self) -> Option<Deferred> {
        self.top.deferred()
    }
    fn job(&mut self, sink: &mut Sink) -> Result<Option<Deferred>> {
        self.top.job(sink)
    }
    fn settle(
        &mut self,
        sink: &mut Sink,
        of: &Deferred,
        outcome: Result<()>,
        buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        self.top.settle(sink, of, outcome, buffer)
    }
    fn waits(&self) -> bool {
        self.top.waits()
    }
    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.top.each_shared(each);
    }
    fn byte_access(&mut self) -> Option<&mut dyn ByteAccess> {
        self.top.byte_access()
    }
    fn raw_access(&mut self) -> Option<&mut dyn RawAccess> {
        self.top.raw_access()
    }
    fn visible(&self, view: &mut StackView) {
        let (media, own) = (view.media.len(), view.layers.len());
        self.top.visible(view);
        view.name_layer(&self.name, media, own);
    }
    fn params(&mut self) -> &mut dyn Params {
        self.list_again();
        self
    }
    fn each_layer_below(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.top.each_layer_below(each);
    }
}

impl Quiesce for Tree {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.top.halt(sink)
    }
    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.top.boot(sink)
    }
}

impl Preconditioning for Tree {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.top.precondition(how)
    }
}

impl Durable for Tree {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.top.format(sink)
    }
    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.top.recover(sink, crash)
    }
    fn write_guarantee(&self) -> WriteGuarantee {
        self.top.write_guarantee()
    }
    fn keeps_discards(&self) -> bool {
        self.top.keeps_discards()
    }
    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.top.check(sink, scope, found)
    }
    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        self.top.extents(at, sectors, each)
    }
    fn refuses(&self) -> Option<String> {
        self.top.refuses()
    }
    fn refuse(&mut self, why: String) {
        self.top.refuse(why);
    }
}
