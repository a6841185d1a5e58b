//! One file a command.

pub(crate) mod attach;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod create;
pub(crate) mod ctl;
pub(crate) mod detach;
pub(crate) mod disk;
pub(crate) mod export;
pub(crate) mod grow;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod layers;
pub(crate) mod profiles;
pub(crate) mod recover;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod scrub;
pub(crate) mod serve;
pub(crate) mod torture;
pub(crate) mod trace;
pub(crate) mod volume;
pub(crate) mod wear;
