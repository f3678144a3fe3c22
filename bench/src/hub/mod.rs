//! `cargo xtask bench hub`: the hub as a process, with who sends to it and who receives from it in another.
//!
//! # Why by hand?
//! The machine is shared by the hub, who sends and who receives. What sends and receives must cost little beside what is
//! measured, so it is one thread that writes prepared bytes and reads no more of the answers than it must.

pub mod api;
pub mod cli;
pub mod curves;
pub mod database;
pub mod desk;
pub mod disk;
pub mod event;
pub mod instructions;
pub mod lab;
pub mod load;
pub mod neighbours;
pub mod pages;
pub mod process;
pub mod report;
pub mod scenes;
pub mod sink;
pub mod targets;
pub mod times;
pub mod wire;

use std::fs;
use std::io::Write;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use self::cli::Options;
use self::report::{Report, Row};
use crate::launch::numbers_file;

/// A run: what was asked for, and what was found.
pub struct Bench<'a> {
    pub options: &'a Options,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// How long a row is measured, in each of its rounds.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.options.seconds)
    }

    /// How often a row is measured.
    pub fn rounds(&self) -> usize {
        if self.options.quick { 1 } else { 3 }
    }

    pub fn add(&mut self, row: Row) {
        eprintln!("{row}");
        self.rows.push(row);
    }

    /// One row of its rounds: whatever else runs on the machine can only lower the rate and add to the time.
    pub fn add_best(&mut self, rounds: &[Row]) {
        let least = |column: fn(&Row) -> Option<f64>| rounds.iter().filter_map(column).reduce(f64::min);
        let fastest = rounds.iter().max_by(|a, b| a.rate.unwrap_or(0.0).total_cmp(&b.rate.unwrap_or(0.0)));
        let Some((fastest, last)) = fastest.zip(rounds.last()) else { return };
        self.add(Row {
            cpu_us: least(|row| row.cpu_us),
            driver_us: least(|row| row.driver_us),
            // What a hub holds grows with what it has done.
            rss_mb: last.rss_mb,
            peak_mb: last.peak_mb,
            ..fastest.clone()
        });
    }

    /// A remark on the last row.
    pub fn note(&mut self, note: String) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(note);
        }
    }
}

/// Measures what was asked for and prints it.
pub fn run(options: &Options) -> Result<(), String> {
    let mut file = numbers_file(options.json.as_ref())?;
    raise_files();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let mut bench = Bench { options, rows: Vec::new() };
    let ended = LocalSet::new().block_on(&runtime, scenes(&mut bench));
    let _ = fs::remove_dir_all(&options.folder);
    if bench.rows.is_empty() && ended.is_ok() {
        return Err(format!("no row's name contains `{}`", options.filter.as_deref().unwrap_or_default()));
    }
    // What was measured before something went wrong is worth reading too.
    let report = Report { rows: &bench.rows, targets: &targets::of(&bench.rows) };
    print!("{report}");
    if let Some(file) = &mut file {
        writeln!(file, "{:#}", report::document(&report))
            .map_err(|error| format!("the JSON was not written: {error}"))?;
    }
    ended
}

async fn scenes(bench: &mut Bench<'_>) -> Result<(), String> {
    eprintln!("{}", report::HEAD);
    the_disk(bench, "at first")?;
    scenes::acknowledged(bench).await?;
    scenes::delivered(bench).await?;
    scenes::gentle(bench).await?;
    scenes::drain(bench).await?;
    curves::rules(bench).await?;
    curves::services(bench).await?;
    curves::pending(bench).await?;
    neighbours::neighbours(bench).await?;
    desk::desk(bench).await?;
    pages::pages(bench).await?;
    the_disk(bench, "at last")
}

/// Twice, because what else uses the disk comes and goes.
fn the_disk(bench: &mut Bench<'_>, when: &str) -> Result<(), String> {
    if bench.options.wants(disk::SCENE, when) {
        for row in disk::rows(&bench.options.folder, bench.time().min(Duration::from_secs(2)))? {
            bench.add(row.and(Some(when.into())));
        }
    }
    Ok(())
}

/// A thousand peers need more open files than a shell allows at first. What is started here may have as many.
pub(crate) fn raise_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is not allowed, the curve of services says so by itself.
    let _ = setrlimit(Resource::Nofile, limit);
}
