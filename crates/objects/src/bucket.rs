//! The interface of a place that holds objects under names.

use std::fmt::Debug;
use std::sync::Arc;

/// An error of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BucketError {
    /// No object has the name.
    #[error("it does not exist")]
    Missing,
    /// An object has the name already.
    #[error("it exists already")]
    Exists,
    /// A failure that may pass: the request can be repeated. It may have taken effect.
    #[error("{0}")]
    Passing(String),
    /// A failure that a repetition does not change.
    #[error("{0}")]
    Lasting(String),
}

/// Objects under names. Calls block, and can come from several threads at a time.
pub trait Bucket: Debug + Send + Sync {
    /// Writes a new object as a whole. It is durable, and visible in [`Bucket::list`], when the call
    /// returns.
    ///
    /// # Errors
    /// [`BucketError::Exists`] if an object has the name, or a failure.
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), BucketError>;

    /// Fills `into` with the bytes of an object from byte `at` on.
    ///
    /// # Errors
    /// [`BucketError::Missing`], a range past the end, or a failure.
    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), BucketError>;

    /// Returns the size of an object in bytes.
    ///
    /// # Errors
    /// [`BucketError::Missing`], or a failure.
    fn size(&self, name: &str) -> Result<u64, BucketError>;

    /// Deletes an object. An object that does not exist is no error.
    ///
    /// # Errors
    /// A failure.
    fn remove(&self, name: &str) -> Result<(), BucketError>;

    /// Returns the names and sizes of all objects whose names are greater than `after`.
    ///
    /// # Errors
    /// A failure.
    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, BucketError>;

    /// Returns `true` if no request can take effect after the end of the process that made it.
    fn ends_with_process(&self) -> bool {
        false
    }
}
