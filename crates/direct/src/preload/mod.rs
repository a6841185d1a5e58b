//! The library that `frit exec` loads into programs (`LD_PRELOAD`). It stands in for functions of the C
//! library on files, and copies between the memory of the program and the medium where it can. In every
//! case of doubt a call goes to the C library, with the descriptor that open(2) returned.
//!
//! The code runs inside of any function of any program, also in signal handlers, and between fork and exec:
//! it does not allocate memory with `malloc`, waits for no lock, and changes no error number.

mod access;
mod calls;
mod copy;
mod exports;
mod faults;
mod files;
mod host;
mod mounts;
mod position;
mod process;
mod report;
mod signal_calls;
mod signals;
mod slots;
mod status;
mod sys;
mod thread;
mod trampolines;
