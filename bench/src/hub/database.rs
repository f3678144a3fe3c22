//! A PostgreSQL server in which hubs keep their data while they are measured: an empty database for each, and the time of the
//! processor that the server uses.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::process::{TICKS_PER_SECOND, cpu_of};

/// A server on this machine, and the role that may create databases there.
#[derive(Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    /// The URL without a database: `postgres://postgres@127.0.0.1:5432`.
    url: String,
}

/// The URL of an empty database, and the process that all processes of its server come from.
#[derive(Clone, Debug)]
pub struct BenchDatabase {
    pub url: String,
    postmaster: u32,
}

impl DatabaseServer {
    pub fn new(url: &str) -> Self {
        DatabaseServer { url: url.trim_end_matches('/').to_owned() }
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// If `psql` is not there, or the server refuses.
    pub fn database(&self) -> Result<BenchDatabase, String> {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench_{}_{number}", std::process::id());
        self.psql(&format!("CREATE DATABASE {name}"))?;
        let folder = self.psql("SHOW data_directory")?;
        let file = format!("{}/postmaster.pid", folder.trim());
        let pid = fs::read_to_string(&file).map_err(|error| format!("can't read `{file}`: {error}"))?;
        let postmaster = pid.lines().next().and_then(|line| line.parse().ok());
        let postmaster = postmaster.ok_or_else(|| format!("`{file}` has no number of a process"))?;
        Ok(BenchDatabase { url: format!("{}/{name}", self.url), postmaster })
    }

    fn psql(&self, sql: &str) -> Result<String, String> {
        let url = format!("{}/postgres", self.url);
        let ran = Command::new("psql").args(["-X", "-A", "-t", "-q", "-d", &url, "-c", sql]).output();
        let ran = ran.map_err(|error| format!("can't run `psql`: {error}"))?;
        if !ran.status.success() {
            return Err(format!("`{sql}` failed: {}", String::from_utf8_lossy(&ran.stderr)));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }
}

impl BenchDatabase {
    /// Returns the processor's time that the server has used: of its processes, and of those that have ended.
    pub fn cpu(&self) -> Duration {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let stat = |number: u32| fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let children = numbers.filter(|number| fields(&stat(*number)).nth(1) == Some(self.postmaster.into()));
        let ended: u64 = fields(&stat(self.postmaster)).skip(13).take(2).sum();
        let ended = Duration::from_millis(ended * 1000 / TICKS_PER_SECOND);
        children.map(cpu_of).sum::<Duration>() + cpu_of(self.postmaster) + ended
    }
}

/// The fields of `/proc/PID/stat` from the state on, which counts as 0.
fn fields(stat: &str) -> impl Iterator<Item = u64> {
    let after_name = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    after_name.split_whitespace().map(|field| field.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_process_are_counted_from_its_state() {
        let stat = "7 (post) gres) S 42 2 3 4 5 6 7 8 9 10 120 34 5 6 20 0";
        assert_eq!(fields(stat).nth(1), Some(42));
        assert_eq!(fields(stat).skip(13).take(2).sum::<u64>(), 11);
    }

    #[test]
    fn a_url_has_no_slash_at_its_end() {
        assert_eq!(DatabaseServer::new("postgres://a@b:1/"), DatabaseServer::new("postgres://a@b:1"));
    }
}
