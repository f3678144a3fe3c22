//! Tests of the binary mode.

use super::*;

const NEEDED: [(&str, &str); 4] = [
    ("ce-specversion", "1.0"),
    ("ce-type", "com.shop.order.placed"),
    ("ce-id", "e-1"),
    ("ce-source", "/shops/7"),
];

fn sent(more: &[(&str, &str)], body: &[u8]) -> Result<Vec<CloudEvent>, CloudEventError> {
    request(&[&NEEDED[..], more].concat(), body)
}

/// The data of a body of this type.
fn data(kind: &str, body: &[u8]) -> (Value, Option<String>) {
    let event = one(sent(&[("content-type", kind)], body));
    assert_eq!(event.datacontenttype.as_deref(), Some(kind));
    (event.data, event.data_base64)
}

/// HUB-3: attributes are headers, `content-type` is that of the data, and other headers are none of it.
#[test]
fn hub_3_a_binary_event_is_read_whole() {
    let more = [
        ("ce-time", "2026-04-05T03:56:24+02:00"),
        ("ce-subject", "A-7"),
        ("ce-dataschema", "urn:shop:order"),
        ("ce-traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("ce-shard", "5"),
        ("traceparent", "another one, of the request"),
        ("content-type", "application/json; charset=utf-8"),
    ];
    let expected = CloudEvent {
        id: "e-1".into(),
        kind: "com.shop.order.placed".into(),
        source: "/shops/7".into(),
        time: Some("2026-04-05T03:56:24+02:00".into()),
        subject: Some("A-7".into()),
        dataschema: Some("urn:shop:order".into()),
        datacontenttype: Some("application/json; charset=utf-8".into()),
        extensions: vec![
            ("shard".into(), json!("5")),
            ("traceparent".into(), json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
        ],
        data: json!({"total": 120.5}),
        data_base64: None,
    };
    assert_eq!(one(sent(&more, br#"{"total": 120.5}"#)), expected);
}

/// HUB-3: what becomes of the body: JSON, a text, or bytes.
#[test]
fn hub_3_the_type_says_what_the_body_becomes() {
    assert_eq!(data("application/json", b"[1]"), (json!([1]), None));
    assert_eq!(data("application/vnd.shop+JSON;v=2", b"\"text\""), (json!("text"), None));
    assert_eq!(data("text/plain", "gr\u{f6}\u{df}e".as_bytes()), (json!("gr\u{f6}\u{df}e"), None));
    assert_eq!(data("text/xml; charset=UTF-8", b"<a/>"), (json!("<a/>"), None));
    let bytes = |text: &str| (Value::Null, Some(text.to_owned()));
    assert_eq!(data("text/plain; charset=iso-8859-1", b"gr\xf6\xdfe"), bytes("Z3L232U="));
    assert_eq!(
        data("text/plain; charset=utf-16le", b"a\0"),
        bytes("YQA="),
        "although it would pass for UTF-8"
    );
    assert_eq!(
        data("text/plain", b"gr\xf6\xdfe"),
        bytes("Z3L232U="),
        "it says too little, and nothing is lost"
    );
    assert_eq!(data("application/xml", b"<a/>"), bytes("PGEvPg=="));
    assert_eq!(data("application/octet-stream", &[0, 255]), bytes("AP8="));
    for kind in ["application/json", "text/plain", "application/octet-stream"] {
        assert_eq!(data(kind, b""), (Value::Null, None), "an empty body is no data");
    }
    // Python's SDK sends JSON without a type.
    for (body, data, data_base64) in [
        (&br#"{"a":[1]}"#[..], json!({"a": [1]}), None),
        (b"{", Value::Null, Some("ew==")),
        (b"<a/>", Value::Null, Some("PGEvPg==")),
        (&[0, 255], Value::Null, Some("AP8=")),
    ] {
        let untyped = one(sent(&[], body));
        assert_eq!((untyped.datacontenttype, untyped.data), (None, data));
        assert_eq!(untyped.data_base64.as_deref(), data_base64, "what is no JSON is kept as it came");
    }
    let broken = mistakes(sent(&[("content-type", "application/json")], b"{"));
    assert!(broken[0].starts_with("data: the body is not valid JSON: EOF"), "{broken:?}");
    let twice = mistakes(sent(&[("content-type", "application/json")], br#"{"a":1,"a":2}"#));
    assert_eq!(twice, ["data: the body is not valid JSON: duplicate field in an object"]);
}

/// HUB-3: values are decoded once, from quotes and then from percent signs, as the binding says.
#[test]
fn hub_3_values_of_headers_are_decoded_once() {
    for (written, meant) in [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro \u{20ac} \u{1f600}"),
        ("%e2%82%ac", "\u{20ac}"),
        ("%41%2D", "A-"),
        ("%2541", "%41"),
        ("plain text", "plain text"),
        ("\"in quotes\"", "in quotes"),
        ("\"a \\\"b\\\" \\\\ c%20d\"", "a \"b\" \\ c d"),
        ("a\\b", "a\\b"),
        ("%22", "\""),
    ] {
        assert_eq!(one(sent(&[("ce-subject", written)], b"")).subject.as_deref(), Some(meant), "{written}");
    }
    let percent = "a percent sign must be followed by two hexadecimal digits";
    for (written, reason) in [
        ("%C0%A0", "what its percent signs stand for is not in UTF-8"),
        ("%ff", "what its percent signs stand for is not in UTF-8"),
        ("100%", percent),
        ("%4", percent),
        ("%zz", percent),
        ("%+1", percent),
        ("\"open", "a double quote is not closed"),
        ("\"open\\\"", "a double quote is not closed"),
        ("\"open\\", "a double quote is not closed"),
        ("%00", "must not contain characters that attributes may not have, such as control characters"),
        ("gr\u{f6}\u{df}e", "must consist of visible ASCII characters; percent-encode others"),
        ("", "must not be empty"),
    ] {
        assert_eq!(
            mistakes(sent(&[("ce-subject", written)], b"")),
            [format!("ce-subject: {reason}")],
            "{written}"
        );
    }
}

/// HUB-3: every mistake at once, by the names of the headers; a header that can't be read is not also missing.
#[test]
fn hub_3_mistakes_name_their_headers() {
    let wrong = [
        ("ce-specversion", "1.0"),
        ("ce-id", "%"),
        ("ce-source", "/a"),
        ("ce-source", "/b"),
        ("ce-time", "now"),
        ("ce-datacontenttype", "text/plain"),
        ("ce-data", "x"),
        ("ce-my-shard", "1"),
        ("ce-", "1"),
        ("content-type", "nonsense"),
    ];
    let mut said = mistakes(request(&wrong, b"body"));
    said.sort();
    assert_eq!(
        said,
        [
            "ce-: the name of an attribute must consist of lower-case letters and digits",
            "ce-data: `data` is no attribute; in this mode it is the body",
            "ce-datacontenttype: in this mode it is the header `content-type`",
            "ce-id: a percent sign must be followed by two hexadecimal digits",
            "ce-my-shard: the name of an attribute must consist of lower-case letters and digits",
            "ce-source: it stands more than once",
            "ce-time: must be a time by RFC 3339, such as `2026-01-31T12:00:00Z`",
            "ce-type: required",
            "content-type: must be a media type",
        ]
    );
    let twice = [("content-type", "text/plain"), ("content-type", "application/json")];
    assert_eq!(mistakes(sent(&twice, b"1")), ["content-type: it stands more than once"]);
    assert_eq!(
        mistakes(sent(&[("ce-specversion", "1.0")], b"")),
        ["ce-specversion: it stands more than once"]
    );
}
