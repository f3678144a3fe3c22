//! What is printed: JSON for programs, tables and plain text for people.

mod describe;
mod progress;
mod table;
mod text;

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

pub(crate) use self::progress::Progress;
pub(crate) use self::table::{Column, Table};
pub(crate) use self::text::{cell, plain};
use crate::failure::Done;

/// Where answers go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) json: bool,
    terminal: bool,
    colours: bool,
}

impl Out {
    pub(crate) fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Out { json, terminal, colours: terminal && !asked_not_to && !dumb }
    }

    /// One line, exactly.
    pub(crate) fn line(&self, line: &str) -> Done {
        let mut stdout = io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.write_all(b"\n")?;
        Ok(stdout.flush()?)
    }

    /// Lines for people. What came from outside can't give orders to their terminal.
    pub(crate) fn text(&self, text: &str) -> Done {
        text.lines().try_for_each(|line| self.line(&plain(line)))
    }

    /// Bytes that somebody asked for: exact for a file or a program, harmless for a terminal.
    pub(crate) fn content(&self, text: &str) -> Done {
        if self.terminal { self.text(text) } else { self.line(text) }
    }

    /// Whether somebody looks at it as it comes.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// An object for people, these fields first.
    pub(crate) fn describe(&self, value: &Value, first: &[&str]) -> Done {
        describe::lines(value, first).iter().try_for_each(|line| self.line(line))
    }

    /// A heading over some rows, and the rows.
    pub(crate) fn section(&self, title: &str, columns: &[Column], rows: &[Value]) -> Done {
        if rows.is_empty() {
            return Ok(());
        }
        self.line("")?;
        self.line(&self.bold(title))?;
        Table::new(columns).rows(self, rows)
    }

    fn bold(&self, text: &str) -> String {
        if self.colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A line on stdout of what runs without being asked. Whoever reads it may be gone.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "seawall: {line}")?;
    stdout.flush()
}

/// A word beside the answer, so on stderr.
pub(crate) fn note(text: &str) {
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "seawall: {}", plain(text));
}
