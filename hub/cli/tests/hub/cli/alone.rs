//! What needs no hub: help, configurations, completions.

use serde_json::json;
use tempfile::TempDir;

use super::{Ran, command, ran, text};

const HELP: &str = include_str!("../../golden/help.txt");

fn run(args: &[&str]) -> Ran {
    ran(command("", args).env_remove("SEAWALL_URL"), "")
}

/// HUB-10: the help of the whole, with the exit codes.
#[test]
fn hub_10_the_help_says_everything() {
    let help = run(&["--help"]).well();
    assert_eq!(help.out, HELP, "if it is meant so: seawall --help > hub/cli/tests/golden/help.txt");
    assert!(run(&["-V"]).well().out.starts_with("seawall 0."));
    run(&[]).wrong(2, &["Usage: seawall"]);
    run(&["serv"]).wrong(2, &["'serve'"]);
    run(&["services", "put", "--help"]).well().says(&[
        "Examples:",
        "seawall services put billing.json",
        "--reason",
    ]);
}

/// HUB-10: what talks to no hub shows and takes nothing that is for talking to one.
#[test]
fn hub_10_an_option_that_would_be_ignored_is_refused() {
    for args in [["serve", "--json"], ["completions", "--json"]] {
        assert!(!run(&[args[0], "--help"]).well().out.contains("--json"));
        run(&[&args[..], &["bash"][..usize::from(args[0] == "completions")]].concat())
            .wrong(2, &["`--json` applies only to commands that connect to a hub"]);
    }
    run(&["check-config", "x.yaml", "--url", "http://x"]).wrong(2, &["`--url` applies only to commands"]);
}

/// HUB-10: every mistake of a configuration, each with its place, or what its guards do.
#[test]
fn hub_10_configurations_are_checked() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let good =
        file("good.yaml", "guards:\n  payments:\n    call_timeout: 10s\n    retry: {max_attempts: 3}\n");
    let over = file("over.toml", "[guards.payments.retry]\nmax_attempts = 7\n");
    run(&["check-config", text(&good)]).well().says(&["guard `payments`", "3 attempts"]);
    run(&["check-config", text(&good), text(&over)]).well().says(&["7 attempts"]);
    let checked = run(&["check-config", text(&good), "--json"]).well().json();
    assert_eq!((&checked["guards"][0]["name"], &checked["problems"]), (&json!("payments"), &json!([])));
    let bad =
        file("bad.yaml", "guards:\n  payments:\n    call_timeout: 2\n    breaker:\n      cooldwn: 30s\n");
    let said = run(&["check-config", text(&bad)]).wrong(1, &["2 problems"]);
    said.says(&[
        "bad.yaml:3:19: guards.payments.call_timeout: ",
        "bad.yaml:5:7: ",
        "did you mean `cooldown`?",
    ]);
    let said = run(&["check-config", text(&bad), "--json"]).wrong(1, &[]);
    assert_eq!(said.json()["problems"][1]["line"], 5);
    run(&["check-config", "nowhere.json"]).wrong(1, &["1 problem;"]).says(&["nowhere.json: can't be read"]);
    run(&["check-config"]).wrong(2, &["<FILE>"]);
}

/// HUB-10: completions for every shell, with the commands in them.
#[test]
fn hub_10_shells_complete_the_command_line() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        run(&["completions", shell]).well().says(&["check-config", "force-open", "key-file"]);
    }
    run(&["completions", "csh"]).wrong(2, &["possible values: bash"]);
}
