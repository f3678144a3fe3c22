//! Runs a hub until it is asked to stop: shared by `serve` and `demo`.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use seawall::task::{Phase, Shutdown, ShutdownReport};
use seawall_hub_server::Server;
use seawall_hub_server::liveness::Watchdog;
use tokio::net::TcpListener;
use tracing::warn;

/// The store has this long to record that the process stops in an orderly way.
const LAST_WORD_MAX: Duration = Duration::from_secs(2);
/// The store has this long to fold its log back into the database.
const FOLD_MAX: Duration = Duration::from_secs(5);

/// Serves and delivers until `stop`, which gets the shutdown to run when it is time, has done so. `beside` goes on meanwhile, and
/// has no end of its own. The answer is the exit code.
pub(crate) async fn run_until_stopped<F>(
    hub: &Arc<Server>,
    listener: TcpListener,
    stop: impl FnOnce(Shutdown) -> F,
    beside: impl Future<Output = ()>,
    watchdog: Option<Watchdog>,
) -> anyhow::Result<u8>
where
    F: Future<Output = io::Result<ShutdownReport>>,
{
    let mut shutdown = Shutdown::new().delay(Duration::ZERO);
    let stopping = shutdown.token(Phase::Accepting, "api");
    let finishing = hub.clone();
    shutdown.on(Phase::InFlight, "deliveries", move || async move { finishing.runtime.finish().await });
    let telling = hub.clone();
    shutdown.on(Phase::Monitors, "traces", move || async move { telling.flush_traces().await });
    let stopping = async move { stopping.stopping().await };
    let serving = seawall_hub_server::serve(listener, hub.clone(), stopping);
    let ended = tokio::select! {
        report = async { tokio::join!(stop(shutdown), serving).0 } => Ok(report?.exit_code()),
        error = hub.runtime.run() => Err(error),
        error = hub.broken() => Err(error),
        () = hub.alert() => unreachable!("it has no end"),
        () = hub.export_traces() => unreachable!("it has no end"),
        () = beside => unreachable!("it has no end"),
        () = hub.pulse().beat() => unreachable!("it has no end"),
    };
    drop(watchdog);
    hub.runtime.report();
    if ended.is_ok() && hub.pulse().is_well() {
        // If that can't be written, the claimed deliveries count a crash, and no more than that.
        let _ = tokio::time::timeout(LAST_WORD_MAX, hub.runtime.record_stop()).await;
        fold_log(hub).await;
    }
    match ended {
        Ok(exit_code) => Ok(exit_code),
        Err(error) => {
            hub.tell_of_the_end(&error.to_string()).await;
            bail!(last_words(&error))
        }
    }
}

/// A log that was not folded back loses nothing: the next start reads it.
async fn fold_log(hub: &Server) {
    let cause = match tokio::time::timeout(FOLD_MAX, hub.store().fold_log()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "timeout".to_owned(),
    };
    let note = "the write-ahead log stays beside the database; the next start reads it";
    warn!(target: "seawall", cause, note, "[Store][Fold] Failed!");
}

/// Nothing is acknowledged after it, so a start that reads what is on the disk finds all that was.
fn last_words(error: &impl Display) -> String {
    format!("{error}; the hub stops because it can't store data reliably; check the disk, then restart it")
}
