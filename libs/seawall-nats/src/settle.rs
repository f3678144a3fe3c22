//! Tells the server what became of a message.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::{Request, Subject};
use tokio::task::unconstrained;
use tokio::time::{sleep, timeout};

use crate::connection::OpenConnection;
use crate::{NatsConnection, NatsError};

/// The pause before an acknowledgement is sent again, because the connection was lost.
const PAUSE: Duration = Duration::from_millis(100);

/// Hands an acknowledgement to the client library if there is no need to wait. Otherwise it returns false, and [`settle`] does it.
pub(crate) fn settle_now(open: &OpenConnection, reply: &Subject, kind: AckKind) -> bool {
    // Whoever calls this gives way by itself: one that tokio refused for that would wait for nothing.
    let mut sending = pin!(unconstrained(open.client.publish(reply.clone(), kind.into())));
    matches!(sending.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

/// Acknowledges a message, gives it back or terminates it. Tries again while the connection is lost, for as long as the server
/// waits for the acknowledgement; after that it has delivered the message again.
///
/// Without `confirmed` the acknowledgement is on its way when this returns. With it the server has it.
pub(crate) async fn settle(
    connection: &NatsConnection,
    reply: &Subject,
    kind: AckKind,
    confirmed: bool,
    patience: Duration,
) -> Result<(), NatsError> {
    let mut last = None;
    let sending = async {
        loop {
            match attempt(connection, reply, kind, confirmed).await {
                Ok(()) => return Ok(()),
                Err(error) if !error.fault().is_transient() => return Err(error),
                Err(error) => last = Some(error),
            }
            sleep(PAUSE).await;
        }
    };
    match timeout(patience, sending).await {
        Ok(result) => result,
        Err(_) => Err(last.unwrap_or_else(|| {
            NatsError::new(ACKNOWLEDGING, seawall::Fault::timeout(), "the server did not answer in time")
        })),
    }
}

const ACKNOWLEDGING: &str = "acknowledging a message";

async fn attempt(
    connection: &NatsConnection,
    reply: &Subject,
    kind: AckKind,
    confirmed: bool,
) -> Result<(), NatsError> {
    let open = connection.open().await?;
    if confirmed {
        let request = Request::new().payload(kind.into()).timeout(Some(connection.request_timeout()));
        let answer = open.client.send_request(reply.clone(), request).await;
        return answer.map(|_| ()).map_err(|error| NatsError::of(ACKNOWLEDGING, error));
    }
    let sent = open.client.publish(reply.clone(), kind.into()).await;
    sent.map_err(|error| NatsError::of(ACKNOWLEDGING, error))
}
