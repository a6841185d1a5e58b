//! One file a command.

pub(crate) mod check;
pub(crate) mod layers;
pub(crate) mod profiles;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod trace;
