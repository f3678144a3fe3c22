//! `cargo xtask public-api`: the public API of the published crates as text, one item per line, in `docs/public-api/`.
//!
//! Why a file: a change of the public API shows up as a diff that a reviewer reads, and `--check` in `ci` fails until the file
//! is written anew. A removed or changed line is a breaking change; a new line is an addition.
//!
//! Why rustdoc's JSON and no tool for it: the tools want a nightly compiler that fits their version. The compiler at hand
//! writes the JSON too when `RUSTC_BOOTSTRAP` lets it, in a target folder of its own. [`FORMAT`] guards against a compiler
//! whose JSON has another shape.

mod items;
mod render;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::metadata::{Krate, Workspace};
use crate::run::{Step, Usage};

/// The version of rustdoc's JSON that `items` and `render` read. Another toolchain may need changes there.
const FORMAT: u64 = 57;
const FOLDER: &str = "docs/public-api";

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        rest => return Ok(Usage::expect_none("public-api", rest)?),
    };
    let workspace = Workspace::load()?;
    let mut stale = Vec::new();
    for krate in workspace.krates.iter().filter(|krate| krate.is_published_lib()) {
        let now = describe(&workspace, krate)?;
        let path = workspace.root.join(FOLDER).join(format!("{}.txt", krate.name));
        let before = fs::read_to_string(&path).unwrap_or_default();
        if now == before {
            continue;
        }
        print!("{}", changes(&krate.name, &before, &now));
        if check {
            stale.push(krate.name.as_str());
        } else {
            write(&path, &now)?;
        }
    }
    if !stale.is_empty() {
        bail!(
            "the public API of {} differs from {FOLDER}; if that is meant: cargo xtask public-api",
            stale.join(", ")
        );
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("the file lies in a folder")?;
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text))?;
    Ok(())
}

/// One line for each public item of a crate, with all its features.
fn describe(workspace: &Workspace, krate: &Krate) -> anyhow::Result<String> {
    let target = format!("{}/public-api", workspace.target_dir);
    let name = krate.name.as_str();
    Step::cargo(format!("public API of {name}"), "rustdoc -q --all-features --lib -p")
        .arg(name)
        .arg("--target-dir")
        .arg(&target)
        .arg("--")
        .arg("-Zunstable-options")
        .arg("--output-format=json")
        .env("RUSTC_BOOTSTRAP", "1")
        .run()?;
    let file = format!("{target}/doc/{}.json", name.replace('-', "_"));
    let json = fs::read_to_string(&file).with_context(|| format!("rustdoc wrote no {file}"))?;
    let json: Value = serde_json::from_str(&json).context("rustdoc wrote no JSON")?;
    let format = json["format_version"].as_u64();
    if format != Some(FORMAT) {
        bail!("rustdoc writes version {format:?} of its JSON, and this command reads {FORMAT}");
    }
    Ok(items::lines(&json).join("\n") + "\n")
}

/// What is gone with `-` and what is new with `+`.
fn changes(name: &str, before: &str, now: &str) -> String {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (before.lines().collect(), now.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}\n"));
    let come = new.difference(&old).map(|line| format!("+ {line}\n"));
    format!("public API of {name}:\n") + &gone.chain(come).collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// API-2: what left the API and what is new is told line by line.
    #[test]
    fn api_2_a_change_of_the_api_is_told_line_by_line() {
        let told = changes("seawall", "pub fn a()\npub fn b()\n", "pub fn a()\npub fn b(x: u8)\n");
        assert_eq!(told, "public API of seawall:\n- pub fn b()\n+ pub fn b(x: u8)\n");
    }

    fn file_of(krate: &Krate) -> Option<String> {
        fs::read_to_string(crate::run::root().join(FOLDER).join(format!("{}.txt", krate.name))).ok()
    }

    /// API-2: every published library has its file, and the file names no machine.
    #[test]
    fn api_2_every_published_library_has_its_file() {
        let workspace = Workspace::load().unwrap();
        for krate in workspace.krates.iter().filter(|krate| krate.is_published_lib()) {
            let text = file_of(krate).unwrap_or_default();
            assert!(text.starts_with("pub mod "), "{}: cargo xtask public-api", krate.name);
            assert!(!text.contains(workspace.root.to_str().unwrap()), "{} names a machine", krate.name);
        }
    }

    /// ENG-16: nobody has to rename an import because two public types are called alike. Those of two crates that still are
    /// stand in the list, which only gets shorter.
    #[test]
    fn eng_16_no_two_public_types_share_a_name() {
        const WIRE: &str = "seawall-api";
        const STILL_SHARED: &[&str] = &["Answer", "Attempt", "Entry", "Millis", "Origin", "Refused"];
        let workspace = Workspace::load().unwrap();
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        // The types of the wire have the nouns of what they carry.
        let libraries =
            workspace.krates.iter().filter(|krate| krate.is_published_lib() && krate.name != WIRE);
        for krate in libraries {
            let text = file_of(krate).unwrap_or_default();
            for name in text.lines().filter_map(type_name) {
                found.entry(name.to_owned()).or_default().push(&krate.name);
            }
        }
        found.retain(|_, krates| krates.len() > 1);
        let shared: Vec<_> = found.keys().collect();
        assert_eq!(shared, STILL_SHARED, "{found:?}");
    }

    /// The name of the struct, enum, trait or alias that a line declares.
    fn type_name(line: &str) -> Option<&str> {
        let line = line.trim_start_matches("#[non_exhaustive] ");
        let path = ["pub struct ", "pub enum ", "pub trait ", "pub type "]
            .iter()
            .find_map(|kind| line.strip_prefix(kind))?;
        let path = path.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next()?;
        path.trim_end_matches(':').rsplit("::").next()
    }
}
