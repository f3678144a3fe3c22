//! Deliveries that are poison, for the tests that quarantine has to pass.
//!
//! Only a build with `--cfg seawall_sabotage` has this file; see `sabotage.rs` in the store. Which events are poison, and how,
//! is in their names.

use std::time::Duration;

use seawall_hub_core::port::transport::DeliveryHeaders;

#[expect(clippy::panic, reason = "that is the mistake")]
#[expect(clippy::disallowed_methods, reason = "a thread that never comes back is the mistake")]
pub(super) fn poison(letter: Option<DeliveryHeaders<'_>>) {
    let Some(DeliveryHeaders { event, .. }) = letter else { return };
    if event.starts_with("panic-") {
        panic!("the send of {event} panics on purpose");
    }
    if event.starts_with("abort-") {
        std::process::abort();
    }
    if event.starts_with("hang-") {
        loop {
            std::thread::sleep(Duration::from_secs(3_600));
        }
    }
}
