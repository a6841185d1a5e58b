//! Property tests of the whole layer against a shadow model: random operations and changes of
//! policy, each read compared with a plain byte array, and all tables audited.

use super::entry::PageLocation;
use super::pcm::{NONE, PcmRegion};
use super::{Hfsl, HfslConfig, MapPersist};
use crate::flash::{BlockUse, Gc, WearLeveling};
use frit_core::Nanos;
use frit_core::{
    BlockLayer, ByteAccess, Cause, CheckScope, CrashKind, Durable, Error, Hints, Lpn, MediumKind, Params,
    Precondition, Preconditioning, Quiesce, RawAccess, ReadTarget, Result, Sector, Sink, WriteData,
};
use frit_media::{
    AnyStore, CommandCycles, Dram, DramConfig, DramTiming, Hardware, LatencyCurve, MemoryStore, Nand,
    NandConfig, NandFaults, NandGeometry, NandTiming, NoStore, PageTimes, Pcm, PcmConfig, PcmGeometry,
    PcmTiming, PlaneOps, SlcArea, SlcMode, Store,
};
use proptest::prelude::*;
use strum::VariantNames;

mod damage;
mod each_policy;
mod levelers;
mod order;
mod policies;
mod redo;
mod wear;

const GEOMETRY: NandGeometry = NandGeometry {
    channels: 2,
    chips_per_channel: 2,
    dies_per_chip: 1,
    planes_per_die: 1,
    blocks_per_plane: 12,
    pages_per_block: 8,
    page_bytes: 2048,
    spare_bytes: 64,
    plane_ops: PlaneOps::Single,
    program_pages: 1,
    record_copies: 1,
    slc: SlcArea { blocks: 0, pages: 0, dynamic: false },
};

pub(crate) fn nand_config(geometry: NandGeometry, faults: NandFaults) -> NandConfig {
    let timing = NandTiming {
        t_read: Nanos(62_300),
        t_prog: Nanos(200_000),
        t_erase: Nanos(1_500_000),
        t_command: CommandCycles::all(Nanos::ZERO),
        t_plane: CommandCycles::all(Nanos::ZERO),
        t_cache_busy: None,
        bus_ps_per_byte: 6_445,
    };
    NandConfig {
        name: "nand".into(),
        geometry,
        timing,
        cells: None,
        slc: (geometry.slc.pages > 0).then_some(SlcMode {
            times: PageTimes { read: Nanos(20_000), program: Nanos(80_000) },
            endurance: 2_000_000,
        }),
        endurance: 1_000_000,
        faults,
        serial: 0,
    }
}

fn pcm_config(chip_bytes: u64) -> PcmConfig {
    let curve = || LatencyCurve::new(vec![(512, Nanos(50_000))], 16).unwrap();
    PcmConfig {
        name: "pcm".into(),
        geometry: PcmGeometry {
            channels: 2,
            chips_per_channel: 8,
            groups: 1,
            chip_bytes,
            write_unit: 16,
            line_bytes: 512,
            interleave_bytes: 512,
        },
        timing: PcmTiming {
            read: curve(),
            write: curve(),
            write_clean: None,
            refresh: Nanos::ZERO,
            bus_ps_per_byte: 0,
            fence: Nanos::ZERO,
        },
        endurance: 1_000_000_000,
        refresh_bytes: None,
        serial: 0,
    }
}

type Layer = Hfsl;

fn layer(config: HfslConfig, with_pcm: bool, faults: NandFaults) -> Layer {
    let mut hw = Hardware::new();
    let store = || MemoryStore::new(64 << 20);
    let nand = Nand::new(nand_config(GEOMETRY, faults), store(), &mut hw).unwrap();
    // 64 KiB: the map of about 250 pages, and about 90 sub-pages, so that space is always short.
    let pcm = with_pcm.then(|| Pcm::new(pcm_config(4096), store(), &mut hw).unwrap());
    Hfsl::new(config, nand, pcm).unwrap()
}

