//! What a unit of work changes.

mod registry;
