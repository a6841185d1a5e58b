//! Extended attributes.

use super::*;
use frit_fs::XattrMode::{Any, Create, Replace};

#[test]
fn s36_extended_attributes_are_made_replaced_and_removed() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    refused!(fs.set_xattr(ROOT, f, b"user.a", b"1", Replace), NoAttribute);
    fs.set_xattr(ROOT, f, b"user.a", b"1", Create).unwrap();
    refused!(fs.set_xattr(ROOT, f, b"user.a", b"2", Create), Exists);
    fs.set_xattr(ROOT, f, b"user.a", b"longer", Replace).unwrap();
    fs.set_xattr(ROOT, f, b"user.b", b"", Any).unwrap();
    assert_eq!(fs.xattr(f, b"user.a").unwrap(), b"longer");
    assert_eq!(fs.xattrs(f).unwrap(), b"user.a\0user.b\0");
    fs.remove_xattr(ROOT, f, b"user.a").unwrap();
    refused!(fs.xattr(f, b"user.a"), NoAttribute);
    refused!(fs.remove_xattr(ROOT, f, b"user.a"), NoAttribute);
    assert_eq!(fs.xattrs(f).unwrap(), b"user.b\0");
}

#[test]
fn s37_there_are_three_namespaces() {
    let fs = fresh(1 << 20);
    let f = fs.create(&alice(), TOP, b"f", NewInode::file(0o644)).unwrap().ino;
    let link = fs.create(ROOT, TOP, b"l", NewInode::symlink(b"f")).unwrap().ino;
    fs.set_xattr(&alice(), f, b"user.a", b"", Any).unwrap();
    for name in [&b"trusted.a"[..], b"security.a"] {
        refused!(fs.set_xattr(&alice(), f, name, b"", Any), NotPermitted);
        fs.set_xattr(ROOT, f, name, b"", Any).unwrap();
        fs.set_xattr(ROOT, link, name, b"", Any).unwrap();
    }
    refused!(fs.set_xattr(ROOT, link, b"user.a", b"", Any), NotPermitted);
    for name in [&b"system.posix_acl_access"[..], b"other", b"user."] {
        refused!(fs.set_xattr(ROOT, f, name, b"", Any), Unsupported);
    }
}

#[test]
fn s38_a_value_that_there_is_no_room_for_leaves_the_old_one() {
    if image_only("a full pool leaves space for extended attributes") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    fs.set_xattr(ROOT, f, b"user.a", b"old", Any).unwrap();
    fill(&fs, "all");
    let before = (fs.usage().unwrap(), fs.attr(f).unwrap());
    refused!(fs.set_xattr(ROOT, f, b"user.a", &[1; 9000], Any), NoSpace);
    refused!(fs.set_xattr(ROOT, f, b"user.b", b"", Any), NoSpace);
    assert_eq!((fs.usage().unwrap(), fs.attr(f).unwrap()), before);
    assert_eq!(fs.xattr(f, b"user.a").unwrap(), b"old");
}

#[test]
fn s39_names_have_255_bytes_values_64_kib_and_a_file_1_mib() {
    let fs = fresh(16 << 20);
    let f = file(&fs, "f");
    let name = |len: usize| format!("user.{}", "n".repeat(len - 5)).into_bytes();
    fs.set_xattr(ROOT, f, &name(255), b"v", Any).unwrap();
    refused!(fs.set_xattr(ROOT, f, &name(256), b"v", Any), AttributeName);
    refused!(fs.set_xattr(ROOT, f, b"user.a\0b", b"v", Any), Invalid);
    refused!(fs.set_xattr(ROOT, f, b"user.v", &[1; 65_537], Any), AttributeTooLarge);
    let mut made = 0;
    while fs.set_xattr(ROOT, f, format!("user.{made}").as_bytes(), &[made as u8; 65_536], Any).is_ok() {
        made += 1;
    }
    assert_eq!(made, 15, "sixteen would take more than 1 MiB with what says where they are");
    refused!(fs.set_xattr(ROOT, f, b"user.x", &[1; 65_536], Any), AttributeTooLarge);
    for i in 0..made {
        assert_eq!(fs.xattr(f, format!("user.{i}").as_bytes()).unwrap(), [i as u8; 65_536]);
    }
    if image_only("no blocks are reserved ahead for files") {
        return;
    }
    // Extended attributes need contiguous blocks. A reservation for a growing file must not prevent
    // that.
    let fs = fresh(1 << 20);
    let (f, g) = (file(&fs, "f"), file(&fs, "g"));
    fs.allocate(g, frit_fs::Allocate::Keep, 0, (free(&fs) - 30) * BLOCK).unwrap();
    write(&fs, f, 0, &[1; 10 * BLOCK as usize]);
    fs.set_xattr(ROOT, g, b"user.a", &[1; 65_536], Any).unwrap();
    assert_clean(fs.medium());
}
