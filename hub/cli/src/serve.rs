//! `seawall serve`.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use seawall::task::shutdown::{Phase, Shutdown};
use seawall_hub_server::log::{Format, Log};
use seawall_hub_server::{Hub, http};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tracing::{Level, error, info};

/// Runs the hub.
#[derive(Args)]
pub(crate) struct Serve {
    /// Where it listens. It speaks plain HTTP: beyond this machine, put something that speaks TLS in front of it.
    #[arg(long, default_value = "127.0.0.1:8480")]
    listen: SocketAddr,

    /// Where it keeps everything. If it is not said: `seawall` in the folder for data of the system.
    #[arg(long, env = "SEAWALL_DATA_DIR")]
    data_dir: Option<PathBuf>,

    /// Private addresses that requests may go to, like `10.1.0.0/16`; may be given more than once.
    #[arg(long, value_name = "CIDR")]
    allow_egress: Vec<String>,

    /// The admin key. Without it one is made and printed at the first start.
    #[arg(long, env = "SEAWALL_ADMIN_KEY", hide_env_values = true, hide = true)]
    admin_key: Option<String>,

    /// How the log is written, to stderr: text for people, json for machines.
    #[arg(long, env = "SEAWALL_LOG_FORMAT", value_name = "text|json", default_value = "text", value_parser = format)]
    log_format: Format,

    /// How much is logged: error for what needs a person, warn for what is retried too, info, or debug for every event.
    #[arg(long, env = "SEAWALL_LOG_LEVEL", value_name = "error|warn|info|debug", default_value = "info", value_parser = level)]
    log_level: Level,
}

/// The last lines have so long to get out; whoever reads them may be gone.
const FLUSH_MAX: Duration = Duration::from_secs(2);

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let log = Log::install(self.log_format, self.log_level, std::io::stderr())?;
        let ended = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.serve()),
            Err(error) => Err(error.into()),
        };
        // Said by the log and by nobody else: writing to a stderr that nobody reads would hold up the end.
        let code = ended.unwrap_or_else(|error| {
            let cause = format!("{error:#}");
            error!(target: "seawall", cause, action = "ManualReview", "[Hub][Stop] Failed!");
            ExitCode::FAILURE
        });
        log.flush(FLUSH_MAX);
        Ok(code)
    }

    async fn serve(self) -> anyhow::Result<ExitCode> {
        let data_dir = match self.data_dir {
            Some(folder) => folder,
            None => default_data_dir().context(
                "there is no home folder to keep data in; say where with `--data-dir` or SEAWALL_DATA_DIR",
            )?,
        };
        let (version, folder) = (env!("CARGO_PKG_VERSION"), data_dir.display().to_string());
        info!(target: "seawall", version, dataDir = folder, "[Hub][Start] Start.");
        let hub = Arc::new(Hub::open(&data_dir, &self.allow_egress).await?);
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("can't listen on {}", self.listen))?;
        let address = listener.local_addr()?;
        let given = match self.admin_key {
            Some(key) if key.len() < 16 => {
                bail!("SEAWALL_ADMIN_KEY is shorter than 16 characters; a longer one can't be guessed")
            }
            given => given,
        };
        match given {
            Some(key) => hub.set_admin_key(http::key_hash(&key)).await?,
            None if hub.has_admin_key() => {}
            None => {
                let fresh = http::fresh_key();
                hub.set_admin_key(http::key_hash(&fresh)).await?;
                say(&format!("admin key: {fresh}"));
                say("it is shown this once; SEAWALL_ADMIN_KEY sets another one at any start");
            }
        }
        say(&format!("listening on http://{address}, data in `{}`", data_dir.display()));

        let (epoch, services, rules) = (hub.store().epoch(), hub.services().len(), hub.rules().len());
        info!(
            target: "seawall", version, listen = %address, dataDir = folder, epoch, services, rules,
            sources = hub.sources().len(), "[Hub][Start] Success."
        );

        let mut shutdown = Shutdown::new().delay(Duration::ZERO);
        let stopping = shutdown.token(Phase::Accepting, "api");
        let finishing = hub.clone();
        shutdown.on(Phase::InFlight, "deliveries", move || async move { finishing.finish().await });
        // A client may never end what it has begun: requests have the time of their phase, and no more.
        let (served, all_served) = oneshot::channel::<()>();
        shutdown.on(Phase::InFlight, "requests", move || async move { drop(all_served.await) });
        let api = http::api(hub.clone());
        let serving = async move {
            let graceful =
                axum::serve(listener, api).with_graceful_shutdown(async move { stopping.stopping().await });
            let _ = graceful.await;
            drop(served);
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            report = shutdown.until_signal() => Ok(report?.exit_code()),
            () = serving => unreachable!("it has no end"),
            error = hub.run() => Err(error),
            error = hub.broken() => Err(error),
        };
        hub.tell();
        match ended {
            Ok(exit_code) => {
                info!(target: "seawall", cause = "a signal", exitCode = exit_code, "[Hub][Stop] Success.");
                Ok(ExitCode::from(exit_code))
            }
            Err(error) => bail!(last_words(&error)),
        }
    }
}

/// Where programs of this system keep their data.
fn default_data_dir() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        folder("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        folder("HOME")?.join("Library/Application Support")
    } else {
        folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")))?
    };
    Some(base.join("seawall"))
}

fn format(text: &str) -> Result<Format, &'static str> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("it is text or json"),
    }
}

fn level(text: &str) -> Result<Level, &'static str> {
    match text {
        "error" => Ok(Level::ERROR),
        "warn" => Ok(Level::WARN),
        "info" => Ok(Level::INFO),
        "debug" => Ok(Level::DEBUG),
        _ => Err("it is error, warn, info or debug"),
    }
}

/// Nothing is acknowledged after it, so a start that reads what is on the disk finds all that was.
fn last_words(error: &impl Display) -> String {
    format!("{error}; it stops rather than promise what it can't keep; look at the disk, then start it again")
}

#[expect(clippy::print_stdout, reason = "it is what the program says to whoever starts it")]
fn say(line: &str) {
    println!("seawall: {line}");
}
