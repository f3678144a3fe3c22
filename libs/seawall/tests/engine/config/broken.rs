//! Files that can't work, each beside the report that it gets. `UPDATE_GOLDEN=1 cargo test eng_12` writes the reports
//! anew; read them before they go in.

use std::fs;

use seawall::config::{Config, Format};

use super::golden;

/// ENG-12: every mistake with its file, line, path and reason, and what to write instead; all at once.
#[test]
fn eng_12_every_broken_file_gets_exactly_the_report_beside_it() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files: Vec<_> =
        fs::read_dir(golden("broken")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files.iter().filter(|path| Format::of(path).is_some()) {
        count += 1;
        let name = format!("seawall.{}", path.extension().unwrap().to_str().unwrap());
        let text = fs::read_to_string(path).unwrap();
        let error = match Config::parse(&name, &text, Format::of(path).unwrap()) {
            Ok(config) => panic!("{} loads: {config:?}", path.display()),
            Err(error) => error,
        };
        let report = format!("{error}\n");
        let expected = path.with_extension("expected");
        if update {
            fs::write(&expected, &report).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != report {
            wrong.push(format!("{}:\n{report}", expected.display()));
        }
        for problem in error.problems() {
            if problem.line().is_none() || problem.column().is_none() {
                wrong.push(format!("{problem} has no position"));
            }
            if problem.remedy().is_none() && !problem.reason().contains(';') {
                wrong.push(format!("{problem} does not say what to do"));
            }
        }
    }
    assert!(count >= 30, "{count} files");
    assert!(wrong.is_empty(), "reports that are not as they should be:\n{}", wrong.join("\n"));
}

/// ENG-12: a report is about files that can be found.
#[test]
fn eng_12_a_file_that_cannot_be_read_is_named() {
    let report = |path: &str| Config::load(golden(path)).unwrap_err().to_string();
    assert!(report("nowhere.yaml").contains("nowhere.yaml: can't be read: "), "{}", report("nowhere.yaml"));
    assert!(report("seawall.ini").ends_with(
        "seawall.ini: its name does not say how it is written; call it `.yaml`, `.toml` or `.json`"
    ));
}
