//! The client against servers on loopback that do what their script says: one test binary, one file for each concern.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
mod auth;
mod deadlines;
mod egress;
mod faults;
mod held;
mod oauth;
mod proxy;
mod requests;
mod sample;
mod server;
mod socket;
mod steps;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tower")]
mod tower;

use seawall::{Backoff, Guard, Retry, millis, secs};
use seawall_http::{Egress, HttpClient, HttpClientBuilder};

/// A client that may call this machine.
fn builder() -> HttpClientBuilder {
    HttpClient::builder().egress(loopback())
}

fn client() -> HttpClient {
    builder().build().unwrap()
}

fn loopback() -> Egress {
    Egress::default().allow("127.0.0.0/8".parse().unwrap())
}

/// Three attempts, with hardly a wait in between.
fn guard() -> Guard {
    let backoff = Backoff::constant(millis(1)).throttled_base(millis(1)).no_jitter();
    let retry = Retry::max_attempts(3).backoff(backoff).no_budget();
    Guard::builder("peer").call_timeout(secs(20)).attempt_timeout(secs(10)).retry(retry).build().unwrap()
}

/// One attempt within this time.
fn impatient(milliseconds: u64) -> Guard {
    let guard = Guard::builder("peer").call_timeout(secs(20)).attempt_timeout(millis(milliseconds));
    guard.no_retry().build().unwrap()
}
