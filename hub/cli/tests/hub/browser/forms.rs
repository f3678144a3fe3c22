//! Forms: what is wrong goes when it is mended, fields of a row stand in line, and a question says what it is about.

use serde_json::json;

use super::driver::Browser;
use super::filling::{only_group, refused};
use super::{LETTERS, hub};

/// UI-3: what was wrong at a field goes when it is mended: no red word stands beside a preview that says what is sent.
#[test]
fn ui_3_an_error_goes_when_its_field_is_mended() {
    let (_folder, hub) = hub();
    let _peer = refused(&hub, 1);
    let browser = Browser::start();
    browser.as_admin(&hub, "/rules/invoices/edit");
    let wrong = "document.querySelectorAll('.field-wrong, .form-wrong, [aria-invalid]').length";
    browser.clear("[name=filter]");
    browser.write("[name=filter]", "data.total >");
    browser.clear("[name='headers:pairs']");
    browser.write("[name='headers:pairs']", "no colon here");
    browser.click("form[data-act] button.primary");
    browser.wait("it is told", &format!("{wrong} > 1"));
    let told = "document.querySelector('[name=\"headers:pairs\"] + .field-wrong').textContent";
    assert_eq!(browser.eval(&format!("return {told}")), "has no colon: no colon here");
    // The hub is asked when all fields can be read.
    browser.clear("[name='headers:pairs']");
    browser.write("[name='headers:pairs']", "no name: x");
    browser.click("form[data-act] button.primary");
    browser.wait("both fields are wrong", "document.querySelectorAll('.field-wrong').length === 2");
    assert!(browser.eval(&format!("return {told}")).as_str().unwrap().starts_with("no name: "));
    browser.clear("[name=filter]");
    browser.write("[name=filter]", "data.total > 1");
    let at_filter = "document.querySelector('[name=filter]').matches('[aria-invalid]')";
    browser.wait("the field that is mended is not wrong", &format!("!{at_filter}"));
    browser.clear("[name='headers:pairs']");
    // The badge may still be the one of the rule as it was when the page came, so the words are waited for.
    browser.wait("nothing is wrong any more", &format!("{wrong} === 0"));
    browser.wait("the preview is good", "document.querySelector('#preview .badge.good') !== null");
}

/// UI-1: fields of one row stand in one line, also when a hint above one of them takes two lines.
#[test]
fn ui_1_fields_of_a_row_stand_in_line() {
    let (_folder, hub) = hub();
    let browser = Browser::start();
    browser.as_admin(&hub, "/services/_new");
    browser.eval("const choice = document.querySelector('[data-choose=auth]'); choice.value = 'oauth2'; choice.dispatchEvent(new Event('change'))");
    for width in [700, 1_000, 1_300, 1_600] {
        browser.resize(width, 900, false);
        let crooked = browser.eval(
            "const crooked = []; \
             for (const row of document.querySelectorAll('.fields')) { \
               const inputs = [...row.querySelectorAll('input, select')].filter((one) => one.offsetParent).map((one) => \
                 [one.name, one.getBoundingClientRect(), one.closest('label').getBoundingClientRect()]); \
               for (const [name, own, label] of inputs) for (const [other, next, beside] of inputs) \
                 if (label.top < beside.bottom && beside.top < label.bottom && Math.abs(own.bottom - next.bottom) > 1) \
                   crooked.push(`${name} and ${other}`); \
             } return crooked",
        );
        assert_eq!(crooked, json!([]), "at a width of {width}");
    }
}

/// UI-2: whoever replays many is told how many before it begins, and whoever changes one sees what differs.
#[test]
fn ui_2_a_question_says_how_many_and_what_differs() {
    let (_folder, hub) = hub();
    let peer = refused(&hub, 7);
    let browser = Browser::start();
    let group = only_group(&hub)["fingerprint"].as_str().unwrap().to_owned();
    let asked = |button: &str| {
        browser.click(button);
        browser.wait("the question is there", "document.querySelector('dialog.confirm').open");
        let text = browser.text("dialog.confirm [data-text]").unwrap();
        let diff = browser.text("dialog.confirm [data-diff]:not([hidden])");
        browser.click("dialog.confirm [data-no]");
        (text, diff)
    };
    let before = peer.count();
    browser.as_admin(&hub, &format!("/deadLetters/groups/{group}"));
    let (text, diff) = asked("form[data-try] button.primary");
    assert!(text.starts_with("7 open dead letters") && diff.is_none(), "{text} {diff:?}");
    browser.write("[name='max:number']", "3");
    assert!(asked("form[data-try] button.primary").0.starts_with("3 open dead letters"));
    browser.open(&hub.page("/deadLetters/list?service=billing"));
    assert!(asked("form[data-try] button.primary").0.starts_with("7 open dead letters"));

    let letter = hub.all(LETTERS, "deadLetters", 10)[0]["id"].as_str().unwrap().to_owned();
    browser.open(&hub.page(&format!("/deadLetters/{letter}")));
    let (_, diff) = asked("form[data-try] button");
    assert!(diff.is_some_and(|diff| diff.contains("No differences")), "nothing was changed");
    let data = "[name='data:json']";
    browser.clear(data);
    browser.write(data, r#"{"id": "other", "total": 1}"#);
    let (_, diff) = asked("form[data-try] button");
    let diff = diff.unwrap();
    assert!(diff.contains("+ ") && diff.contains("other"), "{diff}");
    assert_eq!(peer.count(), before, "nothing was sent");
}
