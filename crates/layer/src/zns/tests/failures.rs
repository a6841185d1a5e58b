//! Devices that wear out.

use super::*;

/// Zones are written and reset until no zone is left. No data that was durable is lost, zones go offline or
/// read-only one after the other, and a restart finds the same zones.
#[test]
fn a_device_that_wears_out_gives_its_zones_up_one_by_one() {
    let config = config(1024);
    for seed in 1..6 {
        let faults = NandFaults { program_fail: 0.02, erase_fail: 0.05, seed, ..NandFaults::default() };
        let mut layer = open(&config, MemoryStore::new(4 << 20), faults);
        let count = access(&mut layer).zoned_info().zones;
        let bytes = access(&mut layer).zoned_info().zone_sectors as usize * 512;
        let (mut online, mut rounds) = (count, 0u32);
        while online > 0 && layer.health.refusal().is_none() && rounds < 3_000 {
            rounds += 1;
            for number in 0..count {
                let data = vec![rounds as u8; bytes];
                match append(&mut layer, number, &data) {
                    Ok(_) => {
                        let start = zone(&mut layer, number).start;
                        assert!(read(&mut layer, start, bytes) == data);
                        let _ = manage(&mut layer, number, ZoneAction::Reset);
                    }
                    Err(Error::Zone { .. } | Error::NoSpace { .. } | Error::ReadOnly { .. }) => {}
                    Err(e) => panic!("seed {seed}: {e}"),
                }
            }
            let out = |z: &&ZoneInfo| matches!(z.state, ZoneState::ReadOnly | ZoneState::Offline);
            let now = count - zones(&mut layer).iter().filter(out).count() as u32;
            assert!(now <= online, "no zone comes back");
            online = now;
        }
        assert!(online < count, "seed {seed}");
        let _ = layer.halt(&mut sink());
        let before = zones(&mut layer);
        let (mut layer, recovery) = reopen(layer, faults);
        assert_eq!(recovery.losses(), 0, "seed {seed}: {recovery:?}");
        let lost: Vec<_> = before
            .iter()
            .zip(zones(&mut layer))
            .filter(|(b, a)| {
                b.state == ZoneState::ReadOnly && (a.state, a.write_pointer) != (b.state, b.write_pointer)
            })
            .collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?}");
    }
}
