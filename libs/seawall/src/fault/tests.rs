use super::*;
use std::time::SystemTime;

/// ENG-1: the table of HTTP statuses.
#[test]
fn eng_1_http_statuses_have_their_class_verdict_and_answer_to_did_it_run() {
    let check = |status: u16, class: Class, verdict: Verdict, ran: Ran| {
        let fault = Fault::of_http(status).expect("a failure");
        assert_eq!((fault.class, fault.verdict, fault.ran), (class, verdict, ran), "status {status}");
    };
    for status in [100, 200, 204, 301, 304, 399] {
        assert_eq!(Fault::of_http(status), None, "status {status}");
    }
    for status in [400, 401, 403, 404, 409, 410, 422, 451] {
        check(status, Class::Business, Verdict::Permanent, Ran::Yes);
    }
    for status in [408, 425] {
        check(status, Class::Protocol, Verdict::Transient, Ran::No);
    }
    check(429, Class::Protocol, Verdict::Throttled, Ran::No);
    check(500, Class::Protocol, Verdict::Transient, Ran::Yes);
    check(502, Class::Protocol, Verdict::Transient, Ran::Unknown);
    check(503, Class::Protocol, Verdict::Throttled, Ran::Yes);
    check(504, Class::Protocol, Verdict::Transient, Ran::Unknown);
    for status in [501, 505] {
        check(status, Class::Protocol, Verdict::Permanent, Ran::Yes);
    }
}

/// ENG-1: a conflict with another caller is tried again, and is no mark against the peer.
#[test]
fn eng_1_a_conflict_is_transient_and_does_not_count() {
    let fault = Fault::conflict();
    assert!(fault.is_transient() && !fault.counts() && fault.did_run() == Ran::No);
    assert_eq!(fault.to_string(), "conflict with another caller");
}

/// ENG-1: the table of gRPC codes, all of them.
#[test]
fn eng_1_grpc_codes_have_their_class_and_verdict() {
    use Grpc::*;
    for code in Grpc::ALL {
        let (class, transient) = match code {
            InvalidArgument | NotFound | AlreadyExists | PermissionDenied | FailedPrecondition
            | OutOfRange | Unauthenticated => (Class::Business, false),
            Unavailable | DeadlineExceeded | ResourceExhausted | Aborted => (Class::Protocol, true),
            Unimplemented | DataLoss | Cancelled => (Class::Protocol, false),
            Internal | Unknown => (Class::System, false),
        };
        let fault = Fault::of_grpc(code);
        assert_eq!((fault.class, fault.is_transient()), (class, transient), "{code}");
        assert_eq!(Grpc::from_number(code as i32), Some(code));
    }
    // It may also mean that an answer was too large, after the work was done.
    assert_eq!(Fault::of_grpc(ResourceExhausted).ran, Ran::Unknown);
    // The peer ran out of time somewhere, as a gateway does that answers 504.
    assert_eq!(Fault::of_grpc(DeadlineExceeded).ran, Ran::Unknown);
    assert_eq!(Grpc::from_number(0), None);
    assert_eq!(Grpc::from_number(99), Some(Unknown));
    assert_eq!(Grpc::from_number(-1), Some(Unknown));
}

/// ENG-1: gRPC's pushback makes a fault throttled, or forbids the retry; it makes nothing retryable.
#[test]
fn eng_1_pushback_is_throttled() {
    let pushed = |code, value| Fault::of_grpc(code).pushback(value);
    let fault = pushed(Grpc::Unavailable, "250");
    assert_eq!((fault.verdict, fault.retry_after()), (Verdict::Throttled, Some(Duration::from_millis(250))));
    assert_eq!(fault.ran, Ran::Unknown);
    for value in ["-1", "soon", ""] {
        assert_eq!(pushed(Grpc::Unavailable, value).verdict, Verdict::Permanent, "{value:?}");
    }
    assert_eq!(pushed(Grpc::InvalidArgument, "250"), Fault::of_grpc(Grpc::InvalidArgument));
}

