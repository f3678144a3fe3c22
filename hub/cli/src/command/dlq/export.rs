//! `seawall dlq export`: streams dead letters as lines of JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use clap::Args;
use seawall::Clock;
use seawall_client::api::ExportQuery;

use super::letters;
use super::selection::LetterFilterArgs;
use crate::command::deliveries::REASONS;
use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::input::whole;
use crate::output::{ProgressBar, note, plain};

#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    filter: LetterFilterArgs,
    /// Only those dead-lettered for this reason.
    #[arg(long, visible_alias = "cause", value_parser = REASONS)]
    reason: Option<String>,
    /// Maximum number of dead letters.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    max: Option<u64>,
    /// Output file (default stdout); an existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
}

impl Export {
    pub(super) async fn run(&self, session: &Session) -> CommandResult {
        let opened = session.hub.dead_letters().export(&self.query(&session.clock)).await;
        let mut stream = opened.map_err(|error| session.failed(&error))?;
        // Whoever sees the lines themselves needs no count, and what others have written gives their terminal no orders.
        let seen = self.out.is_none() && session.out.is_terminal();
        let mut to: Box<dyn Write> = if seen { Box::new(TerminalGuard::default()) } else { self.target()? };
        let (progress, mut lines) = (ProgressBar::new(None), 0);
        let ended = loop {
            match stream.chunk().await {
                Ok(Some(piece)) => {
                    lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
                    to.write_all(&piece).map_err(|error| self.unwritten(error))?;
                    if !seen {
                        progress.at(0, &letters(lines));
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        to.flush().map_err(|error| self.unwritten(error))?;
        progress.clear();
        match (ended, &self.out) {
            (Err(error), _) => Err(session
                .broke_off(&error)
                .and(format!("the export is incomplete: {} received", letters(lines)))),
            (Ok(()), Some(file)) => {
                note(&format!("{} written to `{file}`", letters(lines)));
                Ok(())
            }
            (Ok(()), None) => Ok(()),
        }
    }

    fn query(&self, clock: &Clock) -> ExportQuery {
        let filter = self.filter.query(clock, self.reason.as_deref());
        ExportQuery { filter, max: self.max }
    }

    fn target(&self) -> Result<Box<dyn Write>, CommandError> {
        let Some(name) = &self.out else { return Ok(Box::new(BufWriter::new(io::stdout()))) };
        let file = File::create_new(name)
            .map_err(|error| CommandError::usage(format!("can't write `{name}`: {error}")))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    fn unwritten(&self, error: io::Error) -> CommandError {
        match &self.out {
            Some(name) => CommandError::new(REFUSED, format!("can't write `{name}`: {error}")),
            None => error.into(),
        }
    }
}

/// A terminal: lines, without what it would obey.
#[derive(Default)]
struct TerminalGuard {
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl Write for TerminalGuard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).take(end).collect();
            writeln!(io::stdout(), "{}", plain(&String::from_utf8_lossy(&line)))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
