//! The dead letters of a spool, one file each.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall::Fault;
use seawall_dist::deadletter::{
    ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, Edit, FailedReplay, Filter, GroupCount,
    LetterChange, LetterOrder, Page, PutOutcome, Record, ReplayRequest, ReplayStart, Status, apply,
    begin_replay, copy, finish_replay, merge,
};
use seawall_dist::{Millis, StoreError, StoreFuture};
use sha2::{Digest, Sha256};

use super::Spool;
use super::durable::{remove_file, write_file};
use super::letter_json::{from_json, to_json};
use super::staged::hexadecimal;
use crate::name::random_uuid;

/// The files of a [`Spool`] that were given up, as dead letters.
///
/// The payload of a letter describes the file in JSON; its bytes stay in the folder `dead` of the spool, where downloads still
/// find them. A replay puts the file back into the queue: hand this to
/// [`DeadLetters`](seawall_dist::deadletter::DeadLetters) as its store and as its replayer.
#[derive(Clone)]
pub struct DeadFiles {
    pub(super) spool: Spool,
}

/// The letters on disk, as long as nobody else may change them.
struct LockedLetters {
    folder: PathBuf,
    now: Millis,
    _lock: File,
}

impl LockedLetters {
    fn open(spool: &Spool) -> io::Result<Self> {
        let folder = spool.shared.folder.letters();
        let lock = File::options().create(true).write(true).truncate(false).open(folder.join("lock"))?;
        lock.lock()?;
        Ok(LockedLetters { folder, now: spool.now(), _lock: lock })
    }

    fn path(&self, id: &str) -> PathBuf {
        // An id may be any text, and a file name may not.
        self.folder.join(format!("{}.json", hexadecimal(&Sha256::digest(id))))
    }

    fn load(&self, id: &str) -> io::Result<Option<DeadLetter>> {
        match fs::read(self.path(id)) {
            Ok(bytes) => from_json(&bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, letter: &DeadLetter) -> io::Result<()> {
        write_file(&self.folder.join(random_uuid()), &self.path(letter.id()), &to_json(letter))
    }

    fn remove(&self, id: &str) -> io::Result<bool> {
        remove_file(&self.path(id))
    }

    /// Changes a letter, and keeps it if the change says so.
    fn change<T>(&self, id: &str, absent: T, change: impl FnOnce(&mut DeadLetter) -> T) -> io::Result<T> {
        let Some(mut letter) = self.load(id)? else { return Ok(absent) };
        let before = letter.clone();
        let outcome = change(&mut letter);
        if letter != before {
            self.save(&letter)?;
        }
        Ok(outcome)
    }

    fn all(&self, filter: &Filter) -> io::Result<Vec<DeadLetter>> {
        let mut letters = Vec::new();
        for found in fs::read_dir(&self.folder)? {
            let path = found?.path();
            if path.extension() == Some("json".as_ref()) {
                let letter = from_json(&fs::read(&path)?)?;
                letters.extend(filter.matches(&letter).then_some(letter));
            }
        }
        Ok(letters)
    }

    fn put(&self, record: &Record) -> io::Result<PutOutcome> {
        let now = self.now;
        if let Some(mut letter) = self.load(&record.id)? {
            let outcome = merge(&mut letter, record, now);
            self.save(&letter)?;
            return Ok(outcome);
        }
        self.save(&DeadLetter::new(record.clone()))?;
        Ok(PutOutcome::Created)
    }

    fn copy(&self, id: &str, edit: &Edit, copy_id: &str) -> io::Result<CopyOutcome> {
        let existing = self.load(copy_id)?;
        let is_new = existing.is_none();
        let Some(mut letter) = self.load(id)? else { return Ok(CopyOutcome::Absent) };
        let outcome = copy(&mut letter, edit, copy_id, existing, self.now);
        if let (CopyOutcome::Copied(copy), true) = (&outcome, is_new) {
            // The copy first: a letter that is superseded by nothing would be lost.
            self.save(copy)?;
            self.save(&letter)?;
        }
        Ok(outcome)
    }

    fn purge(&self, spool: &Spool, deleted: Duration, replayed: Duration, limit: u32) -> io::Result<u64> {
        let mut letters = self.all(&Filter::default())?;
        letters.extend(self.all(&Filter::default().deleted())?);
        let is_over = |letter: &&DeadLetter| {
            let replayed_at = letter.replayed_at().filter(|_| letter.status == Status::Replayed);
            letter.deleted_at.is_some_and(|at| at + deleted <= self.now)
                || replayed_at.is_some_and(|at| at + replayed <= self.now)
        };
        let mut count = 0;
        for letter in letters.iter().filter(is_over).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            if letter.deleted_at.is_some() && Path::new(letter.id()).components().count() == 1 {
                remove_file(&spool.shared.folder.dead(letter.id()))?;
            }
            count += u64::from(self.remove(letter.id())?);
        }
        Ok(count)
    }
}

impl DeadFiles {
    pub(super) fn new(spool: Spool) -> Self {
        DeadFiles { spool }
    }