/// ENG-1: refused credentials are permanent and say what to do.
#[test]
fn eng_1_refused_credentials_ask_for_new_ones() {
    for fault in
        [Fault::of_http(401).unwrap(), Fault::of_http(403).unwrap(), Fault::of_grpc(Grpc::Unauthenticated)]
    {
        assert!(fault.is_unauthorised() && !fault.is_transient() && !fault.counts());
        assert!(fault.to_string().contains("refresh the credentials"), "{fault}");
    }
    assert!(!Fault::of_http(404).unwrap().is_unauthorised());
}

/// ENG-1: the first cause in the chain that we know decides; what nobody knows is never retried.
#[test]
fn eng_1_the_default_classifier_walks_the_causes() {
    #[derive(Debug)]
    struct Wrapped(Option<Box<dyn std::error::Error + 'static>>);
    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("wrapped")
        }
    }
    impl std::error::Error for Wrapped {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.0.as_deref()
        }
    }
    let judge = |error: Wrapped| Causes.classify(&Err::<(), _>(error)).expect("an error is a fault");

    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let nested = Wrapped(Some(Box::new(Wrapped(Some(Box::new(refused))))));
    assert_eq!(judge(nested), Fault::of_io(io::ErrorKind::ConnectionRefused));
    assert_eq!(judge(Wrapped(Some(Box::new(Fault::throttled())))), Fault::throttled());
    assert_eq!(judge(Wrapped(None)), Fault::system());

    let carried = io::Error::other(Fault::business());
    assert_eq!(Causes.classify(&Err::<(), _>(carried)), Some(Fault::business()));
    assert_eq!(Causes.classify(&Ok::<_, io::Error>(1)), None);
}

/// ENG-1: errors behind a pointer are judged the same way.
#[test]
fn eng_1_pointers_to_errors_are_classified_too() {
    let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
    let expected = Some(Fault::of_io(io::ErrorKind::ConnectionReset));
    assert_eq!(
        Dynamic.classify(&Err::<(), anyhow::Error>(anyhow::Error::new(reset()).context("reading"))),
        expected
    );
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(reset());
    assert_eq!(Dynamic.classify(&Err::<(), _>(boxed)), expected);
}

/// ENG-1: whether it ran, by the kind of I/O error.
#[test]
fn eng_1_a_refused_connection_certainly_did_not_run_and_a_reset_one_may_have() {
    assert_eq!(Fault::of_io(io::ErrorKind::ConnectionRefused).ran, Ran::No);
    assert_eq!(Fault::of_io(io::ErrorKind::ConnectionReset).ran, Ran::Unknown);
    assert_eq!(Fault::of_io(io::ErrorKind::BrokenPipe).ran, Ran::Unknown);
    assert_eq!(Fault::of_io(io::ErrorKind::TimedOut).class, Class::Timeout);
    assert_eq!(Fault::of_io(io::ErrorKind::InvalidInput).class, Class::Business);
}

/// ENG-1: `Retry-After` as seconds and as a date, and what is neither.
#[test]
fn eng_1_retry_after_is_read_in_both_forms() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let check = |text: &str, seconds: Option<u64>| {
        assert_eq!(parse_retry_after(text, now), seconds.map(Duration::from_secs), "{text:?}");
    };
    check("0", Some(0));
    check(" 30 ", Some(30));
    check("99999999999999999999999", Some(u64::MAX));
    check("Sun, 06 Nov 1994 08:49:47 GMT", Some(10));
    check("Sun, 06 Nov 1994 08:49:37 GMT", Some(0));
    check("Sunday, 06-Nov-94 08:49:47 GMT", Some(10));
    check("-1", None);
    check("1.5", None);
    check("", None);
    check("tomorrow", None);
}

/// ENG-1: sets of statuses, and the error that a wrong one gives.
#[test]
fn eng_1_status_sets_are_read_and_written() {
    let set: StatusSet = " 429, 500-599 ".parse().unwrap();
    assert_eq!(set.to_string(), "429,500-599");
    assert!(set.contains(429) && set.contains(500) && set.contains(599));
    assert!(!set.contains(428) && !set.contains(499));
    assert_eq!("none".parse(), Ok(StatusSet::none()));
    for wrong in ["", "5xx", "600", "500-", "599-500", "429;500"] {
        let error = wrong.parse::<StatusSet>().unwrap_err().to_string();
        assert!(error.contains("write `429,500-599` or `none`"), "{error}");
    }
}
