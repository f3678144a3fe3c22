//! Asking before something is done to many.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::{Done, Failure, REFUSED};
use crate::output::plain;

/// Goes on only if somebody says yes. Where there is nobody, `--yes` has to be said before.
pub(crate) fn sure(question: &str) -> Done {
    let there = io::stdin().is_terminal() && io::stderr().is_terminal();
    agreed(question, there, &mut io::stdin().lock(), &mut io::stderr())
}

fn agreed(question: &str, there: bool, from: &mut impl BufRead, to: &mut impl Write) -> Done {
    if !there {
        return Err(Failure::usage(format!("{question} There is nobody to ask: this is no terminal"))
            .and("`--yes` does it without asking, `--dry-run` only shows it"));
    }
    let mut said = String::new();
    write!(to, "{} [y/N] ", plain(question))?;
    to.flush()?;
    from.read_line(&mut said)?;
    match said.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(REFUSED, "nothing was done")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: only a yes is one. Where nobody can be asked, nothing is done, and it is said how.
    #[test]
    fn hub_10_only_a_yes_is_a_yes() {
        let ask = |there, said: &str| {
            let mut shown = Vec::new();
            let done = agreed("Replay 7 dead letters?", there, &mut said.as_bytes(), &mut shown);
            (done.map_err(|failure| format!("{failure:?}")), String::from_utf8(shown).unwrap())
        };
        for yes in ["y\n", "Yes\n", " y \n"] {
            assert_eq!(ask(true, yes), (Ok(()), "Replay 7 dead letters? [y/N] ".into()));
        }
        for no in ["\n", "", "n\n", "yep\n", "1\n"] {
            assert!(ask(true, no).0.unwrap_err().contains("nothing was done"), "{no:?}");
        }
        let (refused, shown) = ask(false, "y\n");
        assert!(refused.unwrap_err().contains("`--yes` does it without asking"));
        assert_eq!(shown, "", "nobody is there to read it");
    }
}
