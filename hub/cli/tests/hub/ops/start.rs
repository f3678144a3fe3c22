//! How a hub begins: what it says, to whom, and with which key.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{refusal, seawall, well};
use crate::harness::{Hub, KEY, SEAWALL, until};

/// Where every line is one too many.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// HUB-9, HUB-10. Trap "a reader that is gone ends the program": a hub works, and a backup is made, whether or not what they say
/// can be written. An admin key that nobody has seen does not count.
#[test]
fn hub_9_a_hub_works_whether_or_not_anybody_reads_what_it_says() {
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let mut unseen = Hub::command(SEAWALL.as_ref(), &data);
    let output =
        unseen.env_remove("SEAWALL_ADMIN_KEY").stdout(full()).stderr(Stdio::piped()).output().unwrap();
    let said = refusal(&output);
    assert!(output.status.code() == Some(1) && said.contains("set SEAWALL_ADMIN_KEY instead"), "{said}");

    let mut told = Hub::command(SEAWALL.as_ref(), &data);
    let (hub, said) = Hub::listening(told.env_remove("SEAWALL_ADMIN_KEY").spawn().unwrap()).unwrap();
    let key = said[0].strip_prefix("seawall: admin key: ").unwrap();
    assert_eq!(hub.ask("GET", "/api/v1/registry/keys", key, "").0, 200, "the one that was shown");
    drop(hub);

    let mut deaf = Hub::command(SEAWALL.as_ref(), &data);
    deaf.env_remove("SEAWALL_LOG_LEVEL").stdout(full()).stderr(File::create(&log).unwrap());
    let process = deaf.spawn().unwrap();
    let lines = || fs::read_to_string(&log).unwrap();
    until("it works", || lines().contains("[Hub][Start] Success."));
    let address = lines().split_once("listen=").unwrap().1.split(' ').next().unwrap().to_owned();
    let hub = Hub { process, address };
    assert_eq!(hub.get("/actuator/health/liveness")["state"], "up");
    let mut backup = Command::new(SEAWALL);
    backup.arg("backup").arg(folder.path().join("copy")).arg("--data-dir").arg(&data);
    assert!(backup.stdout(full()).status().unwrap().success());
    well(&seawall("restore", &folder.path().join("copy"), &folder.path().join("anew"), &[]));
}

/// SEC-1: a key comes from the environment, as it is, but for the line break of the file that it was in; never from the command
/// line, where everybody sees it. One that no header can carry would lock everybody out, and is refused.
#[test]
fn sec_1_the_admin_key_is_what_somebody_meant() {
    let folder = TempDir::new().unwrap();
    let start = |key: &str| {
        let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
        command.env("SEAWALL_ADMIN_KEY", key);
        command
    };
    // An endpoint that is empty is none, as elsewhere.
    let mut with_line_break = start(&format!("{KEY}\n"));
    let process = with_line_break.env("OTEL_EXPORTER_OTLP_ENDPOINT", "").spawn().unwrap();
    let hub = Hub::ready(process).unwrap();
    hub.get("/api/v1/registry/keys");
    drop(hub);
    for (wrong, why) in [("a-key-that-is-lang-genüg", "visible ASCII"), ("   short        ", "at least 16")]
    {
        let output = start(wrong).stderr(Stdio::piped()).output().unwrap();
        assert!(refusal(&output).contains(why), "{output:?}");
    }
    let output = start(KEY).args(["--admin-key", KEY]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(refusal(&output).contains("can read command lines"), "{output:?}");
}

/// HUB-9: a hub takes as many open files as the system allows, and not only as many as it begins with.
#[cfg(target_os = "linux")]
#[test]
fn hub_9_as_many_files_as_the_system_allows() {
    let (folder, log) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let log = log.path().join("log");
    let hub = Hub::command(SEAWALL.as_ref(), folder.path());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -S -n 128 && ulimit -H -n 512 && exec \"$@\"", "sh"]).arg(hub.get_program());
    limited.args(hub.get_args()).env("SEAWALL_ADMIN_KEY", KEY).stdout(Stdio::piped());
    let hub = Hub::ready(limited.stderr(File::create(&log).unwrap()).spawn().unwrap()).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", hub.process.id())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().collect::<Vec<_>>(), ["512", "512", "files"]);
    assert!(fs::read_to_string(&log).unwrap().contains("openFilesMax=512"));
}
