//! Where the dead letters of a stream are kept, and how one gets there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{Context, ErrorCode};
use seawall::Fault;
use seawall::fault::{Ran, Verdict};
use seawall_dist::messaging::{DeathReason, FailureEvidence};

use crate::NatsError;
use crate::format::{letter_headers, message_of};
use crate::names::{advisory_stream, advisory_subjects, covers, dead_letter_stream, dead_letter_subject};

/// The default time within which the server recognises a letter that is stored twice. A letter is stored twice when a process
/// dies between the letter and the end of the original, or when an advisory tells of what a consumer stored already.
pub const LETTER_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// The default time for which advisories are kept while nobody reads them. It is longer than any outage should be.
pub const ADVISORIES_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The streams `{stream}-dlq` and `{stream}-advisories` beside a stream.
#[derive(Clone, Debug)]
pub(crate) struct DeadLetterPlace {
    pub(crate) stream: Arc<str>,
    pub(crate) kept_for: Option<Duration>,
}

/// A message that is given up, as the stream has it.
pub(crate) struct Casualty<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) sequence: u64,
    pub(crate) subject: &'a str,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) payload: &'a [u8],
}

impl DeadLetterPlace {
    /// Declares both streams, unless they are there. Their limits are the operator's, their subjects are ours.
    pub(crate) async fn declare(&self, context: &Context) -> Result<(), NatsError> {
        let replicas = self.replicas(context).await?;
        let letters = Config {
            name: dead_letter_stream(&self.stream),
            description: Some(format!("Dead letters of the stream {}", self.stream)),
            subjects: vec![dead_letter_subject(&self.stream, "*")],
            // A full stream refuses a new letter, and the message stays where it is. The oldest letter is never removed for it.
            discard: DiscardPolicy::New,
            max_age: self.kept_for.unwrap_or_default(),
            duplicate_window: self.kept_for.map_or(LETTER_WINDOW, |kept| kept.min(LETTER_WINDOW)),
            num_replicas: replicas,
            ..Config::default()
        };
        let advisories = Config {
            name: advisory_stream(&self.stream),
            description: Some(format!("Messages of the stream {} that are not delivered again", self.stream)),
            subjects: advisory_subjects(&self.stream).into(),
            // An advisory is removed when its letter is stored.
            retention: RetentionPolicy::WorkQueue,
            max_age: ADVISORIES_KEPT_FOR,
            num_replicas: replicas,
            ..Config::default()
        };
        declare_stream(context, letters).await?;
        declare_stream(context, advisories).await
    }

    /// The letters are as safe as what they were made of.
    async fn replicas(&self, context: &Context) -> Result<usize, NatsError> {
        let found = context.get_stream(&*self.stream).await;
        let found = found
            .map_err(|error| NatsError::of(format!("looking for the stream `{}`", self.stream), error))?;
        Ok(found.cached_info().config.num_replicas.max(1))
    }

    /// Stores the letter of a message. It is stored once, however often this is called for the message; returns whether it was
    /// now.
    pub(crate) async fn bury(
        &self,
        context: &Context,
        casualty: &Casualty<'_>,
        mut evidence: FailureEvidence,
        reason: DeathReason,
    ) -> Result<bool, NatsError> {
        let position =
            format!("stream={} consumer={} sequence={}", self.stream, casualty.consumer, casualty.sequence);
        evidence.set_reason(reason);
        evidence.set_origin(casualty.subject, &position);
        evidence.set_consumer(casualty.consumer);
        match self.store(context, casualty, &evidence).await {
            Err(error) if error.fault().verdict() == Verdict::Permanent => {}
            result => return result,
        }
        // The payload is about as large as a message may be, and the evidence is too much: keep what says where it belongs.
        let mut essential = FailureEvidence::default();
        essential.set_reason(reason);
        essential.set_origin(casualty.subject, &position);
        essential.set_consumer(casualty.consumer);
        self.store(context, casualty, &essential).await
    }

    async fn store(
        &self,
        context: &Context,
        casualty: &Casualty<'_>,
        evidence: &FailureEvidence,
    ) -> Result<bool, NatsError> {
        const STORING: &str = "storing a dead letter";
        let Casualty { consumer, sequence, subject, headers, payload } = *casualty;
        let message = message_of(subject, headers, payload);
        let mut headers = letter_headers(&message, &evidence.apply(message.headers()));
        headers.insert(NATS_MESSAGE_ID, format!("{}.{consumer}.{sequence}", self.stream));
        headers.insert(NATS_EXPECTED_STREAM, dead_letter_stream(&self.stream));
        let publish = PublishMessage::build().headers(headers).payload(payload.to_vec().into());
        let place = dead_letter_subject(&self.stream, consumer);
        let sent =
            context.send_publish(place, publish).await.map_err(|error| NatsError::of(STORING, error))?;
        match sent.await {
            Ok(ack) => Ok(!ack.duplicate),
            // The stream was declared. So it is there, and does not answer now.
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(NatsError::new(STORING, Fault::unreachable().ran(Ran::No), error))
            }
            Err(error) => Err(NatsError::of(STORING, error)),
        }
    }
}

/// Creates a stream unless it is there, and checks that it has our subjects.
pub(crate) async fn declare_stream(context: &Context, config: Config) -> Result<(), NatsError> {
    let action = format!("declaring the stream `{}`", config.name);
    let (name, wanted) = (config.name.clone(), config.subjects.clone());
    let found = match context.get_or_create_stream(config).await {
        // Another process created it a moment ago, with other limits.
        Err(error) if is_taken(&error) => {
            context.get_stream(&name).await.map_err(|error| NatsError::of(action.clone(), error))?
        }
        found => found.map_err(|error| NatsError::of(action.clone(), error))?,
    };
    let subjects = &found.cached_info().config.subjects;
    let is_covered = |subject: &String| subjects.iter().any(|pattern| covers(pattern, subject));
    match wanted.iter().find(|subject| !is_covered(subject)) {
        None => Ok(()),
        Some(missing) => Err(NatsError::new(
            action,
            Fault::business().ran(Ran::No),
            format!(
                "`{name}` is there with the subjects {subjects:?}, and `{missing}` is not among them; add it, or remove the stream"
            ),
        )),
    }
}

fn is_taken(error: &CreateStreamError) -> bool {
    matches!(error.kind(), CreateStreamErrorKind::JetStream(refusal) if refusal.error_code() == ErrorCode::STREAM_NAME_EXIST)
}
