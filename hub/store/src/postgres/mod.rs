//! The store on PostgreSQL.

mod engine;
mod read;
mod rows;
mod text;
mod write;
