//! Power cuts of an object store alone, between any two of its commands, with torn writes.

use frit_core::{Cause, ObjectDevice, ObjectId, ReadTarget, Sink, Tok, WriteData};
use frit_media::object::ObjectBacking;
use frit_media::{AnyStore, Hardware, ObjectConfig, ObjectMedium, ObjectTiming};
use frit_torture::block::access_log::AccessLog;
use frit_torture::block::crash_image::{ImageBuilder, TearGranularity, first_uncertain};
use frit_torture::block::cut::{CutOptions, choose_cuts};
use frit_torture::block::graph::Graph;
use frit_torture::block::medium::{SharedMedium, TortureMedium};
use frit_torture::block::recording_sink::{Mutation, recorded, recording_sink, start_recording};
use frit_torture::block::target::MediumShape;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request to the store. Each is one request of the recording.
#[derive(Clone, Copy, Debug)]
enum Step {
    Claim,
    Put(ObjectId, u32),
    Delete(ObjectId),
    Flush,
    Release,
}

fn config() -> ObjectConfig {
    ObjectConfig {
        name: "remote".into(),
        object_bytes: 8192,
        objects: 5,
        connections: 2,
        timing: ObjectTiming {
            t_put: frit_core::Nanos(1),
            t_get: frit_core::Nanos(1),
            t_delete: frit_core::Nanos(1),
            connection_ps_per_byte: 2,
            link_ps_per_byte: 1,
        },
        serial: 0,
    }
}

fn id(epoch: u32, number: u32) -> ObjectId {
    ObjectId { epoch, number }
}

/// Two writers. The second fills the store, so that slots are used again.
fn steps() -> Vec<Step> {
    use Step::{Claim, Delete, Flush, Put, Release};
    let mut steps = vec![Claim];
    steps.extend([Put(id(1, 1), 8192), Put(id(1, 2), 5000), Flush, Put(id(1, 3), 512), Delete(id(1, 1))]);
    steps.extend([Put(id(1, 4), 8192), Flush, Put(id(1, 5), 100), Release, Claim]);
    steps.extend([Put(id(2, 1), 8192), Delete(id(1, 2)), Put(id(2, 2), 4097), Delete(id(1, 3)), Flush]);
    steps.extend([Delete(id(1, 4)), Put(id(2, 3), 3000), Put(id(2, 4), 600)]);
    steps
}

fn contents(id: ObjectId, len: u32) -> Vec<u8> {
    (0..len).map(|i| (i / 3) as u8 ^ (id.number * 16 + id.epoch) as u8).collect()
}

type Device = ObjectMedium;

fn open(medium: &SharedMedium) -> Device {
    let c = config();
    let store = AnyStore::Custom(medium.open(c.store_bytes()));
    ObjectMedium::new(c, ObjectBacking::Flat(store), &mut Hardware::new()).unwrap()
}

/// Records the steps, and returns their graph.
fn record(medium: &SharedMedium, mutation: Option<Mutation>) -> Graph {
    let log = Arc::new(AccessLog::default());
    medium.lock().access_log = Some(log.clone());
    let mut sink = recording_sink(log.clone(), mutation, 0..0);
    let mut device: Device = open(medium);
    start_recording(&mut sink);
    for step in steps() {
        sink.begin();
        let (s, start) = (&mut sink, Default::default());
        match step {
            Step::Claim => drop(device.claim(s, 0).unwrap()),
            Step::Release => device.release(s).unwrap(),
            Step::Put(id, len) => {
                let data = contents(id, len);
                let tok = device.put(s, id, WriteData::Bytes(&data), Cause::Host, start).unwrap();
                s.ack(tok);
            }
            Step::Delete(id) => {
                let tok = device.delete(s, id, Cause::Gc, start).unwrap();
                s.ack(tok);
            }
            Step::Flush => {
                let tok = device.flush(s, Cause::Host, start).unwrap();
                s.ack(tok);
            }
        }
        sink.end();
    }
    medium.lock().access_log = None;
    let c = config();
    let shape = MediumShape {
        name: c.name.clone(),
        kind: frit_core::MediumKind::Object,
        nand: None,
        line_bytes: 512,
        word_bytes: 512,
        data_bytes: c.data_bytes(),
        of_top: true,
        verified: true,
        units: 0..2,
    };
    Graph::new(&recorded(sink), log.take(), &[shape])
}

