//! The hub from outside: the real binary, over HTTP.

mod harness;
mod judge;
mod observe;
mod peer;
mod story;
