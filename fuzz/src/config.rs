//! What must hold for every text that is read as a configuration.

use seawall::config::{Config, Format};

/// A text is refused with mistakes that have a place, or its guards can be built, and written out and read again they
/// are the same.
pub fn check(text: &str, format: Format) {
    own_file(text, format);
    let config = match Config::parse("fuzz", text, format) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.problems().is_empty());
            assert!(error.problems().iter().all(|problem| problem.file() == Some("fuzz")), "{error}");
            return;
        }
    };
    for warning in config.warnings() {
        assert!(warning.file() == Some("fuzz"), "{warning}");
    }
    for plan in config.plans() {
        plan.builder().build().expect("a plan builds");
    }
    let serialised = serde_json::to_string(&config).expect("a configuration is serialised");
    let read: Config =
        serde_json::from_str(&serialised).unwrap_or_else(|error| panic!("{error}\n{serialised}"));
    assert_eq!(read.to_yaml(), config.to_yaml());
    let written = config.to_yaml();
    let again = match Config::parse("written", &written, Format::Yaml) {
        Ok(again) => again,
        Err(error) => panic!("{error}\n{written}"),
    };
    let mut changes = config.diff(&again);
    // Presets are written out.
    changes.changed.retain(|change| change.path != "preset");
    assert!(changes.is_empty(), "{changes}\n{written}");
}

/// The same text as an application's own file, with a profile and without variables: its mistakes have a place, too.
fn own_file(text: &str, format: Format) {
    let loader = || {
        let variables: [(&str, &str); 0] = [];
        Config::loader().text("fuzz", text, format).profile("prod").env_from("SEAWALL", variables)
    };
    for loaded in [loader().foreign_sections().load(), loader().below("app.resilience").load()] {
        match loaded {
            Ok(config) => config.plans().iter().for_each(|plan| {
                plan.builder().build().expect("a plan builds");
            }),
            Err(error) => {
                assert!(error.problems().iter().all(|problem| problem.file() == Some("fuzz")), "{error}");
            }
        }
    }
}
