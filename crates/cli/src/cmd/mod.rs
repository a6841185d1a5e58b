//! The commands, one file each.

pub(crate) mod attach;
pub(crate) mod cache;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod create;
pub(crate) mod ctl;
pub(crate) mod defrag;
pub(crate) mod detach;
pub(crate) mod disk;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod fs_sim;
pub(crate) mod fsck;
pub(crate) mod grow;
pub(crate) mod image;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod isp;
pub(crate) mod layers;
pub(crate) mod mkfs;
pub(crate) mod mount;
pub(crate) mod mqsim;
pub(crate) mod profiles;
pub(crate) mod recover;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod scrub;
pub(crate) mod serve;
pub(crate) mod torture;
pub(crate) mod trace;
pub(crate) mod unmount;
pub(crate) mod volume;
pub(crate) mod wear;

/// Splits a stack from its own overrides: `NAME,key=value,…`.
fn split_overrides(stack: &str) -> (&str, Vec<String>) {
    // A comma without an override after it belongs to the file's name.
    match stack.split_once(',').filter(|(_, sets)| sets.split(',').all(|s| s.contains('='))) {
        Some((name, sets)) => (name, sets.split(',').map(str::to_owned).collect()),
        None => (stack, Vec::new()),
    }
}
