//! Volumes served to other programs: NBD, FUSE, control, metrics.
