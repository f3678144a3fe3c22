//! `seawall dlq export`: dead letters as lines of JSON, however many there are.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;

use clap::Args;
use seawall_hub_server::client::{Ask, path_part};

use super::choose::Filter;
use super::{DEAD_LETTERS, letters};
use crate::command::deliveries::REASONS;
use crate::failure::{Done, Failure, REFUSED};
use crate::output::{Progress, note, plain};
use crate::talk::Session;

#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    filter: Filter,
    /// Given up for this reason.
    #[arg(long, visible_alias = "cause", value_parser = REASONS)]
    reason: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N")]
    max: Option<NonZeroU64>,
    /// Into this file, and not to stdout. One that is there is not written over.
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
}

impl Export {
    pub(super) async fn run(&self, session: &Session) -> Done {
        let mut query = self.filter.pairs(self.reason.as_deref());
        query.push(("max", self.max.map(|max| max.to_string())));
        let said = query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let query: Vec<String> = said.map(|(name, value)| format!("{name}={}", path_part(value))).collect();
        let ask = Ask::get(format!("{DEAD_LETTERS}:export?{}", query.join("&")));
        let mut pieces = session.open(&ask).await?;
        // Whoever sees the lines themselves needs no count, and what others have written gives their terminal no orders.
        let seen = self.out.is_none() && session.out.is_terminal();
        let mut to: Box<dyn Write> = if seen { Box::new(Seen::default()) } else { self.target()? };
        let (progress, mut lines) = (Progress::new(None), 0);
        let ended = loop {
            match pieces.next().await {
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
                .and(format!("{} came, and more were to come: this is not the whole", letters(lines)))),
            (Ok(()), Some(file)) => {
                note(&format!("{} are in `{file}`", letters(lines)));
                Ok(())
            }
            (Ok(()), None) => Ok(()),
        }
    }

    fn target(&self) -> Result<Box<dyn Write>, Failure> {
        let Some(name) = &self.out else { return Ok(Box::new(BufWriter::new(io::stdout()))) };
        let file = File::create_new(name)
            .map_err(|error| Failure::usage(format!("`{name}` can't be written: {error}")))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    fn unwritten(&self, error: io::Error) -> Failure {
        match &self.out {
            Some(name) => Failure::new(REFUSED, format!("`{name}` can't be written: {error}")),
            None => error.into(),
        }
    }
}

/// A terminal: lines, without what it would obey.
#[derive(Default)]
struct Seen {
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl Write for Seen {
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
