//! A status code is read in one place: `domain/delivery/decision.rs` says what it means for a delivery, the engine and
//! `seawall-http` what it means as a fault.
//!
//! A second place that knows that 429 is throttling and 503 an outage drifts away from the first, and a service type
//! without statuses finds no place at all.

use regex::Regex;

use super::source::{code, product};
use super::{File, expect_none, files};

/// The parts of the hub that see responses of services. The command line sees those of the hub's own API.
const PARTS: [&str; 3] = ["hub/core/src/", "hub/store/src/", "hub/server/src/"];
const THE_PLACE: &str = "hub/core/src/domain/delivery/decision.rs";

/// Files that read a status that no service has sent, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "hub/server/src/dashboard/asked.rs",
        "a page shows the problems of a form, which the hub's own API reports",
    ),
    ("hub/server/src/demo/upstream.rs", "the sample services count their own responses"),
    ("hub/server/src/http/openapi/document.rs", "the document names the responses of the hub's own API"),
];

/// How a status is compared with a number, or matched by one.
const READINGS: &[&str] = &[
    // `status == 410`, `answer.status().as_u16() >= 500`
    r"([Ss]tatus|[Cc]ode)[a-z_]*(\(\))?(\.as_u16\(\))?\s*(==|!=|<=|>=|<|>)\s*[1-5][0-9][0-9]\b",
    // `matches!(status, 429 | 502..=504)`
    r"matches!\([^,]*([Ss]tatus|[Cc]ode)[^,]*,[^)]*\b[1-5][0-9][0-9]\b",
    // `Code::Http(410)` and `status: 500..=599` as patterns
    r"\bHttp\([1-5][0-9][0-9]\b",
    r"\bstatus: [1-5][0-9][0-9]( \||\.\.)",
    // `429 | 503 => …`, an arm of `match status`
    r"^\s*\|?\s*[1-5][0-9][0-9](\.\.=[1-5][0-9][0-9])?(\s*\|\s*[1-5][0-9][0-9](\.\.=[1-5][0-9][0-9])?)*( if [^=]*)? =>",
];

fn problems(files: &[File]) -> Vec<String> {
    let readings: Vec<Regex> = READINGS.iter().map(|reading| Regex::new(reading).unwrap()).collect();
    let is_judged = |file: &&File| {
        let tests = file.name().ends_with("tests.rs") || file.path.contains("/tests/");
        let allowed = ALLOWED.iter().any(|(path, _)| *path == file.path);
        let is_part = PARTS.iter().any(|part| file.path.starts_with(part));
        file.is_rust() && is_part && file.path != THE_PLACE && !tests && !allowed
    };
    let mut problems = Vec::new();
    for file in files.iter().filter(is_judged) {
        for (index, line) in code(&product(&file.text)).lines().enumerate() {
            if readings.iter().any(|reading| reading.is_match(line)) {
                problems.push(format!("{}:{} reads a status: `{}`", file.path, index + 1, line.trim()));
            }
        }
    }
    problems
}

#[test]
fn the_hub_reads_a_status_in_one_place() {
    expect_none(&problems(&files()));
}

#[test]
fn a_status_that_is_read_elsewhere_is_found() {
    let check = |path: &str, text: &str| problems(&[File::made_up(path, text)]).len();
    let elsewhere = "hub/core/src/service/dispatch/send.rs";
    for reading in [
        "if response.status() == 410 {",
        "let down = answer.status >= 500;",
        "matches!(whole.status, 429 | 502..=504)",
        "Some(Code::Http(429)) => wait(),",
        "Outcome::Answered { status: 500..=599, .. } => {}",
        "    429 | 503 => throttle(),",
        "    500..=599 if again => {}",
    ] {
        assert_eq!(check(elsewhere, reading), 1, "{reading}");
        assert_eq!(check(THE_PLACE, reading), 0, "{reading}");
        assert_eq!(check("libs/seawall-http/src/response.rs", reading), 0, "{reading}");
    }
    for other in
        ["let reply = Reply { status: 200, body };", "// status == 410", "    120..=7_199 => minutes(),"]
    {
        assert_eq!(check(elsewhere, other), 0, "{other}");
    }
}
