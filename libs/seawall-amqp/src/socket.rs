//! The socket below a connection, which can be cut.
//!
//! The client library has a thread for each connection, and the thread ends when the socket does. A server that takes a connection
//! and says nothing keeps the thread for ever, because heartbeats begin after the handshake. Cutting the socket ends it.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::tcp::{AMQPUriTcpExt, AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties, Error as ClientError};
use tokio::time::timeout;

/// What to do about an `amqps` address in a program that was built without TLS.
const NO_TLS: &str = "the address begins with `amqps`, and this program was built without TLS; add `lapin` to its dependencies with the feature `rustls` and its choice of certificates";

/// A second handle on the socket of a connection.
#[derive(Clone, Default)]
pub(crate) struct Socket(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stream: Option<TcpStream>,
    is_cut: bool,
}

impl Socket {
    /// Ends the connection without a word to the server.
    pub(crate) fn cut(&self) {
        let mut state = self.lock();
        state.is_cut = true;
        if let Some(stream) = state.stream.take() {
            // One that is closed already is what was wanted.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn keep(&self, stream: TcpStream) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_cut {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        state.stream = Some(stream);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects, and returns the connection with its socket. An attempt that takes too long ends, with its thread.
pub(crate) async fn connect(
    uri: AMQPUri,
    properties: ConnectionProperties,
    tls: OwnedTLSConfig,
    limit: Duration,
) -> Result<(Connection, Socket), ClientError> {
    let socket = Socket::default();
    let kept = socket.clone();
    let runtime = lapin::runtime::default_runtime()?;
    let connecting = Connection::connector(
        uri,
        runtime,
        async move |uri, runtime| {
            let plain = AMQPUri { scheme: AMQPScheme::AMQP, ..uri.clone() };
            let stream = plain.connect_with_config_async(tls.as_ref(), &runtime);
            let stream = timeout(limit, stream).await.map_err(|_| too_late())??;
            #[cfg(unix)]
            if let AsyncTcpStream::Plain(stream) = &stream {
                use std::os::fd::AsFd;
                kept.keep(stream.get_ref().as_fd().try_clone_to_owned()?.into())?;
            }
            Ok(match uri.scheme {
                AMQPScheme::AMQP => stream,
                AMQPScheme::AMQPS => match stream.into_tls(&uri.authority.host, tls.as_ref()).await? {
                    // Without a feature for TLS the client library goes on in clear text, and says nothing.
                    AsyncTcpStream::Plain(_) => {
                        return Err(io::Error::new(io::ErrorKind::Unsupported, NO_TLS).into());
                    }
                    encrypted => encrypted,
                },
            })
        },
        properties,
    );
    match timeout(limit, connecting).await {
        Ok(result) => Ok((result?, socket)),
        Err(_) => {
            socket.cut();
            Err(too_late().into())
        }
    }
}

fn too_late() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
