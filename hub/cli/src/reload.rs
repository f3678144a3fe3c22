//! A file of settings that changes while the hub runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall_hub_server::Hub;
use seawall_hub_server::log::Log;
use tracing::{error, info};

use crate::settings::{Said, Settings, file};

/// So often somebody looks whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows a file.
pub(crate) struct Reload {
    path: PathBuf,
    said: Said,
    holds: Settings,
    file: Watched,
    log: Log,
    /// Where people find the hub if nothing else is said.
    listens: String,
}

impl Reload {
    /// Follows this file, over which `said` has the last word; `holds` is what came of both.
    pub(crate) fn new(path: PathBuf, said: Said, holds: Settings, log: Log, listens: String) -> Self {
        let file = Watched { seen: stamp(&path), coming: None };
        Reload { path, said, holds, file, log, listens }
    }

    /// Brings what changes to work, again and again: when the file is another one, or somebody sends SIGHUP.
    pub(crate) async fn follow(mut self, hub: &Arc<Hub>, mut told: Hangup) {
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                () = told.recv() => true,
            };
            if self.file.is_new(stamp(&self.path), asked) {
                self.reload(hub);
            }
        }
    }

    fn reload(&mut self, hub: &Arc<Hub>) {
        let path = self.path.display().to_string();
        let applied = file(Some(&self.path)).and_then(|file| {
            let next = self.said.over(&file);
            if next.allow_egress != self.holds.allow_egress {
                hub.allow_egress(&next.allow_egress)?;
            }
            Ok(next)
        });
        let next = match applied {
            Ok(next) => next,
            Err(error) => {
                let cause = format!("{error:#}; what held before holds still");
                error!(target: "seawall", path, cause, action = "ManualReview", "[Config][Reload] Failed!");
                return;
            }
        };
        self.log.set_level(next.log_level);
        hub.keep_for(next.retention);
        if next.public_url != self.holds.public_url {
            hub.set_public_url(next.public_url.as_deref().unwrap_or(&self.listens));
        }
        let (changed, restart) = (changed(&self.holds, &next), needs_restart(&self.holds, &next));
        // What needs a restart holds as it was until then, and is told again at each change.
        self.holds = Settings {
            listen: self.holds.listen,
            data_dir: self.holds.data_dir.clone(),
            otlp_endpoint: self.holds.otlp_endpoint.clone(),
            log_format: self.holds.log_format,
            watchdog: self.holds.watchdog,
            response_memory: self.holds.response_memory,
            write_timeout: self.holds.write_timeout,
            metrics: self.holds.metrics,
            ..next
        };
        let (changed, restart) = (changed.join(", "), restart.join(", "));
        info!(target: "seawall", path, changed, needsRestart = restart, "[Config][Reload] Success.");
    }
}

/// There is no file to follow. SIGHUP would end the process in the middle of everything, and whoever sends it means something
/// else.
pub(crate) async fn nothing_to_follow(mut told: Hangup) {
    loop {
        told.recv().await;
        let cause = "SIGHUP came, and there is no file of settings to read again; name one with `--config`";
        error!(target: "seawall", cause, action = "ManualReview", "[Config][Reload] Failed!");
    }
}

/// When a file was written, and how long it is.
type Stamp = (SystemTime, u64);

/// A file that is looked at now and then.
struct Watched {
    /// As it was when it was read.
    seen: Option<Stamp>,
    /// As it was the last time, if that was another.
    coming: Option<Stamp>,
}

impl Watched {
    /// Whether it is to be read. Whoever writes it may have it away for a moment, or be in the middle of it: half of a file may
    /// well be one that makes sense, and throw away what the other half wants kept. So it is read when it has stood still from one
    /// look to the next, or when somebody asks.
    fn is_new(&mut self, stamp: Option<Stamp>, asked: bool) -> bool {
        let stands = stamp.is_some() && stamp != self.seen && stamp == self.coming;
        if asked || stands {
            (self.seen, self.coming) = (stamp, None);
            return true;
        }
        self.coming = stamp.filter(|_| stamp != self.seen);
        false
    }
}

/// What has changed, and holds from now on.
fn changed(before: &Settings, next: &Settings) -> Vec<&'static str> {
    let (old, new) = (before.retention, next.retention);
    named([
        ("public_url", before.public_url != next.public_url),
        ("allow_egress", before.allow_egress != next.allow_egress),
        ("log.level", before.log_level != next.log_level),
        ("keep.delivered", old.delivered != new.delivered),
        ("keep.discarded", old.discarded != new.discarded),
        ("keep.audit", old.audit != new.audit),
    ])
}

/// What has changed, and holds at the next start.
fn needs_restart(before: &Settings, next: &Settings) -> Vec<&'static str> {
    named([
        ("listen", before.listen != next.listen),
        ("data_dir", before.data_dir != next.data_dir),
        ("otlp_endpoint", before.otlp_endpoint != next.otlp_endpoint),
        ("log.format", before.log_format != next.log_format),
        ("watchdog", before.watchdog != next.watchdog),
        ("response_memory", before.response_memory != next.response_memory),
        ("write_timeout", before.write_timeout != next.write_timeout),
        ("metrics", before.metrics != next.metrics),
    ])
}

fn named<const N: usize>(all: [(&'static str, bool); N]) -> Vec<&'static str> {
    all.into_iter().filter(|(_, is_other)| *is_other).map(|(name, _)| name).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Where SIGHUP is told, if there is such a thing. From when this is there on, it ends nothing.
pub(crate) struct Hangup(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

pub(crate) fn hangup() -> Hangup {
    Hangup(
        #[cfg(unix)]
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
    )
}

impl Hangup {
    async fn recv(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0 {
            signal.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-9: a file that somebody is writing is read when it stands still, and one that is away for a moment is not missed.
    #[test]
    fn hub_9_a_file_is_read_when_it_stands_still() {
        let at = |bytes| Some((SystemTime::UNIX_EPOCH, bytes));
        let mut file = Watched { seen: at(10), coming: None };
        let looks = [
            (at(10), false, false),
            // Emptied, half of it, all of it.
            (at(0), false, false),
            (at(5), false, false),
            (at(12), false, false),
            (at(12), false, true),
            (at(12), false, false),
            // Away, and there again as it was.
            (None, false, false),
            (None, false, false),
            (at(12), false, false),
            // At once for who asks, and not once more.
            (at(7), true, true),
            (at(7), false, false),
            (at(7), false, false),
        ];
        for (number, (stamp, asked, read)) in looks.into_iter().enumerate() {
            assert_eq!(file.is_new(stamp, asked), read, "look {number}");
        }
    }
}
