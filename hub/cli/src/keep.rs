//! Retention settings.

use std::time::Duration;

use clap::Args;
use seawall_hub_server::retention::{KEPT_AT_LEAST, Retention};

/// Retention times: a duration of a day or more such as `7d`, or `forever`.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct RetentionArgs {
    /// Retention of delivered events: a duration such as `7d`, or `forever`. [default: 7d]
    #[arg(long, env = "SEAWALL_KEEP_DELIVERED", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_delivered: Option<RetentionTime>,

    /// Retention of deleted dead letters, until they are purged. [default: 30d]
    #[arg(long, env = "SEAWALL_KEEP_DISCARDED", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_discarded: Option<RetentionTime>,

    /// Retention of the audit log. [default: 365d]
    #[arg(long, env = "SEAWALL_KEEP_AUDIT", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_audit: Option<RetentionTime>,
}

/// A retention time; `None` means forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RetentionTime(Option<Duration>);

impl RetentionArgs {
    /// These settings, with `other` as the fallback.
    pub(crate) fn over(self, other: RetentionArgs) -> RetentionArgs {
        RetentionArgs {
            keep_delivered: self.keep_delivered.or(other.keep_delivered),
            keep_discarded: self.keep_discarded.or(other.keep_discarded),
            keep_audit: self.keep_audit.or(other.keep_audit),
        }
    }

    /// The retention, with defaults for what is not set.
    pub(crate) fn retention(self) -> Retention {
        let usual = Retention::default();
        let said = |said: Option<RetentionTime>, usual| said.map_or(usual, |RetentionTime(time)| time);
        Retention {
            delivered: said(self.keep_delivered, usual.delivered),
            discarded: said(self.keep_discarded, usual.discarded),
            audit: said(self.keep_audit, usual.audit),
        }
    }
}

/// `7d`, or `forever`.
pub(crate) fn kept(text: &str) -> Result<RetentionTime, String> {
    if text == "forever" {
        return Ok(RetentionTime(None));
    }
    let time = seawall::config::duration(text).map_err(|reason| format!("{reason}; or write `forever`"))?;
    if time < KEPT_AT_LEAST {
        let reason = "must be at least one day: stored events are needed to recognise duplicates";
        return Err(reason.into());
    }
    Ok(RetentionTime(Some(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-9: what is old goes unless somebody says otherwise, and never so soon that a repetition is taken for something new.
    #[test]
    fn hub_9_what_is_kept_is_kept_for_a_day_at_least() {
        assert_eq!(RetentionArgs::default().retention(), Retention::default());
        let keep = RetentionArgs { keep_audit: Some(kept("forever").unwrap()), ..RetentionArgs::default() };
        assert_eq!(keep.retention(), Retention { audit: None, ..Retention::default() });
        assert_eq!(kept("1d"), Ok(RetentionTime(Some(KEPT_AT_LEAST))));
        for wrong in ["23h", "0s", "7", "never", ""] {
            assert!(kept(wrong).is_err(), "{wrong}");
        }
    }
}
