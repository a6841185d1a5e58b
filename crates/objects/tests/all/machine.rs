//! Random requests and faults, compared with a map.

use crate::common::*;
use frit_core::ObjectId;
use frit_core::split_mix::mix;
use frit_media::object::RemoteObjects;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request.
#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Get(usize),
    Delete(usize),
    Flush,
    /// The writer ends, with or without a release, and another one claims.
    Reopen(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..3000usize).prop_map(Step::Put),
        3 => any::<usize>().prop_map(Step::Get),
        2 => any::<usize>().prop_map(Step::Delete),
        2 => Just(Step::Flush),
        1 => any::<bool>().prop_map(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_bucket_with_faults_behaves_as_a_map(
        steps in proptest::collection::vec(step(), 1..40),
        seed in any::<u64>(),
    ) {
        // Every eighth request fails or loses its answer.
        let mut number = seed;
        let bucket = FaultyBucket::new(Arc::default(), move |_| {
            number = number.wrapping_add(1);
            match mix(number) % 16 {
                0 => Fate::Fails,
                1 => Fate::AnswerLost,
                _ => Fate::Normal,
            }
        });
        let mut live = claimed(&bucket, settings());
        let (mut epoch, mut number) = (1, 0);
        // All objects, and those that are durable.
        let mut model: BTreeMap<ObjectId, usize> = BTreeMap::new();
        let mut durable = model.clone();
        let nth = |model: &BTreeMap<ObjectId, usize>, i: usize| {
            let i = i.checked_rem(model.len())?;
            model.iter().nth(i).map(|(&id, &len)| (id, len))
        };
        for step in steps {
            match step {
                Step::Put(len) => {
                    number += 1;
                    let id = id(epoch, number);
                    live.put(id, &contents(id, len)).unwrap();
                    model.insert(id, len);
                }
                Step::Get(i) => {
                    let Some((id, len)) = nth(&model, i) else { continue };
                    let at = i % len;
                    let mut found = vec![0; len - at];
                    live.get(id, at as u32, &mut found).unwrap();
                    prop_assert_eq!(&found, &contents(id, len)[at..]);
                }
                Step::Delete(i) => {
                    let Some((id, _)) = nth(&model, i) else { continue };
                    live.delete(id).unwrap();
                    model.remove(&id);
                    durable.remove(&id);
                }
                Step::Flush => {
                    live.flush().unwrap();
                    durable.clone_from(&model);
                }
                Step::Reopen(releases) => {
                    if releases {
                        live.flush().unwrap();
                        durable.clone_from(&model);
                        live.release().unwrap();
                    }
                    live = claimed(&bucket, settings());
                    (epoch, number) = (epoch + 1, 0);
                    let found: BTreeMap<ObjectId, usize> =
                        live.list().unwrap().into_iter().map(|(id, len)| (id, len as usize)).collect();
                    prop_assert!(durable.iter().all(|(id, len)| found.get(id) == Some(len)));
                    prop_assert!(found.iter().all(|(id, len)| model.get(id) == Some(len)));
                    model = found;
                }
            }
        }
        live.flush().unwrap();
        let found: BTreeMap<ObjectId, usize> =
            live.list().unwrap().into_iter().map(|(id, len)| (id, len as usize)).collect();
        prop_assert_eq!(found, model);
    }
}
