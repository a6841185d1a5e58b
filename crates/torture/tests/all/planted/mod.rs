//! Bugs planted on purpose: the tests of layers, media, wear leveling and the file system find each
//! of them, and find nothing without them.
//!
//! A planted bug affects the thread that plants it. These tests therefore use one thread each.

mod fs_cuts;
mod fs_damage;
mod image_file;
mod layers;
mod wear;
