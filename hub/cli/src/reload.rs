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
    seen: Option<(SystemTime, u64)>,
    log: Log,
    /// Where people find the hub if nothing else is said.
    listens: String,
}

impl Reload {
    /// Follows this file, over which `said` has the last word; `holds` is what came of both.
    pub(crate) fn new(path: PathBuf, said: Said, holds: Settings, log: Log, listens: String) -> Self {
        let seen = stamp(&path);
        Reload { path, said, holds, seen, log, listens }
    }

    /// Brings what changes to work, again and again: when the file is another one, or somebody sends SIGHUP.
    pub(crate) async fn follow(mut self, hub: &Arc<Hub>) {
        let mut told = hangup();
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                () = told.recv() => true,
            };
            let stamp = stamp(&self.path);
            // Whoever writes it may have it away for a moment.
            if !asked && (stamp == self.seen || stamp.is_none()) {
                continue;
            }
            self.seen = stamp;
            self.reload(hub);
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
            ..next
        };
        let (changed, restart) = (changed.join(", "), restart.join(", "));
        info!(target: "seawall", path, changed, needsRestart = restart, "[Config][Reload] Success.");
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
    ])
}

fn named<const N: usize>(all: [(&'static str, bool); N]) -> Vec<&'static str> {
    all.into_iter().filter(|(_, is_other)| *is_other).map(|(name, _)| name).collect()
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Where SIGHUP is told, if there is such a thing.
struct Hangup(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

fn hangup() -> Hangup {
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
