//! The project's own commands: `cargo xtask test`, `ci`, `api`, `bench`, `deny`, `loom`, `mutants`, `fuzz`, `soak`,
//! `public-api`, `reference`, `retest`, `screenshots`.
//!
//! Why a program and not shell scripts: it runs wherever cargo does, it knows the workspace through `cargo
//! metadata`, and it is held to the same lints as the rest. The tests of the project's own shape live here
//! too, in `shape/`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks to its user")]

mod api;
mod bench;
mod ci;
mod deny;
mod fuzz;
mod metadata;
mod mutants;
mod needs;
mod public_api;
mod reference;
mod retest;
mod run;
mod screenshots;
#[cfg(test)]
mod shape;
mod soak;
mod test;

use std::env;
use std::process::ExitCode;

use run::Usage;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--quick]        every test: unit, integration, examples, documentation, loom models.
                        --quick leaves out what needs a server or takes long (today: Redis and PostgreSQL, the judges of
                        the hub, its pages in a browser, its API against its description, and the loom models)
  ci                    format, lints, documentation, each feature alone, then everything of `test`
  loom                  the loom models of crate `seawall` alone
  api                   holds a running hub against its own description, with requests that schemathesis makes of it;
                        installs that first, and needs Python
  bench [NAME] [ARGS]   runs one benchmark of bench/ with ARGS; without NAME, lists them
  deny                  known holes, licences and origins of all dependencies; installs cargo-deny first
  mutants [FILES]       changes the machines (or FILES, a pattern) in small ways and looks whether a test notices;
                        installs cargo-mutants first, and takes the better part of an hour
  fuzz [--minutes N]    reads texts that nobody would write, as configurations and as what comes to the hub from outside, for
                        N (20) minutes in all; installs cargo-fuzz first, and needs a nightly compiler
  soak [--minutes N]    the judges of the hub, again and again with fresh seeds, for N (30) minutes: kills, power cuts, full
                        disks, failing fsync; needs root and loop devices, see docs/judges.md. Then the long form of the
                        tests of coordination on Redis and PostgreSQL
  public-api [--check]  writes the public API of the published crates to docs/public-api, one item per line, and prints what
                        changed; --check writes nothing and fails if a file is stale
  reference             writes docs/configuration-reference.md, docs/openapi.json, the lists in docs/api.md and the reports of
                        the broken files anew
  retest ARGS           `cargo test ARGS`, every binary whatever fails; a few tests that failed run once more alone, and are
                        listed at the end if they pass then
  screenshots [--out DIR]
                        pictures of every page of the dashboard, in light, in dark and on a phone, into DIR or
                        target/screenshots; without DIR, those of the README in docs/images are made anew
  help                  prints this text

The tests of the project's own shape run with `test`; alone: cargo test -p xtask";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Err(error) = dispatch(&args) else { return ExitCode::SUCCESS };
    if error.is::<Usage>() {
        eprintln!("error: {error}\n\n{USAGE}");
        // The exit code by which shells and `getopt` programs tell "you asked wrongly" from "it failed".
        return ExitCode::from(2);
    }
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

fn dispatch(args: &[String]) -> anyhow::Result<()> {
    let Some((command, rest)) = args.split_first() else {
        return Err(Usage::new("no command given").into());
    };
    match command.as_str() {
        "test" => test::run(rest),
        "ci" => ci::run(rest),
        "loom" => test::run_loom(rest),
        "api" => api::run(rest),
        "bench" => bench::run(rest),
        "deny" => deny::run(rest),
        "mutants" => mutants::run(rest),
        "fuzz" => fuzz::run(rest),
        "soak" => soak::run(rest),
        "public-api" => public_api::run(rest),
        "reference" => reference::run(rest),
        "retest" => retest::run(rest),
        "screenshots" => screenshots::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => Err(Usage::new(format!("unknown command `{unknown}`")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let error = dispatch(&args).expect_err("the arguments are wrong");
        assert!(error.is::<Usage>(), "{error} is not about the arguments");
        error.to_string()
    }

    #[test]
    fn a_wrong_command_line_is_refused_before_anything_runs() {
        assert_eq!(refusal(&[]), "no command given");
        assert_eq!(refusal(&["tset"]), "unknown command `tset`");
        assert_eq!(refusal(&["test", "--quik"]), "`test` does not know `--quik`");
        assert_eq!(refusal(&["ci", "--quick"]), "`ci` does not know `--quick`");
        assert_eq!(refusal(&["loom", "x"]), "`loom` does not know `x`");
        assert_eq!(refusal(&["public-api", "x"]), "`public-api` does not know `x`");
    }
}
