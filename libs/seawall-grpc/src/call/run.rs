//! Sends attempts, waits for them, and asks the machine what follows.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, request};
use seawall::Fault;
use seawall::fault::Grpc;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::{Code, Status};
use tower_service::Service;

use super::attempt::{Answer, BoxError, Flight, Outcome, judge};
use super::record::CallRecord;
use super::response::RpcBody;
use crate::fault::{CallFailure, TransportError, of_code};
use crate::policy::{Due, Failure, Machine, Reason, Step};
use crate::replay::Replay;
use crate::timeout;

/// How many attempts came before: for the server in a request, for the caller in a response.
const PREVIOUS: &str = "grpc-previous-rpc-attempts";
const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static(PREVIOUS);

/// What the call waits for.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for one step, and a box would cost every call an allocation"
)]
enum Event {
    Ended(Flight, Answer),
    /// The request outgrew the buffer, and this attempt is the one that goes on.
    Outgrown(u32),
    /// The caller's stream ended with an error, or has a message that is too large.
    Broken,
    Due,
    Deadline,
}

/// What an attempt that failed came with.
type Given = Result<Response<Body>, (TransportError, BoxError)>;

/// One call on its way.
struct Run<S> {
    service: S,
    head: request::Parts,
    replay: Replay,
    record: CallRecord,
    machine: Machine,
    flights: Vec<Flight>,
    sent: u32,
    /// Measured from the beginning of the call.
    deadline: Option<Duration>,
    /// When it wakes, and the timer that does it.
    timer: Option<(Duration, Pin<Box<Sleep>>)>,
    is_outgrown: bool,
    /// What the last attempt failed with, for the status of a call whose deadline passes.
    last: Option<Code>,
}

/// Makes the call: `timeout` is the time that it has.
pub(crate) async fn run<S, B>(
    service: S,
    request: Request<Body>,
    record: CallRecord,
    timeout: Option<Duration>,
) -> Result<Response<Body>, Status>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = request.into_parts();
    head.headers.remove(PREVIOUS_ATTEMPTS);
    let (config, limits) = (record.config(), record.limits().clone());
    let mut run = Run {
        replay: Replay::new(body, config.max_request_message_bytes, limits),
        machine: Machine::start(record.policy()),
        service,
        head,
        record,
        flights: Vec::with_capacity(1),
        sent: 0,
        deadline: timeout,
        timer: None,
        is_outgrown: false,
        last: None,
    };
    if timeout == Some(Duration::ZERO) {
        return Err(run.out_of_time());
    }
    run.send();
    loop {
        let event = poll_fn(|cx| run.poll(cx)).await;
        if let Some(result) = run.handle(event) {
            return result;
        }
    }
}

