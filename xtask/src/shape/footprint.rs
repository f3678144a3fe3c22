//! What a user of the library compiles and locks: no more than it needs, and none of our tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata::Workspace;
use crate::run;

/// What `seawall` with its default features brings along, itself included.
const COMPILED: usize = 7;

/// Makes a program that uses the library and nothing else, as a stranger would. Our own lock file beside it says which
/// versions are at hand, so that nothing is fetched.
fn user(name: &str, features: &str, main: &str) -> PathBuf {
    let workspace = Workspace::load().unwrap();
    let folder = Path::new(&workspace.target_dir).join(name);
    let library = workspace.root.join("libs/seawall");
    let manifest = format!(
        "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nseawall = {{ path = {library:?}{features} }}\n"
    );
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/main.rs"), main).unwrap();
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

/// Resolves the dependencies of a user with default features.
fn fresh_user() -> (String, Vec<String>) {
    let folder = user("fresh-user", "", "fn main() {}");
    let tree = ["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let output = Command::new(run::cargo()).args(tree).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let mut crates: Vec<_> =
        tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    crates.sort_unstable();
    crates.dedup();
    crates.retain(|name| name != "fresh-user");
    (fs::read_to_string(folder.join("Cargo.lock")).unwrap(), crates)
}

/// ENG-16: a minimal user compiles seven crates, and no tool of ours stands in a user's lock file.
#[test]
fn eng_16_a_fresh_user_compiles_seven_crates_and_locks_no_tool_of_ours() {
    let (lock, crates) = fresh_user();
    assert_eq!(crates.len(), COMPILED, "{crates:?}");
    let locked: Vec<_> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    for tool in ["loom", "proptest", "allocation-counter", "generator"] {
        assert!(
            !locked.contains(&format!("{tool:?}").as_str()),
            "{tool} is in a user's lock file: {locked:?}"
        );
    }
}

/// A program without a runtime: retries, a circuit and a fallback around code that blocks.
const BLOCKING: &str = r#"
use seawall::{Backoff, Breaker, Guard, Retry, fallback::LastGood};
use std::{io, time::Duration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(Duration::from_millis(1)));
    let disk = Guard::builder("disk").retry(retry).breaker(Breaker::default()).build()?;
    let (last, mut tries) = (LastGood::new(), 0);
    let read = disk.idempotent().or_last_good(&last).or_value(0).run(|_| {
        tries += 1;
        if tries < 3 { Err(io::Error::from(io::ErrorKind::ConnectionReset)) } else { Ok(7) }
    })?;
    assert_eq!((*read, last.get(), tries), (7, Some(7), 3));
    let stale = disk.idempotent().or_last_good(&last).run(|_| io::Result::Err(io::ErrorKind::TimedOut.into()))?;
    assert!(stale.is_fallback() && *stale == 7);
    println!("{}", disk.explain());
    Ok(())
}
"#;

/// ENG-16: retries, circuits and fallbacks around blocking code need no runtime.
#[test]
fn eng_16_blocking_code_needs_no_runtime() {
    let folder = user("blocking-user", ", default-features = false", BLOCKING);
    let output = Command::new(run::cargo())
        .args(["run", "--quiet", "--offline"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = Command::new(run::cargo()).args(["tree", "--offline"]).current_dir(&folder).output().unwrap();
    assert!(!String::from_utf8_lossy(&tree.stdout).contains("tokio"), "no runtime is compiled");
}
