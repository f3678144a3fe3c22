//! What the tests need of the machine beside a Rust toolchain, and how it is had.
//!
//! The judges of the hub make file systems and networks of their own, and what is shipped for Prometheus is read by its own
//! tool. Databases, brokers and object stores are real in the tests, which start servers of their own; those that no Debian
//! package has are fetched by the test kit. What is missing is installed where that
//! can be done without asking anybody; where it can't, the tests that need it fail and say what is missing.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A command or a header for C, and the Debian package that has it.
const NEEDS: [(&str, &str); 22] = [
    ("cc", "gcc"),
    ("chromedriver", "chromium-driver"),
    ("chromium", "chromium"),
    ("initdb", "postgresql"),
    ("ip", "iproute2"),
    ("java", "openjdk-17-jre-headless"),
    ("losetup", "mount"),
    ("make", "make"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("mvn", "maven"),
    ("nats-server", "nats-server"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("openssl/ssl.h", "libssl-dev"),
    ("pip3", "python3-pip"),
    ("pkg-config", "pkg-config"),
    ("promtool", "prometheus"),
    ("rabbitmq-server", "rabbitmq-server"),
    ("redis-server", "redis-server"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
];

/// Installs what is missing.
pub(crate) fn install() {
    let missing = missing(is_there);
    if missing.is_empty() {
        return;
    }
    let list = missing.join(" ");
    if !is_there("apt-get") {
        println!("missing: {list}; please install it, some tests need it");
        return;
    }
    println!("installing {list}");
    let run = |args: &[&str]| {
        Command::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()
            .is_ok_and(|done| done.success())
    };
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(&missing);
    let installed = run(&args) || (run(&["update"]) && run(&args));
    if !installed {
        println!("{list} could not be installed; the tests that need it will say so");
    }
}

fn missing(is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<&str> =
        NEEDS.iter().filter(|(command, _)| !is_there(command)).map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(command: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/include"].map(PathBuf::from);
    // Debian keeps the server's programs of each version of PostgreSQL in a folder that is on no path.
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let postgres = versions.map(|version| version.path().join("bin"));
    env::split_paths(&path).chain(system).chain(postgres).any(|folder| folder.join(command).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_asked_for_once_and_only_if_it_is_missing() {
        assert_eq!(missing(|_| true), [] as [&str; 0]);
        assert_eq!(missing(|command| command != "ip"), ["iproute2"]);
        assert_eq!(missing(|command| !["losetup", "mount"].contains(&command)), ["mount"]);
        assert!(is_there("ls") && !is_there("a-command-that-nobody-has"));
    }
}
