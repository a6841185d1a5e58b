//! Tests of valid and invalid parameter files.

use super::{load, parse};
use crate::disk::geometry::{Sparing, TrackOrder};
use crate::disk::{Drive, DriveRequest, DriveRequestKind, DriveScheduler, ReadAhead, SeekCurve, WriteBack};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// A small drive whose description is in one file.
const DRIVE: &str = "
# a comment
disksim_disk SMALL {
   Model = dm_disk SMALL_model {
      Number of data surfaces = 2,
      Number of cylinders = 20,
      Block count = 796,
      Layout Model = dm_layout_g1 {
         LBN-to-PBN mapping scheme = 1,
         Sparing scheme used = 9,
         Rangesize for sparing = 1,
         Zones = [
            dm_layout_g1_zone {
               First cylinder number = 0,
               Last cylinder number = 9,
               Blocks per track = 22,
               Offset of first block = 0.0,
               Empty space at zone front = 0,
               Skew for track switch = 3.0,
               Skew for cylinder switch = 5.0,
               Number of spares = 4,
               slips = [ 7, 30 ],
               defects = [ 9, 10 ]
            },
            dm_layout_g1_zone { # the second
               First cylinder number = 10,
               Last cylinder number = 19,
               Blocks per track = 18,
               Offset of first block = 1.0,
               Empty space at zone front = 0,
               Skew for track switch = 0x2,
               Skew for cylinder switch = 4.0,
               Number of spares = 0,
               slips = [],
               defects = []
            }
         ]
      },
      Mechanical Model = dm_mech_g1 {
         Access time type = trackSwitchPlusRotation,
         Seek type = hplplus10,
         HPL seek equation values = [ 15, 3.0, 0.5, 5.0, 0.01, -1.0 ],
         First ten seek times = [ 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9 ],
         Add. write settling delay = 0.5,
         Head switch time = 0.9,
         Rotation speed (in rpms) = 6000,
         Percent error in rpms = 0.0
      }
   },
   Scheduler = disksim_ioqueue { Scheduling policy = 4, Cylinder mapping strategy = 0 },
   Max queue length = 8,
   Bulk sector transfer time = 0.1,
   Number of buffer segments = 3,
   Segment size (in blks) = 64,
   Enable caching in buffer = 1,
   Buffer continuous read = 3,
   Fast write level = 1,
   Read hit over. after read = 0.25,
   Something of a later dialect = 3
} # end of SMALL
";

fn told(text: &str) -> String {
    parse(Path::new("small.diskspecs"), text).unwrap_err().to_string()
}

#[test]
fn a_drive_in_one_file() {
    let l = parse(Path::new("small.diskspecs"), DRIVE).unwrap();
    let s = &l.spec;
    assert_eq!((s.name.as_str(), s.geometry.heads, s.geometry.zones.len()), ("SMALL", 2, 2));
    assert_eq!((s.geometry.mapping, s.geometry.sparing), (TrackOrder::SerpentineZone, Sparing::ZoneEnd));
    assert_eq!(
        (&s.geometry.zones[0].slips[..], &s.geometry.zones[0].defects[..]),
        (&[7, 30][..], &[(9, 10)][..])
    );
    assert_eq!((s.geometry.zones[1].offset, s.geometry.zones[1].track_skew), (1.0, 2.0));
    assert_eq!((s.mechanics.revolution_ps, s.mechanics.write_settle_ns), (10_000_000_000, 500_000));
    assert!(
        matches!(&s.mechanics.seek, SeekCurve::TwoPiece { division: 15, first, .. } if first.len() == 10)
    );
    assert_eq!((s.scheduler, s.queue_depth), (DriveScheduler::CLook, 8));
    assert_eq!((s.bus.read_ps, s.cache.segments, s.cache.segment_sectors), (100_000_000, 3, 64));
    assert_eq!((s.cache.read_ahead, s.cache.write_back), (ReadAhead::Segment, WriteBack::Stream));
    assert_eq!(s.overheads.read_hit.read.0, 250_000);
    assert_eq!(Drive::new(s).unwrap().sectors(), 796);
    assert_eq!(l.notes.len(), 1, "{:?}", l.notes);
    assert!(l.notes[0].contains("small.diskspecs:59: 'Something of a later dialect'"), "{:?}", l.notes);
}

