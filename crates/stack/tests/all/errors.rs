//! Error reports for users: message, line and hint. One case for each kind of mistake.

use frit_stack::layers::LayerKind;
use frit_stack::{Bytes, Stack, StackError};
use strum::VariantNames;

const GOOD: &str = r#"[media.nand]
profile = "slc-k9-2016"
chips_per_channel = 1
blocks_per_plane = 64
[media.pcm]
profile = "pcm-p8p-2016"
chip_bytes = "256K"
[hfsl]
SSW = 2048
[engine]
scheduler = "hfsl"
"#;

/// Returns the names of all garbage-collection policies, as messages list them.
fn gc_names() -> String {
    let parameters = LayerKind::Hfsl.parameters();
    parameters.iter().find(|def| def.key == "gc").unwrap().names.join(", ")
}

/// Formats each problem as one line: `text:line:column message | hint`.
pub(crate) fn told(e: &StackError) -> Vec<String> {
    let one = |p: &frit_stack::Problem| {
        let place = match (p.text(), p.line_column()) {
            (Some(text), Some((line, column))) => format!("{text}:{line}:{column} "),
            _ => String::new(),
        };
        let hint = p.hint().map(|h| format!(" | {h}")).unwrap_or_default();
        format!("{place}{}{hint}", p.message())
    };
    e.problems().iter().map(one).collect()
}

fn refused(text: &str, sets: &[&str]) -> Vec<String> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let outcome = Stack::parse("t", text, &sets).and_then(|s| s.build(&Bytes::None));
    match outcome {
        Ok(_) => panic!("accepted: {text} {sets:?}"),
        Err(e) => told(&e),
    }
}

/// Returns `GOOD` with one text replaced by another.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn the_stack_that_the_cases_start_from_is_good() {
    Stack::parse("t", GOOD, &[]).unwrap().build(&Bytes::None).unwrap();
}

/// Checks that each text is refused with the given messages.
pub(crate) fn told_as(cases: &[(String, &[&str])]) {
    for (text, want) in cases {
        assert_eq!(refused(text, &[]), *want, "{text}");
    }
}

#[test]
fn unknown_names_are_told_with_line_and_nearest() {
    let kinds = LayerKind::VARIANTS.join(", ");
    let no_layer =
        format!("the stack has no layer | add the table of a layer, such as [hfsl]; there are {kinds}");
    let cases: &[(String, &[&str])] = &[
        (with("SSW = 2048", "SWW = 2048"), &["t:9:1 `hfsl` has no key `SWW` | did you mean `SSW`?"]),
        (
            with("chips_per_channel", "chips_per_chanel"),
            &["t:3:1 `media.nand` has no key `chips_per_chanel` | did you mean `chips_per_channel`?"],
        ),
        (
            with("SSW = 2048", "FUSION_METHOD = \"samelevel\""),
            &[
                "t:9:17 `hfsl.FUSION_METHOD` cannot be 'samelevel'; there are none, cache, same-level, both | did you \
             mean `same-level`?",
            ],
        ),
        (
            with("SSW = 2048", "gc = \"gredy\""),
            &[&format!(
                "t:9:6 `hfsl.gc` cannot be 'gredy'; there are {} | did you mean `greedy`?",
                gc_names()
            )],
        ),
        (
            with("slc-k9-2016", "slc-k8-2016"),
            &[
                "t:2:11 `media.nand.profile` = slc-k8-2016: no such profile; there are slc-k9-2016, pcm-p8p-2016, \
             bnvm-pcm-2019, mlc-openssd-2011, tlc-2020, qlc-2020, tlc-pages-2018, tlc-slc-2024, qlc-pages-2022, dimm-optane-2019, cxl-mem-2023, dram-ddr4, pcm-halo-2012, \
             bnvm-pcm-bytes, reram-2014, mram-2019, lpddr2-nvm-ispfs-2018, s3-standard-2019, s3-express-2023, nvme-p4500-2017, ram-disk-ddr4, the drives of `frit disk list`, or give the path of a \
             .toml file | did you mean `slc-k9-2016`?",
            ],
        ),
        (
            with("chip_bytes = \"256K\"", "t_read = \"3 us\""),
            &[
                "t:7:1 `media.pcm` is a pcm medium and has no key `t_read` | its keys are profile, medium, channels, \
             chips_per_channel, groups_per_channel, bus_per_byte, chip_bytes, write_unit, line_bytes, interleave_bytes, \
             read, write, write_clean, floor_bytes, refresh_bytes, t_refresh, t_fence, endurance, path",
            ],
        ),
        (with("[hfsl]", "[hfls]"), &["t:8:2 there is no layer 'hfls' | did you mean `hfsl`?"]),
        (
            with("[media.nand]", "[meda.nand]"),
            &[
                "t:1:2 there is no layer 'meda' | did you mean `media`?",
                "t:8:1 `hfsl` needs a nand medium, and the stack has none | add [media.nand] with a `profile`; `frit \
             profiles` lists them",
            ],
        ),
        (
            with("scheduler = \"hfsl\"", "scheduler = \"elevator\""),
            &[
                "t:11:13 `engine.scheduler` cannot be 'elevator'; there are fifo, read-first, hfsl, out-of-order, host-first",
            ],
        ),
        (
            with("SSW = 2048", "nand = \"nend\""),
            &["t:9:8 `hfsl.nand`: there is no medium 'nend' | did you mean `nand`?"],
        ),
        ("SSW = 1\n".into(), &["t:1:1 `SSW` is not a key of a stack | it is a key of [hfsl]"]),
        (String::new(), &[&no_layer]),
    ];
    told_as(cases);
}

