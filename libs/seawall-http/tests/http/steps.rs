//! Operations of several steps: a request is made, sent, judged and decoded, with one error type.

use seawall::{Attempt, Class, Kind, Ran};
use seawall_http::{BadRequest, Cause, HttpClient, HttpError, Request};

use crate::server::{Server, answer};
use crate::{client, guard};

/// The stock of an article; `None` where there is no such article.
async fn stock(client: &HttpClient, url: &str, attempt: Attempt) -> Result<Option<u32>, HttpError> {
    let request = Request::get(url);
    let answer = client.exchange(&request?, attempt).await?;
    answer.good_or_not_found()?.map(|found| found.json()).transpose()
}

/// ADP-1, ENG-16: a request that can't be made is an error of the exchange, is business and was not sent.
#[tokio::test]
async fn adp_1_a_bad_request_converts_into_the_error_of_the_exchange() {
    let client = client();
    let error =
        guard().idempotent().call(|attempt| stock(&client, "ftp://peer/", attempt)).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Failed, 1, Ran::No));
    assert!(matches!(error.last().unwrap().cause(), Cause::Request(BadRequest::Scheme)));
    assert!(matches!(Cause::from(BadRequest::Url), Cause::Request(BadRequest::Url)));
}

/// ADP-1, ENG-16: what is not there is an answer: no retry and no error; other statuses are judged as ever.
#[tokio::test]
async fn adp_1_not_found_is_an_answer() {
    let server = Server::start(|_, seen| match seen.uri.path() {
        "/known" => answer(200, "7"),
        "/broken" => answer(500, ""),
        "/gone" => answer(410, ""),
        _ => answer(404, ""),
    })
    .await;
    let client = client();
    for (path, expected, sends) in
        [("/known", Some(Some(7)), 1), ("/unknown", Some(None), 1), ("/broken", None, 3), ("/gone", None, 1)]
    {
        let (url, before) = (server.url(path), server.seen().len());
        let result = guard().idempotent().call(|attempt| stock(&client, &url, attempt)).await;
        assert_eq!((result.ok(), server.seen().len() - before), (expected, sends), "{path}");
    }
}

/// ADP-1, ENG-16: an answer that can't be decoded is an error of the same type, not retried, and a fault of the peer.
#[tokio::test]
async fn adp_1_an_answer_that_can_not_be_decoded_is_not_retried() {
    let server = Server::start(|_, _| answer(200, "many")).await;
    let (client, url) = (client(), server.url("/"));
    let error = guard().idempotent().call(|attempt| stock(&client, &url, attempt)).await.unwrap_err();
    assert_eq!((error.kind(), error.ran(), server.seen().len()), (Kind::Failed, Ran::Yes, 1));
    assert_eq!(error.last_fault().class(), Class::Protocol);
    let text = error.last().unwrap().to_string();
    assert!(text.starts_with("the answer can't be decoded: expected value"), "{text}");
}
