//! `cargo xtask reference`: writes what is made from the code: the pages of all settings, the reports of the broken
//! files, and the description of the API. Read what `git diff` shows before it goes in.

use crate::run::{self, Step, Usage};

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("reference", args)?;
    // The tests that find a stale page are those that write it.
    let write = Step::cargo("reference", "test -q -p seawall --all-features --test engine eng_12");
    let api = Step::cargo(
        "description of the API",
        "test -q -p seawall-hub-server --lib -- api_1_the_description api_1_the_page",
    );
    let settings = Step::cargo("settings of the hub", "test -q -p seawall-hub-cli --bins -- hub_9_the_page");
    run::all(&[write, settings, api].map(|step| step.env("UPDATE_GOLDEN", "1")))
}
