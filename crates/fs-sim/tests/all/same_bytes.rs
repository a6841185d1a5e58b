//! A `SimMedium` behaves as any other medium: the same operations write the same bytes, with any sink.

use frit_core::Sink;
use frit_engine::sched::Fifo;
use frit_engine::{Event, InOrder, Recorder};
use frit_fs::{
    Allocate, AttrChanges, Caller, Clock, FileSystem, FormatOptions, Fs, FsOptions, Ino, Mapped, Medium,
    NewInode, RenameMode, XattrMode,
};
use frit_fs_sim::{Devices, HostModel, SimMedium};

const BYTES: u64 = 8 << 20;

fn parts(host: &str) -> Devices {
    Devices::new("lpddr2-nvm-ispfs-2018", HostModel::find(host).unwrap(), Some(BYTES)).unwrap()
}

/// Executes operations of every kind, with a close and an open in between.
fn play<M: Medium>(medium: M) -> M {
    let me = Caller::ROOT;
    let format = FormatOptions { uuid: Some(7), clock: Clock::counted(1), ..FormatOptions::default() };
    let fs = Fs::format(medium, format).unwrap();
    let dir = fs.create(&me, Ino::ROOT, b"dir", NewInode::directory(0o755)).unwrap().ino;
    let file = fs.create(&me, dir, b"a", NewInode::file(0o644)).unwrap().ino;
    let data: Vec<u8> = (0..300_000_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    fs.write(file, 0, &data).unwrap();
    fs.write(file, 1_000_001, &data[..777]).unwrap();
    fs.write(file, 4097, &data[..8191]).unwrap();
    fs.append(file, &data[..5]).unwrap();
    fs.allocate(file, Allocate::Punch, 8192, 12_000).unwrap();
    for i in 0..200 {
        fs.create(&me, dir, format!("name {i}").as_bytes(), NewInode::file(0o600)).unwrap();
    }
    for i in 0..100 {
        let (from, to) = (format!("name {i}"), format!("a longer name than that, {i}"));
        fs.rename(&me, (dir, from.as_bytes()), (Ino::ROOT, to.as_bytes()), RenameMode::Replace).unwrap();
        fs.unlink(&me, dir, format!("name {}", i + 100).as_bytes()).unwrap();
    }
    fs.set_xattr(&me, file, b"user.x", &data[..2000], XattrMode::Any).unwrap();
    fs.set_attr(&me, file, &AttrChanges { size: Some(70_001), ..AttrChanges::default() }).unwrap();
    fs.sync_file(file, false).unwrap();
    let medium = fs.close().unwrap();
    let fs = Fs::open(medium, FsOptions { clock: Clock::counted(99), ..FsOptions::default() }).unwrap();
    let mut back = vec![0; 70_001];
    assert_eq!(fs.read(file, 0, &mut back).unwrap(), back.len());
    fs.write(file, 60_000, &data[..20_000]).unwrap();
    fs.close().unwrap()
}

fn image(host: &str, sink: impl FnOnce(&Devices) -> Sink) -> Vec<u8> {
    let parts = parts(host);
    let sink = sink(&parts);
    play(SimMedium::new(parts, sink).unwrap()).image().unwrap()
}

#[test]
fn the_image_is_that_of_mapped_memory_word_for_word() {
    let medium = play(Mapped::anonymous(BYTES).unwrap());
    let mut expected = vec![0; BYTES as usize];
    medium.read(0, &mut expected);
    for host in ["zedboard-2018", "direct"] {
        assert!(image(host, |_| Sink::untimed()) == expected, "{host}, null");
        assert!(image(host, |p| Sink::new(InOrder::new(&p.hardware))) == expected, "{host}, in-order");
        assert!(image(host, |p| Sink::new(Event::new(&p.hardware, Fifo))) == expected, "{host}, event");
    }
    assert!(image("zedboard-2018", |_| Sink::new(Recorder::default())) == expected, "record");
}
