//! Something that is wrong, from when it began until it is over, and who was told.

use std::time::Duration;

use super::rule::{Kind, Severity};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// Something that is wrong, or was.
#[derive(Clone, PartialEq, Debug)]
pub struct Incident {
    /// Its name: the same for all messages about it, whoever sends them again.
    pub id: String,
    /// By this rule.
    pub rule: Slug,
    /// What it is about.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// Of this service; of the hub, if it is none.
    pub service: Option<Slug>,
    /// When it was opened.
    pub opened: Millis,
    /// When it was last looked at and was another one, or somebody has changed something.
    pub updated: Millis,
    /// That it is over.
    pub resolved: Option<Resolved>,
    /// The number that was looked at, as of then.
    pub value: f64,
    /// In words, as of then.
    pub summary: String,
    /// That somebody has seen it.
    pub acknowledged: Option<Acknowledged>,
    /// Nobody is told for a while.
    pub muted: Option<Mute>,
    /// Whether the channels were asked to tell that it was opened. Not while it is muted.
    pub told: bool,
    /// What the channels were asked to tell.
    pub notices: Vec<Notice>,
}

/// That an incident is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// When.
    pub at: Millis,
    /// Why.
    pub because: String,
}

/// That somebody has seen an incident.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledged {
    /// The name of their key.
    pub who: String,
    /// When.
    pub at: Millis,
    /// What they say about it.
    pub reason: Option<String>,
}

/// Nobody is told for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mute {
    /// Until then.
    pub until: Millis,
    /// Why.
    pub reason: String,
}

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Turn {
    /// Something is wrong.
    Opened,
    /// It is over.
    Resolved,
}

impl Turn {
    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Turn::Opened => "opened",
            Turn::Resolved => "resolved",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Turn::Opened, Turn::Resolved].into_iter().find(|turn| turn.word() == word)
    }
}

/// What a channel was asked to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Which channel.
    pub channel: Slug,
    /// What.
    pub turn: Turn,
    /// Since when.
    pub made: Millis,
    /// Where it stands.
    pub state: NoticeState,
    /// How often it was tried.
    pub tries: u32,
    /// What the last try said, if it did not go well.
    pub error: Option<String>,
}

/// Where a notice stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoticeState {
    /// It is tried, again if need be.
    Waiting {
        /// Not before then.
        due: Millis,
    },
    /// It was sent.
    Sent {
        /// Then.
        at: Millis,
    },
    /// Nobody tries it any more.
    Dropped,
}

/// The first wait after a try that did not go well; each is twice as long as the one before,
const BACKOFF: Duration = Duration::from_secs(1);
/// up to this one.
const BACKOFF_MAX: Duration = Duration::from_secs(300);
/// What could not be told for so long is no news any more.
const AGE_MAX: Duration = Duration::from_secs(86_400);

impl Notice {
    fn new(channel: Slug, turn: Turn, now: Millis) -> Self {
        let state = NoticeState::Waiting { due: now };
        Notice { channel, turn, made: now, state, tries: 0, error: None }
    }

    /// Whether it has not been told yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.state, NoticeState::Waiting { .. })
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
    /// The name of a message about it: the same whenever it is sent again.
    #[must_use]
    pub fn message_id(&self, turn: Turn) -> String {
        format!("{}-{}", self.id, turn.word())
    }

    /// Whether it is not over.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// Whether somebody may still have to be told.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_open() || self.notices.iter().any(Notice::waits)
    }

    /// Whether nobody is told now.
    #[must_use]
    pub fn is_muted(&self, now: Millis) -> bool {
        self.muted.as_ref().is_some_and(|mute| now < mute.until)
    }

    /// These channels are to tell that it was opened. Once: who comes later hears of what happens then.
    pub fn tell(&mut self, channels: &[Slug], now: Millis) {
        if !self.told {
            self.told = true;
            self.notices.extend(channels.iter().map(|name| Notice::new(name.clone(), Turn::Opened, now)));
        }
    }

    /// It is over. Who was told that it began is told so too; who was not need not know.
    pub fn resolve(&mut self, because: &str, now: Millis) {
        if self.resolved.is_some() {
            return;
        }
        self.resolved = Some(Resolved { at: now, because: because.to_owned() });
        (self.updated, self.muted) = (now, None);
        let mut over = Vec::new();
        for notice in self.notices.iter_mut().filter(|notice| notice.turn == Turn::Opened) {
            match notice.state {
                NoticeState::Waiting { .. } if notice.tries == 0 => {
                    notice.drop_because("it was over before anybody was told");
                }
                // A try that did not go well may have arrived all the same.
                NoticeState::Waiting { .. } | NoticeState::Sent { .. } => over.push(notice.channel.clone()),
                NoticeState::Dropped => {}
            }
        }
        self.notices.extend(over.into_iter().map(|name| Notice::new(name, Turn::Resolved, now)));
    }

    /// What is due for a channel now, if anything is; never the end before the beginning. `quiet`, if nobody is told that
    /// something began.
    #[must_use]
    pub fn due(&self, channel: &Slug, quiet: bool, now: Millis) -> Option<Turn> {
        let first = self.notices.iter().find(|notice| notice.channel == *channel && notice.waits())?;
        let NoticeState::Waiting { due } = first.state else { return None };
        (due <= now && !(quiet && first.turn == Turn::Opened)).then_some(first.turn)
    }

    /// The channels that have something to tell.
    pub fn waiting(&self) -> impl Iterator<Item = &Slug> {
        self.notices.iter().filter(|notice| notice.waits()).map(|notice| &notice.channel)
    }

    /// This came of a try.
    pub fn settle(&mut self, channel: &Slug, turn: Turn, came: Result<(), String>, now: Millis) {
        let asked =
            |notice: &&mut Notice| notice.channel == *channel && notice.turn == turn && notice.waits();
        let Some(notice) = self.notices.iter_mut().find(asked) else { return };
        notice.tries = notice.tries.saturating_add(1);
        match came {
            Ok(()) => (notice.state, notice.error) = (NoticeState::Sent { at: now }, None),
            Err(error) => {
                let wait = BACKOFF.saturating_mul(1 << (notice.tries - 1).min(16)).min(BACKOFF_MAX);
                (notice.state, notice.error) = (NoticeState::Waiting { due: now + wait }, Some(error));
                if now.since(notice.made) >= AGE_MAX {
                    self.give_up(channel, "it could not be told for a day");
                }
            }
        }
    }

    /// A channel is gone, or has too much to tell: what it was asked to tell is dropped.
    pub fn give_up(&mut self, channel: &Slug, why: &str) {
        for notice in self.notices.iter_mut().filter(|notice| notice.channel == *channel && notice.waits()) {
            notice.drop_because(why);
        }
    }

    /// A channel is another one now, so it is worth another try at once.
    pub fn try_again(&mut self, channel: &Slug, now: Millis) {
        for notice in self.notices.iter_mut().filter(|notice| notice.channel == *channel) {
            if let NoticeState::Waiting { due } = &mut notice.state {
                *due = (*due).min(now);
            }
        }
    }
}