/// Checks the store that a cut leaves. `acknowledged` tells of each step whether it was.
fn verify(medium: &SharedMedium, acknowledged: &dyn Fn(usize) -> bool) -> Result<(), String> {
    let steps = steps();
    let last_flush = (0..steps.len()).filter(|&i| matches!(steps[i], Step::Flush) && acknowledged(i)).max();
    let lens: BTreeMap<ObjectId, u32> = steps
        .iter()
        .filter_map(|s| if let Step::Put(id, len) = s { Some((*id, *len)) } else { None })
        .collect();
    let position = |wanted: ObjectId, delete: bool| {
        steps.iter().position(|s| match s {
            Step::Put(id, _) => !delete && *id == wanted,
            Step::Delete(id) => delete && *id == wanted,
            _ => false,
        })
    };
    let sink = &mut Sink::untimed();
    let mut device: Device = open(medium);
    let listed: BTreeMap<ObjectId, u32> =
        ObjectDevice::list(&mut device, sink).unwrap().into_iter().collect();
    for (&id, &len) in &lens {
        let before = |at: Option<usize>| at.is_some_and(|at| last_flush.is_some_and(|flush| at < flush));
        let flushed = before(position(id, false)) && position(id, true).is_none();
        if listed.get(&id).is_none_or(|&found| found != len) {
            if flushed || listed.contains_key(&id) {
                return Err(format!("object {id} is missing or has another size"));
            }
            continue;
        }
        if before(position(id, true)) {
            return Err(format!("object {id} was deleted and is listed"));
        }
        let mut found = vec![0; len as usize];
        match device.get(sink, id, 0, ReadTarget::Bytes(&mut found), Cause::Host, Tok::DONE) {
            Ok(_) if found == contents(id, len) => {}
            Ok(_) => return Err(format!("object {id} has other contents")),
            Err(e) if flushed || !e.to_string().contains(&format!("object {id}")) => {
                return Err(e.to_string());
            }
            Err(_) => {}
        }
    }
    if listed.keys().any(|id| !lens.contains_key(id)) {
        return Err("an object that was never put".into());
    }
    let claimed = device.claim(sink, 0).unwrap();
    if listed.keys().any(|id| id.epoch >= claimed) {
        return Err(format!("epoch {claimed} is claimed again"));
    }
    Ok(())
}

/// Cuts a recorded run, and returns the number of cuts and the first violation.
fn cut(mutation: Option<Mutation>) -> (usize, Option<String>) {
    let medium = SharedMedium::new(TortureMedium::new(0, None));
    let graph = record(&medium, mutation);
    let media = [medium];
    let mut cuts = choose_cuts(&graph, 1, CutOptions { most: 3000, exhaustive: false });
    cuts.extend(choose_cuts(&graph, 2, CutOptions { most: 1000, exhaustive: true }));
    cuts.sort_by_key(|c| first_uncertain(&graph, c));
    let mut builder = ImageBuilder::new(&graph, &media, TearGranularity::default());
    let mut failed = None;
    for cut in &cuts {
        builder.apply(cut, first_uncertain(&graph, cut));
        let acknowledged = |step: usize| graph.is_acknowledged(step, &cut.set);
        if let Err(why) = verify(&media[0], &acknowledged) {
            failed.get_or_insert(why);
        }
    }
    (cuts.len(), failed)
}

#[test]
fn flushed_objects_survive_every_cut_and_no_object_has_wrong_contents() {
    let (cuts, failed) = cut(None);
    assert!(cuts > 1500, "{cuts}");
    assert_eq!(failed, None);
}

#[test]
fn a_store_that_acknowledges_too_early_is_found() {
    let (_, failed) = cut(Some(Mutation::AckAtOnce));
    assert!(failed.is_some_and(|why| why.contains("missing")));
}
