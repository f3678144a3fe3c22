//! `seawall check-config`.

use std::path::PathBuf;

use clap::Args;
use seawall::config::{Config, Loader, Problem};
use serde_json::{Value, json};

use crate::error::{CommandError, CommandResult, REFUSED};
use crate::output::{OutputWriter, note};

#[derive(Args)]
pub(crate) struct CheckConfig {
    /// Configuration files in YAML, TOML or JSON; later files override earlier ones.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl CheckConfig {
    pub(super) fn run(self, out: &OutputWriter) -> CommandResult {
        let loader = self.files.iter().fold(Config::loader(), Loader::file);
        match loader.load() {
            Ok(config) => well(out, &config),
            Err(error) => {
                let problems = error.problems();
                if out.json {
                    let data = json!({"guards": [], "warnings": [], "problems": listed(problems)});
                    out.line(&data.to_string())?;
                } else {
                    out.text(&problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())?;
                }
                let word = if problems.len() == 1 { "problem" } else { "problems" };
                Err(CommandError::new(
                    REFUSED,
                    format!("{} {word}; no guard can be built from this configuration", problems.len()),
                ))
            }
        }
    }
}

fn well(out: &OutputWriter, config: &Config) -> CommandResult {
    let mut guards = Vec::new();
    for plan in config.plans() {
        // It was built once already, to see whether it can be.
        let guard = plan.builder().build().map_err(|error| CommandError::new(REFUSED, error.to_string()))?;
        guards.push((plan.name(), guard.explain()));
    }
    if out.json {
        let guards: Vec<Value> =
            guards.iter().map(|(name, explained)| json!({"name": name, "explain": explained})).collect();
        let data = json!({"guards": guards, "warnings": listed(config.warnings()), "problems": []});
        return out.line(&data.to_string());
    }
    for warning in config.warnings() {
        note(&format!("warning: {warning}"));
    }
    let explained: Vec<&str> = guards.iter().map(|(_, explained)| explained.as_str()).collect();
    out.text(&explained.join("\n"))
}

fn listed(problems: &[Problem]) -> Vec<Value> {
    let problem = |problem: &Problem| {
        json!({
            "file": problem.file(), "line": problem.line(), "column": problem.column(), "path": problem.path(),
            "reason": problem.reason(), "remedy": problem.remedy(),
        })
    };
    problems.iter().map(problem).collect()
}
