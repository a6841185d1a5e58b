//! Storage of the bytes of a stack's media.

use frit_core::Error;
use frit_media::object::{ObjectBacking, RemoteObjects};
use frit_media::{AnyStore, FileStore, MemoryStore, NoStore, ObjectConfig};
use std::path::PathBuf;
use std::sync::Arc;

/// Storage of the bytes of a stack's media. It is an option of the run, not a part of the stack.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// No bytes are stored: a simulation at full speed.
    None,
    /// Sparse memory: only what is written takes space.
    Memory,
    /// A function of the caller opens each store; see also [`Bytes::files`].
    StoreOpener(StoreOpener),
}

/// Opens the store of a medium, given its name and its size in bytes.
#[derive(Clone)]
pub struct StoreOpener {
    open: Arc<OpenFn>,
    open_objects: Option<Arc<OpenObjectsFn>>,
    owner: Option<[u8; 16]>,
}

type OpenFn = dyn Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync;
type OpenObjectsFn = dyn Fn(&ObjectConfig) -> frit_core::Result<Option<Box<dyn RemoteObjects>>> + Send + Sync;

impl StoreOpener {
    /// Creates an opener from a function.
    pub fn new(
        open: impl Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync + 'static,
    ) -> StoreOpener {
        StoreOpener { open: Arc::new(open), open_objects: None, owner: None }
    }

    /// Opens object stores with a function. If it returns `None`, the objects lie in a flat store,
    /// which is opened like that of another medium.
    #[must_use]
    pub fn with_objects(
        mut self,
        open: impl Fn(&ObjectConfig) -> frit_core::Result<Option<Box<dyn RemoteObjects>>> + Send + Sync + 'static,
    ) -> StoreOpener {
        self.open_objects = Some(Arc::new(open));
        self
    }

    /// Binds the media to an owner, such as a volume. The serial number of each medium is derived
    /// from the owner and the name of the medium, so that media of different owners are not
    /// confused.
    #[must_use]
    pub fn owned_by(mut self, owner: [u8; 16]) -> StoreOpener {
        self.owner = Some(owner);
        self
    }
}

impl std::fmt::Debug for StoreOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreOpener")
    }
}

impl Bytes {
    /// Stores each medium in a sparse file in a directory. Existing files are used as they are; the
    /// layer then has to [`boot`](frit_core::Quiesce::boot).
    #[must_use]
    pub fn files(dir: impl Into<PathBuf>) -> Bytes {
        let dir = dir.into();
        Bytes::StoreOpener(StoreOpener::new(move |name, len| {
            frit_core::paths::create_dir_all(&dir, 0o700).map_err(|source| Error::Io {
                what: format!("cannot create the directory {}", dir.display()),
                source,
            })?;
            Ok(AnyStore::File(FileStore::open(dir.join(format!("{name}.medium")), len)?))
        }))
    }
}

/// The stores of a stack's media.
impl Bytes {
    /// Returns `true` if media keep the bytes that are written.
    pub(crate) fn are_stored(&self) -> bool {
        !matches!(self, Bytes::None)
    }

    /// Returns the serial number of a medium, or 0 if the media have no owner.
    pub(crate) fn serial(&self, name: &str) -> u64 {
        match self {
            Bytes::StoreOpener(StoreOpener { owner: Some(owner), .. }) => {
                // Zero stands for "no serial number", so a digest of 0 becomes 1.
                frit_media::checksum::digest(&[owner, name.as_bytes()].concat()).max(1)
            }
            _ => 0,
        }
    }

    /// Opens the store of a medium, given its name and its size in bytes.
    pub(crate) fn open(&self, name: &str, len: u64) -> frit_core::Result<AnyStore> {
        match self {
            Bytes::None | Bytes::Memory => Ok(self.open_volatile(len)),
            Bytes::StoreOpener(opener) => (opener.open)(name, len),
        }
    }

    /// Opens a store whose contents do not outlive the process.
    pub(crate) fn open_volatile(&self, len: u64) -> AnyStore {
        if self.are_stored() { MemoryStore::new(len).into() } else { NoStore.into() }
    }

    /// Opens the place of the objects of an object store.
    pub(crate) fn open_objects(&self, config: &ObjectConfig) -> frit_core::Result<ObjectBacking> {
        if let Bytes::StoreOpener(StoreOpener { open_objects: Some(open), .. }) = self
            && let Some(remote) = open(config)?
        {
            return Ok(ObjectBacking::Remote(remote));
        }
        self.open(&config.name, config.store_bytes()).map(ObjectBacking::Flat)
    }
}
