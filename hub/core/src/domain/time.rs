//! Points in time that outlive a process.

pub use seawall_dist::Millis;
