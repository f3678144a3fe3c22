//! A peer that the hub calls.

use super::slug::Slug;
use super::time::Millis;

/// A peer that the hub calls, as it is registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    /// Its name.
    pub name: Slug,
    /// From 1, one more with each change.
    pub version: u64,
    /// Where it is: `https://billing.example/api`.
    pub address: String,
    /// Headers that every request to it carries.
    pub headers: Vec<(String, String)>,
    /// How the hub shows who it is, sealed.
    pub auth: Option<Sealed>,
    /// The policy of its guard, as JSON.
    pub policy: String,
    /// Whether its deliveries are held.
    pub paused: bool,
    /// When it was last changed.
    pub changed: Millis,
}

/// Something that only whoever has the key can read. Shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}
