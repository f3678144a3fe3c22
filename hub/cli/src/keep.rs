//! How long what has ended is kept.

use std::time::Duration;

use clap::Args;
use seawall_hub_server::retention::{KEPT_AT_LEAST, Retention};

/// How long what has ended is kept: a duration of a day or more such as `7d`, or `forever`.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Keep {
    /// How long events stay whose deliveries are delivered: a duration such as `7d`, or `forever`. [default: 7d]
    #[arg(long, env = "SEAWALL_KEEP_DELIVERED", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_delivered: Option<Kept>,

    /// How long dead letters stay that were discarded. [default: 30d]
    #[arg(long, env = "SEAWALL_KEEP_DISCARDED", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_discarded: Option<Kept>,

    /// How long it is known who has changed what. [default: 365d]
    #[arg(long, env = "SEAWALL_KEEP_AUDIT", value_name = "TIME", value_parser = kept)]
    pub(crate) keep_audit: Option<Kept>,
}

/// A time, or for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept(Option<Duration>);

impl Keep {
    /// With what is said elsewhere behind it.
    pub(crate) fn over(self, other: Keep) -> Keep {
        Keep {
            keep_delivered: self.keep_delivered.or(other.keep_delivered),
            keep_discarded: self.keep_discarded.or(other.keep_discarded),
            keep_audit: self.keep_audit.or(other.keep_audit),
        }
    }

    /// With defaults for what is not said.
    pub(crate) fn retention(self) -> Retention {
        let usual = Retention::default();
        let said = |said: Option<Kept>, usual| said.map_or(usual, |Kept(time)| time);
        Retention {
            delivered: said(self.keep_delivered, usual.delivered),
            discarded: said(self.keep_discarded, usual.discarded),
            audit: said(self.keep_audit, usual.audit),
        }
    }
}

/// `7d`, or `forever`.
pub(crate) fn kept(text: &str) -> Result<Kept, String> {
    if text == "forever" {
        return Ok(Kept(None));
    }
    let time = seawall::config::duration(text).map_err(|reason| format!("{reason}; or write `forever`"))?;
    if time < KEPT_AT_LEAST {
        let reason =
            "less than a day is too short: an event that is sent again is recognised by the one that is kept";
        return Err(reason.into());
    }
    Ok(Kept(Some(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-9: what is old goes unless somebody says otherwise, and never so soon that a repetition is taken for something new.
    #[test]
    fn hub_9_what_is_kept_is_kept_for_a_day_at_least() {
        assert_eq!(Keep::default().retention(), Retention::default());
        let keep = Keep { keep_audit: Some(kept("forever").unwrap()), ..Keep::default() };
        assert_eq!(keep.retention(), Retention { audit: None, ..Retention::default() });
        assert_eq!(kept("1d"), Ok(Kept(Some(KEPT_AT_LEAST))));
        for wrong in ["23h", "0s", "7", "never", ""] {
            assert!(kept(wrong).is_err(), "{wrong}");
        }
    }
}
