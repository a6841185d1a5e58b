//! Announced requests reach the devices below composers, at the addresses that the requests will have.

use crate::device::TestDevice;
use frit_compose::concat::{Concat, ConcatConfig};
use frit_compose::flaky::{Flaky, FlakyConfig};
use frit_compose::mirror::{Mirror, MirrorConfig};
use frit_compose::stripe::{Stripe, StripeConfig};
use frit_compose::{Composed, Composer, Devices, NestedLayer};
use frit_core::{BlockDevice, BlockLayer, Nanos, Sector};
use frit_media::Hardware;
use std::sync::Arc;

const DEVICE_BYTES: u64 = 64 << 10;
const DEVICE_SECTORS: u64 = DEVICE_BYTES / 512;

fn two() -> [TestDevice; 2] {
    let (mut hardware, power) = (Hardware::new(), Arc::default());
    [(); 2].map(|()| TestDevice::new(DEVICE_BYTES, Nanos(1), &mut hardware, &power))
}

fn boxed(devices: &[TestDevice]) -> Vec<Box<dyn BlockDevice>> {
    devices.iter().map(|d| Box::new(d.clone()) as Box<dyn BlockDevice>).collect()
}

fn announced<C: Composer>(devices: &[TestDevice], composer: C, next: &[(u64, u32)]) -> Vec<Vec<(u64, u32)>> {
    let next: Vec<_> = next.iter().map(|&(at, n)| (Sector(at), n)).collect();
    Composed::new(composer).prefetch(&next);
    devices.iter().map(|d| d.state().announced.iter().map(|(at, n)| (at.0, *n)).collect()).collect()
}

#[test]
fn parts_of_concat_and_stripe_are_announced_to_their_devices() {
    let next = [(DEVICE_SECTORS - 2, 8), (3, 1), (DEVICE_SECTORS + 5, 4), (2 * DEVICE_SECTORS, 1)];
    let devices = two();
    let concat = Concat::new(ConcatConfig::default(), Devices::new(boxed(&devices)));
    assert_eq!(announced(&devices, concat, &next), [vec![(DEVICE_SECTORS - 2, 2), (3, 1)], vec![(5, 4)]]);

    let devices = two();
    let config = StripeConfig { chunk: 4096 };
    let stripe = Stripe::new(config, Devices::new(boxed(&devices))).unwrap();
    let next = [(6, 8), (8, 8), (17, 1), (u64::MAX, 1)];
    assert_eq!(announced(&devices, stripe, &next), [vec![(6, 2), (9, 1)], vec![(0, 8)]]);
}

#[test]
fn more_requests_than_are_passed_on_at_once_are_all_announced() {
    let devices = two();
    let concat = Concat::new(ConcatConfig::default(), Devices::new(boxed(&devices)));
    let next: Vec<_> = (0..40).map(|i| (i, 1)).collect();
    assert_eq!(announced(&devices, concat, &next), [next, vec![]]);
}

#[test]
fn each_side_of_a_mirror_and_the_device_of_a_nested_layer_are_announced() {
    let devices = two();
    let config = MirrorConfig { region: 4096, read_chunk: 1024, keep_marked: 2, ..MirrorConfig::default() };
    let mirror = Mirror::new(config, boxed(&devices), 42).unwrap();
    assert_eq!(announced(&devices, mirror, &[(3, 2)]), [[(3, 2)], [(3, 2)]]);

    let devices = two();
    let flaky = |below| Flaky::new(FlakyConfig::default(), Devices::new(vec![below]));
    let inner = flaky(boxed(&devices[..1]).remove(0));
    let nested = NestedLayer::new("inner", 1, Box::new(Composed::new(inner)));
    assert_eq!(announced(&devices[..1], flaky(Box::new(nested)), &[(3, 2)]), [[(3, 2)]]);
}
