//! The model of a file system against the running kernel, and operations of all kinds on the model.

mod against_kernel;
mod kernel;
mod looked_up;
mod oracle;
mod real;
mod user;
