//! Readers of values. An error says what to write instead.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use seawall::config::duration;
use seawall_hub_server::log::Format;
use seawall_hub_server::retention::KEPT_AT_LEAST;
use seawall_hub_server::{DatabaseUrl, MetricsAccess, is_range, responses};
use tracing::Level;

/// A shorter limit would abort a process that is only busy.
const WATCHDOG_MIN: Duration = Duration::from_secs(1);
/// A shorter timeout would disconnect clients that are only slow.
const WRITE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}`: must be an IP address and a port, such as `127.0.0.1:8480`"))
}

pub(super) fn non_empty(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() { Err("must not be empty".into()) } else { Ok(Some(text.into())) }
}

/// Takes any text: a refusal would be printed together with the value. Opening the database checks it.
pub(super) fn database(text: &str) -> Result<Option<DatabaseUrl>, String> {
    Ok(Some(DatabaseUrl::new(text)))
}

/// An empty text is no value: environments set a variable to nothing to turn it off.
pub(super) fn optional(text: &str) -> Result<Option<String>, String> {
    Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned))
}

pub(super) fn url(text: &str) -> Result<Option<String>, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte))
    };
    if rest.is_some_and(fits) {
        Ok(Some(text.to_owned()))
    } else {
        Err(format!("`{text}`: must start with http:// or https:// and have no query"))
    }
}

pub(super) fn cidr(text: &str) -> Result<String, String> {
    is_range(text).map(|()| text.to_owned())
}

pub(super) fn format(text: &str) -> Result<Format, String> {
    word(text, &[("text", Format::Text), ("json", Format::Json)])
}

pub(crate) fn level(text: &str) -> Result<Level, String> {
    let levels =
        [("error", Level::ERROR), ("warn", Level::WARN), ("info", Level::INFO), ("debug", Level::DEBUG)];
    word(text, &levels)
}

pub(super) fn metrics(text: &str) -> Result<MetricsAccess, String> {
    word(text, &[("key", MetricsAccess::Key), ("open", MetricsAccess::Open)])
}

fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("`{text}`: must be {}", words.join(" or "))
    })
}

pub(super) fn watchdog(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if !time.is_zero() && time < WATCHDOG_MIN {
        return Err("must be at least one second, or `0s` to turn the watchdog off; a shorter limit would abort a busy process".into());
    }
    Ok(time)
}

pub(super) fn write_timeout(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time < WRITE_TIMEOUT_MIN {
        return Err("must be at least one second; a shorter timeout would disconnect slow clients".into());
    }
    Ok(time)
}

/// A size such as `64MiB`: a number with a binary unit.
pub(super) fn response_memory(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 2] = [("MiB", 1024 * 1024), ("GiB", 1024 * 1024 * 1024)];
    let unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes)));
    let Some((Ok(count), unit)) = unit.map(|(number, unit)| (number.trim().parse::<u64>(), unit)) else {
        return Err(format!("`{text}`: must be a size such as `64MiB` or `1GiB`"));
    };
    let bytes = count.saturating_mul(*unit);
    if bytes < responses::BYTES_MIN {
        return Err("must be at least 32MiB, enough for one large response and the next".into());
    }
    Ok(bytes)
}

/// A duration of a day or more, or `forever`, which is `None`.
pub(super) fn retention_time(text: &str) -> Result<Option<Duration>, String> {
    if text == "forever" {
        return Ok(None);
    }
    let time = duration(text).map_err(|reason| format!("{reason}; or write `forever`"))?;
    if time < KEPT_AT_LEAST {
        return Err("must be at least one day: stored events are needed to recognise duplicates".into());
    }
    Ok(Some(time))
}
