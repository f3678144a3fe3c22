//! Rule of direction D8: a machine is a pure function, and the domain is plain types.
//!
//! `machine.rs` files are run by the engine, by the simulator, by property tests and by models alike. That
//! works only while they know no runtime, no clock and no lock; the first `use tokio` in one of them ends it.

use std::collections::BTreeSet;

use super::source::{code, is_word, product};
use super::{File, expect_none, files};

const DOMAIN: &str = "hub/core/src/domain/";

/// What a machine may name besides the standard library: its own word and settings, instants as plain
/// numbers, windows of counts, and faults, which are plain values.
const PURE_FOR_MACHINES: &[&str] =
    &["crate::stats", "crate::clock::Tick", "crate::fault", "super::config", "super::word"];

/// What two parts of the project need is written once, low: plain types of `seawall-dist` are the domain's too. Bytes are a
/// value like any other, and so are the engine's faults and its back-off. The body of a response is data too: reading a JSON
/// value out of it is a pure function, and says nothing of the hub's own wire format.
const PURE_FOR_THE_DOMAIN: &[&str] = &[
    "crate::domain",
    "crate::words",
    "bytes",
    "seawall::backoff",
    "seawall::fault",
    "seawall_dist",
    "serde_json::Value",
    "serde_json::from_slice",
    "sha2",
    "super",
    "self",
];

/// Words that mean a runtime, a lock, a clock or a wire format, wherever they come from.
const IMPURE: &[&str] = &[
    "tokio",
    "tracing",
    "loom",
    "parking_lot",
    "Mutex",
    "RwLock",
    "Condvar",
    "async",
    "await",
    "Instant",
    "SystemTime",
    "serde",
    "thread",
];

const PRIMITIVES: &[&str] = &[
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128",
    "isize", "f32", "f64",
];

fn problems(files: &[File]) -> Vec<String> {
    let is_product = |file: &&File| ["libs/", "hub/", "sim/"].iter().any(|top| file.path.starts_with(top));
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.name() != "tests.rs").filter(is_product) {
        if file.name() == "machine.rs" {
            problems.extend(impure_paths(file, PURE_FOR_MACHINES));
            problems.extend(impure_words(file));
            // What a machine may import from beside it must be pure as well.
            let folder = file.path.trim_end_matches("machine.rs");
            let beside = ["config.rs", "word.rs"].map(|name| format!("{folder}{name}"));
            problems.extend(files.iter().filter(|file| beside.contains(&file.path)).flat_map(impure_words));
        } else if file.path.starts_with(DOMAIN) {
            problems.extend(impure_paths(file, PURE_FOR_THE_DOMAIN));
            problems.extend(impure_words(file));
        }
    }
    problems
}

fn impure_words(file: &File) -> Vec<String> {
    let code = code(&product(&file.text));
    let tokens = tokens(&code);
    let found = tokens.iter().filter(|token| IMPURE.contains(&token.text));
    found.map(|token| format!("D8: {}:{} says `{}`", file.path, token.line, token.text)).collect()
}

fn impure_paths(file: &File, pure: &[&str]) -> Vec<String> {
    let code = code(&product(&file.text));
    let paths = paths(&tokens(&code));
    let is_pure = |path: &str| {
        let in_pure = |prefix: &&str| {
            path == *prefix || path.strip_prefix(*prefix).is_some_and(|rest| rest.starts_with("::"))
        };
        pure.iter().chain(&["std", "core"]).any(in_pure)
    };
    // A name that came in through an import was judged there.
    let known: BTreeSet<&str> = paths.iter().filter_map(|path| path.brings).collect();
    let is_local = |path: &Path<'_>| {
        let root = path.text.split("::").next().unwrap_or_default();
        let is_type = root.starts_with(char::is_uppercase);
        path.brings.is_none() && (is_type || known.contains(root) || PRIMITIVES.contains(&root))
    };
    let foreign = paths.iter().filter(|path| !is_pure(&path.text) && !is_local(path));
    foreign.map(|path| format!("D8: {}:{} uses `{}`", file.path, path.line, path.text)).collect()
}

/// A word, `::`, or any other character that is not a space.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            tokens.push(Token { text: &rest[..length], line: index + 1 });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// A path as it stands in the source, `a::b::c`.
struct Path<'a> {
    text: String,
    line: usize,
    /// The name that it brings into scope, if it is an import or a module declared here.
    brings: Option<&'a str>,
}

fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Path<'a>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        let next = tokens.get(at + 1).map_or("", |token| token.text);
        if token.text == "use" {
            at = import(tokens, at + 1, "", &mut paths);
        } else if token.text == "mod" {
            // A module of its own below the file: it is judged as a file.
            paths.push(Path { text: format!("self::{next}"), line: token.line, brings: Some(next) });
            at += 2;
        } else if next == "::" && token.text.starts_with(is_word) {
            let mut text = token.text.to_owned();
            at += 1;
            while let [separator, word, ..] = &tokens[at..] {
                if separator.text != "::" || !word.text.starts_with(is_word) {
                    break;
                }
                text += "::";
                text += word.text;
                at += 2;
            }
            paths.push(Path { text, line: token.line, brings: None });
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads one branch of a `use` tree and returns where it ends.
fn import<'a>(tokens: &[Token<'a>], mut at: usize, prefix: &str, paths: &mut Vec<Path<'a>>) -> usize {
    let mut text = prefix.to_owned();
    let mut last: Option<Token<'a>> = None;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = import(tokens, at, &text, paths);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            // The path ends here, and the word after `as` is the name that it brings.
            "as" => {
                last = tokens.get(at + 1).copied();
                at += 2;
                continue;
            }
            "::" => {}
            word => {
                text += if text.is_empty() { "" } else { "::" };
                text += word;
                last = Some(*token);
            }
        }
        at += 1;
    }
    if let Some(last) = last {
        paths.push(Path { text, line: last.line, brings: Some(last.text) });
    }
    at
}

#[test]
fn the_machines_and_the_domain_of_this_project_are_pure() {
    expect_none(&problems(&files()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_machine(text: &str) -> Vec<String> {
        let found = problems(&[File::made_up("libs/seawall/src/breaker/machine.rs", text)]);
        found.iter().map(|problem| problem.rsplit_once(".rs:").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn a_pure_machine_passes() {
        let text = "//! Knows no tokio.\nuse std::{fmt, time::Duration};\nuse core::num::NonZeroU32;\n\
            use super::config::Settings;\nuse super::word::{State, Word};\nuse crate::stats::Window;\n\
            fn step(word: Word) -> Word { let x = u64::MAX; fmt::format(x); Word::new(Self::g()) }\n\
            #[cfg(test)]\nmod tests {\n    use tokio::time;\n}\n";
        assert_eq!(in_machine(text), Vec::<String>::new());
    }

    #[test]
    fn a_machine_that_knows_a_runtime_a_lock_or_a_clock_is_found() {
        assert_eq!(
            in_machine("fn f() {}\nuse tokio::time::sleep;"),
            ["2 uses `tokio::time::sleep`", "2 says `tokio`"]
        );
        assert_eq!(in_machine("use std::sync::Mutex;"), ["1 says `Mutex`"]);
        assert_eq!(in_machine("use std::{fmt, sync::{Arc, RwLock}};"), ["1 says `RwLock`"]);
        assert_eq!(in_machine("use std::time::Instant as Now;"), ["1 says `Instant`"]);
        assert_eq!(in_machine("async fn step() {}"), ["1 says `async`"]);
        assert_eq!(
            in_machine("fn f() { tracing::info!(\"x\") }"),
            ["1 uses `tracing::info`", "1 says `tracing`"]
        );
    }

    #[test]
    fn a_machine_that_knows_its_shell_is_found() {
        assert_eq!(in_machine("use super::policy::Breaker;"), ["1 uses `super::policy::Breaker`"]);
        assert_eq!(
            in_machine("use crate::{stats::Window, guard::Guard as G};"),
            ["1 uses `crate::guard::Guard`"]
        );
        assert_eq!(in_machine("fn f() { crate::event::emit() }"), ["1 uses `crate::event::emit`"]);
        assert_eq!(in_machine("fn f() { rand::random() }"), ["1 uses `rand::random`"]);
        assert_eq!(in_machine("use super::*;"), ["1 uses `super::*`"]);
    }

    #[test]
    fn what_a_machine_imports_from_beside_it_must_be_pure_too() {
        let machine = File::made_up("sim/src/x/machine.rs", "use super::config::Settings;");
        let config =
            File::made_up("sim/src/x/config.rs", "use crate::error::ConfigError;\nuse tokio::sync::Notify;");
        assert_eq!(problems(&[machine, config]), ["D8: sim/src/x/config.rs:2 says `tokio`"]);
    }

    #[test]
    fn a_domain_that_knows_a_wire_format_or_a_port_is_found() {
        let check = |text: &str| problems(&[File::made_up("hub/core/src/domain/rule.rs", text)]).len();
        assert_eq!(
            check("use super::event::Event;\nuse crate::domain::delivery::Delivery;\nuse std::sync::Arc;"),
            0
        );
        assert_eq!(check("use crate::port::Store;"), 1);
        assert_eq!(check("#[derive(serde::Serialize)]\nstruct Rule;"), 2);
    }
}
