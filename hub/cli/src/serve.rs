//! `seawall serve`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use seawall::Clock;
use seawall::task::Shutdown;
use seawall_hub_server::liveness::Watchdog;
use seawall_hub_server::log::Log;
use seawall_hub_server::{DatabaseUrl, Server, StartOptions, http};
use tokio::net::TcpListener;
use tracing::{error, info};

use crate::database::with_password;
use crate::error::CommandError;
use crate::lifecycle::run_until_stopped;
use crate::open_files;
use crate::output::say;
use crate::reload::{Reload, hangup, nothing_to_follow};
use crate::settings::{SettingOverrides, Settings, file};

/// Run the hub.
#[derive(Args)]
pub(crate) struct Serve {
    /// Settings file in TOML. The command line and the environment take precedence. It is reloaded when it changes, and on
    /// SIGHUP.
    #[arg(long, env = "SEAWALL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    overrides: SettingOverrides,

    /// Accepted only to be refused with an explanation.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    admin_key: Option<String>,

    /// Create a new `secret.key` although the one that decrypts the secrets of services and sources is missing. Their secrets
    /// must be entered again.
    #[arg(long)]
    new_secret_key: bool,
}

/// The maximum wait for the last log lines; their reader may be gone.
pub(crate) const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The threads of the runtime have so long to come back.
const THREADS_MAX: Duration = Duration::from_secs(5);

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.admin_key.is_some() {
            let word = "`--admin-key` is not supported: every user of this machine can read command lines";
            return Ok(CommandError::usage(word).and("set SEAWALL_ADMIN_KEY").tell());
        }
        let settings = match file(self.config.as_deref()) {
            Ok(file) => Settings::of(&[&self.overrides, &file]),
            Err(wrong) => return Ok(CommandError::usage(format!("{wrong:#}")).tell()),
        };
        // One clock for all, because deadlines of two can't be compared.
        let clock = Clock::system();
        let log = Log::install(settings.log_format, settings.log_level, clock.clone(), std::io::stderr())?;
        seawall_hub_server::log_panics();
        let ended = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => {
                let ended = runtime.block_on(self.serve(settings, log.clone(), clock));
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

    async fn serve(self, settings: Settings, log: Log, clock: Clock) -> anyhow::Result<ExitCode> {
        let data_dir = match &settings.data_dir {
            Some(folder) => folder.clone(),
            None => default_data_dir()
                .context("there is no home directory for the data; set `--data-dir` or SEAWALL_DATA_DIR")?,
        };
        let (version, folder) = (env!("CARGO_PKG_VERSION"), data_dir.display().to_string());
        let (open_files, told) = (open_files::raise_limit(), hangup());
        info!(target: "seawall", version, dataDir = folder, openFilesMax = open_files, "[Hub][Start] Start.");
        let (allow_egress, new_secret_key) = (settings.allow_egress.clone(), self.new_secret_key);
        let options = StartOptions {
            allow_egress,
            database: database_url(&settings)?,
            new_secret_key,
            otlp_endpoint: settings.otlp_endpoint.clone(),
            demo: None,
            response_memory: Some(settings.response_memory),
            write_timeout: Some(settings.write_timeout),
            metrics: settings.metrics,
            open_files,
            clock,
            log: Some(log.clone()),
        };
        let hub = Arc::new(Server::open(&data_dir, &options).await?);
        hub.ops.keep_for(settings.retention);
        let listener = TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("can't listen on {}", settings.listen))?;
        let address = listener.local_addr()?;
        let listens = format!("http://{address}");
        hub.alerts.set_public_url(settings.public_url.as_deref().unwrap_or(&listens));
        let mut fresh = None;
        match admin_key()? {
            Some(key) => hub.registry.set_admin_key(&hub.own_context(), http::key_hash(&key)).await?,
            None if hub.registry.has_admin_key() => {}
            None => {
                let key = http::fresh_key();
                // Shown before it counts: a key that nobody has seen would lock everybody out.
                say(&format!("admin key: {key}"))
                    .and_then(|()| {
                        say("it is shown only once; SEAWALL_ADMIN_KEY sets another one at any start")
                    })
                    .context("can't print the admin key; set SEAWALL_ADMIN_KEY instead")?;
                hub.registry.set_admin_key(&hub.own_context(), http::key_hash(&key)).await?;
                fresh = Some(key);
            }
        }
        // The log says it too; a reader that is gone is no reason not to work.
        let place = match hub.store().database() {
            Some(database) => format!("data in the database `{database}`, `secret.key` in `{folder}`"),
            None => format!("data in `{folder}`"),
        };
        let _ = say(&format!("listening on http://{address}, {place}"));
        let _ = say(&match &fresh {
            Some(key) => format!("log in: http://{address}/login#{key}"),
            None => {
                format!("log in: http://{address}/login, with the admin key or one with the scope `read`")
            }
        });

        let (epoch, services, rules) =
            (hub.epoch(), hub.registry.services().len(), hub.registry.rules().len());
        info!(
            target: "seawall", version, listen = %address, dataDir = folder, epoch, services, rules,
            sources = hub.registry.sources().len(), "[Hub][Start] Success."
        );

        let watchdog = watch(&hub, settings.watchdog, &log)?;
        let following = async {
            match self.config {
                Some(path) => {
                    Reload::new(path, self.overrides, settings, log, listens).follow(&hub, told).await;
                }
                None => nothing_to_follow(told).await,
            }
        };
        let exit_code =
            run_until_stopped(&hub, listener, Shutdown::until_signal, following, Some(watchdog)).await?;
        info!(target: "seawall", cause = "a signal", exitCode = exit_code, "[Hub][Stop] Success.");
        Ok(ExitCode::from(exit_code))
    }
}

/// The admin key from the environment. White space around it is not part of it: files end with a line break, and a header
/// can't.
fn admin_key() -> anyhow::Result<Option<String>> {
    let Some(said) = std::env::var_os("SEAWALL_ADMIN_KEY") else { return Ok(None) };
    let key = said.to_str().map(str::trim).unwrap_or_default();
    if said.to_str().is_none() || !key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        bail!("SEAWALL_ADMIN_KEY must consist of visible ASCII characters, so that it fits in a header")
    }
    if key.len() < 16 {
        bail!("SEAWALL_ADMIN_KEY must have at least 16 characters, so that it can't be guessed")
    }
    Ok(Some(key.to_owned()))
}

/// The URL of the database, if it is not SQLite in the data directory.
fn database_url(settings: &Settings) -> anyhow::Result<Option<DatabaseUrl>> {
    let url = settings.database.as_ref();
    url.map(|url| with_password(url, settings.database_password_file.as_deref())).transpose()
}

/// Aborts the process if it is stuck: its supervisor restarts it, and its claimed deliveries count a crash.
fn watch(hub: &Server, limit: Duration, log: &Log) -> anyhow::Result<Watchdog> {
    let log = log.clone();
    let end = move |still: Duration| {
        let cause = format!("a thread has been stuck for {} s; the process aborts", still.as_secs());
        error!(target: "seawall", cause, action = "ManualReview", "[Hub][Watchdog] Failed!");
        log.flush(FLUSH_MAX);
        std::process::abort();
    };
    hub.pulse().watch(limit, hub.clock().clone(), end).context("can't start the watchdog")
}

/// The platform's data directory for Seawall.
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
