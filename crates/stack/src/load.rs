//! Loading of a stack from a file, from text, or from those that come with frit.

use crate::error::{Problem, Result, StackError};
use crate::stack::Stack;
use crate::{builtin, read};
use frit_core::files::{self, TEXT_BYTES_MAX};
use std::path::Path;

impl Stack {
    /// Reads a stack from a file, or a builtin stack. `name` is the name of a builtin stack if it
    /// has neither a directory nor an extension and no such file exists. Each of `sets` is an
    /// override, `key=value`.
    ///
    /// # Errors
    /// A file that cannot be read, and all errors in its contents.
    pub fn load(name: impl AsRef<Path>, sets: &[String]) -> Result<Stack> {
        let path = name.as_ref();
        let shown = path.display().to_string();
        if path.extension().is_none() && path.components().count() == 1 && !path.is_file() {
            return Stack::builtin(&shown, sets);
        }
        let text = files::read_text(path, TEXT_BYTES_MAX).map_err(|e| {
            let hint = "a builtin stack has a name without directory and extension; `frit check` without one lists them";
            StackError::new(
                &shown,
                vec![Problem::new(format!("cannot read the stack {shown}: {e}")).help(hint)],
            )
        })?;
        let dir = path.parent().unwrap_or(Path::new(""));
        read::read(&shown, &text, sets, dir)
    }

    /// Reads a stack from text. Errors refer to the text as `name`. Paths of profiles are relative
    /// to the current directory.
    ///
    /// # Errors
    /// All errors in the text.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Stack> {
        read::read(name, text, sets, Path::new(""))
    }

    /// Returns a stack that comes with frit; see [`builtins`](crate::builtins).
    ///
    /// # Errors
    /// An unknown name, and overrides that are not valid.
    pub fn builtin(name: &str, sets: &[String]) -> Result<Stack> {
        read::read(name, builtin::text(name)?, sets, Path::new(""))
    }
}
