//! The table: one row for each setting.

use seawall::config::SettingKey;

use super::Settings;
use super::values::{
    address, cidr, database, format, level, metrics, non_empty, optional, response_memory, retention_time,
    url, watchdog, write_timeout,
};

/// The setting whose value may hold a password: it is shown nowhere.
const DATABASE: &str = "database";

/// One setting.
pub(crate) struct SettingRow {
    /// The key in the file, such as `log.level`.
    pub(crate) key: &'static str,
    /// The option without its dashes, such as `log-level`.
    pub(crate) option: &'static str,
    /// The environment variable; empty if there is none.
    pub(crate) variable: &'static str,
    /// What a value is: a unit, or the words that it can be, separated by `|`.
    pub(crate) unit: &'static str,
    /// The default as one would write it. In brackets if it follows from something else, and empty if there is none.
    pub(crate) default: &'static str,
    pub(crate) effect: Effect,
    pub(crate) doc: &'static str,
    pub(crate) field: SettingField,
}

/// When a changed file takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Reload,
    Restart,
}

/// The field of [`Settings`] that a row fills in.
pub(crate) struct SettingField {
    pub(crate) read: fn(&mut Settings, &str) -> Result<(), String>,
    pub(crate) differs: fn(&Settings, &Settings) -> bool,
    /// Copies the value from the first settings to the second.
    pub(crate) copy: fn(&Settings, &mut Settings),
    /// True if each text adds an item to a list.
    pub(crate) is_list: bool,
}

/// A field of the settings, and the function that reads its value, or an item of its list.
macro_rules! field {
    ($($name:ident).+ = $value:ident) => {
        field!($($name).+, false, |settings, text| settings.$($name).+ = $value(text)?)
    };
    ($name:ident += $value:ident) => {
        field!($name, true, |settings, text| settings.$name.push($value(text)?))
    };
    ($($name:ident).+, $is_list:literal, |$settings:ident, $text:ident| $read:expr) => {
        SettingField {
            read: |$settings, $text| {
                $read;
                Ok(())
            },
            differs: |one, other| one.$($name).+ != other.$($name).+,
            copy: |from, to| to.$($name).+.clone_from(&from.$($name).+),
            is_list: $is_list,
        }
    };
}

use Effect::{Reload, Restart};

