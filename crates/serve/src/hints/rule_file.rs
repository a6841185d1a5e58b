//! Rules that a volume keeps: a text file in its directory, beside the log of changes.

use frit_core::HintRange;
use frit_core::files::{self, OutputFile, TEXT_BYTES_MAX};
use frit_core::paths;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Rules that a volume keeps.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SavedHints {
    /// Ranges with a hint.
    pub ranges: Vec<HintRange>,
    /// Recognize metadata of file systems in what clients write.
    pub detect_metadata: bool,
}

/// The file of a volume with its rules, one a line. A volume without rules has no file.
#[derive(Clone, Debug)]
pub struct HintFile {
    path: PathBuf,
}

impl HintFile {
    /// Name of the file.
    pub const NAME: &'static str = "hints";
    /// Line that switches the detector on.
    const DETECT: &'static str = "detect-metadata";

    /// Returns the file of a volume.
    #[must_use]
    pub fn of(volume: &Path) -> HintFile {
        HintFile { path: volume.join(HintFile::NAME) }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the rules.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no rule.
    pub fn load(&self) -> io::Result<SavedHints> {
        let text = match files::read_text(&self.path, TEXT_BYTES_MAX) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(SavedHints::default()),
            text => text?,
        };
        let mut saved = SavedHints::default();
        for (n, line) in text.lines().enumerate() {
            match line.trim() {
                "" => {}
                comment if comment.starts_with('#') => {}
                HintFile::DETECT => saved.detect_metadata = true,
                rule => saved.ranges.push(rule.parse().map_err(|why: String| {
                    io::Error::new(ErrorKind::InvalidData, format!("line {}: {why}", n + 1))
                })?),
            }
        }
        Ok(saved)
    }

    /// Replaces the rules. They are durable when the function returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, saved: &SavedHints) -> io::Result<()> {
        if *saved == SavedHints::default() {
            match paths::remove_file(&self.path) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                removed => removed?,
            }
            // The removal is durable only with its directory.
            return self.path.parent().map_or(Ok(()), |dir| paths::open_dir(dir)?.sync_all());
        }
        let mut text = String::from("# Hints of this volume, changed by `frit ctl VOLUME hint`.\n");
        if saved.detect_metadata {
            text += HintFile::DETECT;
            text += "\n";
        }
        saved.ranges.iter().for_each(|range| text += &format!("{range}\n"));
        // A new file has the access rights of the volume's other files.
        let mut file = OutputFile::create_private(&self.path)?;
        file.write_all(text.as_bytes())?;
        file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_kept_and_a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = HintFile::of(dir.path());
        assert_eq!(file.load().unwrap(), SavedHints::default());
        let ranges = vec!["0+4K=hot".parse().unwrap(), "1G+1=metadata".parse().unwrap()];
        let saved = SavedHints { ranges, detect_metadata: true };
        file.store(&saved).unwrap();
        assert_eq!(file.load().unwrap(), saved);
        file.store(&SavedHints::default()).unwrap();
        assert!(!file.path().exists(), "a volume without rules has no file");
        file.store(&SavedHints::default()).unwrap();
        std::fs::write(file.path(), "# rules\n\n0+4K=hot\n0+4K=warm\n").unwrap();
        let why = file.load().unwrap_err().to_string();
        assert!(why.contains("line 4") && why.contains("warm"), "{why}");
    }
}
