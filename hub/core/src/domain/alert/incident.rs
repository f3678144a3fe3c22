//! Something that is wrong, from when it began until it is over, and who was told.

use std::time::Duration;

use seawall::backoff::Backoff;

use super::rule::{ConditionKind, Severity};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// A time in which the condition of an alert rule was bad.
#[derive(Clone, PartialEq, Debug)]
pub struct Incident {
    /// The id of the incident, the same in all messages about it.
    pub id: String,
    /// The alert rule that opened it.
    pub rule: Slug,
    /// The kind of the rule's condition.
    pub kind: ConditionKind,
    pub severity: Severity,
    /// The affected service; `None` means the hub itself.
    pub service: Option<Slug>,
    /// When the incident was opened.
    pub opened: Millis,
    /// When its reading or somebody's comment last changed.
    pub updated: Millis,
    /// The end of the incident; `None` while it is open.
    pub resolved: Option<Resolution>,
    /// The measured value at `updated`.
    pub value: f64,
    /// The description of the problem at `updated`.
    pub summary: String,
    /// Who acknowledged it; `None` if nobody did.
    pub acknowledged: Option<Acknowledgement>,
    /// The mute that applies to this incident only.
    pub muted: Option<Mute>,
    /// Whether the channels were asked to report that it opened. That waits while the incident is muted.
    pub notified: bool,
    /// The messages about it, at most two for each channel.
    pub notices: Vec<Notice>,
}

/// The end of an incident.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// When the incident ended.
    pub at: Millis,
    /// The reason for the end.
    pub because: String,
}

/// Who acknowledged an incident, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// The name of the API key.
    pub who: String,
    /// When the incident was acknowledged.
    pub at: Millis,
    /// A comment for other operators.
    pub reason: Option<String>,
}

/// A time in which nobody is notified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mute {
    /// The end of the mute.
    pub until: Millis,
    /// The reason for the mute.
    pub reason: String,
}

crate::words! {
    /// What a message reports.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum NoticeKind {
        /// The incident was opened.
        Opened = "opened",
        /// The incident was resolved.
        Resolved = "resolved",
    }
}

/// A message that a channel was asked to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The channel that sends it.
    pub channel: Slug,
    /// What the message reports.
    pub turn: NoticeKind,
    /// When the message was created.
    pub made: Millis,
    pub state: NoticeState,
    /// The number of attempts so far.
    pub tries: u32,
    /// The error of the last attempt; `None` if it succeeded.
    pub error: Option<String>,
}

/// The state of a notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoticeState {
    /// The message waits for its next attempt.
    Waiting {
        /// When the next attempt is due.
        due: Millis,
    },
    /// The channel accepted the message.
    Sent {
        /// When it was accepted.
        at: Millis,
    },
    /// The hub no longer tries to send it.
    Dropped,
}

/// The waits between two attempts: a second after the first failure, twice as long after each further one. A channel has few
/// notices, so nothing is gained by chance.
const BACKOFF: Backoff =
    Backoff::exponential(Duration::from_secs(1)).cap(Duration::from_secs(300)).no_jitter();
/// The age after which a message is dropped, because it is no news any more.
const AGE_MAX: Duration = Duration::from_secs(86_400);

impl Notice {
    fn new(channel: Slug, turn: NoticeKind, now: Millis) -> Self {
        let state = NoticeState::Waiting { due: now };
        Notice { channel, turn, made: now, state, tries: 0, error: None }
    }

    /// Whether the message is still to be sent.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.state, NoticeState::Waiting { .. })
    }

    /// Returns how far the message has come: the further, the greater.
    fn progress(&self) -> (u8, u32) {
        let state = match self.state {
            NoticeState::Waiting { .. } => 0,
            NoticeState::Dropped => 1,
            NoticeState::Sent { .. } => 2,
        };
        (state, self.tries)
    }

    fn drop_because(&mut self, why: &str) {
        self.state = NoticeState::Dropped;
        self.error = Some(match self.error.take() {
            Some(before) => format!("{why}; the last try: {before}"),
            None => why.to_owned(),
        });
    }
}

impl Incident {
    /// Returns the id of a message about it, the same for every attempt.
    #[must_use]
    pub fn message_id(&self, turn: NoticeKind) -> String {
        format!("{}-{}", self.id, turn.word())
    }

