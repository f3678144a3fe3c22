//! The hub from outside: the real binary, over HTTP.

mod gateway;
mod harness;
mod judge;
mod story;
