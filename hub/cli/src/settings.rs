//! What can be said about the hub: on the command line, in the environment, and in a file, in this order.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use seawall_hub_server::log::Format;
use seawall_hub_server::retention::Retention;
use seawall_hub_server::{MetricsAccess, WRITE_TIMEOUT_USUAL, is_range, liveness, responses};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tracing::Level;

use crate::keep::{RetentionArgs, kept};

/// Settings from one origin: the command line, the environment or a file.
#[derive(Args, Clone, Default)]
pub(crate) struct SettingOverrides {
    /// Address to listen on. The hub speaks plain HTTP: beyond this machine, put a TLS proxy in front of it.
    /// [default: 127.0.0.1:8480]
    #[arg(long, env = "SEAWALL_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    /// Data directory. [default: `seawall` in the platform's data directory]
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Public URL of the hub, such as `https://seawall.example`, used for links in alerts. [default: the listen address]
    #[arg(long, env = "SEAWALL_PUBLIC_URL", value_name = "URL", value_parser = url)]
    pub(crate) public_url: Option<String>,

    /// Private address range that outgoing requests may reach, such as `10.1.0.0/16`; repeatable.
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_egress: Option<Vec<String>>,

    /// Collector for traces over OTLP/HTTP, such as `http://127.0.0.1:4318`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,

    /// Log format on stderr: text or json. [default: text]
    #[arg(long, env = "SEAWALL_LOG_FORMAT", value_name = "text|json", value_parser = format)]
    pub(crate) log_format: Option<Format>,

    /// Log level. error: needs attention; warn: also what is retried; info; debug: also every event.
    /// [default: info]
    #[arg(long, env = "SEAWALL_LOG_LEVEL", value_name = "error|warn|info|debug", value_parser = level)]
    pub(crate) log_level: Option<Level>,

    /// Time for which a thread may be stuck before the process aborts, so that its supervisor restarts it: a duration such as
    /// `60s`, at least one second, or `0s` to turn the watchdog off. [default: 60s]
    #[arg(long, env = "SEAWALL_WATCHDOG", value_name = "TIME", value_parser = watchdog)]
    pub(crate) watchdog: Option<Duration>,

    /// Maximum memory for responses that clients have not read yet, such as `64MiB`; at least 32MiB. While it is used up, large
    /// requests are rejected with 503. [default: 256MiB]
    #[arg(long, env = "SEAWALL_RESPONSE_MEMORY", value_name = "SIZE", value_parser = memory)]
    pub(crate) response_memory: Option<u64>,

    /// Write timeout: a client that reads nothing of its response for this long is disconnected; at least one second.
    /// [default: 30s]
    #[arg(long, env = "SEAWALL_WRITE_TIMEOUT", value_name = "TIME", value_parser = write_timeout)]
    pub(crate) write_timeout: Option<Duration>,

    /// Access to metrics. key: a key with the scope `read`; open: everyone who can reach the port. [default: key]
    #[arg(long, env = "SEAWALL_METRICS", value_name = "key|open", value_parser = metrics)]
    pub(crate) metrics: Option<MetricsAccess>,

    #[command(flatten)]
    pub(crate) keep: RetentionArgs,
}

/// The effective settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    /// The data directory; `None` means the platform's default.
    pub(crate) data_dir: Option<PathBuf>,
    /// The public URL; `None` means the listen address.
    pub(crate) public_url: Option<String>,
    pub(crate) allow_egress: Vec<String>,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) log_format: Format,
    pub(crate) log_level: Level,
    pub(crate) watchdog: Duration,
    pub(crate) response_memory: u64,
    pub(crate) write_timeout: Duration,
    pub(crate) metrics: MetricsAccess,
    pub(crate) retention: Retention,
}

