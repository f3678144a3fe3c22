//! Responses judged by their status.

use std::io;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Response, StatusCode};
use seawall::client::{ByStatus, HttpResponse};
use seawall::fault::Dynamic;
use seawall::{Class, Classify, Fault, secs};

type Outcome = io::Result<Response<()>>;

fn response(status: u16) -> Outcome {
    Ok(Response::builder().status(status).body(()).unwrap())
}

/// ENG-1: the table of statuses is the one of `Fault::of_http`, and errors are judged by their causes.
#[test]
fn eng_1_by_status_follows_the_table() {
    for status in 100..=599 {
        assert_eq!(ByStatus.classify(&response(status)), Fault::of_http(status), "{status}");
    }
    let reset: Outcome = Err(io::ErrorKind::ConnectionReset.into());
    assert_eq!(ByStatus.classify(&reset), Some(Fault::of_io(io::ErrorKind::ConnectionReset)));
}

/// ENG-1: `Retry-After` of 429 and 503 in both forms, and of no other status.
#[test]
fn eng_1_by_status_reads_retry_after() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
    let wait = |status: u16, value: &str| {
        let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, value.parse().unwrap())]);
        Fault::of_response(StatusCode::from_u16(status).unwrap(), &headers, now).and_then(|f| f.retry_after())
    };
    assert_eq!(wait(503, "120"), Some(secs(120)));
    assert_eq!(wait(429, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(secs(7)));
    assert_eq!(wait(429, "soon"), None);
    assert_eq!(wait(500, "120"), None);
    assert_eq!(wait(200, "120"), None);
}

/// ENG-1: overrides per set of statuses; the first rule that names a status decides.
#[test]
fn eng_1_statuses_can_be_given_another_meaning() {
    let set = |text: &str| text.parse().unwrap();
    let rules = ByStatus
        .success(set("404"))
        .transient(set("200,409,500-599"))
        .permanent(set("500,504,304"))
        .business(set("503"));
    let judge = |status| rules.classify(&response(status));
    assert_eq!(judge(404), None);
    assert!(judge(409).is_some_and(|fault| fault.is_transient() && fault.counts()));
    assert!(judge(200).is_some_and(|fault| fault.is_transient()), "a body may say that it failed");
    assert!(judge(501).is_some_and(|fault| fault.is_transient()));
    assert_eq!(judge(503), Fault::of_http(503), "what is transient already keeps its own fault");
    assert_eq!(judge(500), Fault::of_http(500), "the first rule decides");
    assert!(judge(304).is_some_and(|fault| !fault.is_transient()));
    assert_eq!(judge(410), Fault::of_http(410));

    let rules = ByStatus.permanent(set("503")).business(set("500"));
    let by_reference = &rules;
    let fault = by_reference.classify(&response(503)).unwrap();
    assert!(!fault.is_transient() && fault.counts());
    assert_eq!(by_reference.classify(&response(500)).unwrap().class(), Class::Business);
}

/// ENG-1: errors behind a pointer, and a response of one's own.
#[test]
fn eng_1_other_errors_and_other_responses_fit() {
    struct Mine(HeaderMap);
    impl HttpResponse for Mine {
        fn status(&self) -> StatusCode {
            StatusCode::BAD_GATEWAY
        }

        fn headers(&self) -> &HeaderMap {
            &self.0
        }
    }
    let by = ByStatus.errors_by(Dynamic);
    assert_eq!(by.classify(&anyhow::Ok(Mine(HeaderMap::new()))), Fault::of_http(502));
    let refused: anyhow::Result<Mine> = Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
    assert_eq!(by.classify(&refused), Some(Fault::of_io(io::ErrorKind::ConnectionRefused)));
}
