//! Creation of volumes.

use crate::access::{foreign_owner, make_private_dir};
use crate::backing::{MediumFile, is_inside, path_of, persistent_media};
use crate::error::{Error, Result, io};
use crate::lock::VolumeLock;
use crate::object_stores::ObjectStores;
use crate::open::bytes_in;
use crate::open_report::OpenReport;
use crate::superblock::{
    FILE_NAME, Features, MediumRecord, Superblock, SuperblockFile, VolumeState, boot_id, sha256, unix_now,
};
use crate::volume::{Volume, VolumeParts};
use frit_core::paths;
use frit_core::{CrashKind, Sink};
use frit_objects::OpenMode;
use frit_stack::layers::RequiredSetting;
use frit_stack::{Layer, Stack};
use std::path::Path;
use std::sync::Arc;

/// Options for creating a volume.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// The stack of the volume.
    pub stack: Stack,
    /// Replaces an existing volume, unless it is dirty or in use, and overwrites the contents of
    /// block devices.
    pub force: bool,
}

/// Returns the stack as a volume runs it, durable after each request, and a description of the
/// settings that were changed for that.
///
/// # Errors
/// The layer has no durable memory for its map.
pub fn durable_stack(stack: &Stack) -> Result<(Stack, Option<String>)> {
    if let Some(requirement) = stack.missing_for_durability() {
        return Err(Error::Unsupported { requirement });
    }
    let durable = Stack::parse(stack.name(), &stack.identity().text, &stack.durable(true))?;
    let changed = durable.identity().sha256 != stack.identity().sha256;
    let note = changed.then(|| {
        let of_layer = |layer: &Layer| {
            let needs = layer.kind.durability();
            let line = |s: &RequiredSetting| format!("{}.{} is {}: {}", layer.name, s.key, s.value, s.why);
            needs.each_request.iter().chain(needs.over_files).map(line).collect::<Vec<_>>()
        };
        stack.layers().iter().flat_map(of_layer).collect::<Vec<_>>().join("; ")
    });
    Ok((durable, note))
}

impl Volume {
    /// Creates a volume in `dir`, which is created if it is missing, and opens it.
    ///
    /// # Errors
    /// The directory is not empty, or holds a volume and `force` is not set; the stack cannot be
    /// durable; the disk is full.
    pub fn create(dir: impl AsRef<Path>, options: &CreateOptions) -> Result<Volume> {
        Volume::create_in_place_of(None, dir.as_ref(), options)
    }

    /// Creates a volume with the UUID and the creation time of the one that it will replace, if there is
    /// one. Directories above it are created for a new volume only: beside a volume, one that is missing was
    /// renamed meanwhile, perhaps by another user who owns the directory above.
    pub(crate) fn create_in_place_of(
        old: Option<&Superblock>,
        dir: &Path,
        options: &CreateOptions,
    ) -> Result<Volume> {
        let (uuid, created_unix) = match old {
            Some(old) => (old.uuid, old.created_unix),
            None => (new_uuid()?, unix_now()),
        };
        let (stack, _) = durable_stack(&options.stack)?;
        let mut media = persistent_media(&stack, &options.stack)?;
        let replaced = prepare_directory(dir, options.force, old.is_none())?;
        if !options.force {
            ObjectStores::new(dir, &media, OpenMode::ReadOnly).check_blank()?;
        }
        let identity = stack.identity();
        let first = Superblock {
            sequence: 1,
            features: Features::of(&stack),
            state: VolumeState::Creating,
            uuid,
            boot_id: boot_id(),
            created_unix,
            created_by: env!("CARGO_PKG_VERSION").into(),
            name: stack.name().into(),
            sha256: sha256(&identity.text),
            stack: identity.text,
            media: media.clone(),
            params: Vec::new(),
            recovery: None,
        };
        let (lock, old) = match replaced {
            Some(old) => {
                let (lock, old) = old.into_lock();
                (lock, Some(old))
            }
            None => (VolumeLock::acquire(dir, false)?, None),
        };
        // The superblock comes first, in the state "creating": an interrupted creation is never
        // taken for a volume. It becomes clean only after the media are formatted and synced.
        let mut superblock = SuperblockFile::create(dir, first, lock)?;
        if let Some(old) = old {
            remove_old_media(dir, &old, &media)?;
        }
        let mode = if options.force { OpenMode::Replace } else { OpenMode::ReadWrite };
        let stores = ObjectStores::new(dir, &media, mode);
        let created_files = make_media(dir, &mut media, options.force).and_then(|files| {
            let mut built = stack.build(&bytes_in(&files, stores, uuid, true))?;
            built.layer.format(&mut Sink::untimed())?;
            built.layer.flush(&mut Sink::untimed())?;
            Ok((files, built))
        });
        // If the disk is full, the allocated space is freed. The superblock stays in the state
        // "creating", so the directory is not taken for a volume.
        let (files, built) = created_files.inspect_err(|_| discard_media(dir, &media))?;
        superblock.update(|s| (s.state, s.media) = (VolumeState::Clean, media))?;
        let boot = boot_id();
        // The layer is formatted and open, as after a recovery without work.
        let recovered = OpenReport::new_volume(CrashKind::Process);
        superblock.set_state(VolumeState::Dirty, boot)?;
        Ok(Volume::from_parts(VolumeParts {
            dir: dir.into(),
            stack,
            layer: built.layer,
            sink: Sink::untimed(),
            superblock,
            files,
            records: built.records,
            read_only: false,
            recovered,
        }))
    }
}