impl SettingOverrides {
    /// The effective settings: these overrides, then the file, then the defaults.
    pub(crate) fn over(&self, file: &SettingOverrides) -> Settings {
        let usual = SocketAddr::from(([127, 0, 0, 1], 8480));
        Settings {
            listen: self.listen.or(file.listen).unwrap_or(usual),
            data_dir: self.data_dir.clone().or_else(|| file.data_dir.clone()),
            public_url: self.public_url.clone().or_else(|| file.public_url.clone()),
            allow_egress: self.allow_egress.clone().or_else(|| file.allow_egress.clone()).unwrap_or_default(),
            // One that is empty is none: so says whoever has named the variable.
            otlp_endpoint: [self, file]
                .into_iter()
                .find_map(|said| said.otlp_endpoint.clone().filter(|endpoint| !endpoint.trim().is_empty())),
            log_format: self.log_format.or(file.log_format).unwrap_or_default(),
            log_level: self.log_level.or(file.log_level).unwrap_or(Level::INFO),
            watchdog: self.watchdog.or(file.watchdog).unwrap_or(liveness::USUAL),
            response_memory: self.response_memory.or(file.response_memory).unwrap_or(responses::BYTES_USUAL),
            write_timeout: self.write_timeout.or(file.write_timeout).unwrap_or(WRITE_TIMEOUT_USUAL),
            metrics: self.metrics.or(file.metrics).unwrap_or_default(),
            retention: self.keep.over(file.keep).retention(),
        }
    }
}

/// Reads the settings file; no settings if there is no file.
pub(crate) fn file(path: Option<&Path>) -> anyhow::Result<SettingOverrides> {
    let Some(path) = path else { return Ok(SettingOverrides::default()) };
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => bail!("can't read `{shown}`: {error}"),
    };
    match read(&text) {
        Ok(said) => Ok(said),
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(|problem| format!("{shown}:{problem}")).collect();
            bail!("{}", problems.join("; "))
        }
    }
}

/// A problem in a settings file, with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SettingError {
    line: usize,
    column: usize,
    reason: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.reason)
    }
}

/// Reads a settings file and reports every problem in it.
fn read(text: &str) -> Result<SettingOverrides, Vec<SettingError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, problems: Vec::new() };
    for error in errors {
        reader.wrong(error.span().map_or(0, |span| span.start), error.message().to_owned());
    }
    let mut said = SettingOverrides::default();
    if reader.problems.is_empty() {
        reader.root(table.get_ref(), &mut said);
    }
    reader.problems.sort_by_key(|problem| (problem.line, problem.column));
    if reader.problems.is_empty() { Ok(said) } else { Err(reader.problems) }
}

struct Reader<'t> {
    text: &'t str,
    problems: Vec<SettingError>,
}

type TomlValue<'v> = Spanned<DeValue<'v>>;

