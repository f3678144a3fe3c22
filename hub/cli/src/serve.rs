//! `seawall serve`.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use seawall::task::shutdown::{Phase, Shutdown};
use seawall_hub_server::{Hub, http};
use tokio::net::TcpListener;

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
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let data_dir = match self.data_dir {
            Some(folder) => folder,
            None => default_data_dir().context(
                "there is no home folder to keep data in; say where with `--data-dir` or SEAWALL_DATA_DIR",
            )?,
        };
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

        let mut shutdown = Shutdown::new().delay(std::time::Duration::ZERO);
        let stopping = shutdown.token(Phase::Accepting, "api");
        let finishing = hub.clone();
        shutdown.on(Phase::InFlight, "deliveries", move || async move { finishing.finish().await });
        let api = http::api(hub.clone());
        let serving = async move {
            let graceful =
                axum::serve(listener, api).with_graceful_shutdown(async move { stopping.stopping().await });
            graceful.await
        };
        tokio::select! {
            report = async { tokio::join!(shutdown.until_signal(), serving).0 } => Ok(ExitCode::from(report?.exit_code())),
            error = hub.run() => bail!(last_words(&error)),
            error = hub.broken() => bail!(last_words(&error)),
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

/// Nothing is acknowledged after it, so a start that reads what is on the disk finds all that was.
fn last_words(error: &impl Display) -> String {
    format!("{error}; it stops rather than promise what it can't keep; look at the disk, then start it again")
}

#[expect(clippy::print_stdout, reason = "it is what the program says to whoever starts it")]
fn say(line: &str) {
    println!("seawall: {line}");
}
