//! `seawall serve`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use seawall::task::Shutdown;
use seawall_hub_server::log::Log;
use seawall_hub_server::pulse::Watchdog;
use seawall_hub_server::{Hub, Options, http};
use tokio::net::TcpListener;
use tracing::{error, info};

use crate::failure::Failure;
use crate::files;
use crate::output::say;
use crate::reload::{Reload, hangup, nothing_to_follow};
use crate::settings::{Said, Settings, file};
use crate::stand::stand;

/// Runs the hub.
#[derive(Args)]
pub(crate) struct Serve {
    /// A file with settings, in TOML. What is said here or in the environment has the last word. It is read again when it
    /// changes, and on SIGHUP.
    #[arg(long, env = "SEAWALL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    said: Said,

    /// Only so that whoever tries it is told why not.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    admin_key: Option<String>,

    /// Makes a new `secret.key` although the one that opens the secrets of services and sources is missing. They have to be
    /// registered again.
    #[arg(long)]
    new_secret_key: bool,
}

/// The last lines have so long to get out; whoever reads them may be gone.
pub(crate) const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The threads of the runtime have so long to come back.
const THREADS_MAX: Duration = Duration::from_secs(5);

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.admin_key.is_some() {
            let word =
                "there is no `--admin-key`: everybody on this machine can read what stands on a command line";
            return Ok(Failure::usage(word).and("set SEAWALL_ADMIN_KEY").tell());
        }
        let settings = match file(self.config.as_deref()) {
            Ok(file) => self.said.over(&file),
            Err(wrong) => return Ok(Failure::usage(format!("{wrong:#}")).tell()),
        };
        let log = Log::install(settings.log_format, settings.log_level, std::io::stderr())?;
        seawall_hub_server::log_panics();
        let ended = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => {
                let ended = runtime.block_on(self.serve(settings, log.clone()));
                // A thread that does not come back must not hold up the end.
                runtime.shutdown_timeout(THREADS_MAX);
                ended
            }
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

    async fn serve(self, settings: Settings, log: Log) -> anyhow::Result<ExitCode> {
        let data_dir = match &settings.data_dir {
            Some(folder) => folder.clone(),
            None => default_data_dir().context(
                "there is no home folder to keep data in; say where with `--data-dir` or SEAWALL_DATA_DIR",
            )?,
        };
        let (version, folder) = (env!("CARGO_PKG_VERSION"), data_dir.display().to_string());
        let (open_files, told) = (files::raise_limit(), hangup());
        info!(target: "seawall", version, dataDir = folder, openFilesMax = open_files, "[Hub][Start] Start.");
        let (allow_egress, new_secret_key) = (settings.allow_egress.clone(), self.new_secret_key);
        let options = Options {
            allow_egress,
            new_secret_key,
            otlp_endpoint: settings.otlp_endpoint.clone(),
            demo: None,
            response_memory: Some(settings.response_memory),
            write_timeout: Some(settings.write_timeout),
            metrics: settings.metrics,
            open_files,
        };
        let hub = Arc::new(Hub::open(&data_dir, &options).await?);
        hub.keep_for(settings.retention);
        let listener = TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("can't listen on {}", settings.listen))?;
        let address = listener.local_addr()?;
        let listens = format!("http://{address}");
        hub.set_public_url(settings.public_url.as_deref().unwrap_or(&listens));
        let mut fresh = None;
        match admin_key()? {
            Some(key) => hub.set_admin_key(http::key_hash(&key)).await?,
            None if hub.has_admin_key() => {}
            None => {
                let key = http::fresh_key();
                // Shown before it counts: a key that nobody has seen would lock everybody out.
                say(&format!("admin key: {key}"))
                    .and_then(|()| {
                        say("it is shown this once; SEAWALL_ADMIN_KEY sets another one at any start")
                    })
                    .context("the admin key can't be shown; give one as SEAWALL_ADMIN_KEY")?;
                hub.set_admin_key(http::key_hash(&key)).await?;
                fresh = Some(key);
            }
        }
        // The log says it too; a reader that is gone is no reason not to work.
        let _ = say(&format!("listening on http://{address}, data in `{}`", data_dir.display()));
        let _ = say(&match &fresh {
            Some(key) => format!("log in: http://{address}/login#{key}"),
            None => {
                format!("log in: http://{address}/login, with the admin key or one with the scope `read`")
            }
        });

        let (epoch, services, rules) = (hub.store().epoch(), hub.services().len(), hub.rules().len());
        info!(
            target: "seawall", version, listen = %address, dataDir = folder, epoch, services, rules,
            sources = hub.sources().len(), "[Hub][Start] Success."
        );

        let watchdog = watch(&hub, settings.watchdog, &log)?;
        let following = async {
            match self.config {
                Some(path) => Reload::new(path, self.said, settings, log, listens).follow(&hub, told).await,
                None => nothing_to_follow(told).await,
            }
        };
        let exit_code = stand(&hub, listener, Shutdown::until_signal, following, Some(watchdog)).await?;
        info!(target: "seawall", cause = "a signal", exitCode = exit_code, "[Hub][Stop] Success.");
        Ok(ExitCode::from(exit_code))
    }
}

/// The admin key that somebody has chosen. What stands around it is not part of it: files end with a line break, and a header
/// can't.
fn admin_key() -> anyhow::Result<Option<String>> {
    let Some(said) = std::env::var_os("SEAWALL_ADMIN_KEY") else { return Ok(None) };
    let key = said.to_str().map(str::trim).unwrap_or_default();
    if said.to_str().is_none() || !key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        bail!("SEAWALL_ADMIN_KEY holds what no header can carry; take visible ASCII characters")
    }
    if key.len() < 16 {
        bail!("SEAWALL_ADMIN_KEY is shorter than 16 characters; a longer one can't be guessed")
    }
    Ok(Some(key.to_owned()))
}

/// Ends the process if it stands still: whoever watches over it starts it again, and what it had in hand counts a crash.
fn watch(hub: &Hub, limit: Duration, log: &Log) -> anyhow::Result<Watchdog> {
    let log = log.clone();
    let end = move |still: Duration| {
        let cause =
            format!("a thread of the process has stood still for {} s; it ends itself", still.as_secs());
        error!(target: "seawall", cause, action = "ManualReview", "[Hub][Watchdog] Failed!");
        log.flush(FLUSH_MAX);
        std::process::abort();
    };
    hub.pulse().watch(limit, end).context("can't start the watchdog")
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
