//! The store on PostgreSQL.

#![allow(dead_code)]

mod engine;
mod read;
mod rows;
mod text;
mod words;
mod write;
