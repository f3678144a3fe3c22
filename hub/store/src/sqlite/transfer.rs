//! A whole database of SQLite as rows, for `seawall migrate`: read from a folder, or written into a new one.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};
use seawall::Clock;
use seawall_hub_core::port::store::{Change, UnitOfWork, UnitStore, WritePriority};

use super::backup::{PartialFile, finish, fresh};
use super::engine::place::{DATABASE, LOG, make_private, take_lock};
use super::engine::schema::{StartInfo, prepare};
use super::engine::writer::at_start;
use super::write::UnitApplier;
use super::{OpenError, Sqlite, read};
use crate::migrate::cell::{Cell, Counter, Row};
use crate::migrate::tables::{CopiedTable, RowForm};
use crate::record::{IncidentRecord, decode, encode};
use crate::sql::sql;

/// Says in a folder that its data is somewhere else now.
const MOVED: &str = "moved";

/// A database that is copied. Nobody else can open it meanwhile.
pub(crate) struct StoppedFolder {
    _store: Sqlite,
    pub(crate) reader: Reader,
    /// The epoch of the last process, and the epochs that rows still name.
    pub(crate) epochs: Vec<i64>,
}

/// Reads the rows of a file. A handle: clones read on connections of their own.
#[derive(Clone)]
pub(crate) struct Reader {
    path: PathBuf,
    /// The first half of its ids.
    pub(crate) era: i64,
}

impl StoppedFolder {
    /// Opens the database of a folder as a hub does that starts and stops: with the tables of now, and with nothing in hand.
    pub(crate) async fn open(folder: &Path, clock: &Clock) -> Result<Self, OpenError> {
        let path = folder.join(DATABASE);
        if !path.is_file() {
            return Err(OpenError(format!("there is no `{DATABASE}` in `{}`", folder.display())));
        }
        let store = Sqlite::open_folder(folder, clock)?;
        let stopped = store.commit(WritePriority::Admin, UnitOfWork::of(Change::RecordStop)).await;
        stopped.map_err(|error| at("can't write to", &path, &error))?;
        let failed = |error: rusqlite::Error| at("can't read", &path, &error);
        let connection = open(&path).map_err(failed)?;
        let era = connection.query_row("SELECT era FROM meta", [], |row| row.get(0)).map_err(failed)?;
        let named = sql!("SELECT epoch FROM meta UNION SELECT epoch FROM deliveries WHERE " IS_LEASED " ORDER BY 1 DESC");
        let mut statement = connection.prepare(named).map_err(failed)?;
        let epochs = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(failed)?;
        drop(statement);
        Ok(StoppedFolder { _store: store, reader: Reader { path, era }, epochs })
    }
}

impl Reader {
    /// Counts the rows of a table.
    pub(crate) fn rows(&self, table: &CopiedTable) -> Result<u64, OpenError> {
        let select =
            if table.form == RowForm::Incident { "SELECT number FROM incidents" } else { table.read };
        let count = || {
            let connection = open(&self.path)?;
            let mut statement = connection.prepare(&format!("SELECT count(*) FROM ({select})"))?;
            if statement.parameter_count() > 0 {
                statement.raw_bind_parameter(1, self.era)?;
            }
            let mut rows = statement.raw_query();
            rows.next()?.map_or(Ok(0), |row| row.get::<_, i64>(0))
        };
        count().map(i64::cast_unsigned).map_err(|error| at("can't read", &self.path, &error))
    }

