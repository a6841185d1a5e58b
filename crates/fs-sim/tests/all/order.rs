//! Order of commands: a posted write never passes a fence. The file system's promises about power
//! cuts depend on it (`frit torture fs` cuts between fences).

use frit_core::{Op, Sink};
use frit_engine::{Recorder, Recording};
use frit_fs::{AttrChanges, Caller, Clock, FileSystem, FormatOptions, Fs, Ino, NewInode, RenameMode};
use frit_fs_sim::{Area, Devices, HostModel, MediumCall, RecordedCall, SimMedium};

/// Returns for each command the set of commands that must be durable before it.
fn ancestors(recording: &Recording) -> Vec<Vec<bool>> {
    let mut all: Vec<Vec<bool>> = Vec::with_capacity(recording.ops.len());
    for (i, op) in recording.ops.iter().enumerate() {
        let mut before = vec![false; i];
        for a in &op.after {
            before[*a as usize] = true;
            for (to, from) in before.iter_mut().zip(&all[*a as usize]) {
                *to |= *from;
            }
        }
        all.push(before);
    }
    all
}

/// Executes operations of every kind. Returns their calls and commands.
fn recorded(host: &str) -> (Vec<RecordedCall>, Recording) {
    let parts = Devices::new("lpddr2-nvm-ispfs-2018", HostModel::find(host).unwrap(), Some(1 << 20)).unwrap();
    let medium = SimMedium::new(parts, Sink::new(Recorder::default())).unwrap();
    medium.record_calls();
    let me = Caller::ROOT;
    let fs = Fs::format(
        &medium,
        FormatOptions { uuid: Some(7), clock: Clock::counted(1), ..FormatOptions::default() },
    )
    .unwrap();
    let dir = fs.create(&me, Ino::ROOT, b"dir", NewInode::directory(0o755)).unwrap().ino;
    let file = fs.create(&me, dir, b"a", NewInode::file(0o644)).unwrap().ino;
    fs.write(file, 0, &[1; 5000]).unwrap();
    fs.write(file, 100, &[2; 300]).unwrap();
    fs.append(file, &[3; 100]).unwrap();
    fs.rename(&me, (dir, b"a"), (Ino::ROOT, b"b"), RenameMode::Replace).unwrap();
    fs.set_attr(&me, file, &AttrChanges { size: Some(10), ..AttrChanges::default() }).unwrap();
    fs.sync_file(file, false).unwrap();
    fs.unlink(&me, Ino::ROOT, b"b").unwrap();
    drop(fs);
    (medium.take_calls(), Recorder::finish(medium.into_sink()).unwrap().0)
}

#[test]
fn what_was_posted_never_passes_a_fence() {
    for host in ["zedboard-2018", "direct"] {
        let (steps, recording) = recorded(host);
        let before = ancestors(&recording);
        let writes = |step: &RecordedCall| {
            let range = step.first as usize..step.end as usize;
            range.filter(|i| recording.ops[*i].cmd.op == Op::PcmWrite).collect::<Vec<_>>()
        };
        let mut fenced: Vec<usize> = Vec::new();
        let mut posted: Vec<usize> = Vec::new();
        let mut fences = 0;
        for step in &steps {
            if step.call == MediumCall::Fence {
                fenced.append(&mut posted);
                fences += 1;
            }
            for write in writes(step) {
                let missing = fenced.iter().find(|f| !before[write][**f]);
                assert_eq!(missing, None, "{host}: {write} passes what was fenced");
                posted.push(write);
            }
        }
        assert!(fences > 15 && fenced.len() > 100, "{host}: {fences} fences, {} writes", fenced.len());
    }
}

#[test]
fn a_slot_is_in_the_cells_before_the_words_that_it_names() {
    let (steps, recording) = recorded("zedboard-2018");
    let before = ancestors(&recording);
    // The first three fences belong to the format. After them, metadata is protected by the
    // journal.
    let made =
        steps.iter().position(|s| s.area == Some(Area::Journal) && s.call == MediumCall::Write).unwrap();
    let mut slot: Option<&RecordedCall> = None;
    let mut homes = 0;
    for step in &steps[made..] {
        match (step.call, step.area) {
            (MediumCall::Write, Some(Area::Journal)) => slot = Some(step),
            (
                MediumCall::Write,
                Some(Area::Inodes | Area::Bitmap | Area::Ledger | Area::Orphans | Area::Tables),
            ) => {
                let slot = slot.expect("a slot comes first");
                for home in step.first..step.end {
                    let home = home as usize;
                    if recording.ops[home].cmd.op != Op::PcmWrite {
                        continue;
                    }
                    homes += 1;
                    for word in slot.first..slot.end {
                        let write = recording.ops[word as usize].cmd.op == Op::PcmWrite;
                        assert!(!write || before[home][word as usize], "{step:?} passes its slot");
                    }
                }
            }
            _ => {}
        }
    }
    assert!(homes > 20, "{homes}");
}

#[test]
fn without_the_edges_of_a_fence_the_test_would_see_it() {
    let (steps, mut recording) = recorded("zedboard-2018");
    for op in &mut recording.ops {
        if op.cmd.op == Op::PcmFence {
            op.after.clear();
        }
    }
    let before = ancestors(&recording);
    let fence = steps.iter().position(|s| s.call == MediumCall::Fence).unwrap();
    let last = |steps: &[RecordedCall]| {
        steps
            .iter()
            .flat_map(|s| s.first..s.end)
            .find(|i| recording.ops[*i as usize].cmd.op == Op::PcmWrite)
            .unwrap() as usize
    };
    assert!(!before[last(&steps[fence..])][last(&steps[..fence])]);
}