#[test]
fn other_seeks_and_units() {
    let seek = |lines: &str| {
        let (head, rest) = DRIVE.split_once("         Seek type").unwrap();
        let (_, tail) = rest.split_once("         Add. write").unwrap();
        format!("{head}{lines},\n         Add. write{tail}")
    };
    let three = "Single cylinder seek time = 1.0, Average seek time = 5.0, Full strobe seek time = 9.0";
    for kind in ["linear", "curve"] {
        parse(Path::new("x"), &seek(&format!("Seek type = {kind}, {three}"))).unwrap();
    }
    parse(Path::new("x"), &seek("Seek type = constant, Constant seek time = 5.0")).unwrap();
    parse(
        Path::new("x"),
        &seek("Seek type = hpl, HPL seek equation values = [ 15, 3.0, 0.5, 5.0, 0.01, 2.0 ]"),
    )
    .unwrap();
    assert!(
        told(&seek("Seek type = linear, Single cylinder seek time = 1.0"))
            .contains("'Average seek time' is missing")
    );
    assert!(told(&seek("Seek type = magic")).contains("seek type 'magic' is not one of constant, linear"));
    let turns =
        DRIVE.replace("Rangesize for sparing = 1,", "Rangesize for sparing = 1, Skew units = revolutions,");
    let turns = turns.replace("switch = 3.0", "switch = 0.5").replace("switch = 0x2", "switch = 0.25");
    let l = parse(
        Path::new("x"),
        &turns.replace("switch = 5.0", "switch = 0.5").replace("switch = 4.0", "switch = 0.5"),
    );
    assert_eq!(l.unwrap().spec.geometry.zones[1].track_skew, 4.5);
}

