//! Arrays of devices: their numbering, their errors, and the devices that cannot be joined.

use super::*;
use frit_core::Error;
use proptest::prelude::*;

/// Returns a device with these numbers of channels and planes per die, each of them a unit.
fn device(name: &str, channels: u32, planes: u32) -> NandConfig {
    let one = config();
    NandConfig {
        name: name.into(),
        geometry: NandGeometry {
            channels,
            planes_per_die: planes,
            plane_ops: PlaneOps::Independent,
            program_pages: 1,
            record_copies: 1,
            ..one.geometry
        },
        ..one
    }
}

fn array(configs: Vec<NandConfig>) -> Result<NandArray> {
    let mut hw = Hardware::new();
    let open = |c: NandConfig| {
        let bytes = c.geometry.store_bytes();
        Nand::new(c, MemoryStore::new(bytes), &mut hw).unwrap()
    };
    NandArray::new(configs.into_iter().map(open).collect())
}

fn write(a: &mut NandArray, ppn: u32) -> Result<Tok> {
    let (data, spare) = ([ppn as u8; PAGE], Spare { lpn: ppn, seq: 1 });
    a.program(&mut Sink::untimed(), Ppn(ppn), WriteData::Bytes(&data), spare, Cause::Host, Tok::DONE)
}

proptest! {
    #[test]
    fn the_units_of_the_devices_are_taken_in_turn(
        shapes in prop::collection::vec((1u32..4, 1u32..3), 2..5)
    ) {
        let configs: Vec<_> =
            shapes.iter().enumerate().map(|(i, &(c, p))| device(&format!("d{i}"), c, p)).collect();
        let mut a = array(configs).unwrap();
        let g = *a.geometry();
        prop_assert_eq!(g.units(), shapes.iter().map(|(c, p)| c * p).sum::<u32>());
        for ppn in 0..g.pages() {
            write(&mut a, ppn).unwrap();
        }
        let mut ids = Vec::new();
        let mut unit = 0;
        // Independent of the code: in round `r`, each device that has a unit `r` gives it.
        for round in 0..12 {
            for (d, device) in a.devices().enumerate() {
                let (channels, planes) = shapes[d];
                if round >= channels * planes {
                    continue;
                }
                ids.push(a.unit_id(unit));
                prop_assert_eq!(a.unit_id(unit), device.unit_id(round));
                for page in 0..12 {
                    let found = device.spare(Ppn(round * 12 + page)).unwrap().unwrap();
                    prop_assert_eq!(found.lpn, unit * 12 + page);
                }
                unit += 1;
            }
        }
        prop_assert_eq!(unit, g.units());
        ids.sort();
        prop_assert_eq!(ids, (0..unit as u16).map(UnitId).collect::<Vec<_>>());
        for ppn in (0..g.pages()).step_by(5) {
            let mut page = [0; PAGE];
            a.read(&mut Sink::untimed(), Ppn(ppn), 0, ReadTarget::Bytes(&mut page), Cause::Host, Tok::DONE).unwrap();
            prop_assert_eq!(page, [ppn as u8; PAGE]);
        }
    }
}

fn two() -> NandArray {
    array(vec![device("a", 2, 1), device("b", 2, 1)]).unwrap()
}

