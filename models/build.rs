//! Makes the sources of the library take loom's atomics and locks.

fn main() {
    println!("cargo:rustc-cfg=seawall_loom");
    println!("cargo:rerun-if-changed=build.rs");
}
