//! Effect of overrides, identity of a stack, and persistence of bytes in files across builds.

use frit_core::{Hints, ReadTarget, Sector, Sink, StackView, WriteData};
use frit_media::FileAccess;
use frit_stack::layers::{LayerConfig, LayerKind};
use frit_stack::{Bytes, EngineKind, Stack};

fn small(sets: &[&str]) -> Stack {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    Stack::builtin("hfsl-small", &sets).unwrap()
}

fn hash(stack: &Stack) -> String {
    stack.identity().sha256
}

#[test]
fn an_override_is_as_if_the_file_said_it() {
    let text = frit_stack::builtins().iter().find(|b| b.name == "hfsl-small").unwrap().text;
    for (set, from, to) in [
        ("SSW=1024", "SSW = 2048", "SSW = 1024"),
        ("hfsl.SSW=1K", "SSW = 2048", "SSW = \"1K\""),
        ("gc=fifo", "SSW = 2048", "SSW = 2048\ngc = \"fifo\""),
        ("copyback=true", "SSW = 2048", "SSW = 2048\ncopyback = true"),
        ("nand.blocks_per_plane=128", "= 256\n", "= 128\n"),
        ("t_read=30 us", "= 256\n", "= 256\nt_read = \"30 us\"\n"),
        ("media.pcm.channels=1", "\"256K\"", "\"256K\"\nchannels = 1"),
        ("write=[[512, \"9 us\"]]", "\"256K\"", "\"256K\"\nwrite = [[512, \"9 us\"]]"),
        ("raw_access=[\"db\"]", "SSW = 2048", "SSW = 2048\nraw_access = [\"db\"]"),
        ("engine.kind=event", "SSW = 2048", "SSW = 2048\n[engine]\nkind = \"event\""),
    ] {
        assert!(text.contains(from), "{from}");
        let edited = Stack::parse("hfsl-small", &text.replacen(from, to, 1), &[]).unwrap();
        assert_eq!(small(&[set]).identity(), edited.identity(), "{set}");
        assert_ne!(hash(&small(&[set])), hash(&small(&[])), "{set}");
    }
}

#[test]
fn the_last_override_of_a_key_counts() {
    assert_eq!(hash(&small(&["SSW=512", "hfsl.SSW=1024"])), hash(&small(&["SSW=1024"])));
}

#[test]
fn identity_is_what_a_stack_means_and_not_how_it_is_written() {
    let a = "[media.nand]\nprofile = \"slc-k9-2016\"\n[hfsl]\nFUSION_METHOD = \"none\"\n";
    let b = "# the same\nabout = \"b\"\nhfsl = { FUSION_METHOD = \"none\", gc = \"greedy\", SSW = \"2K\" }\n\
             engine.kind = \"in-order\"\nmedia.nand = { channels = 8, profile = \"slc-k9-2016\" }\n";
    let [a, b] = [a, b].map(|t| Stack::parse("t", t, &[]).unwrap().identity());
    assert_eq!(a.text, b.text);
    assert_eq!(a.sha256, b.sha256);
    assert_eq!(a.sha256.len(), 64);
}

#[test]
fn the_canonical_text_is_a_stack_of_the_same_identity() {
    for b in frit_stack::builtins() {
        for sets in [vec![], vec!["engine.scheduler=hfsl".to_owned(), "MAX_CMD_SEND_COUNTER=64".to_owned()]] {
            let identity = Stack::builtin(b.name, &sets).unwrap().identity();
            let again = Stack::parse(b.name, &identity.text, &[]).unwrap();
            assert_eq!(again.identity(), identity);
        }
    }
}

#[test]
fn the_engine_takes_names_as_the_paper_or_the_scheduler_writes_them() {
    for key in ["MAX_CMD_SEND_COUNTER", "max-cmd-send-counter", "max_cmd_send_counter"] {
        let stack = small(&["engine.scheduler=hfsl", &format!("{key}=77")]);
        let config = stack.engine_config();
        assert_eq!((config.kind, config.scheduler_name()), (EngineKind::Event, "hfsl"));
        let (summary, _) = stack.summary().unwrap();
        assert!(summary.engine.parameters.values().any(|v| v == "77"), "{:?}", summary.engine);
    }
}

