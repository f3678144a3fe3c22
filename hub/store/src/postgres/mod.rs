//! The store on PostgreSQL.

mod engine;
mod read;
mod write;
