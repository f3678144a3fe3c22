//! What must hold for every text that is read as a configuration.

use seawall::config::{Config, Format};

/// A text is refused with mistakes that have a place, or its guards can be built, and written out and read again they
/// are the same.
pub fn check(text: &str, format: Format) {
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
