//! The hub as a process of its own: started, measured from outside, and stopped.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::database::BenchDatabase;

/// The key of every hub that is measured.
pub const KEY: &str = "a-key-that-is-long-enough";
/// A hub that finds a million deliveries may take its time.
const START_WITHIN: Duration = Duration::from_secs(120);
/// The unit of `/proc/PID/stat`, on every Linux.
pub const TICKS_PER_SECOND: u64 = 100;

/// The hub as a process of its own. Goes with its value.
pub struct Hub {
    process: Child,
    pub address: SocketAddr,
    folder: PathBuf,
    /// Where it keeps its data, if that is not the folder.
    database: Option<BenchDatabase>,
    /// From the start of the process until it said where it listens.
    pub started_in: Duration,
}

/// What a process holds in memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub now_mb: f64,
    pub peak_mb: f64,
}

impl Hub {
    /// Starts a hub on a folder that is empty.
    pub fn start(binary: &Path, folder: &Path, database: Option<BenchDatabase>) -> Result<Self, String> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| format!("can't make `{}`: {error}", folder.display()))?;
        Self::start_again(binary, folder, database)
    }

    /// Starts a hub on what another has left. Its log is on, as it is by default, and goes to a file.
    pub fn start_again(
        binary: &Path,
        folder: &Path,
        database: Option<BenchDatabase>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `{}`: {error}", binary.display());
        let (said, log) = (folder.join("said"), folder.join("log"));
        let began = Instant::now();
        let process = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-egress", "127.0.0.0/8", "--data-dir"])
            .arg(folder.join("data"))
            .env("SEAWALL_ADMIN_KEY", KEY)
            .envs(database.iter().map(|database| ("SEAWALL_DATABASE", &database.url)))
            .stdout(Stdio::from(File::create(&said).map_err(failed)?))
            .stderr(Stdio::from(File::create(&log).map_err(failed)?))
            .spawn()
            .map_err(failed)?;
        // Made before it is known to listen, so that a hub which does not is stopped too.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let (folder, started_in) = (folder.to_owned(), Duration::ZERO);
        let mut hub = Hub { process, address: nowhere, folder, database, started_in };
        while began.elapsed() < START_WITHIN {
            if let Some(address) = address_in(&fs::read_to_string(&said).unwrap_or_default()) {
                (hub.address, hub.started_in) = (address, began.elapsed());
                return Ok(hub);
            }
            if hub.process.try_wait().map_err(failed)?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("the hub does not listen; it says:\n{}", fs::read_to_string(&log).unwrap_or_default()))
    }

    /// Kills it as a power cut would, and starts another on the same folder.
    pub fn restart(&mut self, binary: &Path) -> Result<(), String> {
        self.kill();
        *self = Self::start_again(binary, &self.folder, self.database.clone())?;
        Ok(())
    }

    /// Stops it in order, and waits until it has ended. The number that its process had.
    pub fn terminate(&mut self) -> Result<u32, String> {
        let id = self.process.id();
        let number = id.try_into().ok().and_then(Pid::from_raw).ok_or("the process has no number")?;
        kill_process(number, Signal::TERM).map_err(|error| format!("can't stop the hub: {error}"))?;
        self.process.wait().map_err(|error| format!("the hub did not end: {error}"))?;
        Ok(id)
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// The processor's time that all its threads have used, kernel included.
    pub fn cpu(&self) -> Duration {
        cpu_of(self.process.id())
    }

    /// The processor's time that its database server has used.
    pub fn database_cpu(&self) -> Option<Duration> {
        self.database.as_ref().map(BenchDatabase::cpu)
    }

    pub fn memory(&self) -> Memory {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        Memory { now_mb: megabytes_in(&status, "VmRSS:"), peak_mb: megabytes_in(&status, "VmHWM:") }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processor's time that all threads of a process have used, kernel included.
pub fn cpu_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    ticks_in(&stat).map_or(Duration::ZERO, |ticks| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn address_in(said: &str) -> Option<SocketAddr> {
    // A line without its end may be half of one.
    let line = said.lines().find(|line| line.contains("http://")).filter(|_| said.ends_with('\n'))?;
    line.split("http://").nth(1)?.split(',').next()?.parse().ok()
}

/// `utime` and `stime`. The name of the process, in parentheses, may hold anything; what follows does not.
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn megabytes_in(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says_of_a_process() {
        let stat = "7 (sea) wall) S 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0";
        assert_eq!(ticks_in(stat), Some(154));
        assert_eq!(megabytes_in("VmHWM:\t  2000 kB\nVmRSS:\t  1000 kB\n", "VmRSS:"), 1.024);
    }

    #[test]
    fn finds_the_address_in_what_the_hub_says() {
        let line = "seawall: listening on http://127.0.0.1:8480, data in `x`";
        assert_eq!(address_in(line), None, "the line is not whole yet");
        assert_eq!(address_in(&format!("{line}\n")), Some(SocketAddr::from(([127, 0, 0, 1], 8480))));
    }
}