#[test]
fn counts_wear_and_bad_blocks_are_those_of_the_device() {
    let mut a = two();
    // Block 4 of the array is block 1 of unit 1, which is unit 0 of the second device.
    write(&mut a, 16).unwrap();
    a.erase(&mut Sink::untimed(), BlockId(4), Cause::Gc, Tok::DONE).unwrap();
    a.retire(BlockId(4));
    assert!(a.is_bad(BlockId(4)) && a.erases(BlockId(4)) == 1 && a.next_page(BlockId(4)) == 0);
    let views: Vec<MediumView> = a.views().collect();
    assert_eq!(views.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((views[0].wear.bad, views[1].wear.bad), (0, 1));
    assert_eq!(views[1].wear.cycles, [0, 1, 0, 0, 0, 0]);
    assert!(views[0].wear.cycles.iter().all(|&c| c == 0));
    assert_eq!(a.unit_name(1), "unit 0 of NAND 'b'");
}

#[test]
fn errors_have_the_numbers_of_the_array_and_name_the_device() {
    let mut a = two();
    write(&mut a, 12).unwrap();
    let damaged = a.devices_mut().nth(1).unwrap();
    damaged.store_mut().write(PAGE as u64 - 1, &[0xFF]).unwrap();
    let mut page = [0; PAGE];
    let e = a
        .read(&mut Sink::untimed(), Ppn(12), 0, ReadTarget::Bytes(&mut page), Cause::Host, Tok::DONE)
        .unwrap_err();
    assert!(matches!(e, Error::Corrupt { at: 12, .. }), "{e}");
    assert!(e.to_string().contains("(page 0 of NAND 'b')"), "{e}");
    assert_eq!(a.page_place(Ppn(24)), " (page 12 of NAND 'a')");
    // The same numbers on a page that was never written, out of order, and outside of the array.
    for (ppn, what) in [(13, "erased"), (15, "erased"), (48, "outside")] {
        let read = a.read(&mut Sink::untimed(), Ppn(ppn), 0, ReadTarget::Len(4), Cause::Host, Tok::DONE);
        let e = read.unwrap_err();
        assert!(matches!(e, Error::Rule { at, .. } if at == u64::from(ppn)), "{e}");
        assert!(e.to_string().contains(what), "{e}");
    }
    assert!(a.spare(Ppn(48)).unwrap().is_none());
    let mut failing = array(vec![
        device("a", 1, 1),
        NandConfig {
            faults: NandFaults { program_fail: 0.999_999, ..NandFaults::default() },
            ..device("b", 1, 1)
        },
    ])
    .unwrap();
    write(&mut failing, 0).unwrap();
    assert!(matches!(write(&mut failing, 12), Err(Error::ProgramFailed { ppn: 12 })));
}

#[test]
fn a_page_is_moved_within_its_unit_only() {
    let mut a = two();
    write(&mut a, 12).unwrap();
    let spare = Spare { lpn: 12, seq: 2 };
    let sink = &mut Sink::untimed();
    for to in [0, 24] {
        assert!(matches!(
            a.copyback(sink, Ppn(12), Ppn(to), spare, None, Cause::Gc, Tok::DONE),
            Err(Error::Rule { .. })
        ));
        assert!(matches!(
            a.relocate(sink, Ppn(12), Ppn(to), spare, None, Cause::Gc, Tok::DONE),
            Err(Error::Rule { .. })
        ));
    }
    a.copyback(sink, Ppn(12), Ppn(16), spare, None, Cause::Gc, Tok::DONE).unwrap();
    a.relocate(sink, Ppn(16), Ppn(20), spare, None, Cause::Gc, Tok::DONE).unwrap();
    assert_eq!(a.spare(Ppn(20)).unwrap(), Some(spare));
}

#[test]
fn devices_of_other_sizes_are_refused() {
    let with = |g: NandGeometry| {
        let b = NandConfig { name: "b".into(), geometry: g, ..config() };
        array(vec![NandConfig { name: "a".into(), ..config() }, b]).map(|_| ())
    };
    let g = config().geometry;
    with(g).unwrap();
    with(NandGeometry { channels: 5, ..g }).unwrap();
    for (key, other) in [
        ("page_bytes", NandGeometry { page_bytes: 1024, ..g }),
        ("pages_per_block", NandGeometry { pages_per_block: 8, ..g }),
        ("blocks_per_plane", NandGeometry { blocks_per_plane: 4, ..g }),
    ] {
        let e = with(other).unwrap_err();
        assert!(matches!(&e, Error::Param { key: k, .. } if k == key), "{e}");
        assert!(e.to_string().contains("NAND 'b'"), "{e}");
    }
}
