//! Objects in a bucket of a service over HTTP, through the crate `object_store`.

use crate::bucket::{Bucket, BucketError};
use bytes::Bytes;
use frit_media::object::{CloudService, ObjectUrl, StorePlace};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Longest time to connect, so that a server that is away is noticed before the limit of a request.
const CONNECT: Duration = Duration::from_secs(5);

/// Threads that drive connections. The threads that make requests wait for them.
const DRIVER_THREADS: usize = 2;

/// A bucket of a service, and a prefix of names.
#[derive(Debug)]
pub(crate) struct CloudBucket {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl CloudBucket {
    /// Creates a client. No request is made. Credentials come from the environment variables of the
    /// service.
    pub(crate) fn open(url: &ObjectUrl) -> Result<CloudBucket, BucketError> {
        let StorePlace::Cloud { service, bucket, prefix } = &url.place else {
            return Err(BucketError::Lasting("it is not a bucket of a service".into()));
        };
        let store = client(*service, bucket, url).map_err(|e| BucketError::Lasting(text(&e)))?;
        let runtime = Builder::new_multi_thread().worker_threads(DRIVER_THREADS).enable_all().build();
        let runtime = runtime.map_err(|e| BucketError::Lasting(e.to_string()))?;
        Ok(CloudBucket { store, prefix: Path::from(prefix.as_str()), runtime })
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }
}

/// Repetitions are made by the caller, which knows when a claim was lost.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Options of the HTTP client, as texts.
fn options(url: &ObjectUrl) -> Vec<(ClientConfigKey, String)> {
    let seconds = |time: Duration| format!("{} seconds", time.as_secs());
    let mut all = vec![
        (ClientConfigKey::Timeout, seconds(url.timeout)),
        (ClientConfigKey::ConnectTimeout, seconds(CONNECT.min(url.timeout))),
    ];
    if url.endpoint.as_ref().is_some_and(|e| e.starts_with("http://")) {
        all.push((ClientConfigKey::AllowHttp, "true".into()));
    }
    all
}

#[allow(unused_variables)] // a program can have any of the services
fn client(service: CloudService, bucket: &str, url: &ObjectUrl) -> Result<Box<dyn ObjectStore>, Error> {
    match service {
        #[cfg(feature = "s3")]
        CloudService::S3 => {
            use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(no_retries());
            for (key, value) in options(url) {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            if let Some(endpoint) = &url.endpoint {
                builder = builder.with_endpoint(endpoint);
            }
            if let Some(region) = &url.region {
                builder = builder.with_region(region);
            }
            Ok(Box::new(builder.build()?))
        }
        #[cfg(feature = "gs")]
        CloudService::Gs => {
            use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
            let mut builder =
                GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(no_retries());
            for (key, value) in options(url) {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            if let Some(endpoint) = &url.endpoint {
                builder = builder.with_base_url(endpoint);
            }
            Ok(Box::new(builder.build()?))
        }
        #[cfg(feature = "az")]
        CloudService::Az => {
            use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
            let mut builder =
                MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(no_retries());
            for (key, value) in options(url) {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            if let Some(endpoint) = &url.endpoint {
                builder = builder.with_endpoint(endpoint.clone());
            }
            Ok(Box::new(builder.build()?))
        }
        #[allow(unreachable_patterns)] // with all services
        other => {
            Err(Error::NotImplemented { operation: "open".into(), implementer: <&str>::from(other).into() })
        }
    }
}

/// Returns the message of an error with its causes, in one line.
fn text(e: &dyn std::error::Error) -> String {
    let mut all = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        let c_text = c.to_string();
        if !all.contains(&c_text) {
            all = format!("{all}: {c_text}");
        }
        cause = c.source();
    }
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns `true` if the server refused a request as wrong (status 4xx), apart from time-outs (408) and
/// limits of requests per second (429). The crate has the status in the text of its error only.
fn is_refusal(text: &str) -> bool {
    let status = text.split_once("status code: ").and_then(|(_, rest)| rest.get(..3));
    status.is_some_and(|s| s.starts_with('4') && s != "408" && s != "429")
}

fn failed(e: &Error) -> BucketError {
    match e {
        Error::NotFound { .. } => BucketError::Missing,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => BucketError::Exists,
        Error::Generic { .. } | Error::JoinError { .. } => {
            let text = text(e);
            if is_refusal(&text) { BucketError::Lasting(text) } else { BucketError::Passing(text) }
        }
        _ => BucketError::Lasting(text(e)),
    }
}

/// Returns the error of a request that concerns no object, so that only the bucket can be missing.
fn failed_without_object(e: &Error) -> BucketError {
    match failed(e) {
        BucketError::Missing => BucketError::Lasting(format!("there is no such bucket: {}", text(e))),
        other => other,
    }
}

impl Bucket for CloudBucket {
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), BucketError> {
        let payload = PutPayload::from_bytes(Bytes::from_owner(data.clone()));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.runtime.block_on(self.store.put_opts(&self.path(name), payload, options));
        put.map(drop).map_err(|e| failed_without_object(&e))
    }

    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), BucketError> {
        if into.is_empty() {
            return Ok(());
        }
        let range = at..at + into.len() as u64;
        let read = self.runtime.block_on(self.store.get_range(&self.path(name), range));
        let bytes = read.map_err(|e| failed(&e))?;
        if bytes.len() != into.len() {
            return Err(BucketError::Lasting("the range is past the end".into()));
        }
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn size(&self, name: &str) -> Result<u64, BucketError> {
        self.runtime.block_on(self.store.head(&self.path(name))).map(|m| m.size).map_err(|e| failed(&e))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        match self.runtime.block_on(self.store.delete(&self.path(name))).map_err(|e| failed(&e)) {
            Err(BucketError::Missing) => Ok(()),
            removed => removed,
        }
    }

    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let prefix = (!self.prefix.is_root()).then_some(&self.prefix);
        let stream = match after {
            "" => self.store.list(prefix),
            after => self.store.list_with_offset(prefix, &self.path(after)),
        };
        let found: Vec<_> =
            self.runtime.block_on(stream.try_collect()).map_err(|e| failed_without_object(&e))?;
        let name = |m: &object_store::ObjectMeta| {
            let mut parts = m.location.prefix_match(&self.prefix)?;
            let name = parts.next()?;
            // Objects of other prefixes below this one have more parts.
            parts.next().is_none().then(|| (name.as_ref().to_owned(), m.size))
        };
        Ok(found.iter().filter_map(name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn errors_are_told_apart_by_their_status() {
        for (text, passes) in [
            ("Server returned non-2xx status code: 404 Not Found: <Error>", false),
            ("Server returned non-2xx status code: 400 Bad Request", false),
            ("Server returned non-2xx status code: 408 Request Timeout", true),
            ("Server returned non-2xx status code: 429 Too Many Requests", true),
            ("Server returned error response with status code: 503 Slow Down", true),
            ("HTTP error: connection refused", true),
        ] {
            assert_eq!(matches!(failed(&generic(text)), BucketError::Passing(_)), passes, "{text}");
        }
    }
}
