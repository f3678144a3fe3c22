//! Plain types and rules.

pub mod alert;
pub mod audit;
pub mod circuit;
pub mod dead_letter;
pub mod delivery;
pub mod event;
pub mod event_type;
pub mod hash;
pub mod id;
pub mod key;
pub mod operation;
pub mod retention;
pub mod rule;
pub mod service;
pub mod slug;
pub mod source;
pub mod time;
pub mod trace;
pub mod version;
pub mod words;
