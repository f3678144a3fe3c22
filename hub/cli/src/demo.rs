//! `seawall demo`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use seawall::task::shutdown::{Shutdown, ShutdownReport, Signals};
use seawall::{Clock, Tick};
use seawall_hub_server::demo::{self, Script};
use seawall_hub_server::log::{Format, Log};
use seawall_hub_server::{Hub, MetricsAccess, Options, http};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tracing::Level;

use crate::serve::FLUSH_MAX;
use crate::settings::level;
use crate::stand::stand;

/// Shows a hub at work.
#[derive(Args)]
pub(crate) struct Demo {
    /// Where it listens: an address of this machine only. Without it 127.0.0.1:8480, or a free port if that is taken.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    listen: Option<SocketAddr>,

    /// So many events a second, up to 200.
    #[arg(long, default_value_t = 15, value_parser = RangedU64ValueParser::<u32>::new().range(1..=200))]
    rate: u32,

    /// Tells the story so many times faster, up to 20.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u32>::new().range(1..=20))]
    pace: u32,

    /// Nothing breaks by itself: the switches are yours alone.
    #[arg(long, conflicts_with = "pace")]
    no_story: bool,

    /// Shows the log of the hub too, on stderr; without it there is none.
    #[arg(long, value_name = "error|warn|info|debug", value_parser = level)]
    log_level: Option<Level>,
}

const PORT: u16 = 8480;
/// What is under way at the end has so long; nothing of it is kept anyway.
const END_WITHIN: Duration = Duration::from_millis(1_200);
/// Threads that still work after that.
const THREADS_WITHIN: Duration = Duration::from_millis(300);
/// Somebody else may look into the folder at the very moment it is removed.
const REMOVE_TRIES: usize = 5;

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let log = self.log_level.map(|level| Log::install(Format::default(), level, io::stderr()));
        let log = log.transpose()?;
        // Removed when it is dropped, also by a panic on its way.
        let folder = tempfile::Builder::new().prefix("seawall-demo-").tempdir();
        let folder = folder.context("there is no place for temporary data")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ended = runtime.block_on(self.demo(&folder));
        runtime.shutdown_timeout(THREADS_WITHIN);
        if let Some(log) = log {
            log.flush(FLUSH_MAX);
        }
        let removed = remove(folder);
        ended?;
        removed?;
        say("ended; nothing is left of it");
        Ok(ExitCode::SUCCESS)
    }

    async fn demo(&self, folder: &TempDir) -> anyhow::Result<()> {
        // From here on a signal ends it in order.
        let mut wishes = Wishes::listen()?;
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let (listener, instead) = listener(self.listen, usual).await?;
        let address = listener.local_addr()?;
        let demo = Arc::new(demo::Demo::open().await?);
        let (allow_egress, key) = (demo.egress(), http::fresh_key());
        // It listens on this machine only, and shows its metrics to whoever tries it.
        let metrics = MetricsAccess::Open;
        let options = Options { allow_egress, demo: Some(demo.clone()), metrics, ..Options::default() };
        let hub = Arc::new(Hub::open(folder.path(), &options).await?);
        hub.keep_for(demo::RETENTION);
        hub.set_admin_key(http::key_hash(&key)).await?;
        demo.register(&hub, &key).await?;
        self.welcome(address, &key, folder, instead);

        let script = Script { rate: self.rate, pace: (!self.no_story).then_some(self.pace) };
        let clock = Clock::default();
        let began = clock.now();
        let telling = async { match demo.run(&hub, &key, script, |line| tell(&clock, began, line)).await {} };
        let asked = &Notify::new();
        let stop = move |shutdown: Shutdown| async move {
            wishes.next().await;
            asked.notify_one();
            // Somebody who asks twice is in a hurry.
            Ok::<ShutdownReport, io::Error>(shutdown.run_until(wishes.next()).await)
        };
        let overdue = async {
            asked.notified().await;
            tokio::time::sleep(END_WITHIN).await;
        };
        tokio::select! {
            ended = stand(&hub, listener, stop, telling, None) => ended.map(drop),
            () = overdue => Ok(()),
        }
    }

    /// What somebody sees who has never seen it.
    fn welcome(&self, address: SocketAddr, key: &str, folder: &TempDir, instead: bool) {
        let url = format!("http://{address}");
        if instead {
            say(&format!("port {PORT} is taken; this is another one"));
        }
        let rate = self.rate;
        say(&format!(
            "listening on {url}, {rate} events a second, data in `{}` until it ends",
            folder.path().display()
        ));
        say(&format!("log in:  {url}/login#{key}"));
        say(&format!("tour:    {url}/demo"));
        let curl = "curl -sH \"Authorization: Bearer $SEAWALL_KEY\" $SEAWALL_URL/api/v1/demo/upstreams";
        let lines = [
            "",
            "What to try, on the page, or in another terminal:",
            &format!("  export SEAWALL_URL={url} SEAWALL_KEY={key}"),
            "  1. break the warehouse",
            &format!("     {curl}/warehouse:set -d '{{\"mood\":\"failing\"}}'"),
            "  2. see its circuit open, and its deliveries wait",
            "     seawall circuits show warehouse",
            "     seawall deliveries list --service warehouse --state waiting",
            "  3. heal it, and what waited is delivered",
            &format!("     {curl}/warehouse:set -d '{{\"mood\":\"healthy\"}}'"),
            "  4. the dead letters of crm: open a group, mend the rule, replay it",
            "     seawall dlq list --service crm",
            "Moods are healthy, slow, failing, down and refusing. Ctrl-C ends it, and leaves nothing behind.",
            "",
        ];
        lines.iter().for_each(|line| print(line));
        if !self.no_story {
            let seconds = 60 / self.pace;
            say(&format!("a story tells itself now, within {seconds} seconds; look at the tour meanwhile"));
        }
    }
}

