//! Tests of the project's own shape: house rules that a reviewer would otherwise have to remember.
//!
//! Every file here holds one rule as a function from plain data to a list of problems, a test that runs it
//! over this project, and tests on made-up data which show that the rule can fail. A check that has never
//! failed proves nothing.

mod audit;
mod cli_wire;
mod dependencies;
mod direction;
mod docs;
mod flow;
mod footprint;
mod globals;
mod imports;
mod keywords;
mod log_lines;
mod logs;
mod names;
mod packages;
mod requirements;
mod sizes;
mod source;
mod status;
mod store;
mod texts;
mod units;
mod wire;
mod words;

use std::fs;
use std::path::Path;

use crate::run;

/// A text file of the project.
struct File {
    /// From the root, with `/` between its parts.
    path: String,
    text: String,
}

impl File {
    fn made_up(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The last part of the path.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether one of the folders above the file has this name.
    fn is_in(&self, folder: &str) -> bool {
        self.path.rsplit('/').skip(1).any(|part| part == folder)
    }
}

/// Every text file of the project, in the order of the paths. What is not UTF-8 is not text.
fn files() -> Vec<File> {
    let mut found = Vec::new();
    walk(&run::root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("the folders of the project can be listed") {
        let entry = entry.expect("the folders of the project can be listed");
        let (kind, name) = (entry.file_type(), entry.file_name().to_string_lossy().into_owned());
        let path = format!("{prefix}{name}");
        // A second working tree has a file of this name, which says where the first one is.
        if name == ".git" {
            continue;
        }
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            // What cargo writes is not the project.
            if name != "target" && !name.starts_with("mutants.out") {
                walk(&entry.path(), &format!("{path}/"), found);
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            found.push(File { path, text });
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(run::root().join(path))
        .unwrap_or_else(|error| panic!("`{path}` can't be read: {error}"))
}

/// Fails with all problems at once, because fixing them one run at a time is slow.
#[track_caller]
fn expect_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} found:\n  {}", problems.len(), problems.join("\n  "));
}

#[test]
fn the_walk_finds_the_sources_and_nothing_that_was_built() {
    let files = files();
    assert!(files.iter().any(|file| file.path == "xtask/src/shape/mod.rs"));
    assert!(!files.iter().any(|file| file.is_in("target") || file.is_in(".git")));
}