#[test]
fn errors_say_file_line_and_remedy() {
    for (from, to, words) in [
        (
            "Number of cylinders = 20,",
            "",
            "small.diskspecs:4: 'Number of cylinders' is missing in this block",
        ),
        (
            "Number of cylinders = 20,",
            "Number of cylinders = many,",
            "small.diskspecs:6: 'Number of cylinders' is 'many'",
        ),
        (
            "Number of cylinders = 20,",
            "Number of cylinders 20,",
            "'=' is missing after 'Number of cylinders 20'",
        ),
        ("Last cylinder number = 9", "Last cylinder number = -9", "should be a whole number from 0"),
        ("First cylinder number = 10", "First cylinder number = 5", "overlaps the zone before it"),
        ("Blocks per track = 22", "Blocks per track = 0", "has to be 1 to 1048576"),
        ("Number of spares = 4", "Number of spares = 40000", "leaves no blocks"),
        ("rpms) = 6000", "rpms) = 0", "there should be 100 to 1000000"),
        ("Layout Model = dm_layout_g1 {", "Layout Model = dm_layout_g4 {", "not a supported layout"),
        (
            "Mechanical Model = dm_mech_g1 {",
            "Mechanical Model = dm_mech_q {",
            "not a supported mechanical model",
        ),
        ("Model = dm_disk SMALL_model {", "Modell = dm_disk SMALL_model {", "'Model' is missing"),
        ("defects = [ 9, 10 ]", "defects = [ 9 ]", "should be pairs"),
        ("slips = [ 7, 30 ]", "slips = [ 7.5 ]", "whole numbers"),
        ("over. after read = 0.25", "over. after read = -1", "should be a time from 0"),
        (
            "Model = dm_disk SMALL_model {",
            "Model = source nowhere.model, X = dm_disk Y {",
            "which does not exist",
        ),
        ("disksim_disk SMALL {", "disksim_ctlr SMALL {", "has no disksim_disk block"),
        ("} # end of SMALL", "", "the file ends here, before the '}'"),
    ] {
        assert!(DRIVE.contains(from), "{from}");
        let told = told(&DRIVE.replacen(from, to, 1));
        assert!(told.contains(words) && told.starts_with("small.diskspecs"), "{to}: {told}");
    }
    let told = load(Path::new("/nonexistent/x.diskspecs")).unwrap_err().to_string();
    assert!(told.starts_with("/nonexistent/x.diskspecs: cannot be read"), "{told}");
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn files_beside_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let (head, rest) = DRIVE.split_once("   Model = ").unwrap();
    let (model, tail) = rest.split_once("   Scheduler").unwrap();
    let model = model
        .trim_end()
        .trim_end_matches(',')
        .replace("= hplplus10,", "= extracted, Full seek curve = s.seek,");
    write(dir.path(), "s.model", &model);
    write(dir.path(), "s.seek", "Seek distances measured: 3\n1,\t1.5\n10, 2.5, 0.1\n2, 1.6\n");
    let tail = tail.replace("transfer time = 0.1", "transfer time = 0.0");
    let file =
        write(dir.path(), "s.diskspecs", &format!("{head}   Model = source s.model,\n   Scheduler{tail}"));
    let l = load(&file).unwrap();
    let SeekCurve::Points(points) = &l.spec.mechanics.seek else { panic!("{:?}", l.spec.mechanics.seek) };
    assert_eq!(points.iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2, 10]);
    assert_eq!(l.spec.bus.read_ps, 0, "open");

    let bus = "disksim_bus BUS1 { type = 1, Read block transfer time = 0.15, Write block transfer time = 0.2 }\n\
               source s.diskspecs\ninstantiate [ bus1 ] as BUS1\n";
    let parv = write(dir.path(), "s.parv", bus);
    for file in [&file, &parv] {
        let bus = load(file).unwrap().spec.bus;
        assert_eq!((bus.read_ps, bus.write_ps), (150_000_000, 200_000_000), "{}", file.display());
    }
    write(dir.path(), "s.seek", "1, fast\n");
    let told = load(&file).unwrap_err().to_string();
    assert!(told.contains("s.seek:1: '1, fast' is not a pair"), "{told}");
    let own = write(dir.path(), "own.diskspecs", "source own.diskspecs\n");
    assert!(load(&own).unwrap_err().to_string().contains("nests more than 16 deep"));
}

/// A case that `garbled_files_are_refused_or_work` found with one changed byte: the parser accepted
/// the file, and building the drive refused it.
#[test]
fn a_curve_that_no_arm_follows_is_refused_when_the_file_is_read() {
    let garbled = DRIVE.replacen("[ 15, 3.0,", "[ 15,-3.0,", 1);
    assert_ne!(garbled, DRIVE);
    let what = told(&garbled);
    assert!(what.starts_with("small.diskspecs: ") && what.contains("seek curve"), "{what}");
    assert!(what.contains("a seek takes 0 to 4000 ms"), "{what}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A file that is truncated, has changed bytes or moved pieces yields an error or a drive that
    /// works, never a panic.
    #[test]
    fn garbled_files_are_refused_or_work(
        cut in 0..DRIVE.len(),
        marks in prop::collection::vec((0..DRIVE.len(), prop::sample::select(b"{}[]=,#-9 .x0e\n".to_vec())), 0..6),
        whole in any::<bool>(),
    ) {
        let mut bytes = DRIVE.as_bytes().to_vec();
        for (at, b) in marks {
            bytes[at] = b;
        }
        if !whole {
            bytes.truncate(cut);
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(l) = parse(Path::new("garbled.diskspecs"), &text) {
            let mut drive = Drive::new(&l.spec).unwrap();
            let last = drive.sectors() - 1;
            let (kind, sector) = (DriveRequestKind::Read, frit_core::Sector(last));
            drive.service(&DriveRequest { kind, sector, sectors: 1 }, frit_core::Nanos::ZERO);
        }
    }

    #[test]
    fn nonsense_is_refused(text in "[a-z{}\\[\\]=,# \n0-9.]{0,200}") {
        prop_assert!(parse(Path::new("nonsense"), &text).is_err());
    }
}
