//! Model of the host: how the processor reaches the memory, and the cost of its code. Every value
//! has a source.

use crate::isp::{IspHost, IspParams};
use frit_core::{Error, Nanos, Result, size};
use frit_media::DramTiming;
use frit_media::profile::{ByteSize, Picos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const BUILTINS: [&str; 3] = [
    include_str!("../hosts/zedboard-2018.toml"),
    include_str!("../hosts/cxl-compute-2023.toml"),
    include_str!("../hosts/direct.toml"),
];

/// Parameters of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostParams {
    /// Time for one byte on the link between processor and memory, which transfers in one direction
    /// at a time; 0 for no link.
    pub link_per_byte: Picos,
    /// Additional time of each transfer over the link.
    pub link_latency: Picos,
    /// Largest request of the processor in bytes, a power of two. Larger accesses are split at its
    /// multiples, and a load transfers it completely over the link. 0 means that an access is one
    /// request.
    pub burst_bytes: ByteSize,
    /// Number of requests of one load that are in flight at a time.
    pub outstanding: u32,
    /// Bytes of stores that the processor does not wait for. Beyond these it waits until the oldest
    /// store is in the cells.
    pub posted_bytes: ByteSize,
    /// Processor time of each file system operation, before its first access.
    pub software: Picos,
    /// Processor time for each byte that is copied between the memory and the caller.
    pub copy_per_byte: Picos,
}

/// A host: its parameters and their sources.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostModel {
    /// Name of the host.
    pub name: String,
    /// Description of the modelled system, and of what the model omits.
    pub about: String,
    /// Parameters.
    pub values: HostParams,
    /// Source of each parameter.
    pub sources: BTreeMap<String, String>,
    /// In-storage processing; `None` if the memory has no engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isp: Option<IspHost>,
}

impl HostModel {
    /// Returns the built-in hosts.
    ///
    /// # Errors
    /// None; a test parses all of them.
    pub fn builtins() -> Result<Vec<HostModel>> {
        let parse = |text: &&str| {
            toml::from_str(text).map_err(|e| Error::param("host", "", e.to_string().trim_end()))
        };
        BUILTINS.iter().map(parse).collect()
    }

    /// Returns a built-in host by name, with parameters changed after commas:
    /// `zedboard-2018,software=2 us`.
    ///
    /// # Errors
    /// An unknown name or key, or an invalid value.
    pub fn find(spec: &str) -> Result<HostModel> {
        let mut parts = spec.split(',');
        let name = parts.next().unwrap_or_default();
        let all = HostModel::builtins()?;
        let names: Vec<String> = all.iter().map(|h| h.name.clone()).collect();
        let mut host = all.into_iter().find(|h| h.name == name).ok_or_else(|| {
            Error::param("host", name, format!("no such host; the hosts are {}", names.join(", ")))
        })?;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            host.set(key.trim(), value.trim())?;
        }
        if host.name != spec {
            host.name = spec.into();
        }
        host.values.check()?;
        host.isp.as_ref().map_or(Ok(()), |isp| isp.values.check())?;
        Ok(host)
    }

    /// Sets a parameter by its name.
    fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let given = (key.to_owned(), "Given".to_owned());
        if !IspParams::KEYS.contains(&key) {
            self.values.set(key, text)?;
            self.sources.extend([given]);
            return Ok(());
        }
        let none = || Error::param(key, text, "is a key of in-storage processing, which this host has not");
        let isp = self.isp.as_mut().ok_or_else(none)?;
        isp.values.set(key, text)?;
        isp.sources.extend([given]);
        Ok(())
    }

    /// Returns the parameters of in-storage processing.
    ///
    /// # Errors
    /// The memory of this host has no engine.
    pub fn isp(&self) -> Result<&IspParams> {
        let why = "its memory has no engine for in-storage processing";
        self.isp.as_ref().map(|isp| &isp.values).ok_or_else(|| Error::param("host", &self.name, why))
    }
}

