//! How things are shown: the templates, and what they can do to a value.
//!
//! Every value is escaped for HTML where it is put in. What is not escaped is made here, of numbers and words of our own.

use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use seawall_hub_core::domain::time::written;
use seawall_hub_core::encode::{PATH_SEGMENT, percent};

use super::chart;

/// Defines the templates by the names of their files.
macro_rules! templates {
    ($($name:literal)+) => {
        &[$((concat!($name, ".html"), include_str!(concat!("templates/", $name, ".html")))),+]
    };
}

/// All templates, by their names. A page is beside `base.html`, which is the frame of all.
#[rustfmt::skip]
const TEMPLATES: &[(&str, &str)] = templates! {
    "alert" "alert_channel" "alert_parts" "alert_rule" "alerts" "audit" "base" "deliveries" "delivery"
    "event" "events" "flow" "form" "form_page" "group" "groups" "keys" "letter"
    "letters" "demo" "login" "operation" "operations" "overview" "parts" "rule" "rule_form"
    "rule_try" "rules" "service" "services" "settings" "sorry" "source" "sources"
};

pub(super) fn templates() -> Environment<'static> {
    let mut all = Environment::new();
    all.set_auto_escape_callback(|_| AutoEscape::Html);
    // A page with a gap is better than none.
    all.set_undefined_behavior(UndefinedBehavior::Lenient);
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        all.set_syntax(syntax);
    }
    all.add_filter("count", |number: Value| counted(as_f64(&number)));
    all.add_filter("ms", |number: Value| millis(as_f64(&number)));
    all.add_filter("encoded", |text: String| encoded(&text));
    all.add_filter("lasting", |text: String| lasting(&text));
    all.add_filter("pretty", pretty);
    all.add_filter("short", |text: String, most: usize| short(&text, most));
    all.add_function("chart", chart::chart);
    all.add_function("bar", bar);
    for (name, text) in TEMPLATES.iter().copied() {
        if let Err(error) = all.add_template(name, text) {
            // A test renders each of them.
            tracing::error!(target: "seawall", template = name, cause = %error, action = "ManualReview", "[Dashboard][Open] Failed!");
        }
    }
    all
}

fn as_f64(number: &Value) -> f64 {
    f64::try_from(number.clone()).unwrap_or(0.0)
}

/// `12`, `1 234`, `12.3 k`, `4.5 M`: as much as fits into a glance.
pub(super) fn counted(number: f64) -> String {
    if number < 1_000.0 {
        return if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.1}") };
    }
    if number < 10_000.0 {
        return format!("{} {:03}", (number / 1_000.0).floor(), (number % 1_000.0).floor());
    }
    if number < 1_000_000.0 {
        format!("{:.1} k", number / 1_000.0)
    } else {
        format!("{:.1} M", number / 1_000_000.0)
    }
}

/// Milliseconds, in a unit that suits them.
fn millis(number: f64) -> String {
    match number {
        number if number < 1.0 => format!("{:.0} µs", number * 1_000.0),
        number if number < 10.0 => format!("{number:.1} ms"),
        number if number < 1_000.0 => format!("{number:.0} ms"),
        number if number < 60_000.0 => format!("{:.1} s", number / 1_000.0),
        number => format!("{:.0} min", number / 60_000.0),
    }
}

/// `259200000ms` as `3d`: in the largest unit that it is a whole number of.
fn lasting(text: &str) -> String {
    let millis = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    millis.map_or_else(|| text.to_owned(), |millis| written(Duration::from_millis(millis)))
}

/// For a place in a path or a query.
pub(super) fn encoded(text: &str) -> String {
    percent(text, PATH_SEGMENT).to_string()
}

/// A value as JSON for people.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// `bar([["good", 3], ["bad", 1]], label="…")`: parts of a whole.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands values over")]
fn bar(parts: Vec<Vec<Value>>, options: Kwargs) -> Result<Value, Error> {
    let part = |part: Vec<Value>| match &part[..] {
        [class, size] => Ok((class.to_string(), as_f64(size))),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "a part is a class and a number")),
    };
    let parts = parts.into_iter().map(part).collect::<Result<Vec<_>, _>>()?;
    let label: String = options.get("label")?;
    options.assert_all_used()?;
    let all: f64 = parts.iter().map(|(_, part)| part).sum();
    let mut svg = format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\"><rect class=\"rest\" \
         width=\"100\" height=\"6\"/>",
        escaped(&label)
    );
    let mut x = 0.0;
    for (class, part) in parts {
        let width = if all > 0.0 { part / all * 100.0 } else { 0.0 };
        svg.push_str(&format!(
            "<rect class=\"{}\" x=\"{x:.2}\" width=\"{width:.2}\" height=\"6\"/>",
            escaped(&class)
        ));
        x += width;
    }
    svg.push_str("</svg>");
    Ok(Value::from_safe_string(svg))
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// A page that says why there is no other. It needs no template, because that may be what is broken.
pub(super) fn sorry(title: &str, message: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} · Seawall</title><link rel=\"stylesheet\" href=\"{style}\"><main class=\"sorry\"><h1>{title}</h1><p>{message}</p>\
         <p><a class=\"button\" href=\"/\">Open overview</a></p></main></html>",
        title = escaped(title),
        message = escaped(message),
        style = super::assets::names().get_attr("style").map(|name| name.to_string()).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-1: numbers are short.
    #[test]
    fn ui_1_numbers_fit_into_a_glance() {
        let shown: Vec<String> =
            [0.0, 7.25, 999.0, 1_234.0, 12_345.0, 4_500_000.0].into_iter().map(counted).collect();
        assert_eq!(shown, ["0", "7.2", "999", "1 234", "12.3 k", "4.5 M"]);
        let shown: Vec<String> = [0.25, 7.25, 250.0, 2_500.0, 150_000.0].into_iter().map(millis).collect();
        assert_eq!(shown, ["250 µs", "7.2 ms", "250 ms", "2.5 s", "2 min"]);
        let shown: Vec<String> =
            ["259200000ms", "3600000ms", "90000ms", "1ms", "0ms", "x"].into_iter().map(lasting).collect();
        assert_eq!(shown, ["3d", "1h", "90s", "1ms", "0s", "x"]);
    }

    /// UI-1, SEC-1: what is put into a drawing is escaped, and a text is escaped in every template.
    #[test]
    fn sec_1_texts_stay_texts() {
        let all = templates();
        let evil = "<script>alert(1)</script>\"'";
        for source in [
            "{{ x }}",
            "{{ chart([[1, 2]], classes=[x], label=x, unit=x) }}",
            "{{ chart([[1, 2]], at=[1000, 2000], names=[x], classes=[x], label=x, unit=x) }}",
            "{{ bar([[x, 1]], label=x) }}",
        ] {
            let made = all.render_str(source, minijinja::context! { x => evil }).unwrap();
            assert!(!made.contains("<script>"), "{made}");
        }
        assert!(!sorry(evil, evil).contains("<script>"));
    }
}
