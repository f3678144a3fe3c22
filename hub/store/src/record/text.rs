//! Values that documents hold as texts.

use data_encoding::HEXLOWER;
use seawall_hub_core::domain::alert::{ConditionKind, Severity};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::key::Scope;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of the domain that a document holds as a text.
pub(crate) trait DocumentText: Sized {
    fn to_text(&self) -> String;

    /// Parses the text, or says what is wrong with it.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// Writes and reads a value as its text.
pub(super) struct Text<T>(pub(super) T);

impl<T: DocumentText> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_text())
    }
}

impl<'de, T: DocumentText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::from_text(&text).map(Text).map_err(D::Error::custom)
    }
}

impl DocumentText for Slug {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Slug::new(text).map_err(|error| error.to_string())
    }
}

impl DocumentText for Pattern {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Pattern::new(text).map_err(|error| error.to_string())
    }
}

macro_rules! words_as_text {
    ($($name:ident),+) => {$(
        impl DocumentText for $name {
            fn to_text(&self) -> String {
                self.word().to_owned()
            }

            fn from_text(text: &str) -> Result<Self, String> {
                $name::from_word(text).ok_or_else(|| format!("`{text}` is not known"))
            }
        }
    )+};
}

words_as_text!(ConditionKind, Scope, Severity);

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    HEXLOWER.decode(text.as_bytes()).map_err(|error| format!("not hexadecimal: {error}"))
}

/// A number of JSON may lose its last digit when it is read, and knows no infinity.
impl DocumentText for f64 {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("`{text}` is no number"))
    }
}

/// The bytes stay encrypted.
impl DocumentText for SealedSecret {
    fn to_text(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        bytes(text).map(SealedSecret)
    }
}

impl DocumentText for [u8; 32] {
    fn to_text(&self) -> String {
        HEXLOWER.encode(self)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        bytes(text)?.try_into().map_err(|_| "a hash has 32 bytes".to_owned())
    }
}

/// Wraps each value of an optional list.
pub(super) fn texts<T>(values: Option<Vec<T>>) -> Option<Vec<Text<T>>> {
    values.map(|values| values.into_iter().map(Text).collect())
}

/// Unwraps each value of an optional list.
pub(super) fn values<T>(texts: Option<Vec<Text<T>>>) -> Option<Vec<T>> {
    texts.map(|texts| texts.into_iter().map(|Text(value)| value).collect())
}
