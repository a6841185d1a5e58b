//! Several NAND media in the role of one: their names, and the media that cannot be joined.

use crate::errors::told_as;
use frit_stack::{Bytes, Stack};

const MEDIA: &str = "[media.a]\nprofile = \"slc-k9-2016\"\nchips_per_channel = 1\nblocks_per_plane = 64\n\
                     [media.b]\nprofile = \"slc-k9-2016\"\nchips_per_channel = 1\nblocks_per_plane = 64\n";

fn with(nand: &str) -> String {
    format!("{MEDIA}[hfsl]\nnand = {nand}\nFUSION_METHOD = \"none\"\n")
}

fn parse(text: &str) -> Stack {
    Stack::parse("t", text, &[]).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

#[test]
fn media_that_cannot_be_joined_are_refused_at_their_line() {
    let text = with("[\"a\", \"b\"]");
    let other = |key: &str| text.replace("[hfsl]", &format!("{key}\n[hfsl]"));
    let help = |key: &str| {
        format!(
            " | media of one `nand` list have equal page_bytes, pages_per_block and blocks in a unit; for others, \
             put a stripe above one hfsl for each medium (or set media.b.{key})"
        )
    };
    let page = format!("t:9:14 `hfsl.nand`: 'b' has 4096 page_bytes, and 'a' has 2048{}", help("page_bytes"));
    let pages =
        format!("t:9:19 `hfsl.nand`: 'b' has 32 pages_per_block, and 'a' has 64{}", help("pages_per_block"));
    let blocks = format!(
        "t:8:20 `hfsl.nand`: 'b' has 65 blocks in a unit, and 'a' has 64{}",
        help("blocks_per_plane")
    );
    let cases: &[(String, &[&str])] = &[
        (other("page_bytes = \"4K\""), &[&page]),
        (other("pages_per_block = 32"), &[&pages]),
        (text.replacen("64\n[hfsl]", "65\n[hfsl]", 1), &[&blocks]),
        (
            with("[\"a\", \"a\"]"),
            &["t:10:8 `hfsl.nand`: 'a' is already in use | a medium serves one layer in one role"],
        ),
        (
            with("[]"),
            &[
                "t:10:8 `hfsl.nand` names 0 and needs at least 1 | holds the pages; pages are striped over the units of \
               several",
            ],
        ),
        (
            with("3"),
            &[
                "t:10:8 `hfsl.nand` has to be a name or a list of names of media | holds the pages; pages are striped \
               over the units of several",
            ],
        ),
        (
            text.replace("nand = [\"a\", \"b\"]\n", ""),
            &[
                "t:9:1 the stack has 2 nand media, and `hfsl` names none | name it: `nand = ` one of \"a\", \"b\", or \
               all: `nand = [\"a\", \"b\"]`",
            ],
        ),
    ];
    told_as(cases);
}

#[test]
fn a_list_of_one_name_is_the_name() {
    let media = "[media.a]\nprofile = \"slc-k9-2016\"\nblocks_per_plane = 64\n";
    let texts = ["nand = \"a\"", "nand = [\"a\"]", ""]
        .map(|nand| parse(&format!("{media}[hfsl]\n{nand}\nFUSION_METHOD = \"none\"\n")).identity());
    assert!(texts.iter().all(|t| *t == texts[0]), "{texts:?}");
    assert!(texts[0].text.contains("nand = \"a\""), "{}", texts[0].text);
}

#[test]
fn an_array_has_the_space_and_the_units_of_all_its_media() {
    let sectors = |text: &str| parse(text).build(&Bytes::None).unwrap().layer.info().sectors;
    let one = |chips| {
        let chips = format!("chips_per_channel = {chips}");
        sectors(&with("\"a\"").replacen("chips_per_channel = 1", &chips, 1))
    };
    assert_eq!(sectors(&with("[\"a\", \"b\"]")), one(2));
    let stack = parse(&with("[\"b\", \"a\"]"));
    let (summary, _) = stack.summary().unwrap();
    assert_eq!(summary.layers[0].on["nand"], ["b", "a"]);
    assert_eq!(parse(&stack.identity().text).identity(), stack.identity());
    assert_ne!(parse(&with("[\"a\", \"b\"]")).identity().sha256, stack.identity().sha256);
    // A medium can have more units than the others.
    let wide = with("[\"a\", \"b\"]").replacen("chips_per_channel = 1", "chips_per_channel = 2", 1);
    assert_eq!(sectors(&wide), one(3));
}
