//! The audit names every change: a new one is recorded, or somebody has decided that it is not.

use super::{File, expect_none, files};

const AUDIT: &str = "hub/core/src/service/audit.rs";
const DENIED: &str = "#![deny(clippy::wildcard_enum_match_arm)]";

fn problems(files: &[File]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == AUDIT) else {
        return vec![format!("`{AUDIT}` is missing")];
    };
    let mut problems = Vec::new();
    if !file.text.contains(DENIED) {
        problems.push(format!("{AUDIT} lacks `{DENIED}`"));
    }
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("_ =>") || line.contains("| _ =>") {
            problems.push(format!("{AUDIT}:{} has an arm for all other changes", index + 1));
        }
    }
    problems
}

#[test]
fn the_audit_names_every_change() {
    expect_none(&problems(&files()));
}

#[test]
fn an_arm_for_all_others_is_found() {
    let check = |text: &str| problems(&[File::made_up(AUDIT, text)]).join(", ");
    assert_eq!(check(&format!("{DENIED}\nChange::Audit(_) => None,")), "");
    assert_eq!(
        check(&format!("{DENIED}\n    _ => None,")),
        format!("{AUDIT}:2 has an arm for all other changes")
    );
    assert_eq!(check("match x {}"), format!("{AUDIT} lacks `{DENIED}`"));
}
