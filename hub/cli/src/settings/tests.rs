use clap::{Args, Command, FromArgMatches};
use seawall_hub_server::{WRITE_TIMEOUT_USUAL, liveness, responses};

use super::values::{metrics, response_memory, retention_time, watchdog, write_timeout};
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

fn options(words: &[&str]) -> SettingOverrides {
    let command = SettingOverrides::augment_args(Command::new("serve").no_binary_name(true));
    SettingOverrides::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

/// HUB-9: everything in a file counts; the command line takes precedence; what is not set has its default.
#[test]
fn hub_9_the_command_line_takes_precedence_over_the_file() {
    let in_file = read("seawall.toml", WHOLE).unwrap();
    let settings = Settings::of(&[&in_file]);
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

    let nearer =
        options(&["--log-level", "debug", "--allow-egress", "192.168.0.0/16", "--otlp-endpoint", ""]);
    let settings = Settings::of(&[&nearer, &in_file]);
    assert_eq!((settings.log_level, settings.listen.port()), (Level::DEBUG, 9000));
    assert_eq!(settings.allow_egress, ["192.168.0.0/16"]);
    assert_eq!(settings.otlp_endpoint, None);
}

/// HUB-9: the defaults in the table are those of the server, and every default and word of the table can be read.
#[test]
fn hub_9_the_defaults_of_the_table_are_those_of_the_server() {
    let defaults = Settings::of(&[]);
    assert_eq!((defaults.listen.port(), defaults.log_level), (8480, Level::INFO));
    assert_eq!((defaults.log_format, defaults.metrics), (Format::default(), MetricsAccess::default()));
    assert_eq!((defaults.watchdog, defaults.write_timeout), (liveness::USUAL, WRITE_TIMEOUT_USUAL));
    assert_eq!(
        (defaults.response_memory, defaults.retention),
        (responses::BYTES_USUAL, Retention::default())
    );
    for row in TABLE {
        for text in row.words().into_iter().chain(row.default_value()) {
            assert_eq!(row.check(text).as_deref(), Ok(text), "{}", row.key);
        }
    }
}

/// HUB-9: values out of their range are refused; data is stored for at least a day, so that duplicates are recognised.
#[test]
fn hub_9_values_out_of_range_are_refused() {
    assert_eq!((response_memory("1GiB"), response_memory("32 MiB")), (Ok(1 << 30), Ok(32 << 20)));
    for wrong in ["", "64", "64MB", "MiB", "-1MiB", "31MiB"] {
        assert!(response_memory(wrong).is_err(), "{wrong}");
    }
    assert!(write_timeout("999ms").is_err() && metrics("yes").is_err());
    assert_eq!(watchdog("0s"), Ok(Duration::ZERO));
    assert!(watchdog("10ms").is_err() && watchdog("soon").is_err());
    assert_eq!(retention_time("1d"), Ok(Some(Duration::from_secs(86_400))));
    assert_eq!(retention_time("forever"), Ok(None));
    for wrong in ["23h", "0s", "7", "never", ""] {
        assert!(retention_time(wrong).is_err(), "{wrong}");
    }
}

/// HUB-9, API-2: every mistake is reported at once, with its place, its key and the nearest key.
#[test]
fn api_2_every_mistake_in_a_file_has_its_place() {
    let text = "listen = \"nowhere\"\nport = 1\nallow_egress = [\"10.0.0.0/8\", \"ten\"]\nwatchdog = 60\n\
                [log]\nlevle = \"info\"\n[keep]\n  delivered = \"1h\"\n";
    let error = read("seawall.toml", text).unwrap_err();
    let places: Vec<_> = error.problems().iter().map(|problem| (problem.line(), problem.column())).collect();
    let expected = [(1, 10), (2, 1), (3, 31), (4, 12), (6, 1), (8, 15)];
    assert_eq!(places, expected.map(|(line, column)| (Some(line), Some(column))), "{error}");
    let told = error.to_string();
    assert!(told.contains("port: unknown setting; known: `listen`, `data_dir`"), "{told}");
    assert!(told.contains("watchdog: a duration needs a unit; write `60s` or `60ms`"), "{told}");
    assert!(told.contains("log.levle: unknown setting; did you mean `log.level`?"), "{told}");
    assert_eq!(read("seawall.toml", "listen = \n").unwrap_err().problems()[0].line(), Some(1));
}

/// HUB-9: what needs a restart keeps its value until then; the rest of a changed file takes effect.
#[test]
fn hub_9_settings_that_need_a_restart_keep_their_values() {
    let (before, mut next) = (Settings::of(&[]), Settings::of(&[&read("seawall.toml", WHOLE).unwrap()]));
    let at_once =
        ["public_url", "allow_egress", "log.level", "keep.delivered", "keep.discarded", "keep.audit"];
    assert_eq!(before.changes(&next, Effect::Reload), at_once);
    let at_restart =
        ["listen", "data_dir", "log.format", "watchdog", "response_memory", "write_timeout", "metrics"];
    assert_eq!(before.changes(&next, Effect::Restart), at_restart);
    next.keep_until_restart(&before);
    assert_eq!(before.changes(&next, Effect::Restart), [""; 0]);
    assert_eq!((next.listen, next.log_level), (before.listen, Level::WARN));
}

/// HUB-9: the page of all settings is the table. `cargo xtask reference` writes it.
#[test]
fn hub_9_the_page_of_settings_is_the_table() {
    let mut rows = String::new();
    for row in TABLE {
        let default = match (row.default_value(), row.default) {
            (Some(value), _) => format!("`{value}`"),
            (None, "") => "—".into(),
            (None, words) => words.trim_matches(['(', ')']).to_owned(),
        };
        let variable = if row.variable.is_empty() { "—".into() } else { format!("`{}`", row.variable) };
        let effect = match row.effect {
            Effect::Reload => "at once",
            Effect::Restart => "at restart",
        };
        rows.push_str(&format!(
            "| `{}` | `--{}` | {variable} | {default} | {effect} | {} |\n",
            row.key, row.option, row.doc
        ));
    }
    let page = format!(
        "# Settings of the hub\n\nMade by `cargo xtask reference` from the table in `hub/cli/src/settings/table.rs`; a test fails \
         when it is stale. The command line takes precedence over the environment, and the environment over the file \
         (`seawall serve --config seawall.toml`). How a file looks and when it is read again: \
         [operations](operations.md#settings).\n\n\
         | key in the file | option | variable | default | a change takes effect | meaning |\n|---|---|---|---|---|---|\n{rows}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "run `cargo xtask reference`");
}
