//! What happens after an attempt: the rules of gRFC A6 as a pure machine.
//!
//! # Why not a `Guard`?
//! A guard decides by fault and budget, and its hedges race for the first answer. A6 decides by status code, resets the back-off
//! after a pushback, sends the next hedge at once after a failure that is not fatal, resends what the server's application never
//! saw without counting it, and shares one count of tokens between all methods of a server. None of that is a setting of a
//! guard, and half of it would be worse than none: the service owner wrote the configuration for gRPC's rules. A guard belongs
//! around the whole call instead, with a circuit breaker or a bulkhead and without retries.

mod config;
mod machine;
#[cfg(test)]
mod tests;

pub use config::{CallPolicy, HedgingPolicy, RetryPolicy, StatusCodes};
pub(crate) use machine::{Due, Failure, Machine, Pushback, Reach, Reason, Step};
