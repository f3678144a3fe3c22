use super::*;

fn span(id: u64) -> Span {
    let trace = TraceId::of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    Span::new(trace, id, "x", SpanKind::Client)
}

/// OBS-3: a collector that takes nothing costs a bounded number of spans, and nobody waits.
#[test]
fn obs_3_spans_that_nobody_takes_are_dropped() {
    let queue = SpanQueue::new(Clock::system());
    for number in 0..SPANS_MAX as u64 + 10 {
        queue.put(span(number));
    }
    assert_eq!(queue.take(usize::MAX).len(), SPANS_MAX);
    queue.put(span(1));
    assert_eq!(queue.take(10), [span(1)]);
}

/// OBS-3: a span in the form of OTLP: ids in hexadecimal digits, times and whole numbers as texts.
#[test]
fn obs_3_a_span_is_written_as_otlp_has_it() {
    let mut one = span(0xab);
    (one.parent, one.link, one.began, one.ended) = (Some(2), Some(3), 1_700_000_000_000_000_001, 4);
    one.number("http.response.status_code", 503);
    one.error = Some("down".into());
    let body = export::body(&[one]);
    let written = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(
        *written,
        serde_json::json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00000000000000ab", "parentSpanId": "0000000000000002",
            "name": "x", "kind": 3, "startTimeUnixNano": "1700000000000000001", "endTimeUnixNano": "4",
            "attributes": [{"key": "http.response.status_code", "value": {"intValue": "503"}}],
            "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "0000000000000003"}],
            "status": {"code": 2, "message": "down"},
        })
    );
}

/// OBS-3: what is dropped before it ended is told, and not lost.
#[test]
fn obs_3_a_span_that_is_given_up_is_told() {
    let queue = Arc::new(SpanQueue::new(Clock::system()));
    drop(OpenSpan { queue: queue.clone(), span: Some(span(1)) });
    assert!(queue.take(1)[0].error.as_ref().is_some_and(|error| error.contains("abandoned")));
    Box::new(OpenSpan { queue: queue.clone(), span: Some(span(1)) }).forget();
    assert!(queue.take(1).is_empty());
}
