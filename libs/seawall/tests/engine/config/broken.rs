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
        "seawall.ini: its name does not say how it is written; call it `.yaml`, `.toml`, `.json` or `.properties`"
    ));
}

/// ENG-12: bases that each extend two others double with every step; nobody waits for that.
#[test]
fn eng_12_towers_of_bases_are_refused_quickly() {
    let mut text = String::from("configs:\n  a0: {}\n  b0: {}\n");
    for n in 1..60 {
        let m = n - 1;
        text += &format!("  a{n}: {{extends: [a{m}, b{m}]}}\n  b{n}: {{extends: [b{m}, a{m}]}}\n");
    }
    text += "guards:\n  payments: {extends: a59}\n  search: {extends: a3}\n";
    let error = Config::parse("tower.yaml", &text, Format::Yaml).unwrap_err().to_string();
    let expected =
        "tower.yaml:123:3: guards.payments: more than 100 bases lie under it; extend fewer of them";
    assert_eq!(error, expected);
}

/// ENG-12: nor does a long chain of bases end in a stack that overflows, with or without a circle.
#[test]
fn eng_12_chains_of_bases_are_refused_quickly() {
    let chain: String = (0..9_000).map(|n| format!("  c{n}: {{extends: c{}}}\n", n + 1)).collect();
    for end in ["{}", "{extends: c0}"] {
        let text = format!("guards: {{payments: {{extends: c0}}}}\nconfigs:\n{chain}  c9000: {end}\n");
        let error = Config::parse("chain.yaml", &text, Format::Yaml).unwrap_err().to_string();
        let expected =
            "chain.yaml:1:10: guards.payments: more than 100 bases lie under it; extend fewer of them";
        assert_eq!(error, expected);
    }
}

/// ENG-12: there is a bound on everything.
#[test]
fn eng_12_a_file_has_a_size_that_people_can_read() {
    let report = |text: &str| Config::parse("big.yaml", text, Format::Yaml).unwrap_err().to_string();
    assert!(report(&"#".repeat(2 << 20)).starts_with("big.yaml: it has more than 1048576 bytes; "));
    let crowd: String = (0..10_001).map(|n| format!("  g{n}: {{}}\n")).collect();
    assert_eq!(
        report(&format!("guards:\n{crowd}")),
        "big.yaml:2:3: guards: there are more than 10000 of them; where each key needs a guard, write one with `keys_max`"
    );
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(
        report(&deep).starts_with("big.yaml:1:65: sections lie more than 64 deep here"),
        "{}",
        report(&deep)
    );
}
