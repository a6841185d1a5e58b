//! Shadow-model property tests of the whole layer.
