//! `cargo xtask api`: a running hub held against its own description by schemathesis.
//!
//! First the description itself is judged by tools that are not ours: `xtask/openapi_check.py` asks openapi-spec-validator whether
//! it is valid, and jsonschema whether each example and default fits its schema.
//!
//! Then schemathesis makes requests of `/openapi.json`, those that fit it and those that don't, and looks whether the hub answers as the
//! description says: no server error, no status, header or field that is not described, nothing accepted that should not be.
//! Python has to be there; the tools are installed below `target/`, once.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::metadata::Workspace;
use crate::run::{self, Step, Usage};

/// The one that the settings were written for: others find other things, and are to be looked at before they are used.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// The judge of the description. It brings jsonschema, which schemathesis uses as well.
const VALIDATOR: &str = "openapi-spec-validator==0.9.0";
/// So many requests for each operation and phase, made of the same seed each time.
const EXAMPLES: &str = "20";
const SEED: &str = "7";
const KEY: &str = "the-admin-key-of-cargo-xtask-api";
/// These end keys, also the one that all other requests need; so they are for the end.
const ENDS_KEYS: &str = r"^(DELETE|POST) /api/v1/registry/keys/\{name\}";

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    Usage::expect_none("api", args)?;
    let target = PathBuf::from(Workspace::load()?.target_dir);
    let began = run::now();
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let tool = install(&target, &python)?;
    judge(&tool, &target.join("api"))?;
    // The build for tests, because it finds out about codes of errors that are in no list.
    let build = Step::cargo("build", "build -p seawall-hub-cli --bin seawall");
    println!("==> {}", build.line());
    build.run()?;
    let folder = target.join("api").join("data");
    let _ = fs::remove_dir_all(&folder);
    let hub = Hub::start(&target.join("debug").join("seawall"), &folder)?;
    hub.seed()?;
    for which in ["--exclude-name-regex", "--include-name-regex"] {
        check(&tool, &hub, which)?;
    }
    println!("==> the hub answers as it is described; {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Where schemathesis is, after it was installed if it was not.
fn install(target: &Path, python: &str) -> anyhow::Result<PathBuf> {
    let venv = target.join("api").join(format!("venv-{SCHEMATHESIS}-{VALIDATOR}").replace("==", "-"));
    let tool = venv.join("bin").join("schemathesis");
    if tool.exists() {
        return Ok(tool);
    }
    println!("==> installing {SCHEMATHESIS} and {VALIDATOR} into {} (once; a minute or so)", venv.display());
    let step = |command: &mut Command, what: &str| -> anyhow::Result<()> {
        let status = command.stdout(Stdio::null()).status().with_context(|| {
            format!("{what}: `{python}` could not be started; Python 3.10 or newer is needed, with its module `venv`, and PYTHON says where it is")
        })?;
        ensure!(
            status.success(),
            "{what} failed ({status}); Python 3.10 or newer is needed, with its module `venv`, and a way to PyPI"
        );
        Ok(())
    };
    step(Command::new(python).args(["-m", "venv", "--clear"]).arg(&venv), "making a virtual environment")?;
    let mut pip = Command::new(venv.join("bin").join("python"));
    step(
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS, VALIDATOR]),
        "installing schemathesis and openapi-spec-validator",
    )?;
    ensure!(tool.exists(), "`{}` is not there, although it was installed", tool.display());
    Ok(tool)
}

/// Has the description judged, and before that two broken copies, which must be rejected.
fn judge(tool: &Path, folder: &Path) -> anyhow::Result<()> {
    let document = run::root().join("docs").join("openapi.json");
    let text = fs::read_to_string(&document)?;
    for (name, copy) in broken_copies(&text)? {
        let file = folder.join(format!("openapi-{name}.json"));
        fs::write(&file, copy)?;
        let found = openapi_check(tool, &file)?;
        ensure!(found.status.code() == Some(1), "the judge accepts a copy with {name}: {}", words(&found));
    }
    let found = openapi_check(tool, &document)?;
    ensure!(found.status.success(), "the description is wrong: {}", words(&found));
    print!("==> {}", words(&found));
    Ok(())
}

