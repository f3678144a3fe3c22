//! Sessions that somebody has ended before their time.
//!
//! A session is a cookie that says everything by itself, so the hub has to remember which ones are good no longer: in a file beside
//! the database, because a session outlives a restart and so must its end. What is remembered is a hash, and only until the session
//! would have ended anyway.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::encode::hex;
use seawall_hub_core::sync::Lock;
use sha2::{Digest, Sha256};

use super::session::LASTS;

const FILE: &str = "ended-sessions";
/// The maximum number of ended sessions that are remembered. When there are more, every session that began before is over: people log in once more, and no session
/// that was ended is good again.
const REMEMBERED_MAX: usize = 10_000;
/// What stands in the place of a hash when all are over.
const ALL: &str = "all";

/// Sessions that were ended.
pub(super) struct EndedSessions {
    path: PathBuf,
    known: Lock<EndedIndex>,
}

#[derive(Default)]
struct EndedIndex {
    /// By their hash, until when they would have lasted.
    one: HashMap<SessionHash, Millis>,
    /// Those that would have lasted until then at most are over, all of them.
    all: Option<Millis>,
}

/// What is remembered of a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct SessionHash(String);

impl SessionHash {
    /// Of this cookie.
    pub(super) fn of(cookie: &str) -> Self {
        let hash = Sha256::digest(format!("ended {cookie}"));
        SessionHash(hex(&hash[..16]))
    }
}

impl EndedSessions {
    /// Those of this folder. What can't be read was never ended, as far as anybody knows.
    pub(super) fn open(folder: &Path, now: Millis) -> Self {
        let path = folder.join(FILE);
        let mut known = EndedIndex::default();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let Some((hash, until)) = line.split_once(' ') else { continue };
            let Some(until) = until.parse().ok().map(Millis).filter(|until| *until > now) else { continue };
            if hash == ALL {
                known.all = known.all.max(Some(until));
            } else {
                known.one.insert(SessionHash(hash.to_owned()), until);
            }
        }
        EndedSessions { path, known: Lock::new(known) }
    }

    /// Whether this session was ended.
    pub(super) fn has(&self, hash: &SessionHash, until: Millis) -> bool {
        let known = self.known.lock();
        known.all.is_some_and(|all| until <= all) || known.one.contains_key(hash)
    }

    /// Ends a session that would have lasted until then, from now on; an error says that it is good again after a restart.
    pub(super) fn end(
        &self,
        hash: SessionHash,
        until: Millis,
        (now, latest): (Millis, Millis),
    ) -> io::Result<()> {
        let mut known = self.known.lock();
        let line = format!("{} {}\n", hash.0, until.0);
        known.one.insert(hash, until);
        if known.one.len() <= REMEMBERED_MAX {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(line.as_bytes())?;
            return file.sync_data();
        }
        known.one.retain(|_, until| *until > now);
        if known.one.len() > REMEMBERED_MAX / 2 {
            known.one.clear();
            known.all = Some(latest);
        }
        let all = known.all.map(|until| (ALL.to_owned(), until));
        let lines = known.one.iter().map(|(hash, until)| (hash.0.clone(), *until)).chain(all);
        let text: String = lines.map(|(hash, until)| format!("{hash} {}\n", until.0)).collect();
        let next = self.path.with_extension("next");
        fs::write(&next, text)?;
        fs::File::open(&next)?.sync_data()?;
        fs::rename(&next, &self.path)
    }
}

/// Ends every session that began until now, in a folder that no hub runs on.
pub(crate) fn end_all_sessions(folder: &Path, now: Millis) -> io::Result<()> {
    let path = folder.join(FILE);
    fs::write(&path, format!("{ALL} {}\n", now.0 + LASTS * 1_000))?;
    fs::File::open(&path)?.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-1: what was ended stays ended, also after a restart, until it would be over anyway; and however many were ended, none
    /// of them is good again.
    #[test]
    fn sec_1_an_ended_session_stays_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (now, until) = (Millis(1_000), Millis(9_000));
        let ended = EndedSessions::open(folder.path(), now);
        let hash = |number: usize| SessionHash::of(&format!("cookie {number}"));
        ended.end(hash(0), until, (now, until)).unwrap();
        assert!(ended.has(&hash(0), until) && !ended.has(&hash(1), until));
        let again = EndedSessions::open(folder.path(), Millis(8_999));
        assert!(again.has(&hash(0), until) && !again.has(&hash(1), until));
        assert!(!EndedSessions::open(folder.path(), until).has(&hash(0), until), "nothing is kept for ever");
        let many = EndedSessions::open(folder.path(), now);
        {
            let mut known = many.known.lock();
            known.one.extend((1..=REMEMBERED_MAX).map(|number| (hash(number), until)));
        }
        many.end(hash(0), until, (now, Millis(9_500))).unwrap();
        let again = EndedSessions::open(folder.path(), now);
        for ended in [&many, &again] {
            assert!([0, 1, REMEMBERED_MAX].iter().all(|number| ended.has(&hash(*number), until)));
            assert!(!ended.has(&hash(7), Millis(9_501)), "one that began later is good");
        }
    }
}
