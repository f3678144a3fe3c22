//! Seawall.
