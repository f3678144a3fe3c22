//! `cargo xtask bench`: runs one benchmark of the workspace in `bench/`.
//!
//! The benchmarks are a workspace of their own, so that the peers which they measure are compiled only by
//! whoever asks for numbers, never by a test run.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::metadata::Workspace;
use crate::run::{self, Step, Usage};

const BINARIES: &str = "bench/src/bin";
/// The benchmarks that measure a binary of the product, which has to be built first.
const OF_THE_HUB: [&str; 3] = ["hub", "gateway", "instructions"];

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let names = names(&run::root().join(BINARIES))?;
    let Some((name, rest)) = args.split_first() else {
        println!("benchmarks, each run as `cargo xtask bench NAME`:");
        names.iter().for_each(|name| println!("  {name}"));
        return Ok(());
    };
    let step = step(&names, name, rest)?;
    if OF_THE_HUB.contains(&name.as_str()) {
        return run::all(&of_the_hub(step, &Workspace::load()?.target_dir));
    }
    run::all(&[step])
}

/// The hub is built as it is released, in the product's own workspace, and measured as a process.
fn of_the_hub(step: Step, target_dir: &str) -> [Step; 2] {
    let binary = format!("{target_dir}/release/seawall{}", std::env::consts::EXE_SUFFIX);
    let build = Step::cargo("the hub", "build --release -p seawall-hub-cli --bin seawall");
    [build, step.arg("--hub").arg(binary)]
}

fn step(names: &[String], name: &String, rest: &[String]) -> Result<Step, Usage> {
    if !names.contains(name) {
        let known = names.join(", ");
        return Err(Usage::new(format!("no benchmark is called `{name}`; there are: {known}")));
    }
    let step = Step::cargo(format!("bench {name}"), "run --release --manifest-path bench/Cargo.toml --bin");
    let step = step.arg(name.clone()).arg("--");
    // Whoever writes the usual `--` themselves means the same.
    let rest = if rest.first().is_some_and(|first| first == "--") { &rest[1..] } else { rest };
    Ok(rest.iter().fold(step, Step::arg))
}

/// The binaries that cargo finds by itself: `NAME.rs` and `NAME/main.rs`.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not list `{BINARIES}`"))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_binary =
            path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").is_file();
        if let Some(stem) = path.file_stem().filter(|_| is_binary) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    if names.is_empty() {
        bail!("there is no benchmark in `{BINARIES}`");
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, rest: &[&str]) -> Result<String, String> {
        let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
        let known = ["engine".to_owned(), "hub".to_owned()];
        step(&known, &name.to_owned(), &rest).map(|step| step.line()).map_err(|error| error.to_string())
    }

    #[test]
    fn passes_the_arguments_on_with_and_without_a_separator() {
        let expected = "cargo run --release --manifest-path bench/Cargo.toml --bin engine -- --rounds 3";
        assert_eq!(line("engine", &["--rounds", "3"]).as_deref(), Ok(expected));
        assert_eq!(line("engine", &["--", "--rounds", "3"]).as_deref(), Ok(expected));
    }

    #[test]
    fn the_hub_is_built_before_it_is_measured() {
        let measure = Step::cargo("bench hub", "run --bin hub -- --quick");
        let lines = of_the_hub(measure, "/t").map(|step| step.line());
        assert_eq!(lines[0], "cargo build --release -p seawall-hub-cli --bin seawall");
        assert!(lines[1].ends_with("-- --quick --hub /t/release/seawall"), "{}", lines[1]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let answer = line("engin", &[]).expect_err("there is no such benchmark");
        assert_eq!(answer, "no benchmark is called `engin`; there are: engine, hub");
    }
}
