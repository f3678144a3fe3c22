//! Every store shares the transitions of the domain.
//!
//! A store that calls a service decides by itself; a digit in a statement is a state that nobody finds by its name; and a
//! statement that carries out a transition without a test that compares it with the function drifts away from the other stores.

use regex::Regex;

use super::source::{code, product, texts};
use super::{File, expect_none, files};

const STORE: &str = "hub/store/src/";
/// The file of each store with the statements that carry out a transition by themselves.
const STATEMENTS: &str = "set_based.rs";
/// The folder of each store with the tests that compare them with the functions.
const PROOFS: &str = "/tests/equivalence/";

/// How a statement compares a state with a number, or sets it to one: `state = 0`, `d.state IN (4, 6)`, `CASE state WHEN 2`.
const DIGITS: &str =
    r"\b(state|standing)\s*(=|==|<>|!=|<=|>=|<|>|IN\s*\(|NOT\s+IN\s*\(|IS|IS\s+NOT|WHEN)\s*-?[0-9]";
/// How a branch gives a state as a number.
const BRANCHES: &str = r"(?s)\bstate\s*=\s*CASE\b[^;]*\b(THEN|ELSE)\s+-?[0-9]";

fn problems(files: &[File]) -> Vec<String> {
    let (digits, branches) = (Regex::new(DIGITS).unwrap(), Regex::new(BRANCHES).unwrap());
    let proofs: String = files
        .iter()
        .filter(|file| file.path.starts_with(STORE) && file.path.contains(PROOFS))
        .map(|file| code(&file.text))
        .collect();
    let proved: Vec<&str> = proofs.split(|c: char| !super::source::is_word(c)).collect();
    let is_product = |file: &&File| {
        let is_test = file.is_in("tests") || file.name().ends_with("tests.rs");
        file.is_rust() && file.path.starts_with(STORE) && !is_test
    };
    let mut problems = Vec::new();
    for file in files.iter().filter(is_product) {
        let text = product(&file.text);
        for (index, line) in code(&text).lines().enumerate() {
            if line.contains("seawall_hub_core::service") {
                problems.push(format!("{}:{} imports a service", file.path, index + 1));
            }
            let public = line.trim_start().strip_prefix("pub(");
            let constant = public.and_then(|rest| rest.split_once(") const ")).map(|(_, rest)| rest);
            let name = constant.and_then(|rest| rest.split(':').next()).unwrap_or_default();
            if file.name() == STATEMENTS && !name.is_empty() && !proved.contains(&name) {
                problems.push(format!("{}:{} `{name}` is in no equivalence test", file.path, index + 1));
            }
        }
        for (line, text) in texts(&text).into_iter().filter(|(_, text)| !text.starts_with("///")) {
            if digits.is_match(&text) || branches.is_match(&text) {
                problems.push(format!("{}:{line} has the number of a state: use its name", file.path));
            }
        }
    }
    problems
}

#[test]
fn stores_share_the_transitions_of_the_domain() {
    let files = files();
    assert!(files.iter().any(|file| file.path.starts_with(STORE) && file.name() == STATEMENTS));
    expect_none(&problems(&files));
}

#[test]
fn a_store_that_calls_a_service_is_found() {
    let check = |text: &str| problems(&[File::made_up("hub/store/src/sqlite/a.rs", text)]);
    let found = ["hub/store/src/sqlite/a.rs:1 imports a service"];
    assert_eq!(check("use seawall_hub_core::service::failure_summary;"), found);
    assert_eq!(check("use seawall_hub_core::domain::service::Service;"), [""; 0]);
    assert_eq!(check("#[cfg(test)]\nuse seawall_hub_core::service::Hub;"), [""; 0]);
}

#[test]
fn the_number_of_a_state_in_a_statement_is_found() {
    let check = |sql: &str| {
        problems(&[File::made_up("hub/store/src/sqlite/a.rs", &format!("run(\"{sql}\");"))]).len()
    };
    for sql in [
        "UPDATE deliveries SET state = 1",
        "SELECT 1 FROM deliveries d WHERE d.state<7",
        "WHERE b.state IN (4, 6)",
        "WHERE l.standing = 1",
        "SET state = CASE WHEN failures = 0 THEN 1 ELSE 2 END",
        "SET state = CASE state WHEN 2 THEN ?1 END",
    ] {
        assert_eq!(check(sql), 1, "{sql}");
    }
    for sql in ["WHERE state = ?1 AND epoch = 2", "SET estate = 1", "WHERE failures = 0"] {
        assert_eq!(check(sql), 0, "{sql}");
    }
    let named = File::made_up(
        "hub/store/src/sqlite/a.rs",
        "run(sql!(\"WHERE state = \" LEASED \" AND epoch = 2\"));",
    );
    assert_eq!(problems(&[named]), [""; 0]);
}

#[test]
fn a_statement_without_a_proof_is_found() {
    let statements =
        File::made_up("hub/store/src/sqlite/write/set_based.rs", "pub(crate) const RETURN: &str = \"…\";");
    let proof = |text: &str| File::made_up("hub/store/src/sqlite/tests/equivalence/a.rs", text);
    let found = ["hub/store/src/sqlite/write/set_based.rs:1 `RETURN` is in no equivalence test"];
    let statements = || File::made_up(&statements.path, &statements.text);
    assert_eq!(problems(&[statements(), proof("assert_proved(&[RETURNS]); // RETURN")]), found);
    assert_eq!(problems(&[statements(), proof("assert_proved(&[RETURN]);")]), [""; 0]);
}
