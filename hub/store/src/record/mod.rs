//! The forms of stored values, the same in every database: documents of registry rows, texts and numbers in columns.
//!
//! # Why documents?
//! Services, rules, sources, keys, alert rules and channels are few and small, and a start reads them whole. A column exists for
//! what a statement compares: `name`, `version`, `current`, `enabled`, `service`. Everything else is one JSON document. A new
//! field is a field of its record with `#[serde(default)]`, and needs no migration.
//!
//! # What stays readable
//! A field is never renamed, and its meaning never changes: databases of all earlier versions have it. A field that is not known
//! any more is skipped. Times are milliseconds since 1970 or in length, and end in `_ms`; bytes are hexadecimal.

mod alert;
mod attempt;
mod incident;
mod key;
mod notice;
mod number;
mod operation;
mod rule;
mod service;
mod source;
mod text;

use std::fmt;

use seawall_hub_core::port::store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::alert::{AlertRuleRecord, ChannelRecord};
pub(crate) use self::attempt::{headers_from_text, headers_to_text, sent_from_text, sent_to_text};
pub(crate) use self::incident::IncidentRecord;
pub(crate) use self::key::KeyRecord;
pub(crate) use self::notice::{notices_from_text, notices_to_text};
pub(crate) use self::number::{
    StoredNumber, fingerprint_from_number, fingerprint_to_number, step_from_number, step_to_number,
};
pub(crate) use self::operation::{
    bulk_action_from_row, bulk_action_to_row, filter_from_text, filter_to_text,
};
pub(crate) use self::rule::RuleRecord;
pub(crate) use self::service::ServiceRecord;
pub(crate) use self::source::SourceRecord;
pub(crate) use self::text::DocumentText;

/// The document of a registered resource.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// The table that holds it.
    const TABLE: &'static str;
}

/// Writes a document.
pub(crate) fn encode<R: Record>(record: impl Into<R>) -> Result<String, StoreError> {
    serde_json::to_string(&record.into())
        .map_err(|error| StoreError::Failed(format!("can't write a document of `{}`: {error}", R::TABLE)))
}

/// Reads the document of the row with this name.
pub(crate) fn decode<R: Record>(name: &str, document: &str) -> Result<R, UnreadableRow> {
    serde_json::from_str(document).map_err(|error| UnreadableRow::new(R::TABLE, name, error))
}

/// Writes and reads the length of a time in whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// The error for a row that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnreadableRow {
    table: &'static str,
    name: String,
    reason: String,
}

impl UnreadableRow {
    pub(crate) fn new(table: &'static str, name: impl Into<String>, reason: impl fmt::Display) -> Self {
        UnreadableRow { table, name: name.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for UnreadableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnreadableRow { table, name, reason } = self;
        write!(f, "the row `{name}` of the table `{table}` can't be read: {reason}")
    }
}

impl std::error::Error for UnreadableRow {}

/// The error for a value in a column that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnreadableValue(String);

impl UnreadableValue {
    pub(crate) fn new(noun: &str, found: impl fmt::Display) -> Self {
        UnreadableValue(format!("`{found}` is not a known {noun}"))
    }
}

impl fmt::Display for UnreadableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnreadableValue {}

#[cfg(test)]
mod tests;
