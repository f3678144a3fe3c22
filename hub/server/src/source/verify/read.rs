//! Headers, times and signatures, as strictly as they are written.

use axum::http::header::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::{HEXLOWER, HEXUPPER};
use seawall_hub_core::domain::time::Millis;

use super::refused::{VerifyError, VerifyFailure};
use super::{Encoding, TOLERANCE};

/// The value of a header that must be there once.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, VerifyError> {
    one_or_none(headers, name)?.ok_or_else(|| VerifyFailure::Missing(name.clone()).into())
}

/// The value of a header that is there once, if it is.
pub(super) fn one_or_none<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, VerifyError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(VerifyFailure::Twice(name.clone()).into());
    }
    match value.to_str() {
        Err(_) => Err(VerifyFailure::NotText(name.clone()).into()),
        Ok("") => Err(VerifyFailure::Empty(name.clone()).into()),
        Ok(text) => Ok(Some(text)),
    }
}

/// Whether seconds since 1970, in digits only, are near enough to now.
pub(super) fn fresh(header: &HeaderName, stamp: &str, now: Millis) -> Result<(), VerifyError> {
    let no_time = || VerifyFailure::NoTime(header.clone());
    if !stamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(no_time().into());
    }
    let seconds: i64 = stamp.parse().map_err(|_| no_time())?;
    let millis = seconds.checked_mul(1000).ok_or_else(no_time)?;
    let off = now.0.abs_diff(millis);
    if u128::from(off) <= TOLERANCE.as_millis() {
        return Ok(());
    }
    let why = if millis < now.0 { VerifyFailure::TooOld } else { VerifyFailure::TooNew };
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

/// Reads 64 digits in lower case or in upper case, and not in both.
fn hex(text: &str) -> Option<[u8; 32]> {
    let text = Some(text.as_bytes()).filter(|text| text.len() == 64)?;
    let mut bytes = [0; 32];
    let read = HEXLOWER.decode_mut(text, &mut bytes).or_else(|_| HEXUPPER.decode_mut(text, &mut bytes));
    read.ok().map(|_| bytes)
}