impl Reader<'_> {
    fn root(&mut self, table: &DeTable<'_>, said: &mut SettingOverrides) {
        for (key, value) in table {
            match &**key.get_ref() {
                "listen" => said.listen = self.parsed(value, SocketAddr::from_str),
                "data_dir" => said.data_dir = self.parsed(value, PathBuf::from_str),
                "public_url" => said.public_url = self.parsed(value, url),
                "allow_egress" => said.allow_egress = self.list(value, range),
                "otlp_endpoint" => said.otlp_endpoint = self.parsed(value, String::from_str),
                "watchdog" => said.watchdog = self.parsed(value, watchdog),
                "response_memory" => said.response_memory = self.parsed(value, memory),
                "write_timeout" => said.write_timeout = self.parsed(value, write_timeout),
                "metrics" => said.metrics = self.parsed(value, metrics),
                "log" => self.group(value, |reader, key, value| match key {
                    "format" => set(&mut said.log_format, reader.parsed(value, format)),
                    "level" => set(&mut said.log_level, reader.parsed(value, level)),
                    _ => Err("format, level"),
                }),
                "keep" => self.group(value, |reader, key, value| match key {
                    "delivered" => set(&mut said.keep.keep_delivered, reader.parsed(value, kept)),
                    "discarded" => set(&mut said.keep.keep_discarded, reader.parsed(value, kept)),
                    "audit" => set(&mut said.keep.keep_audit, reader.parsed(value, kept)),
                    _ => Err("delivered, discarded, audit"),
                }),
                other => {
                    let reason = format!(
                        "unknown setting `{other}`. Known: listen, data_dir, public_url, allow_egress, otlp_endpoint, watchdog, \
                         response_memory, write_timeout, metrics, log.format, log.level, \
                         keep.delivered, keep.discarded, keep.audit"
                    );
                    self.wrong(key.span().start, reason);
                }
            }
        }
    }

    /// Reads a table. For an unknown key, `take` returns the known ones.
    fn group(
        &mut self,
        value: &TomlValue<'_>,
        mut take: impl FnMut(&mut Self, &str, &TomlValue<'_>) -> Result<(), &'static str>,
    ) {
        let DeValue::Table(table) = value.get_ref() else {
            return self.wrong(value.span().start, "must be a table".into());
        };
        for (key, value) in table {
            if let Err(known) = take(self, key.get_ref(), value) {
                self.wrong(key.span().start, format!("unknown setting `{}`. Known: {known}", key.get_ref()));
            }
        }
    }

    fn parsed<T, E: fmt::Display>(
        &mut self,
        value: &TomlValue<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let DeValue::String(text) = value.get_ref() else {
            self.wrong(value.span().start, "must be a string in quotes".into());
            return None;
        };
        parse(text).map_err(|reason| self.wrong(value.span().start, format!("`{text}`: {reason}"))).ok()
    }

    fn list(
        &mut self,
        value: &TomlValue<'_>,
        parse: impl Fn(&str) -> Result<String, String>,
    ) -> Option<Vec<String>> {
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(value.span().start, "must be a list of strings: [\"…\"]".into());
            return None;
        };
        Some(items.iter().filter_map(|item| self.parsed(item, &parse)).collect())
    }

    fn wrong(&mut self, at: usize, reason: String) {
        let before = &self.text[..at.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        self.problems.push(SettingError { line, column, reason });
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), &'static str> {
    *place = value;
    Ok(())
}

fn url(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte))
    };
    if rest.is_some_and(fits) {
        Ok(text.to_owned())
    } else {
        Err("must start with http:// or https:// and have no query")
    }
}

fn range(text: &str) -> Result<String, String> {
    is_range(text).map(|()| text.to_owned())
}

fn format(text: &str) -> Result<Format, &'static str> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("must be text or json"),
    }
}

pub(crate) fn level(text: &str) -> Result<Level, &'static str> {
    match text {
        "error" => Ok(Level::ERROR),
        "warn" => Ok(Level::WARN),
        "info" => Ok(Level::INFO),
        "debug" => Ok(Level::DEBUG),
        _ => Err("must be error, warn, info or debug"),
    }
}

/// A shorter limit would abort a process that is only busy.
const WATCHDOG_MIN: Duration = Duration::from_secs(1);
/// A shorter timeout would disconnect clients that are only slow.
const WRITE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

fn watchdog(text: &str) -> Result<Duration, String> {
    let time = seawall::config::duration(text)?;
    if !time.is_zero() && time < WATCHDOG_MIN {
        return Err("must be at least one second, or `0s` to turn the watchdog off; a shorter limit would abort a busy process".into());
    }
    Ok(time)
}

/// Parses a size such as `64MiB`: a number with a binary unit.
fn memory(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 2] = [("MiB", 1024 * 1024), ("GiB", 1024 * 1024 * 1024)];
    let unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes)));
    let Some((Ok(count), unit)) = unit.map(|(number, unit)| (number.trim().parse::<u64>(), unit)) else {
        return Err("must be a size such as `64MiB` or `1GiB`".into());
    };
    let bytes = count.saturating_mul(*unit);
    if bytes < responses::BYTES_MIN {
        return Err("must be at least 32MiB, enough for one large response and the next".into());
    }
    Ok(bytes)
}

fn write_timeout(text: &str) -> Result<Duration, String> {
    let time = seawall::config::duration(text)?;
    if time < WRITE_TIMEOUT_MIN {
        return Err("must be at least one second; a shorter timeout would disconnect slow clients".into());
    }
    Ok(time)
}

