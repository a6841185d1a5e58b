//! A file system in an image, used by a program without a mount: `cargo run -p frit-fs --example
//! files`.

use frit_fs::{
    Caller, FileSystem, FormatOptions, Fs, FsOptions, Image, NewInode, OpenFile, OverlayOptions, Paths,
    XattrMode,
};
use std::error::Error;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // An image is a file of the size of the file system. `Mapped::anonymous` would use memory
    // instead.
    let directory = tempfile::tempdir()?;
    let image = directory.path().join("notes.img");
    std::fs::File::create(&image)?.set_len(4 << 20)?;
    let fs = Fs::format(
        Image::open(&image, &OverlayOptions::default())?,
        FormatOptions { label: "notes".into(), ..FormatOptions::default() },
    )?;

    // The caller whose permissions are checked. The root directory belongs to the superuser.
    let me = Caller::ROOT;
    fs.make_directories(&me, "notes/2018", 0o755)?;
    fs.store(&me, "notes/todo", b"write\nmeasure\n")?;

    // An open file is `Read`, `Write` and `Seek` of std::io.
    let mut log = fs.open_file(&me, "notes/2018/log", OpenFile { append: true, ..OpenFile::CREATE })?;
    for line in 0..100 {
        writeln!(log, "line {line}")?;
    }
    log.sync(false)?;
    log.seek(SeekFrom::Start(0))?;
    let last = BufReader::new(&mut log).lines().last().ok_or("no lines")??;
    assert_eq!(last, "line 99");
    drop(log);

    // Operations by path, or by inode number as in a kernel.
    fs.move_path(&me, "notes/2018/log", "notes/log")?;
    let notes = fs.resolve(&me, "notes", true)?.ino;
    let link = fs.create(&me, notes, b"latest", NewInode::symlink(b"log"))?;
    fs.set_xattr(&me, link.ino, b"trusted.why", b"an example", XattrMode::Create)?;

    // After a close, the image can be copied, checked, mounted (`frit mount`) or opened again.
    let medium = fs.close()?;
    assert!(frit_fs::check(&medium)?.is_clean());
    let fs = Fs::open(medium, FsOptions { read_only: true, ..FsOptions::default() })?;
    assert_eq!(fs.contents(&me, "notes/latest")?.len(), 790);
    assert_eq!(fs.names_of(&me, "notes")?.len(), 4);
    fs.close()?;
    Ok(())
}
