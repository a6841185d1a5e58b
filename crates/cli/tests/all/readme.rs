//! The commands in the README work as described.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that runs while other commands run.
struct Served(Child);

impl Served {
    fn start(frit: &mut Command, socket: &Path) -> Served {
        let mut server = frit.stdout(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !socket.exists() {
            assert!(server.try_wait().unwrap().is_none(), "the server ended");
            assert!(Instant::now() < end, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Served(server)
    }

    fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success(), "the server was asked to stop, and failed");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
    }
}

#[test]
fn commands_in_the_readme_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut ran = 0;
    let mut served = None;
    std::fs::create_dir(out.path().join("mnt")).unwrap();
    for line in readme.lines().filter_map(|l| l.strip_prefix("target/release/frit ")) {
        let command = line.split('#').next().unwrap_or(line).trim();
        // `reproduce` takes minutes without optimization, `isp` and `exec` need a file; they have tests of their own.
        if ["reproduce", "isp", "exec"].iter().any(|own| command.starts_with(own)) {
            continue;
        }
        // Runs of a minute are shortened to two seconds.
        let command = command.replace("--minutes 1", "--minutes 0.03").replace("--size 4G", "--size 64M");
        if command.contains("/mnt") && !Path::new("/dev/fuse").exists() {
            println!("skipped: no /dev/fuse: {command}");
            continue;
        }
        let there = |name: &str| out.path().join(name).to_string_lossy().into_owned();
        let args = command.split_whitespace().map(|a| match a {
            "vol" | "img" => there(a),
            "/mnt" => there("mnt"),
            "unix:vol.sock" => format!("unix:{}", there("vol.sock")),
            page if page.ends_with(".html") => there(page),
            other => other.trim_matches('\'').to_owned(),
        });
        let mut frit = Command::new(env!("CARGO_BIN_EXE_frit"));
        frit.args(args).current_dir(&root);
        if command.starts_with("serve") {
            served = Some(Served::start(&mut frit, &out.path().join("vol.sock")));
            ran += 1;
            continue;
        }
        let run = frit.output().unwrap();
        assert!(run.status.success(), "{command}\n{}", String::from_utf8_lossy(&run.stderr));
        ran += 1;
    }
    served.expect("the README serves a volume").stop();
    assert!(ran >= 10, "{ran} commands in README.md");
    for link in readme.split("](").skip(1).filter_map(|l| l.split(')').next()) {
        assert!(root.join(link).exists(), "README.md links to {link}");
    }
}
