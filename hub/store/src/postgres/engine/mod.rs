//! Connections, the writers, and the process as a node of the database.

pub(super) mod address;
pub(super) mod checks;
pub(super) mod connect;
pub(super) mod control;
pub(super) mod fault;
pub(super) mod link;
pub(super) mod locks;
pub(super) mod node;
pub(super) mod reader;
pub(super) mod schema;
pub(super) mod session;
pub(super) mod tasks;
pub(super) mod telemetry;
pub(super) mod thread;
pub(super) mod tls;
pub(super) mod writer;
