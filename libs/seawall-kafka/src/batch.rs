//! The messages of one call, and what is known about each.

use std::sync::{Mutex, MutexGuard, PoisonError};

use seawall::Fault;
use seawall_dist::{Message, PublishError};

/// The messages of one call of a publisher. Results outlive an attempt that is dropped, so that the next one sends only what
/// has none.
pub(crate) struct Batch<'a> {
    pub(crate) messages: &'a [Message],
    results: Mutex<Vec<Option<Result<(), PublishError>>>>,
}

impl<'a> Batch<'a> {
    /// Begins a batch with the messages that are refused at once.
    pub(crate) fn new(
        messages: &'a [Message],
        refusal_of: impl Fn(&Message) -> Option<PublishError>,
    ) -> Self {
        let results = messages.iter().map(|message| refusal_of(message).map(Err)).collect();
        Batch { messages, results: Mutex::new(results) }
    }

    /// The messages that another attempt may help: those without a result, and those with a failure that passes.
    pub(crate) fn open(&self) -> Vec<usize> {
        let is_open = |result: &Option<Result<(), PublishError>>| match result {
            None => true,
            Some(Ok(())) => false,
            Some(Err(error)) => error.fault().is_transient(),
        };
        let results = self.results();
        (0..results.len()).filter(|index| is_open(&results[*index])).collect()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.open().is_empty()
    }

    pub(crate) fn set(&self, index: usize, result: Result<(), PublishError>) {
        self.results()[index] = Some(result);
    }

    /// What the attempt failed with: a failure that passes before one that does not, because it decides about a retry.
    pub(crate) fn failure(&self) -> Option<PublishError> {
        let results = self.results();
        let failures = || results.iter().flatten().filter_map(|result| result.as_ref().err());
        let transient = failures().find(|error| error.fault().is_transient());
        transient.or_else(|| failures().next()).cloned()
    }

    /// Gives a result to every message that has none.
    pub(crate) fn fill(&self, failure: impl Fn() -> PublishError) {
        for result in self.results().iter_mut().filter(|result| result.is_none()) {
            *result = Some(Err(failure()));
        }
    }

    pub(crate) fn into_results(self) -> Vec<Result<(), PublishError>> {
        let missing = || Err(PublishError::new(Fault::system(), "the attempt ended without a result"));
        let results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
    }

    fn results(&self) -> MutexGuard<'_, Vec<Option<Result<(), PublishError>>>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-5: a second attempt sends only what may be helped, and decides by failures that pass.
    #[test]
    fn adp_5_a_retry_sends_only_what_has_no_final_result() {
        let messages: Vec<Message> = (0..4).map(|number| Message::new("A", number.to_string(), "")).collect();
        let refuse = |message: &Message| {
            (message.aggregate_id() == "0").then(|| PublishError::new(Fault::business(), "no"))
        };
        let batch = Batch::new(&messages, refuse);
        assert_eq!(batch.open(), [1, 2, 3]);
        batch.set(1, Ok(()));
        batch.set(2, Err(PublishError::new(Fault::timeout(), "late")));
        assert_eq!(batch.open(), [2, 3]);
        assert_eq!(batch.failure().unwrap().to_string(), "late");
        batch.fill(|| PublishError::new(Fault::rejected(), "open"));
        let texts: Vec<String> = batch
            .into_results()
            .into_iter()
            .map(|result| result.err().map_or_else(String::new, |error| error.to_string()))
            .collect();
        assert_eq!(texts, ["no", "", "late", "open"]);
    }
}
