//! Exchange of a command of a device and its answer.

use crate::connection::{ClientError, Connection};
use crate::wire::{Refused, VERSION};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Device of a command: the operation of the request, and the key of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeviceKind {
    /// A solid-state cache.
    Cache,
    /// A nameless-write device.
    Nameless,
    /// A zoned device.
    Zoned,
    /// The processing engine of any volume.
    Isp,
}

#[derive(Serialize)]
struct Request<'a, O> {
    v: u32,
    r#do: DeviceKind,
    command: &'a O,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer<A> {
    Ok(Success<A>),
    Error(Refused),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Success<A> {
    Cache(A),
    Nameless(A),
    Zoned(A),
    Isp(A),
}

#[derive(Deserialize)]
struct Envelope<A> {
    #[serde(flatten)]
    result: Answer<A>,
}

/// Sends a command of a device, and returns its answer.
///
/// # Errors
/// The server refuses the command, or does not answer it.
pub(crate) fn execute<O: Serialize, A: DeserializeOwned + Debug>(
    connection: &mut Connection,
    device: DeviceKind,
    command: &O,
) -> Result<A, ClientError> {
    let request = Request { v: VERSION, r#do: device, command };
    match (device, connection.exchange::<Envelope<A>>(&request)?.result) {
        (DeviceKind::Cache, Answer::Ok(Success::Cache(answer)))
        | (DeviceKind::Nameless, Answer::Ok(Success::Nameless(answer)))
        | (DeviceKind::Zoned, Answer::Ok(Success::Zoned(answer)))
        | (DeviceKind::Isp, Answer::Ok(Success::Isp(answer))) => Ok(answer),
        (
            _,
            Answer::Ok(
                Success::Cache(answer)
                | Success::Nameless(answer)
                | Success::Zoned(answer)
                | Success::Isp(answer),
            ),
        ) => Err(unexpected(&answer)),
        (_, Answer::Error(refused)) => Err(refused.into()),
    }
}

/// Returns the error of an answer that does not belong to its request.
pub(crate) fn unexpected(answer: &impl Debug) -> ClientError {
    ClientError::Answer(format!("it does not belong to the request: {answer:?}"))
}