impl Hfsl {
    /// Asserts that all tables derived from the map agree with it.
    fn audit(&self) {
        let g = *self.flash.nand().geometry();
        let mut valid = vec![0u16; g.blocks() as usize];
        let mut used = [0u32; 2];
        let mut pages = [0u32; 2];
        let mut slots = std::collections::HashSet::new();
        for lpn in (0..self.pages).map(Lpn) {
            match self.map.get(lpn).place() {
                PageLocation::Unmapped => {}
                PageLocation::Nand(ppn) => {
                    assert_eq!(self.flash.lpn_of(ppn), Some(lpn));
                    valid[g.block_of(ppn).idx()] += 1;
                }
                PageLocation::Pcm(d) => {
                    let d = self.map.pcm.as_ref().unwrap().desc[d as usize];
                    assert_eq!(d.lpn, lpn.0);
                    assert_eq!(d.state(), self.map.get(lpn).state());
                    used[d.region as usize] += d.count();
                    pages[d.region as usize] += 1;
                    for s in d.subs.into_iter().filter(|&s| s != NONE) {
                        assert!(slots.insert(s), "slot {s} used twice");
                    }
                }
            }
        }
        for b in 0..g.blocks() {
            assert_eq!(self.flash.blocks().valid(b), valid[b as usize], "block {b}");
            if self.flash.blocks().state(b) == BlockUse::Free {
                assert_eq!(valid[b as usize], 0);
            }
        }
        assert_eq!(self.flash.valid_pages(), valid.iter().map(|&v| u64::from(v)).sum::<u64>());
        if let Some(pcm) = &self.map.pcm {
            for r in PcmRegion::ALL {
                assert_eq!(pcm.regions[r as usize].used, used[r as usize]);
                assert_eq!(pcm.regions[r as usize].pages, pages[r as usize]);
            }
            let (held, held_descs) = pcm.held.as_ref().map_or((0, 0), |(s, d)| (s.len(), d.len()));
            assert_eq!(pcm.free.len() + held + slots.len(), pcm.layout.slots as usize);
            assert!(pcm.free.iter().all(|s| !slots.contains(s)));
            assert_eq!((pcm.desc_free.len() + held_descs) as u32 + pages[0] + pages[1], pcm.layout.slots);
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Write { at: u64, sectors: u64, metadata: bool },
    WriteBytes { at: u64, len: u64 },
    Read { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    Set(&'static str, &'static str),
    Step,
    Flush,
    Reboot,
    Crash,
}

fn settings() -> impl Strategy<Value = Action> {
    let mut all: Vec<(&str, &str)> = vec![
        ("FUSION_METHOD", "none"),
        ("FUSION_METHOD", "cache"),
        ("FUSION_METHOD", "same-level"),
        ("FUSION_METHOD", "both"),
        ("SSW", "0"),
        ("SSW", "512"),
        ("SSW", "2048"),
        ("ssw_compare", "lt"),
        ("ADDR_GRAN_PCM", "128"),
        ("cache_ratio", "0.2"),
        ("copyback", "true"),
        ("copyback", "false"),
        ("wear_threshold", "1"),
    ];
    all.extend(policies());
    proptest::sample::select(all).prop_map(|(k, v)| Action::Set(k, v))
}

/// Returns all registered policies that can be set while the layer runs, as key and name.
fn policies() -> Vec<(&'static str, &'static str)> {
    // With garbage collection off this volume would fill up; another test covers that.
    let gc = Gc::VARIANTS.iter().filter(|v| **v != "off").map(|v| ("gc", *v));
    let wear = WearLeveling::VARIANTS.iter().map(|v| ("wear_leveling", *v));
    let heat = super::heat::Heat::VARIANTS.iter().map(|v| ("heat", *v));
    let placement = super::placement::Placement::VARIANTS.iter().map(|v| ("placement", *v));
    gc.chain(wear).chain(heat).chain(placement).collect()
}

const SECTORS: u64 = 640;

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let place = || (0..SECTORS, prop_oneof![4 => 1u64..5, 1 => 1u64..40]);
    let hot = || (0..64u64, 1u64..9);
    let action = prop_oneof![
        8 => (place(), any::<bool>())
            .prop_map(|((at, sectors), metadata)| Action::Write { at, sectors, metadata: metadata && sectors < 9 }),
        8 => hot().prop_map(|(at, sectors)| Action::Write { at, sectors, metadata: false }),
        3 => (0..SECTORS * 512 - 3000, 1u64..3000).prop_map(|(at, len)| Action::WriteBytes { at, len }),
        5 => place().prop_map(|(at, sectors)| Action::Read { at, sectors }),
        2 => place().prop_map(|(at, sectors)| Action::Discard { at, sectors }),
        2 => settings(),
        2 => Just(Action::Step),
        1 => Just(Action::Flush),
        1 => Just(Action::Reboot),
        1 => Just(Action::Crash),
    ];
    proptest::collection::vec(action, 1..400)
}

struct Model {
    layer: Layer,
    shadow: Vec<u8>,
    stamp: u8,
}

impl Model {
    fn new(layer: Layer) -> Model {
        let sectors = BlockLayer::info(&layer).sectors;
        assert!(sectors >= SECTORS, "{sectors}");
        Model { layer, shadow: vec![0; sectors as usize * 512], stamp: 0 }
    }

    fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.stamp = self.stamp.wrapping_add(1);
        (0..len).map(|i| self.stamp ^ (i as u8).rotate_left(3)).collect()
    }

    fn act(&mut self, action: &Action) -> Result<()> {
        let clip = |at: u64, sectors: u64| (at.min(SECTORS - 1), sectors.min(SECTORS - at.min(SECTORS - 1)));
        match *action {
            Action::Write { at, sectors, metadata } => {
                let (at, sectors) = clip(at, sectors);
                let data = self.fresh(sectors as usize * 512);
                let hints = if metadata { Hints::METADATA } else { Hints::NONE };
                self.layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), hints)?;
                self.shadow[at as usize * 512..][..data.len()].copy_from_slice(&data);
            }
            Action::WriteBytes { at, len } => {
                let data = self.fresh(len as usize);
                let data = WriteData::Bytes(&data);
                self.layer.write_bytes(&mut Sink::untimed(), at, data, Hints::NONE)?;
                let data = data.bytes().unwrap_or_default();
                self.shadow[at as usize..][..data.len()].copy_from_slice(data);
            }
            Action::Read { at, sectors } => {
                let (at, sectors) = clip(at, sectors);
                let mut got = vec![0xEE; sectors as usize * 512];
                self.layer.read(
                    &mut Sink::untimed(),
                    Sector(at),
                    ReadTarget::Bytes(&mut got),
                    Hints::NONE,
                )?;
                assert!(got == self.shadow[at as usize * 512..][..got.len()], "read at {at}");
            }
            Action::Discard { at, sectors } => {
                let (at, sectors) = clip(at, sectors);
                self.layer.discard(&mut Sink::untimed(), Sector(at), sectors)?;
                self.shadow[at as usize * 512..][..sectors as usize * 512].fill(0);
            }
            Action::Set(key, value) => {
                if self.layer.map.pcm.is_some() || key != "FUSION_METHOD" {
                    self.layer.set(key, value)?;
                }
            }
            Action::Step => {
                self.layer.step(&mut Sink::untimed(), 4)?;
            }
            Action::Flush => self.layer.flush(&mut Sink::untimed())?,
            Action::Reboot => {
                // Without PCM discards are not durable: see `boot`.
                if self.layer.map.pcm.is_some() {
                    self.layer.halt(&mut Sink::untimed())?;
                    self.layer.boot(&mut Sink::untimed())?;
                }
            }
            Action::Crash => {
                if self.layer.map.each() && self.layer.usage.formatted {
                    let found = self.layer.recover(&mut Sink::untimed(), CrashKind::Process)?;
                    assert_eq!(found.lost, []);
                    self.checked();
                }
            }
        }
        Ok(())
    }

    /// Asserts that a check has no findings.
    fn checked(&mut self) {
        let scope = CheckScope { data: true, ..CheckScope::default() };
        self.layer.check(&mut Sink::untimed(), scope, &mut |f| panic!("{f:?}")).unwrap();
    }

    fn check_all(&mut self) {
        self.checked();
        let mut got = vec![0xEE; self.shadow.len()];
        self.layer.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut got), Hints::NONE).unwrap();
        assert!(got == self.shadow, "the volume differs from its shadow");
    }

    fn run(&mut self, actions: &[Action]) {
        for a in actions {
            self.act(a).unwrap();
            self.layer.audit();
        }
        self.check_all();
    }
}

