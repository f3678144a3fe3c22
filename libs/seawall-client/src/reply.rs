//! A successful response.

use std::ops::Deref;

use seawall_api::Listing;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{ClientError, HubError, RawResponse};

/// The data of a successful response, typed and as it came.
///
/// It dereferences to the data: `service.version`.
#[derive(Clone, Debug)]
pub struct Reply<T> {
    status: u16,
    text: String,
    trace_id: String,
    data: T,
}

/// The envelope, with the data as it came.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEnvelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default)]
    trace_id: String,
}

impl<T: DeserializeOwned> Reply<T> {
    /// Reads a response; one that is no success becomes an error.
    pub(crate) fn read(response: RawResponse, retry_after: Option<u64>) -> Result<Self, ClientError> {
        let status = response.status;
        if !(200..300).contains(&status) {
            return Err(match serde_json::from_str(&response.text) {
                Ok(body) => ClientError::Rejected(Box::new(HubError { status, retry_after, body })),
                Err(_) => ClientError::NotAHub(Box::new(response)),
            });
        }
        let Ok(envelope) = serde_json::from_str::<RawEnvelope<'_>>(&response.text) else {
            return Err(ClientError::NotAHub(Box::new(response)));
        };
        let text = envelope.data.get().to_owned();
        match serde_json::from_str(&text) {
            Ok(data) => Ok(Self { status, text, trace_id: envelope.trace_id, data }),
            Err(source) => Err(ClientError::Unreadable { response: Box::new(response), source }),
        }
    }
}

impl<T> Reply<T> {
    /// The HTTP status: 200, 201 for what was created, 202 for what is done later.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// True if something was created, and not replaced.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.status == 201
    }

    /// The data as it came: numbers have their exact digits, and fields that this version does not know are there.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The id of the request in the hub's log.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// The data, owned.
    #[must_use]
    pub fn into_data(self) -> T {
        self.data
    }
}

impl<T: Listing> Reply<T> {
    /// The items as they came, in the order of [`Listing::items`].
    #[must_use]
    pub fn raw_items(&self) -> Vec<&RawValue> {
        let list = match T::FIELD {
            None => Some(self.text.as_str()),
            Some(name) => {
                let fields = serde_json::from_str::<std::collections::HashMap<String, &RawValue>>(&self.text);
                fields.ok().and_then(|fields| fields.get(name).map(|list| list.get()))
            }
        };
        list.and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default()
    }
}

impl<T> Deref for Reply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use seawall_api::ServiceSpec;
    use serde::Serialize;

    use super::*;
    use crate::json::JsonBody;

    /// What a service would be with one more field.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ServiceWithRegion {
        #[serde(flatten)]
        spec: ServiceSpec,
        home_region: String,
    }

    // API-4: a field that is added to a type is sent and read without an edit of the client.
    #[test]
    fn api_4_a_new_field_is_sent_and_read() {
        let spec = ServiceSpec::new("billing", "https://billing.example");
        let service = ServiceWithRegion { spec, home_region: "north".into() };
        let body = JsonBody::from(&service).text.unwrap();
        let text = format!(r#"{{"status": "ok", "data": {body}, "traceId": "t"}}"#);
        let reply = Reply::<ServiceWithRegion>::read(RawResponse { status: 200, text, location: None }, None);
        assert_eq!(reply.unwrap().into_data(), service);
    }
}