#[test]
fn pcm_can_be_left_out_and_what_does_nothing_is_said() {
    let stack = small(&["hfsl.pcm=none", "FUSION_METHOD=none"]);
    let said: Vec<&str> = stack.warnings().iter().map(frit_stack::Problem::message).collect();
    assert_eq!(
        said,
        [
            "`hfsl.SSW` has no effect: only the methods same-level and both use it",
            "no layer uses the medium 'pcm': it is not built",
        ]
    );
    assert_eq!(stack.hardware().unwrap().devices().len(), 1);
    assert_eq!(small(&[]).hardware().unwrap().devices().len(), 2);
    let (_, warnings) = small(&["chip_bytes=68K"]).summary().unwrap();
    assert!(warnings[0].message().starts_with("the map takes 86 % of the PCM 'pcm'"), "{warnings:?}");
}

#[test]
fn parameters_of_a_layer_reach_it() {
    let stack = small(&["SSW=512", "gc=cost-benefit", "capacity=100M"]);
    let LayerConfig::Hfsl(config) = &stack.layer().config else { panic!("another layer") };
    assert_eq!((config.ssw, config.gc.as_str()), (512, "cost-benefit"));
    let mut built = stack.build(&Bytes::None).unwrap();
    assert_eq!(built.layer.info().sectors, 100 << 11);
    assert_eq!(built.layer.params().get("SSW").unwrap(), "512");
}

#[test]
fn every_key_of_a_layer_is_listed_with_a_default() {
    for &kind in LayerKind::all() {
        let listed = kind.defaults();
        for key in kind.keys() {
            assert!(listed.iter().any(|p| p.key == key), "{} of {}", key, kind.name());
        }
        for choice in kind.choices() {
            let default = listed.iter().find(|p| p.key == choice.key).unwrap();
            assert!(choice.names.contains(&default.value.as_str()), "{default:?}");
        }
    }
}

#[test]
fn bytes_in_files_are_there_again_after_a_halt() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = Bytes::files(dir.path().join("volume"));
    let data = vec![0xA5; 4096];
    let stack = small(&[]);
    let mut built = stack.build(&bytes).unwrap();
    built.layer.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&data), Hints::NONE).unwrap();
    let busy = stack.build(&bytes).unwrap_err().to_string();
    assert!(busy.contains("another program uses the backing file"), "{busy}");
    built.layer.halt(&mut Sink::untimed()).unwrap();
    drop(built);
    let mut built = stack.build(&bytes).unwrap();
    built.layer.boot(&mut Sink::untimed()).unwrap();
    let mut back = vec![0; 4096];
    built.layer.read(&mut Sink::untimed(), Sector(80), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
    assert!(back == data);
    drop(built);
    // Files created for another geometry are refused.
    let other = small(&["blocks_per_plane=128"]).build(&bytes).unwrap_err().to_string();
    assert!(other.contains("another geometry"), "{other}");
}

#[test]
fn profiles_of_ones_own_are_found_beside_the_stack() {
    let dir = tempfile::tempdir().unwrap();
    let profile = "name = \"mine\"\nmedium = \"nand\"\nabout = \"a test\"\n\
                   [values]\nprofile = \"slc-k9-2016\"\nblocks_per_plane = 32\n\
                   [sources]\nblocks_per_plane = \"chosen\"\n";
    std::fs::write(dir.path().join("mine.toml"), profile).unwrap();
    let stack = dir.path().join("stack.toml");
    let text = "[media.flash]\nprofile = \"mine.toml\"\nchannels = 2\n[hfsl]\nFUSION_METHOD = \"none\"\n";
    std::fs::write(&stack, text).unwrap();
    let (summary, _) = Stack::load(&stack, &[]).unwrap().summary().unwrap();
    let flash = &summary.media[0];
    assert_eq!((flash.bytes, flash.channels, flash.units), (2 * 2 * 32 * 128 * 1024, 2, 4));
    let source = |key: &str| flash.values.iter().find(|v| v.key == key).map(|v| v.source.as_str()).unwrap();
    assert_eq!(source("channels"), "the stack");
    assert_eq!(source("blocks_per_plane"), "chosen");
    assert!(source("page_bytes").contains("HFSL paper"), "{}", source("page_bytes"));
    // An error in a value of a profile is reported at the line that names the profile.
    std::fs::write(dir.path().join("mine.toml"), profile.replace("= 32", "= 0")).unwrap();
    let e = Stack::load(&stack, &[]).unwrap_err();
    assert_eq!(e.problems()[0].line_column(), Some((2, 11)));
    assert!(e.to_string().contains("blocks_per_plane` = 0"), "{e}");
}

