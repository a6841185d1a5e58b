//! Passes the commit of the build to the crate, if there is a repository.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let out = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A commit, or an edit of any crate, may change the result.
    for path in
        [git(&["rev-parse", "--git-path", "logs/HEAD"]), Some("../../crates".into())].into_iter().flatten()
    {
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|s| !s.is_empty());
        println!("cargo::rustc-env=FRIT_COMMIT={commit}{}", if dirty { "-dirty" } else { "" });
    }
}
