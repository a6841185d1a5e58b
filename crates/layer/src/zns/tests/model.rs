//! Requests and commands in any order, against a model of zones.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    Append {
        zone: u32,
        blocks: usize,
    },
    Read {
        zone: u32,
        at: u64,
        sectors: u64,
    },
    Manage {
        zone: u32,
        action: ZoneAction,
    },
    Flush,
    Step,
    Halt,
    /// Opens the media again; unflushed data may be lost.
    Crash,
}

fn actions(zones: u32, count: usize) -> impl Strategy<Value = Vec<Action>> {
    let zone = move || 0..zones;
    let action = prop_oneof![
        20 => (zone(), 1..24usize).prop_map(|(zone, blocks)| Action::Append { zone, blocks }),
        8 => (zone(), 0..128u64, 1..48u64).prop_map(|(zone, at, sectors)| Action::Read { zone, at, sectors }),
        2 => zone().prop_map(|zone| Action::Manage { zone, action: ZoneAction::Open }),
        2 => zone().prop_map(|zone| Action::Manage { zone, action: ZoneAction::Close }),
        1 => zone().prop_map(|zone| Action::Manage { zone, action: ZoneAction::Finish }),
        4 => zone().prop_map(|zone| Action::Manage { zone, action: ZoneAction::Reset }),
        2 => Just(Action::Flush),
        2 => Just(Action::Step),
        1 => Just(Action::Halt),
        2 => Just(Action::Crash),
    ];
    prop::collection::vec(action, 1..count)
}

/// A zone of the model.
#[derive(Clone, Default, Debug)]
struct Shadow {
    data: Vec<u8>,
    /// Bytes that are durable.
    flushed: usize,
    full: bool,
    /// Read-only or offline: the device gave it up.
    gone: bool,
}

struct Model {
    zones: Vec<Shadow>,
    block: usize,
    zone_bytes: usize,
    stamp: u32,
}

impl Model {
    fn new(layer: &mut Layer) -> Model {
        let info = access(layer).zoned_info();
        Model {
            zones: vec![Shadow::default(); info.zones as usize],
            block: info.block_bytes as usize,
            zone_bytes: info.zone_sectors as usize * 512,
            stamp: 0,
        }
    }

    fn append(&mut self, layer: &mut Layer, number: u32, blocks: usize) {
        self.stamp += 1;
        let data: Vec<u8> = self.stamp.to_le_bytes().repeat(blocks * self.block / 4);
        let shadow = &mut self.zones[number as usize];
        let room = self.zone_bytes - shadow.data.len();
        let before = zone(layer, number);
        match append(layer, number, &data) {
            Ok(at) => {
                assert!(!shadow.full && data.len() <= room);
                assert_eq!(at.0 - before.start.0, shadow.data.len() as u64 / 512);
                shadow.data.extend(&data);
                shadow.full = data.len() == room;
            }
            Err(Error::Zone { fault, .. }) => match fault {
                ZoneFault::IsFull => assert!(shadow.full),
                ZoneFault::BoundaryError => assert!(data.len() > room),
                ZoneFault::TooManyActive => assert!(before.state == ZoneState::Empty),
                ZoneFault::TooManyOpen => assert!(!before.state.is_open()),
                ZoneFault::IsReadOnly => {
                    // A part of the data may have been written.
                    let written = zone(layer, number).write_pointer.0 - before.start.0;
                    let part = written as usize * 512 - shadow.data.len();
                    shadow.data.extend(&data[..part]);
                    shadow.flushed = shadow.data.len();
                    shadow.gone = true;
                }
                ZoneFault::IsOffline => assert!(shadow.gone || shadow.data.is_empty()),
                other => panic!("{other:?}"),
            },
            Err(e) => panic!("{e}"),
        }
    }

    fn manage(&mut self, layer: &mut Layer, number: u32, action: ZoneAction) {
        let before = zone(layer, number);
        let shadow = &mut self.zones[number as usize];
        match manage(layer, number, action) {
            Ok(()) => match action {
                ZoneAction::Finish => {
                    shadow.full = true;
                    shadow.flushed = shadow.data.len();
                }
                ZoneAction::Reset => *shadow = Shadow::default(),
                ZoneAction::Open | ZoneAction::Close => {}
            },
            Err(Error::Zone { fault, .. }) => match fault {
                ZoneFault::InvalidTransition => assert!(!before.state.is_active()),
                ZoneFault::TooManyOpen | ZoneFault::TooManyActive => assert!(action != ZoneAction::Reset),
                ZoneFault::IsFull => assert!(shadow.full),
                ZoneFault::IsReadOnly | ZoneFault::IsOffline => shadow.gone = true,
                other => panic!("{other:?}"),
            },
            Err(e) => panic!("{e}"),
        }
    }

    fn read(&self, layer: &mut Layer, number: u32, at: u64, sectors: u64) {
        let start = zone(layer, number).start.0;
        let (at, end) = (at * 512, ((at + sectors) * 512).min(self.zone_bytes as u64));
        if at >= end {
            return;
        }
        let got = read(layer, Sector(start + at / 512), (end - at) as usize);
        let data = &self.zones[number as usize].data;
        let want = (at..end).map(|byte| data.get(byte as usize).copied().unwrap_or(0));
        assert!(want.eq(got), "zone {number}, byte {at}");
    }

