//! A hub that is killed in the middle of a request, and comes back.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use seawall_client::api::{EventInput, EventQuery, KeySpec, PageQuery, Scope, ServiceSpec};
use seawall_client::{Client, ClientError};
use seawall_testkit::http::HttpMessage;
use serde_json::json;
use tempfile::TempDir;

use super::run;
use crate::harness::{Hub, KEY};

/// What a relay does with the requests that come to it.
#[derive(Default)]
struct RelayState {
    /// The hub behind it; `None` while it is down.
    hub: Option<Hub>,
    /// The number of responses that it loses: the hub has done its work, is killed, and nobody learns of it.
    lost: usize,
    /// True at the end of the test: no hub is started any more.
    over: bool,
}

/// An address that stays while the hub behind it is killed and started again.
struct Relay {
    url: String,
    state: Arc<Mutex<RelayState>>,
}

impl Relay {
    fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state =
            Arc::new(Mutex::new(RelayState { hub: Some(Hub::start(folder)), ..RelayState::default() }));
        let (folder, shared) = (folder.to_owned(), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (folder, shared) = (folder.clone(), shared.clone());
                std::thread::spawn(move || serve(stream, &folder, &shared));
            }
        });
        Self { url, state }
    }

    fn lose(&self, responses: usize) {
        self.state.lock().unwrap().lost = responses;
    }

    fn client(&self) -> Client {
        Client::new(&self.url, KEY).unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The threads live on, and the hub must not.
        let mut state = self.state.lock().unwrap();
        (state.hub, state.over) = (None, true);
    }
}

/// Passes requests on, one at a time.
fn serve(stream: TcpStream, folder: &Path, shared: &Mutex<RelayState>) -> io::Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    loop {
        let request = HttpMessage::read(&mut from)?;
        let mut state = shared.lock().unwrap();
        if state.over {
            return Ok(());
        }
        let hub = state.hub.get_or_insert_with(|| Hub::start(folder));
        let mut behind = TcpStream::connect(&hub.address)?;
        behind.write_all(request.head.as_bytes())?;
        behind.write_all(&request.body)?;
        let response = HttpMessage::read(&mut BufReader::new(behind))?;
        if state.lost > 0 {
            state.lost -= 1;
            // Killed, and not stopped: the process has no time to finish anything.
            state.hub = None;
            return Ok(());
        }
        drop(state);
        to.write_all(response.head.as_bytes())?;
        to.write_all(&response.body)?;
    }
}

// HUB-10, API-4: a hub that is killed in the middle of a change is asked again when it is back, and the change is there once.
#[test]
fn hub_10_a_change_survives_a_hub_that_is_killed_in_the_middle() {
    let folder = TempDir::new().unwrap();
    let relay = Relay::start(folder.path());
    let hub = relay.client();
    run(async {
        relay.lose(2);
        let spec = ServiceSpec::new("billing", "http://127.0.0.1:9");
        let made = hub.services().put(&spec).await.unwrap();
        assert_eq!((&made.spec.address, relay.state.lock().unwrap().lost), (&spec.address, 0));
        assert_eq!(hub.services().list().await.unwrap().len(), 1);

        // What creates something has an idempotency key: the second request gets the result of the first.
        relay.lose(1);
        let key = hub.keys().create(&KeySpec::new("shop", [Scope::Read])).await.unwrap();
        let reader = Client::new(&relay.url, key.key.as_str()).unwrap();
        assert_eq!(reader.services().get("billing").await.unwrap().version, made.version);

        // A change with a version is not sent again, because its own first attempt would make it stale.
        relay.lose(1);
        let error = hub.services().put(&spec).if_version(made.version).await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { timed_out: false, .. }), "{error}");
        let now = hub.services().get("billing").await.unwrap().version;
        assert_eq!(now, made.version + 1, "it was carried out once");
    });
}

// HUB-10, API-4: events that are sent while the hub is killed again and again are all there, and none is there twice.
#[test]
fn hub_10_events_survive_a_hub_that_is_killed_while_they_are_sent() {
    const EVENTS: usize = 40;
    let folder = TempDir::new().unwrap();
    let relay = Relay::start(folder.path());
    let hub = relay.client();
    run(async {
        for number in 0..EVENTS {
            if number % 10 == 5 {
                relay.lose(1);
            }
            let event = EventInput::new(format!("evt-{number}"), "order.created", json!({"number": number}));
            let accepted = hub.events().send(&event).await.unwrap();
            assert_eq!(accepted.deduplicated, number % 10 == 5, "{number}");
        }
        let page = PageQuery { page_size: Some(500), page_token: None };
        let found = hub.events().list(&EventQuery { page, ..EventQuery::default() }).await.unwrap();
        let mut ids: Vec<&str> = found.events.iter().map(|event| event.event.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), found.events.len()), (EVENTS, EVENTS));
    });
}
