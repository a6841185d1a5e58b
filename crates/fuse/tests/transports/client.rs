//! A mount whose server is another process.

use crate::server::{DIRECTORY, TRANSPORT};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A mounted server. Dropping it ends the server, and unmounts.
pub(crate) struct Place {
    root: tempfile::TempDir,
    server: Mutex<Child>,
}

/// Calls a test with a mount over each transport that this machine has.
pub(crate) fn each_transport(test: impl Fn(&Place) + Sync) {
    for transport in ["off", "on"] {
        if let Some(place) = Place::mount(transport) {
            assert_eq!(place.stat("rings"), u64::from(transport == "on"));
            // A test may bind its thread.
            std::thread::scope(|scope| scope.spawn(|| test(&place)).join().unwrap());
        }
    }
}

/// Starts a server. Returns its process, and what it says first.
fn start(directory: &Path, transport: &str) -> (Child, String) {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serve", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(TRANSPORT, transport)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    (server, said)
}

impl Place {
    /// Mounts. Returns `None`, and says why, if this machine cannot.
    pub(crate) fn mount(transport: &str) -> Option<Place> {
        let root = tempfile::tempdir().unwrap();
        let (server, said) = start(root.path(), transport);
        let place = Place { root, server: Mutex::new(server) };
        if said.starts_with("mounted") {
            return Some(place);
        }
        assert!(said.starts_with("cannot"), "{said}");
        eprintln!("skipped with --io-uring={transport}: {}", said.trim());
        None
    }

    /// Returns why a mount is refused, or `None` if the machine cannot mount at all.
    pub(crate) fn refusal(transport: &str) -> Option<String> {
        drop(Place::mount("off")?);
        let root = tempfile::tempdir().unwrap();
        let (mut server, said) = start(root.path(), transport);
        server.kill().unwrap();
        server.wait().unwrap();
        Some(said)
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Returns a number that the server counts.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let mut text = String::new();
        fs::File::open(self.path("stats")).unwrap().read_to_string(&mut text).unwrap();
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.trim().parse().unwrap()
    }

    pub(crate) fn kill_server(&self) {
        let mut server = self.server.lock().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    pub(crate) fn unmount(&self) {
        let by_root = rustix::mount::unmount(self.root(), rustix::mount::UnmountFlags::empty());
        if by_root.is_err() {
            assert!(Command::new("fusermount3").arg("-u").arg(self.root()).status().unwrap().success());
        }
    }

    pub(crate) fn server_has_ended(&self) -> bool {
        self.server.lock().unwrap().try_wait().unwrap().is_some()
    }

    pub(crate) fn server_succeeded(&self) -> bool {
        self.server.lock().unwrap().wait().unwrap().success()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The end of the process ends the connection, whatever waits for it.
        let mut server = self.server.lock().unwrap();
        let _ = server.kill();
        let _ = server.wait();
        if rustix::mount::unmount(self.root.path(), rustix::mount::UnmountFlags::DETACH).is_err() {
            let unmount =
                Command::new("fusermount3").arg("-uz").arg(self.root.path()).stderr(Stdio::null()).status();
            drop(unmount);
        }
    }
}