    /// Whether the incident is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// Whether the incident is open or has messages to send.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_open() || self.notices.iter().any(Notice::waits)
    }

    /// Whether notifications are muted now.
    #[must_use]
    pub fn is_muted(&self, now: Millis) -> bool {
        self.muted.as_ref().is_some_and(|mute| now < mute.until)
    }

    /// Asks these channels to report that it opened. Only the first call counts: a channel that is added later hears of later
    /// incidents.
    pub fn tell(&mut self, channels: &[Slug], now: Millis) {
        if !self.notified {
            self.notified = true;
            self.notices
                .extend(channels.iter().map(|name| Notice::new(name.clone(), NoticeKind::Opened, now)));
        }
    }

    /// Resolves the incident. Channels that reported its opening report this too, others do not.
    pub fn resolve(&mut self, because: &str, now: Millis) {
        if self.resolved.is_some() {
            return;
        }
        self.resolved = Some(Resolution { at: now, because: because.to_owned() });
        (self.updated, self.muted) = (now, None);
        let mut over = Vec::new();
        for notice in self.notices.iter_mut().filter(|notice| notice.turn == NoticeKind::Opened) {
            match notice.state {
                NoticeState::Waiting { .. } if notice.tries == 0 => {
                    notice.drop_because("it was resolved before anyone was notified");
                }
                // A try that did not go well may have arrived all the same.
                NoticeState::Waiting { .. } | NoticeState::Sent { .. } => over.push(notice.channel.clone()),
                NoticeState::Dropped => {}
            }
        }
        self.notices.extend(over.into_iter().map(|name| Notice::new(name, NoticeKind::Resolved, now)));
    }

    /// Returns the message that is due for a channel, never the resolution before the opening. `quiet` means that openings are
    /// muted.
    #[must_use]
    pub fn due(&self, channel: &Slug, quiet: bool, now: Millis) -> Option<NoticeKind> {
        let first = self.notices.iter().find(|notice| notice.channel == *channel && notice.waits())?;
        let NoticeState::Waiting { due } = first.state else { return None };
        (due <= now && !(quiet && first.turn == NoticeKind::Opened)).then_some(first.turn)
    }

    /// Lists the channels that have a message to send.
    pub fn waiting(&self) -> impl Iterator<Item = &Slug> {
        self.notices.iter().filter(|notice| notice.waits()).map(|notice| &notice.channel)
    }

    /// Records the outcome of an attempt.
    pub fn settle(&mut self, channel: &Slug, turn: NoticeKind, came: Result<(), String>, now: Millis) {
        let asked =
            |notice: &&mut Notice| notice.channel == *channel && notice.turn == turn && notice.waits();
        let Some(notice) = self.notices.iter_mut().find(asked) else { return };
        notice.tries = notice.tries.saturating_add(1);
        match came {
            Ok(()) => (notice.state, notice.error) = (NoticeState::Sent { at: now }, None),
            Err(error) => {
                let wait = BACKOFF.bound(notice.tries - 1);
                (notice.state, notice.error) = (NoticeState::Waiting { due: now + wait }, Some(error));
                if now.since(notice.made) >= AGE_MAX {
                    self.give_up(channel, "no notification succeeded within a day");
                }
            }
        }
    }

    /// Returns the incident with what somebody else has stored of it meanwhile. Its reading and its mute are those of this one.
    /// What only goes forward is that of whoever is further: the last acknowledgement stays, what is resolved stays resolved, and a
    /// message that was sent is not sent again.
    #[must_use]
    pub fn merged(mut self, stored: Incident) -> Self {
        let since = |seen: &Option<Acknowledgement>| seen.as_ref().map(|seen| seen.at);
        if since(&stored.acknowledged) > since(&self.acknowledged) {
            self.acknowledged = stored.acknowledged;
        }
        self.resolved = stored.resolved.or(self.resolved);
        self.notified |= stored.notified;
        for known in stored.notices {
            let same = |notice: &&mut Notice| notice.channel == known.channel && notice.turn == known.turn;
            match self.notices.iter_mut().find(same) {
                Some(notice) if notice.progress() < known.progress() => *notice = known,
                Some(_) => {}
                None => self.notices.push(known),
            }
        }
        self
    }

    /// Drops the messages of a channel, because it was deleted or has too many.
    pub fn give_up(&mut self, channel: &Slug, why: &str) {
        for notice in self.notices.iter_mut().filter(|notice| notice.channel == *channel && notice.waits()) {
            notice.drop_because(why);
        }
    }

    /// Makes the messages of a channel due at once, because its settings changed.
    pub fn try_again(&mut self, channel: &Slug, now: Millis) {
        for notice in self.notices.iter_mut().filter(|notice| notice.channel == *channel) {
            if let NoticeState::Waiting { due } = &mut notice.state {
                *due = (*due).min(now);
            }
        }
    }
}
