//! A program's own settings, read by its table of keys.

use seawall::config::{Format, SettingKey, read_settings};

const KEYS: [SettingKey; 4] = [
    SettingKey::one("listen"),
    SettingKey::list("allow_egress"),
    SettingKey::one("log.level"),
    SettingKey::one("log.format"),
];

/// What a text says, or every problem of it.
fn read(text: &str, format: Format) -> Result<Vec<String>, String> {
    let mut taken = Vec::new();
    let take = |key: &'static str, text: &str| {
        taken.push(format!("{key}={text}"));
        if text == "wrong" { Err("must be right".to_owned()) } else { Ok(()) }
    };
    read_settings("app", text, format, &KEYS, take).map_err(|error| error.to_string())?;
    Ok(taken)
}

/// ENG-12: each value of a file comes with its key, in every format; one value is a list of one.
#[test]
fn eng_12_settings_of_a_program_come_with_their_keys() {
    let expected = ["listen=here", "allow_egress=a", "allow_egress=b", "log.level=3"];
    let toml = "listen = \"here\"\nallow_egress = [\"a\", \"b\"]\n[log]\nlevel = 3\n";
    assert_eq!(read(toml, Format::Toml).unwrap(), expected);
    let yaml = "listen: here\nallow_egress: [a, b]\nlog: {level: 3}\n";
    assert_eq!(read(yaml, Format::Yaml).unwrap(), expected);
    assert_eq!(read("allow_egress = \"a\"", Format::Toml).unwrap(), ["allow_egress=a"]);
    assert_eq!(read("[log]\n", Format::Toml).unwrap(), Vec::<String>::new());
}

/// ENG-12: every problem is reported at once, with its place, its key, the reason, and the nearest key.
#[test]
fn eng_12_every_problem_in_settings_of_a_program_is_reported_at_once() {
    let text = "listne = \"here\"\nlog_level = \"info\"\nport = 1\nlisten = [\"a\"]\n\
                allow_egress = [\"a\", \"wrong\"]\n[log]\nlevel = \"wrong\"\n[logs]\n";
    let expected = "app:1:1: listne: unknown setting; did you mean `listen`?\n\
                    app:2:1: log_level: unknown setting; did you mean `log.level`?\n\
                    app:3:1: port: unknown setting; known: `listen`, `allow_egress`, `log.level`, `log.format`\n\
                    app:4:10: listen: a list stands here; write one value\n\
                    app:5:22: allow_egress: must be right\n\
                    app:7:9: log.level: must be right\n\
                    app:8:2: logs: unknown setting; did you mean `log`?";
    assert_eq!(read(text, Format::Toml).unwrap_err(), expected);
    assert_eq!(
        read("log = 7", Format::Toml).unwrap_err(),
        "app:1:7: log: `7` stands here; write its settings below it"
    );
    assert!(read("listen = \n", Format::Toml).unwrap_err().starts_with("app:1:"));
    assert!(read("listen = 1\nlisten = 2\n", Format::Toml).unwrap_err().contains("stands here twice"));
}
