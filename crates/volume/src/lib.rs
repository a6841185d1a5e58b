//! A volume: a directory that holds the media of a stack and outlives every program that opens it.
