//! Alerts: looking at what there is, opening and resolving incidents, and telling people.
//!
//! # Who does what
//! One loop ([`watch`]) looks at everything once a second, lets each rule judge it, and hands what is due to the channels. What
//! a rule decides is in [`crate::domain::alert`]. A channel has one message under way at a time, in a task of its own with a
//! time limit, so that one that hangs holds up nobody. What people do is in `rules.rs`, `channels.rs` and `incidents.rs`.
//!
//! # What a restart does
//! An incident is written before it is told, and that it was told is written after. So a message may come twice if the process
//! is killed in between, under the same name, and never a third time for that. If the store takes nothing, people are told all
//! the same: that is what they have to know.

mod channels;
mod end;
mod incidents;
mod look;
mod rules;
mod tell;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

use tokio::sync::Notify;

pub use self::channels::Tested;
use crate::domain::alert::{AlertRule, Channel, Incident, LOG, Track};
use crate::domain::service::Sealed;
use crate::domain::slug::Slug;

/// What is known of alerts.
#[derive(Debug)]
pub(super) struct Alerts {
    /// All rules, those that came with the hub too.
    rules: RwLock<BTreeMap<Slug, AlertRule>>,
    channels: RwLock<BTreeMap<Slug, Channel>>,
    live: tokio::sync::Mutex<Live>,
    /// Where people find the hub.
    public_url: RwLock<String>,
    /// Rung when there is something to look at before its time.
    bell: Notify,
}

/// Incidents that are open or of which somebody has still to be told, and what leads to others.
#[derive(Debug, Default)]
struct Live {
    incidents: BTreeMap<String, Kept>,
    /// By rule and service.
    tracks: HashMap<(Slug, Option<Slug>), Track>,
}

/// An incident, and whether the store has it like this.
#[derive(Debug)]
struct Kept {
    incident: Incident,
    saved: bool,
}

impl Alerts {
    /// As a start before has left it.
    pub(super) fn new(changed: Vec<AlertRule>, channels: Vec<Channel>, live: Vec<Incident>) -> Self {
        let rules = AlertRule::built_in().into_iter().chain(changed);
        let mut known = Live::default();
        for incident in live {
            if incident.is_open() {
                let of = (incident.rule.clone(), incident.service.clone());
                known.tracks.insert(of, Track::opened());
            }
            known.incidents.insert(incident.id.clone(), Kept { incident, saved: true });
        }
        Alerts {
            rules: RwLock::new(rules.map(|rule| (rule.name.clone(), rule)).collect()),
            channels: RwLock::new(channels.into_iter().map(|one| (one.name.clone(), one)).collect()),
            live: tokio::sync::Mutex::new(known),
            public_url: RwLock::default(),
            bell: Notify::new(),
        }
    }

    fn rules(&self) -> Vec<AlertRule> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn rule(&self, name: &Slug) -> Option<AlertRule> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// This rule holds from now on; none of this name, if it is nothing.
    fn use_rule(&self, name: &Slug, rule: Option<AlertRule>) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        match rule {
            Some(rule) => rules.insert(name.clone(), rule),
            None => rules.remove(name),
        };
    }

    fn channels(&self) -> Vec<Channel> {
        self.channels.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn channel(&self, name: &Slug) -> Option<Channel> {
        self.channels.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The settings of a channel are sealed anew; nothing else has changed.
    pub(super) fn use_sealed(&self, name: &Slug, settings: &Sealed) {
        let mut channels = self.channels.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get_mut(name) {
            channel.settings = settings.clone();
        }
    }

    /// Who is told by a rule: the log, and its channels as far as they are there.
    fn told_by(&self, rule: &AlertRule) -> Vec<Slug> {
        let there = self.channels().into_iter().map(|channel| channel.name);
        let wanted = there.filter(|name| rule.channels.as_ref().is_none_or(|only| only.contains(name)));
        log().into_iter().chain(wanted).collect()
    }
}

/// The channel that is always there.
fn log() -> Option<Slug> {
    Slug::new(LOG).ok()
}
