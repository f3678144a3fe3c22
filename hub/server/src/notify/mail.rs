//! A message as a mail.

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_hub_core::domain::alert::NoticeKind;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::notify::Message;

use super::settings::EmailSettings;

/// A subject is no longer: whoever reads it sees a line.
const SUBJECT_MAX: usize = 120;
/// The number of bytes of a subject that fit into one encoded word.
const WORD_BYTES: usize = 42;

/// The whole mail, lines ended by CR and LF.
pub(super) fn mail(email: &EmailSettings, message: &Message) -> String {
    let host = email.from.split_once('@').map_or("localhost", |(_, host)| host);
    let id = |turn| format!("<{}@{host}>", message.incident.message_id(turn));
    let mut headers = vec![
        format!("From: Seawall <{}>", email.from),
        format!("To: {}", email.to.join(",\r\n ")),
        format!("Subject: {}", encoded(&subject(message))),
        format!("Date: {}", date(message.at)),
        format!("Message-ID: {}", id(message.turn)),
    ];
    if message.turn == NoticeKind::Resolved {
        // So that it stands below the one that it ends.
        headers.push(format!("In-Reply-To: {}", id(NoticeKind::Opened)));
        headers.push(format!("References: {}", id(NoticeKind::Opened)));
    }
    headers.extend([
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        "Content-Transfer-Encoding: base64".to_owned(),
    ]);
    let body = STANDARD.encode(text(message));
    let lines: Vec<&str> = (0..body.len()).step_by(76).map(|at| &body[at..body.len().min(at + 76)]).collect();
    format!("{}\r\n\r\n{}\r\n", headers.join("\r\n"), lines.join("\r\n"))
}

fn subject(message: &Message) -> String {
    let incident = &message.incident;
    let word = match (message.test, message.turn) {
        (true, _) => "test",
        (false, NoticeKind::Resolved) => "resolved",
        (false, NoticeKind::Opened) => incident.severity.word(),
    };
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    format!("[Seawall] {word}: {}", incident.summary).chars().map(plain).take(SUBJECT_MAX).collect()
}

/// What people read.
fn text(message: &Message) -> String {
    let incident = &message.incident;
    let about =
        incident.service.as_ref().map_or("the hub itself".to_owned(), |name| format!("service {name}"));
    let mut lines = vec![incident.summary.clone(), String::new()];
    if let (NoticeKind::Resolved, Some(resolved)) = (message.turn, &incident.resolved) {
        lines[0] = format!("Resolved: {}", resolved.because);
        lines.push(format!("What it was:  {}", incident.summary));
        lines.push(format!("Resolved:     {}", resolved.at));
    }
    lines.extend([
        format!("About:        {about}"),
        format!("Rule:         {} ({})", incident.rule, incident.severity.word()),
        format!("Opened:       {}", incident.opened),
        format!("Incident:     {}", incident.id),
        String::new(),
        message.link.clone(),
    ]);
    if message.turn == NoticeKind::Opened && !message.test {
        lines.extend([
            String::new(),
            format!("seawall alerts ack {}", incident.id),
            format!("seawall alerts mute {} --for 2h --reason '…'", incident.id),
        ]);
    }
    lines.join("\r\n") + "\r\n"
}

/// A header's text in ASCII: as it is, or in encoded words.
fn encoded(text: &str) -> String {
    if text.is_ascii() && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        let full = words.last().is_some_and(|word| word.len() + c.len_utf8() > WORD_BYTES);
        if full {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    let words: Vec<String> =
        words.into_iter().map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word))).collect();
    words.join("\r\n ")
}

fn date(at: Millis) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    httpdate::fmt_http_date(time).replace("GMT", "+0000")
}
