//! Output: JSON for programs, tables and plain text for people.

mod describe;
mod progress;
mod table;
mod text;

use std::io::{self, IsTerminal, Write};

pub(crate) use self::progress::ProgressBar;
pub(crate) use self::table::{Column, Table};
pub(crate) use self::text::{cell, plain};
use crate::error::CommandResult;

/// The output on stdout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputWriter {
    pub(crate) json: bool,
    terminal: bool,
    colours: bool,
}

impl OutputWriter {
    pub(crate) fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        OutputWriter { json, terminal, colours: terminal && !asked_not_to && !dumb }
    }

    /// One line, exactly.
    pub(crate) fn line(&self, line: &str) -> CommandResult {
        let mut stdout = io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.write_all(b"\n")?;
        Ok(stdout.flush()?)
    }

    /// Lines for people, without control characters from outside.
    pub(crate) fn text(&self, text: &str) -> CommandResult {
        text.lines().try_for_each(|line| self.line(&plain(line)))
    }

    /// Requested content: exact for a file or a program, without control characters for a terminal.
    pub(crate) fn content(&self, text: &str) -> CommandResult {
        if self.terminal { self.text(text) } else { self.line(text) }
    }

    /// True if stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Prints a JSON object for people: the fields of `first` first, those of `without` not at all.
    pub(crate) fn describe(&self, json: &str, first: &[&str], without: &[&str]) -> CommandResult {
        describe::lines(json, first, without).iter().try_for_each(|line| self.line(line))
    }

    /// Prints a heading and a table.
    pub(crate) fn section<T>(&self, title: &str, columns: &[Column<T>], rows: &[T]) -> CommandResult {
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

/// Prints a line of a long-running command on stdout. The reader may be gone.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "seawall: {line}")?;
    stdout.flush()
}

/// Prints a note on stderr, beside the result.
pub(crate) fn note(text: &str) {
    // A closed stderr is not an error.
    let _ = writeln!(io::stderr(), "seawall: {}", plain(text));
}