impl HostParams {
    /// Sets a parameter by its name.
    ///
    /// # Errors
    /// An unknown name, or an invalid value.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let time = || Picos::parse(text).map_err(|why| Error::param(key, text, why));
        let bytes = || size::parse(text).map(ByteSize).map_err(|why| Error::param(key, text, why));
        match key {
            "link_per_byte" => self.link_per_byte = time()?,
            "link_latency" => self.link_latency = time()?,
            "burst_bytes" => self.burst_bytes = bytes()?,
            "outstanding" => {
                self.outstanding = text.parse().map_err(|_| Error::param(key, text, "has to be a number"))?;
            }
            "posted_bytes" => self.posted_bytes = bytes()?,
            "software" => self.software = time()?,
            "copy_per_byte" => self.copy_per_byte = time()?,
            _ => {
                let why = "is not a key of a host; the keys are link_per_byte, link_latency, burst_bytes, outstanding, \
                           posted_bytes, software, copy_per_byte";
                return Err(Error::param(key, text, why));
            }
        }
        Ok(())
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// The first invalid value, with the allowed values.
    pub fn check(&self) -> Result<()> {
        let burst = self.burst_bytes.0;
        if burst != 0 && !(burst.is_power_of_two() && (8..=1 << 20).contains(&burst)) {
            let why = "has to be a power of two from 8 bytes to 1 MiB, or 0 for accesses as they come";
            return Err(Error::param("burst_bytes", size::format(burst), why));
        }
        if self.outstanding == 0 || self.outstanding > 1 << 16 {
            return Err(Error::param("outstanding", self.outstanding, "has to be 1 to 65536"));
        }
        Ok(())
    }

    /// Returns the cost of a transfer over the link, or `None` without a link.
    pub(crate) fn link(&self) -> Option<DramTiming> {
        let timing = DramTiming { latency: self.link_latency.nanos(), ps_per_byte: self.link_per_byte.0 };
        (self.link_per_byte.0 > 0 || self.link_latency.0 > 0).then_some(timing)
    }

    /// Returns the cost of an operation's code, or `None` if it is free.
    pub(crate) fn calls(&self) -> Option<DramTiming> {
        (self.software.0 > 0).then_some(DramTiming { latency: self.software.nanos(), ps_per_byte: 0 })
    }

    /// Returns the cost of copying, or `None` if it is free.
    pub(crate) fn copies(&self) -> Option<DramTiming> {
        let timing = DramTiming { latency: Nanos::ZERO, ps_per_byte: self.copy_per_byte.0 };
        (self.copy_per_byte.0 > 0).then_some(timing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_host_names_its_source() {
        for host in HostModel::builtins().unwrap() {
            host.values.check().unwrap();
            let toml::Value::Table(values) = toml::Value::try_from(host.values).unwrap() else { panic!() };
            let keys: Vec<&String> = values.keys().collect();
            assert_eq!(host.sources.keys().collect::<Vec<_>>(), keys, "{}", host.name);
            assert!(host.sources.values().all(|s| s.len() > 3) && host.about.len() > 40);
            let Some(isp) = &host.isp else { continue };
            isp.values.check().unwrap();
            let mut keys = IspParams::KEYS.to_vec();
            keys.sort_unstable();
            assert_eq!(isp.sources.keys().collect::<Vec<_>>(), keys, "{}", host.name);
            assert!(isp.sources.values().all(|s| s.len() > 6), "{}", host.name);
        }
    }

    #[test]
    fn values_are_set_by_name_and_wrong_ones_refused() {
        let host = HostModel::find("zedboard-2018,software=2 us,posted_bytes=64K").unwrap();
        assert_eq!(host.values.calls().unwrap().latency, Nanos(2000));
        assert_eq!(host.values.posted_bytes.0, 64 << 10);
        assert!(HostModel::find("direct").unwrap().values.link().is_none());
        let host = HostModel::find("zedboard-2018,engine_bytes_per_cycle=4").unwrap();
        assert_eq!(host.isp().unwrap().engine_mb_s(), 400.0);
        assert!(HostModel::find("direct").unwrap().isp().is_err());
        for (spec, key) in [
            ("zed", "host"),
            ("direct,sofware=2us", "sofware"),
            ("direct,software=2", "software"),
            ("direct,burst_bytes=48", "burst_bytes"),
            ("direct,outstanding=0", "outstanding"),
            ("direct,outstanding=x", "outstanding"),
            ("direct,engine_cycle=1 ns", "engine_cycle"),
            ("zedboard-2018,engine_cycle=1", "engine_cycle"),
            ("zedboard-2018,engine_request_bytes=96", "engine_request_bytes"),
            ("zedboard-2018,engine_buffers=0", "engine_buffers"),
            ("zedboard-2018,poll_period=0 ns", "poll_period"),
        ] {
            let e = HostModel::find(spec).unwrap_err();
            assert!(matches!(&e, Error::Param { key: k, .. } if k == key), "{spec}: {e}");
        }
    }
}
