//! The place of a store of objects, as the key `url` of a medium gives it.

use std::path::PathBuf;
use std::time::Duration;

/// Time limit of a request if the URL gives none.
const DEFAULT_TIMEOUT_S: u64 = 30;
const TIMEOUT_S_MAX: u64 = 3600;

/// A service that stores objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CloudService {
    /// Amazon S3, or a server with its interface.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
}

/// The place of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorePlace {
    /// A directory. A relative path begins at the directory of the volume.
    Directory(PathBuf),
    /// Memory of this process, by name. It is lost at the end of the process.
    Memory(String),
    /// A bucket of a service, and a prefix of names without a `/` at its end.
    Cloud {
        /// The service.
        service: CloudService,
        /// Name of the bucket or container.
        bucket: String,
        /// Prefix of the names; empty if there is none.
        prefix: String,
    },
}

/// The place of a store and the options of its use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectUrl {
    /// The text, without its options.
    pub name: String,
    /// The place.
    pub place: StorePlace,
    /// Address of the server, for a service that is not that of its vendor.
    pub endpoint: Option<String>,
    /// Region of the service.
    pub region: Option<String>,
    /// Time limit of a request with its repetitions.
    pub timeout: Duration,
    /// `true` if a claim waits for requests of a former writer that did not release the store.
    pub takeover_waits: bool,
}

impl ObjectUrl {
    /// Parses `file:///path`, `memory://name`, `s3://bucket/prefix`, `gs://…`, `az://…`, each with
    /// options after a `?`, or a path.
    ///
    /// # Errors
    /// A sentence that states the problem and the accepted form.
    pub fn parse(text: &str) -> Result<ObjectUrl, String> {
        if text.is_empty() || text.contains(|c: char| c.is_control()) {
            return Err("a URL or a path is needed, without control characters".into());
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(ObjectUrl::at(text, StorePlace::Directory(text.into())));
        };
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let place_of = |service| cloud(service, place);
        let parsed = match scheme {
            "file" if place.starts_with('/') => StorePlace::Directory(place.into()),
            "file" => return Err("a file URL has an absolute path: file:///directory".into()),
            "memory" if !place.is_empty() => StorePlace::Memory(place.into()),
            "memory" => return Err("a store in memory needs a name: memory://name".into()),
            "s3" => place_of(CloudService::S3)?,
            "gs" => place_of(CloudService::Gs)?,
            "az" => place_of(CloudService::Az)?,
            other => {
                return Err(format!("'{other}' is not a kind of store; there are file, memory, s3, gs, az"));
            }
        };
        let name = format!("{scheme}://{place}");
        options.split('&').filter(|o| !o.is_empty()).try_fold(ObjectUrl::at(&name, parsed), option)
    }

    fn at(name: &str, place: StorePlace) -> ObjectUrl {
        ObjectUrl {
            name: name.into(),
            place,
            endpoint: None,
            region: None,
            timeout: Duration::from_secs(DEFAULT_TIMEOUT_S),
            takeover_waits: true,
        }
    }
}

fn cloud(service: CloudService, place: &str) -> Result<StorePlace, String> {
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    if bucket.is_empty() {
        let scheme: &str = service.into();
        return Err(format!("the name of a bucket is needed: {scheme}://bucket/prefix"));
    }
    if bucket.contains(['@', ':']) {
        return Err(
            "a URL has no credentials and no port; credentials come from environment variables, and \
                    a server from ?endpoint=…"
                .into(),
        );
    }
    let prefix = prefix.trim_matches('/');
    if prefix.split('/').any(|part| prefix.contains('/') && part.is_empty()) {
        return Err("the prefix has an empty part".into());
    }
    Ok(StorePlace::Cloud { service, bucket: bucket.into(), prefix: prefix.into() })
}

fn option(mut url: ObjectUrl, option: &str) -> Result<ObjectUrl, String> {
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    match key {
        "endpoint" if value.starts_with("http://") || value.starts_with("https://") => {
            url.endpoint = Some(value.trim_end_matches('/').into());
        }
        "endpoint" => return Err("endpoint has to begin with http:// or https://".into()),
        "region" if !value.is_empty() => url.region = Some(value.into()),
        "region" => return Err("region needs a name".into()),
        "timeout_s" => {
            let seconds = value.parse().ok().filter(|s| (1..=TIMEOUT_S_MAX).contains(s));
            let seconds =
                seconds.ok_or_else(|| format!("timeout_s = {value}: has to be 1 to 3600 seconds"))?;
            url.timeout = Duration::from_secs(seconds);
        }
        "takeover" => {
            url.takeover_waits = match value {
                "wait" => true,
                "at-once" => false,
                _ => return Err(format!("takeover = {value}: has to be wait or at-once")),
            };
        }
        _ => {
            return Err(format!("'{key}' is not an option; there are endpoint, region, timeout_s, takeover"));
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> StorePlace {
        ObjectUrl::parse(text).unwrap().place
    }

    #[test]
    fn places_and_options_are_parsed() {
        assert_eq!(place("objects"), StorePlace::Directory("objects".into()));
        assert_eq!(place("file:///var/o?timeout_s=5"), StorePlace::Directory("/var/o".into()));
        assert_eq!(place("memory://m"), StorePlace::Memory("m".into()));
        let cloud = |service, bucket: &str, prefix: &str| StorePlace::Cloud {
            service,
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(place("s3://b"), cloud(CloudService::S3, "b", ""));
        assert_eq!(place("gs://b/p/q/"), cloud(CloudService::Gs, "b", "p/q"));
        assert_eq!(place("az://b/p"), cloud(CloudService::Az, "b", "p"));
        let u = ObjectUrl::parse(
            "s3://b/p?endpoint=http://127.0.0.1:7070/&region=eu&timeout_s=2&takeover=at-once",
        )
        .unwrap();
        assert_eq!(u.name, "s3://b/p");
        assert_eq!((u.endpoint.as_deref(), u.region.as_deref()), (Some("http://127.0.0.1:7070"), Some("eu")));
        assert_eq!((u.timeout, u.takeover_waits), (Duration::from_secs(2), false));
        let default = ObjectUrl::parse("s3://b").unwrap();
        assert_eq!((default.timeout, default.takeover_waits), (Duration::from_secs(30), true));
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_accepted_form() {
        for (text, part) in [
            ("", "a URL or a path"),
            ("a\0b", "control characters"),
            ("ftp://x", "there are file, memory, s3, gs, az"),
            ("file://relative", "file:///directory"),
            ("memory://", "memory://name"),
            ("s3:///p", "s3://bucket/prefix"),
            ("s3://key:secret@b/p", "environment variables"),
            ("s3://b/p//q", "empty part"),
            ("s3://b?endpoint=127.0.0.1", "http:// or https://"),
            ("s3://b?timeout_s=0", "1 to 3600"),
            ("s3://b?takeover=never", "wait or at-once"),
            ("s3://b?colour=red", "'colour' is not an option"),
            ("s3://b?region=", "region needs a name"),
        ] {
            let e = ObjectUrl::parse(text).unwrap_err();
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
