//! Declares a durable consumer, or checks the one that is there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, Config as Found, FromConsumer, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use seawall::Fault;
use seawall::fault::Ran;

use crate::NatsError;

/// The settings of a durable consumer.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerSettings {
    pub(crate) stream: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) filter_subject: String,
    pub(crate) ack_wait: Duration,
    /// How often a message is delivered; negative for no limit.
    pub(crate) max_deliver: i64,
    pub(crate) max_ack_pending: i64,
    pub(crate) backoff: Vec<Duration>,
}

impl ConsumerSettings {
    /// Declares the consumer. One that is there is updated where that changes no message that is delivered, and is an error
    /// where it would skip messages or deliver them twice.
    pub(crate) async fn declare(&self, context: &Context) -> Result<(), NatsError> {
        let action: Arc<str> = format!("declaring the consumer `{}` of `{}`", self.name, self.stream).into();
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| NatsError::of(action.clone(), error);
        let stream = context.get_stream_no_info(&*self.stream).await.map_err(|error| failed(error.into()))?;
        let config = match stream.consumer_info(&*self.name).await {
            Ok(found) if self.is_like(&found.config) => return Ok(()),
            Ok(found) => {
                let conflicts = self.conflicts(&found.config);
                if !conflicts.is_empty() {
                    let text = format!(
                        "it is there with {}; take another name, or remove it",
                        conflicts.join(" and ")
                    );
                    return Err(NatsError::new(action, Fault::business().ran(Ran::No), text));
                }
                self.apply(pull::Config::try_from_consumer_config(found.config).map_err(failed)?)
            }
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                self.apply(pull::Config::default())
            }
            Err(error) => return Err(failed(error.into())),
        };
        stream.create_consumer(config).await.map_err(|error| failed(error.into()))?;
        Ok(())
    }

    fn apply(&self, config: pull::Config) -> pull::Config {
        pull::Config {
            durable_name: Some(self.name.to_string()),
            name: Some(self.name.to_string()),
            ack_policy: AckPolicy::Explicit,
            filter_subject: self.filter_subject.clone(),
            ack_wait: self.ack_wait,
            max_deliver: self.max_deliver,
            max_ack_pending: self.max_ack_pending,
            backoff: self.backoff.clone(),
            ..config
        }
    }

    /// The settings that can't be changed without skipping or repeating messages, with what they are and should be.
    fn conflicts(&self, found: &Found) -> Vec<String> {
        let mut conflicts = Vec::new();
        if let Some(subject) = &found.deliver_subject {
            conflicts.push(format!("deliver_subject `{subject}`, and has to be pulled from"));
        }
        if found.ack_policy != AckPolicy::Explicit {
            conflicts.push(format!("ack_policy {:?}, and not Explicit", found.ack_policy));
        }
        if found.filter_subject != self.filter_subject || !found.filter_subjects.is_empty() {
            conflicts.push(format!(
                "filter_subject `{}{}`, and not `{}`",
                found.filter_subject,
                found.filter_subjects.join(" "),
                self.filter_subject
            ));
        }
        if found.headers_only {
            conflicts.push("headers_only, and messages need their payload".to_owned());
        }
        conflicts
    }

    fn is_like(&self, found: &Found) -> bool {
        self.conflicts(found).is_empty()
            && found.ack_wait == self.ack_wait
            && found.max_deliver == self.max_deliver
            && found.max_ack_pending == self.max_ack_pending
            && found.backoff == self.backoff
    }
}
