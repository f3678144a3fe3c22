//! Locks on PostgreSQL, and locks everywhere with a fenced register on PostgreSQL.

mod report;
mod store;
mod torture;
mod worker;
