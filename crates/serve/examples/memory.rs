//! Serves memory over NBD, to measure the protocol without a volume.
//!
//! ```text
//! cargo run --release -p frit-serve --example memory -- unix:/tmp/memory.sock 1G
//! nbdinfo 'nbd+unix:///?socket=/tmp/memory.sock'
//! ```

use frit_serve::nbd::{Export, NbdServer, ServerOptions};
use frit_serve::testing::MemoryBackend;
use frit_serve::{Device, DeviceOptions, Logger};
use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().ok_or("usage: memory ADDRESS SIZE")?.parse()?;
    let bytes = frit_core::size::parse(&args.next().ok_or("usage: memory ADDRESS SIZE")?)?;
    let log = Logger::new(|line| drop(writeln!(std::io::stderr(), "{line}")));
    let options = DeviceOptions { log, ..DeviceOptions::default() };
    let device = Device::new(Box::new(MemoryBackend::new(bytes as usize)), options);
    let export = Arc::new(Export::new(Arc::clone(&device), "", "memory"));
    let server =
        NbdServer::start(export, ServerOptions { addresses: vec![address], ..ServerOptions::default() })?;
    writeln!(stdout(), "serving until standard input ends: {}", server.addresses()[0].uri(""))?;
    // The input is ignored; its end stops the server.
    drop(stdin().read_to_end(&mut Vec::new()));
    server.stop(Duration::from_secs(5));
    Ok(device.close()?)
}
