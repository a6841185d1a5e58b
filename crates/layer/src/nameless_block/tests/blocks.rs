//! The virtual address space as a block device, against a plain byte array.

use super::*;
use crate::testing::shadow::{self, Action, actions};
use proptest::prelude::*;

fn run(config: &NamelessBlockConfig, actions: &[Action], faults: NandFaults) {
    let reopen = |layer| reopen(layer, faults);
    let layer = open(config, MemoryStore::new(4 << 20), faults);
    shadow::run(layer, actions, faults.program_fail > 0.0, reopen, |layer| audit(layer, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn virtual_blocks_keep_every_byte(actions in actions(264, 40, 160)) {
        run(&config(1024, 80 << 10), &actions, NandFaults::default());
        run(&config(0, 80 << 10), &actions, NandFaults::default());
        // Two parts of the map.
        run(&config(1024, 132 << 10), &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(actions in actions(160, 40, 160), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        let mut config = config(1024, 40 << 10);
        config.device.over_provisioning = 1.0;
        run(&config, &actions, faults);
    }
}

#[test]
fn the_virtual_space_has_a_share_of_the_capacity() {
    let mut layer = new_layer(&config(1024, 0));
    let space = device(&mut layer).space();
    assert_eq!(device(&mut layer).virtual_blocks(), space.capacity.div_ceil(16));
    assert_eq!(layer.info().sectors, u64::from(device(&mut layer).virtual_blocks()) * 2);
    assert!(space.waiting >= space.capacity / 32);
}

#[test]
fn impossible_sizes_are_refused_by_key() {
    let refused = |config: NamelessBlockConfig| {
        let geometry = config.device.divide(TWO_UNITS).unwrap();
        let store = MemoryStore::new(4 << 20);
        let nand = Nand::new(nand_config(geometry, NandFaults::default()), store, &mut Hardware::new());
        match Layer::over_nand(config, nand.unwrap()).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    let mut large = config(1024, 0);
    large.device.capacity = 1 << 30;
    assert_eq!(refused(large), "capacity");
    assert_eq!(refused(config(1024, 1 << 30)), "virtual_bytes");
}
