//! The few words of SMTP that it takes to hand in a mail.
//!
//! # Why not a library?
//! The one that is kept well brings some thirty crates, and its own way to TLS: a connection of ours could be handed to it, but
//! STARTTLS on it would believe other authorities than the hub's client does. What is needed is a dozen commands, each with one
//! answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_http::{HttpClient, Secret, Socket, Tls};
use seawall_hub_core::port::notify::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::mail::mail;
use super::settings::{EmailSettings, TlsMode};
use crate::transport::explained;

/// An answer is no longer.
const ANSWER_MAX: usize = 16 * 1024;

/// Hands in a mail, and says what the server said.
pub(super) async fn tell(
    client: &HttpClient,
    email: &EmailSettings,
    message: &Message,
) -> Result<String, String> {
    let tls = match &email.ca {
        Some(ca) => Some(Tls::mozilla().root_pem(ca.as_bytes()).map_err(|error| error.to_string())?),
        None => None,
    };
    let socket = client.connect(&email.host, email.port).await.map_err(|error| explained(&error))?;
    let socket = match email.tls {
        TlsMode::Implicit => socket.secure(tls.as_ref()).await.map_err(|error| explained(&error))?,
        TlsMode::StartTls | TlsMode::None => socket,
    };
    let mut talk = SmtpSession { socket, heard: Vec::new() };
    talk.answer("the greeting", "2").await?;
    let own_name = email.from.split_once('@').map_or("localhost", |(_, host)| host);
    let mut offers = talk.hello(own_name).await?;
    if email.tls == TlsMode::StartTls {
        if !offered(&offers, "STARTTLS") {
            return Err("it does not offer STARTTLS, so nothing was sent".into());
        }
        talk.say("STARTTLS", "STARTTLS", "2").await?;
        talk = talk.secure(tls.as_ref()).await?;
        offers = talk.hello(own_name).await?;
    }
    if let Some((name, password)) = &email.login {
        talk.log_in(&offers, name, password).await?;
    }
    let said = talk.hand_in(email, &mail(email, message)).await?;
    // It has the mail; whether it says good-bye is its own affair.
    let _ = talk.say("QUIT", "QUIT", "2").await;
    Ok(said)
}

/// `AUTH PLAIN` in one go.
pub(super) fn plain(name: &str, password: &Secret) -> String {
    coded(&format!("\0{name}\0{}", password.expose()))
}

pub(super) fn coded(text: &str) -> String {
    STANDARD.encode(text)
}

/// Whether one of the lines of an answer to EHLO begins so.
fn offered(offers: &[String], word: &str) -> bool {
    offers
        .iter()
        .any(|line| line.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case(word)))
}

/// A session with a mail server.
struct SmtpSession {
    socket: Socket,
    /// What has come and was not read yet.
    heard: Vec<u8>,
}

impl SmtpSession {
    async fn hello(&mut self, own_name: &str) -> Result<Vec<String>, String> {
        self.say(&format!("EHLO {own_name}"), "EHLO", "2").await
    }

    async fn secure(self, tls: Option<&Tls>) -> Result<Self, String> {
        // What came before TLS began is from anybody, and must not be taken for what comes after it.
        if !self.heard.is_empty() {
            return Err("it sent unexpected data before TLS began".into());
        }
        let socket = self.socket.secure(tls).await.map_err(|error| explained(&error))?;
        Ok(SmtpSession { socket, heard: Vec::new() })
    }

    async fn log_in(&mut self, offers: &[String], name: &str, password: &Secret) -> Result<(), String> {
        let ways = offers.iter().find(|line| line.to_ascii_uppercase().starts_with("AUTH"));
        let has = |way: &str| {
            ways.is_some_and(|line| line.split([' ', '=']).any(|word| word.eq_ignore_ascii_case(way)))
        };
        if has("PLAIN") {
            self.say(&format!("AUTH PLAIN {}", plain(name, password)), "AUTH", "2").await?;
        } else if has("LOGIN") {
            self.say("AUTH LOGIN", "AUTH", "3").await?;
            self.say(&coded(name), "AUTH", "3").await?;
            self.say(&coded(password.expose()), "AUTH", "2").await?;
        } else {
            return Err("it offers neither AUTH PLAIN nor AUTH LOGIN".into());
        }
        Ok(())
    }

    async fn hand_in(&mut self, email: &EmailSettings, mail: &str) -> Result<String, String> {
        self.say(&format!("MAIL FROM:<{}>", email.from), "MAIL", "2").await?;
        let mut refused = Vec::new();
        for to in &email.to {
            if let Err(why) = self.say(&format!("RCPT TO:<{to}>"), "RCPT", "2").await {
                refused.push(format!("{to}: {why}"));
            }
        }
        // Those who are taken get it: to fail as a whole would send it to them again and again.
        if refused.len() == email.to.len() {
            return Err(refused.join("; "));
        }
        self.say("DATA", "DATA", "3").await?;
        let stuffed = mail.replace("\r\n.", "\r\n..");
        let said = self.say(&format!("{stuffed}."), "the mail", "2").await?;
        let said = said.join(" ");
        Ok(if refused.is_empty() { said } else { format!("{said}; refused: {}", refused.join("; ")) })
    }

    /// Says a line and hears the answer, which has to begin so.
    async fn say(&mut self, line: &str, what: &str, wanted: &str) -> Result<Vec<String>, String> {
        let written = async {
            self.socket.write_all(format!("{line}\r\n").as_bytes()).await?;
            self.socket.flush().await
        };
        written.await.map_err(|error| format!("{what}: {error}"))?;
        self.answer(what, wanted).await
    }

    /// An answer: lines with a code, a hyphen between code and text on all but the last.
    async fn answer(&mut self, what: &str, wanted: &str) -> Result<Vec<String>, String> {
        let (mut lines, mut length) = (Vec::new(), 0);
        loop {
            let line = self.line().await.map_err(|error| format!("{what}: {error}"))?;
            length += line.len();
            if length > ANSWER_MAX {
                return Err(format!("{what}: its answer is too long"));
            }
            let (code, rest) = line.split_at_checked(3).unwrap_or((&line, ""));
            let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
            if !is_code {
                return Err(format!("{what}: its answer is no SMTP"));
            }
            let (more, text) = (rest.starts_with('-'), rest.get(1..).unwrap_or_default());
            lines.push(text.to_owned());
            if !more {
                return if code.starts_with(wanted) {
                    Ok(lines)
                } else {
                    Err(format!("{what}: it said {code} {}", lines.join(" ")))
                };
            }
        }
    }

    async fn line(&mut self) -> std::io::Result<String> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.heard.len() > ANSWER_MAX {
                return Err(std::io::Error::other("its answer is too long"));
            }
            if self.socket.read_buf(&mut self.heard).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
