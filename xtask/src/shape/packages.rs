//! What goes to the registry: the sources and pages of a crate, what the registry shows of it, and nothing else.

use std::process::Command;

use crate::metadata::{Krate, Workspace};
use crate::run;

use super::{expect_none, read};

/// What the manifest must say, so that the registry can show where a crate comes from and where its pages are.
const TOLD: &[&str] = &[
    "documentation",
    "readme",
    "repository",
    "keywords",
    "categories",
    "include",
    "rustdoc-args",
    "all-features",
];

/// Folders whose files name what lies outside of the package, and whatever serves tests only.
const NOT_IN_PACKAGE: &[&str] = &["tests/", "proptest-regressions/", "models/"];

fn missing_words(name: &str, manifest: &str) -> Vec<String> {
    let says = |word: &&&str| {
        manifest
            .lines()
            .any(|line| line.strip_prefix(**word).is_some_and(|rest| rest.starts_with([' ', '.'])))
    };
    let missing = TOLD.iter().filter(|word| !says(word));
    missing.map(|word| format!("the manifest of {name} says no `{word}`")).collect()
}

fn surplus(name: &str, files: &str) -> Vec<String> {
    let wrong = files.lines().filter(|file| NOT_IN_PACKAGE.iter().any(|folder| file.starts_with(folder)));
    wrong.map(|file| format!("the package of {name} has {file}")).collect()
}

/// Features of a crate that a page with a row ``| `name` … |`` for each does not know.
fn unexplained<'a>(features: impl Iterator<Item = &'a String>, page: &str) -> Vec<String> {
    let known = |feature: &str| page.lines().any(|line| line.starts_with(&format!("| `{feature}`")));
    let unknown = features.filter(|feature| *feature != "default" && !known(feature));
    unknown.map(|feature| format!("docs/features.md has no row for `{feature}`")).collect()
}

fn published(workspace: &Workspace) -> impl Iterator<Item = &Krate> {
    workspace.krates.iter().filter(|krate| krate.is_published_lib())
}

/// ENG-16: a package says where it comes from, and holds what a build needs and no tests.
#[test]
fn eng_16_a_package_holds_sources_and_pages_and_says_where_it_comes_from() {
    let workspace = Workspace::load().unwrap();
    for krate in published(&workspace) {
        expect_none(&missing_words(&krate.name, &read(&format!("{}/Cargo.toml", krate.dir))));
        let list = ["package", "--list", "--offline", "--allow-dirty", "-p", &krate.name];
        let output = Command::new(run::cargo()).args(list).current_dir(&workspace.root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = String::from_utf8(output.stdout).unwrap();
        expect_none(&surplus(&krate.name, &files));
        for wanted in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(files.lines().any(|file| file == wanted), "the package of {} lacks {wanted}", krate.name);
        }
    }
}

/// ENG-16: the front page of the library names every feature.
#[test]
fn eng_16_every_feature_has_its_row() {
    let workspace = Workspace::load().unwrap();
    let seawall = published(&workspace).find(|krate| krate.dir == "libs/seawall").unwrap();
    expect_none(&unexplained(seawall.features.iter(), &read("libs/seawall/docs/features.md")));
}

/// ENG-16: a packaged file never includes one from outside of its package.
#[test]
fn eng_16_no_packaged_source_includes_a_file_from_outside() {
    let workspace = Workspace::load().unwrap();
    for krate in published(&workspace) {
        let depth_of_sources = format!("{}/src/", krate.dir);
        let files = super::files().into_iter().filter(|file| file.path.starts_with(&depth_of_sources));
        let problems: Vec<_> =
            files.flat_map(|file| outside(&file.path[krate.dir.len() + 1..], &file.text)).collect();
        expect_none(&problems);
    }
}

/// Included paths with more `..` than there are folders above the file in its package.
fn outside(path: &str, text: &str) -> Vec<String> {
    let folders = path.matches('/').count();
    let included = text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let wrong = included.filter(|included| included.matches("../").count() > folders);
    wrong.map(|included| format!("{path} includes {included}, which is not in its package")).collect()
}

#[test]
fn the_rules_can_fail() {
    let manifest = "documentation = \"x\"\nreadme = \"x\"\nkeywords.workspace = true\ncategories.workspace = true\n\
                    include = []\nall-features = true\nrustdoc-args = []\n";
    assert_eq!(missing_words("a", manifest), ["the manifest of a says no `repository`"]);
    assert_eq!(surplus("a", "src/lib.rs\ntests/a.rs\n"), ["the package of a has tests/a.rs"]);
    let features = ["default".to_owned(), "tower".to_owned(), "task".to_owned()];
    assert_eq!(unexplained(features.iter(), "| `task` | x |"), ["docs/features.md has no row for `tower`"]);
    let text = "#![doc = include_str!(\"../../README.md\")] #![doc = include_str!(\"../docs/a.md\")]";
    assert_eq!(
        outside("src/lib.rs", text),
        ["src/lib.rs includes ../../README.md, which is not in its package"]
    );
}
