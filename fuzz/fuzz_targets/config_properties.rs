#![no_main]

use seawall::config::Format;

libfuzzer_sys::fuzz_target!(|text: &str| seawall_fuzz::check(text, Format::Properties));
