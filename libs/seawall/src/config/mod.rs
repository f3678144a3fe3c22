//! Guards from a file.
#![cfg_attr(feature = "config", doc = "")]
#![cfg_attr(feature = "config", doc = include_str!("../../docs/configuration.md"))]

#[cfg(feature = "config")]
mod assume;
#[cfg(feature = "config")]
mod book;
#[cfg(feature = "config")]
mod build;
#[cfg(feature = "config")]
mod dialect;
#[cfg(feature = "config")]
mod diff;
#[cfg(feature = "config")]
mod env;
#[cfg(feature = "config")]
mod json;
#[cfg(feature = "config")]
mod layer;
#[cfg(feature = "config")]
mod load;
#[cfg(feature = "config")]
mod nearest;
mod percent;
mod place;
#[cfg(feature = "config")]
mod plan;
#[cfg(feature = "config")]
mod preset;
mod problem;
#[cfg(feature = "config")]
mod properties;
#[cfg(feature = "config")]
mod reference;
#[cfg(feature = "config")]
mod resolve;
#[cfg(feature = "config")]
mod schema;
#[cfg(all(feature = "config", feature = "serde"))]
mod serial;
#[cfg(feature = "config")]
mod settings;
#[cfg(feature = "config")]
mod source;
#[cfg(all(test, feature = "config"))]
mod tests;
#[cfg(feature = "config")]
mod time;
#[cfg(feature = "config")]
mod toml;
#[cfg(feature = "config")]
mod tree;
#[cfg(feature = "config")]
mod value;
#[cfg(feature = "config")]
mod write;
#[cfg(feature = "config")]
mod yaml;

#[cfg(feature = "config")]
pub use diff::{Change, Changes};
#[cfg(feature = "config")]
pub use load::{Loader, policy};
pub use percent::Percent;
pub use place::Place;
#[cfg(feature = "config")]
pub use plan::{Config, Origin, Plan, Setting};
pub(crate) use problem::Problems;
pub use problem::{ConfigError, Problem};
#[cfg(feature = "config")]
pub use reference::reference;
#[cfg(feature = "config")]
pub use settings::{SettingKey, read_settings};
#[cfg(feature = "config")]
pub use source::Format;
#[cfg(feature = "config")]
pub use time::duration;
