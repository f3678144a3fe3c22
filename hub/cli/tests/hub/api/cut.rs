//! Answers that are too large, break off or never end: the status decides, and the evidence says what is missing.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};

use super::{SERVICES, Scene, event};

/// A peer that counts what it is sent, and answers with this.
struct RawPeer {
    address: String,
    sends: Arc<AtomicUsize>,
}

impl RawPeer {
    fn start(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sends, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
        let counted = sends.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (counted, answer) = (counted.clone(), answer.clone());
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while HttpMessage::read(&mut reader).is_ok_and(|message| !message.head.is_empty()) {
                        counted.fetch_add(1, Ordering::Relaxed);
                        answer(&mut stream);
                    }
                });
            }
        });
        RawPeer { address, sends }
    }
}

/// The delivery of an event to such a peer, when it has ended, and how often it was sent.
fn delivered_to(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static, state: &str) -> (Value, usize) {
    let Scene { hub, .. } = &Scene::new();
    let peer = RawPeer::start(answer);
    hub.must("PATCH", &format!("{SERVICES}/billing"), &json!({"address": peer.address}));
    let deliveries = hub.send(&event("A"));
    let delivery = hub.wait_for(&deliveries[0], state);
    (delivery, peer.sends.load(Ordering::Relaxed))
}

fn written(stream: &mut TcpStream, bytes: &[u8]) {
    // The hub may have closed it, because it has seen enough.
    let _ = stream.write_all(bytes);
}

fn shut(stream: &TcpStream) {
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn evidence(delivery: &Value) -> String {
    delivery["attempts"][0]["answer"].as_str().unwrap_or_default().to_owned()
}

/// HUB-5. Trap "a 200 with 12 MB is one send and delivered".
#[test]
fn hub_5_a_success_that_is_too_large_is_one_send_and_delivered() {
    let answer = |stream: &mut TcpStream| {
        written(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 12000000\r\n\r\n");
        written(stream, &b"y".repeat(12_000_000));
    };
    let (delivery, sends) = delivered_to(answer, "delivered");
    assert_eq!((sends, delivery["attempts"].as_array().unwrap().len()), (1, 1), "{delivery}");
    let kept = evidence(&delivery);
    assert!(kept.starts_with("yyyy") && kept.contains("[cut: the answer is larger than"), "{kept}");
}

/// HUB-5: also if nobody says beforehand how large it will be.
#[test]
fn hub_5_a_success_that_does_not_end_is_one_send_and_delivered() {
    let answer = |stream: &mut TcpStream| {
        written(stream, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = [b"10000\r\n".as_slice(), &b"z".repeat(65_536), b"\r\n"].concat();
        while stream.write_all(&chunk).is_ok() {}
    };
    let (delivery, sends) = delivered_to(answer, "delivered");
    assert_eq!(sends, 1, "{delivery}");
}

/// HUB-5: an answer that breaks off after the head of a 2xx is delivered.
#[test]
fn hub_5_a_success_that_breaks_off_is_one_send_and_delivered() {
    let answer = |stream: &mut TcpStream| {
        written(stream, b"HTTP/1.1 201 Created\r\ncontent-length: 1000\r\n\r\nhalf");
        shut(stream);
    };
    let (delivery, sends) = delivered_to(answer, "delivered");
    assert_eq!((sends, &delivery["attempts"][0]["status"]), (1, &json!(201)), "{delivery}");
    let kept = evidence(&delivery);
    assert!(kept.starts_with("half") && kept.contains("[cut: the answer broke off"), "{kept}");
}

/// HUB-5: one that hangs after the head of a 2xx is delivered when the attempt's time is over.
#[test]
fn hub_5_a_success_that_hangs_is_one_send_and_delivered() {
    let answer = |stream: &mut TcpStream| {
        written(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let _ = stream.read(&mut [0; 1]);
    };
    let (delivery, sends) = delivered_to(answer, "delivered");
    assert_eq!(sends, 1, "{delivery}");
    assert!(evidence(&delivery).contains("[cut: the answer did not end in time"), "{delivery}");
}

/// HUB-5: a failure that breaks off is still the failure that its status says.
#[test]
fn hub_5_a_refusal_that_breaks_off_is_a_refusal() {
    let answer = |stream: &mut TcpStream| {
        written(stream, b"HTTP/1.1 422 Unprocessable\r\ncontent-length: 1000\r\n\r\nno such customer");
        shut(stream);
    };
    let (delivery, sends) = delivered_to(answer, "deadLettered");
    assert_eq!((sends, &delivery["attempts"][0]["status"]), (1, &json!(422)), "{delivery}");
}
