//! Small stacks of every kind.

#![allow(dead_code, clippy::expect_used)]

use frit_stack::Stack;
use frit_torture::subject::StackSubject;

/// NAND of 2 units × `blocks` × 8 pages, PCM of 2 channels.
pub(crate) fn text(method: &str, page: u32, blocks: u32, pcm: &str, more: &str) -> String {
    let spare = if more.contains("over_provisioning") { "" } else { "over_provisioning = 0.25" };
    format!(
        r#"
[media.nand]
profile = "slc-k9-2016"
channels = 2
chips_per_channel = 1
blocks_per_plane = {blocks}
pages_per_block = 8
page_bytes = {page}

[media.pcm]
profile = "pcm-p8p-2016"
chip_bytes = "{pcm}"

[hfsl]
FUSION_METHOD = "{method}"
map_persist = "each"
heat_window = 64
{spare}
{more}
"#
    )
}

pub(crate) fn subject(name: &str, text: &str) -> StackSubject {
    let (name, text) = (name.to_string(), text.to_string());
    StackSubject::new(move |sets| Stack::parse(&name, &text, sets)).expect("a stack of these tests")
}

pub(crate) fn subjects() -> Vec<(&'static str, StackSubject)> {
    [
        ("both-4k", text("both", 4096, 12, "4K", "SSW = 2048")),
        ("level-2k", text("same-level", 2048, 14, "3K", "SSW = 1024")),
        ("cache-1k", text("cache", 1024, 16, "2K", "")),
        ("none-4k", text("none", 4096, 9, "2K", "over_provisioning = 0.1")),
        ("none-512", text("none", 512, 16, "2K", "")),
        ("level-16k", text("same-level", 16384, 12, "8K", "SSW = 4096\ncopyback = true")),
    ]
    .into_iter()
    .map(|(name, text)| (name, subject(name, &text)))
    .collect()
}
