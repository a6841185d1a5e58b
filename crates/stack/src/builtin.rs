//! Stacks that come with frit: the files in the directory `stacks/`.

use crate::decode::nearest;
use crate::error::{Problem, Result, StackError};

/// A stack that comes with frit.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Name of the stack.
    pub name: &'static str,
    /// Text of the stack file.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),* $(,)?) => {
        const BUILTINS: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../stacks/", $name, ".toml")),
        }),*];
    };
}

builtins!(
    "hfsl-paper",
    "hfsl-cache",
    "hfsl-fig2a",
    "hfsl-both",
    "no-pcm",
    "hfsl-small",
    "hfsl-two-nand",
    "no-pcm-small",
    "nand-only-bench",
    "modern",
    "ftl-openssd",
    "ftl-classic",
    "ftl-openssd-base",
    "ftl-small",
    "ftl-modern",
    "ftl-slc",
    "nameless-openssd",
    "nameless-small",
    "nameless-files",
    "nameless-files-openssd",
    "ssc-small",
    "zns",
    "zns-small",
    "flashtier-small",
    "ssc-flashtier",
    "ssc-flashcache",
    "ssc-no-cache",
    "halo-paper",
    "halo-ours",
    "halo-small",
    "halo-modern",
    "halo-mirror",
    "halo-hfsl",
    "halo-thin",
    "halo-objects",
    "four-layers",
    "disk-alone",
    "ntl-paper",
    "ntl-small",
);

/// Returns all builtin stacks.
#[must_use]
pub fn builtins() -> &'static [Builtin] {
    BUILTINS
}

pub(crate) fn text(name: &str) -> Result<&'static str> {
    BUILTINS.iter().find(|b| b.name == name).map(|b| b.text).ok_or_else(|| {
        let names: Vec<&str> = BUILTINS.iter().map(|b| b.name).collect();
        let message =
            format!("'{name}' is neither a file nor a builtin stack; builtin stacks: {}", names.join(", "));
        StackError::new(
            name,
            vec![Problem::new(message).help(match nearest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a file has an extension or a directory in its name: `./mine`, `mine.toml`".into(),
            })],
        )
    })
}
