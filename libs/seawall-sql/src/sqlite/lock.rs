//! Locks that several processes share.
