//! Compiles the library that `frit exec` loads into programs, from the sources of this crate, so that
//! the program `frit` contains it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = PathBuf::from(variable("OUT_DIR")).join("libfrit_direct.so");
    let is_supported =
        variable("CARGO_CFG_TARGET_ARCH") == "x86_64" && variable("CARGO_CFG_TARGET_OS") == "linux";
    if !is_supported {
        std::fs::write(&library, []).unwrap_or_else(|e| fail(&format!("{}: {e}", library.display())));
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "frit_direct"])
        .args(["--cfg", "frit_preload", "--target", &variable("TARGET")])
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "strip=symbols"])
        .arg("-o")
        .arg(&library)
        .arg("src/lib.rs");
    match rustc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("rustc: {status}")),
        Err(e) => fail(&format!("rustc: {e}")),
    }
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    std::process::exit(1)
}
