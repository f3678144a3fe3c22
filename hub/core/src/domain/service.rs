//! A peer that the hub calls.

use super::slug::Slug;
use super::time::Millis;

/// A registered service that the hub calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    pub name: Slug,
    /// The version, counted from 1.
    pub version: u64,
    /// The base URL, like `https://billing.example/api`.
    pub address: String,
    /// The headers of every request to it.
    pub headers: Vec<(String, String)>,
    /// The encrypted authentication; `None` means none.
    pub auth: Option<SealedSecret>,
    /// The policy of its guard, as JSON.
    pub policy: String,
    /// Whether its deliveries are paused.
    pub paused: bool,
    /// When the service was last changed.
    pub changed: Millis,
}

impl Service {
    /// Returns the first version of a service that has neither headers, authentication nor policy.
    #[must_use]
    pub fn new(name: Slug, address: impl Into<String>) -> Self {
        Service {
            name,
            version: 1,
            address: address.into(),
            headers: Vec::new(),
            auth: None,
            policy: "{}".into(),
            paused: false,
            changed: Millis(0),
        }
    }
}

/// An encrypted secret. Its `Debug` output shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}
