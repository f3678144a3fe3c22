//! Work under a key that happens once.
