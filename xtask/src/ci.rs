//! `cargo xtask ci`: all that must be green before a change goes in, the cheapest check first.

use crate::metadata::{Krate, Workspace};
use crate::run::{self, Step, Usage};
use crate::test::{self, Scope};

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("ci", args)?;
    crate::needs::install();
    run::all_within(&steps(&Workspace::load()?), run::LIMIT)
}

fn steps(workspace: &Workspace) -> Vec<Step> {
    let mut steps = vec![Step::cargo("format", "fmt --all --check")];
    // The benchmarks are only looked at: compiling them would compile every peer that they measure.
    for apart in ["bench", "examples", "fuzz", "models"] {
        let manifest = format!("{apart}/Cargo.toml");
        if workspace.has(&manifest) {
            steps.push(
                Step::cargo(format!("format of {apart}"), "fmt --all --check --manifest-path").arg(manifest),
            );
        }
    }
    steps.push(Step::cargo("clippy", "clippy --workspace --all-targets --all-features -- -D warnings"));
    if workspace.has("examples/Cargo.toml") {
        let args = "clippy --manifest-path examples/Cargo.toml --workspace --all-targets -- -D warnings";
        steps.push(Step::cargo("clippy of examples", args));
    }
    let documentation = Step::cargo("documentation", "doc --workspace --no-deps --all-features");
    steps.push(documentation.flags("RUSTDOCFLAGS", "-D warnings"));
    steps.push(Step::cargo("public API", "run -q -p xtask -- public-api --check"));
    steps.extend(
        workspace.krates.iter().filter(|krate| krate.is_published_lib()).flat_map(each_feature_alone),
    );
    steps.extend(test::steps(workspace, Scope::Everything));
    steps
}

/// In the workspace features add up, so one that forgets what it needs is only found when it stands alone.
fn each_feature_alone(krate: &Krate) -> Vec<Step> {
    let alone = |name: String| Step::cargo(name, "check --no-default-features -p").arg(krate.name.clone());
    let mut steps = vec![alone(format!("{} without features", krate.name))];
    for feature in &krate.features {
        let step = alone(format!("{} with {feature}", krate.name));
        steps.push(step.arg("--features").arg(feature.clone()));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(krates: Vec<Krate>) -> Vec<String> {
        steps(&Workspace::made_up("target", krates)).iter().map(Step::line).collect()
    }

    #[test]
    fn each_feature_of_a_published_crate_is_checked_alone() {
        let mut lib = Krate::made_up("libs/seawall");
        lib.features = vec!["default".into(), "tokio".into()];
        let checks: Vec<_> = lines(vec![lib]).into_iter().filter(|line| line.contains(" check ")).collect();
        assert_eq!(
            checks,
            [
                "cargo check --no-default-features -p seawall",
                "cargo check --no-default-features -p seawall --features default",
                "cargo check --no-default-features -p seawall --features tokio",
            ]
        );
    }

    /// API-2: a change of the public API does not go in unseen.
    #[test]
    fn api_2_the_public_api_is_held_against_its_files() {
        assert!(lines(Vec::new()).iter().any(|line| line.ends_with("xtask -- public-api --check")));
    }

    #[test]
    fn a_crate_that_is_not_published_is_not_checked_feature_by_feature() {
        let mut xtask = Krate::made_up("xtask");
        xtask.published = false;
        assert!(!lines(vec![xtask]).iter().any(|line| line.contains(" check ")));
    }

    #[test]
    fn every_warning_is_an_error_and_the_tests_come_last() {
        let lines = lines(Vec::new());
        assert!(lines.iter().any(|line| line.contains("clippy") && line.ends_with("-- -D warnings")));
        assert!(lines.iter().any(|line| line.contains("RUSTDOCFLAGS") && line.contains("-D warnings")));
        let first_test =
            lines.iter().position(|line| line.contains("xtask -- retest")).expect("ci runs the tests");
        let is_test = |line: &String| {
            line.contains("cargo test") || line.contains("xtask -- retest") || line.ends_with("xtask -- api")
        };
        assert!(lines[first_test..].iter().all(is_test));
    }
}
