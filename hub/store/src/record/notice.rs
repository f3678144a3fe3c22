//! The notices of an incident as a text.

use seawall_hub_core::domain::alert::{Notice, NoticeKind, NoticeState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::{Value, json};

use super::UnreadableValue;

/// Encodes the notices of an incident.
pub(crate) fn notices_to_text(notices: &[Notice]) -> String {
    Value::from(notices.iter().map(notice_to_json).collect::<Vec<_>>()).to_string()
}

/// Decodes the notices of an incident.
pub(crate) fn notices_from_text(text: &str) -> Result<Vec<Notice>, UnreadableValue> {
    let notices: Option<Value> = serde_json::from_str(text).ok();
    let notices = notices.as_ref().and_then(Value::as_array);
    let notices = notices.and_then(|notices| notices.iter().map(notice_from_json).collect());
    notices.ok_or_else(|| UnreadableValue::new("list of notices", text))
}

pub(super) fn notice_to_json(notice: &Notice) -> Value {
    let Notice { channel, turn, made, state, tries, error } = notice;
    let (word, at) = match state {
        NoticeState::Waiting { due } => ("waiting", Some(due.0)),
        NoticeState::Sent { at } => ("sent", Some(at.0)),
        NoticeState::Dropped => ("dropped", None),
    };
    json!([channel.as_str(), turn.word(), made.0, word, at, tries, error])
}

pub(super) fn notice_from_json(json: &Value) -> Option<Notice> {
    let at = || json[4].as_i64().map(Millis);
    Some(Notice {
        channel: Slug::new(json[0].as_str()?).ok()?,
        turn: NoticeKind::from_word(json[1].as_str()?)?,
        made: Millis(json[2].as_i64()?),
        state: match json[3].as_str()? {
            "waiting" => NoticeState::Waiting { due: at()? },
            "sent" => NoticeState::Sent { at: at()? },
            "dropped" => NoticeState::Dropped,
            _ => return None,
        },
        tries: u32::try_from(json[5].as_u64()?).ok()?,
        error: json[6].as_str().map(ToOwned::to_owned),
    })
}