proptest! {
    #[test]
    fn reads_give_back_what_was_written(
        actions in actions(),
        each in any::<bool>(),
        clock in any::<bool>(),
        redo_lines in proptest::sample::select(vec![1u32, 2, 64]),
    ) {
        let config = HfslConfig {
            redo_lines,
            map_persist: if each { MapPersist::Each } else { MapPersist::Halt },
            flush_map: each && clock,
            buffer: if clock { "clock".into() } else { "lru".into() },
            over_provisioning: 0.1,
            heat_window: 40,
            ..HfslConfig::default()
        };
        Model::new(layer(config, true, NandFaults::default())).run(&actions);
    }

    #[test]
    fn the_dram_buffer_never_gives_back_stale_pages(actions in actions(), clock in any::<bool>()) {
        let config = HfslConfig {
            buffer: if clock { "clock".into() } else { "lru".into() },
            over_provisioning: 0.1,
            ..HfslConfig::default()
        };
        let dram = DramConfig {
            name: "dram".into(),
            bytes: 8 * 2048,
            channels: 1,
            interleave_bytes: 4096,
            timing: DramTiming { latency: Nanos(50), ps_per_byte: 50 },
        };
        let mut hw = Hardware::new();
        let dram = Dram::new(dram, MemoryStore::new(1 << 20), &mut hw).unwrap();
        let layer = layer(config, true, NandFaults::default()).with_dram(dram).unwrap();
        Model::new(layer).run(&actions);
    }

    #[test]
    fn the_baseline_gives_back_what_was_written(actions in actions()) {
        let config = HfslConfig { fusion_method: super::FusionMethod::None, ..HfslConfig::default() };
        Model::new(layer(config, false, NandFaults::default())).run(&actions);
    }

    #[test]
    fn nothing_is_lost_when_nand_fails(actions in actions(), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.01, erase_fail: 0.01, factory_bad: 0.02, seed };
        let config = HfslConfig { over_provisioning: 0.1, capacity: SECTORS * 512, ..HfslConfig::default() };
        let mut hw = Hardware::new();
        let nand = Nand::new(nand_config(GEOMETRY, faults), MemoryStore::new(64 << 20), &mut hw).unwrap();
        let pcm = Pcm::new(pcm_config(4096), MemoryStore::new(64 << 20), &mut hw).unwrap();
        let Ok(layer) = Hfsl::new(config, nand, Some(pcm)) else { return Ok(()) };
        let mut m = Model::new(layer);
        for a in &actions {
            // A write that fails half-way leaves its sectors old or new, so nothing is compared
            // after it.
            match m.act(a) {
                Ok(()) => {}
                Err(Error::ReadOnly { .. } | Error::NoSpace { .. }) => return Ok(()),
                Err(e) => panic!("{e}"),
            }
            m.layer.audit();
        }
        m.check_all();
    }
}