#[test]
fn the_nearest_key_is_advised_whatever_its_case() {
    for (key, advice) in [
        ("ssw", "did you mean `SSW`?"),
        ("fusion_method", "did you mean `FUSION_METHOD`?"),
        ("gc_lowblocks", "did you mean `gc_low_blocks`?"),
        ("cache_rasio", "did you mean `cache_ratio`?"),
        ("colour", "known names: "),
    ] {
        let problems = refused(&with("SSW = 2048", &format!("{key} = 1")), &[]);
        assert!(problems[0].contains(&format!("has no key `{key}` | {advice}")), "{problems:?}");
    }
}

#[test]
fn values_that_cannot_be_are_told_with_line() {
    let cases: &[(String, &[&str])] = &[
        (
            with("SSW = 2048", "SSW = true"),
            &[
                "t:9:7 `hfsl.SSW`: invalid type: boolean `true`, expected a size: bytes, or a text such as \"4K\" or \
             \"32GiB\"",
            ],
        ),
        (
            with("SSW = 2048", "SSW = \"2Q\""),
            &[
                "t:9:7 `hfsl.SSW`: '2Q' is not a size; write bytes or a number with K, M, G or T, such as 4K or 32GiB",
            ],
        ),
        (
            with("= 64", "= -1"),
            &[
                "t:4:20 `media.nand.blocks_per_plane`: invalid value: integer `-1`, expected a whole number from 0 to \
             4294967295",
            ],
        ),
        (
            with("SSW = 2048", "cache_ratio = 1.5"),
            &["t:9:15 `hfsl.cache_ratio` = 1.5: has to be from 0 to 1"],
        ),
        (
            with("chips_per_channel = 1", "page_bytes = 1000"),
            &[
                "t:3:14 `media.nand.page_bytes` = 1000: has to be a multiple of the sector of 512 bytes, up to 64K",
            ],
        ),
        (
            with("scheduler = \"hfsl\"", "scheduler = \"hfsl\"\nMAX_CMD_SEND_COUNTER = 300"),
            &["t:12:24 `engine.MAX_CMD_SEND_COUNTER` = 300: a whole number from 8 to 255 is needed"],
        ),
    ];
    told_as(cases);
}

