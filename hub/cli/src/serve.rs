//! `seawall serve`.

use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use ring::rand::{SecureRandom, SystemRandom};
use seawall::task::shutdown::{Phase, Shutdown};
use seawall_hub_server::{Hub, http};
use tokio::net::TcpListener;

/// Runs the hub.
#[derive(Args)]
pub(crate) struct Serve {
    /// Where it listens. Beyond this machine comes with full authentication.
    #[arg(long, default_value = "127.0.0.1:8480")]
    listen: SocketAddr,

    /// Where it keeps everything.
    #[arg(long, default_value = "seawall-data")]
    data_dir: PathBuf,

    /// Private addresses that requests may go to, like `10.1.0.0/16`; may be given more than once.
    #[arg(long, value_name = "CIDR")]
    allow_egress: Vec<String>,

    /// The admin key. Without it one is made and printed at the first start.
    #[arg(long, env = "SEAWALL_ADMIN_KEY", hide_env_values = true, hide = true)]
    admin_key: Option<String>,
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if !self.listen.ip().is_loopback() {
            bail!(
                "`--listen {}` is not on this machine only; so far it listens on loopback, like 127.0.0.1:8480",
                self.listen
            );
        }
        let hub = Arc::new(Hub::open(&self.data_dir, &self.allow_egress).await?);
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
        let key = match hub.admin_key(given.as_deref().map(http::key_hash)).await? {
            Some(key) => key,
            None => {
                let fresh = fresh_key()?;
                say(&format!("admin key: {fresh}"));
                say("it is shown this once; SEAWALL_ADMIN_KEY sets another one at any start");
                let hash = http::key_hash(&fresh);
                hub.admin_key(Some(hash)).await?;
                hash
            }
        };
        say(&format!("listening on http://{address}, data in `{}`", self.data_dir.display()));

        let mut shutdown = Shutdown::new().delay(std::time::Duration::ZERO);
        let stopping = shutdown.token(Phase::Accepting, "api");
        let finishing = hub.clone();
        shutdown.on(Phase::InFlight, "deliveries", move || async move { finishing.finish().await });
        let stopping = async move { stopping.stopping().await };
        let serving = seawall_hub_server::serve(listener, hub.clone(), key, stopping);
        tokio::select! {
            report = async { tokio::join!(shutdown.until_signal(), serving).0 } => Ok(ExitCode::from(report?.exit_code())),
            error = hub.run() => bail!(last_words(&error)),
            error = hub.broken() => bail!(last_words(&error)),
        }
    }
}

/// Nothing is acknowledged after it, so a start that reads what is on the disk finds all that was.
fn last_words(error: &impl Display) -> String {
    format!("{error}; it stops rather than promise what it can't keep; look at the disk, then start it again")
}

fn fresh_key() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).ok().context("no randomness to be had")?;
    let mut key = String::from("swk_");
    for byte in bytes {
        write!(key, "{byte:02x}")?;
    }
    Ok(key)
}

#[expect(clippy::print_stdout, reason = "it is what the program says to whoever starts it")]
fn say(line: &str) {
    println!("seawall: {line}");
}