#[test]
fn a_worn_out_volume_turns_read_only_and_keeps_its_data() {
    let config = HfslConfig { fusion_method: super::FusionMethod::None, ..HfslConfig::default() };
    let mut hw = Hardware::new();
    let mut nc = nand_config(GEOMETRY, NandFaults::default());
    nc.endurance = 20;
    let nand = Nand::new(nc, MemoryStore::new(64 << 20), &mut hw).unwrap();
    let mut m = Model::new(Hfsl::new(config, nand, None).unwrap());
    for at in (0..SECTORS - 4).step_by(4) {
        m.act(&Action::Write { at, sectors: 4, metadata: false }).unwrap();
    }
    let mut i = 0u64;
    let end = loop {
        i += 1;
        let at = (i * 7919) % 64 * 4;
        let before = m.shadow[at as usize * 512..][..2048].to_vec();
        if let Err(e) = m.act(&Action::Write { at, sectors: 4, metadata: false }) {
            m.shadow[at as usize * 512..][..2048].copy_from_slice(&before);
            break e;
        }
        assert!(i < 1_000_000, "blocks do not wear out");
    };
    assert!(matches!(end, Error::ReadOnly { .. }), "{end}");
    m.layer.audit();
    m.check_all();
}

#[test]
fn garbage_collection_switched_off_fills_up_with_a_clear_error() {
    let config =
        HfslConfig { fusion_method: super::FusionMethod::None, gc: "off".into(), ..HfslConfig::default() };
    let mut l = layer(config, false, NandFaults::default());
    let data = [1u8; 2048];
    let e = (0..10_000)
        .find_map(|_| l.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&data), Hints::NONE).err());
    let e = e.expect("the pool is finite").to_string();
    assert!(e.contains("garbage collection"), "{e}");
    // Switched on again, garbage collection continues.
    l.set("gc", "greedy").unwrap();
    l.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&data), Hints::NONE).unwrap();
    l.audit();
}

