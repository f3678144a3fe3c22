//! Reloads the settings file while the hub runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall_hub_server::Server;
use seawall_hub_server::log::Log;
use tracing::{error, info};

use crate::settings::{Effect, SettingOverrides, Settings, file};

/// The polling interval of the settings file.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Watches the settings file.
pub(crate) struct Reload {
    path: PathBuf,
    overrides: SettingOverrides,
    settings: Settings,
    file: WatchedFile,
    log: Log,
    /// The public URL if none is set.
    listens: String,
}

impl Reload {
    /// Watches this file. `overrides` take precedence over it, and `settings` are in effect.
    pub(crate) fn new(
        path: PathBuf,
        overrides: SettingOverrides,
        settings: Settings,
        log: Log,
        listens: String,
    ) -> Self {
        let file = WatchedFile { seen: stamp(&path), coming: None };
        Reload { path, overrides, settings, file, log, listens }
    }

    /// Applies changes whenever the file changes or SIGHUP arrives.
    pub(crate) async fn follow(mut self, hub: &Arc<Server>, mut told: HangupSignal) {
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

    fn reload(&mut self, hub: &Arc<Server>) {
        let path = self.path.display().to_string();
        let applied = file(Some(&self.path)).and_then(|file| {
            let next = Settings::of(&[&self.overrides, &file]);
            if next.allow_egress != self.settings.allow_egress {
                hub.allow_egress(&next.allow_egress)?;
            }
            Ok(next)
        });
        let mut next = match applied {
            Ok(next) => next,
            Err(error) => {
                let cause = format!("{error:#}; the previous settings stay in effect");
                error!(target: "seawall", path, cause, action = "ManualReview", "[Config][Reload] Failed!");
                return;
            }
        };
        self.log.set_level(next.log_level);
        hub.ops.keep_for(next.retention);
        if next.public_url != self.settings.public_url {
            hub.alerts.set_public_url(next.public_url.as_deref().unwrap_or(&self.listens));
        }
        let changed = self.settings.changes(&next, Effect::Reload).join(", ");
        let restart = self.settings.changes(&next, Effect::Restart).join(", ");
        // Settings that need a restart keep their old values until then, and are reported at each change.
        next.keep_until_restart(&self.settings);
        self.settings = next;
        info!(target: "seawall", path, changed, needsRestart = restart, "[Config][Reload] Success.");
    }
}

/// Ignores SIGHUP when there is no settings file. By default the signal would kill the process, which is not what its sender
/// wants.
pub(crate) async fn nothing_to_follow(mut told: HangupSignal) {
    loop {
        told.recv().await;
        let cause = "received SIGHUP, but there is no settings file to reload; set one with `--config`";
        error!(target: "seawall", cause, action = "ManualReview", "[Config][Reload] Failed!");
    }
}

/// The modification time and the length of a file.
type Stamp = (SystemTime, u64);

/// The state of a polled file.
struct WatchedFile {
    /// The stamp when the file was last read.
    seen: Option<Stamp>,
    /// The stamp at the last poll, if it differs from `seen`.
    coming: Option<Stamp>,
}

impl WatchedFile {
    /// True if the file should be read. An editor may remove it for a moment or write it in parts, and half of a file can be
    /// valid and drop settings of the other half. So it is read when it is unchanged between two polls, or when SIGHUP asks.
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

fn stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Receives SIGHUP, where the platform has it. While this exists, the signal does not kill the process.
pub(crate) struct HangupSignal(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

pub(crate) fn hangup() -> HangupSignal {
    HangupSignal(
        #[cfg(unix)]
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
    )
}

impl HangupSignal {
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
        let mut file = WatchedFile { seen: at(10), coming: None };
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
