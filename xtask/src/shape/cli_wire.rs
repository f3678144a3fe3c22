//! The command line reads responses by the types of `seawall-api`, never by the name of a field.
//!
//! A field that is read by its name is a typing mistake that no compiler finds: it is null, and the command says nothing of it.

use super::source::product;
use super::{File, expect_none, files};

const CLI: &str = "hub/cli/src/";

/// What may write JSON by hand: `check-config` has a format of its own and talks to no hub.
const OWN_FORMAT: &str = "hub/cli/src/command/check_config.rs";

/// The number of places that look up a field by its name: `value["name"]`.
fn lookups(text: &str) -> usize {
    let is_value = |before: char| before.is_alphanumeric() || "_])".contains(before);
    let is_name = |rest: &str| rest.split_once('"').is_some_and(|(_, rest)| rest.starts_with(']'));
    let found = text.match_indices("[\"");
    found.filter(|(at, found)| text[..*at].ends_with(is_value) && is_name(&text[at + found.len()..])).count()
}

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.path.starts_with(CLI)) {
        let text = product(&file.text);
        if lookups(&text) > 0 {
            problems.push(format!(
                "{} looks up fields by their names; use the types of `seawall-api`",
                file.path
            ));
        }
        if text.contains("json!(") && file.path != OWN_FORMAT {
            problems.push(format!("{} writes JSON by hand; use the types of `seawall-api`", file.path));
        }
    }
    problems
}

/// API-4
#[test]
fn the_command_line_reads_and_writes_by_types() {
    expect_none(&problems(&files()));
}

#[test]
fn a_field_that_is_read_by_its_name_is_found() {
    for text in [r#"data["id"]"#, r#"all[0]["id"]"#, r#"read()["id"]"#, r#"json!({"a": 1})"#] {
        let file = File::made_up("hub/cli/src/command/a.rs", &format!("fn f() {{ {text}; }}"));
        assert_eq!(problems(&[file]).len(), 1, "{text}");
    }
    for text in [r#"let a = ["id"];"#, r#"f(&["id"]);"#, "value[0];", r#"strip("events[");"#] {
        let file = File::made_up("hub/cli/src/command/a.rs", &format!("fn f() {{ {text} }}"));
        assert!(problems(&[file]).is_empty(), "{text}");
    }
    assert!(problems(&[File::made_up(OWN_FORMAT, "fn f() { json!({}); }")]).is_empty());
}
