//! The texts of an attempt: the request line with its headers, and the headers of the response.

use seawall_dist::deadletter::SentRequest;
use serde_json::json;

use super::UnreadableValue;

type Headers = Vec<(String, String)>;

pub(crate) fn headers_to_text(headers: &[(String, String)]) -> String {
    json!(headers).to_string()
}

pub(crate) fn headers_from_text(text: &str) -> Result<Headers, UnreadableValue> {
    serde_json::from_str(text).map_err(|_| UnreadableValue::new("list of headers", text))
}

/// Encodes a request as it was sent.
pub(crate) fn sent_to_text(sent: &SentRequest) -> String {
    json!([sent.line, sent.headers]).to_string()
}

/// Decodes a request as it was sent.
pub(crate) fn sent_from_text(text: &str) -> Result<SentRequest, UnreadableValue> {
    let sent: Result<(String, Headers), _> = serde_json::from_str(text);
    let (line, headers) = sent.map_err(|_| UnreadableValue::new("sent request", text))?;
    Ok(SentRequest { line, headers })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-8: the texts of an attempt are those of the first version, and come back whole.
    #[test]
    fn hub_8_the_texts_of_an_attempt_come_back_whole() {
        let headers = vec![("accept".to_owned(), "a \"b\"".to_owned())];
        assert_eq!(headers_to_text(&headers), r#"[["accept","a \"b\""]]"#);
        assert_eq!(headers_from_text(&headers_to_text(&headers)), Ok(headers.clone()));
        let sent = SentRequest { line: "POST /".into(), headers };
        assert_eq!(sent_to_text(&sent), r#"["POST /",[["accept","a \"b\""]]]"#);
        assert_eq!(sent_from_text(&sent_to_text(&sent)), Ok(sent));
        assert!(headers_from_text(r#"["accept"]"#).is_err());
        assert!(sent_from_text("[]").is_err());
    }
}
