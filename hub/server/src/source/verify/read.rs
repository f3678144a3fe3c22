//! Headers, times and signatures, as strictly as they are written.

use axum::http::header::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_hub_core::domain::time::Millis;

use super::refused::{Refused, Why};
use super::{Encoding, TOLERANCE};

/// The value of a header that must be there once.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, Refused> {
    one_or_none(headers, name)?.ok_or_else(|| Why::Missing(name.clone()).into())
}

/// The value of a header that is there once, if it is.
pub(super) fn one_or_none<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refused> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Why::Twice(name.clone()).into());
    }
    match value.to_str() {
        Err(_) => Err(Why::NotText(name.clone()).into()),
        Ok("") => Err(Why::Empty(name.clone()).into()),
        Ok(text) => Ok(Some(text)),
    }
}

/// Whether seconds since 1970, in digits only, are near enough to now.
pub(super) fn fresh(header: &HeaderName, stamp: &str, now: Millis) -> Result<(), Refused> {
    let no_time = || Why::NoTime(header.clone());
    if !stamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(no_time().into());
    }
    let seconds: i64 = stamp.parse().map_err(|_| no_time())?;
    let millis = seconds.checked_mul(1000).ok_or_else(no_time)?;
    let off = now.0.abs_diff(millis);
    if u128::from(off) <= TOLERANCE.as_millis() {
        return Ok(());
    }
    let why = if millis < now.0 { Why::TooOld } else { Why::TooNew };
    Err(why(header.clone(), off.div_ceil(1000)).into())
}

/// A signature of 32 bytes, whole and with nothing after it.
pub(super) fn decoded(text: &str, encoding: Encoding) -> Option<[u8; 32]> {
    match encoding {
        Encoding::Hex => hex(text),
        // Padded, and without bits that stand for nothing: one signature has one spelling.
        Encoding::Base64 => STANDARD.decode(text).ok()?.try_into().ok(),
    }
}

/// In small letters or in capitals, and not in both.
fn hex(text: &str) -> Option<[u8; 32]> {
    let (small, capital) = (|byte: u8| byte.is_ascii_lowercase(), |byte: u8| byte.is_ascii_uppercase());
    if text.len() != 64 || (text.bytes().any(small) && text.bytes().any(capital)) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
