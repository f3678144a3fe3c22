//! What connections read beside the writer.

pub(super) mod registry;
