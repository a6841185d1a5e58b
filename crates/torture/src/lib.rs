//! Faults, power cuts at every media operation, and oracles that say what must hold after them.