/// The signals that end it. A terminal that is closed hangs up.
struct Wishes {
    signals: Signals,
    #[cfg(unix)]
    hung_up: tokio::signal::unix::Signal,
}

impl Wishes {
    fn listen() -> io::Result<Self> {
        Ok(Wishes {
            signals: Signals::listen()?,
            #[cfg(unix)]
            hung_up: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.signals.next() => {}
            _ = self.hung_up.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        self.signals.next().await;
    }
}

/// Where it listens, and whether that is neither what was asked for nor the usual.
async fn listener(asked: Option<SocketAddr>, usual: SocketAddr) -> anyhow::Result<(TcpListener, bool)> {
    let wanted = asked.unwrap_or(usual);
    match TcpListener::bind(wanted).await {
        Ok(listener) => Ok((listener, false)),
        Err(error) if asked.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
            Ok((TcpListener::bind((usual.ip(), 0)).await?, true))
        }
        Err(error) => bail!("can't listen on {wanted}: {error}"),
    }
}

/// What whoever is logged in may do, nobody beyond this machine should: the key is on a screen.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}"))?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("a demo listens on this machine only, such as 127.0.0.1:8480".into())
}

fn remove(folder: TempDir) -> anyhow::Result<()> {
    let path = folder.keep();
    let mut last = Ok(());
    for _ in 0..REMOVE_TRIES {
        last = std::fs::remove_dir_all(&path);
        match &last {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => std::thread::yield_now(),
        }
    }
    last.with_context(|| format!("`{}` could not be removed; it is of no use to anybody", path.display()))
}

fn tell(clock: &Clock, began: Tick, line: &str) {
    let seconds = clock.now().since(began).as_secs();
    print(&format!("{seconds:4} s  {line}"));
}

fn say(line: &str) {
    print(&format!("seawall: {line}"));
}

/// A terminal that is gone is no reason to stop in the middle.
fn print(line: &str) {
    use io::Write;
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-11: where the usual port is taken another one does; where one was asked for, it is that or none.
    #[tokio::test]
    async fn hub_11_a_port_that_is_taken_is_no_end() {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (first, instead) = listener(None, free).await.unwrap();
        assert!(!instead);
        let taken = first.local_addr().unwrap();
        let (second, instead) = listener(None, taken).await.unwrap();
        assert!(instead && second.local_addr().unwrap() != taken);
        let refused = listener(Some(taken), free).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("can't listen on {taken}")), "{refused}");
    }

    /// HUB-11, SEC-1: a demo is for this machine only.
    #[test]
    fn hub_11_a_demo_listens_on_this_machine_only() {
        assert!(loopback("127.0.0.1:0").is_ok() && loopback("[::1]:8480").is_ok());
        for wrong in ["0.0.0.0:8480", "10.1.2.3:80", "localhost:1", "8480"] {
            assert!(loopback(wrong).is_err(), "{wrong}");
        }
    }
}