fn metrics(text: &str) -> Result<MetricsAccess, &'static str> {
    match text {
        "key" => Ok(MetricsAccess::Key),
        "open" => Ok(MetricsAccess::Open),
        _ => Err("must be key or open"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
listen = "127.0.0.1:9000"
data_dir = "/var/lib/seawall"
public_url = "https://seawall.example"
allow_egress = ["10.0.0.0/8", "127.0.0.0/8"]
watchdog = "90s"
response_memory = "64MiB"
write_timeout = "5s"
metrics = "open"
[log]
format = "json"
level = "warn"
[keep]
delivered = "2d"
discarded = "forever"
audit = "30d"
"#;

    /// HUB-9: everything in a file counts; what is said on the command line counts more; what nobody says has its default.
    #[test]
    fn hub_9_what_is_said_nearer_wins() {
        let in_file = read(WHOLE).map_err(|problems| format!("{problems:?}")).unwrap();
        let settings = SettingOverrides::default().over(&in_file);
        assert_eq!(settings.listen.port(), 9000);
        assert_eq!(settings.data_dir.as_deref(), Some(Path::new("/var/lib/seawall")));
        assert_eq!(settings.public_url.as_deref(), Some("https://seawall.example"));
        assert_eq!(settings.allow_egress, ["10.0.0.0/8", "127.0.0.0/8"]);
        assert_eq!((settings.log_format, settings.log_level), (Format::Json, Level::WARN));
        assert_eq!(settings.watchdog, Duration::from_secs(90));
        assert_eq!((settings.response_memory, settings.metrics), (64 << 20, MetricsAccess::Open));
        assert_eq!(settings.write_timeout, Duration::from_secs(5));
        let day = Duration::from_secs(86_400);
        let kept = Retention { delivered: Some(day * 2), discarded: None, audit: Some(day * 30) };
        assert_eq!(settings.retention, kept);
        let nearer = SettingOverrides {
            log_level: Some(Level::DEBUG),
            allow_egress: Some(vec!["192.168.0.0/16".into()]),
            ..SettingOverrides::default()
        };
        let settings = nearer.over(&in_file);
        assert_eq!((settings.log_level, settings.listen.port()), (Level::DEBUG, 9000));
        assert_eq!(settings.allow_egress, ["192.168.0.0/16"]);
        let empty = SettingOverrides { otlp_endpoint: Some(String::new()), ..SettingOverrides::default() };
        assert_eq!(empty.over(&in_file).otlp_endpoint, None);
        let usual = SettingOverrides::default().over(&SettingOverrides::default());
        assert_eq!(
            (usual.listen.port(), usual.log_level, usual.watchdog, usual.retention),
            (8480, Level::INFO, Duration::from_secs(60), Retention::default())
        );
        assert_eq!((usual.response_memory, usual.metrics), (256 << 20, MetricsAccess::Key));
        assert_eq!((memory("1GiB"), memory("32 MiB")), (Ok(1 << 30), Ok(32 << 20)));
        for wrong in ["", "64", "64MB", "MiB", "-1MiB", "31MiB"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        assert!(write_timeout("999ms").is_err() && metrics("yes").is_err());
        assert_eq!(watchdog("0s"), Ok(Duration::ZERO));
        assert!(watchdog("10ms").is_err() && watchdog("soon").is_err());
    }

    /// HUB-9, API-2: every mistake is told at once, with its place; nothing is passed over.
    #[test]
    fn api_2_every_mistake_in_a_file_has_its_place() {
        let text = "listen = \"nowhere\"\nport = 1\nallow_egress = [\"10.0.0.0/8\", \"ten\"]\n[log]\nlevel = 3\ncolour = \"red\"\n[keep]\n  delivered = \"1h\"\n";
        let Err(problems) = read(text) else { unreachable!("it is full of mistakes") };
        let places: Vec<(usize, usize)> =
            problems.iter().map(|problem| (problem.line, problem.column)).collect();
        assert_eq!(places, [(1, 10), (2, 1), (3, 31), (5, 9), (6, 1), (8, 15)], "{problems:?}");
        assert!(problems[1].to_string().contains("unknown setting `port`"));
        let Err(problems) = read("listen = \n") else { unreachable!("it is no TOML") };
        assert_eq!(problems[0].line, 1, "{problems:?}");
    }
}
