//! Values as JSON.

use std::error::Error;

use seawall::task::cache::Codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The [`Codec`] that writes values as JSON, which services in other languages can read.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonCodec;

impl<T: Serialize + DeserializeOwned> Codec<T> for JsonCodec {
    fn encode(&self, value: &T) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(serde_json::to_vec(value)?)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, Box<dyn Error + Send + Sync>> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
