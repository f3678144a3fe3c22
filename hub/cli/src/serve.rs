//! `seawall serve`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use seawall::task::shutdown::Shutdown;
use seawall_hub_server::log::Log;
use seawall_hub_server::{Hub, Options, http};
use tokio::net::TcpListener;
use tracing::{error, info};

use crate::reload::Reload;
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

    /// The admin key. Without it one is made and printed at the first start.
    #[arg(long, env = "SEAWALL_ADMIN_KEY", hide_env_values = true, hide = true)]
    admin_key: Option<String>,

    /// Makes a new `secret.key` although the one that opens the secrets of services and sources is missing. They have to be
    /// registered again.
    #[arg(long)]
    new_secret_key: bool,
}

/// The last lines have so long to get out; whoever reads them may be gone.
pub(crate) const FLUSH_MAX: Duration = Duration::from_secs(2);

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let settings = self.said.over(&file(self.config.as_deref())?);
        let log = Log::install(settings.log_format, settings.log_level, std::io::stderr())?;
        let ended = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.serve(settings, log.clone())),
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
        info!(target: "seawall", version, dataDir = folder, "[Hub][Start] Start.");
        let (allow_egress, new_secret_key) = (settings.allow_egress.clone(), self.new_secret_key);
        let options = Options {
            allow_egress,
            new_secret_key,
            otlp_endpoint: settings.otlp_endpoint.clone(),
            demo: None,
        };
        let hub = Arc::new(Hub::open(&data_dir, &options).await?);
        hub.keep_for(settings.retention);
        let listener = TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("can't listen on {}", settings.listen))?;
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

        let following = async {
            match self.config {
                Some(path) => Reload::new(path, self.said, settings, log).follow(&hub).await,
                None => std::future::pending().await,
            }
        };
        let exit_code = stand(&hub, listener, Shutdown::until_signal, following).await?;
        info!(target: "seawall", cause = "a signal", exitCode = exit_code, "[Hub][Stop] Success.");
        Ok(ExitCode::from(exit_code))
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

#[expect(clippy::print_stdout, reason = "it is what the program says to whoever starts it")]
fn say(line: &str) {
    println!("seawall: {line}");
}
