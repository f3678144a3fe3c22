//! The settings of the hub, from the command line, the environment and a file, in this order of precedence.
//!
//! A setting is one row of [`TABLE`]: its option, its variable and its key in the file, its unit, its default and its
//! documentation. The help, the reader of the file, live reload and `docs/settings.md` come from these rows.

mod args;
mod table;
mod values;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use seawall::config::{self, SettingKey, read_settings};
use seawall_hub_server::log::Format;
use seawall_hub_server::retention::Retention;
use seawall_hub_server::{DatabaseUrl, MetricsAccess};
use tracing::Level;

pub(crate) use self::args::SettingOverrides;
pub(crate) use self::table::{Effect, SettingRow, TABLE};
pub(crate) use self::values::level;

/// The effective settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    /// The data directory; `None` means the platform's default.
    pub(crate) data_dir: Option<PathBuf>,
    /// The database; `None` means SQLite in the data directory.
    pub(crate) database: Option<DatabaseUrl>,
    pub(crate) database_password_file: Option<PathBuf>,
    /// The public URL; `None` means the listen address.
    pub(crate) public_url: Option<String>,
    pub(crate) allow_egress: Vec<String>,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) log_format: Format,
    pub(crate) log_level: Level,
    pub(crate) watchdog: Duration,
    /// The maximum memory of responses that clients have not read yet, in bytes.
    pub(crate) response_memory: u64,
    pub(crate) write_timeout: Duration,
    pub(crate) metrics: MetricsAccess,
    pub(crate) retention: Retention,
}

impl Settings {
    /// The settings that these layers give, the first one with the highest precedence, over the defaults.
    pub(crate) fn of(layers: &[&SettingOverrides]) -> Settings {
        let mut settings = Settings::empty();
        for row in TABLE {
            let default = row.default_value().map(str::to_owned);
            let given = layers.iter().find_map(|layer| layer.texts(row.key));
            for text in given.unwrap_or(default.as_slice()) {
                (row.field.read)(&mut settings, text).expect("a text is checked before it is in a layer");
            }
        }
        settings
    }

    /// What the rows of the table fill in.
    fn empty() -> Settings {
        Settings {
            listen: SocketAddr::from(([0, 0, 0, 0], 0)),
            data_dir: None,
            database: None,
            database_password_file: None,
            public_url: None,
            allow_egress: Vec::new(),
            otlp_endpoint: None,
            log_format: Format::default(),
            log_level: Level::INFO,
            watchdog: Duration::ZERO,
            response_memory: 0,
            write_timeout: Duration::ZERO,
            metrics: MetricsAccess::default(),
            retention: Retention::default(),
        }
    }

    /// The keys of the settings with this effect that differ.
    pub(crate) fn changes(&self, next: &Settings, effect: Effect) -> Vec<&'static str> {
        let rows = TABLE.iter().filter(|row| row.effect == effect && (row.field.differs)(self, next));
        rows.map(|row| row.key).collect()
    }

    /// Takes what can't change while the hub runs from the settings that it was started with.
    pub(crate) fn keep_until_restart(&mut self, started: &Settings) {
        for row in TABLE.iter().filter(|row| row.effect == Effect::Restart) {
            (row.field.copy)(started, self);
        }
    }
}

/// Reads the settings file; no settings if there is no file.
pub(crate) fn file(path: Option<&Path>) -> anyhow::Result<SettingOverrides> {
    let Some(path) = path else { return Ok(SettingOverrides::default()) };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read `{name}`"))?;
    match read(&name, &text) {
        Ok(overrides) => Ok(overrides),
        Err(error) => {
            let problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
            bail!("{}", problems.join("; "))
        }
    }
}

fn read(name: &str, text: &str) -> Result<SettingOverrides, config::ConfigError> {
    let keys: Vec<SettingKey> = TABLE.iter().map(SettingRow::in_file).collect();
    let mut overrides = SettingOverrides::default();
    read_settings(name, text, config::Format::Toml, &keys, |key, text| {
        let row = TABLE.iter().find(|row| row.key == key).expect("the keys come from the table");
        overrides.add(key, row.check(text)?);
        Ok(())
    })?;
    Ok(overrides)
}
