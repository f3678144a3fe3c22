//! Confirmation of bulk operations.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::error::{CommandError, CommandResult, REFUSED};
use crate::output::plain;

/// Asks for confirmation. Without a terminal, `--yes` is required.
pub(crate) fn sure(question: &str) -> CommandResult {
    let there = io::stdin().is_terminal() && io::stderr().is_terminal();
    agreed(question, there, &mut io::stdin().lock(), &mut io::stderr())
}

fn agreed(question: &str, there: bool, from: &mut impl BufRead, to: &mut impl Write) -> CommandResult {
    if !there {
        return Err(CommandError::usage(format!("{question} Can't ask for confirmation: not a terminal"))
            .and("`--yes` skips the confirmation, `--dry-run` only shows the effect"));
    }
    let mut said = String::new();
    write!(to, "{} [y/N] ", plain(question))?;
    to.flush()?;
    from.read_line(&mut said)?;
    match said.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::new(REFUSED, "cancelled; nothing was changed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: only a yes confirms. Without a terminal nothing is changed, and the error names `--yes`.
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
            assert!(ask(true, no).0.unwrap_err().contains("cancelled; nothing was changed"), "{no:?}");
        }
        let (refused, shown) = ask(false, "y\n");
        assert!(refused.unwrap_err().contains("`--yes` skips the confirmation"));
        assert_eq!(shown, "", "nobody is there to read it");
    }
}
