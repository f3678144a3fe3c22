//! The filter and the action of a bulk operation in columns.

use seawall_hub_core::domain::dead_letter::{Fingerprint, LetterFilter, LetterState, Visibility};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId};
use seawall_hub_core::domain::operation::{BulkAction, ReplayMode, ReplayPlan};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::{Value, json};

use super::UnreadableValue;

/// Encodes a filter for the store.
pub(crate) fn filter_to_text(filter: &LetterFilter) -> String {
    let names =
        |services: &Vec<Slug>| services.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
    json!({
        "service": filter.service.as_ref().map(Slug::as_str), "rule": filter.rule.as_ref().map(Slug::as_str),
        "event": filter.event, "reason": filter.reason.map(DeadLetterReason::word), "status": filter.status,
        "group": filter.group.map(|group| group.to_string()),
        "standings": filter.states.iter().map(|state| state.word()).collect::<Vec<_>>(),
        "since": filter.since.map(|since| since.0), "before": filter.before.map(|before| before.0), "upTo": filter.up_to,
        "text": filter.text, "ids": filter.ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "services": filter.within.services.as_ref().map(names), "sources": filter.within.sources,
    })
    .to_string()
}

/// Decodes a filter. What this version does not know is an error: leaving it out would match more than was asked for.
pub(crate) fn filter_from_text(text: &str) -> Result<LetterFilter, UnreadableValue> {
    let filter = serde_json::from_str(text).ok().and_then(|stored| filter_from_json(&stored));
    filter.ok_or_else(|| UnreadableValue::new("filter of dead letters", text))
}

fn filter_from_json(stored: &Value) -> Option<LetterFilter> {
    /// Reads an optional field. An absent one is `None`, and an unreadable one is an error.
    fn read<T>(value: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
        if value.is_null() { Some(None) } else { read(value).map(Some) }
    }
    fn all<T>(value: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        value.as_array()?.iter().map(one).collect()
    }
    let slug = |value: &Value| Slug::new(value.as_str()?).ok();
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let state =
        |value: &Value| LetterState::ALL.into_iter().find(|state| Some(state.word()) == value.as_str());
    Some(LetterFilter {
        service: read(&stored["service"], slug)?,
        rule: read(&stored["rule"], slug)?,
        event: read(&stored["event"], text)?,
        reason: read(&stored["reason"], |word| DeadLetterReason::from_word(word.as_str()?))?,
        status: read(&stored["status"], |status| u16::try_from(status.as_u64()?).ok())?,
        group: read(&stored["group"], |group| Fingerprint::parse(group.as_str()?))?,
        states: all(&stored["standings"], state)?,
        since: read(&stored["since"], |since| since.as_i64().map(Millis))?,
        before: read(&stored["before"], |before| before.as_i64().map(Millis))?,
        up_to: read(&stored["upTo"], Value::as_u64)?,
        text: read(&stored["text"], text)?,
        ids: all(&stored["ids"], |id| DeliveryId::parse(id.as_str()?))?,
        except: Vec::new(),
        within: Visibility {
            services: read(&stored["services"], |services| all(services, slug))?,
            sources: read(&stored["sources"], |sources| all(sources, text))?,
        },
    })
}

/// Encodes an action: its number, and its plan if it has one.
pub(crate) fn bulk_action_to_row(action: &BulkAction) -> (i64, Option<String>) {
    let number = match action {
        BulkAction::Replay(ReplayPlan { mode, rate, canary }) => {
            let plan = json!({"same": *mode == ReplayMode::Same, "rate": rate, "canary": canary});
            return (0, Some(plan.to_string()));
        }
        BulkAction::Delete => 1,
        BulkAction::Restore => 2,
        BulkAction::Park => 3,
        BulkAction::Unpark => 4,
        BulkAction::Purge => 5,
    };
    (number, None)
}

/// Decodes an action.
pub(crate) fn bulk_action_from_row(number: i64, plan: Option<&str>) -> Result<BulkAction, UnreadableValue> {
    read_bulk_action(number, plan).ok_or_else(|| {
        UnreadableValue::new("bulk action", format_args!("{number} {}", plan.unwrap_or_default()))
    })
}

fn read_bulk_action(number: i64, plan: Option<&str>) -> Option<BulkAction> {
    Some(match number {
        0 => {
            let plan: Value = serde_json::from_str(plan?).ok()?;
            let count = |count: &Value| u32::try_from(count.as_u64()?).ok();
            BulkAction::Replay(ReplayPlan {
                mode: if plan["same"].as_bool()? { ReplayMode::Same } else { ReplayMode::Render },
                rate: count(&plan["rate"])?,
                canary: plan["canary"].as_array()?.iter().map(count).collect::<Option<_>>()?,
            })
        }
        1 => BulkAction::Delete,
        2 => BulkAction::Restore,
        3 => BulkAction::Park,
        4 => BulkAction::Unpark,
        5 => BulkAction::Purge,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: a stored filter comes back whole, and one that can't be read does not match everything.
    #[test]
    fn hub_6_a_filter_comes_back_whole() {
        let slug = |name| Slug::new(name).ok();
        let whole = LetterFilter {
            service: slug("billing"),
            rule: slug("invoices"),
            event: Some("evt \"1\"".into()),
            reason: Some(DeadLetterReason::Refused),
            status: Some(422),
            group: Some(Fingerprint(7)),
            states: vec![LetterState::Open, LetterState::Parked],
            since: Some(Millis(1)),
            before: Some(Millis(2)),
            up_to: Some(3),
            text: Some("no stock".into()),
            ids: vec![DeliveryId::new(1, 2)],
            except: Vec::new(),
            within: Visibility {
                services: Some(vec![Slug::new("billing").unwrap()]),
                sources: Some(vec!["shop".into()]),
            },
        };
        assert_eq!(filter_from_text(&filter_to_text(&whole)), Ok(whole));
        let empty = LetterFilter::default();
        assert_eq!(filter_from_text(&filter_to_text(&empty)), Ok(empty));
        assert!(filter_from_text(r#"{"standings":["odd"],"ids":[]}"#).is_err());
        assert!(filter_from_text("{}").is_err());
        let task = BulkAction::Replay(ReplayPlan { mode: ReplayMode::Same, rate: 7, canary: vec![1, 10] });
        let (number, plan) = bulk_action_to_row(&task);
        assert_eq!(bulk_action_from_row(number, plan.as_deref()), Ok(task));
        assert!(bulk_action_from_row(9, None).is_err());
    }
}
