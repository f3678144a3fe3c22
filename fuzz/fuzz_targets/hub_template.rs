#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| seawall_fuzz::hub::template(text));
