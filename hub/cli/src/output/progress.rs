//! A progress bar on a terminal; nothing elsewhere.

use std::io::{self, IsTerminal, Write};

const WIDTH: u64 = 24;

/// A bar on stderr.
pub(crate) struct ProgressBar {
    shown: bool,
    /// The total number of units; `None` if unknown.
    total: Option<u64>,
}

impl ProgressBar {
    pub(crate) fn new(total: Option<u64>) -> Self {
        ProgressBar { shown: io::stderr().is_terminal(), total }
    }

    /// True if stderr is a terminal.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Draws the bar, with `words` behind it.
    pub(crate) fn at(&self, done: u64, words: &str) {
        if self.shown {
            // What does not fit into the line is cut: two lines would stay where they are.
            let _ = write!(io::stderr(), "\r\u{1b}[?7l{}\u{1b}[K\u{1b}[?7h", bar(done, self.total, words));
        }
    }

    /// Clears the bar's line.
    pub(crate) fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn bar(done: u64, total: Option<u64>, words: &str) -> String {
    let Some(total) = total.filter(|total| *total > 0) else { return words.to_owned() };
    let done = done.min(total);
    let full = usize::try_from(done.saturating_mul(WIDTH) / total).unwrap_or(0);
    let rest = usize::try_from(WIDTH).unwrap_or(0) - full;
    format!("[{}{}] {:3} %  {words}", "#".repeat(full), ".".repeat(rest), done.saturating_mul(100) / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a bar says how far it is, and where nobody knows it does without.
    #[test]
    fn hub_10_a_bar_says_how_far_it_is() {
        assert_eq!(bar(0, Some(200), "x"), "[........................]   0 %  x");
        assert_eq!(bar(50, Some(200), "x"), "[######..................]  25 %  x");
        assert_eq!(bar(300, Some(200), "x"), "[########################] 100 %  x");
        assert_eq!(bar(7, None, "x"), "x");
        assert_eq!(bar(7, Some(0), "x"), "x");
    }
}
