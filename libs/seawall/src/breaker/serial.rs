//! Snapshots and states for serde.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Snapshot, State};

const STATES: [(State, &str); 7] = [
    (State::Closed, "closed"),
    (State::Ramping, "ramping"),
    (State::Open, "open"),
    (State::HalfOpen, "half_open"),
    (State::ForcedOpen, "forced_open"),
    (State::ForcedClosed, "forced_closed"),
    (State::Disabled, "disabled"),
];

const FIELDS: &[&str] = &["state", "until", "trips", "reason"];

/// As one word: `half_open`.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = STATES.iter().find(|(state, _)| state == self).map_or("closed", |(_, word)| word);
        serializer.serialize_str(word)
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = State;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the state of a circuit, like `half_open`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<State, E> {
                let found = STATES.iter().find(|(_, word)| *word == text).map(|(state, _)| *state);
                found.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Word)
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Snapshot", FIELDS.len())?;
        fields.serialize_field("state", &self.state)?;
        fields.serialize_field("until", &self.until)?;
        fields.serialize_field("trips", &self.trips)?;
        fields.serialize_field("reason", &self.reason.as_deref())?;
        fields.end()
    }
}

/// Fields that are not known are left alone: a newer version may have written them.
impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Snapshot", FIELDS, Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Snapshot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the snapshot of a circuit")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Snapshot, A::Error> {
        let (mut state, mut until, mut trips, mut reason) = (None, None, 0, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "state" => state = Some(map.next_value()?),
                "until" => until = map.next_value::<Option<SystemTime>>()?,
                "trips" => trips = map.next_value()?,
                "reason" => reason = map.next_value::<Option<String>>()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let state = state.ok_or_else(|| A::Error::missing_field("state"))?;
        Ok(Snapshot { state, until, trips, reason: reason.map(Arc::from) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Snapshot, A::Error> {
        let missing = |index| A::Error::invalid_length(index, &"the four fields of a snapshot");
        Ok(Snapshot {
            state: seq.next_element()?.ok_or_else(|| missing(0))?,
            until: seq.next_element()?.ok_or_else(|| missing(1))?,
            trips: seq.next_element()?.ok_or_else(|| missing(2))?,
            reason: seq.next_element::<Option<String>>()?.ok_or_else(|| missing(3))?.map(Arc::from),
        })
    }
}
