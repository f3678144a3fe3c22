//! JSON to a service config.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use seawall::ConfigError;
use serde_json::Value;

use super::fields::{Fields, Notes};
use super::value::{
    attempts, bytes, code, duration, multiplier, positive_duration, ratio, text, tokens, truth,
};
use super::{MethodConfig, ServiceConfig};
use crate::policy::{CallPolicy, HedgingPolicy, RetryPolicy, StatusCodes};
use crate::throttle::RetryThrottling;

pub(super) fn service_config(json: &str) -> Result<ServiceConfig, ConfigError> {
    let error = |problems: Vec<(String, String)>| ConfigError::new("the service config", problems);
    let value: Value = serde_json::from_str(json)
        .map_err(|wrong| error(vec![(String::new(), format!("this is not JSON: {wrong}"))]))?;
    let mut notes = Notes::default();
    let mut config = ServiceConfig::default();
    if let Some(mut fields) = Fields::of("", &value, &mut notes) {
        let mut names = HashMap::new();
        for (path, item) in fields.list("methodConfig", &mut notes) {
            method_config(&path, item, &mut config.methods, &mut names, &mut notes);
        }
        let path = fields.path("retryThrottling");
        config.throttling =
            fields.get("retryThrottling").and_then(|value| throttling(&path, value, &mut notes));
        fields.end(&mut notes);
    }
    config.ignored = notes.ignored;
    if notes.problems.is_empty() { Ok(config) } else { Err(error(notes.problems)) }
}

/// One entry of `methodConfig`. `names` knows where each name was seen first.
fn method_config(
    path: &str,
    value: &Value,
    methods: &mut HashMap<String, Arc<MethodConfig>>,
    names: &mut HashMap<String, String>,
    notes: &mut Notes,
) {
    let Some(mut fields) = Fields::of(path, value, notes) else { return };
    let listed = fields.list("name", notes);
    if listed.is_empty() {
        notes.ignore(path.to_owned(), "has no name, and so applies to no method");
    }
    let keys: Vec<String> = listed
        .into_iter()
        .filter_map(|(path, value)| {
            let key = name(&path, value, notes)?;
            match names.entry(key.clone()) {
                Entry::Vacant(first) => {
                    first.insert(path);
                    Some(key)
                }
                Entry::Occupied(first) => {
                    notes.wrong(&path, format!("names what `{}` names already; name it once", first.get()));
                    None
                }
            }
        })
        .collect();
    let config = Arc::new(MethodConfig {
        policy: policy(&mut fields, notes),
        timeout: fields.optional("timeout", notes, positive_duration),
        wait_for_ready: fields.optional("waitForReady", notes, truth).unwrap_or_default(),
        max_request_message_bytes: fields.optional("maxRequestMessageBytes", notes, bytes),
        max_response_message_bytes: fields.optional("maxResponseMessageBytes", notes, bytes),
    });
    fields.end(notes);
    methods.extend(keys.into_iter().map(|key| (key, config.clone())));
}

/// The key of a name: `/service/method`, `/service/`, or nothing for all methods.
fn name(path: &str, value: &Value, notes: &mut Notes) -> Option<String> {
    let mut fields = Fields::of(path, value, notes)?;
    let before = notes.problems.len();
    let service = fields.optional("service", notes, text).unwrap_or_default();
    let method = fields.optional("method", notes, text).unwrap_or_default();
    if service.is_empty() && !method.is_empty() {
        notes.wrong(&fields.path("service"), "is missing beside a method; name the service of the method");
    }
    fields.end(notes);
    let key = if service.is_empty() { String::new() } else { format!("/{service}/{method}") };
    (notes.problems.len() == before).then_some(key)
}

fn policy(fields: &mut Fields<'_>, notes: &mut Notes) -> CallPolicy {
    let (retry_path, hedging_path) = (fields.path("retryPolicy"), fields.path("hedgingPolicy"));
    let (retry, hedging) = (fields.get("retryPolicy"), fields.get("hedgingPolicy"));
    if retry.is_some() && hedging.is_some() {
        notes.wrong(
            &hedging_path,
            "stands beside `retryPolicy`; a method is retried or hedged, so take one out",
        );
    }
    let retry = retry.and_then(|value| retry_policy(&retry_path, value, notes)).map(CallPolicy::Retry);
    let hedging =
        hedging.and_then(|value| hedging_policy(&hedging_path, value, notes)).map(CallPolicy::Hedging);
    retry.or(hedging).unwrap_or_default()
}

fn retry_policy(path: &str, value: &Value, notes: &mut Notes) -> Option<RetryPolicy> {
    let mut fields = Fields::of(path, value, notes)?;
    let max_attempts = fields.required("maxAttempts", notes, attempts);
    let initial_backoff = fields.required("initialBackoff", notes, positive_duration);
    let max_backoff = fields.required("maxBackoff", notes, positive_duration);
    let backoff_multiplier = fields.required("backoffMultiplier", notes, multiplier);
    let before = notes.problems.len();
    let retryable = codes(&mut fields, "retryableStatusCodes", notes);
    if retryable.is_empty() && notes.problems.len() == before {
        notes.wrong(
            &fields.path("retryableStatusCodes"),
            "names no status; write at least one, such as `\"UNAVAILABLE\"`",
        );
    }
    fields.end(notes);
    Some(RetryPolicy {
        max_attempts: max_attempts?,
        initial_backoff: initial_backoff?,
        max_backoff: max_backoff?,
        backoff_multiplier: backoff_multiplier?,
        retryable,
    })
}

fn hedging_policy(path: &str, value: &Value, notes: &mut Notes) -> Option<HedgingPolicy> {
    let mut fields = Fields::of(path, value, notes)?;
    let max_attempts = fields.required("maxAttempts", notes, attempts);
    let delay = fields.optional("hedgingDelay", notes, duration).unwrap_or_default();
    let non_fatal = codes(&mut fields, "nonFatalStatusCodes", notes);
    fields.end(notes);
    Some(HedgingPolicy { max_attempts: max_attempts?, delay, non_fatal })
}

fn codes(fields: &mut Fields<'_>, name: &'static str, notes: &mut Notes) -> StatusCodes {
    let mut codes = StatusCodes::default();
    for (path, value) in fields.list(name, notes) {
        match code(value) {
            Ok(code) => codes.insert(code),
            Err(reason) => notes.wrong(&path, reason),
        }
    }
    codes
}

fn throttling(path: &str, value: &Value, notes: &mut Notes) -> Option<RetryThrottling> {
    let mut fields = Fields::of(path, value, notes)?;
    let max_milli_tokens = fields.required("maxTokens", notes, tokens);
    let milli_token_ratio = fields.required("tokenRatio", notes, ratio);
    fields.end(notes);
    Some(RetryThrottling { max_milli_tokens: max_milli_tokens?, milli_token_ratio: milli_token_ratio? })
}
