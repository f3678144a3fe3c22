//! What stands after the question mark: filters and pages, read by the shape of their type.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::JsonSchema;
use seawall_api::PageQuery;
use seawall_hub_core::encode::decoded_value;
use seawall_hub_core::port::store::{Page, PageRequest};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::ApiError;
use super::fields::unknown;
use super::reader::{integer, problem_of};
use super::shape::{FieldShape, ShapeField, shape_of};
use seawall_api::FieldProblem;

/// The default number of items on a page.
const PAGE_SIZE: usize = 50;

/// The last digits of a token are made of the others, so that a token that no page has given is recognised.
const CHECK_DIGITS: usize = 4;

/// The query of a request, read as a `Q`. A handler with it is not called if the query has a problem.
pub(super) struct QueryInput<Q>(pub(super) Q);

impl<Q, S> FromRequestParts<S> for QueryInput<Q>
where
    Q: DeserializeOwned + JsonSchema + 'static,
    S: Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(QueryInput(read(parts.uri.query())?))
    }
}

/// Reads a query, or finds every problem with it.
pub(crate) fn read<Q: DeserializeOwned + JsonSchema + 'static>(
    query: Option<&str>,
) -> Result<Q, Vec<FieldProblem>> {
    let fields = match &shape_of::<Q, Q>().node {
        FieldShape::Object(fields) => fields.as_slice(),
        _ => &[],
    };
    let mut pairs = pairs_of(query);
    // What the last page calls the next one is empty, and so is what a loop begins with.
    pairs.retain(|(name, value)| name != "page_token" || !value.is_empty());
    let (mut read, mut problems) = (Map::new(), Vec::new());
    let mut wrong = |field: &str, reason| problems.push(FieldProblem { field: field.to_owned(), reason });
    for ShapeField { name, node, .. } in fields {
        let values: Vec<String> =
            pairs.extract_if(.., |(known, _)| known == name).map(|(_, value)| value).collect();
        if !values.is_empty() {
            match parameter(node, values) {
                Ok(value) => drop(read.insert(name.clone(), value)),
                Err(reason) => wrong(name, reason),
            }
        }
    }
    let known: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    for (name, _) in pairs {
        wrong(&name, unknown("parameter", &name, &known.join(", ")));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_json::from_value(Value::Object(read)).map_err(|error| {
        debug_assert!(false, "the schema accepts what the type does not: {error}");
        vec![FieldProblem { field: String::new(), reason: error.to_string() }]
    })
}

/// The value of a parameter, which only a list may have more than once.
fn parameter(node: &FieldShape, mut values: Vec<String>) -> Result<Value, String> {
    match (node, values.pop()) {
        (FieldShape::List { of, .. }, last) => {
            values.into_iter().chain(last).map(|text| value(of, text)).collect()
        }
        (node, Some(text)) if values.is_empty() => value(node, text),
        _ => Err("duplicate parameter".into()),
    }
}

fn value(node: &FieldShape, text: String) -> Result<Value, String> {
    if text.is_empty() {
        // Whoever forgot to fill it in would get everything.
        return Err("must not be empty; omit it for all".into());
    }
    let one_of = |words: &[&str]| match words.contains(&&*text) {
        true => Ok(()),
        false => Err(format!("must be one of {}, not `{text}`", words.join(", "))),
    };
    match node {
        FieldShape::Text { format, longest, .. } => {
            problem_of(&text, format.as_deref(), *longest).map_or(Ok(()), Err)?;
        }
        FieldShape::Words(words) => one_of(&words.iter().map(|word| &**word).collect::<Vec<_>>())?,
        FieldShape::Switch => return one_of(&["true", "false"]).map(|()| (text == "true").into()),
        FieldShape::Integer { least, most } => {
            let number = text.parse().ok().filter(|number| (least..=most).contains(&number));
            return number.map(u64::into).ok_or_else(|| integer(*least, *most));
        }
        _ => {}
    }
    Ok(Value::String(text))
}

/// The page that a query asks for.
pub(super) fn page_of(query: &PageQuery) -> PageRequest {
    let size = query.page_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(PAGE_SIZE);
    PageRequest { from: query.page_token.as_deref().and_then(position), size }
}

/// Checks that a page has given this token.
pub(super) fn check_token(token: &str) -> Result<(), String> {
    position(token).map(drop).ok_or_else(|| "must be the `nextPageToken` of a previous page".to_owned())
}

/// The token of the next page; empty if there is none.
pub(super) fn next_token<T>(page: &Page<T>) -> String {
    page.next.map(token).unwrap_or_default()
}

/// What a page calls the next one.
fn token(position: u64) -> String {
    // Multiplied by a large odd number, neighbours look nothing alike.
    let check = position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    format!("{}{:0>width$}", base_36(position), base_36(check), width = CHECK_DIGITS)
}

/// The other way round; nothing, if it was not written by [`token`].
fn position(text: &str) -> Option<u64> {
    let digits = text.len().checked_sub(CHECK_DIGITS).and_then(|end| text.get(..end))?;
    u64::from_str_radix(digits, 36).ok().filter(|position| token(*position) == text)
}

fn base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(u32::try_from(number % 36).unwrap_or(0), 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Names and values of a query, or of a form.
pub(crate) fn pairs_of(query: Option<&str>) -> Vec<(String, String)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded_value(name), decoded_value(value))
    };
    pairs.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use seawall_api::{DeliveryQuery, DeliveryStateFilter, EventQuery, MetricQuery};

    use super::*;

    fn problems<Q: DeserializeOwned + JsonSchema + 'static>(query: &str) -> Vec<String> {
        let problems = read::<Q>(Some(query)).err().unwrap_or_default();
        problems.into_iter().map(|problem| format!("{}: {}", problem.field, problem.reason)).collect()
    }

    /// API-1: parameters are decoded, and pages are numbered.
    #[test]
    fn api_1_a_query_is_read_as_its_type() {
        let query: EventQuery =
            read(Some("type=order.%2A&source=a+%zz%4&unmatched=true&page_size=7&page_token=zzlugz")).unwrap();
        assert_eq!(query.r#type.unwrap(), "order.*");
        assert_eq!((query.source.as_deref(), query.unmatched), (Some("a %zz%4"), Some(true)));
        assert_eq!(page_of(&query.page), PageRequest { from: Some(35 * 36 + 35), size: 7 });
        let query: DeliveryQuery = read(Some("state=open&page_token=")).unwrap();
        assert_eq!(query.state, Some(DeliveryStateFilter::Open));
        assert_eq!(page_of(&query.page), PageRequest { from: None, size: PAGE_SIZE });
        let query: MetricQuery = read(Some("tag=service:a&tag=rule:b:c")).unwrap();
        assert_eq!(query.tag.unwrap(), ["service:a", "rule:b:c"]);
        assert_eq!(read::<DeliveryQuery>(None).unwrap(), DeliveryQuery::default());
    }

    /// API-2: every problem of a query is reported at once.
    #[test]
    fn api_2_every_problem_of_a_query_is_reported_at_once() {
        let wrong =
            "service=&state=lost&sttae=open&page_size=0&page_token=zzzz&reason=age&reason=gone&rule=A";
        assert_eq!(
            problems::<DeliveryQuery>(wrong),
            [
                "page_size: must be an integer from 1 to 500",
                "page_token: must be the `nextPageToken` of a previous page",
                "reason: duplicate parameter",
                "rule: `A` is not a valid name: must consist of lower-case letters, digits and hyphens",
                "service: must not be empty; omit it for all",
                "state: must be one of pending, inFlight, waiting, held, delivered, deadLettered, open, not `lost`",
                "sttae: unknown parameter, did you mean `state`? Known: event, page_size, page_token, reason, rule, \
                 service, state",
            ]
        );
        assert_eq!(
            problems::<EventQuery>("unmatched=yes&type=a.*.b&page_size=501"),
            [
                "page_size: must be an integer from 1 to 500",
                &*format!("type: {}", crate::http::formats::check("event-pattern", "a.*.b").unwrap_err()),
                "unmatched: must be one of true, false, not `yes`",
            ]
        );
        assert_eq!(
            problems::<MetricQuery>("tag=service"),
            ["tag: must have the form `name:value`, not `service`"]
        );
    }

    /// API-2: a token that no page has given is refused.
    #[test]
    fn api_2_only_a_token_of_a_page_is_accepted() {
        for wrong in ["!", "zzzz", "zzlug0", "Z", "%2B1"] {
            assert_eq!(problems::<PageQuery>(&format!("page_token={wrong}")).len(), 1, "{wrong}");
        }
        for number in [0, 35, 36, 1_295, 1_000_000, u64::MAX] {
            assert_eq!(position(&token(number)), Some(number));
        }
    }
}
