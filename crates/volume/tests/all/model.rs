//! Random operations, including closing and dropping, compared with an array of bytes.

use crate::common::{self, open, open_read_only, pattern, place_in_memory, read};
use frit_core::Hints;
use frit_volume::Volume;
use proptest::prelude::*;

/// An operation of a client. Addresses and lengths are in sectors and limited to the volume.
#[derive(Clone, Debug)]
enum ClientOp {
    Write(u64, u64, bool),
    Read(u64, u64),
    Discard(u64, u64),
    Zero(u64, u64, bool),
    Flush,
    Step(u32),
    Close,
    Drop,
    Peek,
    Set(u64),
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    // Many requests collide in a small part, some are anywhere; sizes resemble those of file
    // systems.
    let at = prop_oneof![4 => 0u64..256, 1 => 0u64..12_000];
    let len = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), 1u64..64, 200u64..300];
    (at, len)
}

fn what() -> impl Strategy<Value = ClientOp> {
    prop_oneof![
        10 => (range(), any::<bool>()).prop_map(|((a, l), fua)| ClientOp::Write(a, l, fua)),
        4 => range().prop_map(|(a, l)| ClientOp::Read(a, l)),
        2 => range().prop_map(|(a, l)| ClientOp::Discard(a, l)),
        1 => (range(), any::<bool>()).prop_map(|((a, l), k)| ClientOp::Zero(a, l, k)),
        1 => Just(ClientOp::Flush),
        1 => (1u32..200).prop_map(ClientOp::Step),
        1 => Just(ClientOp::Close),
        1 => Just(ClientOp::Drop),
        1 => Just(ClientOp::Peek),
        1 => (0u64..9).prop_map(|n| ClientOp::Set(n * 512)),
    ]
}

fn all_is_there(v: &mut Volume, shadow: &[u8]) -> Result<(), TestCaseError> {
    for (n, expected) in shadow.chunks(1 << 20).enumerate() {
        let got = read(v, (n << 20) as u64, expected.len());
        if let Some(at) = got.iter().zip(expected).position(|(a, b)| a != b) {
            return Err(TestCaseError::fail(format!("byte {} differs", (n << 20) + at)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_volume_is_an_array_of_bytes_whatever_stops_it(
        method in prop::sample::select(vec!["same-level", "cache", "both"]),
        ops in prop::collection::vec(what(), 1..120),
    ) {
        let (_dir, dir) = place_in_memory();
        let set = format!("FUSION_METHOD={method}");
        let mut v = common::create_with(&dir, &[&set], false).unwrap();
        let mut shadow = vec![0u8; v.bytes() as usize];
        let mut ssw = None;
        let cut = |at: u64, len: u64, bytes: usize| {
            let at = (at * 512).min(bytes as u64 - 512);
            (at, (len * 512).min(bytes as u64 - at) as usize)
        };
        for (n, op) in ops.into_iter().enumerate() {
            let size = shadow.len();
            match op {
                ClientOp::Write(at, len, fua) => {
                    let (at, len) = cut(at, len, size);
                    let data = pattern(at, n as u32, len);
                    v.write(at, &data, if fua { Hints::FUA } else { Hints::NONE }).unwrap();
                    shadow[at as usize..at as usize + len].copy_from_slice(&data);
                }
                ClientOp::Read(at, len) => {
                    let (at, len) = cut(at, len, size);
                    prop_assert!(read(&mut v, at, len) == shadow[at as usize..at as usize + len]);
                }
                ClientOp::Discard(at, len) => {
                    let (at, len) = cut(at, len, size);
                    v.discard(at, len as u64).unwrap();
                    shadow[at as usize..at as usize + len].fill(0);
                }
                ClientOp::Zero(at, len, keep) => {
                    let (at, len) = cut(at, len, size);
                    v.write_zeroes(at, len as u64, keep).unwrap();
                    shadow[at as usize..at as usize + len].fill(0);
                }
                ClientOp::Flush => v.flush().unwrap(),
                ClientOp::Step(budget) => drop(v.step(budget).unwrap()),
                ClientOp::Close => {
                    v.close().unwrap();
                    v = open(&dir);
                    prop_assert!(v.recovery().recovery.clean);
                }
                ClientOp::Drop => {
                    drop(v);
                    v = open(&dir);
                    prop_assert!(v.recovery().recovery.lost.is_empty());
                    all_is_there(&mut v, &shadow)?;
                }
                ClientOp::Peek => {
                    drop(v);
                    all_is_there(&mut open_read_only(&dir).unwrap(), &shadow)?;
                    v = open(&dir);
                }
                ClientOp::Set(bytes) => {
                    v.set_param("SSW", &bytes.to_string()).unwrap();
                    ssw = Some(bytes.to_string());
                }
            }
        }
        all_is_there(&mut v, &shadow)?;
        v.close().unwrap();
        let mut v = open(&dir);
        all_is_there(&mut v, &shadow)?;
        let found = v.params().into_iter().find(|p| p.key == "SSW").unwrap().value;
        prop_assert!(ssw.is_none_or(|s| s == found));
        let mut findings = Vec::new();
        let scope = frit_core::CheckScope { data: true, ..frit_core::CheckScope::default() };
        v.check(scope, &mut |f| findings.push(f)).unwrap();
        prop_assert!(findings.is_empty(), "{findings:?}");
    }
}