#[test]
fn ranges_past_the_end_are_refused() {
    let mut l = layer(HfslConfig::default(), true, NandFaults::default());
    let end = BlockLayer::info(&l).sectors;
    for at in [end, end - 1, u64::MAX, u64::MAX / 512, 1 << 60] {
        let mut buf = [0u8; 1024];
        for r in [
            l.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut buf), Hints::NONE),
            l.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&[0; 1024]), Hints::NONE),
            l.discard(&mut Sink::untimed(), Sector(at), 2),
            l.discard(&mut Sink::untimed(), Sector(2), at),
        ] {
            assert!(matches!(r, Err(Error::OutOfRange { .. })), "{at}: {r:?}");
        }
    }
}

#[test]
fn raw_access_is_for_those_that_are_named() {
    let config = HfslConfig { raw_access: vec!["db".into()], raw_bytes: 4096, ..HfslConfig::default() };
    let mut l = layer(config, true, NandFaults::default());
    let mut b = [0u8; 64];
    let r = l.raw_read(&mut Sink::untimed(), "other", MediumKind::Pcm, 0, ReadTarget::Bytes(&mut b));
    assert!(matches!(r, Err(Error::Protected { .. })));
    l.raw_read(&mut Sink::untimed(), "db", MediumKind::Pcm, 0, ReadTarget::Bytes(&mut b)).unwrap();
    let owned = l.raw_write(&mut Sink::untimed(), "db", 0, WriteData::Bytes(&b), Cause::Host);
    assert!(owned.unwrap_err().to_string().contains("belongs to the layer"), "the map is the layer's");
    let end = l.map.pcm.as_ref().map(|p| p.medium.bytes()).unwrap();
    let mut raw =
        |at, who| l.raw_write(&mut Sink::untimed(), who, at, WriteData::Bytes(&[7; 64]), Cause::Host);
    raw(end - 4096, "db").unwrap();
    raw(end - 64, "db").unwrap();
    assert!(matches!(raw(end - 64, "other"), Err(Error::Protected { .. })));
    assert!(raw(end - 63, "db").unwrap_err().to_string().contains("bytes"));
    // The layer uses the rest of PCM and leaves these bytes as they are.
    let mut m = Model::new(l);
    for i in 0..2_000u64 {
        m.act(&Action::Write { at: i * 7919 % (SECTORS - 8), sectors: 1 + i % 8, metadata: false }).unwrap();
    }
    m.check_all();
    let pcm = ReadTarget::Bytes(&mut b);
    m.layer.raw_read(&mut Sink::untimed(), "db", MediumKind::Pcm, end - 4096, pcm).unwrap();
    assert_eq!(b, [7; 64]);
}

#[test]
fn preconditioning_fills_the_volume_and_audits() {
    for gc in ["greedy", "fifo", "cost-benefit"] {
        for how in [Precondition::Fill, Precondition::Steady { seed: 7 }] {
            let config = HfslConfig { gc: gc.into(), over_provisioning: 0.2, ..HfslConfig::default() };
            let mut m = Model::new(layer(config, true, NandFaults::default()));
            m.layer.precondition(how).unwrap();
            m.layer.audit();
            assert_eq!(m.layer.flash.valid_pages(), u64::from(m.layer.pages));
            m.check_all();
            for i in 0..2_000 {
                let at = i * 7919 % (SECTORS - 8);
                m.act(&Action::Write { at, sectors: 1 + i % 8, metadata: false }).unwrap();
            }
            m.layer.audit();
            m.check_all();
            assert!(m.layer.precondition(how).is_err(), "only a new volume");
        }
    }
}

