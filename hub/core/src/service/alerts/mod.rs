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
mod notify;
mod observe;
mod rules;
mod watch;

use std::collections::{BTreeMap, HashMap};

use tokio::sync::Notify;

pub use self::channels::ChannelTestResult;
use crate::domain::alert::{AlertRule, Channel, ConditionTimer, Incident, LOG};
use crate::domain::service::SealedSecret;
use crate::domain::slug::Slug;
use crate::sync::RwLock;

/// The alert rules, channels and live incidents.
#[derive(Debug)]
pub(super) struct Alerts {
    /// All rules, including built-in ones.
    rules: RwLock<BTreeMap<Slug, AlertRule>>,
    channels: RwLock<BTreeMap<Slug, Channel>>,
    live: tokio::sync::Mutex<LiveIncidents>,
    /// The public URL of the hub.
    public_url: RwLock<String>,
    /// Wakes the watch when there is something to look at before its time.
    wake: Notify,
}

/// Incidents that are open or have notices to send, and the timers that lead to others.
#[derive(Debug, Default)]
struct LiveIncidents {
    incidents: BTreeMap<String, LiveIncident>,
    /// The timers, by rule and service.
    tracks: HashMap<(Slug, Option<Slug>), ConditionTimer>,
}

/// An incident, and whether the store has its current state.
#[derive(Debug)]
struct LiveIncident {
    incident: Incident,
    saved: bool,
}

impl Alerts {
    /// Restores the state that an earlier process left.
    pub(super) fn new(changed: Vec<AlertRule>, channels: Vec<Channel>, live: Vec<Incident>) -> Self {
        let rules = AlertRule::built_in().into_iter().chain(changed);
        let mut known = LiveIncidents::default();
        for incident in live {
            if incident.is_open() {
                let of = (incident.rule.clone(), incident.service.clone());
                known.tracks.insert(of, ConditionTimer::opened());
            }
            known.incidents.insert(incident.id.clone(), LiveIncident { incident, saved: true });
        }
        Alerts {
            rules: RwLock::new(rules.map(|rule| (rule.name.clone(), rule)).collect()),
            channels: RwLock::new(channels.into_iter().map(|one| (one.name.clone(), one)).collect()),
            live: tokio::sync::Mutex::new(known),
            public_url: RwLock::default(),
            wake: Notify::new(),
        }
    }

    fn rules(&self) -> Vec<AlertRule> {
        self.rules.read().values().cloned().collect()
    }

    fn rule(&self, name: &Slug) -> Option<AlertRule> {
        self.rules.read().get(name).cloned()
    }

    /// Applies a rule from now on; `None` removes it.
    fn use_rule(&self, name: &Slug, rule: Option<AlertRule>) {
        let mut rules = self.rules.write();
        match rule {
            Some(rule) => rules.insert(name.clone(), rule),
            None => rules.remove(name),
        };
    }

    fn channels(&self) -> Vec<Channel> {
        self.channels.read().values().cloned().collect()
    }

    fn channel(&self, name: &Slug) -> Option<Channel> {
        self.channels.read().get(name).cloned()
    }

    /// Replaces the encrypted settings of a channel; nothing else has changed.
    pub(super) fn use_sealed(&self, name: &Slug, settings: &SealedSecret) {
        let mut channels = self.channels.write();
        if let Some(channel) = channels.get_mut(name) {
            channel.settings = settings.clone();
        }
    }

    /// Returns the destinations of a rule: the log, and those of its channels that exist.
    fn told_by(&self, rule: &AlertRule) -> Vec<Slug> {
        let there = self.channels().into_iter().map(|channel| channel.name);
        let wanted = there.filter(|name| rule.channels.as_ref().is_none_or(|only| only.contains(name)));
        log().into_iter().chain(wanted).collect()
    }
}

/// Returns the name of the channel that always exists.
fn log() -> Option<Slug> {
    Slug::new(LOG).ok()
}