    fn locked<'a, T: Send + 'static>(
        &'a self,
        action: &'static str,
        step: impl FnOnce(&LockedLetters, &Spool) -> io::Result<T> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let spool = self.spool.clone();
        Box::pin(async move {
            let owner = spool.clone();
            let locked = owner.blocking(action, move |_| step(&LockedLetters::open(&spool)?, &spool));
            locked.await.map_err(|error| StoreError::new(action, disk_fault(error.fault()), error))
        })
    }
}

/// A disk that failed may work again; the letter is still there.
fn disk_fault(fault: Fault) -> Fault {
    if fault.is_transient() { fault } else { Fault::io() }
}

/// Writes the letter of a file that was given up, on the thread of the sender's step.
pub(super) fn put_letter(spool: &Spool, record: &Record) -> io::Result<()> {
    LockedLetters::open(spool)?.put(record).map(|_| ())
}

impl DeadLetterStore for DeadFiles {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        let record = record.clone();
        self.locked("keeping a dead letter", move |letters, _| letters.put(&record))
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        let id = id.to_owned();
        self.locked("reading a dead letter", move |letters, _| letters.load(&id))
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.locked("listing dead letters", move |letters, _| {
            let compare = |a: (Millis, &str), b: (Millis, &str)| match order {
                LetterOrder::NewestFirst => b.cmp(&a),
                LetterOrder::AsItHappened => a.cmp(&b),
            };
            let mut found = letters.all(&filter)?;
            found.retain(|letter| {
                let place = (order.time_of(letter), letter.id());
                after.as_ref().is_none_or(|cursor| compare((cursor.at, &cursor.id), place).is_lt())
            });
            found.sort_by(|a, b| compare((order.time_of(a), a.id()), (order.time_of(b), b.id())));
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1));
            Ok(Page::of_rows(found, order, limit))
        })
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        let filter = filter.clone();
        self.locked("counting dead letters", move |letters, _| {
            let mut groups: BTreeMap<(String, String, String, Status), (u64, Millis)> = BTreeMap::new();
            for letter in letters.all(&filter)? {
                let Record { origin, fault, at, .. } = letter.record;
                let (count, oldest) =
                    groups.entry((origin.kind, origin.place, fault.reason, letter.status)).or_insert((0, at));
                *count += 1;
                *oldest = (*oldest).min(at);
            }
            let mut counts: Vec<GroupCount> = groups
                .into_iter()
                .map(|((kind, place, reason, status), (count, oldest))| GroupCount {
                    kind,
                    place,
                    reason,
                    status,
                    count,
                    oldest,
                })
                .collect();
            counts.sort_by_key(|group| std::cmp::Reverse(group.count));
            counts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(counts)
        })
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        let id = id.to_owned();
        self.locked("changing a dead letter", move |letters, _| {
            letters.change(&id, ChangeOutcome::Absent, |letter| apply(letter, change, letters.now))
        })
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        let (id, edit, copy_id) = (id.to_owned(), edit.clone(), copy_id.to_owned());
        self.locked("copying a dead letter", move |letters, _| letters.copy(&id, &edit, &copy_id))
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        let (id, request) = (id.to_owned(), request.clone());
        self.locked("claiming a dead letter", move |letters, _| {
            letters.change(&id, ReplayStart::Absent, |letter| begin_replay(letter, &request, letters.now))
        })
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        let (id, failure) = (id.to_owned(), failure.cloned());
        self.locked("ending a replay", move |letters, _| {
            letters.change(&id, false, |letter| finish_replay(letter, claim, failure.as_ref(), letters.now))
        })
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.locked("purging dead letters", move |letters, spool| {
            letters.purge(spool, deleted, replayed, limit)
        })
    }
}

impl fmt::Debug for DeadFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadFiles").field("spool", &self.spool).finish()
    }
}