/// Creates the files of the media, and syncs the directories that contain them.
fn make_media(dir: &Path, media: &mut [MediumRecord], force: bool) -> Result<Arc<Vec<MediumFile>>> {
    let files = media.iter_mut().filter(|m| m.is_file());
    let files = files.map(|m| MediumFile::create(dir, m, force)).collect::<Result<Vec<_>>>()?;
    for file in &files {
        crate::superblock::sync_parent(file.path())?;
    }
    Ok(Arc::new(files))
}

/// Removes the media files inside a volume whose creation failed, as far as possible.
fn discard_media(dir: &Path, media: &[MediumRecord]) {
    for m in media.iter().filter(|m| m.path.is_empty()) {
        drop(paths::remove_file(&path_of(dir, m)));
    }
}

/// Removes the files of a replaced volume, except those that the new one overwrites.
fn remove_old_media(dir: &Path, old: &Superblock, media: &[MediumRecord]) -> Result<()> {
    let inside = old.media.iter().filter(|m| is_inside(m));
    for path in inside.map(|m| path_of(dir, m)) {
        if media.iter().all(|m| path_of(dir, m) != path) && path.is_file() {
            paths::remove_file(&path).map_err(io(format!("cannot remove {}", path.display())))?;
        }
    }
    Ok(())
}

/// Returns a random UUID (version 4 of RFC 9562).
fn new_uuid() -> Result<[u8; 16]> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| io("cannot get random bytes for a UUID")(e.into()))?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid().into_bytes())
}

/// Creates the directory, or makes sure that creating a volume in it loses no data. Returns a
/// volume that is to be replaced; it stays locked until the new one is complete.
fn prepare_directory(dir: &Path, force: bool, parents: bool) -> Result<Option<SuperblockFile>> {
    let exists = |why: String| Error::Exists { dir: dir.into(), why };
    if !dir.exists() {
        make_private_dir(dir, parents).map_err(io(format!("cannot make the directory {}", dir.display())))?;
        crate::superblock::sync_parent(dir)?;
        return Ok(None);
    }
    if let Some(user) = foreign_owner(dir).filter(|_| !dir.join(FILE_NAME).exists()) {
        return Err(exists(format!(
            "the directory belongs to user {user}, who could replace the volume's files; name a new directory"
        )));
    }
    let cannot = |e| io(format!("cannot list {}", dir.display()))(e);
    let names = std::fs::read_dir(dir).map_err(cannot)?;
    let names =
        names.map(|e| e.map(|e| e.file_name())).collect::<std::io::Result<Vec<_>>>().map_err(cannot)?;
    if !dir.join(FILE_NAME).exists() {
        // Files of a creation that was interrupted before the superblock was complete.
        let left = |n: &&std::ffi::OsString| {
            [crate::superblock::TEMP_FILE_NAME, crate::lock::FILE_NAME].iter().any(|l| *n == l)
        };
        return match names.iter().find(|n| !left(n)) {
            None => Ok(None),
            Some(n) => Err(exists(format!(
                "the directory is not empty and not a volume (it contains {}); name an empty or a new directory",
                n.display()
            ))),
        };
    }
    let old = SuperblockFile::open(dir, false)?;
    match old.current().state {
        VolumeState::Creating => {}
        VolumeState::Clean if force => {}
        VolumeState::Clean => {
            return Err(exists(
                "there is a volume already; --force replaces it and destroys its contents".into(),
            ));
        }
        VolumeState::Dirty => {
            return Err(exists(
                "there is a volume that was not closed; it is not replaced, even with --force. frit recover \
                 recovers and closes it; if it is not wanted, remove the directory by hand"
                    .into(),
            ));
        }
    }
    Ok(Some(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_beside_a_volume_makes_no_directory_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let options = CreateOptions { stack: Stack::builtin("ntl-small", &[]).unwrap(), force: false };
        let old = Volume::create(dir.path().join("a/vol"), &options).unwrap();
        let away = dir.path().join("b/vol.growing");
        let copied = Volume::create_in_place_of(Some(old.superblock()), &away, &options).map(drop);
        assert!(matches!(&copied, Err(Error::Core(frit_core::Error::Io { .. }))), "{copied:?}");
        assert!(!dir.path().join("b").exists());
    }
}