#[test]
fn parameters_change_only_to_what_can_be() {
    let mut l = layer(HfslConfig::default(), true, NandFaults::default());
    for p in l.list() {
        assert_eq!(l.get(&p.key).unwrap(), p.value);
        let r = l.set(&p.key, &p.value);
        assert_eq!(r.is_ok(), p.live, "{}: {r:?}", p.key);
    }
    for (key, value) in
        [("SSW", "lots"), ("gc", "best"), ("cache_ratio", "2"), ("nonsense", "1"), ("gc_low_blocks", "0")]
    {
        let before = l.config().clone();
        let e = l.set(key, value).unwrap_err().to_string();
        assert!(e.contains(key), "{e}");
        assert_eq!(l.config(), &before);
    }
}

/// A change at run time keeps the blocks that a durable map needs beyond the configured ones.
#[test]
fn a_parameter_that_changes_does_not_lower_the_reserve() {
    let config = HfslConfig { map_persist: MapPersist::Each, flush_map: true, ..HfslConfig::default() };
    let mut l = layer(config, true, NandFaults::default());
    let limits = |l: &Layer| (l.flash.config().low_blocks, l.flash.config().high_blocks);
    let before = limits(&l);
    assert!(before.0 > l.config().gc_low_blocks as usize);
    l.set("SSW", "64").unwrap();
    assert_eq!(limits(&l), before);
    l.set("gc_high_blocks", "9").unwrap();
    l.set("gc_low_blocks", "7").unwrap();
    assert_eq!(limits(&l), (before.0.max(7), before.1.max(9)));
}

#[test]
fn a_flipped_bit_is_an_error_with_its_place() {
    let config = HfslConfig { fusion_method: super::FusionMethod::None, ..HfslConfig::default() };
    let mut l = layer(config, false, NandFaults::default());
    l.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&[7; 2048]), Hints::NONE).unwrap();
    let PageLocation::Nand(ppn) = l.entry(Lpn(0)).unwrap().place() else { panic!("in NAND") };
    // The page is at the start of the page area of the store: find it by its contents.
    let store = l.flash.nand_mut().devices_mut().next().unwrap().store_mut();
    let mut at = 0;
    let mut buf = [0u8; 512];
    while buf != [7; 512] {
        store.read(at, &mut buf).unwrap();
        at += 512;
    }
    store.write(at - 512, &[6]).unwrap();
    let mut out = [0u8; 2048];
    let e = l.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap_err();
    assert!(matches!(e, Error::Corrupt { at, .. } if at == u64::from(ppn.0)), "{e}");
}

/// Requests with a length only and requests with bytes give the same commands.
#[test]
fn simulation_and_volume_count_alike() {
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), NoStore, &mut hw).unwrap();
    let pcm = Pcm::new(pcm_config(4096), NoStore, &mut hw).unwrap();
    let mut lengths = Hfsl::new(HfslConfig::default(), nand, Some(pcm)).unwrap();
    let mut bytes = layer(HfslConfig::default(), true, NandFaults::default());
    for i in 0..5_000u64 {
        let (at, sectors) = (i * 7919 % (SECTORS - 16), 1 + i % 9);
        let data = vec![i as u8; sectors as usize * 512];
        lengths
            .write(&mut Sink::untimed(), Sector(at), WriteData::Len(data.len() as u32), Hints::NONE)
            .unwrap();
        bytes.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
        lengths.read(&mut Sink::untimed(), Sector(i % SECTORS), ReadTarget::Len(512), Hints::NONE).unwrap();
        bytes
            .read(&mut Sink::untimed(), Sector(i % SECTORS), ReadTarget::Bytes(&mut [0; 512]), Hints::NONE)
            .unwrap();
    }
    let counts = |v: &dyn Fn(&mut frit_core::StackView)| {
        let mut view = frit_core::StackView::default();
        v(&mut view);
        view.counts()
    };
    let a = counts(&|v| BlockLayer::visible(&lengths, v));
    assert_eq!(a, counts(&|v| BlockLayer::visible(&bytes, v)));
    assert!(a.of(frit_core::Op::NandErase).commands > 100);
}
