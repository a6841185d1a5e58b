//! Programs in a build without the feature `programs`: no program is executed.

use crate::outcome::{Failure, Status};
#[cfg(not(feature = "programs"))]
use {
    super::limits::Grant, crate::engine::Start, crate::instructions::Program, crate::source::Source,
    std::sync::Arc,
};

/// In place of the compiled modules of an engine.
#[cfg(not(feature = "programs"))]
#[derive(Default, Debug)]
pub(crate) struct Programs;

/// Refuses an instruction with a program.
#[cfg(not(feature = "programs"))]
pub(crate) fn execute(_: &Program, _: Arc<dyn Source>, _: Grant, _: Start) -> Result<(), Failure> {
    Err(refusal())
}

/// Failure of each instruction with a program. The engine may be that of a server, which a client cannot replace.
fn refusal() -> Failure {
    Failure::new(
        Status::Unsupported,
        "the frit that runs here was built without programs; build one that has them with `make build` or \
         `cargo build --release -p frit-cli`, and mount, serve or open the file with it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_programs_says_how_to_get_one_with_them() {
        let failure = refusal();
        assert_eq!(failure.status, Status::Unsupported);
        for words in ["without programs", "`make build`", "`cargo build --release -p frit-cli`"] {
            assert!(failure.message.contains(words), "{failure}");
        }
    }
}