    /// Reads all rows of a table, until `each` says that it has enough.
    pub(crate) fn scan(
        &self,
        table: &CopiedTable,
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<(), OpenError> {
        let failed = |error: rusqlite::Error| at("can't read", &self.path, &error);
        let connection = open(&self.path).map_err(failed)?;
        if table.form == RowForm::Incident {
            return self.scan_incidents(&connection, each);
        }
        let mut statement = connection.prepare(table.read).map_err(failed)?;
        if statement.parameter_count() > 0 {
            statement.raw_bind_parameter(1, self.era).map_err(failed)?;
        }
        let mut rows = statement.raw_query();
        while let Some(found) = rows.next().map_err(failed)? {
            let cells = (0..table.columns.len()).map(|column| found.get(column));
            let mut row = cells.collect::<rusqlite::Result<Row>>().map_err(failed)?;
            table.form.widen(&mut row, self.era);
            if !each(row) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the incidents as the documents that PostgreSQL has.
    fn scan_incidents(
        &self,
        connection: &Connection,
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<(), OpenError> {
        let failed = |error: rusqlite::Error| at("can't read", &self.path, &error);
        let mut names = connection.prepare("SELECT number, id FROM incidents").map_err(failed)?;
        let mut rows = names.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (number, id): (i64, String) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            let Some(incident) = read::alerts::incident(connection, &id).map_err(failed)? else { continue };
            let document = encode::<IncidentRecord>(&incident);
            let document = document.map_err(|error| at("can't read", &self.path, &error))?;
            let cells = vec![
                Cell::Integer(number),
                Cell::Text(incident.id.clone()),
                Cell::Integer(incident.is_live().into()),
                Cell::Integer(incident.is_open().into()),
                Cell::Text(incident.rule.to_string()),
                Cell::Text(incident.severity.word().into()),
                incident.service.as_ref().map(ToString::to_string).into(),
                incident.resolved.as_ref().map(|resolved| resolved.at.0).into(),
                Cell::Text(document),
            ];
            if !each(cells) {
                break;
            }
        }
        Ok(())
    }
}

/// A database that is made of rows. It gets its name when it is whole, and is deleted if it never does.
pub(crate) struct NewFile {
    connection: Connection,
    file: PartialFile,
    folder: PathBuf,
    start: StartInfo,
    _lock: File,
}

impl NewFile {
    /// Creates a file in a folder that has no database. Other files of a hub, such as `secret.key`, may be there.
    pub(crate) fn create(folder: &Path, era: i64, epoch: i64) -> Result<Self, OpenError> {
        make_private(folder).map_err(|error| at("can't create", folder, &error))?;
        let lock = take_lock(folder)?;
        for name in [DATABASE, LOG] {
            if folder.join(name).exists() {
                let word = format!("`{name}` is in it; move it away, or choose another folder");
                return Err(at("can't write to", folder, &word));
            }
        }
        let file = fresh(folder)?;
        let failed = |error: rusqlite::Error| at("can't write to", &file.path, &error);
        let mut connection = Connection::open(&file.path).map_err(failed)?;
        prepare(&mut connection, &[])?;
        let start = StartInfo { epoch: epoch.cast_unsigned(), database: era.cast_unsigned() };
        // Until it has its name it is worth nothing: it needs no log, and no wait for the disk before the end.
        connection.pragma_update(None, "journal_mode", "DELETE").map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "OFF").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
        Ok(NewFile { connection, file, folder: folder.to_owned(), start, _lock: lock })
    }

    /// Says who has written it: the process after it counts a crash if the epoch is not the one that has stopped.
    pub(crate) fn write_start(&self, stopped: i64) -> Result<(), OpenError> {
        let values = params![self.start.epoch.cast_signed(), stopped, self.start.database.cast_signed()];
        let written = self.connection.execute("UPDATE meta SET epoch = ?1, stopped = ?2, era = ?3", values);
        written.map(drop).map_err(|error| at("can't write to", &self.file.path, &error))
    }

    /// Writes rows of a table, all of them in one transaction.
    pub(crate) fn write(&mut self, table: &CopiedTable, mut rows: Vec<Row>) -> Result<(), OpenError> {
        if table.form == RowForm::Incident {
            return rows.iter().try_for_each(|row| self.write_incident(row));
        }
        rows.iter_mut().for_each(|row| table.form.narrow(row));
        let written = at_start(&mut self.connection, |connection| {
            for sql in table.write {
                let mut statement = connection.prepare_cached(sql)?;
                let count = statement.parameter_count();
                for row in &rows {
                    for (index, cell) in row.iter().enumerate().take(count) {
                        statement.raw_bind_parameter(index + 1, cell)?;
                    }
                    statement.raw_execute()?;
                }
            }
            Ok(())
        });
        written.map_err(|error| at("can't write to", &self.file.path, &error))
    }

    fn write_incident(&self, row: &Row) -> Result<(), OpenError> {
        let failed = |error: &dyn std::fmt::Display| at("can't write to", &self.file.path, error);
        let [number, id, .., document] = row.as_slice() else { return Ok(()) };
        let record = decode::<IncidentRecord>(id.text(), document.text()).map_err(|error| failed(&error))?;
        let incident = record.into_incident(id.text().to_owned());
        let applier = UnitApplier::new(&self.connection, self.start);
        applier.put_incident(&incident).map_err(|error| failed(&error))?;
        let renumber = "UPDATE incidents SET number = ?1 WHERE id = ?2";
        self.connection.execute(renumber, params![number, id]).map(drop).map_err(|error| failed(&error))
    }

    /// Reads what was written.
    pub(crate) fn reader(&self) -> Reader {
        Reader { path: self.file.path.clone(), era: self.start.database.cast_signed() }
    }

    /// Gives the file its name, when all of it is on the disk.
    pub(crate) fn name(self) -> Result<(), OpenError> {
        let NewFile { connection, file, folder, .. } = self;
        connection.close().map_err(|(_, error)| at("can't write to", &file.path, &error))?;
        // What was moved away from here has come back.
        forget_moved(&folder)?;
        finish(&folder)
    }
}

/// Refuses a folder whose data was moved to another database.
pub(crate) fn refuse_moved(folder: &Path) -> Result<(), OpenError> {
    match moved(folder) {
        None => Ok(()),
        Some(to) => Err(OpenError(format!(
            "the data of `{}` was moved to the database `{to}`: start the hub with `--database`, and this folder for \
             `secret.key`. If the move was interrupted, run `seawall migrate` once more; to keep the data here, when the other \
             database was never used, delete the file `{MOVED}`",
            folder.display()
        ))),
    }
}

/// Returns where the data of this folder was moved to.
pub(crate) fn moved(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(MOVED)).ok().map(|text| text.trim().to_owned())
}

/// Writes into a folder that its data is in another database, or is about to be.
pub(crate) fn write_moved(folder: &Path, to: &str) -> Result<(), OpenError> {
    let write = || {
        let mut file = File::create(folder.join(MOVED))?;
        writeln!(file, "{to}")?;
        file.sync_all()?;
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok::<(), std::io::Error>(())
    };
    write().map_err(|error| at("can't write to", folder, &error))
}

/// Takes back what [`write_moved`] has written.
pub(crate) fn forget_moved(folder: &Path) -> Result<(), OpenError> {
    match fs::remove_file(folder.join(MOVED)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(at("can't write to", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Counts the rows of a table and their hash.
pub(crate) fn count(reader: &Reader, table: &CopiedTable) -> Result<Counter, OpenError> {
    let mut counter = Counter::default();
    reader.scan(table, |row| {
        counter.add(&row);
        true
    })?;
    Ok(counter)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn at(what: &str, path: &Path, why: &dyn std::fmt::Display) -> OpenError {
    OpenError(format!("{what} `{}`: {why}", path.display()))
}
