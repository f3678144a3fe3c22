//! Connections, the writers, and the process as a node of the database.

pub(super) mod session;
