//! Types and traits that all crates of frit share.
//!
//! Units ([`Nanos`], [`Sector`], [`Lpn`], [`Ppn`] …), the commands that layers give to media and
//! the cause of each ([`Cmd`], [`Op`], [`Cause`]), the receiver of commands ([`Sink`]), payloads
//! that may be absent ([`WriteData`], [`ReadTarget`]), the block interface between layers
//! ([`BlockLayer`]), errors, and the [`StackView`] view, which reports, report pages and policies
//! read.
//!
//! It is not: a place for behavior. Nothing in this crate depends on the properties of a NAND page
//! or of a cache.

pub mod block;
pub mod bounds;
pub mod cache_access;
pub mod cache_device;
pub mod cmd;
pub mod convert;
pub mod counts;
pub mod deferred;
pub mod device;
pub mod durable;
pub mod error;
pub mod extents;
pub mod files;
pub mod hints;
pub mod nameless_access;
pub mod nameless_device;
pub mod objects;
pub mod params;
pub mod paths;
pub mod payload;
pub mod planted;
pub mod raw;
pub mod sink;
pub mod size;
pub mod split_mix;
pub mod synced_file;
pub mod text;
pub mod transfer;
pub mod units;
pub mod visible;
pub mod zone_access;

pub use block::{
    BlockLayer, Info, PREFETCH_REQUESTS, Precondition, Preconditioning, Progress, Quiesce, StackDevice,
};
pub use cache_access::{CacheAccess, CacheCommand, CacheInfo, CacheReply};
pub use cache_device::{BlockState, CacheDevice, CacheRead, CacheRecovery};
pub use cmd::{Cause, Cmd, MediumKind, Op, UnitId};
pub use counts::{Count, Counts};
pub use deferred::{BlockingAccess, BlockingMedium, Buffer, Deferred, DeferredPart, RequestIntent};
pub use device::{BlockDevice, Traffic, TrafficKind};
pub use durable::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Extent, Finding, LayerRecovery, LostPage,
    Recovery, Severity, WriteGuarantee,
};
pub use error::{Error, Result};
pub use hints::{HintKind, HintMap, HintRange, HintSpan, Hints};
pub use nameless_access::{NamelessCommand, NamelessInfo};
pub use nameless_device::{
    Claimed, ContentsSpace, Migration, NamelessDevice, OWNERS, OwnedBlock, PhysicalAddress,
};
pub use objects::{ObjectDevice, ObjectId, ObjectReader};
pub use params::{ParamDef, ParamInfo, ParamTable, Params};
pub use payload::{ReadTarget, WriteData};
pub use raw::{ByteAccess, RawAccess};
pub use sink::{
    CommandObserver, Completion, Engine, LinkRequest, RequestScope, Sink, Tag, Tok, TokTable, UnitState,
    UnitTimes,
};
pub use synced_file::{SyncGate, SyncedFile};
pub use units::{BlockId, Lpn, Nanos, PAGE_NONE, Ppn, SECTOR_BYTES, Sector};
pub use visible::StackView;
pub use zone_access::{ZoneAccess, ZoneAction, ZoneCommand, ZoneFault, ZoneInfo, ZoneState, ZonedInfo};
