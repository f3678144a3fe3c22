#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| seawall_fuzz::hub::names(text));
