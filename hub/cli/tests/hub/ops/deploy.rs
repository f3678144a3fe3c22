//! The files in `deploy/` say what the binary understands.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{Hub, SEAWALL};

const SYSTEMD: &str = include_str!("../../../../../deploy/seawall.service");
const KUBERNETES: &str = include_str!("../../../../../deploy/kubernetes.yaml");
const KUBERNETES_POSTGRES: &str = include_str!("../../../../../deploy/kubernetes-postgres.yaml");
const COMPOSE: &str = include_str!("../../../../../deploy/compose.yaml");
const COMPOSE_POSTGRES: &str = include_str!("../../../../../deploy/compose-postgres.yaml");
const CONTAINER: &str = include_str!("../../../../../deploy/Containerfile");

/// What stands behind this, to the end of its line, wherever it is.
fn behind<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| Some(line.split_once(before)?.1.trim())).collect()
}

fn only<'t>(text: &'t str, before: &str) -> &'t str {
    let found = behind(text, before);
    assert_eq!(found.len(), 1, "{before}: {found:?}");
    found[0]
}

/// The items of a list on one line: `["serve", "--config", "x"]`.
fn items(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap()
}

/// HUB-13: every command line that is in them is one that the binary takes, and every variable is one that it reads.
#[test]
fn hub_13_command_lines_and_variables_are_known() {
    let exec = only(SYSTEMD, "ExecStart=/usr/local/bin/seawall ");
    let lines = [
        exec.split(' ').map(ToOwned::to_owned).collect(),
        items(only(KUBERNETES, "args: ")),
        items(only(KUBERNETES_POSTGRES, "args: ")),
        items(behind(COMPOSE, "command: ")[0]),
        items(only(COMPOSE_POSTGRES, "command: ")),
        items(only(CONTAINER, "CMD ")),
    ];
    for args in lines {
        // What is unknown is refused before anybody is helped.
        let output = Command::new(SEAWALL).args(&args).arg("--help").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let help = Command::new(SEAWALL).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for text in [SYSTEMD, KUBERNETES, KUBERNETES_POSTGRES, COMPOSE, COMPOSE_POSTGRES, CONTAINER] {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("SEAWALL_") && *word != "SEAWALL_ADMIN_KEY") {
            let is_read =
                [format!("[env: {name}="), format!("[env: {name}]")].iter().any(|env| help.contains(env));
            assert!(is_read, "nothing reads {name}");
        }
    }
}

/// HUB-13: a hub runs by the settings that Kubernetes gives it, answers its probes, and listens where everybody looks for it.
#[test]
fn hub_13_settings_probes_and_ports_fit() {
    let folder = TempDir::new().unwrap();
    let settings = KUBERNETES.split_once("seawall.toml: |\n").unwrap().1.split_once("\n---").unwrap().0;
    let config = folder.path().join("seawall.toml");
    fs::write(&config, settings).unwrap();
    let mut command = Hub::command(SEAWALL.as_ref(), &folder.path().join("data"));
    let hub = Hub::ready(command.arg("--config").arg(&config).spawn().unwrap()).unwrap();
    let probes = behind(KUBERNETES, "httpGet: {path: ");
    assert_eq!(probes.len(), 3);
    for probe in probes {
        let path = probe.strip_suffix(", port: http}").unwrap();
        assert_eq!(hub.call("GET", path, &[], "").status, 200, "{path}");
    }
    let help = Command::new(SEAWALL).args(["serve", "--help"]).output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("[default: 127.0.0.1:8480]"));
    assert_eq!(only(CONTAINER, "EXPOSE "), "8480");
    assert!(CONTAINER.contains("SEAWALL_LISTEN=0.0.0.0:8480"));
    assert!(
        KUBERNETES.contains("containerPort: 8480") && KUBERNETES.contains("port: 8480, targetPort: http")
    );
    assert!(COMPOSE.contains("127.0.0.1:8480:8480"));
    // What the image says has the last word, so the file need not say it.
    let said = CONTAINER.split_once("ENV ").unwrap().1.lines().next().unwrap();
    for (name, setting) in [
        ("SEAWALL_LOG_FORMAT", "format ="),
        ("SEAWALL_LISTEN", "listen ="),
        ("SEAWALL_DATA_DIR", "data_dir ="),
    ] {
        assert!(said.contains(name) && !settings.contains(setting), "{setting} would count for nothing");
    }
}

/// HUB-13, HUB-15: the settings that Kubernetes gives to a hub on PostgreSQL name its database, and no password.
#[test]
fn hub_13_the_settings_of_a_hub_on_postgres_are_read() {
    let folder = TempDir::new().unwrap();
    let settings =
        KUBERNETES_POSTGRES.split_once("seawall.toml: |\n").unwrap().1.split_once("\n---").unwrap().0;
    let config = folder.path().join("seawall.toml");
    // Nobody is there.
    fs::write(&config, settings.replace("db.example:5432", "127.0.0.1:1")).unwrap();
    let mut command = Hub::command(SEAWALL.as_ref(), &folder.path().join("data"));
    let output = command.env_remove("SEAWALL_DATABASE").arg("--config").arg(&config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("can't connect to the database `127.0.0.1:1/seawall` (over TLS)"), "{said}");
    for text in [KUBERNETES_POSTGRES, COMPOSE_POSTGRES] {
        assert!(behind(text, "postgres://").iter().all(|url| url.starts_with("seawall@")));
    }
}

/// HUB-13: whoever ends a hub waits for longer than it takes to end: 25 s at most, and in Kubernetes a sleep before that.
#[test]
fn hub_13_there_is_time_for_an_orderly_end() {
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().unwrap();
    assert!(seconds(only(SYSTEMD, "TimeoutStopSec=")) > 25);
    assert!(seconds(only(COMPOSE, "stop_grace_period: ")) > 25);
    let sleep = only(KUBERNETES, "sleep: {seconds: ").trim_end_matches('}');
    assert!(seconds(only(KUBERNETES, "terminationGracePeriodSeconds: ")) > 25 + seconds(sleep));
}
