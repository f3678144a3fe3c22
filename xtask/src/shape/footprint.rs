//! What a user of the library compiles and locks: no more than it needs, and none of our tools.

use std::fs;
use std::process::Command;

use crate::metadata::Workspace;
use crate::run;

/// What `seawall` with its default features brings along, itself included.
const COMPILED: usize = 7;

/// Makes a crate that uses the library and nothing else, as a stranger would, and resolves its dependencies.
/// Our own lock file beside it says which versions are at hand, so that nothing is fetched.
fn fresh_user() -> (String, Vec<String>) {
    let workspace = Workspace::load().unwrap();
    let folder = std::path::Path::new(&workspace.target_dir).join("fresh-user");
    let library = workspace.root.join("libs/seawall");
    let manifest = format!(
        "[package]\nname = \"fresh-user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nseawall = {{ path = {library:?} }}\n"
    );
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
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