    /// Compares states, write pointers and contents.
    fn compare(&self, layer: &mut Layer) {
        for (number, shadow) in (0..).zip(&self.zones) {
            let info = zone(layer, number);
            let written = (info.write_pointer.0 - info.start.0) as usize * 512;
            assert_eq!(written, shadow.data.len(), "zone {number}");
            if !matches!(info.state, ZoneState::ReadOnly | ZoneState::Offline) {
                assert_eq!(info.state == ZoneState::Full, shadow.full, "zone {number}: {info:?}");
            }
            self.read(layer, number, 0, self.zone_bytes as u64 / 512);
        }
    }

    /// Takes over what a crash has left: every zone has its durable data, and maybe more of it.
    fn after_crash(&mut self, layer: &mut Layer) {
        for (number, shadow) in (0..).zip(&mut self.zones) {
            let info = zone(layer, number);
            let written = (info.write_pointer.0 - info.start.0) as usize * 512;
            assert!(!info.state.is_open());
            assert!(written >= shadow.flushed && written <= shadow.data.len(), "zone {number}: {info:?}");
            shadow.data.truncate(written);
            shadow.flushed = written;
            shadow.full = info.state == ZoneState::Full;
        }
    }

    fn flushed(&mut self) {
        self.zones.iter_mut().for_each(|z| z.flushed = z.data.len());
    }
}

fn run(config: &ZnsConfig, actions: &[Action], faults: NandFaults) {
    let mut layer = open(config, MemoryStore::new(4 << 20), faults);
    layer.format(&mut sink()).unwrap();
    let mut model = Model::new(&mut layer);
    let count = model.zones.len() as u32;
    for action in actions {
        if layer.health.refusal().is_some() {
            break;
        }
        match *action {
            Action::Append { zone, blocks } => model.append(&mut layer, zone % count, blocks),
            Action::Read { zone, at, sectors } => model.read(&mut layer, zone % count, at, sectors),
            Action::Manage { zone, action } => model.manage(&mut layer, zone % count, action),
            Action::Flush => {
                BlockLayer::flush(&mut layer, &mut sink()).unwrap();
                model.flushed();
            }
            Action::Step => drop(BlockLayer::step(&mut layer, &mut sink(), 4).unwrap()),
            Action::Halt => {
                layer.halt(&mut sink()).unwrap();
                model.flushed();
            }
            Action::Crash => {
                let (next, recovery) = reopen(layer, faults);
                assert_eq!(recovery.losses(), 0, "{recovery:?}");
                layer = next;
                model.after_crash(&mut layer);
                model.compare(&mut layer);
            }
        }
        audit(&layer);
    }
    model.compare(&mut layer);
    let mut findings = Vec::new();
    let scope = CheckScope { data: true, ..CheckScope::default() };
    layer.check(&mut sink(), scope, &mut |f| findings.push(f)).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

/// Asserts that every good block has one use, and that the counts of zones are right.
fn audit(layer: &Layer) {
    let mut used = vec![0; layer.nand.geometry().blocks() as usize];
    let free = layer.free.iter().flatten().map(|b| b.block);
    let of_logs = layer.logs.iter().flat_map(|l| l.blocks.iter().copied());
    let of_zones = layer.zones.iter().flat_map(|z| &z.blocks).map(|b| b.block);
    for block in free.chain(of_logs).chain(of_zones).filter(|&b| b != super::super::zone::NO_BLOCK) {
        used[block as usize] += 1;
    }
    for (block, &uses) in (0..).zip(&used) {
        let bad = layer.nand.is_bad(frit_core::BlockId(block));
        assert!(uses == 1 || bad && uses == 0, "block {block} has {uses} uses");
    }
    let count = |f: fn(ZoneState) -> bool| layer.zones.iter().filter(|z| f(z.state)).count() as u32;
    assert_eq!(layer.open, count(ZoneState::is_open));
    assert_eq!(layer.active, count(ZoneState::is_active));
    assert!(layer.open <= layer.config.open_limit() && layer.active <= layer.config.active_limit());
    for z in &layer.zones {
        assert_eq!(z.state.is_open(), z.buffer.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn zones_keep_every_byte(actions in actions(6, 160)) {
        run(&config(1024), &actions, NandFaults::default());
        run(&config(0), &actions, NandFaults::default());
        let small = ZnsConfig { zone_blocks: 1, buffer_units: 2, max_open: 0, max_active: 0, ..config(2048) };
        run(&small, &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(actions in actions(9, 200), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.01, erase_fail: 0.01, seed, ..NandFaults::default() };
        run(&config(1024), &actions, faults);
        run(&ZnsConfig { zone_blocks: 3, ..config(0) }, &actions, faults);
    }
}

#[test]
fn a_clean_halt_is_told() {
    let mut layer = new_layer(&config(1024));
    append(&mut layer, 0, &[1; 3072]).unwrap();
    layer.halt(&mut sink()).unwrap();
    // A volume flushes once more.
    layer.flush(&mut sink()).unwrap();
    let (layer, recovery) = reopen(layer, NandFaults::default());
    assert!(recovery.clean);
    let (_, recovery) = reopen(layer, NandFaults::default());
    assert!(!recovery.clean, "a start without a halt");
}
