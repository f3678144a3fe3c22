//! The connection that shows that the node lives, on a thread of its own: a hub that has much to do must not be taken for dead.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::checks;
use super::connect::Connector;
use super::link::jittered;
use super::node::{self, HubNode};
use super::session::Session;
use crate::OpenError;

/// How often a node shows that it lives.
const BEAT: Duration = Duration::from_millis(500);
/// How long a beat may take before its connection counts as lost.
const BEAT_MAX: Duration = Duration::from_secs(1);
/// How long a start waits for a server that starts too.
const START_TRIES: u32 = 25;
const START_PAUSE: Duration = Duration::from_millis(200);

/// What a start needs to know.
pub(in crate::postgres) struct Start {
    pub(in crate::postgres) connector: Connector,
    pub(in crate::postgres) name: String,
    pub(in crate::postgres) data_folder: PathBuf,
    pub(in crate::postgres) clock: Clock,
}

/// Becomes a node, reports that, and shows that it lives until `stop`. `lost` is called if another process takes over.
pub(in crate::postgres) async fn run(
    start: Start,
    joined: oneshot::Sender<Result<Arc<HubNode>, OpenError>>,
    stop: Arc<Notify>,
    lost: impl Fn(&str),
) {
    let opened = open(&start).await;
    let (session, node) = match opened {
        Ok((session, node)) => (session, Arc::new(node)),
        Err(error) => {
            // Nobody waits any more if the start was given up.
            let _ = joined.send(Err(error));
            return;
        }
    };
    if joined.send(Ok(node.clone())).is_err() {
        return;
    }
    let mut control = Control { start, node, session: Some(session) };
    tokio::select! {
        () = stop.notified() => {}
        reason = control.beat() => lost(&reason),
    }
    control.leave().await;
}

async fn open(start: &Start) -> Result<(Session, HubNode), OpenError> {
    let mut tries = 0;
    let session = loop {
        match start.connector.connect().await {
            Ok(session) => break session,
            Err(error) if error.is_passing() && tries < START_TRIES => {
                tries += 1;
                sleep(START_PAUSE).await;
            }
            Err(error) => return Err(error.explained(&start.connector.address)),
        }
    };
    checks::check(&session, &start.connector).await?;
    let id = node::join(&session, &start.name, &start.data_folder).await?;
    let node = HubNode::new(id, session.info().timeline, start.clock.clone());
    Ok((session, node))
}

struct Control {
    start: Start,
    node: Arc<HubNode>,
    session: Option<Session>,
}

impl Control {
    /// Shows again and again that the node lives. Returns the reason if that is not for it to say any more.
    async fn beat(&mut self) -> String {
        let mut pause = Duration::ZERO;
        loop {
            if let Some(session) = &self.session {
                let began = self.node.now();
                match timeout(BEAT_MAX, node::beat(session, &self.node)).await {
                    Ok(Ok(true)) => self.node.beaten(began),
                    Ok(Ok(false)) => {
                        return "another hub has taken over the database, because this one was not heard of; only one may \
                                use it"
                            .into();
                    }
                    Ok(Err(_)) | Err(_) => self.session = None,
                }
            }
            if self.session.is_some() {
                pause = Duration::ZERO;
                tokio::select! {
                    () = sleep(BEAT) => {}
                    () = self.node.moved() => self.session = None,
                }
                continue;
            }
            pause = (pause * 2).clamp(Duration::from_millis(20), BEAT);
            sleep(jittered(pause)).await;
            match self.start.connector.connect().await {
                Ok(session) => {
                    if let Err(reason) = node::return_to(&session, &self.node, &self.start.name).await {
                        if let Some(reason) = reason {
                            return reason;
                        }
                        continue;
                    }
                    self.session = Some(session);
                }
                Err(error) => {
                    self.start.connector.telemetry.not_connected(&self.start.connector.address, &error);
                }
            }
        }
    }

    /// Says that the node does not live any more, so that nobody has to wait for that.
    async fn leave(&mut self) {
        if let Some(session) = &self.session {
            // If that can't be said, the time of the node ends by itself.
            let _ = timeout(BEAT_MAX, node::leave(session, &self.node)).await;
        }
    }
}
