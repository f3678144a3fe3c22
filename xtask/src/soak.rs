//! `cargo xtask soak`: the judges of the hub, and of the adapters on real servers, again and again with fresh seeds, for as
//! long as one asks.
//!
//! What the judges of the hub demand and how is told in `docs/judges.md`.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use anyhow::Context;

use crate::run::{self, Step};

const MINUTES: u32 = 30;
/// How often the hub is killed beside each kind of peer; `cargo xtask test` does so 12 times.
const QUARANTINE_KILLS: &str = "100";

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let (database, args) = database(args)?;
    let minutes = run::minutes("soak", &args, MINUTES)?;
    let (began, time) = (run::now(), Duration::from_secs(60 * u64::from(minutes)));
    let first = RandomState::new().hash_one(0) % 1_000_000;
    let (mut seeds, mut rounds) = (first.., 0);
    while rounds == 0 || began.elapsed() < time {
        let seed = seeds.next().unwrap_or(first);
        let steps = if database { vec![judges_on_postgres(seed)] } else { vec![judges(seed), adapters()] };
        for step in steps {
            let so_far = began.elapsed().as_secs_f64() / 60.0;
            println!("==> round {}, after {so_far:.1} of {minutes} minutes: {}", rounds + 1, step.line());
            step.run()
                .with_context(|| format!("a judge found something in round {} of the soak", rounds + 1))?;
        }
        rounds += 1;
    }
    let took = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "==> {rounds} rounds in {took:.1} minutes, seeds {first} to {}: nothing was found",
        first + rounds - 1
    );
    Ok(())
}

/// Built as `cargo xtask test` builds them, so that nothing is built twice. One at a time, and they say what they have seen.
fn judges(seed: u64) -> Step {
    Step::cargo(
        "judges",
        "test --workspace --all-features --test hub judge:: -- --nocapture --test-threads=1",
    )
    .env("SEAWALL_JUDGE_SEED", &seed.to_string())
    .env("SEAWALL_JUDGE_QUARANTINE_KILLS", QUARANTINE_KILLS)
}

/// Whether `--database postgres` is among the arguments, and the others.
fn database(args: &[String]) -> anyhow::Result<(bool, Vec<String>)> {
    let Some(at) = args.iter().position(|arg| arg == "--database") else { return Ok((false, args.to_vec())) };
    anyhow::ensure!(args.get(at + 1).is_some_and(|name| name == "postgres"), "`--database` needs `postgres`");
    Ok((true, [&args[..at], &args[at + 2..]].concat()))
}

/// The judges of a hub on PostgreSQL, in a server that they start: those of the database in their long form, and those that know nothing
/// of files.
fn judges_on_postgres(seed: u64) -> Step {
    Step::cargo(
        "judges on PostgreSQL",
        "test --workspace --all-features --test hub -- judge::database judge::kills judge::poison judge::replay \
         judge::prm_1_nothing_is_lost_when_it judge::prm_2 --nocapture --test-threads=1",
    )
    .env("SEAWALL_JUDGE_SEED", &seed.to_string())
    .env("SEAWALL_TEST_DATABASE", "postgres")
    .env("SEAWALL_JUDGE_QUARANTINE_KILLS", QUARANTINE_KILLS)
    .env("SEAWALL_JUDGE_DATABASE_KILLS", "50")
    .env("SEAWALL_JUDGE_DATABASE_OUTAGES", "40")
    .env("SEAWALL_JUDGE_DATABASE_FAILOVERS", "5")
}

/// The tests of coordination and of the adapters against real servers, in their long form.
fn adapters() -> Step {
    let crates = crate::test::with_servers("-p");
    Step::cargo("adapters", &format!("test{crates} --all-features --tests -- --nocapture --test-threads=1"))
        .env("SEAWALL_LONG", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_time_is_refused_before_anything_runs() {
        let refusal = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            run(&args).expect_err("the arguments are wrong").to_string()
        };
        assert_eq!(refusal(&["--minutes"]), "`--minutes` needs a number");
        assert_eq!(refusal(&["--hours", "1"]), "`soak` does not know `--hours`");
        assert_eq!(refusal(&["--database", "oracle"]), "`--database` needs `postgres`");
        assert_eq!(refusal(&["--database", "postgres", "--minutes", "x"]), "`x` is not a number of minutes");
    }

    #[test]
    fn the_judges_of_a_database_have_a_server_of_their_own() {
        let line = judges_on_postgres(7).line();
        assert!(line.starts_with("SEAWALL_JUDGE_SEED=7 SEAWALL_TEST_DATABASE=postgres "), "{line}");
        assert!(line.contains(" judge::database judge::kills "), "{line}");
    }

    #[test]
    fn a_round_can_be_repeated_by_its_seed() {
        assert_eq!(
            judges(7).line(),
            "SEAWALL_JUDGE_SEED=7 SEAWALL_JUDGE_QUARANTINE_KILLS=100 cargo test --workspace --all-features --test hub judge:: -- \
             --nocapture --test-threads=1"
        );
    }
}
