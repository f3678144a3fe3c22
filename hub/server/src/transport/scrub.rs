//! What a peer says back of our credentials is not kept.
//!
//! Many peers repeat what they were sent when something is wrong, headers and all. What is kept of an answer would then hold the
//! secret in clear, in the database and wherever it is shown. They repeat it in JSON, in HTML, in an address, or as they have got
//! it, in base 64; so a text is read as all of these at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use seawall_hub_core::encode::hex;

use super::spelling::{SECRET_PART_MIN, Spelling, spelled};

/// Shorter secrets would be found everywhere.
const SECRET_MIN: usize = SECRET_PART_MIN;
const HIDDEN: &[u8] = "…".as_bytes();

/// Secrets, ready to be looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Vec<(Vec<u8>, Spelling)>);

impl Secrets {
    /// All of these, in every spelling.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = secrets.into_iter().map(str::as_bytes).filter(|secret| secret.len() >= SECRET_MIN);
        let needles = secrets.flat_map(|secret| {
            let plain = [(secret.to_vec(), Spelling::Text), (hex(secret).into_bytes(), Spelling::Hex)];
            let encoded = (0..3).map(|before| (within_base64(secret, before), Spelling::Base64));
            plain.into_iter().chain(encoded)
        });
        Secrets(needles.collect())
    }

    /// The same bytes with every secret hidden.
    pub(crate) fn hidden_in(&self, text: &[u8]) -> Vec<u8> {
        let mut out = text.to_vec();
        for (needle, spelling) in &self.0 {
            // Nearly always there is none, and nothing is copied.
            if let Some(hidden) = without(&out, needle, *spelling) {
                out = hidden;
            }
        }
        out
    }

    /// The same headers with every secret in their values hidden.
    pub(crate) fn hidden_in_headers(&self, headers: Vec<(String, String)>) -> Vec<(String, String)> {
        let hide = |value: String| String::from_utf8_lossy(&self.hidden_in(value.as_bytes())).into_owned();
        headers.into_iter().map(|(name, value)| (name, hide(value))).collect()
    }
}

/// What of a secret looks the same in base 64 whatever stands before and after it, if so many bytes stand before it in its group
/// of three.
fn within_base64(secret: &[u8], before: usize) -> Vec<u8> {
    let encoded = STANDARD_NO_PAD.encode([&[0; 2][..before], secret].concat()).into_bytes();
    // A character has six bits: those of the bytes before, and those that what follows has a part in.
    let first = (before * 8).div_ceil(6);
    let last = (before + secret.len()) * 8 / 6;
    encoded[first..last].to_vec()
}

/// The text without it; nothing, if it is not there.
fn without(text: &[u8], needle: &[u8], spelling: Spelling) -> Option<Vec<u8>> {
    // What was cut off may end in the middle of it.
    let find = |at: usize| {
        spelled(&text[at..], needle, spelling)
            .filter(|found| found.is_whole || found.matched >= spelling.least())
    };
    let mut at = (0..text.len()).find(|at| find(*at).is_some())?;
    let mut out = text[..at].to_vec();
    while at < text.len() {
        let Some(found) = find(at) else {
            out.push(text[at]);
            at += 1;
            continue;
        };
        at += found.length;
        if spelling == Spelling::Base64 {
            // What stands around it in the same word has some bits of it.
            while out.last().is_some_and(|byte| is_base64(*byte)) {
                out.pop();
            }
            at += text[at..].iter().take_while(|byte| is_base64(**byte)).count();
        }
        out.extend_from_slice(HIDDEN);
    }
    Some(out)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    fn check(secrets: &Secrets, text: &str, kept: &str) {
        let hidden = secrets.hidden_in(text.as_bytes());
        assert_eq!(String::from_utf8(hidden).unwrap(), kept, "{text}");
    }

    /// PRM-9: what a peer repeats of a secret is not kept, be it whole, twice, or cut off at the end.
    #[test]
    fn prm_9_what_a_peer_repeats_is_hidden() {
        let secrets = Secrets::new(["s3cr3t-t0ken", "short"]);
        check(&secrets, "you sent `Bearer s3cr3t-t0ken`, s3cr3t-t0ken!", "you sent `Bearer …`, …!");
        check(&secrets, "cut off: s3cr3t-t0", "cut off: …");
        check(&secrets, "cut off: s3cr3", "cut off: s3cr3");
        check(&secrets, "s3cr3t-other and s3cr3t-t0", "s3cr3t-other and …");
        check(&secrets, "short and nothing else", "short and nothing else");
        check(&secrets, "", "");
    }

    /// Trap "a secret echoed as JSON string, percent-encoded, HTML-escaped or base64 is hidden like the plain one", PRM-9.
    #[test]
    fn prm_9_a_secret_is_hidden_in_every_spelling() {
        const SECRET: &str = "p\"a\\s/s wörd<&>'+=%\u{1F511}x";
        let secrets = Secrets::new([SECRET]);
        let json = serde_json::Value::from(SECRET).to_string();
        let ascii_json: String = SECRET
            .encode_utf16()
            .map(
                |unit| {
                    if unit < 0x80 { char::from(unit as u8).to_string() } else { format!("\\u{unit:04X}") }
                },
            )
            .collect::<String>()
            .replace('\\', "\\\\")
            .replace("\\\\u", "\\u")
            .replace('"', "\\\"")
            .replace('/', "\\/");
        let percent = |lower: bool| -> String {
            let one = |byte: u8| if lower { format!("%{byte:02x}") } else { format!("%{byte:02X}") };
            SECRET
                .bytes()
                .map(|b| if b.is_ascii_alphanumeric() { char::from(b).into() } else { one(b) })
                .collect()
        };
        let form = percent(false).replace("%20", "+");
        let html =
            SECRET.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        let numbers: String = SECRET.chars().map(|c| format!("&#{};", c as u32)).collect();
        let hexed: String = html.replace('\'', "&#x27;").replace('/', "&#x2F;").replace('+', "&#43;");
        let twice = serde_json::Value::from(json.as_str()).to_string();
        let all = [
            &json[1..json.len() - 1],
            &ascii_json,
            &percent(true),
            &percent(false),
            &form,
            &html,
            &numbers,
            &hexed,
        ];
        for spelling in all {
            check(&secrets, &format!("it was [{spelling}], you know"), "it was […], you know");
        }
        let kept = secrets.hidden_in(twice.as_bytes());
        assert!(!String::from_utf8_lossy(&kept).contains("wörd"), "JSON within JSON");
        for before in ["", "B", "Be", "Bearer ", "user:"] {
            for after in ["", "!", "!!"] {
                let plain = format!("{before}{SECRET}{after}");
                for encoded in
                    [STANDARD.encode(&plain), URL_SAFE.encode(&plain), URL_SAFE_NO_PAD.encode(&plain)]
                {
                    check(&secrets, &format!("you sent <{encoded}>."), "you sent <…>.");
                }
            }
        }
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02X}")).collect();
        check(&secrets, &format!("0x{hex}."), "0x….");
    }

    /// PRM-9: what is no secret is kept as it is.
    #[test]
    fn prm_9_what_only_looks_like_it_is_kept() {
        let secrets = Secrets::new(["s3cr3t-t0ken"]);
        for text in ["%", "&", "\\", "\\u", "&#;", "100% of s3cr3", "a\\u12", "&#x110000;", "%zz", "\\\\\\"] {
            check(&secrets, text, text);
        }
        let bytes = [0xFF, 0x00, b'%', 0xC3];
        assert_eq!(secrets.hidden_in(&bytes), bytes);
    }
}
