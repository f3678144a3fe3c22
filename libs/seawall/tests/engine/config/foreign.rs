//! Guards in an application's own file.

use seawall::config::{Config, Format};

const APP: &str = "
server: {port: 8080, retry: {max_attempts: 3}}
defaults: &defaults {pool: 5}
database:
  <<: *defaults
  url: !secret postgres
guards:
  payments: {call_timeout: 5s}
";

fn own(text: &str) -> Result<Config, String> {
    let loader = Config::loader().text("app.yaml", text, Format::Yaml).foreign_sections();
    loader.load().map_err(|error| error.to_string())
}

fn call_timeout(config: &Config, guard: &str) -> String {
    let plan = config.plan(guard).expect("the guard is in the file");
    let found = plan
        .settings()
        .find(|setting| setting.path() == "call_timeout")
        .map(|setting| setting.value().to_owned());
    found.unwrap_or_default()
}

/// ENG-12: guards live in an application's own file, beside sections that are none of theirs.
#[test]
fn eng_12_foreign_sections_are_ignored_where_that_is_asked_for() {
    let config = own(APP).unwrap();
    assert_eq!(config.plans().len(), 1);
    assert_eq!(call_timeout(&config, "payments"), "5s");
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let strict = Config::parse("app.yaml", "server: {}\nguards: {}", Format::Yaml).unwrap_err().to_string();
    assert_eq!(
        strict,
        "app.yaml:1:1: server: no such section; there are `guards`, `configs`, `resilience4j`"
    );
}

/// ENG-12: inside of a guard nothing is ignored, and a slip in the name of our own section is one.
#[test]
fn eng_12_beside_foreign_sections_mistakes_are_still_found() {
    let error = own("server: {}\ngaurds: {payments: {call_timeout: 5s}}").unwrap_err();
    assert_eq!(error, "app.yaml:2:1: gaurds: no such section; did you mean `guards`?");
    assert_eq!(
        own("server: {}\nguards: {payments: {call_timeut: 5s, <<: x}}").unwrap_err(),
        "\
app.yaml:2:21: guards.payments.call_timeut: no such key; did you mean `call_timeout`?
app.yaml:2:38: guards.payments.<<: merging with `<<` is not read; name the section under `configs` and write `extends`"
    );
    let config = own("config: {level: debug}\nguard: dog\nguards: {payments: {}}").unwrap();
    assert_eq!(config.plans().len(), 1, "what does not look like guards is somebody else's");
}

/// ENG-12: a file of an application may have guards further down.
#[test]
fn eng_12_guards_are_read_from_below_a_path() {
    let text = "
[app]
name = 'shop'
[app.resilience.configs.standard]
attempt_timeout = '2s'
[app.resilience.guards.payments]
extends = 'standard'
call_timeout = '5s'
";
    let load = |text: &str| {
        let loader = Config::loader().text("app.toml", text, Format::Toml).below("app.resilience");
        let variables = [("SHOP_GUARDS__PAYMENTS__CALL_TIMEOUT", "7s")];
        loader.env_from("SHOP", variables).load().map_err(|error| error.to_string())
    };
    assert_eq!(call_timeout(&load(text).unwrap(), "payments"), "7s", "variables lie over it");
    let error = load(&text.replace("call_timeout = '5s'", "call_timeout = 5\ncolour = 'red'")).unwrap_err();
    assert!(
        error.contains("app.toml:8:16: app.resilience.guards.payments.call_timeout: a duration needs a unit"),
        "{error}"
    );
    assert!(error.contains("app.toml:9:1: app.resilience.guards.payments.colour: no such key"), "{error}");
    let error = load(&text.replace("resilience.guards", "resilience.gard")).unwrap_err();
    assert!(error.contains("app.resilience.gard: no such section; did you mean `guards`?"), "{error}");
    let none =
        Config::loader().text("app.toml", "[app]", Format::Toml).below("app.resilience").load().unwrap();
    assert_eq!(
        none.warnings()[0].to_string(),
        "app.toml:1:1: there is no guard in it; write one below `app.resilience.guards`"
    );
}
