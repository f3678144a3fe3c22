//! What JetStream says about a message that it does not deliver again.

use seawall_dist::messaging::DeathReason;
use serde_json::Value;

/// A message that JetStream does not deliver again to a consumer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Advisory {
    pub(super) stream: String,
    pub(super) consumer: String,
    pub(super) sequence: u64,
    pub(super) deliveries: u32,
    pub(super) reason: DeathReason,
    pub(super) text: String,
}

impl Advisory {
    /// Reads an advisory: of too many deliveries, or of a message that a consumer terminated.
    pub(super) fn parse(payload: &[u8]) -> Option<Advisory> {
        let value: Value = serde_json::from_slice(payload).ok()?;
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let deliveries = value.get("deliveries").and_then(Value::as_u64).unwrap_or(0);
        let (reason, says) = match text("type")?.rsplit('.').next()? {
            "max_deliver" => (
                DeathReason::Crashes,
                format!(
                    "delivered {deliveries} times without an outcome: the process died, or took too long"
                ),
            ),
            "terminated" => {
                let why = text("reason").map(|why| format!(": {why}")).unwrap_or_default();
                (DeathReason::Invalid, format!("terminated by its consumer{why}"))
            }
            _ => return None,
        };
        Some(Advisory {
            stream: text("stream")?,
            consumer: text("consumer")?,
            sequence: value.get("stream_seq")?.as_u64()?,
            deliveries: u32::try_from(deliveries).unwrap_or(u32::MAX),
            reason,
            text: says,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-6: both kinds of advisories are read, and what is not one breaks nothing.
    #[test]
    fn adp_6_advisories_are_read() {
        let died = br#"{"type":"io.nats.jetstream.advisory.v1.max_deliver","id":"x","timestamp":"2024-01-01T00:00:00Z",
            "stream":"ORDERS","consumer":"billing","stream_seq":17,"deliveries":5}"#;
        let advisory = Advisory::parse(died).unwrap();
        assert_eq!((advisory.sequence, advisory.deliveries, advisory.reason), (17, 5, DeathReason::Crashes));
        let ended =
            br#"{"type":"io.nats.jetstream.advisory.v1.terminated","stream":"ORDERS","consumer":"billing",
            "consumer_seq":3,"stream_seq":18,"deliveries":1,"reason":"no such order"}"#;
        let advisory = Advisory::parse(ended).unwrap();
        assert_eq!((advisory.sequence, advisory.reason), (18, DeathReason::Invalid));
        assert!(advisory.text.ends_with("no such order"), "{}", advisory.text);
        for other in [&b""[..], b"{}", b"[1]", br#"{"type":"io.nats.jetstream.advisory.v1.nak"}"#] {
            assert_eq!(Advisory::parse(other), None);
        }
    }
}
