//! A small trace in every format, with the peculiarities of each; used by the tests of damaged
//! input.

/// Returns format, bytes and number of requests of each sample.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(crate) fn samples() -> Vec<(&'static str, Vec<u8>, usize)> {
    let text = |s: &str| s.as_bytes().to_vec();
    vec![
        (
            "recorded",
            text(
                "time_us,op,sector,sectors,flags\n0,R,8200,8,M\n20.5,W,4194304,16,MS\n21,F,0,0,\n30,W,64,8,PF\n40,D,0,4096,\n",
            ),
            6,
        ),
        (
            "spc",
            text(
                "0,303567,3584,w,0.000000\n1,55590,3072,W,0.026214\n1,240840,3072,r,0.026214,extra,fields\n0, 8, 512, R, 1.5\n",
            ),
            4,
        ),
        (
            "msr",
            text(
                "128166465299039421,web,3,Read,32256,8192,112509\n128166465299119535,web,3,Write,182082715136,4096,32396\n128166465299134409,web,2,Read,512,4096,1\n",
            ),
            3,
        ),
        ("disksim", text("0.000 5 174224064 16 1\n0.221 5 162947904 16 0\n0.594\t5\t174933616\t16\t1\n"), 3),
        (
            "blkparse",
            text(
                "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
                 \u{20} 8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
                 \u{20} 8,0    3        3     0.000002197   697  D   W 223490 + 8 [kjournald]\n\
                 \u{20} 8,0    3        4     0.000119310   697  Q FWFSM 223498 + 8 [jbd2/sda1-8]\n\
                 \u{20} 8,0    3        5     0.000200000   697  Q FWS [jbd2/sda1-8]\n\
                 \u{20} 8,0    3        6     0.000300000   697  Q   DS 4096 + 1024 [fstrim]\n\
                 \u{20} 8,16   3        7     0.000400000   697  Q   RA 4096 + 64 [cat]\n\
                 \u{20} 8,0    3        0     0.000500000     0  m   N cfq697 insert_request\n\
                 CPU3 (sda):\n Reads Queued:           1,       32KiB\t Writes Queued:           2,        8KiB\n\
                 Total (sda):\n Throughput (R/W): 0KiB/s / 8KiB/s\nEvents (sda): 8 entries\nSkips: 0 forward (0 -   0.0%)\n",
            ),
            6,
        ),
        (
            "fio2",
            text(
                "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 4096 8192\n/dev/sdb wait 250 0\n/dev/sdb read 0 512\n/dev/sdb sync 0 0\n/dev/sdb trim 65536 65536\n/dev/sdb close\n",
            ),
            4,
        ),
        (
            "fio3",
            text(
                "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n5 /dev/sdb write 4096 8192\n9 /dev/sdb read 0 512\n12 /dev/sdb datasync 0 0\n20 /dev/sdb close\n",
            ),
            3,
        ),
        (
            "fiu",
            text(
                "89966522969723 4270 rpc.mountd 18579576 8 W 6 0 d6c75ba46e82326fefa545b57a12e221\n89966527950584 4253 my daemon 508516672 8 R 6 1 88b93b628d84082186026d9da044f173\n89966527996712 4253 nfsd 508516680 16 W 6 0\n",
            ),
            3,
        ),
        ("vscsi", vscsi(), 4),
        (
            "biotracer",
            text(
                "0\t\t8\t\t4096\t\t4\t\t1.740780627\t\t1.740812815\t\t1.740851877\t\t1.741075471\n7119104\t\t25\t\t12800\t\t5\t\t1.992525679\t\t1.992577033\t\t1.992609169\t\t1.994677814\n",
            ),
            2,
        ),
        (
            "diskmon",
            text(
                "0\t0.016375\t0.00038147\t0\tWrite\t3271215\t8\r\n1\t0.016375\t3.8e-05\t1\tRead\t108745397\t128\r\n",
            ),
            2,
        ),
    ]
}

/// Returns three reads and writes, a flush and a TEST UNIT READY, in version 1.
fn vscsi() -> Vec<u8> {
    let record = |i: u32, cmd: u16, len: u32, lbn: u64| {
        let mut b = Vec::new();
        b.extend_from_slice(&i.to_le_bytes());
        b.extend_from_slice(&len.to_le_bytes());
        b.extend_from_slice(&1u32.to_le_bytes());
        b.extend_from_slice(&cmd.to_le_bytes());
        b.extend_from_slice(&0x0100u16.to_le_bytes());
        b.extend_from_slice(&lbn.to_le_bytes());
        b.extend_from_slice(&(5_631_000_000_000 + u64::from(i) * 77).to_le_bytes());
        b
    };
    [
        record(1, 0x2a, 4096, 41),
        record(2, 0x28, 512, 7),
        record(3, 0, 0, 0),
        record(4, 0x35, 0, 0),
        record(5, 0x8a, 65536, 1 << 33),
    ]
    .concat()
}
