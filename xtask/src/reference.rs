//! `cargo xtask reference`: writes what is made from the code: the page of all settings, and the reports of the broken
//! files. Read what `git diff` shows before it goes in.

use crate::run::{self, Step, Usage};

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("reference", args)?;
    // The tests that find a stale page are those that write it.
    let write = Step::cargo("reference", "test -q -p seawall --all-features --test engine eng_12");
    let api =
        Step::cargo("description of the API", "test -q -p seawall-hub-server --lib api_1_the_description");
    run::all(&[write.env("UPDATE_GOLDEN", "1"), api.env("UPDATE_GOLDEN", "1")])
}
