//! The locks of this crate. In which order they are taken: `node.rs`.

pub(crate) use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