/// The description with one mistake each, by the name of the mistake.
fn broken_copies(text: &str) -> anyhow::Result<[(&'static str, String); 2]> {
    let mut example: Value = serde_json::from_str(text)?;
    let mut structure = example.clone();
    let dry_run = example.pointer_mut("/components/schemas/BulkInput/examples/0/dryRun");
    *dry_run.context("`BulkInput` has an example with `dryRun`")? = "yes".into();
    let title = structure["info"].as_object_mut().and_then(|info| info.remove("title"));
    ensure!(title.is_some(), "the description has a title");
    Ok([("a-wrong-example", example.to_string()), ("no-title", structure.to_string())])
}

fn openapi_check(tool: &Path, document: &Path) -> anyhow::Result<Output> {
    let script = run::root().join("xtask").join("openapi_check.py");
    let mut command = Command::new(tool.with_file_name("python"));
    command.arg(script).arg(document).output().context("the judge of the description could not be started")
}

fn words(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|words| String::from_utf8_lossy(words).into_owned()).concat()
}

fn check(tool: &Path, hub: &Hub, which: &str) -> anyhow::Result<()> {
    let mut command = Command::new(tool);
    command
        .arg("--config-file")
        .arg(run::root().join("xtask").join("schemathesis.toml"))
        .args(["run", &format!("http://{}/openapi.json", hub.address), which, ENDS_KEYS])
        .args(["--header", &format!("Authorization: Bearer {KEY}"), "--checks", "all"])
        .args(["--seed", SEED, "--max-examples", EXAMPLES, "--request-timeout", "30", "--no-color"])
        .current_dir(hub.folder.join(".."));
    println!("==> schemathesis {which} '{ENDS_KEYS}' with seed {SEED}");
    let status = command.status().context("schemathesis could not be started")?;
    ensure!(
        status.success(),
        "schemathesis found something ({status}); what the hub has said is in {}",
        hub.log().display()
    );
    Ok(())
}

/// A hub that runs, until this is dropped.
struct Hub {
    process: Child,
    address: String,
    folder: PathBuf,
}

impl Hub {
    fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut process = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data-dir"])
            .arg(folder)
            .env("SEAWALL_ADMIN_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("hub.log"))?)
            .spawn()
            .with_context(|| format!("could not start `{}`", binary.display()))?;
        let said = process.stdout.take().context("the hub's words can be read")?;
        let mut hub = Hub { process, address: String::new(), folder: folder.to_owned() };
        for line in BufReader::new(said).lines() {
            let line = line?;
            if let Some((_, rest)) = line.split_once("listening on http://") {
                rest.split(',').next().unwrap_or_default().clone_into(&mut hub.address);
                return Ok(hub);
            }
        }
        bail!("the hub did not start; what it has said is in {}", hub.log().display());
    }

    fn log(&self) -> PathBuf {
        self.folder.join("hub.log")
    }

    /// One of each, so that requests find something.
    fn seed(&self) -> anyhow::Result<()> {
        for (path, body) in [
            ("registry/services", r#"{"name":"billing","address":"http://127.0.0.1:1"}"#),
            ("registry/rules", r#"{"name":"billing","eventType":"order.*","service":"billing"}"#),
            (
                "registry/sources",
                r#"{"name":"billing","eventType":"a.b","verify":{"type":"bearer","secrets":["a-secret-that-nobody-guesses"]}}"#,
            ),
            ("registry/keys", r#"{"name":"billing","scopes":["read"]}"#),
            ("bridge/events", r#"{"id":"evt-0","type":"order.created"}"#),
        ] {
            self.post(path, body).with_context(|| format!("could not post to `{path}`"))?;
        }
        Ok(())
    }

    fn post(&self, path: &str, body: &str) -> anyhow::Result<()> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            stream,
            "POST /api/v1/{path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        Ok(())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_refused_before_anything_runs() {
        let refusal = run(&["--fast".to_owned()]).expect_err("the arguments are wrong");
        assert_eq!(refusal.to_string(), "`api` does not know `--fast`");
    }

    /// Each copy that the judge has to reject differs from the description.
    #[test]
    fn the_broken_copies_are_broken() {
        let text = fs::read_to_string(run::root().join("docs").join("openapi.json")).expect("it is there");
        let whole: Value = serde_json::from_str(&text).expect("it is JSON");
        for (name, copy) in broken_copies(&text).expect("it can be broken") {
            assert_ne!(serde_json::from_str::<Value>(&copy).expect("it is JSON"), whole, "{name}");
        }
    }

    /// The check never passes because its tool is not there.
    #[test]
    fn without_python_it_fails_and_says_what_is_needed() {
        let folder = env::temp_dir().join("seawall-xtask-api-without-python");
        let refusal = install(&folder, "/nowhere/python3").expect_err("there is no Python");
        assert!(format!("{refusal:#}").contains("Python 3.10 or newer is needed"), "{refusal:#}");
    }
}
