//! The formats of texts: each names a parser of the domain, whose message is the reason.

use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupState, LetterState};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;

use super::query::check_token;
use crate::notify::settings;

/// Checks a text against the parser of its format. A format without a parser accepts every text.
pub(super) fn check(format: &str, text: &str) -> Result<(), String> {
    match format {
        "slug" => parsed(Slug::new(text)),
        "base-url" => base_url(text),
        "duration-text" => parsed(seawall::config::duration(text)),
        "event-type" => parsed(EventType::new(text)),
        "event-pattern" => parsed(Pattern::new(text)),
        "date-time" if Millis::from_rfc3339(text).is_none() => {
            Err("must be a time by RFC 3339, such as `2026-11-15T12:00:00Z`".to_owned())
        }
        "path" if !text.starts_with('/') => {
            Err("must start with a slash; it is below the address of the service".to_owned())
        }
        "alert-url" => settings::check_url(text),
        "webhook-secret" => settings::check_secret(text),
        "host" => settings::check_host(text),
        "email" => settings::check_address(text),
        "certificate" => settings::check_certificate(text),
        "page-token" => check_token(text),
        "tag-filter" if !text.contains(':') => Err(format!("must have the form `name:value`, not `{text}`")),
        "delivery-id" if DeliveryId::parse(text).is_none() => {
            Err(format!("must be the id of a delivery such as `{}`, not `{text}`", DeliveryId::new(1, 7)))
        }
        "fingerprint" if Fingerprint::parse(text).is_none() => {
            Err("must be a fingerprint such as `grp_0123456789abcdef`".to_owned())
        }
        "letter-states" => each_of(text, &LetterState::ALL.map(LetterState::word)),
        "group-states" => each_of(text, &GroupState::ALL.map(GroupState::word)),
        "search" if !text.chars().any(char::is_alphanumeric) => Err("must contain a word".to_owned()),
        _ => Ok(()),
    }
}

/// Checks words with commas between them.
fn each_of(text: &str, words: &[&str]) -> Result<(), String> {
    match text.split(',').map(str::trim).find(|word| !words.contains(word)) {
        Some(word) => Err(format!("must be one of {}, not `{word}`", words.join(", "))),
        None => Ok(()),
    }
}

fn parsed<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn base_url(text: &str) -> Result<(), String> {
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return Err("must start with `http://` or `https://`".to_owned());
    }
    parsed(seawall_http::Request::get(text))?;
    match text.contains(['?', '#']) {
        true => Err("must not have a query; a rule's path may have one".to_owned()),
        false => Ok(()),
    }
}
