//! Comparing map, spare areas, descriptors and data.