#[test]
fn a_dram_medium_buffers_what_is_read_from_nand() {
    let text = r#"
        media.nand = { profile = "slc-k9-2016", blocks_per_plane = 16 }
        media.buffer = { profile = "dram-ddr4", bytes = "1M" }
        hfsl = { FUSION_METHOD = "none" }
    "#;
    let stack = Stack::parse("t", text, &[]).unwrap();
    assert!(stack.warnings().is_empty());
    let mut built = stack.build(&Bytes::Memory).unwrap();
    let (sink, at) = (&mut Sink::untimed(), Sector(8));
    built.layer.write(sink, at, WriteData::Bytes(&[5; 4096]), Hints::NONE).unwrap();
    for _ in 0..3 {
        let mut got = [0; 4096];
        built.layer.read(sink, at, ReadTarget::Bytes(&mut got), Hints::NONE).unwrap();
        assert_eq!(got, [5; 4096]);
    }
    let mut view = StackView::default();
    built.layer.visible(&mut view);
    assert_eq!((view.metric("dram_hits"), view.metric("dram_misses")), (Some(4.0), Some(2.0)));
}

#[test]
fn the_path_of_a_medium_is_for_volumes_and_no_part_of_the_identity() {
    let stack = small(&["media.nand.path=/dev/nvme0n1", "pcm.path=\"pmem/pcm.bin\""]);
    assert_eq!(stack.identity(), small(&[]).identity());
    let path = |name: &str| stack.media().iter().find(|m| m.name == name).unwrap().path.clone();
    assert_eq!(path("nand").unwrap().to_str(), Some("/dev/nvme0n1"));
    assert_eq!(path("pcm").unwrap().to_str(), Some("pmem/pcm.bin"));
    assert!(small(&[]).media().iter().all(|m| m.path.is_none()));
    stack.build(&Bytes::None).unwrap();
    for bad in ["nand.path=7", "nand.path=\"\""] {
        let e = Stack::builtin("hfsl-small", &[bad.to_owned()]).unwrap_err();
        assert!(
            e.problems()[0].message().contains("`media.nand.path` has to be the path of a file"),
            "{e:?}"
        );
    }
}

#[test]
fn the_access_to_a_disk_is_for_volumes_and_no_part_of_the_identity() {
    let halo = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        Stack::builtin("halo-small", &sets)
    };
    let access = |stack: &Stack| stack.media().iter().find(|m| m.name == "disk").unwrap().access;
    let plain = halo(&[]).unwrap();
    assert_eq!(access(&plain), FileAccess::PageCache);
    for (text, expected) in [("direct", FileAccess::Direct), ("io-uring", FileAccess::IoUring)] {
        let stack = halo(&[&format!("media.disk.access={text}")]).unwrap();
        assert_eq!((access(&stack), stack.identity()), (expected, plain.identity()));
    }
    let problem = |set| halo(&[set]).unwrap_err().problems()[0].message().to_owned();
    assert_eq!(
        problem("media.disk.access=true"),
        "`media.disk.access` has to be page-cache, direct, io-uring"
    );
    assert!(problem("media.pcm.access=direct").contains("has no key `access`"));
}

#[test]
fn parameters_of_another_policy_or_leveler_are_warned_of() {
    let said_of = |stack: &str, sets: &[&str]| -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let stack = Stack::builtin(stack, &sets).unwrap();
        stack.warnings().iter().map(|w| w.message().to_owned()).collect()
    };
    let said = |sets: &[&str]| said_of("halo-small", sets);
    assert_eq!(
        said(&["policy=lru", "TH_BCOUNTS=5", "wow_group=32K", "wear_cubes=4"]),
        [
            "`cache.TH_BCOUNTS` has no effect: the policy is not halo",
            "`cache.wow_group` has no effect: the policy is not wow",
            "`cache.wear_cubes` has no effect: only `wear_leveling` = sfc has cubes",
        ]
    );
    let none: [&str; 0] = [];
    assert_eq!(said(&["TH_BCOUNTS=5"]), none);
    assert_eq!(said(&["wear_leveling=sfc", "wear_stripe=4K", "wear_cubes=4"]), none);
    assert_eq!(
        said_of("hfsl-small", &["pcm_wear_interval=5", "pcm_wear_cubes=4"]),
        [
            "`hfsl.pcm_wear_interval` has no effect: wear leveling is off",
            "`hfsl.pcm_wear_cubes` has no effect: only `pcm_wear_leveling` = sfc has cubes",
        ]
    );
}