#[rustfmt::skip]
pub(crate) const TABLE: &[SettingRow] = &[
    SettingRow { key: "listen", option: "listen", variable: "SEAWALL_LISTEN", unit: "ADDRESS", default: "127.0.0.1:8480", effect: Restart,
        doc: "Address to listen on. The hub speaks plain HTTP: beyond this machine, put a TLS proxy in front of it.",
        field: field!(listen = address) },
    SettingRow { key: "data_dir", option: "data-dir", variable: "SEAWALL_DATA_DIR", unit: "DIR", default: "(`seawall` in the platform's data directory)", effect: Restart,
        doc: "Data directory. One process at a time can use it.",
        field: field!(data_dir = non_empty) },
    SettingRow { key: DATABASE, option: "database", variable: "SEAWALL_DATABASE", unit: "URL", default: "(SQLite in the data directory)", effect: Restart,
        doc: "PostgreSQL database that holds the data in place of SQLite, such as `postgres://seawall@db.example:5432/seawall`. The data directory then holds `secret.key`. The password comes from `database_password_file` or PGPASSWORD; on the command line it is refused.",
        field: field!(database = database) },
    SettingRow { key: "database_password_file", option: "database-password-file", variable: "SEAWALL_DATABASE_PASSWORD_FILE", unit: "FILE", default: "", effect: Restart,
        doc: "File with the password of the database, such as a secret of Docker or Kubernetes.",
        field: field!(database_password_file = non_empty) },
    SettingRow { key: "public_url", option: "public-url", variable: "SEAWALL_PUBLIC_URL", unit: "URL", default: "(the listen address)", effect: Reload,
        doc: "Public URL of the hub, such as `https://seawall.example`, used for links in alerts.",
        field: field!(public_url = url) },
    SettingRow { key: "allow_egress", option: "allow-egress", variable: "", unit: "CIDR", default: "", effect: Reload,
        doc: "Private address range that outgoing requests may reach, such as `10.1.0.0/16`; repeatable. Public addresses are always allowed.",
        field: field!(allow_egress += cidr) },
    SettingRow { key: "otlp_endpoint", option: "otlp-endpoint", variable: "OTEL_EXPORTER_OTLP_ENDPOINT", unit: "URL", default: "", effect: Restart,
        doc: "Collector for traces over OTLP/HTTP, such as `http://127.0.0.1:4318`.",
        field: field!(otlp_endpoint = optional) },
    SettingRow { key: "log.format", option: "log-format", variable: "SEAWALL_LOG_FORMAT", unit: "text|json", default: "text", effect: Restart,
        doc: "Log format on stderr.",
        field: field!(log_format = format) },
    SettingRow { key: "log.level", option: "log-level", variable: "SEAWALL_LOG_LEVEL", unit: "error|warn|info|debug", default: "info", effect: Reload,
        doc: "Log level. error: needs attention; warn: also what is retried; info; debug: also every event.",
        field: field!(log_level = level) },
    SettingRow { key: "watchdog", option: "watchdog", variable: "SEAWALL_WATCHDOG", unit: "TIME", default: "60s", effect: Restart,
        doc: "Time for which a thread may be stuck before the process aborts, so that its supervisor restarts it: a duration such as `60s`, at least one second, or `0s` to turn the watchdog off.",
        field: field!(watchdog = watchdog) },
    SettingRow { key: "response_memory", option: "response-memory", variable: "SEAWALL_RESPONSE_MEMORY", unit: "SIZE", default: "256MiB", effect: Restart,
        doc: "Maximum memory for responses that clients have not read yet, such as `64MiB`; at least 32MiB. While it is used up, large requests are rejected with 503.",
        field: field!(response_memory = response_memory) },
    SettingRow { key: "write_timeout", option: "write-timeout", variable: "SEAWALL_WRITE_TIMEOUT", unit: "TIME", default: "30s", effect: Restart,
        doc: "Write timeout: a client that reads nothing of its response for this long is disconnected; at least one second.",
        field: field!(write_timeout = write_timeout) },
    SettingRow { key: "metrics", option: "metrics", variable: "SEAWALL_METRICS", unit: "key|open", default: "key", effect: Restart,
        doc: "Access to metrics. key: a key with the scope `read`; open: everyone who can reach the port.",
        field: field!(metrics = metrics) },
    SettingRow { key: "keep.delivered", option: "keep-delivered", variable: "SEAWALL_KEEP_DELIVERED", unit: "TIME", default: "7d", effect: Reload,
        doc: "Retention of delivered events: a duration such as `7d`, at least one day, or `forever`.",
        field: field!(retention.delivered = retention_time) },
    SettingRow { key: "keep.discarded", option: "keep-discarded", variable: "SEAWALL_KEEP_DISCARDED", unit: "TIME", default: "30d", effect: Reload,
        doc: "Retention of deleted dead letters, until they are purged.",
        field: field!(retention.discarded = retention_time) },
    SettingRow { key: "keep.audit", option: "keep-audit", variable: "SEAWALL_KEEP_AUDIT", unit: "TIME", default: "365d", effect: Reload,
        doc: "Retention of the audit log.",
        field: field!(retention.audit = retention_time) },
];

impl SettingRow {
    /// The default, if it is a value.
    pub(crate) fn default_value(&self) -> Option<&'static str> {
        Some(self.default).filter(|text| !text.is_empty() && !text.starts_with('('))
    }

    /// The words that a value can be; empty if it is something else.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        if self.unit.contains('|') { self.unit.split('|').collect() } else { Vec::new() }
    }

    /// The text, if it is a value of this setting.
    pub(crate) fn check(&self, text: &str) -> Result<String, String> {
        (self.field.read)(&mut Settings::empty(), text)?;
        Ok(text.to_owned())
    }

    /// True if the value may hold a password.
    pub(crate) fn holds_secret(&self) -> bool {
        self.key == DATABASE
    }

    pub(crate) fn in_file(&self) -> SettingKey {
        if self.field.is_list { SettingKey::list(self.key) } else { SettingKey::one(self.key) }
    }
}
