//! `seawall migrate`: everything from a folder with SQLite into an empty database of PostgreSQL, and back.
//!
//! # Nothing or all
//! Into PostgreSQL all rows go in one transaction; into SQLite they go into a file that gets its name at the end. What was written
//! is read again and compared row by row before that. The source is marked as moved just before the target becomes valid: at no
//! moment can a hub start on both. Whoever is killed in between runs it again.
//!
//! # What is copied
//! Every row with its number, so that ids stay what they are. The full-text index is not: the hub builds it anew, beside its work.

pub(crate) mod cell;
pub(crate) mod tables;

use std::path::Path;

use seawall::Clock;
use tokio::sync::mpsc;

use self::cell::{Count, Counter, Row};
use self::tables::{CopiedTable, TABLES};
use crate::OpenError;
use crate::postgres::PostgresOptions;
use crate::postgres::transfer::{DatabaseContent, Transfer};
use crate::sqlite::transfer::{self, NewFile, Reader, StoppedFolder};

/// The number of rows, and of bytes, that are handed over at once.
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;
/// The number of batches that may wait, so that memory is bounded.
const BATCHES: usize = 4;

/// How far it is. Rows count twice: once when they are copied, once when they are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MigrationProgress {
    pub table: &'static str,
    pub done: u64,
    pub total: u64,
}

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MigrationReport {
    /// The tables with their rows.
    pub tables: Vec<(&'static str, u64)>,
    /// True if an earlier run had copied everything and was interrupted after that.
    pub resumed: bool,
}

/// Counts what is done, and tells whoever watches.
struct CopyMeter<'m> {
    tell: &'m (dyn Fn(MigrationProgress) + Sync),
    done: u64,
    total: u64,
}

impl CopyMeter<'_> {
    fn add(&mut self, table: &CopiedTable, rows: usize) {
        self.done += rows as u64;
        (self.tell)(MigrationProgress { table: table.name, done: self.done, total: self.total });
    }
}

/// Copies the data of a folder into an empty database. The hub must be stopped.
pub async fn to_postgres(
    folder: &Path,
    options: &PostgresOptions,
    clock: &Clock,
    tell: &(dyn Fn(MigrationProgress) + Sync),
) -> Result<MigrationReport, OpenError> {
    let source = StoppedFolder::open(folder, clock).await?;
    let target = Transfer::begin(options, clock).await?;
    if let Some(before) = transfer::moved(folder).filter(|before| *before != target.label()) {
        return Err(OpenError(format!(
            "the data of `{}` was moved to the database `{before}` before",
            folder.display()
        )));
    }
    let reader = source.reader.clone();
    let content = target.content().await?;
    if content != DatabaseContent::Nothing {
        return resume(folder, &target, &content, &reader).await;
    }
    target.create_tables().await?;
    let total = in_background({
        let reader = reader.clone();
        move || TABLES.iter().map(|table| reader.rows(table)).sum::<Result<u64, OpenError>>()
    })
    .await?;
    let mut meter = CopyMeter { tell, done: 0, total: total * 2 };
    let mut counts = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        counts.push(copy_to_postgres(&reader, &target, table, &mut meter).await?);
    }
    for (table, expected) in TABLES.iter().zip(&counts) {
        let mut found = Counter::default();
        target
            .read(table, async |rows| {
                rows.iter().for_each(|row| found.add(row));
                meter.add(table, rows.len());
                Ok(())
            })
            .await?;
        compare(table, *expected, found.count())?;
    }
    target.complete(reader.era, &source.epochs, &stamp(reader.era, &counts)).await?;
    transfer::write_moved(folder, target.label())?;
    match target.commit().await {
        Ok(true) => Ok(report(&counts, false)),
        Ok(false) => {
            transfer::forget_moved(folder)?;
            Err(OpenError("the database has not kept what was copied; nothing was changed".into()))
        }
        Err(error) => Err(OpenError(format!("{error}; nobody knows whether it was kept: run it once more"))),
    }
}

/// Ends what an earlier run has begun: the database holds exactly what is in the folder.
async fn resume(
    folder: &Path,
    target: &Transfer,
    content: &DatabaseContent,
    reader: &Reader,
) -> Result<MigrationReport, OpenError> {
    let label = target.label();
    let refused = |why: &str| Err(OpenError(format!("the database `{label}` is not empty: {why}")));
    let DatabaseContent::Hub { imported: Some(imported), moved: None } = content else {
        return refused("choose one that no hub has used");
    };
    let counts = in_background({
        let reader = reader.clone();
        move || {
            let count = |table| transfer::count(&reader, table).map(|counter| counter.count());
            TABLES.iter().map(count).collect::<Result<Vec<Count>, OpenError>>()
        }
    })
    .await?;
    if *imported != stamp(reader.era, &counts) {
        return refused("it has what was copied from another folder, or from an earlier state of this one");
    }
    transfer::write_moved(folder, label)?;
    Ok(report(&counts, true))
}

