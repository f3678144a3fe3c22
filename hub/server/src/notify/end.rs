//! The end of a process whose store can't be trusted any more.
//!
//! Somebody has to know, and the store can't remember who was told. So it stands in a small file of its own, which also keeps a
//! process that is started again and again from telling it each time: once an hour at most, and not at all if the file can't be
//! written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall_hub_core::domain::alert::{Incident, NoticeState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::{Value, json};

use super::ChannelNotifier;
use crate::hub::Server;

const FILE: &str = "last-alert.json";
/// It is not told again before that.
const QUIET: Duration = Duration::from_secs(3_600);
/// The process ends no later for it.
const SEND_MAX: Duration = Duration::from_secs(5);

impl Server {
    /// The store can't be trusted any more, and the process ends: those who are told of the risk of data loss are told, within
    /// a few seconds.
    pub async fn tell_of_the_end(&self, cause: &str) {
        let Some(mut incident) = self.alerts.end_of_trust(cause) else { return };
        let file = self.folder.join(FILE);
        let before = read(&file).map(|told| told.at);
        let again = before.is_some_and(|before| self.now().since(before) < QUIET);
        if again || write(&file, &incident, &[]).is_err() {
            return;
        }
        let channels = ChannelNotifier::new(self.transport.clone(), self.keyring.clone());
        // Who takes longer is not waited for, and may hear of it or not.
        let _ = tokio::time::timeout(SEND_MAX, self.alerts.tell_at_once(&channels, &mut incident)).await;
        let sent = incident.notices.iter().filter(|notice| matches!(notice.state, NoticeState::Sent { .. }));
        let told: Vec<&str> = sent.map(|notice| notice.channel.as_str()).collect();
        // If it can't be written now, nobody hears of the end of it; that it was told is remembered already.
        let _ = write(&file, &incident, &told);
    }

    /// Goes on with what a process before has told at its end.
    pub(crate) async fn take_over_the_end(&self) {
        let file = self.folder.join(FILE);
        let Some(LastAlert { id, at, summary, channels }) = read(&file) else { return };
        if !channels.is_empty() {
            self.alerts.take_over(id, at, summary, &channels).await;
        }
    }
}

struct LastAlert {
    id: String,
    at: Millis,
    summary: String,
    channels: Vec<Slug>,
}

fn write(file: &PathBuf, incident: &Incident, told: &[&str]) -> std::io::Result<()> {
    let Incident { id, opened, summary, .. } = incident;
    fs::write(file, json!({"id": id, "at": opened.0, "summary": summary, "channels": told}).to_string())
}

fn read(file: &Path) -> Option<LastAlert> {
    let told: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let text = |name: &str| told[name].as_str().map(ToOwned::to_owned);
    let channels = told["channels"].as_array()?.iter();
    Some(LastAlert {
        id: text("id")?,
        at: Millis(told["at"].as_i64()?),
        summary: text("summary")?,
        channels: channels.filter_map(|name| Slug::new(name.as_str()?).ok()).collect(),
    })
}