impl<S, B> Run<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Sends an attempt.
    fn send(&mut self) {
        let previous = self.machine.attempts().saturating_sub(1);
        self.sent += 1;
        let mut head = self.head.clone();
        if previous > 0 {
            head.headers.insert(PREVIOUS_ATTEMPTS, HeaderValue::from(previous));
        }
        if let Some(deadline) = self.deadline {
            timeout::write(&mut head.headers, deadline.saturating_sub(self.record.elapsed()));
        }
        let (body, guard) = self.replay.body(self.sent);
        let request = Request::from_parts(head, body);
        let span = self.record.attempt(previous + 1);
        self.flights.push(Flight::start(self.service.clone(), request, guard, (self.sent, previous), span));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        match self.replay.look(cx) {
            (_, true) => return Poll::Ready(Event::Broken),
            (Some(winner), _) if !self.is_outgrown => return Poll::Ready(Event::Outgrown(winner)),
            _ => {}
        }
        for index in 0..self.flights.len() {
            if let Poll::Ready(answer) = self.flights[index].poll(cx) {
                return Poll::Ready(Event::Ended(self.flights.swap_remove(index), answer));
            }
        }
        self.poll_timer(cx)
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let (wakes_at, deadline) = (self.machine.wakes_at(), self.deadline);
        let Some(at) = wakes_at.into_iter().chain(deadline).min() else { return Poll::Pending };
        loop {
            let now = self.record.elapsed();
            if now >= at {
                let is_due =
                    wakes_at.is_some_and(|wakes_at| wakes_at <= now) && deadline.is_none_or(|end| end > now);
                return Poll::Ready(if is_due { Event::Due } else { Event::Deadline });
            }
            let (_, sleep) = match &mut self.timer {
                Some(timer) if timer.0 == at => timer,
                timer => timer.insert((at, Box::pin(tokio::time::sleep(at - now)))),
            };
            std::task::ready!(sleep.as_mut().poll(cx));
            // The timer and the clock may differ by less than its step.
            self.timer = None;
        }
    }

    fn handle(&mut self, event: Event) -> Option<Result<Response<Body>, Status>> {
        match event {
            Event::Due => self.due(),
            Event::Deadline => return Some(Err(self.out_of_time())),
            Event::Outgrown(winner) => self.outgrown(winner),
            Event::Broken => return self.broken().map(Err),
            Event::Ended(flight, answer) => return self.ended(flight, answer),
        }
        None
    }

    /// The request can't be sent, by any attempt.
    fn broken(&mut self) -> Option<Status> {
        let status = self.replay.broken(self.machine.attempts())?;
        self.flights.clear();
        self.record.failed(status.code(), None);
        Some(status)
    }

    /// The request outgrew the buffer: only this attempt goes on.
    fn outgrown(&mut self, winner: u32) {
        if !std::mem::replace(&mut self.is_outgrown, true) {
            self.flights.retain(|flight| flight.number == winner);
            self.machine.commit();
            self.record.outgrown();
        }
    }

    fn due(&mut self) {
        loop {
            let now = self.record.elapsed();
            match self.machine.due(self.record.policy(), now, self.record.tokens().has_enough()) {
                Due::Nothing => return,
                Due::Throttled => self.record.throttled(self.last),
                Due::Resend => self.send(),
                Due::Send => {
                    self.record.next_attempt(self.machine.attempts());
                    self.send();
                }
            }
        }
    }

    fn ended(&mut self, mut flight: Flight, answer: Answer) -> Option<Result<Response<Body>, Status>> {
        let outcome = judge(answer);
        let is_response = matches!(outcome, Outcome::Committed(_));
        // The request may have outgrown the buffer since the last poll. Then the call is committed before the attempt is judged,
        // and what another attempt answers to a request that broke off is not for the caller.
        let committed = if is_response {
            Some(self.replay.commit(flight.number))
        } else {
            self.replay.end(flight.number)
        };
        if let Some(winner) = committed.filter(|winner| !is_response || *winner != flight.number) {
            self.outgrown(winner);
            if winner != flight.number {
                return None;
            }
        }
        let (failure, given) = match outcome {
            Outcome::Committed(response) => return Some(Ok(self.commit(flight, response))),
            Outcome::Empty(response) => {
                flight.span.end(Code::Ok);
                self.record.finish(Code::Ok);
                return Some(Ok(self.marked(&flight, response)));
            }
            Outcome::Refused(failure, response) => (failure, Ok(response)),
            Outcome::Broken(failure, judged, error) => (failure, Err((judged, error))),
        };
        let code = Code::from_i32(failure.code);
        flight.span.end(code);
        if let Some(status) = self.broken() {
            return Some(Err(status));
        }
        self.last = Some(code);
        let reason = match self.next_step(failure) {
            Step::Resend => {
                self.send();
                return None;
            }
            Step::Send => {
                self.record.next_attempt(self.machine.attempts());
                self.send();
                return None;
            }
            Step::Wait if !self.waits_too_long() => return None,
            Step::Wait => Reason::Exhausted,
            Step::Return(reason) => reason,
        };
        self.record.given_up(code, reason);
        self.flights.clear();
        Some(self.give_back(&flight, code, given))
    }

    /// The failure as the caller gets it.
    fn give_back(&mut self, flight: &Flight, code: Code, given: Given) -> Result<Response<Body>, Status> {
        let attempts = self.machine.attempts();
        let mut status = match given {
            Ok(response) if response.headers().contains_key("grpc-status") => {
                self.record.failed(code, None);
                return Ok(self.marked(flight, response));
            }
            // What follows is no message of gRPC, and nobody knows when it ends.
            Ok(response) => {
                self.record.failed(code, None);
                let message =
                    format!("the response is not one of gRPC, but has the HTTP status {}", response.status());
                CallFailure::status(code, message, of_code(code), attempts, None)
            }
            Err((judged, error)) => {
                self.record.failed(code, Some(&*error));
                let message = format!("the connection failed: {}", chain(&*error));
                CallFailure::status(code, message, judged.fault(), attempts, Some(error))
            }
        };
        if flight.previous > 0 {
            status.metadata_mut().insert(PREVIOUS, flight.previous.into());
        }
        Err(status)
    }

    /// What the machine says after a failure. Tokens are taken only for what the server's application may have seen.
    fn next_step(&mut self, failure: Failure) -> Step {
        let (now, chance) = (self.record.elapsed(), self.record.chance());
        let waits = self.record.config().wait_for_ready;
        if let Some(step) = self.machine.resend(failure, now, waits, chance) {
            self.record.resends(failure, self.machine.wakes_at().map(|at| at.saturating_sub(now)));
            return step;
        }
        self.record.pushed_back(failure.pushback);
        let has_tokens = self.record.count(failure);
        let step = self.machine.failed(self.record.policy(), failure, now, has_tokens, chance);
        if let (Step::Wait, Some(at)) = (step, self.machine.retries_at()) {
            let wait = at.saturating_sub(now);
            self.record.retries(Code::from_i32(failure.code), self.machine.attempts() + 1, wait);
        }
        step
    }

    /// Nothing is in flight, and the next attempt would come after the deadline: waiting for it would help nobody.
    fn waits_too_long(&self) -> bool {
        self.machine.retries_at().zip(self.deadline).is_some_and(|(next, deadline)| next >= deadline)
    }

    /// The headers of a response are here: the other attempts end, and the rest of this one belongs to the caller.
    fn commit(&mut self, flight: Flight, response: Response<Body>) -> Response<Body> {
        self.flights.clear();
        let response = self.marked(&flight, response);
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.record.elapsed()));
        let (replay, record) = (self.replay.clone(), self.record.take());
        flight.request.keep();
        response.map(|body| Body::new(RpcBody::new(body, flight.span, replay, record, left)))
    }

    /// The response with the number of attempts before the one that it answers.
    fn marked(&self, flight: &Flight, mut response: Response<Body>) -> Response<Body> {
        response.headers_mut().remove(PREVIOUS_ATTEMPTS);
        if flight.previous > 0 {
            response.headers_mut().insert(PREVIOUS_ATTEMPTS, HeaderValue::from(flight.previous));
        }
        response
    }

    fn out_of_time(&mut self) -> Status {
        self.flights.clear();
        let message = match self.last {
            Some(code) => format!("the deadline passed; the last attempt failed with {code:?}"),
            None => "the deadline passed".to_owned(),
        };
        self.record.failed(Code::DeadlineExceeded, None);
        deadline_exceeded(message, self.machine.attempts())
    }
}

/// The status of a call whose deadline passed.
pub(super) fn deadline_exceeded(message: String, attempts: u32) -> Status {
    let code = seawall::fault::Code::Grpc(Grpc::DeadlineExceeded);
    CallFailure::status(Code::DeadlineExceeded, message, Fault::timeout().code(code), attempts, None)
}

/// An error with its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
