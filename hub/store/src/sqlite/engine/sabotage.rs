//! Two mistakes that a store must not make, for the judges that have to find them.
//!
//! Only a build with `--cfg seawall_sabotage` has this file, and only the test of the judges makes one. It is no feature of
//! the crate, because features add up: `--all-features` would put it into every hub that is tested.

use std::thread;
use std::time::Duration;

use crate::sqlite::engine::writer::CommitReply;

/// The variable that names the mistake.
const VARIABLE: &str = "SEAWALL_SABOTAGE";

fn is(mistake: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value == mistake)
}

/// Makes commits that do not wait for the disk.
pub(crate) fn synchronous(right: &str) -> &str {
    if is("synchronous-normal") { "NORMAL" } else { right }
}

/// Replies before the commit, which comes a little later, as on a busy disk.
pub(crate) fn tell_early(replies: Vec<CommitReply>) -> Vec<CommitReply> {
    if !is("acknowledge-before-commit") {
        return replies;
    }
    for reply in replies {
        reply(Ok(()));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the writer has a thread of its own, and this is a bad one"
    )]
    thread::sleep(Duration::from_millis(5));
    Vec::new()
}
