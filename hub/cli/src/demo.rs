//! `seawall demo`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use seawall::task::shutdown::{Shutdown, ShutdownReport, Signals};
use seawall::{Clock, Tick};
use seawall_hub_server::demo::{self, DemoOptions};
use seawall_hub_server::log::{Format, Log};
use seawall_hub_server::{MetricsAccess, Server, StartOptions, http};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tracing::Level;

use crate::input::whole;
use crate::lifecycle::run_until_stopped;
use crate::serve::FLUSH_MAX;
use crate::settings::level;

/// Run a demo hub.
#[derive(Args)]
pub(crate) struct Demo {
    /// Loopback address to listen on (default 127.0.0.1:8480, or a free port if that is taken).
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    listen: Option<SocketAddr>,

    /// Events per second, at most 200.
    #[arg(long, default_value_t = 15, value_parser = whole::<u32>(1..=200))]
    rate: u32,

    /// Speed factor of the scripted outage, at most 20.
    #[arg(long, default_value_t = 1, value_parser = whole::<u32>(1..=20))]
    pace: u32,

    /// Run without the scripted outage: services fail only when you break them.
    #[arg(long, conflicts_with = "pace")]
    no_story: bool,

    /// Print the log of the hub on stderr (default: no log).
    #[arg(long, value_name = "error|warn|info|debug", value_parser = level)]
    log_level: Option<Level>,
}

const PORT: u16 = 8480;
/// The time that deliveries in progress have at the end; their data is removed anyway.
const END_WITHIN: Duration = Duration::from_millis(1_200);
/// The time that the threads of the runtime have after that.
const THREADS_WITHIN: Duration = Duration::from_millis(300);
/// Another process may read the folder while it is removed.
const REMOVE_TRIES: usize = 5;

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let log =
            self.log_level.map(|level| Log::install(Format::default(), level, Clock::system(), io::stderr()));
        let log = log.transpose()?;
        // Removed when it is dropped, also by a panic on its way.
        let folder = tempfile::Builder::new().prefix("seawall-demo-").tempdir();
        let folder = folder.context("can't create a temporary directory")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ended = runtime.block_on(self.demo(&folder, log.clone()));
        runtime.shutdown_timeout(THREADS_WITHIN);
        if let Some(log) = log {
            log.flush(FLUSH_MAX);
        }
        let removed = remove(folder);
        ended?;
        removed?;
        say("stopped; its data is removed");
        Ok(ExitCode::SUCCESS)
    }

    async fn demo(&self, folder: &TempDir, log: Option<Log>) -> anyhow::Result<()> {
        // From here on, a signal stops the demo in an orderly way.
        let mut wishes = StopSignals::listen()?;
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let (listener, instead) = listener(self.listen, usual).await?;
        let address = listener.local_addr()?;
        let demo = Arc::new(demo::DemoServices::open().await?);
        let (allow_egress, key) = (demo.egress(), http::fresh_key());
        // It listens on this machine only, and shows its metrics to whoever tries it.
        let metrics = MetricsAccess::Open;
        let options =
            StartOptions { allow_egress, demo: Some(demo.clone()), metrics, log, ..StartOptions::default() };
        let hub = Arc::new(Server::open(folder.path(), &options).await?);
        hub.ops.keep_for(demo::RETENTION);
        hub.registry.set_admin_key(&hub.own_context(), http::key_hash(&key)).await?;
        demo.register(&hub, &key).await?;
        self.welcome(address, &key, folder, instead);

        let script = DemoOptions { rate: self.rate, pace: (!self.no_story).then_some(self.pace) };
        let clock = hub.clock();
        let began = clock.now();
        let telling = async { match demo.run(&hub, &key, script, |line| tell(clock, began, line)).await {} };
        let asked = &Notify::new();
        let stop = move |shutdown: Shutdown| async move {
            wishes.next().await;
            asked.notify_one();
            // A second signal ends the wait.
            Ok::<ShutdownReport, io::Error>(shutdown.run_until(wishes.next()).await)
        };
        let overdue = async {
            asked.notified().await;
            tokio::time::sleep(END_WITHIN).await;
        };
        tokio::select! {
            ended = run_until_stopped(&hub, listener, stop, telling, None) => ended.map(drop),
            () = overdue => Ok(()),
        }
    }

    /// Prints the introduction.
    fn welcome(&self, address: SocketAddr, key: &str, folder: &TempDir, instead: bool) {
        let url = format!("http://{address}");
        if instead {
            say(&format!("port {PORT} is in use; using another one"));
        }
        let rate = self.rate;
        say(&format!(
            "listening on {url}, {rate} events per second, temporary data in `{}`",
            folder.path().display()
        ));
        say(&format!("log in:  {url}/login#{key}"));
        say(&format!("tour:    {url}/demo"));
        let curl = "curl -sH \"Authorization: Bearer $SEAWALL_KEY\" $SEAWALL_URL/api/v1/demo/upstreams";
        let lines = [
            "",
            "Things to try, in the dashboard or in another terminal:",
            &format!("  export SEAWALL_URL={url} SEAWALL_KEY={key}"),
            "  1. break the warehouse",
            &format!("     {curl}/warehouse:set -d '{{\"mood\":\"failing\"}}'"),
            "  2. watch its circuit open and its deliveries queue up",
            "     seawall circuits show warehouse",
            "     seawall deliveries list --service warehouse --state waiting",
            "  3. restore it, and the waiting deliveries are delivered",
            &format!("     {curl}/warehouse:set -d '{{\"mood\":\"healthy\"}}'"),
            "  4. handle the dead letters of crm: open a group, fix the rule, replay it",
            "     seawall dlq list --service crm",
            "States are healthy, slow, failing, down and refusing. Ctrl-C stops the demo and removes its data.",
            "",
        ];
        lines.iter().for_each(|line| print(line));
        if !self.no_story {
            let seconds = 60 / self.pace;
            say(&format!(
                "a scripted outage starts now and takes {seconds} seconds; follow it on the tour page"
            ));
        }
    }
}

/// The signals that stop the demo; closing the terminal sends SIGHUP.
struct StopSignals {
    signals: Signals,
    #[cfg(unix)]
    hung_up: tokio::signal::unix::Signal,
}

impl StopSignals {
    fn listen() -> io::Result<Self> {
        Ok(StopSignals {
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

/// The listener. The flag is true if the usual port was taken and another one is used.
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

/// Accepts loopback addresses only: the key is printed on a screen, so nobody beyond this machine may connect.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}"))?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("must be a loopback address, such as 127.0.0.1:8480".into())
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
    last.with_context(|| format!("can't remove `{}`; it can be deleted", path.display()))
}

fn tell(clock: &Clock, began: Tick, line: &str) {
    let seconds = clock.now().since(began).as_secs();
    print(&format!("{seconds:4} s  {line}"));
}

fn say(line: &str) {
    print(&format!("seawall: {line}"));
}

/// Prints a line. A closed terminal does not stop the demo.
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
