//! Integration tests of the commands, in one program. Only the commands run in processes of their
//! own.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod access;
mod cache;
mod calibrate;
mod cells_model;
mod classic_models;
mod composition;
mod control;
mod damage;
mod demo;
mod device_commands;
mod direct;
mod disk;
mod drive_models;
mod failed_syncs;
mod fs_sim;
mod golden;
mod halo_model;
mod hfsl_models;
mod hfsl_pcm_models;
mod hostfull;
mod hostile;
mod isp;
mod isp_model;
mod models;
mod mount;
mod mqsim_model;
mod nameless_model;
mod namespaces;
mod nand_model;
mod ntl;
mod ntl_model;
mod openssd_model;
mod outputs;
mod paths;
mod readme;
mod refusals;
mod reproduce;
mod run;
mod serve;
mod slc_model;
mod stacks;
mod streams_model;
mod trace;
mod trace_commands;
mod volume_queries;
mod volumes;
mod wear;
mod zns_model;
mod zone_commands;
