//! `cargo xtask test` and `cargo xtask loom`: which tests there are, and how each kind is run.

use crate::metadata::Workspace;
use crate::run::{self, Step, Usage};

/// The crates whose tests need servers: brokers, databases, object stores.
pub(crate) const WITH_SERVERS: [&str; 6] =
    ["seawall-amqp", "seawall-files", "seawall-kafka", "seawall-nats", "seawall-redis", "seawall-sql"];

/// Each of [`WITH_SERVERS`] behind a flag: ` -p seawall-amqp -p …`.
pub(crate) fn with_servers(flag: &str) -> String {
    WITH_SERVERS.map(|krate| format!(" {flag} {krate}")).concat()
}

/// `cargo test`, with a second run of what failed.
const RETEST: &str = "run -q -p xtask -- retest";

/// What `cargo xtask test` leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// Without what needs a server or takes long.
    Quick,
}

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut scope = Scope::Everything;
    for arg in args {
        match arg.as_str() {
            "--quick" => scope = Scope::Quick,
            _ => Usage::expect_none("test", std::slice::from_ref(arg))?,
        }
    }
    crate::needs::install();
    run::all_within(&steps(&Workspace::load()?, scope), run::LIMIT)
}

pub(crate) fn run_loom(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("loom", args)?;
    run::all(&[loom(&Workspace::load()?)])
}

/// Every test of the project, the cheapest kind first.
///
/// The judges of the hub are tests like others, in the binary `hub` of `hub/cli`. The hub with mistakes that two of them
/// have to find out is built by themselves, with `--cfg seawall_sabotage` in the folder `sabotage` beside the normal build:
/// by a feature, `--all-features` would put the mistakes into the hub that all other tests look at. That build takes a
/// minute when it is new, and a second when it is not.
pub(crate) fn steps(workspace: &Workspace, scope: Scope) -> Vec<Step> {
    let kinds = "--all-features --lib --bins --tests --examples";
    let mut steps = match scope {
        Scope::Everything => vec![Step::cargo("tests", &format!("{RETEST} --workspace {kinds}"))],
        Scope::Quick => vec![
            Step::cargo(
                "tests",
                &format!(
                    "{RETEST} --workspace{} {kinds} -- --skip judge:: --skip browser:: --skip servers::",
                    with_servers("--exclude")
                ),
            ),
            Step::cargo(
                "tests of adapters without servers",
                &format!("test{} --all-features --lib", with_servers("-p")),
            ),
        ],
    };
    steps.push(Step::cargo("documentation tests", "test --workspace --all-features --doc"));
    if workspace.has("examples/Cargo.toml") {
        steps.push(Step::cargo(
            "examples",
            &format!("{RETEST} --manifest-path examples/Cargo.toml --workspace --all-targets"),
        ));
    }
    if scope == Scope::Everything {
        steps.push(Step::cargo("description of the API", "run -q -p xtask -- api"));
        steps.push(loom(workspace));
    }
    steps
}

/// The models are a package of their own, so that loom stands in nobody's lock file. They run in release because loom walks
/// through every interleaving, and in a folder of their own because there are two packages named `seawall`.
fn loom(workspace: &Workspace) -> Step {
    Step::cargo("loom models", "test --manifest-path models/Cargo.toml --release --target-dir")
        .arg(format!("{}/loom", workspace.target_dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(scope: Scope) -> Vec<String> {
        let workspace = Workspace::made_up("target", Vec::new());
        steps(&workspace, scope).iter().map(Step::line).collect()
    }

    #[test]
    fn quick_leaves_out_servers_the_judges_the_browser_the_api_and_the_loom_models_and_nothing_else() {
        let (mut quick, mut everything) = (lines(Scope::Quick), lines(Scope::Everything));
        assert!(everything.pop().expect("there are steps").contains("models/Cargo.toml"));
        assert!(everything.pop().expect("there are steps").ends_with("xtask -- api"));
        assert_eq!(quick.remove(1), format!("cargo test{} --all-features --lib", with_servers("-p")));
        everything[0].insert_str(format!("cargo {RETEST} --workspace").len(), &with_servers("--exclude"));
        everything[0].push_str(" -- --skip judge:: --skip browser:: --skip servers::");
        assert_eq!(everything, quick);
    }

    #[test]
    fn the_loom_models_do_not_share_a_folder_with_the_normal_build() {
        let everything = lines(Scope::Everything);
        assert!(everything.last().expect("there are steps").ends_with("--target-dir target/loom"));
    }
}