#[test]
fn stacks_that_do_not_fit_together_are_told_with_line_and_hint() {
    let engin = format!(
        "t:9:8 there is no layer 'engin' | a table is `media`, `engine` or a layer, whose name or `kind` is one of {}",
        LayerKind::VARIANTS.join(", ")
    );
    let cases: &[(String, &[&str])] = &[
        (
            with("scheduler = \"hfsl\"", "kind = \"in-order\"\nscheduler = \"hfsl\""),
            &["t:11:8 the in-order engine executes commands in order of emission, not in the order of the \
                 scheduler 'hfsl' | use `kind = \"event\"`, or `scheduler = \"fifo\"`"],
        ),
        (
            with("blocks_per_plane = 64", "blocks_per_plane = 64\nplane_ops = \"multi\""),
            &["t:5:1 the scheduler 'hfsl' cannot execute the multi-plane commands of `media.nand` | use \
                 `engine.kind = \"in-order\"`, `engine.scheduler = \"out-of-order\"`, or `plane_ops = \
                 \"independent\"`"],
        ),
        (
            with(
                "blocks_per_plane = 64",
                "blocks_per_plane = 64\nsuspend = \"erase\"\nt_suspend_erase = \"20 us\"",
            )
            .replace("\"hfsl\"", "\"out-of-order\""),
            &[
                "t:5:1 the scheduler 'out-of-order' suspends no operation, but `media.nand` has suspensions | use \
                 `engine.scheduler = \"read-first\"`, or `suspend = \"none\"`",
            ],
        ),
        (
            with("SSW = 2048", "SSW ="),
            &["t:9:6 invalid TOML: string values must be quoted, expected literal string"],
        ),
        (with("[engine]", "[media.pcm]"), &["t:10:8 invalid TOML: duplicate key"]),
        (
            with("SSW = 2048", "pcm = \"nand\""),
            &["t:9:7 `hfsl.pcm` needs a pcm medium; 'nand' is nand | known names: pcm"],
        ),
        (
            with("[engine]", "[media.flash]\nprofile = \"slc-k9-2016\"\n[engine]"),
            &[
                "t:8:1 the stack has 2 nand media, and `hfsl` names none | name it: `nand = ` one of \"nand\", \"flash\", \
               or all: `nand = [\"nand\", \"flash\"]`",
            ],
        ),
        (
            with("[engine]", "[other]\nkind = \"hfsl\"\nnand = \"none\"\n[engine]"),
            &["t:12:8 `other.nand`: there is no medium 'none' | the layer needs a nand medium; name one"],
        ),
        // `engine` is the name of a table, but not a kind of layer.
        (with("[hfsl]", "[mine]\nkind = \"engin\""), &[&engin]),
        (
            "media = 3\n[hfsl]\n".into(),
            &["t:1:9 `media` has to be a table | write [media], and its keys below"],
        ),
    ];
    told_as(cases);
}

#[test]
fn sizes_that_do_not_add_up_are_told_where_they_are_given() {
    let cases: &[(String, &str)] = &[
        (
            with("SSW = 2048", "FLASHSIZE = \"2G\""),
            "t:9:13 `hfsl.FLASHSIZE` = 2147483648: the media of the stack",
        ),
        (
            with("SSW = 2048", "capacity = \"1G\""),
            "t:9:12 `hfsl.capacity` = 1073741824: the NAND of the stack holds",
        ),
        (
            with("blocks_per_plane = 64", "blocks_per_plane = 3"),
            "t:4:20 `media.nand.blocks_per_plane` = 3: a NAND unit",
        ),
        (with("256K", "8K"), "t:5:1 `hfsl`: no space: partition"),
        (
            with("SSW = 2048", "SUBPAGE_SIZE = 300"),
            "t:9:16 `hfsl.SUBPAGE_SIZE` = 300: with pages of 2048 bytes",
        ),
        // The value at fault comes from the profile, so the reported line is that of the profile.
        (
            with("chips_per_channel = 1", "channels = 4000\nchips_per_channel = 4000"),
            "t:3:12 `media.nand.channels` = 4000: makes 16000000 units",
        ),
    ];
    for (text, want) in cases {
        let told = refused(text, &[]);
        assert!(told.len() == 1 && told[0].starts_with(want), "{told:?}\n{want}");
    }
    // Without PCM, the default fusion method is impossible.
    let no_pcm = GOOD.replace("[media.pcm]\nprofile = \"pcm-p8p-2016\"\nchip_bytes = \"256K\"\n", "");
    let told = refused(&no_pcm, &[]);
    assert_eq!(
        told,
        ["t:5:1 `hfsl.FUSION_METHOD` = same-level: needs a PCM medium in the stack; or use \"none\"",]
    );
}

#[test]
fn all_mistakes_are_told_at_once_in_order() {
    let text = GOOD
        .replace("slc-k9-2016", "slc")
        .replace("SSW = 2048", "SSW = []\nSWW = 1\ngc = \"x\"")
        .replace("chip_bytes", "chips");
    let lines: Vec<usize> = refused(&text, &["engine.nonsense=1"])
        .iter()
        .map(|t| t.split(':').nth(1).and_then(|l| l.parse().ok()).unwrap())
        .collect();
    assert_eq!(lines, [2, 7, 9, 10, 11, 1]);
}

