//! The body of a request.

use std::marker::PhantomData;

use serde::Serialize;

/// A JSON text that is sent as it is: numbers keep their digits, and fields that this version does not know are sent too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(pub String);

/// The body of a request: a value of this type by reference, or a text as [`RawJson`].
#[derive(Debug)]
pub struct JsonBody<T> {
    pub(crate) text: Result<String, serde_json::Error>,
    marker: PhantomData<fn(T)>,
}

impl<T: Serialize> From<&T> for JsonBody<T> {
    fn from(value: &T) -> Self {
        Self { text: serde_json::to_string(value), marker: PhantomData }
    }
}

impl<T> From<RawJson> for JsonBody<T> {
    fn from(RawJson(text): RawJson) -> Self {
        Self { text: Ok(text), marker: PhantomData }
    }
}
