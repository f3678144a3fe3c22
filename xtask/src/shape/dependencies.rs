//! Every dependency has a reason, written in the table of `docs/dev/dependencies.md`.
//!
//! A dependency is easy to add and hard to take away; having to write one sentence about it is the pause in
//! between. The benchmarks are exempt: they depend on the peers in order to measure them.

use std::collections::BTreeSet;

use super::{expect_none, read};
use crate::metadata::Workspace;

/// Names listed under `[workspace.dependencies]` that are not crates of ours. Cargo does not report this
/// table, so it is read here: one dependency a line, as the root manifest writes it.
fn shared(manifest: &str) -> BTreeSet<String> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[workspace.dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let entries = lines.filter(|line| !line.contains("path =")).filter_map(|line| line.split_once('='));
    entries.map(|(name, _)| name.trim().trim_end_matches(".workspace").to_owned()).collect()
}

/// The first cells of the rows that look like ``| `name` | …``.
fn explained(page: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.trim().strip_prefix("| `")?.split_once("` |"));
    cells.map(|(name, _)| name.to_owned()).collect()
}

fn problems(used: &BTreeSet<String>, page: &str) -> Vec<String> {
    let explained = explained(page);
    let missing = used.difference(&explained);
    missing
        .map(|name| format!("docs/dev/dependencies.md has no row ``| `{name}` | …`` with the reason for it"))
        .collect()
}

#[test]
fn every_dependency_of_this_project_has_its_reason() {
    let mut used = shared(&read("Cargo.toml"));
    assert!(!used.is_empty(), "the root manifest lists the shared dependencies");
    let workspace = Workspace::load().unwrap();
    let dependencies = workspace.krates.iter().flat_map(|krate| &krate.dependencies);
    used.extend(
        dependencies.filter(|dependency| dependency.dir.is_none()).map(|dependency| dependency.name.clone()),
    );
    expect_none(&problems(&used, &read("docs/dev/dependencies.md")));
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let manifest = "[workspace]\n[workspace.dependencies]\nours = { path = \"x\" }\n# A comment = this.\n\
                    tokio = \"1\"\nloom = { version = \"0.7\" }\n[workspace.lints]\nall = 1\n";
    let used = shared(manifest);
    assert_eq!(used, BTreeSet::from(["loom".to_owned(), "tokio".to_owned()]));
    let page = "| crate | why |\n|---|---|\n| `tokio` | timers |\n";
    let problems = problems(&used, page);
    assert_eq!(problems, ["docs/dev/dependencies.md has no row ``| `loom` | …`` with the reason for it"]);
}