#[test]
fn overrides_are_told_by_themselves() {
    for (set, want) in [
        ("SSW", "--set:1:1 --set SSW: no `=` | write key=value, such as hfsl.SSW=1024"),
        ("hfsl.SWW=1", "--set:1:1 `hfsl` has no key `SWW` | did you mean `SSW`?"),
        ("SWW=1", "--set:1:1 --set SWW=1: no table of the stack has a key `SWW` | did you mean `SSW`?"),
        (
            "channels=3",
            "--set:1:1 --set channels=3: `channels` is a key of several tables | use media.nand.channels or \
             media.pcm.channels",
        ),
        ("gc=best", &format!("--set:1:4 `hfsl.gc` cannot be 'best'; there are {}", gc_names())),
        ("nand.channels=0", "--set:1:15 `media.nand.channels` = 0: has to be 1 to 4096"),
        ("hfsl.SSW.x=1", "--set:1:1 --set hfsl.SSW.x=1: `SSW` is not a table"),
        ("hfsl=1", "--set:1:6 `hfsl` has to be a table | write [hfsl], and its keys below"),
        ("=1", "--set:1:1 --set =1: a key is missing | write key=value, such as hfsl.SSW=1024"),
        (
            "blocks_per_plane=6",
            "--set:1:18 `media.nand.blocks_per_plane` = 6: a NAND unit needs at least 7 good blocks: \
             2 for cleaning, 3 open, 1 to gain and 1 for data",
        ),
    ] {
        assert_eq!(refused(GOOD, &[set]), [want], "{set}");
    }
}

#[test]
fn the_line_is_shown_and_underlined() {
    let e = Stack::parse("mine.toml", &with("SSW = 2048", "SWW = 2048"), &[]).unwrap_err();
    let mut shown = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    miette::GraphicalReportHandler::new_themed(theme).render_report(&mut shown, &e).unwrap();
    let want = "  × `hfsl` has no key `SWW`
    ╭─[mine.toml:9:1]
  8 │ [hfsl]
  9 │ SWW = 2048
    · ─┬─
    ·  ╰── unknown key
 10 │ [engine]
    ╰────
  help: did you mean `SSW`?
";
    assert_eq!(shown, want);
}

#[test]
fn a_missing_file_and_an_unknown_name_are_told() {
    let none = Stack::load("/no/such/stack.toml", &[]).unwrap_err().to_string();
    assert!(none.starts_with("cannot read the stack /no/such/stack.toml: "), "{none}");
    let e = Stack::load("hfsl-papre", &[]).unwrap_err();
    assert_eq!(e.problems()[0].hint(), Some("did you mean `hfsl-paper`?"));
    assert!(e.to_string().contains("neither a file nor a builtin stack"), "{e}");
}

/// Returns the error of a built-in stack with overrides under which it cannot be built.
fn told_of(stack: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let e = Stack::builtin(stack, &sets).and_then(|s| s.build(&Bytes::None)).err().unwrap();
    told(&e).concat()
}

#[test]
fn levelers_of_hfsl_are_refused_in_the_words_of_their_keys() {
    for (sets, words) in [
        (
            &["pcm_wear_leveling=sfc"][..],
            "`hfsl.pcm_wear_stripe` = 32768: 4 MiB of PCM are less than two stripes",
        ),
        (&["pcm_wear_stripe=3000"], "`hfsl.pcm_wear_stripe` = 3000: has to be a power of two"),
        (
            &["pcm_wear_leveling=start-gap", "pcm_wear_stripe=4K", "pcm_wear_interval=0"],
            "`hfsl.pcm_wear_interval` = 0: has to be at least 1",
        ),
        (&["pcm_wear_leveling=start-gop"], "`hfsl.pcm_wear_leveling` cannot be 'start-gop'"),
        (
            &["pcm=none", "FUSION_METHOD=none", "pcm_wear_leveling=start-gap"],
            "`hfsl.pcm_wear_leveling` = start-gap: needs a PCM medium",
        ),
        (&["pcm_over_files=true"], "no table of the stack has a key `pcm_over_files`"),
    ] {
        let e = told_of("hfsl-small", sets);
        assert!(e.contains(words), "{words} in {e}");
    }
}

#[test]
fn a_cache_is_refused_in_the_words_of_its_table() {
    for (sets, words) in [
        (
            &["wear_banks=16", "chip_bytes=1M"][..],
            "`cache.wear_stripe` = 32768: 8 MiB of PCM are less than two stripes",
        ),
        (
            &["wear_leveling=sfc", "wear_stripe=64K"],
            "`cache.wear_cubes` = 32: has to be at least 1, and at most the ",
        ),
        (&["wear_leveling=start-gap", "wear_banks=0"], "`cache.wear_banks` = 0: has to be 1 to 4096"),
        (&["disk.bytes=0"], "`media.disk.bytes` = 0 B: has to be whole sectors of 512 bytes, at least one"),
    ] {
        let e = told_of("halo-small", sets);
        assert!(e.contains(words), "{words} in {e}");
    }
}