/// Copies all of a database into a folder without one. No hub may live on the database.
pub async fn to_sqlite(
    options: &PostgresOptions,
    folder: &Path,
    clock: &Clock,
    tell: &(dyn Fn(MigrationProgress) + Sync),
) -> Result<MigrationReport, OpenError> {
    let source = Transfer::begin(options, clock).await?;
    let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).display().to_string();
    match source.content().await? {
        DatabaseContent::Nothing => {
            return Err(OpenError(format!("the database `{}` has no data of a hub", source.label())));
        }
        DatabaseContent::Hub { moved: Some(before), .. } if before != name => {
            return Err(OpenError(format!(
                "the data of `{}` was moved to the folder `{before}` before",
                source.label()
            )));
        }
        DatabaseContent::Hub { .. } => {}
    }
    let eras = source.eras().await?;
    let [era] = eras[..] else {
        return Err(OpenError(format!(
            "the ids of the database `{}` have {} different first halves, because its server was promoted or restored; SQLite \
             keeps only one, so some ids would change. It can be moved when retention has deleted the older ones",
            source.label(),
            eras.len()
        )));
    };
    let (epoch, in_order) = source.last_epoch().await?;
    let mut meter = CopyMeter { tell, done: 0, total: source.rows().await? * 2 };
    let mut target = in_background({
        let folder = folder.to_owned();
        move || NewFile::create(&folder, era, epoch)
    })
    .await?;
    let mut counts = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let (count, same) = copy_to_sqlite(&source, target, table, &mut meter).await?;
        counts.push(count);
        target = same;
    }
    let reader = target.reader();
    for (table, expected) in TABLES.iter().zip(&counts) {
        let reader = reader.clone();
        let found = in_background(move || transfer::count(&reader, table)).await?.count();
        meter.add(table, usize::try_from(found.rows).unwrap_or(0));
        compare(table, *expected, found)?;
    }
    // A process that ended without its last word counts as a crash, as it does on PostgreSQL.
    target.write_start(if in_order { epoch } else { 0 })?;
    source.write_moved(&name).await?;
    if !source.commit().await? {
        return Err(OpenError("the database has not noted that it was moved; nothing was changed".into()));
    }
    in_background(move || target.name()).await?;
    Ok(report(&counts, false))
}

/// Reads a table on a thread, and writes it into the database as it comes.
async fn copy_to_postgres(
    reader: &Reader,
    target: &Transfer,
    table: &'static CopiedTable,
    meter: &mut CopyMeter<'_>,
) -> Result<Count, OpenError> {
    let (sender, mut receiver) = mpsc::channel::<Vec<Row>>(BATCHES);
    let reading = in_background({
        let reader = reader.clone();
        move || read_batches(&reader, table, &sender)
    });
    let writing = target.write(table, async || {
        let rows = receiver.recv().await;
        meter.add(table, rows.as_ref().map_or(0, Vec::len));
        Ok(rows)
    });
    let (count, written) = tokio::join!(reading, writing);
    written?;
    count
}

fn read_batches(
    reader: &Reader,
    table: &CopiedTable,
    sender: &mpsc::Sender<Vec<Row>>,
) -> Result<Count, OpenError> {
    let (mut counter, mut batch, mut bytes) = (Counter::default(), Vec::with_capacity(BATCH_ROWS), 0);
    reader.scan(table, |row| {
        counter.add(&row);
        bytes += row.iter().map(cell::Cell::size).sum::<usize>();
        batch.push(row);
        if batch.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            return true;
        }
        bytes = 0;
        // Nobody takes it any more if the database has failed.
        sender.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    if !batch.is_empty() {
        let _ = sender.blocking_send(batch);
    }
    Ok(counter.count())
}

/// Reads a table from the database, and writes it on a thread as it comes.
async fn copy_to_sqlite(
    source: &Transfer,
    mut target: NewFile,
    table: &'static CopiedTable,
    meter: &mut CopyMeter<'_>,
) -> Result<(Count, NewFile), OpenError> {
    let (sender, mut receiver) = mpsc::channel::<Vec<Row>>(BATCHES);
    let writing = in_background(move || {
        let mut counter = Counter::default();
        while let Some(rows) = receiver.blocking_recv() {
            rows.iter().for_each(|row| counter.add(row));
            target.write(table, rows)?;
        }
        Ok((counter.count(), target))
    });
    let reading = async move {
        source
            .read(table, async |rows| {
                meter.add(table, rows.len());
                // Why nobody takes it is what the thread says.
                let _ = sender.send(rows).await;
                Ok(())
            })
            .await
    };
    let (written, read) = tokio::join!(writing, reading);
    let written = written?;
    read?;
    Ok(written)
}

fn compare(table: &CopiedTable, expected: Count, found: Count) -> Result<(), OpenError> {
    if expected == found {
        return Ok(());
    }
    Err(OpenError(format!(
        "the table `{}` is not the same after the copy: {} rows were read and {} are there; nothing was changed",
        table.name, expected.rows, found.rows
    )))
}

/// What was copied, as a text that no other state has.
fn stamp(era: i64, counts: &[Count]) -> String {
    let all: Vec<String> = counts.iter().map(ToString::to_string).collect();
    format!("{era:016x} {}", all.join(" "))
}

fn report(counts: &[Count], resumed: bool) -> MigrationReport {
    let tables = TABLES.iter().zip(counts).map(|(table, count)| (table.name, count.rows)).collect();
    MigrationReport { tables, resumed }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(OpenError(format!("the copy has failed: {error}"))))
}
