//! Guards from files, as their users write them.

mod apply;
mod broken;
mod env;
mod foreign;
mod good;
mod random;
mod settings;
mod spring;
mod together;

use std::path::PathBuf;

fn golden(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config").join(path)
}
