//! The stores of objects that hold media of a volume.

use crate::access::{foreign_medium, foreign_volume};
use crate::error::{Error, Result};
use crate::superblock::MediumRecord;
use frit_media::ObjectConfig;
use frit_media::object::{ObjectUrl, RemoteObjects, StorePlace};
use frit_objects::OpenMode;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The stores of objects of a volume. They are opened when the stack is built.
#[derive(Clone, Debug)]
pub(crate) struct ObjectStores {
    dir: PathBuf,
    /// Names of the media, and their URLs.
    urls: Vec<(String, String)>,
    mode: OpenMode,
}

fn parse(url: &str) -> frit_core::Result<ObjectUrl> {
    ObjectUrl::parse(url).map_err(|why| frit_core::Error::param("url", url, why))
}

impl ObjectStores {
    /// Returns the stores of the media of a volume in `dir`.
    pub(crate) fn new(dir: &Path, media: &[MediumRecord], mode: OpenMode) -> ObjectStores {
        let stores = media.iter().filter(|m| !m.is_file());
        let urls = stores.map(|m| (m.name.clone(), m.path.clone())).collect();
        ObjectStores { dir: dir.into(), urls, mode }
    }

    /// Opens the store of a medium; `None` if a file holds its objects.
    pub(crate) fn open(&self, config: &ObjectConfig) -> frit_core::Result<Option<Box<dyn RemoteObjects>>> {
        let Some((_, url)) = self.urls.iter().find(|(name, _)| *name == config.name) else {
            return Ok(None);
        };
        let url = parse(url)?;
        self.refuse_foreign(&url)?;
        frit_objects::open(&url, &self.dir, config.connections, config.serial, self.mode).map(Some)
    }

    /// Refuses a directory to which a volume of another user leads, unless it is of that user.
    fn refuse_foreign(&self, url: &ObjectUrl) -> frit_core::Result<()> {
        let StorePlace::Directory(path) = &url.place else { return Ok(()) };
        let Some(user) = foreign_volume(&self.dir) else { return Ok(()) };
        let failed =
            |source| frit_core::Error::Io { what: format!("cannot open {}", path.display()), source };
        let found = frit_core::paths::open_dir(&self.dir.join(path)).and_then(|dir| dir.metadata());
        let owner = found.map_err(failed)?.uid();
        let why = foreign_medium(user, owner);
        if owner == user { Ok(()) } else { Err(frit_core::Error::param("url", &url.name, why)) }
    }

    /// Refuses stores that hold objects already. They may be those of another volume.
    pub(crate) fn check_blank(&self) -> Result<()> {
        for (name, url) in &self.urls {
            let parsed = parse(url)?;
            let objects = frit_objects::count(&parsed, &self.dir)?;
            if objects > 0 {
                let why = format!(
                    "holds {objects} objects, perhaps those of another volume; name another prefix, or --force \
                     deletes them"
                );
                return Err(Error::Medium { name: name.clone(), path: parsed.name.into(), why });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::bytes_in;
    use crate::superblock::Backing;
    use frit_core::{Cause, MediumKind, ObjectId, ReadTarget, Sink, Tok, WriteData};
    use frit_stack::Stack;
    use std::sync::Arc;

    const STACK: &str = r#"
[media.disk]
profile = "st3500320as-2008"
[media.pcm]
profile = "pcm-halo-2012"
chip_bytes = "1M"
[media.remote]
profile = "s3-standard-2019"
object_bytes = "64K"
objects = 10
url = "objects"
[cache]
"#;

    fn record(stack: &Stack) -> MediumRecord {
        let medium = stack.media().iter().find(|m| m.name == "remote").unwrap();
        MediumRecord {
            name: medium.name.clone(),
            kind: MediumKind::Object,
            backing: Backing::ObjectStore,
            bytes: 0,
            path: medium.url.clone().unwrap(),
            access: frit_media::FileAccess::default(),
        }
    }

    fn with_device<T>(
        dir: &Path,
        mode: OpenMode,
        run: impl FnOnce(&mut dyn frit_core::ObjectDevice, &mut Sink) -> T,
    ) -> T {
        let stack = Stack::parse("text", STACK, &[]).unwrap();
        let stores = ObjectStores::new(dir, &[record(&stack)], mode);
        let bytes = bytes_in(&Arc::default(), stores, [3; 16], false);
        let (mut device, _) = stack.open_objects("remote", &bytes).unwrap();
        run(&mut *device, &mut Sink::untimed())
    }

    #[test]
    fn the_objects_of_a_volume_lie_in_the_directory_that_its_url_names() {
        let dir = tempfile::tempdir().unwrap();
        let id = |epoch, number| ObjectId { epoch, number };
        with_device(dir.path(), OpenMode::ReadWrite, |d, sink| {
            assert_eq!(d.claim(sink, 0).unwrap(), 1);
            d.put(sink, id(1, 5), WriteData::Bytes(&[9; 4096]), Cause::Host, Tok::DONE).unwrap();
            d.flush(sink, Cause::Host, Tok::DONE).unwrap();
            d.release(sink).unwrap();
        });
        let mut names: Vec<_> = std::fs::read_dir(dir.path().join("objects")).unwrap().collect();
        names.sort_by_key(|e| e.as_ref().unwrap().file_name());
        let names: Vec<_> = names.into_iter().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["seg-1-5", "writer-1", "writer-1.closed"]);
        with_device(dir.path(), OpenMode::ReadOnly, |d, sink| {
            assert_eq!(d.claim(sink, 0).unwrap(), 2);
            let mut found = [0; 96];
            d.get(sink, id(1, 5), 4000, ReadTarget::Bytes(&mut found), Cause::Host, Tok::DONE).unwrap();
            assert_eq!(found, [9; 96]);
            d.delete(sink, id(1, 5), Cause::Gc, Tok::DONE).unwrap();
            assert_eq!(d.list(sink).unwrap(), []);
        });
        assert!(dir.path().join("objects/seg-1-5").exists(), "a reader changes nothing");
    }

    #[test]
    fn a_store_with_objects_is_refused_for_a_new_volume() {
        let dir = tempfile::tempdir().unwrap();
        let record = record(&Stack::parse("text", STACK, &[]).unwrap());
        let stores = ObjectStores::new(dir.path(), &[record], OpenMode::ReadOnly);
        stores.check_blank().unwrap();
        assert!(!dir.path().join("objects").exists(), "a check creates nothing");
        with_device(dir.path(), OpenMode::ReadWrite, |d, sink| d.claim(sink, 0).map(drop)).unwrap();
        let e = stores.check_blank().unwrap_err().to_string();
        assert!(e.contains("remote") && e.contains("holds 1 objects") && e.contains("--force"), "{e}");
    }

    #[cfg(not(feature = "s3"))]
    #[test]
    fn a_service_that_is_not_built_in_is_named() {
        let url = parse("s3://bucket/prefix").unwrap();
        let e = frit_objects::count(&url, Path::new(".")).unwrap_err().to_string();
        assert!(e.contains("built without the service of s3://bucket/prefix"), "{e}");
    }
}
